"""A graph of ``torch.fx`` as a function that runs here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import torch
from torch import fx
from torch._higher_order_ops.effects import with_effects

import rekindle.importing.fx.operators
import rekindle.importing.fx.symbolic_scalars  # noqa: F401  (they fill the table of what reads calls)
from rekindle.errors import CaptureError
from rekindle.importing.fx.control_flow import leave_modes
from rekindle.importing.fx.fx_importer import FxImporter, Handler, ImportedValue, as_list
from rekindle.importing.fx.operators import read_operator
from rekindle.importing.fx.python_calls import python_call
from rekindle.ir.graph import Graph
from rekindle.ir.types import BOOL, FLOAT, INT, NONE, TENSOR, TupleType, Type
from rekindle.program.function import Function
from rekindle.program.sources.compilation_unit import CompilationUnit
from rekindle.program.sources.definition import clean_up


def function_of(module: fx.GraphModule, name: str, *, gradients: bool = False) -> Function:
    """The function that the graph of ``module`` computes. It takes what the placeholders stand for, and returns a tuple
    of what the graph returns. What has no form in a program is left to Python. Unless there are ``gradients``, calls of
    the function record none.

    Raises:
        CaptureError: the graph holds what is no call of an operator, or a placeholder for something odd.
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
    """Nothing records gradients, and nothing is written to: the tensor itself does as well as an alias of it."""
    return args[0]


_WITHOUT_GRADIENTS: Final[dict[object, Handler]] = {
    torch.ops.aten.detach.default: _itself,
    torch.ops.aten.alias.default: _itself,
}


def _type_of(node: fx.Node) -> Type:
    known = node.meta.get("val", node.meta.get("example_value"))
    if node.users and all(user.target is with_effects and user.args[0] is node for user in node.users):
        return NONE  # a token, which keeps calls in order: there is nothing to it when they run
    if known is None or isinstance(known, torch.Tensor):
        return TENSOR if known is not None else NONE
    for classes, type in (
        ((bool, torch.SymBool), BOOL),
        ((int, torch.SymInt), INT),
        ((float, torch.SymFloat), FLOAT),
    ):
        if isinstance(known, classes):
            return type
    raise CaptureError(f"the graph takes '{node.target}', a {type_name(known)}, which is no value of a program")


def type_name(value: object) -> str:
    """What an error calls the class of ``value``."""
    return type(value).__qualname__


def _attribute(reader: FxImporter, module: fx.GraphModule, name: str) -> ImportedValue:
    """What a module holds: a graph, or a tensor that the function keeps as a constant."""
    held: object = module
    for part in name.split("."):
        held = getattr(held, part)
    if isinstance(held, torch.Tensor):
        return reader.value(held)
    return held
