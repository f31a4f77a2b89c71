"""Random programs with nested loops, branches, lists and in-place writes, and what they mean without writes.

``python -m tests.transforms.derivatives.random_programs 500`` compares so many of them.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field

import torch
from torch import Tensor

import rekindle

VARIABLES = ("a", "b", "c")


@dataclass(slots=True)
class Writer:
    """Writes one program twice: as it is, and with new values in place of writes."""

    draw: random.Random
    program: list[str] = field(default_factory=list)
    plain: list[str] = field(default_factory=list)
    loops: list[str] = field(default_factory=list)

    def line(self, depth: int, text: str, plain: str | None = None) -> None:
        self.program.append("    " * depth + text)
        self.plain.append("    " * depth + (text if plain is None else plain))

    def tensor(self, size: int = 2) -> str:
        """An expression of three floats."""
        draw = self.draw
        if size == 0 or draw.random() < 0.2:
            return draw.choice((*VARIABLES, "items[-1]", "items[0]"))
        a, b = self.tensor(size - 1), self.tensor(size - 1)
        return draw.choice(
            (
                *(f"({a} * {b})", f"({a} - {b})", f"torch.sin({a})", f"({a} + {self.number()})"),
                *(f"({a} * {b}.mean())", f"torch.where({a} > 0.2, {a}, {b})", f"{a}.cumsum(0)", f"{a}.exp()"),
            )
        )

    def number(self) -> str:
        return self.draw.choice((*self.loops, "n", "0.5", "2"))

    def condition(self) -> str:
        draw = self.draw
        counter = draw.choice((*self.loops, "n"))
        return draw.choice((f"{counter} % 2 == 0", f"{counter} > 1", f"bool({draw.choice(VARIABLES)}.sum() > 0.3)"))

    def block(self, depth: int, nesting: int) -> None:
        for _ in range(self.draw.randint(1, 4)):
            self.statement(depth, nesting)

    def statement(self, depth: int, nesting: int) -> None:
        draw = self.draw
        v, e = draw.choice(VARIABLES), self.tensor()
        kind = draw.randrange(10 if nesting else 6)
        if kind == 0:
            self.line(depth, f"{v} = torch.tanh({e})")
        elif kind == 1:
            self.line(depth, f"{v} += torch.tanh({e})", f"{v} = {v} + torch.tanh({e})")
        elif kind == 2:
            k = draw.randrange(3)
            plain = f"{v} = torch.cat([{v}[:{k}], torch.tanh({e}).sum().view(1), {v}[{k + 1}:]])"
            self.line(depth, f"{v}[{k}] = torch.tanh({e}).sum()", plain)
        elif kind == 3:
            plain = f"{v} = torch.cat([{v}[:1], {v}[1:] * torch.tanh({e})[:2]])"
            self.line(depth, f"{v}[1:].mul_(torch.tanh({e})[:2])", plain)
        elif kind == 4:
            self.line(depth, f"items.append(torch.tanh({e}))", f"items = items + [torch.tanh({e})]")
        elif kind == 5 and self.loops:
            self.line(depth, f"if {self.condition()}:")
            self.line(depth + 1, draw.choice(("break", "continue")))
        elif kind in (6, 7):
            self.branch(depth, nesting)
        elif kind in (8, 9):
            counter = f"i{len(self.loops)}"
            self.line(depth, f"for {counter} in range({draw.choice(('n', '2', *self.loops))}):")
            self.loops.append(counter)
            self.block(depth + 1, nesting - 1)
            self.loops.pop()

    def branch(self, depth: int, nesting: int) -> None:
        self.line(depth, f"if {self.condition()}:")
        self.block(depth + 1, nesting - 1)
        self.line(depth + 1, "pass")
        if self.draw.random() < 0.6:
            self.line(depth, "else:")
            self.block(depth + 1, nesting - 1)
            self.line(depth + 1, "pass")


def texts(seed: int) -> tuple[str, str]:
    """A program, and the same without writes."""
    writer = Writer(random.Random(seed))
    writer.line(0, "def f(x: Tensor, y: Tensor, n: int) -> Tensor:")
    for name, value in zip(VARIABLES, ("x * 1", "y * 1", "x * y"), strict=True):
        writer.line(1, f"{name} = {value}")
    writer.line(1, "items = [x + y]")
    writer.block(1, 3)
    writer.block(1, 3)
    writer.line(1, "return (a + 2 * b - c + items[-1] * len(items)).sum()")
    return "\n".join(writer.program) + "\n", "\n".join(writer.plain) + "\n"


def compare(seed: int) -> None:
    """Compare gradients, and those of the sum of their squares, with what ``torch.func`` says without writes."""
    program, plain = texts(seed)
    function = rekindle.CompilationUnit(program).f  # type: ignore[attr-defined]
    names: dict[str, object] = {"torch": torch, "Tensor": Tensor}
    exec(plain, names)
    eager = names["f"]
    torch.manual_seed(seed)
    x, y = torch.rand(2, 3, dtype=torch.float64).unbind()
    gradient = rekindle.grad(function, argnums=(0, 1))
    for n in (0, 3):
        expected = torch.func.grad(eager, argnums=(0, 1))(x, y, n)
        torch.testing.assert_close(gradient(x.clone(), y.clone(), n), expected)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    for seed in range(count):
        try:
            compare(seed)
        except Exception as error:
            print(f"seed {seed}: {type(error).__name__}: {error}\n{texts(seed)[0]}")  # noqa: T201
            raise
    print(f"{count} programs agree")  # noqa: T201


if __name__ == "__main__":
    main()
