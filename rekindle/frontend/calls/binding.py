"""Which argument of a call belongs to which parameter, as Python has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rekindle.errors import SourceRange, TypeMismatchError
from rekindle.frontend.sugared_values.base import Keywords, SugaredValue
from rekindle.frontend.sugared_values.keyword_arguments import KeywordArguments
from rekindle.frontend.sugared_values.values import SugaredTuple
from rekindle.syntax.views import Param


def bind_arguments(
    name: str,
    params: Sequence[Param],
    range: SourceRange,
    args: Sequence[SugaredValue],
    kwargs: Keywords,
    defaults: Mapping[str, SugaredValue],
) -> dict[str, SugaredValue]:
    """What each parameter of the function ``name`` means in a call, ``defaults`` where no argument is given.

    Raises:
        TypeMismatchError: Python would refuse the call.
    """
    found: dict[str, SugaredValue] = {}
    positional = [param for param in params if not param.kwarg_only and not param.is_variadic]
    for param, value in zip(positional, args, strict=False):
        found[param.name.name] = value
    rest = list(args[len(positional) :])
    named = dict(kwargs)
    for param in params:
        key = param.name.name
        if param.is_variadic:
            continue
        if key in named:
            if key in found:
                raise TypeMismatchError(f"'{name}' is given '{key}' twice", range)
            found[key] = named.pop(key)
        if key not in found:
            if key not in defaults:
                raise TypeMismatchError(f"'{name}' needs an argument for '{key}'", range)
            found[key] = defaults[key]
    for param in params:
        if param.takes_positional:
            found[param.name.name], rest = SugaredTuple(rest), []
        elif param.takes_keywords:
            found[param.name.name], named = KeywordArguments(named), {}
    if rest:
        noun = "argument" if len(positional) == 1 else "arguments"
        raise TypeMismatchError(f"'{name}' takes {len(positional)} positional {noun}, got {len(args)}", range)
    if named:
        raise TypeMismatchError(f"'{name}' has no parameter '{next(iter(named))}'", range)
    return found
