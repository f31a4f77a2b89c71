"""A module as a function of its parameters.

.. code-block:: text

    graph(%self : __torch__.Net, %x : Tensor):            graph(%parameters : Dict(str, Tensor), %x : Tensor):
      %w : Tensor = prim::GetAttr[name="weight"](%self)      %name : str = prim::Constant[value="weight"]()
      %y : Tensor = aten::mm(%x, %w)             becomes     %w : Tensor = aten::__getitem__(%parameters, %name)
      return (%y)                                            %y : Tensor = aten::mm(%x, %w)
                                                             return (%y)

Buffers and other attributes are constants, as they are now.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from rekindle.errors import DifferentiationError, GraphError
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.schema import Argument
from rekindle.ir.types import STRING, TENSOR, DictType, ListType, Type
from rekindle.passes import DeadCodeElimination, run_passes
from rekindle.passes.canonicalization.lower_graph import lower_graph
from rekindle.program.modules.module import ScriptModule
from rekindle.transforms.derivatives.pytrees import Pytree, entries
from rekindle.transforms.indexing import inline_with_plain_indices


def function_of(module: ScriptModule, buffers: Sequence[str] = ()) -> tuple[str, Graph, tuple[Argument, ...], Pytree]:
    """Return ``forward`` of ``module`` as a function: its name, its graph with calls inlined, its parameters, and the
    entries of the first parameter. That is a dict of the parameters of ``module``, and of the named ``buffers``, by
    name.

    Raises:
        DifferentiationError: ``forward`` does more with the module than reading its attributes, or an attribute cannot
            be a constant.
    """
    method = module.forward
    graph = method._record.graph.copy()
    inline_with_plain_indices(graph)
    run_passes(graph, (DeadCodeElimination(),))
    paths = lower_graph(graph)
    if paths is None:
        raise DifferentiationError(
            f"'{module.original_name}' writes to its attributes, or passes itself on, so that it is not a function "
            "of its parameters",
            hint="differentiate in eval mode; freeze the module, or compute what changes outside of forward",
        )
    by_id = {id(parameter): name for name, parameter in module.named_parameters()}
    by_id |= {id(buffer): name for name, buffer in module.named_buffers() if name in buffers}
    names = list(by_id.values())
    first = graph.block.insert_input(0, "parameters", DictType(STRING, TENSOR))
    with graph.inserting_before(graph.return_node.next):
        tree = entries(graph, first, names)
        assert isinstance(tree, dict)
        parameters = {key: _leaf(tree, name) for key, name in by_id.items()}
        for value, path in zip(list(graph.inputs)[len(graph.inputs) - len(paths) :], paths, strict=True):
            found = _attribute(module, path)
            value.replace_all_uses_with(_standing_for(graph, found, value.type, path, parameters))
    for _ in paths:
        graph.block.erase_input(len(graph.inputs) - 1)
    arguments = (Argument("parameters", DictType(STRING, TENSOR)), *method.schema.arguments[1:])
    return module.script_type.name, graph, arguments, tree


def _leaf(tree: dict[str, Pytree], name: str) -> Value:
    found = tree[name]
    assert isinstance(found, Value)
    return found


def _attribute(module: Any, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name)
    return module


def _standing_for(graph: Graph, found: Any, type: Type, path: str, parameters: dict[int, Value]) -> Value:
    """Return the value that replaces the read of an attribute: inputs for parameters, also those in lists, and
    constants for all others.

    Raises:
        DifferentiationError: the attribute cannot be a constant.
    """
    if id(found) in parameters:
        return parameters[id(found)]
    if isinstance(type, ListType) and any(id(item) in parameters for item in found):
        items = [_standing_for(graph, item, type.element, path, parameters) for item in found]
        return graph.insert_node(graph.create("prim::ListConstruct", items, types=[type])).output
    if isinstance(found, torch.Tensor):
        found = found.detach()
    try:
        return graph.insert_constant(found, type)
    except GraphError as error:
        raise DifferentiationError(
            f"the attribute '{path}' of type {type} cannot be a constant of the derivative",
            hint="pass it as an argument of forward",
        ) from error
