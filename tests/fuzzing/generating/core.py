"""The generator's core: productions of expressions by kind, chosen at random, and statements."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from tests.fuzzing.generating.kinds import Kind, literal, tensor_literal
from tests.fuzzing.generating.scope import Scope

Expression = Callable[["Writer", Kind, int], "str | None"]
Statement = Callable[["Writer", int], "list[str] | None"]

EXPRESSIONS: Final[dict[str, list[tuple[float, Expression]]]] = {}
STATEMENTS: Final[list[tuple[float, Statement]]] = []


def expression(name: str, weight: float = 1.0) -> Callable[[Expression], Expression]:
    """A production of expressions of the kind ``name``; it returns None where it does not apply."""

    def register(production: Expression) -> Expression:
        EXPRESSIONS.setdefault(name, []).append((weight, production))
        return production

    return register


def statement(weight: float = 1.0) -> Callable[[Statement], Statement]:
    """A production of statements: lines, or None where it does not apply."""

    def register(production: Statement) -> Statement:
        STATEMENTS.append((weight, production))
        return production

    return register


class Writer:
    """Writes one function; what it needs of the program around it is in ``scope``."""

    def __init__(self, random: random.Random, scope: Scope) -> None:
        self.random = random
        self.scope = scope

    # ------------------------------------------------------------------------------------------------------- choices

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    # --------------------------------------------------------------------------------------------------- expressions

    def of(self, kind: Kind, depth: int) -> str:
        """An expression of a kind, at most ``depth`` deep."""
        if depth <= 0 or self.chance(0.25):
            return self.leaf(kind)
        productions = EXPRESSIONS.get(kind.name, [])
        for _ in range(6):
            if not productions:
                break
            found = self.random.choices([each for _, each in productions], [weight for weight, _ in productions])[0](
                self, kind, depth - 1
            )
            if found is not None:
                return found
        return self.leaf(kind)

    def leaf(self, kind: Kind) -> str:
        """A variable of the kind, or a constant."""
        if self.chance(0.75) or kind.name in ("tensor", "obj"):
            found = self.scope.find(lambda other: fits(other, kind))
            if found is not None:
                return found.name
        return self.constant(kind)

    def constant(self, kind: Kind) -> str:
        if kind.name == "tensor":
            sizes = tuple(self.random.choice((1, 2, 3)) if each in "nm" else 1 for each in kind.shape)
            found = self.scope.find(lambda other: other.name == "tensor" and other.shape == kind.shape)
            if found is not None and kind.shape:
                return f"torch.ones_like({found.name})"
            return tensor_literal(self.random, kind.dtype, sizes)
        if kind.name.startswith("class "):
            shape = next(each for each in self.scope.classes if each.name == kind.name[6:])
            return f"{shape.name}({', '.join(self.of(each, 1) for _, each in shape.attributes)})"
        return literal(self.random, kind)

    # ---------------------------------------------------------------------------------------------------- statements

    def block(self, depth: int, count: int) -> list[str]:
        """About ``count`` statements that may not run."""
        with self.scope.block():
            return self.statements(depth, count) or ["pass"]

    def statements(self, depth: int, count: int) -> list[str]:
        lines: list[str] = []
        for _ in range(count):
            for _ in range(6):
                made = self.random.choices([each for _, each in STATEMENTS], [weight for weight, _ in STATEMENTS])[0]
                found = made(self, depth)
                if found is not None:
                    lines += found
                    break
        return lines


def fits(actual: Kind, wanted: Kind) -> bool:
    """Whether a variable of one kind serves as another."""
    if wanted.name == "num":
        return actual.name in ("int", "float", "num")
    if wanted.name == "tensor":
        return actual.name == "tensor" and actual.shape == wanted.shape and actual.dtype == wanted.dtype
    return actual == wanted


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]
