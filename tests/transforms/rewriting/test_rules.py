"""Thirty rules: where they fit they are applied and the answers stay, and nothing is applied that would be noticed."""

from __future__ import annotations

import functools

import pytest
import torch

import rekindle
from rekindle.ir.verifier import verify
from rekindle.passes import CanonicalizeOps
from rekindle.passes.pass_manager import run_passes
from rekindle.transforms.rewriting.rewrite_rules import RewriteRule, normalize
from tests.transforms.rewriting.cases import CASES, Case, compiled

rule_of = functools.cache(Case.rule)


def program(body: str, chunks: bool) -> rekindle.Function:
    """The program as a function of its own, in the form in which rules look at programs."""
    function = compiled("x, y, w, n: int", body)
    normalize(function.graph)
    if chunks:
        run_passes(function.graph, [CanonicalizeOps()])
    return function


def outcome(function: rekindle.Function) -> list[torch.Tensor]:
    """What it returns, what its arguments are then, and whether these change with the results."""
    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(4, 4, generator=generator) for _ in range(3)]
    found = function(*given, 2)
    results = list(found) if isinstance(found, tuple) else [found]
    told = [item.clone() for item in (*results, *given)]
    for result in results:
        result.add_(1)
    return [*told, *(item.clone() for item in (*results, *given))]


def check(rule: RewriteRule, body: str, times: int) -> None:
    function = program(body, "chunk" in body)
    wanted = outcome(rekindle.create_function(function.graph))
    before = str(function.graph)
    explanation = rule.explain(function, prepare=False)
    assert bool(explanation) == bool(times), explanation.text
    assert rule.apply(function, prepare=False) == times, explanation.text
    verify(function.graph)
    assert times or str(function.graph) == before
    torch.testing.assert_close(outcome(function), wanted)


def test_there_are_thirty() -> None:
    assert len({case.name for case in CASES}) >= 30
    assert all(case.fits and case.differs and case.aliasing for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_where_it_fits(case: Case) -> None:
    for body in case.fits:
        check(rule_of(case), body, case.times)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_where_the_program_differs(case: Case) -> None:
    for body in case.differs:
        check(rule_of(case), body, 0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_where_memory_is_shared(case: Case) -> None:
    for body, times in case.aliasing:
        check(rule_of(case), body, times)
