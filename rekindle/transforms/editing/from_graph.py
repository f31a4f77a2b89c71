"""Functions, methods and modules made from graphs."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from rekindle.errors import GraphError
from rekindle.frontend.calls.insertion import insert_get_attribute
from rekindle.ir.attributes import infer_type
from rekindle.ir.graph import Graph, Value
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.types import NONE, TENSOR, ClassType, TupleType, Type
from rekindle.ir.types.named import AttributeKind
from rekindle.ir.verifier import verify
from rekindle.program.function import Function, Method
from rekindle.program.modules.module import ScriptModule
from rekindle.program.names import unique_name
from rekindle.program.sources.compilation_unit import CompilationUnit, schema_of_graph
from rekindle.runtime.calls.arguments import describe


def create_function(graph: Graph, name: str = "function") -> Function:
    '''Return a function that runs a copy of ``graph``.

    Args:
        graph: the graph. Its inputs become parameters with their names; several outputs are returned as a tuple.
        name: the name of the function.

    Raises:
        VerificationError: the graph is not valid.
        GraphError: ``name`` is not the name of a function.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> graph = parse_graph("""
        ... graph(%x : Tensor):
        ...   %1 : Tensor = aten::neg(%x)
        ...   return (%1)
        ... """)
        >>> rekindle.create_function(graph, "negated")(torch.ones(2))
        tensor([-1., -1.])
    '''
    return CompilationUnit().create_function(_checked_name(name), _one_result(_copied(graph)))


def create_method(module: ScriptModule, name: str, graph: Graph) -> Method:
    """Add a method that runs a copy of ``graph`` to a compiled module. All modules of the same type have it then.

    Args:
        module: the compiled module.
        name: the name of the method.
        graph: the graph. Its first input is the module.

    Raises:
        VerificationError: the graph is not valid.
        GraphError: its first input is not of the module's type, the module has an attribute of that name, or ``name``
            is not the name of a function.

    Example:
        >>> net = rekindle.script(torch.nn.ReLU())
        >>> graph = net.graph.copy()
        >>> graph.block.replace_output(0, graph.inputs[1])
        >>> rekindle.create_method(net, "identity", graph)(torch.tensor([-1.0]))
        tensor([-1.])
    """
    type = module.script_type
    _checked_name(name)
    taken = graph.self_value.type if graph.inputs else None
    first = taken.basename if isinstance(taken, ClassType) else "nothing" if taken is None else taken.annotation
    if taken is None or not type.is_subtype_of(taken):
        raise GraphError(f"the first input of a method is its module, a {type.basename}, but this graph takes {first}")
    if name in type.methods or name in type.attributes or name in type.constants or name in type.properties:
        raise GraphError(f"the module '{module.original_name}' has a '{name}' already")
    record = GraphFunction(f"{type.name}.{name}")
    made = _one_result(_copied(graph))
    record.define(made, schema_of_graph(name, made))
    type.methods[name] = record
    return Method(module, record)


def create_module(
    graph: Graph, attributes: Mapping[str, object] | None = None, name: str = "GraphModule"
) -> ScriptModule:
    """Return a module whose ``forward`` runs a copy of ``graph``.

    Args:
        graph: the graph.
        attributes: what the module holds for inputs of the graph, by name: a parameter, a tensor, which becomes a
            buffer, a compiled module, or a number, string or list, which becomes an attribute. The other inputs are the
            parameters of ``forward``.
        name: the name of the class.

    Raises:
        VerificationError: the graph is not valid.
        GraphError: an attribute is not an input of the graph, or not of its type, or ``name`` is not an identifier.

    Example:
        >>> graph = rekindle.script(lambda x, w: x @ w).graph
        >>> net = rekindle.create_module(graph, {"w": torch.nn.Parameter(torch.ones(3, 2))})
        >>> net(torch.ones(1, 3))
        tensor([[3., 3.]], grad_fn=...)
    """
    made = _one_result(_copied(graph))
    type = ClassType(unique_name(f"__torch__.{_checked_name(name)}"), is_module=True)
    held = dict(attributes or {})
    inputs = {value.base_name: value for value in made.inputs}
    for key, item in held.items():
        if key not in inputs:
            known = ", ".join(f"'{each}'" for each in inputs if each) or "none with a name"
            raise GraphError(f"the graph has no input '{key}'; there are {known}")
        slot = _type_of(item)
        if slot is None or not slot.is_subtype_of(inputs[key].type):
            raise GraphError(f"input '{key}' takes {inputs[key].type.annotation}, but got {describe(item)}")
        type.add_attribute(key, slot, _kind_of(item))
    _read_from_module(made, type, {key: inputs[key] for key in held})
    module = ScriptModule._of_type(type)
    for key, item in held.items():
        setattr(module, key, item)
        if isinstance(item, torch.nn.Parameter):
            module._parameters[key] = item
    record = GraphFunction(f"{type.name}.forward")
    record.define(made, schema_of_graph("forward", made))
    type.methods["forward"] = record
    return module


def _copied(graph: Graph) -> Graph:
    verify(graph)
    return graph.copy()


def _checked_name(name: str) -> str:
    if not all(part.isidentifier() for part in name.split(".")):
        raise GraphError(f"'{name}' cannot be the name of a function")
    return name


def _one_result(graph: Graph) -> Graph:
    """Replace the outputs of ``graph`` by one: a tuple of several outputs, None for none. Return ``graph``."""
    outputs = list(graph.outputs)
    if len(outputs) == 1:
        return graph
    if outputs:
        type = TupleType(tuple(value.type for value in outputs))
        result = graph.append_node(graph.create("prim::TupleConstruct", outputs, types=[type])).output
    else:
        result = graph.append_node(graph.create("prim::Constant", types=[NONE])).output
    graph.return_node.remove_all_inputs()
    graph.add_output(result)
    return graph


def _read_from_module(graph: Graph, type: ClassType, inputs: Mapping[str, Value]) -> None:
    """Add a module as the first input of ``graph``, and replace ``inputs`` by reads of its attributes."""
    own = graph.block.insert_input(0, "self", type)
    first = next(iter(graph.nodes), graph.return_node)
    with graph.inserting_before(first):
        for key, value in inputs.items():
            read = insert_get_attribute(first.range, graph, own, key, type.attributes[key].type)
            value.replace_all_uses_with(read)
    for value in inputs.values():
        graph.block.erase_input(value.offset)


def _type_of(item: object) -> Type | None:
    if isinstance(item, torch.Tensor):
        return TENSOR
    return item.script_type if isinstance(item, ScriptModule) else infer_type(item)


def _kind_of(item: object) -> AttributeKind:
    if isinstance(item, torch.nn.Parameter):
        return "parameter"
    return "buffer" if isinstance(item, torch.Tensor) else "attribute"
