"""Compile functions again where the type of an attribute turns out to be wider: ``self.sum = 0``, then
``self.sum += 0.5``.

The first value of an attribute does not show what all methods assign to it. Functions record which attributes they use
while they are compiled (:func:`rely_on`), and those that use what they call does. Where an assignment needs a wider
type (:func:`widen_attribute`), the slot gets it, and every such function loses its graph. Those that are being compiled
begin again; the others are compiled when they are next called.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from rekindle.errors import forget_failures
from rekindle.ir.types import ClassType, Type, join_contents, unshaped

if TYPE_CHECKING:
    from rekindle.ir.graph import Value
    from rekindle.ir.records import FunctionRecord


class Redefinition(BaseException):
    """The definition of ``record`` begins again. Only :meth:`FunctionRecord.ensure_defined` catches it; recovery from
    errors does not."""

    def __init__(self, record: FunctionRecord) -> None:
        super().__init__(record.name)
        self.record = record


being_defined: Final[list[FunctionRecord]] = []
"""The functions under compilation, outermost first. One thread compiles at a time."""


def rely_on(owner: Type, name: str) -> None:
    """Record that the function that is being compiled uses the type of the attribute ``name`` of ``owner``."""
    if being_defined and isinstance(owner, ClassType) and owner.may_widen(name):
        being_defined[-1].relies_on.add((owner, name))


def inherit_reliance(called: FunctionRecord) -> None:
    """Record that the function that is being compiled calls ``called``, and uses the attributes that it uses."""
    if being_defined and called.relies_on:
        being_defined[-1].relies_on |= called.relies_on


def widen_attribute(owner: ClassType, name: str, assigned: Type) -> None:
    """Give the attribute the type that its own and ``assigned`` join to, where that is wider; ``assigned`` itself where
    its own was only assumed.

    Raises:
        Redefinition: the type has changed.
    """
    if not being_defined or not owner.may_widen(name):
        return
    slot = owner.attributes[name]
    joined = unshaped(assigned) if slot.is_assumed else join_contents(slot.type, unshaped(assigned))
    slot.is_assumed = False
    if joined is not None and joined != slot.type:
        rely_on(owner, name)
        slot.type = joined
        forget_users(owner, [name])
        restart_users(owner, [name])


def shows_elements(value: Value, assumed: Type) -> bool:
    """Return whether the assignment of ``value`` shows the elements of an attribute whose type is only assumed."""
    is_display = value.node.kind in ("prim::ListConstruct", "prim::DictConstruct")
    return value.type != assumed or (is_display and len(value.node.inputs) > 0)


def forget_users(owner: ClassType, names: Iterable[str]) -> None:
    """Have every function that uses one of the attributes ``names`` compiled again when it is next used."""
    for name in names:
        users = owner.attributes[name].users
        for record in list(users):
            record.forget_definition()
        users.clear()
    forget_failures()


def restart_users(owner: ClassType, names: Iterable[str]) -> None:
    """Have the outermost function under compilation that uses one of the attributes begin again.

    Raises:
        Redefinition: there is one.
    """
    changed = {(owner, name) for name in names}
    for record in being_defined:
        if not changed.isdisjoint(record.relies_on):
            raise Redefinition(record)


def is_relied_on(owner: ClassType) -> bool:
    """Return whether a function under compilation uses an attribute of ``owner``."""
    return any(type is owner for record in being_defined for type, _ in record.relies_on)
