"""Import a graph of ``torch.fx`` as a compiled function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
from torch import fx
from torch._higher_order_ops.effects import with_effects
from torch.utils import _pytree as pytree

import rekindle.importing.fx.operators
import rekindle.importing.fx.symbolic_scalars  # noqa: F401  (they fill the table of what reads calls)
from rekindle.errors import CaptureError
from rekindle.importing.fx.control_flow import leave_modes
from rekindle.importing.fx.fx_importer import FxImporter, Handler, ImportedValue, as_list
from rekindle.importing.fx.operators import read_operator
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import BOOL, FLOAT, INT, NONE, TENSOR, TupleType, Type
from rekindle.program.function import Function
from rekindle.program.sources.compilation_unit import CompilationUnit
from rekindle.program.sources.definition import clean_up


def function_of(module: fx.GraphModule, name: str, *, gradients: bool = False) -> Function:
    """Return the function ``name`` that the graph of ``module`` computes. Its parameters are the placeholders, and it
    returns the graph's outputs as a tuple. A call that programs cannot express remains a call of Python. Unless
    ``gradients`` is set, an alias or detached tensor is imported as the tensor itself, since calls of the function
    record no gradients.

    Raises:
        CaptureError: a node is not a call of a function, or a placeholder has a value that programs do not have.
    """
    graph = Graph()
    inputs = [graph.add_input(str(node.target), _type_of(node)) for node in module.graph.find_nodes(op="placeholder")]
    overrides = {} if gradients else _WITHOUT_GRADIENTS
    reader = FxImporter(graph, _attribute, read_operator, fallback=python_call, overrides=overrides)
    results = [reader.value(item) for item in as_list(reader.read(module, inputs))]
    leave_modes(reader)
    type = TupleType(tuple(value.type for value in results))
    graph.add_output(graph.append_node(graph.create("prim::TupleConstruct", results, types=[type])).output)
    clean_up(graph)
    return CompilationUnit().create_function(name, graph)


def _itself(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    """Import an alias as the tensor itself, since no gradients are recorded, and nothing is written to."""
    return args[0]


_WITHOUT_GRADIENTS: Final[dict[object, Handler]] = {
    torch.ops.aten.detach.default: _itself,
    torch.ops.aten.alias.default: _itself,
}


def _type_of(node: fx.Node) -> Type:
    known = node.meta.get("val", node.meta.get("example_value"))
    if node.users and all(user.target is with_effects and user.args[0] is node for user in node.users):
        return NONE  # a token, which keeps calls in order: there is nothing to it when they run
    found = _type_of_value(known)
    if found == NONE and known is not None:
        raise CaptureError(f"the graph takes '{node.target}', a {type_name(known)}, which is not a value of a program")
    return found


def type_name(value: object) -> str:
    """Return the class name of ``value`` for error messages."""
    return type(value).__qualname__


def _attribute(reader: FxImporter, module: fx.GraphModule, name: str) -> ImportedValue:
    """Return the imported value of an attribute of a module: a tensor as a constant of the function, other objects as
    they are."""
    held: object = module
    for part in name.split("."):
        held = getattr(held, part)
    if isinstance(held, torch.Tensor):
        return reader.value(held)
    return held


def python_call(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    """Insert a ``prim::PythonOp`` that calls the function of ``node``. Its result types are those of the capture."""
    leaves, spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
    places = [index for index, leaf in enumerate(leaves) if isinstance(leaf, Value)]
    known, result_spec = pytree.tree_flatten(node.meta.get("val"))
    kept = [index for index, each in enumerate(known) if each is not None]
    types = [_type_of_value(known[index]) for index in kept]
    function = _caller(node.target, leaves, spec, places, kept)
    graph = reader.graph
    made = graph.create(
        "prim::PythonOp",
        [leaves[index] for index in places],
        types=types,
        attributes={"function": ConstantObject(function)},
        range=reader.range,
    )
    graph.insert_node(made)
    results: list[ImportedValue] = [None] * len(known)
    for index, output in zip(kept, made.outputs, strict=True):
        results[index] = output
    return pytree.tree_unflatten(results, result_spec)


def _caller(
    target: Any, leaves: Sequence[Any], spec: pytree.TreeSpec, places: Sequence[int], kept: Sequence[int]
) -> Callable[..., Any]:
    """Return a function that takes the graph values among ``leaves``, at the indices ``places``, calls ``target`` with
    all leaves, and returns the leaves of its result with the indices ``kept``: a tuple, or the value if there is
    one."""
    constants = [None if isinstance(leaf, Value) else leaf for leaf in leaves]

    def call(*values: Any) -> Any:
        given = list(constants)
        for index, value in zip(places, values, strict=True):
            given[index] = value
        args, kwargs = pytree.tree_unflatten(given, spec)
        results = pytree.tree_leaves(target(*args, **kwargs))
        wanted = tuple(results[index] for index in kept)
        return wanted[0] if len(wanted) == 1 else wanted

    call.__qualname__ = call.__name__ = getattr(target, "__name__", str(target))
    return call


def _type_of_value(known: Any) -> Type:
    return next((type for classes, type in _TYPES if isinstance(known, classes)), NONE)


_TYPES: Final = (
    (torch.Tensor, TENSOR),
    ((bool, torch.SymBool), BOOL),
    ((int, torch.SymInt), INT),
    ((float, torch.SymFloat), FLOAT),
)
"""The types of captured values, by their classes."""
