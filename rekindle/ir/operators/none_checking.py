"""Arguments that may be None where something else is wanted: checked, in programs from Python."""

from __future__ import annotations

from dataclasses import dataclass

from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.named_value import NamedValue
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.types import (
    ListType,
    Type,
    has_free_variables,
    number_beside_tensor,
    number_members,
    present,
    without_none,
)


class _PresentArgument(NamedValue):
    """An Optional argument that is matched as if it were not None: a check is inserted when its value is requested."""

    __slots__ = ("call", "formal", "made")

    def __init__(self, given: NamedValue, call: NoneCheckingCall, formal: Argument) -> None:
        super().__init__(given.value, given.constant, given.range, given.name)
        self.call = call
        self.formal = formal
        self.made: Value | None = None

    @property
    def type(self) -> Type:
        assert self.value is not None
        number = number_beside_tensor(self.value.type)
        return number if number is not None and takes_number(self.formal) else present(self.value.type)

    def materialize(self, graph: Graph) -> Value:
        if self.made is None:
            call = self.call
            assert self.value is not None
            assert graph.none_checks is not None
            self.made = graph.none_checks.check_argument(
                self.value, self.range, call.name, call.schema, self.formal, call.is_method
            )
        return self.made


def takes_number(formal: Argument) -> bool:
    """Return whether a parameter is declared a number."""
    return number_members(without_none(formal.type)) is not None


class _PresentItems(NamedValue):
    """A list or tuple literal with items that may be None, which is matched as if none were."""

    __slots__ = ("made", "position")

    def __init__(self, given: NamedValue, position: int) -> None:
        super().__init__(given.value, given.constant, given.range, given.name)
        self.position = position
        self.made: Value | None = None

    @property
    def type(self) -> Type:
        assert self.value is not None
        return self.value.type.with_contained([present(part) for part in self.value.type.contained])

    def materialize(self, graph: Graph) -> Value:
        if self.made is None:
            assert self.value is not None
            assert graph.none_checks is not None
            items = list(self.value.node.inputs)
            for index, item in enumerate(items):
                if can_check(item):
                    what = f"expected {present(item.type).annotation} as element {index} in argument"
                    message = f"{what} {self.position}, but got NoneType"
                    items[index] = graph.none_checks.check(item, self.range, "builtins.TypeError", message)
            node = graph.create(self.value.node.kind, items, types=[self.type], range=self.range)
            self.made = graph.insert_node(node).output
        return self.made


@dataclass(slots=True, frozen=True)
class NoneCheckingCall:
    """A call whose Optional arguments may be unwrapped by checks. With ``everywhere`` all of them are, to determine the
    cause of an error."""

    name: str
    schema: FunctionSchema
    is_method: bool
    everywhere: bool = False

    def present(self, formal: Argument, actual: NamedValue) -> NamedValue | None:
        """Return ``actual`` as an unwrapped argument; None if a check does not apply to it, or, unless ``everywhere``,
        Python accepts None there."""
        value = actual.value
        if value is not None and _may_lack_items(value, formal.type):
            return _PresentItems(actual, self.schema.argument_index(formal.name) or 0)
        if value is None or not can_check(value):
            return None
        checks = value.node.graph.none_checks
        assert checks is not None
        takes_none = number_beside_tensor(value.type) is None and checks.takes_none(self.schema, formal)
        if takes_none and not self.everywhere:
            return None
        return _PresentArgument(actual, self, formal)


def _may_lack_items(value: Value, wanted: Type) -> bool:
    """Return whether the value is a literal with items that may be None, where a list without None is expected."""
    wanted = without_none(wanted)
    if not isinstance(wanted, ListType) or has_free_variables(wanted) or wanted.element.is_optional:
        return False
    return has_lacking_items(value)


def has_lacking_items(value: Value) -> bool:
    """Return whether the value is a list or tuple literal with items that may be None."""
    is_literal = value.node.kind in ("prim::ListConstruct", "prim::TupleConstruct")
    return is_literal and any(can_check(item) for item in value.node.inputs)


def can_check(value: Value) -> bool:
    """Return whether the value may be None, and the program has None checks."""
    checks = value.node.graph.none_checks
    return checks is not None and checks.can_check(value)
