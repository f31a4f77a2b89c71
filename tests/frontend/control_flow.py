"""Programs that leave blocks early, as source text: every pair of exits in every shape, and random ones."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Iterator
from itertools import product

EXITS = {
    "break": "break",
    "continue": "continue",
    "return": "return x + 100",
    "raise": 'raise ValueError("stop")',
}

IN_LOOPS = {
    "one_after_the_other": """
        for i in range(n):
            if i == a:
                x += 1
                FIRST
            else:
                x += 2
            if x > b:
                x = x * 2
                SECOND
            x += 3
        """,
    "nested_branches": """
        for i in range(n):
            if i < b:
                if x == a:
                    x += 5
                    FIRST
                x = x * 2
            elif i == n - a:
                SECOND
            x += 1
        """,
    "nested_loops": """
        for i in range(n):
            for j in range(b):
                if j == a:
                    FIRST
                x += j
            if x > 20:
                x -= 7
                SECOND
            x += 1
        """,
    "both_branches": """
        while x < n:
            x += 2
            if x == a:
                x += 1
                FIRST
            else:
                x += b
                SECOND
        """,
    "deep_in_a_branch": """
        while x < n:
            x += 1
            if x > a:
                for k in range(x):
                    if k == b:
                        FIRST
                    if k > 2:
                        x += k
                        SECOND
                    x += 1
            else:
                x += 2
        """,
}

OUTSIDE = {
    "sequence": """
        if n > a:
            FIRST
        x += 1
        if n > b:
            x += a
            SECOND
        """,
    "nested": """
        if n > a:
            if n > b:
                FIRST
            x += 1
        else:
            y = b
            if y > 3:
                SECOND
            x += y
        """,
    "only_one_stays": """
        if n < a:
            FIRST
        elif n < b:
            SECOND
        else:
            y = n
        x += y
        """,
}


def systematic() -> dict[str, str]:
    """Every pair of exits in every shape, by a name that describes it."""
    programs: dict[str, str] = {}
    for shapes, exits in ((IN_LOOPS, list(EXITS)), (OUTSIDE, ["return", "raise"])):
        for (shape, body), first, second in product(shapes.items(), exits, exits):
            name = f"{shape}__{first}__{second}"
            text = textwrap.indent(textwrap.dedent(body.strip("\n")), "    ")
            text = text.replace("FIRST", EXITS[first]).replace("SECOND", EXITS[second])
            programs[name] = f"def {name}(n: int, a: int, b: int) -> int:\n    x = 0\n{text}    return x\n"
    return programs


def random_program(seed: int) -> str:
    """A function ``f(a, b, c)`` on ints, of assignments, branches, loops and exits."""
    head = ["def f(a: int, b: int, c: int) -> int:", "    y = 0"]
    return "\n".join([*head, *_Writer(seed).function(), "    return y", ""])


class _Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.loops = 0

    def function(self) -> Iterator[str]:
        lines, leaves = self.block(0, ["a", "b", "c", "y"], False, "    ", self.random.randint(2, 6))
        # Code after an exit is not compared: torch.jit emits it after a break, and it never runs.
        yield from lines[:-1] if leaves and len(lines) == 1 else lines

    def block(self, depth: int, known: list[str], in_loop: bool, indent: str, size: int) -> tuple[list[str], bool]:
        """The lines of a block, and whether it always leaves."""
        lines: list[str] = []
        for _ in range(size):
            kind = "assign" if depth >= 4 else self.pick(("assign", "assign", "if", "if", "loop", "exit"))
            if kind == "if":
                more, leaves = self.branches(depth, known, in_loop, indent)
            elif kind == "loop":
                more, leaves = self.loop(depth, known, indent), False
            elif kind == "exit" and depth > 0:
                more, leaves = [indent + self.exit(known, in_loop)], True
            else:
                more, leaves = [f"{indent}{self.pick('abcy')} = {self.number(known)}"], False
            lines += more
            if leaves:
                return lines, True
        return lines, False

    def branches(self, depth: int, known: list[str], in_loop: bool, indent: str) -> tuple[list[str], bool]:
        inner = indent + "    "
        then, then_leaves = self.block(depth + 1, known, in_loop, inner, self.random.randint(1, 4))
        lines = [f"{indent}if {self.condition(known)}:", *then]
        if self.random.random() < 0.5:
            return lines, False
        otherwise, else_leaves = self.block(depth + 1, known, in_loop, inner, self.random.randint(1, 4))
        return [*lines, f"{indent}else:", *otherwise], then_leaves and else_leaves

    def loop(self, depth: int, known: list[str], indent: str) -> list[str]:
        self.loops += 1
        name = f"i{self.loops}"
        head = [f"{indent}for {name} in range({self.pick(known)}):"]
        if self.random.random() < 0.4:
            head = [f"{indent}{name} = 0", f"{indent}while {name} < {self.pick(known)}:", f"{indent}    {name} += 1"]
        body, _ = self.block(depth + 1, [*known, name], True, indent + "    ", self.random.randint(1, 4))
        return [*head, *body]

    def exit(self, known: list[str], in_loop: bool) -> str:
        options = (f"return {self.number(known)}", 'raise Exception("x")', "break", "continue", "continue")
        return self.pick(options if in_loop else options[:2])

    def condition(self, known: list[str]) -> str:
        return f"{self.pick(known)} {self.pick(('<', '>', '==', '!='))} {self.pick([*known, '2', '3'])}"

    def number(self, known: list[str]) -> str:
        name = self.pick(known)
        return self.pick((name, str(self.random.randint(0, 4)), f"{name} + {self.pick(known)}", f"{name} - 2"))

    def pick(self, options: object) -> str:
        return self.random.choice(list(options))  # type: ignore[call-overload, no-any-return]
