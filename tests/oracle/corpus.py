"""The corpus: how a program gets into it, and how all of them are found."""

from __future__ import annotations

import copy
import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

import tests.oracle.programs

Sample = tuple[Any, ...]
T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class Program:
    """A function, or a class of modules made without arguments, and the arguments that it is called with."""

    name: str
    source: Any
    samples: tuple[Sample, ...]

    def subject(self) -> Any:
        """What is compiled: the function, or a fresh module, the same at each call."""
        if not isinstance(self.source, type):
            return self.source
        torch.manual_seed(0)
        return self.source()


_PROGRAMS: dict[str, Program] = {}


def program(*samples: Sample) -> Callable[[T], T]:
    """Put the function or module class below into the corpus, with the tuples of arguments to call it with."""

    def register(source: T) -> T:
        module = source.__module__.rpartition(".")[2]
        name = f"{module}.{source.__name__}"  # type: ignore[attr-defined]
        assert name not in _PROGRAMS, f"two programs are called {name}"
        _PROGRAMS[name] = Program(name, source, samples)
        return source

    return register


def corpus() -> list[Program]:
    """All programs, in the order of their files."""
    for module in pkgutil.iter_modules(tests.oracle.programs.__path__):
        importlib.import_module(f"tests.oracle.programs.{module.name}")
    return list(_PROGRAMS.values())


def ramp(*shape: int, start: float = 0.0) -> torch.Tensor:
    """A float tensor that counts up from ``start`` in steps of a half."""
    count = 1
    for size in shape:
        count *= size
    return (torch.arange(count, dtype=torch.float32) * 0.5 + start).reshape(shape)


def fresh(sample: Sample) -> Sample:
    """A copy that a program may write to."""
    return copy.deepcopy(sample)
