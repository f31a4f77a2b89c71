"""Inferred types of the parameters of ``__init__`` that have no annotation: the types of the arguments of calls.

A class has one ``__init__`` and one type for each attribute, so that such a parameter has the common supertype of all
arguments in a program. If a call passes an argument that this type does not hold, ``__init__`` is compiled again, and
with it every function that uses an attribute of the class. If there is no common supertype, as of an int and a Tensor,
the type is that of the calls in the program that is being compiled, and functions of other programs are compiled again
when they are next called.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Final

from rekindle.ir.attributes import infer_type
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.types import NONE, TENSOR, Type, join_contents, optional, unshaped

_KEPT: Final = "__rekindle_init__"


@dataclass(slots=True)
class _Shown:
    """The parameter types that calls have determined, by the function that takes the arguments."""

    cls: type
    types: dict[FunctionType, dict[str, Type]] = field(default_factory=dict)


def shown_parameters(cls: type, init: FunctionType) -> dict[str, Type]:
    """Return the types that calls have determined for the parameters of ``init``, a function that creates attributes of
    ``cls``. The result is the mutable record itself, which is stored on the class."""
    found = vars(cls).get(_KEPT)
    if not isinstance(found, _Shown) or found.cls is not cls:
        found = _Shown(cls)
        setattr(cls, _KEPT, found)
    return found.types.setdefault(init, {})


def learn_parameters(
    cls: type, init: FunctionType, args: Sequence[NamedValue], kwargs: Sequence[NamedValue], *, may_replace: bool
) -> bool:
    """Join the recorded types of the parameters of ``init`` that have no annotation with the types of the arguments of
    a call. Return whether a recorded type has changed.

    Where two types have no join, as an int and a Tensor, the recorded one stays. With ``may_replace`` the argument's
    type replaces it, because the recorded one comes from another program, unless the parameter has a default.
    """
    known = shown_parameters(cls, init)
    parameters = list(inspect.signature(init).parameters.values())[1:]
    positional = [item for item in parameters if item.kind is not item.KEYWORD_ONLY]
    given = {item.name: argument for item, argument in zip(positional, args, strict=False)}
    given.update((argument.name or "", argument) for argument in kwargs)
    changed = False
    for item in parameters:
        argument = given.get(item.name)
        if argument is None or item.annotation is not item.empty or item.kind in _VARIADIC:
            continue
        assumed = known.get(item.name) or _assumed(item)
        joined = _join(assumed, unshaped(argument.type))
        if joined is None and may_replace and item.default is item.empty:
            joined = unshaped(argument.type)
        if joined is not None and joined != (optional(TENSOR) if assumed == NONE else assumed or TENSOR):
            changed = True
            if joined == TENSOR:
                known.pop(item.name, None)  # it is what is assumed of a parameter without annotation
            else:
                known[item.name] = joined
    return changed


_VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _assumed(parameter: inspect.Parameter) -> Type | None:
    """Return the type of the parameter's default; None where it has none."""
    return None if parameter.default is parameter.empty else infer_type(parameter.default)


def _join(known: Type | None, given: Type) -> Type | None:
    return given if known is None else join_contents(known, given)
