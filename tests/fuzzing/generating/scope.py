"""What a place in a program sees: variables with their kinds, helper functions, classes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.fuzzing.generating.kinds import Kind


@dataclass(slots=True)
class Variable:
    """``fixed`` must not be assigned: loop variables that bound loops, names of functions. ``maybe``: only some paths
    assign it."""

    name: str
    kind: Kind
    fixed: bool = False
    maybe: bool = False


@dataclass(slots=True)
class Helper:
    """A function that a program may call; ``logs`` says that its first argument is a list it appends to."""

    name: str
    parameters: tuple[Kind, ...]
    result: Kind
    optional: int = 0
    """How many of the last parameters have defaults."""
    logs: bool = False


@dataclass(slots=True)
class ClassShape:
    """A class: the attributes with their kinds, methods (name, parameters, result), how to make one."""

    name: str
    attributes: tuple[tuple[str, Kind], ...]
    methods: tuple[tuple[str, tuple[Kind, ...], Kind], ...] = ()
    mutable: bool = True
    properties: tuple[tuple[str, Kind], ...] = ()


@dataclass(slots=True)
class Scope:
    """Where code is being written."""

    random: random.Random
    variables: list[Variable] = field(default_factory=list)
    helpers: list[Helper] = field(default_factory=list)
    classes: list[ClassShape] = field(default_factory=list)
    in_loop: int = 0
    result: tuple[Kind, ...] = ()
    """What the function returns."""
    is_method: bool = False
    names: set[str] = field(default_factory=set)
    exceptions: list[str] = field(default_factory=list)

    def fresh(self, *stems: str) -> str:
        """A name that is not yet taken."""
        stem = self.random.choice(stems or ("a", "b", "c", "k", "t", "u", "v", "w", "y", "z"))
        name, number = stem, 2
        while name in self.names:
            name, number = f"{stem}{number}", number + 1
        self.names.add(name)
        return name

    def add(self, name: str, kind: Kind, fixed: bool = False) -> Variable:
        """Let a variable hold a kind from here on."""
        for each in self.variables:
            if each.name == name:
                each.kind = kind
                each.maybe = False
                return each
        self.names.add(name)
        self.variables.append(Variable(name, kind, fixed))
        return self.variables[-1]

    def find(self, wanted: Callable[[Kind], bool], assignable: bool = False) -> Variable | None:
        """One of the variables of a kind; rarely one that only some paths assign."""
        found = [
            each
            for each in self.variables
            if wanted(each.kind) and not (assignable and each.fixed) and (not each.maybe or self.random.random() < 0.3)
        ]
        if not found:
            return None
        # the latest ones more often, so that values flow on
        weights = [1 + index for index in range(len(found))]
        return self.random.choices(found, weights)[0]

    @contextmanager
    def block(self) -> Iterator[None]:
        """A block that may not run: what it assigns for the first time is lost, or assigned only on some paths."""
        kept = len(self.variables)
        yield
        added = self.variables[kept:]
        del self.variables[kept:]
        for each in added:
            if not each.fixed and self.random.random() < 0.3:
                each.maybe = True
                self.variables.append(each)

    @contextmanager
    def inner(self) -> Iterator[None]:
        """A function or a comprehension within: its variables end with it."""
        kept = list(self.variables)
        yield
        self.variables[:] = kept
