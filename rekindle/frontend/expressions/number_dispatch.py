"""Run-time dispatch of builtins on the type of a number: ``divmod(x.item(), 2)``.

The type of such a number is known only at run time, and few operators take a Scalar. If the overload depends on the
type, the call is emitted once for each type that the number may have::

    divmod(n, 2)        %is_int : bool = prim::isinstance[types=[int]](%n)
                        %r : Tuple[Union[float, int], …] = prim::If(%is_int)
                          block0():
                            %a : int = prim::unchecked_cast(%n)
                            …  aten::divmod(int, int)
                          block1():
                            %b : float = …
                            …  aten::divmod(float, int)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rekindle.errors import SourceRange
from rekindle.ir.graph import AttributeValue, Graph, Value
from rekindle.ir.operators.named_value import NamedValue
from rekindle.ir.operators.none_checking import can_check
from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.operators.schema_matching import SchemaMismatch, try_match_schema
from rekindle.ir.types import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NUMBER,
    TENSOR,
    DictType,
    ListType,
    TensorType,
    Type,
    UnionType,
    is_open_number,
    join_any,
    may_be_bool,
    number_beside_tensor,
    number_members,
    unshaped,
)


@dataclass(slots=True, frozen=True)
class Arguments:
    """The arguments of a call of a builtin."""

    args: tuple[NamedValue, ...]
    kwargs: tuple[NamedValue, ...]
    self_value: NamedValue | None

    @property
    def all(self) -> tuple[NamedValue, ...]:
        return (*(() if self.self_value is None else (self.self_value,)), *self.args, *self.kwargs)

    def with_replaced(self, before: NamedValue, after: NamedValue) -> Arguments:
        """Return the arguments with one replaced by another."""

        def put(item: NamedValue) -> NamedValue:
            return after if item is before else item

        return Arguments(
            tuple(map(put, self.args)),
            tuple(map(put, self.kwargs)),
            None if self.self_value is None else put(self.self_value),
        )


class _NumberAs(NamedValue):
    """A number whose type is known only at run time, treated as one of its possible types."""

    __slots__ = ("assumed", "is_checked", "keeps_bool")

    def __init__(self, given: NamedValue, assumed: Type, is_checked: bool, keeps_bool: bool = False) -> None:
        super().__init__(given.value, given.constant, given.range, given.name)
        self.keeps_bool = keeps_bool
        self.assumed = assumed
        self.is_checked = is_checked

    @property
    def type(self) -> Type:
        return self.assumed

    def materialize(self, graph: Graph) -> Value:
        """Emit the number converted to the assumed type, separately in each branch that uses it."""
        value = self.value
        assert value is not None
        if value.type == self.assumed:
            return value
        if self.is_checked and graph.none_checks is not None:
            return graph.none_checks.number_as(value, self.assumed, self.range)
        is_converted = self.assumed == INT and may_be_bool(value.type) and not self.keeps_bool
        if is_converted and isinstance(value.type, UnionType):
            value = self._cast(graph, "prim::unchecked_cast", value, NUMBER)
        return self._cast(graph, "aten::Int" if is_converted else "prim::unchecked_cast", value, self.assumed)

    def _cast(self, graph: Graph, kind: str, value: Value, type: Type) -> Value:
        return graph.insert_node(graph.create(kind, [value], types=[type], range=self.range)).output


Emit = Callable[[Arguments], Value]


def dispatch_on_number(
    schemas: Sequence[FunctionSchema], range: SourceRange, graph: Graph, arguments: Arguments, emit: Emit
) -> Value | None:
    """Emit a call with one branch for each type that a number among the arguments may have, and return its result.
    ``emit`` emits the call in a branch, in which the number has one of these types. If all types lead to one overload,
    there is no branch.

    Return None, without emitting anything, if no argument is such a number, an overload accepts it as it is or none
    accepts it with any type, or the program is not one from Python.
    """
    if graph.none_checks is None:
        return None
    mixed = next((item for item in arguments.all if _holds_tensors_and_numbers(item)), None)
    if mixed is not None and _resolve(schemas, arguments, (False, True)) is None:
        assert mixed.value is not None
        tensors = graph.none_checks.tensors_in(mixed.value, range)
        return emit(arguments.with_replaced(mixed, NamedValue(tensors, range=mixed.range, name=mixed.name)))
    either = next((item for item in arguments.all if number_beside_tensor(item.type) is not None), None)
    if either is not None:
        return _dispatch_on_tensor(schemas, range, graph, arguments, either, emit)
    number = next((item for item in arguments.all if item.value is not None and is_open_number(item.type)), None)
    if number is None or any(item.value is not None and can_check(item.value) for item in arguments.all):
        return None
    if _resolve(schemas, arguments, (False,)) is not None:
        return None
    if isinstance(number.type, UnionType) and may_be_bool(number.type):
        as_scalar = arguments.with_replaced(number, _NumberAs(number, NUMBER, False))
        if _resolve(schemas, as_scalar, (False,)) is not None:
            return emit(as_scalar)  # the operator takes any number, and a bool as Python does
    if any(map(_holds_open_numbers, arguments.all)) and _resolve(schemas, arguments, (True,)) is not None:
        return None  # the element of a list that is to hold it as it is
    fits = {
        type: _resolve(schemas, arguments.with_replaced(number, _NumberAs(number, type, False)), (False, True))
        for type in _possible_types(number.type)
    }
    if NUMBER in (number_members(number.type) or ()):
        own = _resolve(schemas, arguments.with_replaced(number, _NumberAs(number, BOOL, False)), (False,))
        if own is not None and own != fits[INT]:
            fits = {BOOL: own, **fits}
    types = [type for type, overload in fits.items() if overload is not None]
    if not types:
        return None
    if len({fits[type] for type in types}) == 1:
        return emit(arguments.with_replaced(number, _NumberAs(number, types[-1], True)))
    # A Tensor is promoted by the type that the number really has; an operator of numbers takes True as 1.
    keeps_bool = any(isinstance(item.type, TensorType) for item in arguments.all)

    for item in arguments.all:
        if item.value is None:
            item.materialize(graph)  # once, for all branches

    def emit_with(taken: NamedValue) -> Value:
        return emit(arguments.with_replaced(number, taken))

    return _emit_branches(types, number, keeps_bool, range, graph, emit_with)


def _dispatch_on_tensor(
    schemas: Sequence[FunctionSchema],
    range: SourceRange,
    graph: Graph,
    arguments: Arguments,
    either: NamedValue,
    emit: Emit,
) -> Value | None:
    """Emit the call for a Tensor and for a number, if both can be passed for ``either``. If only one fits beside an
    argument that is dispatched already, emit a check that it is that one. Else return None."""
    number = number_beside_tensor(either.type)
    assert number is not None
    if _resolve(schemas, arguments, (False,)) is not None:
        return None

    def fits(type: Type) -> bool:
        taken = arguments.with_replaced(either, _NumberAs(either, type, False))
        for other in taken.all:
            if number_beside_tensor(other.type) is not None:
                taken = taken.with_replaced(other, _NumberAs(other, type, False))
        return _resolve(schemas, taken, (False, True)) is not None

    takes_tensor, takes_number = fits(TENSOR), any(map(fits, _possible_types(number)))
    if takes_tensor != takes_number and any(isinstance(item, _NumberAs) for item in arguments.all):
        return emit(arguments.with_replaced(either, _checked(either, takes_number, range, graph)))
    if not takes_tensor or not takes_number:
        return None
    for item in arguments.all:
        if item.value is None:
            item.materialize(graph)

    def emit_with(taken: NamedValue) -> Value:
        return emit(arguments.with_replaced(either, taken))

    return emit_for_tensor_and_number(either, range, graph, emit_with)


def emit_for_tensor_and_number(
    either: NamedValue, range: SourceRange, graph: Graph, emit: Callable[[NamedValue], Value]
) -> Value:
    """Emit an operation on an argument that is a Tensor or a number: an ``if`` on its type, with ``emit`` called for
    each. Return the result."""
    number = number_beside_tensor(either.type)
    assert number is not None
    return _emit_branches((TENSOR, number), either, True, range, graph, emit)


def _checked(either: NamedValue, is_number_wanted: bool, range: SourceRange, graph: Graph) -> NamedValue:
    """Emit a check that an argument, a Tensor or a number, is the one that fits the other arguments, and return the
    argument as that type. The program raises TypeError otherwise."""
    assert graph.none_checks is not None
    assert either.value is not None
    message = f"expected {'a number' if is_number_wanted else 'a Tensor'} beside the other arguments, got NoneType"
    found = graph.none_checks.check(
        either.value, range, "builtins.TypeError", message, is_number_wanted=is_number_wanted
    )
    return NamedValue(found, range=either.range, name=either.name)


def _holds_tensors_and_numbers(item: NamedValue) -> bool:
    is_list = item.value is not None and isinstance(item.type, ListType)
    return is_list and number_beside_tensor(item.type.contained[0]) is not None


def _holds_open_numbers(item: NamedValue) -> bool:
    type = item.type
    return isinstance(type, (ListType, DictType)) and is_open_number(type.contained[-1])


def _possible_types(type: Type) -> list[Type]:
    """Return the types that a number of ``type`` may have, in the order in which they are tested. A bool is tested
    before int, since True is an int too; for a Scalar, bool is left out."""
    members = number_members(type)
    assert members is not None
    return [INT, FLOAT, COMPLEX] if NUMBER in members else [part for part in (BOOL, INT, FLOAT) if part in members]


def _resolve(schemas: Sequence[FunctionSchema], arguments: Arguments, rounds: Sequence[bool]) -> int | None:
    """Return the index of the first overload that accepts the arguments; None if there is none. ``rounds`` has one
    entry for each attempt: whether conversions are allowed in it."""
    for conversions in rounds:
        for index, schema in enumerate(schemas):
            with contextlib.suppress(SchemaMismatch):
                try_match_schema(
                    schema, arguments.args, arguments.kwargs, arguments.self_value, conversions=conversions
                )
                return index
    return None


def _emit_branches(
    types: Sequence[Type],
    number: NamedValue,
    keeps_bool: bool,
    range: SourceRange,
    graph: Graph,
    emit: Callable[[NamedValue], Value],
) -> Value:
    """Emit the call as an ``if``: for the first of ``types`` if the number has it, else for the remaining types."""
    first, *others = types
    if not others:
        taken = _NumberAs(number, first, True)
        if not is_open_number(first):
            return emit(taken)
        return emit(NamedValue(taken.materialize(graph), range=taken.range, name=taken.name))  # it may be split again
    assert number.value is not None
    attributes: dict[str, AttributeValue] = {"types": [first]}
    test = graph.create("prim::isinstance", [number.value], types=[BOOL], attributes=attributes, range=range)
    node = graph.insert_node(graph.create("prim::If", [graph.insert_node(test).output], outputs=0, range=range))
    for is_first in (True, False):
        block = node.add_block()
        with graph.inserting_at_end(block):
            taken = _NumberAs(number, first, False, keeps_bool)
            result = emit(taken) if is_first else _emit_branches(others, number, keeps_bool, range, graph, emit)
            block.add_output(result)
    one, other = (block.outputs[0].type for block in node.blocks)
    return node.add_output(join_any(unshaped(one), unshaped(other)))
