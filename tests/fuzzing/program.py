"""A program under test: Python text that holds a subject, its calls, and the ways in which it is executed."""

from __future__ import annotations

import itertools
import linecache
import sys
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

HEAD: Final = """\
import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor, nn
"""

_COUNTER: Final = itertools.count()


@dataclass(slots=True, frozen=True)
class Program:
    """``source`` defines ``SUBJECT`` (a function, or a class of modules), ``CALLS`` (functions that make the arguments
    of each call), ``NO_GRAD`` (the calls under ``torch.no_grad``) and ``WAYS``."""

    source: str
    name: str = "program"
    given: Mapping[str, Any] = field(default_factory=dict)
    """Names that its module has from the beginning."""

    def load(self) -> Loaded:
        """Execute the text in a module of its own, whose source ``inspect`` finds.

        Raises:
            Exception: whatever the text raises.
        """
        return Loaded(self.source, self.name, self.given)


class Loaded:
    """A module made from a text; a context manager that removes it from ``sys.modules`` at the end."""

    def __init__(self, source: str, name: str, given: Mapping[str, Any]) -> None:
        unique = f"fuzzed_{name}_{next(_COUNTER)}"
        self.compiled: Any = None
        self.eager: Any = None
        """What runs in eager Python to compare with, if it is not the subject."""
        self.keeps_results = False
        """Whether the program is compiled and executed once, however often its results are compared."""
        self.results: list[Any] | None = None
        self.path = f"/fuzzed/{unique}.py"
        self.module = types.ModuleType(unique)
        self.module.__file__ = self.path
        linecache.cache[self.path] = (len(source), None, source.splitlines(True), self.path)
        self.module.__dict__.update(given)
        sys.modules[unique] = self.module
        exec(compile(source, self.path, "exec", dont_inherit=True), self.module.__dict__)

    def __enter__(self) -> Loaded:
        return self

    def __exit__(self, *_: object) -> None:
        sys.modules.pop(self.module.__name__, None)
        linecache.cache.pop(self.path, None)

    @property
    def subject(self) -> Any:
        """The function; of a class of modules, a new instance."""
        found = self.module.__dict__["SUBJECT"]
        return found() if isinstance(found, type) else found

    @property
    def calls(self) -> list[Any]:
        return list(self.module.__dict__["CALLS"])

    @property
    def without_gradients(self) -> frozenset[int]:
        return frozenset(self.module.__dict__.get("NO_GRAD", ()))

    @property
    def ways(self) -> tuple[str, ...]:
        return tuple(self.module.__dict__.get("WAYS", ("unoptimized", "optimized")))
