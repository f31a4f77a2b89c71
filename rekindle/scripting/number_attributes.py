"""Types of attributes of modules that hold numbers: ``self.total = 0`` in ``__init__``, ``self.total += loss.item()``
in ``forward``.

The value that a module has when it is compiled does not show which numbers its methods assign. Where a method assigns
a number of another type, the attribute gets the type that both join to, and the module is compiled again. What the
class annotates stays as declared: then the assignment converts the number, or raises TypeError.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeVar

from rekindle.ir.types import Type, join_numbers
from rekindle.scripting.annotations import class_annotations
from rekindle.scripting.module_types import ConcreteModuleType, numbers_assigned

T = TypeVar("T")


class _AttributeWidened(BaseException):
    """An attribute turned out to hold numbers of another type. Only :func:`compile_with_number_attributes` catches it;
    recovery from errors does not."""


_may_restart: ContextVar[bool] = ContextVar("may_restart", default=False)


def compile_with_number_attributes(compile: Callable[[], T]) -> T:
    """Return what ``compile`` returns. It is called again after an attribute got a wider type."""
    token = _may_restart.set(True)
    try:
        while True:
            try:
                return compile()
            except _AttributeWidened:
                continue
    finally:
        _may_restart.reset(token)


def widen_number_attribute(concrete: ConcreteModuleType, name: str, assigned: Type) -> None:
    """Record that a method assigns a number of the type ``assigned`` to the attribute ``name``.

    Raises:
        _AttributeWidened: the module has to be compiled again, with a wider type of the attribute.
    """
    cls = concrete.python_class
    slot = concrete.type.attribute_type(name)
    joined = None if slot is None else join_numbers(slot, assigned)
    if joined is None or joined == slot or name in class_annotations(cls) or not _may_restart.get():
        return
    numbers_assigned.setdefault(cls, {})[name] = joined
    raise _AttributeWidened
