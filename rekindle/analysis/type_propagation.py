"""What is known of every tensor in a graph, given what is known of its inputs: dtype, device, rank, sizes, and whether
it requires a gradient.

.. code-block:: text

    graph(%x : Tensor, %w : Tensor):              %x : Float(*, 4, requires_grad=0, device=cpu)
      %y : Tensor = aten::matmul(%x, %w)          %w : Float(4, 8, requires_grad=1, device=cpu)
      %z : Tensor = aten::relu(%y)                %y, %z : Float(*, *, device=cpu)
      return (%z)

Operators are asked themselves (:mod:`rekindle.analysis.meta_runs`). Branches join, loops run until nothing changes.
What is told holds whenever the value is there, as long as no autocast is on: of a value that something resizes, or that
unknown code may reach, only what cannot change is told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import torch

from rekindle.analysis.alias_db import AliasDb, Memory
from rekindle.analysis.data_independence import ignores_data
from rekindle.analysis.effects import FRESH, GUARDS, RUNS_NOW, has_side_effects, is_conservative, sets_modes
from rekindle.analysis.meta_runs import Several, Unknown, run_on_types, without_sizes
from rekindle.ir.attributes import constant_value
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.registry import Operator
from rekindle.ir.scalar_types import number_of
from rekindle.ir.types import (
    NONE,
    TENSOR,
    BoolType,
    FloatType,
    IntType,
    ListType,
    NumberType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    unshaped,
)


def propagate_types(
    graph: Graph,
    input_types: Sequence[Type | None],
    *,
    grad_enabled: bool | None = None,
    quickly: bool = False,
    every_branch: bool = False,
) -> dict[Value, Type]:
    """The types of all values of ``graph``, blocks and subgraphs that run in place included.

    ``input_types`` are those of its inputs, None where no more is known than the graph says. ``grad_enabled`` says
    whether gradients are recorded when the graph runs; None where that is not known. ``quickly`` leaves out what would
    have PyTorch load its formulas for tensors without data, which takes seconds, once in a process. With
    ``every_branch`` types hold for branches too that are known not to be taken: such can be written into the graph.

    Raises:
        ValueError: there are not as many types as inputs.
    """
    if len(input_types) != len(graph.inputs):
        raise ValueError(f"the graph takes {len(graph.inputs)} inputs, got {len(input_types)} types")
    return _Propagation(graph, grad_enabled, quickly, every_branch).run(input_types)


def decided_branches(
    graph: Graph, input_types: Sequence[Type | None], *, quickly: bool = False
) -> list[tuple[Node, bool]]:
    """The nodes ``prim::If`` of which it follows from types which branch they take, with whether it is the first. Their
    conditions are not constants yet."""
    propagation = _Propagation(graph, None, quickly, every_branch=False)
    propagation.run(input_types)
    found = []
    for node in graph.find_nodes("prim::If"):
        condition = propagation.fact(node.inputs[0])
        if isinstance(condition, _Constant) and node.inputs[0].node.kind != "prim::Constant":
            found.append((node, bool(condition.value)))
    return found


def refine_types(graph: Graph, types: Mapping[Value, Type]) -> bool:
    """Write what :func:`propagate_types` found of tensors, and of those in tuples, into the graph; returns whether
    anything changed."""
    changed = False
    for value, found in types.items():
        type = _of_parts(value) if value.node.kind == "prim::TupleConstruct" else _refined(value.type, found)
        is_told = isinstance(value.type, (TensorType, TupleType)) and type != value.type
        if value.graph is graph and is_told and _both_give(value, type):
            value.set_type(type)
            changed = True
    return changed


def _of_parts(value: Value) -> Type:
    """The type of a tuple that is made here, by what has been written of its elements."""
    assert isinstance(value.type, TupleType)
    parts = zip(value.type.elements, value.node.inputs, strict=True)
    return value.type.with_contained(
        [part.type if isinstance(part.type, (TensorType, TupleType)) else declared for declared, part in parts]
    )


def _refined(declared: Type, found: Type) -> Type:
    """``declared`` with what was found of tensors. That an optional one is there, or is not, is left to its value: a
    tuple is of the types of what it is made of."""
    if isinstance(declared, TensorType) and isinstance(found, TensorType):
        return found
    if isinstance(declared, TupleType) and isinstance(found, TupleType):
        parts = zip(declared.elements, found.elements, strict=True)
        return declared.with_contained([_refined(mine, theirs) for mine, theirs in parts])
    return declared


def _both_give(value: Value, type: Type) -> bool:
    """Whether a result of branches is of ``type`` whichever runs: what is known may be true of the one alone that
    ever does."""
    node = value.node
    return node.kind != "prim::If" or all(block.outputs[value.offset].type.is_subtype_of(type) for block in node.blocks)


# Facts about a value while the analysis runs: a TensorType, a known Python value in a Constant, a list of facts for a
# list that nobody writes to or a tuple, None where nothing is known.


class _Constant:
    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        same_type = isinstance(other, _Constant) and type(other.value) is type(self.value)
        return same_type and other.value == self.value  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(repr(self.value))


class _Every:
    """A list of which the length is not known, but something of every item."""

    __slots__ = ("item",)

    def __init__(self, item: _Fact) -> None:
        self.item = item

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Every) and self.item == other.item

    def __hash__(self) -> int:
        return hash(self.item)


_Fact = TensorType | _Constant | _Every | tuple[Any, ...] | None

_RESHAPING: Final = frozenset(
    {
        *("aten::resize_", "aten::resize_as_", "aten::set_", "aten::set_data", "aten::t_", "aten::transpose_"),
        *("aten::swapaxes_", "aten::swapdims_", "aten::squeeze_", "aten::unsqueeze_", "aten::as_strided_"),
        *(
            "aten::_resize_output_",
            "aten::sparse_resize_",
            "aten::sparse_resize_and_clear_",
            "aten::copy_sparse_to_sparse_",
        ),
    }
)
"""Kinds that change the sizes of what they write to."""


def may_reshape(node: Node) -> bool:
    """Whether ``node``, an operator that is known, may change the sizes of a tensor that it writes to."""
    schema = node.schema
    return node.kind in _RESHAPING or (schema is not None and any(argument.is_out for argument in schema.arguments))


_PASSES_ON: Final = frozenset(
    {"prim::unchecked_unwrap_optional", "aten::_unwrap_optional", "prim::unchecked_cast", "prim::profile"}
)
"""Kinds whose result is their first input."""

_VIEWS_ONLY: Final = frozenset({"prim::ConstantChunk"})
"""Kinds of which the alias analysis has rules of its own, and that only give views of their input."""

_MISTAKEN: Final = frozenset({"aten::native_batch_norm", "aten::_batch_norm_impl_index"})
"""Kinds that run on tensors without data give other sizes for than on real ones."""

_KNOWN: dict[object, Any] = {}
_MOST_KNOWN: Final = 4096
"""How many answers of operators are kept."""


class SteadyFacts:
    """What of the type of a tensor stays as it is while the graph runs: neither the sizes of what is resized, nor
    whether what is written to requires a gradient. Strides and the like are left out."""

    def __init__(self, graph: Graph) -> None:
        self.aliases = AliasDb(graph)
        self._reshaped = self._find_reshaped(graph)

    def of(self, value: Value, type: TensorType) -> TensorType:
        """What stays true of ``value``, if ``type`` is true of it when it is made."""
        if self.aliases.memory(value) & self._reshaped:
            return TENSOR
        writable = type.requires_grad is not None and self.aliases.has_writers(value)
        return replace(type, strides=None, undefined=None, requires_grad=None if writable else type.requires_grad)

    def _find_reshaped(self, graph: Graph) -> Memory:
        """The memory of tensors whose sizes may change once they are there."""
        found = 0
        for node in graph.all_nodes():
            is_unknown = node.kind != "aten::set_grad_enabled" and self.aliases.has_untracked_effects(node)
            if is_unknown or may_reshape(node):
                found |= self.aliases.writes_to(node)
        return found


class _Propagation:
    def __init__(self, graph: Graph, grad_enabled: bool | None, quickly: bool, every_branch: bool) -> None:
        self.graph = graph
        self.quickly = quickly
        self.every_branch = every_branch
        self.steady = SteadyFacts(graph)
        modes = [node for node in graph.all_nodes() if sets_modes(node)]
        self.grad_enabled = None if modes else grad_enabled
        self.is_steady = all(node.kind == "aten::set_grad_enabled" for node in modes)
        """Whether nothing turns on autocast, or may."""
        self.facts: dict[Value, _Fact] = {}

    def run(self, input_types: Sequence[Type | None]) -> dict[Value, Type]:
        for value, type in zip(self.graph.inputs, input_types, strict=True):
            self.set(value, _fact_of(type))
        self.block(self.graph.block)
        return {value: _type_of(value.type, fact) for value, fact in self.facts.items()}

    # ------------------------------------------------------------------------------------------------------------ facts

    def set(self, value: Value, fact: _Fact) -> None:
        """Note what is known of ``value``, less what may change under its hands."""
        if isinstance(fact, TensorType):
            fact = self.steady.of(value, fact)
        elif fact is not None and isinstance(value.type, ListType) and self.steady.aliases.has_writers(value):
            fact = None
        self.facts[value] = fact

    def fact(self, value: Value) -> _Fact:
        return self.facts.get(value)

    # ----------------------------------------------------------------------------------------------------------- visits

    def block(self, block: Block) -> list[_Fact]:
        for node in block.nodes:
            self.node(node)
        return [self.fact(value) for value in block.outputs]

    def node(self, node: Node) -> None:
        kind = node.kind
        if kind == "prim::If":
            self.visit_if(node)
        elif kind == "prim::Loop":
            self.visit_loop(node)
        elif kind in RUNS_NOW and isinstance(node.attributes.get("Subgraph"), Graph):
            subgraph = node.get_graph("Subgraph")
            for parameter, value in zip(subgraph.inputs, node.inputs, strict=True):
                self.set(parameter, self.fact(value))
            self.set_outputs(node, self.block(subgraph.block))
        else:
            for block in node.blocks:
                self.forget(block)
            self.set_outputs(node, self.results(node))

    def set_outputs(self, node: Node, facts: Sequence[_Fact]) -> None:
        for index, output in enumerate(node.outputs):
            self.set(output, facts[index] if len(facts) == len(node.outputs) else None)

    def forget(self, block: Block) -> None:
        """Of a block that runs nobody knows when, nothing is known but what each operator tells."""
        for value in block.inputs:
            self.set(value, None)
        self.block(block)

    def visit_if(self, node: Node) -> None:
        condition = self.fact(node.inputs[0])
        if isinstance(condition, _Constant) and not self.every_branch:
            results = [self.block(block) for block in node.blocks]
            self.set_outputs(node, results[0 if condition.value else 1])
            return
        then, otherwise = (self.block(block) for block in node.blocks)
        self.set_outputs(node, [_join(a, b) for a, b in zip(then, otherwise, strict=True)])

    def visit_loop(self, node: Node) -> None:
        body = node.blocks[0]
        if len(node.inputs) != len(node.outputs) + 2:
            self.forget(body)
            self.set_outputs(node, [])
            return
        carried = [self.fact(value) for value in node.inputs[2:]]
        for turn in range(_MOST_TURNS + 1):
            self.set(body.inputs[0], None)
            for parameter, fact in zip(body.inputs[1:], carried, strict=True):
                self.set(parameter, fact)
            results = self.block(body)[1:]
            joined = [_join(a, b) for a, b in zip(carried, results, strict=True)]
            if joined == carried:
                break
            carried = joined if turn + 1 < _MOST_TURNS else [None] * len(joined)
        self.set_outputs(node, carried)

    # -------------------------------------------------------------------------------------------------------- operators

    def results(self, node: Node) -> Sequence[_Fact]:
        kind = node.kind
        if kind == "prim::Constant":
            return [_constant(node)]
        inputs = [self.fact(value) for value in node.inputs]
        if kind in ("prim::TupleConstruct", "prim::ListConstruct"):
            return [tuple(inputs)]
        if kind in ("prim::TupleUnpack", "prim::ListUnpack"):
            count = len(node.outputs)
            items = [inputs[0].item] * count if isinstance(inputs[0], _Every) else _items(inputs[0])
            known = items if len(items) == count else [None] * count
            return [_told(output) or item for output, item in zip(node.outputs, known, strict=True)]
        if kind in ("prim::TupleIndex", "aten::__getitem__"):
            return [_told(node.output) or _item(inputs[0], inputs[1])]
        if kind in _PASSES_ON:
            return [_told(node.output) or inputs[0]]
        if kind in GUARDS:
            return [_Constant(None) if node.output.type == NONE else node.output.type]  # type: ignore[list-item]
        operator = node.operator
        if operator is None or kind in FRESH or node.blocks or has_side_effects(node):
            return []
        if is_conservative(node) and kind not in _VIEWS_ONLY:
            return []
        return self.ask(node, operator, inputs)

    def ask(self, node: Node, operator: Operator, inputs: list[_Fact]) -> Sequence[_Fact]:
        """Have the operator run on what is known of its inputs."""
        arguments = [_argument(value.type, fact) for value, fact in zip(node.inputs, inputs, strict=True)]
        if any(argument is _NOTHING for argument in arguments) or not self.is_worth_asking(node, arguments):
            return []
        if _lacks_name(operator, arguments):
            return []
        defaults = torch.get_default_dtype(), torch.get_default_device()
        key = (
            operator,
            self.quickly,
            defaults,
            tuple(output.type for output in node.outputs),
            _freeze(node.attributes),
            _freeze(arguments),
        )
        found = _KNOWN.get(key, _NOTHING)
        if found is _NOTHING:
            if len(_KNOWN) >= _MOST_KNOWN:
                _KNOWN.clear()
            found = _KNOWN[key] = _run(node, operator, arguments, self.quickly)
        if found is None:
            return []
        results = [found] if len(node.outputs) == 1 else found
        if not isinstance(results, list):
            return []
        unsure = any(isinstance(leaf, TensorType) and leaf.requires_grad is None for leaf in _flat(arguments))
        return [self.adjust(result, unsure) for result in results]

    def is_worth_asking(self, node: Node, arguments: list[Any]) -> bool:
        """Whether the operator computes something of what is known, that no mode changes."""
        if all(_is_simple(output.type) for output in node.outputs):
            return node.operator is not None and not node.operator.is_nondeterministic
        return self.is_steady and all(_may_be_told(output.type) for output in node.outputs)

    def adjust(self, result: Any, unsure: bool) -> _Fact:
        """``result`` of an operator, less what depends on the recording of gradients, or on whether an argument has
        one."""
        if isinstance(result, TensorType):
            if not result.requires_grad or (self.grad_enabled and not unsure):
                return result
            return replace(result, requires_grad=False if self.grad_enabled is False else None)
        if isinstance(result, Several):
            return _Every(self.adjust(result[0], unsure)) if result else None
        if isinstance(result, list):
            return tuple(self.adjust(part, unsure) for part in result)
        return result if isinstance(result, (_Constant, tuple)) else None


_NAMES: Final = frozenset({"ScalarType", "Layout", "MemoryFormat"})
"""Types whose values are numbers here, of which few mean something: PyTorch may crash on another."""


def _lacks_name(operator: Operator, arguments: Sequence[Any]) -> bool:
    """Whether a dtype, a layout or a memory format is not known."""
    return any(
        isinstance(value, Unknown) and (argument.spelling or "").rstrip("?") in _NAMES
        for value, argument in zip(arguments, operator.schema.arguments, strict=False)
    )


_MOST_TURNS: Final = 6
"""How often the body of a loop is gone over before all that it carries is given up."""

_NOTHING: Final = object()


_CHOICES: Final = ("ScalarType", "Layout", "MemoryFormat")
"""What schemas call ints that stand for one of a few things. PyTorch may crash where one stands for nothing."""


def _has_unknown_choice(operator: Operator, arguments: Sequence[Any]) -> bool:
    declared = operator.schema.arguments
    return any(
        isinstance(value, Unknown) and (argument.spelling or "").rstrip("?") in _CHOICES
        for argument, value in zip(declared, arguments, strict=False)
    )


def _run(node: Node, operator: Operator, arguments: list[Any], quickly: bool) -> Any:
    """What comes out: types of tensors, or a constant where no tensor is involved."""
    operation = operator.operation_of(node)
    simple = all(_is_simple(output.type) for output in node.outputs)
    if not simple:
        if _has_unknown_choice(operator, arguments):
            return None
        found = run_on_types(operation, arguments, on_data=ignores_data(operator), only_on_data=quickly)
        return without_sizes(found) if node.kind in _MISTAKEN else found
    if len(node.outputs) != 1:
        return None
    return _compute(node, operation, arguments)


def _compute(node: Node, operation: Any, arguments: list[Any]) -> _Fact:
    """The result of an operator on numbers, and on the sizes and properties of tensors."""
    tensors = [argument for argument in arguments if isinstance(argument, TensorType)]
    if len(tensors) == 1 and len(arguments) <= 2 and tensors[0] is arguments[0]:
        return _property(node.kind, tensors[0], arguments[1:])
    if tensors or any(isinstance(leaf, (Unknown, TensorType)) for leaf in _flat(arguments)):
        return None
    if any(isinstance(leaf, (str, int)) and _is_large(leaf) for leaf in _flat(arguments)):
        return None
    try:
        result = operation(*arguments)
    except Exception:
        return None
    return _Constant(result) if _is_plain(result) else None


def _property(kind: str, tensor: TensorType, rest: list[Any]) -> _Fact:
    """What an operator tells of a tensor, without its data."""
    sizes = tensor.sizes
    if kind == "prim::dtype" and tensor.dtype is not None:
        return _Constant(number_of(tensor.dtype))
    if kind == "aten::dim" and sizes is not None:
        return _Constant(len(sizes))
    if kind in ("aten::size", "aten::len") and sizes is not None:
        lengths = tuple(None if size is None else _Constant(size) for size in sizes)
        if kind == "aten::size" and not rest:
            return lengths
        index = rest[0] if rest else 0
        return lengths[index] if isinstance(index, int) and -len(lengths) <= index < len(lengths) else None
    if kind == "aten::numel" and sizes is not None and None not in sizes:
        return _Constant(math.prod(size or 0 for size in sizes))
    return None


def _is_large(leaf: int | str) -> bool:
    return len(leaf) > 1000 if isinstance(leaf, str) else abs(leaf) > 1 << 40


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(_is_plain(part) for part in value)
    return value is None or (isinstance(value, (bool, int, float, str)) and not _is_large_result(value))


def _is_large_result(value: Any) -> bool:
    return isinstance(value, (int, str)) and _is_large(value)


# ---------------------------------------------------------------------------------------------------- facts and types


def _fact_of(type: Type | None) -> _Fact:
    if isinstance(type, TensorType):
        return type
    if isinstance(type, TupleType):
        return tuple(_fact_of(part) for part in type.elements)
    return None


def _type_of(declared: Type, fact: _Fact) -> Type:
    """The type that a value has by what is known; a subtype of the declared one without its refinements."""
    if isinstance(fact, TensorType) and isinstance(declared, (TensorType, OptionalType)):
        return fact
    if isinstance(fact, tuple) and isinstance(declared, TupleType) and len(fact) == len(declared.elements):
        return declared.with_contained([_type_of(t, f) for t, f in zip(declared.elements, fact, strict=True)])
    if isinstance(fact, _Constant) and fact.value is None and NONE.is_subtype_of(declared):
        return NONE  # otherwise it stands where nobody comes
    return unshaped(declared)


def _constant(node: Node) -> _Fact:
    value = node.attributes.get("value")
    try:
        found = constant_value(value, node.output.type)
    except Exception:
        return None  # its value is not in the text
    return _fact_of_value(found)


def _fact_of_value(value: Any) -> _Fact:
    if isinstance(value, torch.Tensor):
        return replace(TensorType.of(value), strides=None)
    if isinstance(value, (list, tuple)):
        return tuple(_fact_of_value(part) for part in value)
    if value is None or isinstance(value, (bool, int, float, complex, str, torch.device)):
        return _Constant(value)
    return None


def _join(a: _Fact, b: _Fact) -> _Fact:
    """What is true of both."""
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return a.merge(b)
    if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
        return tuple(_join(x, y) for x, y in zip(a, b, strict=True))
    return a if isinstance(a, (_Constant, _Every)) and a == b else None


def _told(value: Value) -> _Fact:
    """What the graph itself says of a tensor."""
    return value.type if isinstance(value.type, TensorType) and value.type.is_refined else None


def _items(fact: _Fact) -> Sequence[_Fact]:
    if isinstance(fact, _Constant) and isinstance(fact.value, (list, tuple)):
        return [_Constant(part) for part in fact.value]
    return fact if isinstance(fact, tuple) else []


def _item(fact: _Fact, index: _Fact) -> _Fact:
    if isinstance(fact, _Every):
        return fact.item
    items = _items(fact)
    number = index.value if isinstance(index, _Constant) else None
    return items[number] if isinstance(number, int) and -len(items) <= number < len(items) else None


def _argument(type: Type, fact: _Fact) -> Any:
    """What to give an operator for a value: itself, the type of a tensor, or what stands for something unknown."""
    if isinstance(fact, _Constant):
        return fact.value
    if isinstance(fact, TensorType):
        is_told = fact.dtype is not None and fact.device is not None and fact.sizes is not None
        return fact if is_told else _NOTHING
    if isinstance(fact, tuple):
        parts = type.contained if isinstance(type, TupleType) else type.contained * len(fact)
        if len(parts) != len(fact):
            return _NOTHING
        arguments = [_argument(part, inner) for part, inner in zip(parts, fact, strict=True)]
        if any(argument is _NOTHING for argument in arguments):
            return _NOTHING
        return arguments if isinstance(type, ListType) else tuple(arguments)
    kinds = {IntType: "int", FloatType: "float", BoolType: "bool", NumberType: "number"}
    kind = next((kind for python, kind in kinds.items() if isinstance(type, python)), None)
    # An int, a float and a complex promote differently.
    return _NOTHING if kind in (None, "number") else Unknown(str(kind))


def _is_simple(type: Type) -> bool:
    """Whether a value of this type is a number, a string, None, or a list or tuple of such."""
    if isinstance(type, (ListType, TupleType)):
        return all(map(_is_simple, type.contained))
    return isinstance(type, (IntType, FloatType, BoolType, NumberType)) or type.kind == "StringType"


def _may_be_told(type: Type) -> bool:
    if isinstance(type, ListType):
        return isinstance(type.element, TensorType)
    return isinstance(type, TensorType) or (isinstance(type, OptionalType) and isinstance(type.element, TensorType))


def _flat(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in _flat(part)] if isinstance(value, (list, tuple)) else [value]


def _freeze(value: Any) -> Any:
    """Something to look up by, that tells 1, 1.0 and True apart."""
    if isinstance(value, (list, tuple)):
        return type(value), *map(_freeze, value)
    if isinstance(value, dict):
        return tuple((name, _freeze(part)) for name, part in value.items())
    return type(value), value if isinstance(value, (int, float, str, TensorType, Unknown)) else repr(value)
