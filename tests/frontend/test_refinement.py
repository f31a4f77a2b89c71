"""What conditions say of types, in random programs over two Optional ints: programs that compile agree with Python."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from rekindle.errors import CompileError
from rekindle.runtime.executor import execute
from tests.support.frontend import compiled, python_function

SAMPLES = ((1, 2), (None, 3), (2, None), (None, None), (5, -2))
PROGRAMS_OF_A_SEED = 30


@dataclass(slots=True)
class Writer:
    """Writes a program: statements that test, change and use ``x`` and ``y``, within branches and loops."""

    choose: random.Random
    left: int
    lines: list[str] = field(default_factory=list)

    def program(self) -> str:
        head = ["def f(x: Optional[int], y: Optional[int]):", "    r = 0", "    fuel = 6"]
        while self.left > 0:
            self.block(1, False)
        return "\n".join([*head, *self.lines, "    return r"]) + "\n"

    def name(self) -> str:
        return self.choose.choice("xy")

    def number(self) -> int:
        return self.choose.randint(-3, 5)

    def condition(self, depth: int = 0) -> str:
        name, kind = self.name(), self.choose.random()
        if kind < 0.25:
            return f"{name} is None"
        if kind < 0.55:
            return f"{name} is not None"
        if kind < 0.65:
            return f"{name} is not None and {name} > {self.number()}"
        if kind < 0.72:
            return f"{name} is None or {name} < {self.number()}"
        if kind < 0.85 and depth < 2:
            joined = self.choose.choice(["and", "or"])
            return f"({self.condition(depth + 1)} {joined} {self.condition(depth + 1)})"
        if kind < 0.92 and depth < 2:
            return f"not ({self.condition(depth + 1)})"
        return f"fuel % {self.choose.randint(2, 3)} == 1"

    def expression(self) -> str:
        name = self.name()
        either = f"({name} + 1 if {name} is not None else {self.choose.choice(['None', '7'])})"
        return self.choose.choice(["None", "None", str(self.number()), self.name(), either, "r % 5"])

    def block(self, depth: int, in_loop: bool) -> None:
        before = len(self.lines)
        for _ in range(self.choose.randint(1, 3)):
            if self.left > 0:
                self.left -= 1
                if self.statement(depth, "    " * depth, in_loop):
                    break
        if len(self.lines) == before:
            self.lines.append("    " * depth + "r += 1")

    def statement(self, depth: int, indent: str, in_loop: bool) -> bool:
        """Write a statement; returns whether what follows it would never be reached."""
        kind = self.choose.random()
        if kind < 0.25:
            self.lines.append(f"{indent}{self.name()} = {self.expression()}")
        elif kind < 0.33:
            self.lines.append(f"{indent}r += {self.name()}")
        elif kind < 0.45:
            name = self.name()
            self.lines += [f"{indent}if {name} is not None and {self.condition()}:", f"{indent}    r += 2 * {name}"]
        elif kind < 0.68 and depth < 5:
            self.lines.append(f"{indent}if {self.condition()}:")
            self.block(depth + 1, in_loop)
            if self.choose.random() < 0.5:
                self.lines.append(f"{indent}else:")
                self.block(depth + 1, in_loop)
        elif kind < 0.78 and depth < 5:
            self.lines += [f"{indent}while ({self.condition()}) and fuel > 0:", f"{indent}    fuel -= 1"]
            self.block(depth + 1, True)
        elif kind < 0.86 and depth < 5:
            self.lines.append(f"{indent}for i{depth} in range({self.choose.randint(1, 3)}):")
            self.block(depth + 1, True)
        elif kind < 0.93 and in_loop:
            self.lines.append(f"{indent}{self.choose.choice(['break', 'continue'])}")
            return True
        elif kind < 0.96:
            self.lines.append(f"{indent}return r")
            return True
        else:
            self.lines.append(f"{indent}assert {self.condition()}")
        return False


@pytest.mark.parametrize("seed", range(10))
def test_what_compiles_answers_as_python_does(seed: int) -> None:
    choose = random.Random(seed)
    answered = 0
    for _ in range(PROGRAMS_OF_A_SEED):
        text = Writer(choose, choose.randint(6, 22)).program()
        try:
            record = compiled(text)
        except CompileError:
            continue  # x or y is used where it is None, or set to None within a loop
        answered += 1
        function = python_function(text)
        for sample in SAMPLES:
            ours = outcome(lambda *arguments, record=record: execute(record, arguments), sample)
            assert ours == outcome(function, sample), f"{sample}\n{text}"
    assert answered >= PROGRAMS_OF_A_SEED // 2, "too few of the programs compile to say anything"


def outcome(function: Callable[..., Any], sample: tuple[Any, ...]) -> Any:
    try:
        return function(*sample)
    except AssertionError:
        return "the assertion fails"
    except TypeError as error:
        return str(error)
