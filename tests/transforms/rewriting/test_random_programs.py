"""Random programs that write to what they share: no rule changes what they compute."""

from __future__ import annotations

import collections
import random

import torch

import rekindle
from rekindle.ir.verifier import verify
from rekindle.transforms.rewriting.rewrite_rules import RewriteRule, apply_rules, normalize, rewrite
from tests.transforms.rewriting.cases import compiled

RULES: list[RewriteRule] = [
    rewrite(compiled(takes, pattern), name=pattern, shares_alike="add_" in pattern)(compiled(takes, replacement))
    for takes, pattern, replacement in (
        ("x", "return x.clone()", "return x"),
        ("x", "return -(-x)", "return x"),
        ("x", "return x.t().t()", "return x"),
        ("x", "return x.t().contiguous()", "return x.t()"),
        ("x", "return x.relu().relu()", "return x.relu()"),
        ("x, y, z", "return x * y + x * z", "return x * (y + z)"),
        ("x, y, z", "return x * y + z", "return (x * y) - (-z)"),
        ("x, y", "return x + y, x * y", "return x - (-y), -(x * (-y))"),
        ("x, y", "return x.add_(y)", "return x.sub_(-y)"),
        ("x", "return x[0].neg()", "return x.neg()[0]"),
    )
]
VALUES = [
    *("{a} * {b}", "{a} + {b}", "-{a}", "{a}.clone()", "{a}.t()", "{a}.view(-1).view(4, 4)", "{a}.contiguous()"),
    *("{a}.relu()", "{a} * {b} + {c}", "{a} * {b} + {a} * {c}", "-(-{a})", "{a}.t().t()", "{a}.relu().relu()"),
    *("{a}.t().contiguous()", "{a}[0].neg() + {b}", "torch.cat([{a}[:2], {b}[2:]])", "{a}.add_({b})"),
]
WRITES = [
    *("{a}.add_({b})", "{a}[0].zero_()", "{a}.t().mul_(0.5)", "{a}.view(-1).add_(1)", "{a}.copy_({b})"),
    *("{a}[1:].mul_({b}[:3])", "{a}.neg_()"),
]


def random_program(draw: random.Random) -> str:
    """The body of a function of three matrices ``x, y, w``."""
    names, lines = ["x", "y", "w"], []
    for index in range(draw.randint(3, 9)):
        given = {key: draw.choice(names[-5:]) for key in "abc"}
        if draw.random() < 0.3:
            line = draw.choice(WRITES).format(**given)
            target = given["a"]
            # What a view or a sum gives may not be contiguous: write where that does not matter.
            lines.append(line.replace(f"{target}.view(-1)", f"{target}[2]"))
        elif draw.random() < 0.15:
            lines += [f"v{index} = {{a}} + {{b}}".format(**given), f"u{index} = {{a}} * {{b}}".format(**given)]
            names += [f"v{index}", f"u{index}"]
        else:
            lines.append(f"v{index} = " + draw.choice(VALUES).format(**given).replace(".view(-1)", ".reshape([-1])"))
            names.append(f"v{index}")
    more = draw.choice(["", " * 2.0"])
    lines.append(f"return {draw.choice(names[-3:])}{more}, {draw.choice(names)}{more}")
    return "\n".join(lines)


def outcome(function: rekindle.Function, shares: bool) -> list[torch.Tensor]:
    """Results, arguments, and all of them again after each result was written to by the caller."""
    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(4, 4, generator=generator, dtype=torch.float64) for _ in range(3)]
    if shares:
        given[1] = given[0].t()
    results = list(function(*given, 2))
    told = [item.clone() for item in (*results, *given)]
    for number, result in enumerate(results):
        result.add_(number + 1)
        told += [item.clone() for item in (*results, *given)]
    return told


def check(seed: int, applied: collections.Counter[str]) -> None:
    """One program: the rules in a random order, each as often as it fits."""
    draw = random.Random(seed)
    body = random_program(draw)
    wanted, function = compiled("x, y, w, n: int", body), compiled("x, y, w, n: int", body)
    normalize(function.graph)
    for rule in draw.sample(RULES, len(RULES)):
        applied[rule.name] += apply_rules(function, [rule], prepare=False)
        verify(function.graph)
    for shares in (False, True):
        with rekindle.optimized_execution(False):
            try:
                expected = outcome(wanted, shares)
            except RuntimeError:
                continue  # it writes to what it reads at once, which PyTorch refuses
            found = outcome(function, shares)
        torch.testing.assert_close(found, expected, msg=lambda text: f"seed {seed}\n{body}\n{text}")


def test_nobody_can_tell() -> None:
    applied: collections.Counter[str] = collections.Counter()
    for seed in range(100):
        check(seed, applied)
    assert set(applied) == {rule.name for rule in RULES}
    assert all(applied.values()), applied
