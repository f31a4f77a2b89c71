"""What is said of attributes that values do not have."""

from __future__ import annotations

from rekindle.errors import Cause, SourceRange, UndefinedNameError
from rekindle.ir.types import ClassType, InterfaceType, Type


def missing_attribute(range: SourceRange, type: Type, name: str) -> UndefinedNameError:
    """The error of ``x.name``, where ``x`` is of a type that has no such attribute."""
    if isinstance(type, ClassType) and not type.is_module:
        hint = f"give it a value in __init__: self.{name} = …"
        if name.startswith("__"):
            hint = f"define the method: def {name}(self, …)"
        if type.python_class is not None and isinstance(vars(type.python_class).get(name), classmethod):
            hint = "class methods cannot be compiled; make it a static method or a function"
        return UndefinedNameError(f"'{type.basename}' has no attribute or method '{name}'", range, hint=hint)
    if isinstance(type, InterfaceType):
        return UndefinedNameError(
            f"the interface '{type.name.rpartition('.')[2]}' has no method '{name}'",
            range,
            hint=f"its methods are {', '.join(type.methods)}",
        )
    return UndefinedNameError(
        f"a value of type {type.annotation} has no attribute or method '{name}'",
        range,
        hint=f"the value may be None; check it first, for example: assert {_spell(range)} is not None"
        if type.is_optional
        else None,
        cause=Cause.MISSING_REFINEMENT if type.is_optional else None,
    )


def _spell(range: SourceRange) -> str:
    text = range.text.rpartition(".")[0] if range.is_known else ""
    return text if text.isidentifier() else "x"
