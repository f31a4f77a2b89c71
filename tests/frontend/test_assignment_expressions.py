"""Assignment expressions in operands that may not run: what a condition says of them, in programs and random ones."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import List

import pytest

import rekindle
from rekindle.errors import CompileError
from rekindle.ir.graph import Graph
from rekindle.runtime.executor import execute
from tests.frontend import assigning_conditions as p
from tests.frontend.outcomes import agrees, outcome
from tests.language.running import torch_loaded
from tests.support.frontend import compiled, python_function

NUMBERS = tuple((n,) for n in range(-4, 8))
PROGRAMS_OF_A_SEED = 25
PROVEN = (
    *(p.both_true, p.negated, p.both_false, p.asserted, p.loop, p.loop_until, p.comprehension, p.ternary_condition),
    *(p.both_arms, p.either_type, p.chain),
)
GUARDED = (p.may_be_unassigned, p.one_arm, p.deleted)
OTHERS = (p.nested, p.kept_truth, p.other_number, p.none_before, p.assigned_none)


@pytest.mark.parametrize("program", PROVEN, ids=lambda program: program.__name__)
def test_condition_implies_that_a_name_is_assigned(program) -> None:
    agrees(program, *NUMBERS)
    assert not raises_unbound(rekindle.script(program).graph)


@pytest.mark.parametrize("program", [*GUARDED, *OTHERS], ids=lambda program: program.__name__)
def test_programs_are_those_of_python(program) -> None:
    agrees(program, *NUMBERS)


@pytest.mark.parametrize("program", GUARDED, ids=lambda program: program.__name__)
def test_name_that_may_be_unassigned_has_a_guard(program) -> None:
    assert raises_unbound(rekindle.script(program).graph)


def test_generator_in_an_operand() -> None:
    def first_above(xs: List[int], n: int):
        if n > 0 and any((v := x) > n for x in xs):
            return v
        return 0

    agrees(first_above, ([1, 5, 2], 1), ([1, 5, 2], 7), ([], 1), ([3], -1))


def raises_unbound(graph: Graph) -> bool:
    """Return whether the graph has a check that a variable is assigned."""
    return any(
        node.inputs[1].node.attributes.get("value") == "builtins.UnboundLocalError"
        for node in graph.find_nodes("prim::RaiseException")
    )


# -------------------------------------------------------------------------------------- random programs


@dataclass(slots=True)
class Writer:
    """Writes a program whose conditions assign ``a``, ``b`` and ``c`` in nested operands, and statements read them."""

    choose: random.Random
    lines: list[str] = field(default_factory=list)

    def program(self) -> str:
        for _ in range(self.choose.randint(2, 4)):
            self.statement(1)
        begins = self.choose.choice(
            ["pass", "a = n; c = b = 2", "if n > 99: a = b = c = 0", "if n > 99 and (a := (b := (c := n))): pass"]
        )
        return "\n".join(["def f(n: int):", "    r = 0", f"    {begins}", *self.lines, "    return r"]) + "\n"

    def name(self) -> str:
        return self.choose.choice("abc")

    def number(self, depth: int) -> str:
        kind = self.choose.random()
        if kind < 0.3 or depth > 2:
            return f"n % {self.choose.randint(2, 4)}"
        if kind < 0.5:
            return self.name()
        if kind < 0.6:
            return f"({self.number(depth + 1)} if {self.condition(depth + 1)} else {self.number(depth + 1)})"
        return f"({self.name()} := {self.number(depth + 1)} + {self.choose.randint(0, 2)})"

    def condition(self, depth: int = 0) -> str:
        kind = self.choose.random()
        if kind < 0.45 and depth < 3:
            joined = self.choose.choice(["and", "or"])
            return f"({self.condition(depth + 1)} {joined} {self.condition(depth + 1)})"
        if kind < 0.6 and depth < 3:
            return f"not {self.condition(depth + 1)}"
        if kind < 0.68 and depth < 2:
            return f"({self.condition(depth + 1)} if {self.condition(depth + 1)} else {self.condition(depth + 1)})"
        if kind < 0.75:
            return f"0 < {self.number(depth + 1)} < {self.choose.randint(2, 4)}"
        return f"{self.number(depth + 1)} {self.choose.choice(['>', '==', '<='])} {self.choose.randint(0, 2)}"

    def statement(self, depth: int) -> None:
        indent, kind = "    " * depth, self.choose.random()
        if kind < 0.15:
            self.lines.append(f"{indent}r += {self.name()}")
        elif kind < 0.25:
            self.lines.append(f"{indent}assert {self.condition()} or n > {self.choose.randint(-2, 3)}")
        elif kind < 0.35:
            self.lines.append(f"{indent}r += sum([{self.name()} for x in range(3) if {self.condition(1)}])")
        elif kind < 0.45:
            self.lines.append(f"{indent}r += {self.name()} if {self.condition()} else {self.name()}")
        elif kind < 0.55 and depth < 3:
            self.lines += [f"{indent}while {self.condition()} and r < 40:", f"{indent}    r += 9"]
            self.statement(depth + 1)
        elif depth < 4:
            self.lines.append(f"{indent}if {self.condition()}:")
            self.statement(depth + 1)
            if self.choose.random() < 0.4:
                self.lines.append(f"{indent}else:")
                self.statement(depth + 1)
        else:
            self.lines.append(f"{indent}r += {self.name()}")


@pytest.mark.parametrize("seed", range(8))
def test_random_programs_are_those_of_python(seed: int) -> None:
    choose = random.Random(seed)
    values = compared = 0
    for _ in range(PROGRAMS_OF_A_SEED):
        text = Writer(choose).program()
        record = None
        try:
            record = compiled(text)
        except CompileError as error:
            reason = str(error)
        if record is None:
            assert "    pass" in text.split("r = 0")[1][:12], f"{reason}\n{text}"
            assert "is not defined" in reason, f"{reason}\n{text}"
            continue
        compared += 1
        function = python_function(text)
        for sample in NUMBERS:
            ours = outcome(lambda *arguments, record=record: execute(record, arguments), sample)
            theirs = outcome(function, sample)
            assert ours == theirs, f"{sample}\n{text}"
            values += theirs[0][0] == "int"
    assert compared >= PROGRAMS_OF_A_SEED // 2, "too few of the programs compile to say anything"
    assert values >= compared, "too few of the calls return to say anything"


@pytest.mark.parametrize(
    "program", [*PROVEN, p.nested, p.may_be_unassigned, p.kept_truth], ids=lambda each: each.__name__
)
def test_torch_reads_the_archive(program) -> None:
    loaded = torch_loaded(rekindle.script(program))
    for sample in NUMBERS:
        try:
            expected = program(*sample)
        except Exception:
            with pytest.raises(Exception, match=r"cannot access|AssertionError|referenced before"):
                loaded(*sample)
        else:
            assert loaded(*sample) == expected
