"""Compile functions again where the type of an attribute turns out to be wider: ``self.sum = 0``, then
``self.sum += 0.5``.

The first value of an attribute does not show what all methods assign to it. Functions record which attributes they use
while they are compiled (:func:`rely_on`), and those that use what they call does. Where an assignment needs a wider
type (:func:`widen_attribute`), the slot gets it, and every such function loses its graph. Those that are being compiled
begin again; the others are compiled when they are next called.

A list or a dict that a function returns without declaring it is such a slot, too: its callers may put other numbers
into it (:func:`widen_result`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from rekindle.errors import forget_failures
from rekindle.ir.types.base import Type
from rekindle.ir.types.containers import DictType, ListType
from rekindle.ir.types.named import ClassType
from rekindle.ir.types.unify import join_contents, unshaped

if TYPE_CHECKING:
    from rekindle.ir.graph import Value
    from rekindle.ir.graph_function import GraphFunction


class Redefinition(BaseException):
    """The compilation of ``record`` has to restart. Only :meth:`GraphFunction.ensure_defined` catches this; error
    recovery does not."""

    def __init__(self, record: GraphFunction) -> None:
        super().__init__(record.name)
        self.record = record


RESULT: Final = "->"
"""Key of a function's result, among names of attributes that functions rely on."""


@dataclass(slots=True, eq=False)
class ResultSlot:
    """The list or dict that a function returns without declaring it."""

    wanted: Type | None = None
    """The type that callers need, if it is wider than the inferred type."""
    is_fixed: bool = False
    """Whether the function cannot return a wider type."""
    users: WeakSet[GraphFunction] = field(default_factory=WeakSet)
    """The compiled functions that have to be compiled again where the type changes."""


being_defined: Final[list[GraphFunction]] = []
"""The functions under compilation, outermost first. One thread compiles at a time."""


def rely_on(owner: Type, name: str) -> None:
    """Record that the function under compilation, if any, uses the type of the attribute ``name`` of ``owner``. Has no
    effect if that type cannot be widened any more."""
    if being_defined and isinstance(owner, ClassType) and owner.may_widen(name):
        being_defined[-1].relies_on.add((owner, name))


def inherit_reliance(called: GraphFunction) -> None:
    """Record that the function that is being compiled calls ``called``, and so depends on the attributes that it
    uses."""
    if being_defined:
        being_defined[-1].relies_on |= called.relies_on
        if called.result is not None:
            being_defined[-1].relies_on.add((called, RESULT))


def users_of(owner: ClassType | GraphFunction, name: str) -> WeakSet[GraphFunction]:
    """Return the compiled functions that rely on the attribute ``name``, or on the :data:`RESULT`, of ``owner``."""
    if isinstance(owner, ClassType):
        return owner.attributes[name].users
    assert owner.result is not None
    return owner.result.users


def wanted_result() -> Type | None:
    """Return the result type that callers of the function under compilation need, if it does not declare one; None if
    they need no other."""
    slot = being_defined[-1].result if being_defined else None
    return None if slot is None else slot.wanted


def fix_result() -> None:
    """Record that the function under compilation cannot return the type that its callers need: its result type is not
    widened any more."""
    slot = being_defined[-1].result
    assert slot is not None
    slot.wanted, slot.is_fixed = None, True


def infer_result(type: Type) -> None:
    """Record that the result type of the function under compilation is inferred as ``type``, so that callers may widen
    it. Has no effect unless ``type`` is a list or dict type."""
    if being_defined and isinstance(type, (ListType, DictType)) and being_defined[-1].result is None:
        being_defined[-1].result = ResultSlot()


def widen_result(called: GraphFunction, put: Type) -> None:
    """Widen the inferred result type of ``called``, a list or dict type, so that it includes the elements of ``put``.
    Has no effect if that type is declared or fixed, if the two have no join, or outside of a compilation.

    Raises:
        Redefinition: the type has changed, and a function under compilation depends on it.
    """
    slot = called.result
    if slot is None or slot.is_fixed or not being_defined:
        return
    known = unshaped(called.schema.returns[0].type)
    joined = join_contents(known, unshaped(put))
    if joined is not None and joined != known and joined != slot.wanted:
        slot.wanted = joined
        called.forget_definition()
        forget_users(called, [RESULT])
        restart_users(called, [RESULT])


def widen_attribute(owner: ClassType, name: str, assigned: Type) -> None:
    """Widen the type of the attribute to the join of its own type and ``assigned``; to ``assigned`` itself, if its own
    type was only assumed. Without a join, or outside of a compilation, the type stays.

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
    """Return whether the assignment of ``value`` determines the element type of an attribute, whose type is only
    ``assumed``."""
    is_display = value.node.kind in ("prim::ListConstruct", "prim::DictConstruct")
    return value.type != assumed or (is_display and len(value.node.inputs) > 0)


def forget_users(owner: ClassType | GraphFunction, names: Iterable[str]) -> None:
    """Discard the compiled graph of every function that uses one of the attributes ``names``, and the recorded failures
    of all functions."""
    for name in names:
        users = users_of(owner, name)
        for record in list(users):
            record.forget_definition()
        users.clear()
    forget_failures()


def restart_users(owner: ClassType | GraphFunction, names: Iterable[str]) -> None:
    """Restart the compilation of the outermost function under compilation that uses one of the attributes, if any.

    Raises:
        Redefinition: there is such a function. The compiler catches the error and begins again.
    """
    changed = {(owner, name) for name in names}
    for record in being_defined:
        if not changed.isdisjoint(record.relies_on):
            raise Redefinition(record)


def is_relied_on(owner: ClassType) -> bool:
    """Return whether a function under compilation uses an attribute of ``owner``."""
    return any(type is owner for record in being_defined for type, _ in record.relies_on)
