"""The corpus of the language: how a program gets into it, and how all of them are found.

A program is a function, or a class of modules made without arguments, with two sets of inputs. It names the constructs
that it shows, keys of :data:`tests.language.constructs.CONSTRUCTS`, and says what torch.jit does with it.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch

import tests.language.programs

Inputs = tuple[Any, ...]
TorchState = Literal["works", "differs", "refuses"]
T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class Program:
    """``torch`` is whether torch.jit compiles it and agrees with eager ("works"), compiles it and returns
    otherwise or fails ("differs"), or does not compile it ("refuses"). ``refusal`` is the class and a part of the
    message with which this compiler refuses it; None where it compiles."""

    name: str
    constructs: tuple[str, ...]
    source: Any
    inputs: tuple[Inputs, ...]
    torch: TorchState = "works"
    refusal: tuple[type[Exception], str] | None = None

    @property
    def is_past_torch(self) -> bool:
        """Whether the program is one of those that show what torch.jit's users missed."""
        return self.name.partition(".")[0] in PAST_TORCH

    def subject(self) -> Any:
        """What is compiled: the function, or a fresh module, the same at each call."""
        if not isinstance(self.source, type):
            return self.source
        torch.manual_seed(0)
        return self.source()

    @property
    def file(self) -> Path:
        return Path(inspect.getfile(self.source))


_PROGRAMS: dict[str, Program] = {}

PAST_TORCH = (
    "arguments_past",
    "autograd_functions",
    "collection_kinds",
    "decorated",
    "custom_operators",
    "exceptions",
    "functions_within",
    "inference",
    "inherited_classes",
    "known_objects",
    "libraries_past",
    "local_classes",
    "library_functions",
    "made_attributes",
    "modules_past",
    "numbers",
    "operators_past",
    "optionals",
    "python_forms",
    "python_operators",
    "python_texts",
    "recursion_and_patterns",
    "searches",
    "sets",
    "sizes",
    "stars",
)
"""The files of programs that are saved and run by torch.jit, too."""


def program(constructs: str, first: Inputs, second: Inputs, torch: TorchState = "works") -> Callable[[T], T]:
    """Put the function or module class below into the corpus. ``constructs`` are keys with spaces between them."""

    def register(source: T) -> T:
        return _register(source, constructs, (first, second), torch, None)

    return register


def refused(
    constructs: str, error: type[Exception], message: str, torch: TorchState = "refuses", inputs: Inputs | None = None
) -> Callable[[T], T]:
    """Put a program into the corpus that this compiler refuses with ``error``, whose text contains ``message``. Where
    torch.jit compiles it, ``inputs`` show what it does with it."""

    def register(source: T) -> T:
        return _register(source, constructs, () if inputs is None else (inputs,), torch, (error, message))

    return register


def _register(
    source: Any,
    constructs: str,
    inputs: tuple[Inputs, ...],
    state: TorchState,
    refusal: tuple[type[Exception], str] | None,
) -> Any:
    name = f"{source.__module__.rpartition('.')[2]}.{source.__name__}"
    assert name not in _PROGRAMS, f"two programs are called {name}"
    _PROGRAMS[name] = Program(name, tuple(constructs.split()), source, inputs, state, refusal)
    return source


def corpus() -> list[Program]:
    """All programs, in the order of their files."""
    for module in pkgutil.iter_modules(tests.language.programs.__path__):
        importlib.import_module(f"tests.language.programs.{module.name}")
    return list(_PROGRAMS.values())


def fresh(inputs: Inputs) -> Inputs:
    """A copy that a program may write to."""
    return copy.deepcopy(inputs)


def known_to_torch(cls: type[T]) -> type[T]:
    """Compile a dataclass with torch.jit, where it finds one no other way. If it refuses, its programs say so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(Exception):
            torch.jit.script(cls, _frames_up=1)
    return cls
