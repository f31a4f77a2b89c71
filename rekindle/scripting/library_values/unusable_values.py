"""Python objects that programs cannot use: each use is an error that states the kind of object and a suggestion."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterable
from typing import Any

import torch

from rekindle.errors import Edit, NotScriptableError, SourceRange
from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import Type
from rekindle.scripting.annotations import find_type, spell_annotation


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return a hint that suggests the most similar name in ``known`` for an undefined name; None if none is similar."""
    public = (item for item in known if not item.startswith("_") or name.startswith("_"))
    close = difflib.get_close_matches(name, public, n=1, cutoff=0.75)
    return f"did you mean '{close[0]}'?" if close else None


def correction(range: SourceRange, name: str, hint: str | None) -> Edit | None:
    """Return the edit that replaces ``name``, at the end of ``range``, by the suggestion in ``hint``; None if ``hint``
    has none, or ``range`` does not end with ``name``."""
    found = re.fullmatch(r"did you mean '(\w+)'\?", hint or "")
    if found is None or not range.text.endswith(name):
        return None
    return Edit(SourceRange(range.source, range.end - len(name), range.end), found[1])


class UnusableValue(SugaredValue):
    """A Python object that programs cannot use, other than as a type. Each use raises an error that states the kind of
    object and a suggestion."""

    def __init__(self, obj: Any, name: str | None = None) -> None:
        self.obj = obj
        self.name = name

    @property
    def description(self) -> str:
        what = f"a Python object of class '{spell_annotation(type(self.obj))}'"
        return f"'{self.name}', {what}," if self.name else what

    def as_type(self, range: SourceRange) -> Type | None:
        return find_type(self.obj, range)

    def refuse(self, range: SourceRange) -> NotScriptableError:
        message, hint = _refusal(self.obj, self.name)
        return NotScriptableError(message, range, hint=hint)

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        raise self.refuse(range)

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        raise self.refuse(range)

    def has_attribute(self, range: SourceRange, graph: Graph, name: str) -> bool:
        raise self.refuse(range)

    def set_attribute(self, range: SourceRange, graph: Graph, name: str, value: Value) -> None:
        raise self.refuse(range)

    def call(self, call: CallSite) -> SugaredValue:
        raise self.refuse(call.range)

    def as_tuple(self, range: SourceRange, graph: Graph, size_hint: int | None = None) -> list[SugaredValue]:
        raise self.refuse(range)

    def iterator(self, range: SourceRange, graph: Graph) -> SugaredValue:
        raise self.refuse(range)

    def length(self, range: SourceRange, graph: Graph) -> Value:
        raise self.refuse(range)

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None = None) -> SugaredValue:
        raise self.refuse(range)


def _refusal(obj: Any, name: str | None) -> tuple[str, str]:
    """Return the error message about a use of ``obj``, found under ``name``, and a hint."""
    what = f"'{name}'" if name else "this"
    if isinstance(obj, torch.Tensor):
        return (
            f"{what} is a tensor from outside of the program",
            "pass it as an argument, or register it as a parameter or a buffer of a module",
        )
    if isinstance(obj, torch.nn.Module):
        return f"{what} is a module from outside of the program", "make it an attribute of the module that calls it"
    if isinstance(obj, dict):
        return (
            f"{what} is a dict from outside of the program",
            "pass it as an argument, or make it an attribute of a module",
        )
    if inspect.ismethod(obj):
        return f"{what} is a method of a Python object, which cannot be compiled", "write it as a function"
    if callable(obj):
        return (
            f"{what} is a '{spell_annotation(type(obj))}', which has no Python source to compile",
            "call it through a Python function marked with @ignore, or use what PyTorch offers instead",
        )
    return (
        f"{what} is a Python object of class '{spell_annotation(type(obj))}', which a program cannot use",
        "pass what it holds as arguments",
    )
