"""Calls from Python: arguments checked against a schema and converted, results handed back.

What Python's user would expect is taken for what the program wants: an int for a float, a tuple for a list, a dtype
for its number, a string for a device, NumPy's scalars and one-element Tensors for numbers. A list or a dict that fits
as it is is passed on as itself, so that the caller sees what the program writes to it; one that does not fit is
converted into a new one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from rekindle.errors import ArgumentError
from rekindle.ir.schema import Argument, FunctionSchema
from rekindle.ir.types import ClassType, InterfaceType, mismatch_note
from rekindle.runtime.conversion import (
    NOT_ASSIGNED,
    Converter,
    NoMatch,
    class_of,
    converter_for,
    exact_class,
    to_python as to_python,
)
from rekindle.runtime.instructions import copy_constant
from rekindle.runtime.lowering import is_writable


def bind(schema: FunctionSchema, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """The arguments of a call as the program takes them, in the order of the schema.

    Raises:
        ArgumentError: they do not fit. The message names the function, the argument, what it got and what it takes.
    """
    binder = _BINDERS.get(id(schema))
    if binder is None:
        if len(_BINDERS) >= _MOST_BINDERS:
            _BINDERS.clear()
        binder = _BINDERS[id(schema)] = Binder(schema)
    return binder.bind(args, kwargs)


_MOST_BINDERS = 10_000


class Binder:
    """What :func:`bind` does for one schema, prepared.

    Arguments of just the class that is expected are passed on after one comparison.
    """

    __slots__ = ("_checks", "_count", "schema")

    def __init__(self, schema: FunctionSchema) -> None:
        self.schema = schema
        self._count = len(schema.arguments)
        self._checks: list[tuple[int, type | None, Converter]] = [
            (index, exact_class(argument.type), converter_for(argument.type))
            for index, argument in enumerate(schema.arguments)
        ]

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """See :func:`bind`."""
        values = list(args) if not kwargs and len(args) == self._count else self._arrange(args, kwargs)
        for index, exact, convert in self._checks:
            value = values[index]
            if type(value) is not exact:
                try:
                    values[index] = convert(value)
                except NoMatch as why:
                    problem = self._describe(index, value, why)
                    break
        else:
            return values
        raise ArgumentError(problem)

    def _arrange(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Arguments in the order of the schema, defaults where none is given."""
        arguments = self.schema.arguments
        positional = [argument for argument in arguments if not argument.kwarg_only]
        if len(args) > len(positional):
            hidden = self._hidden
            takes, given = len(positional) - hidden, len(args) - hidden
            raise self._error(f"takes {_count(takes, 'positional argument')}, but {given} {_were(given)} given")
        for name in kwargs:
            index = self.schema.argument_index(name)
            if index is None:
                raise self._error(f"has no parameter '{name}'")
            if index < len(args):
                raise self._error(f"got its argument '{name}' twice: by position and by name")
        values = list(args)
        missing: list[Argument] = []
        for argument in arguments[len(args) :]:
            if argument.name in kwargs:
                values.append(kwargs[argument.name])
            elif argument.has_default:
                default = argument.default
                values.append(copy_constant(default) if is_writable(default) else default)
            else:
                missing.append(argument)
        if missing:
            names = ", ".join(f"'{argument.name}'" for argument in missing)
            raise self._error(f"is missing {_count(len(missing), 'argument')}: {names}")
        return values

    # --------------------------------------------------------------------------------------------------------- errors

    @property
    def _hidden(self) -> int:
        """How many of the first arguments the caller does not write: the object of a method."""
        first = self.schema.arguments[0] if self.schema.arguments else None
        is_method = first is not None and first.name == "self" and isinstance(first.type, (ClassType, InterfaceType))
        return 1 if is_method else 0

    def _describe(self, index: int, value: object, why: NoMatch) -> str:
        argument = self.schema.arguments[index]
        position = f" (position {index + 1 - self._hidden})" if not argument.kwarg_only else ""
        problem = f"argument '{argument.name}'{position} takes {argument.type.annotation}, but got {describe(value)}"
        if why.path:
            problem += f", in which {argument.name}{why.path} is {describe(why.value)} instead of {why.type.annotation}"
        found = class_of(why.value)
        if found is not None:
            problem += mismatch_note(found, why.type)
        text = self._text(problem)
        if value is None:
            text += f"\nHint: a parameter that may be None is annotated as Optional[{argument.type.annotation}]"
        return text

    def _error(self, problem: str) -> ArgumentError:
        return ArgumentError(self._text(problem))

    def _text(self, problem: str) -> str:
        return f"{self.schema.name.rsplit('.', 1)[-1]}() {problem}\nSignature: {signature(self.schema)}"


_BINDERS: dict[int, Binder] = {}
"""Binders by the identity of their schemas, which they keep alive."""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"


def signature(schema: FunctionSchema) -> str:
    """The schema as Python writes it: ``f(x: Tensor, n: int = 3) -> Tensor``."""
    parts: list[str] = []
    for index, argument in enumerate(schema.arguments):
        if argument.kwarg_only and (index == 0 or not schema.arguments[index - 1].kwarg_only):
            parts.append("*")
        if index == 0 and argument.name == "self" and isinstance(argument.type, (ClassType, InterfaceType)):
            parts.append("self")
            continue
        default = f" = {argument.default!r}" if argument.has_default else ""
        parts.append(f"{argument.name}: {argument.type.annotation}{default}")
    returns = [result.type.annotation for result in schema.returns]
    result = returns[0] if len(returns) == 1 else f"Tuple[{', '.join(returns)}]" if returns else "None"
    return f"{schema.name.rsplit('.', 1)[-1]}({', '.join(parts)}) -> {result}"


def describe(value: object) -> str:
    """A value in an error: its class and, where that is short, itself."""
    if value is None:
        return "None"
    if value is NOT_ASSIGNED:
        return "not assigned"
    name = type(value).__qualname__
    name = f"an {name}" if name[0] in "aeiouAEIOU" else f"a {name}"
    if isinstance(value, torch.Tensor):
        return f"{name} of shape {tuple(value.shape)} and dtype {value.dtype}"
    if isinstance(value, torch.nn.Module):
        return f"the module {type(value).__qualname__}"
    text = repr(value)
    if "\n" in text or " object at 0x" in text:
        return name
    return f"{name}: {text if len(text) <= 60 else text[:57] + '...'}"
