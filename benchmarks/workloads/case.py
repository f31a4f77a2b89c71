"""Workloads: a program, its arguments and how it is compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Case:
    """A program and its arguments.

    ``program`` is a function or an ``nn.Module`` in eval mode; it writes to none of its arguments. It is traced if
    ``is_traced``, else scripted; with ``is_frozen``, each peer makes its weights constants first. ``by_hand`` makes the
    same calls of operators through the shortest callables that there are, as straight-line Python that an expert
    writes: weights are local variables of it, nothing is looked up. It takes the same arguments.
    """

    program: Any
    arguments: tuple[Any, ...]
    is_traced: bool = False
    is_frozen: bool = False
    by_hand: Callable[..., Any] | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """A name, and a function that creates the case. It is called for each measurement, after a fixed seed was set."""

    name: str
    make: Callable[[], Case]
