"""Why a rule did not match; and rules that cannot be."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import rekindle
from rekindle.errors import RuleError
from rekindle.transforms.rewriting.rewrite_rules import RewriteRule


def attention(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    weights = torch.softmax(q @ k.transpose(-2, -1) * scale, dim=-1)
    return weights @ v


@rekindle.rewrite(attention)
def fused(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, scale=scale)


def with_a_sum(x: Tensor, w: Tensor) -> Tensor:
    scores = x @ w.transpose(-2, -1) * 0.5
    return torch.softmax(scores + 1.0, dim=-1) @ w


def along_another_dimension(x: Tensor, w: Tensor) -> Tensor:
    return torch.softmax(x @ w.transpose(-2, -1) * 0.5, dim=0) @ w


def with_an_int(x: Tensor, w: Tensor, n: int) -> Tensor:
    return torch.softmax(x @ w.transpose(-2, -1) * n, dim=-1) @ w


def written_to(x: Tensor, w: Tensor) -> Tensor:
    scores = x @ w.transpose(-2, -1) * 0.5
    w[0].zero_()
    return torch.softmax(scores, dim=-1) @ w


def used_twice(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    weights = torch.softmax(x @ w.transpose(-2, -1) * 0.5, dim=-1)
    return weights @ w, weights


def without(x: Tensor, w: Tensor) -> Tensor:
    return x + w


def fits(x: Tensor, w: Tensor) -> Tensor:
    return torch.softmax(x @ w.transpose(-2, -1) * 0.5, dim=-1) @ w


def told(rule: RewriteRule, program: Any) -> str:
    text = str(rule.explain(rekindle.script(program)))
    return re.sub(
        r"\S*test_match_diagnosis\.py:\d+", "FILE:N", re.sub(r'File ".*", line \d+', 'File "FILE", line N', text)
    )


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (
            with_a_sum,
            """the rule 'fused' does not fit. Where it comes closest, 2 of 5 nodes fit; then the program has aten::add \
where aten::mul is expected
  File "FILE", line N
        return torch.softmax(scores + 1.0, dim=-1) @ w
                             ^^^^^^^^^^^^
and the pattern 'attention' has
  File "FILE", line N
        weights = torch.softmax(q @ k.transpose(-2, -1) * scale, dim=-1)
                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^""",
        ),
        (
            along_another_dimension,
            """the rule 'fused' does not fit. Where it comes closest, 5 of 5 nodes fit; then the program has 0 \
where -1 is expected
  File "FILE", line N
        return torch.softmax(x @ w.transpose(-2, -1) * 0.5, dim=0) @ w
               ^^^^^^^^^^^^^
and the pattern 'attention' has
  File "FILE", line N
        weights = torch.softmax(q @ k.transpose(-2, -1) * scale, dim=-1)
                  ^^^^^^^^^^^^^""",
        ),
        (
            with_an_int,
            """the rule 'fused' does not fit. Where it comes closest, 5 of 5 nodes fit; then the program has a int \
where 'scale' is a float
  %n.1""",
        ),
        (
            written_to,
            """the rule 'fused' fits at
  File "FILE", line N
        return torch.softmax(scores, dim=-1) @ w
               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
but is not applied: aten::zero_ is in between, and aten::transpose cannot be moved across it
  File "FILE", line N
        w[0].zero_()
        ^^^^^^^^^^""",
        ),
        (
            used_twice,
            """the rule 'fused' fits at
  File "FILE", line N
        return weights @ w, weights
               ^^^^^^^^^^^
but is not applied: %weights.1 is needed elsewhere: prim::TupleConstruct uses it too
  File "FILE", line N
        return weights @ w, weights
               ^^^^^^^^^^^^^^^^^^^^""",
        ),
        (without, "the rule 'fused' does not fit: the program has no aten::matmul"),
        (fits, "the rule 'fused' fits at\n  %10 : Tensor = aten::matmul(%9, %w.1) # FILE:N:11"),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_the_first_difference_is_told(program: Callable[..., Any], text: str) -> None:
    assert told(fused, program) == text


def test_a_condition_says_why() -> None:
    rule = rekindle.rewrite(attention, when=lambda match: f"the scale is {match.constant('scale')}")(
        fused.rewrite.replacement
    )
    assert told(rule, fits).endswith("but is not applied: the condition says: the scale is 0.5")
    rule = rekindle.rewrite(attention, when=lambda match: False)(fused.rewrite.replacement)
    assert told(rule, fits).endswith("but is not applied: the condition is not met")
    assert not rule.explain(rekindle.script(fits))
    assert rule.apply(rekindle.script(fits)) == 0


def one(x: Tensor) -> Tensor:
    return x + 1


def two(x: Tensor) -> tuple[Tensor, Tensor]:
    return x + 1, x + 2


def branches(x: Tensor, n: int) -> Tensor:
    return x + 1 if n > 1 else x


def nothing(x: Tensor) -> Tensor:
    return x


def writes(x: Tensor) -> Tensor:
    return x.add_(1)


def takes_more(x: Tensor, y: Tensor) -> Tensor:
    return x + y


def takes_int(x: int) -> int:
    return x + 1


def loops(x: Tensor) -> Tensor:
    return 1 + x + 1


def build(builder: Any, x: Any) -> Any:
    return x


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rekindle.rewrite(), "a rule needs a pattern: rewrite(pattern)"),
        (
            lambda: rekindle.rewrite(nothing)(one),
            "the pattern 'nothing' returns what it is given or a constant (%x.1), which every program has",
        ),
        (
            lambda: rekindle.rewrite(branches)(one),
            "the pattern 'branches' has control flow, which no rule can look for",
        ),
        (lambda: rekindle.rewrite(3)(one), "a int cannot be part of a rule; write a function, or IR text"),
        (lambda: rekindle.rewrite(two)(one), "the replacement of 'one' gives one result, the pattern 'two' 2 results"),
        (lambda: rekindle.rewrite(one)(writes), "the replacement of 'writes' writes to 'x', the pattern does not"),
        (lambda: rekindle.rewrite(writes)(one), "the pattern of 'one' writes to 'x', the replacement does not"),
        (
            lambda: rekindle.rewrite(one)(takes_more),
            "the replacement 'takes_more' takes 'y', which no pattern gives; there are 'x'",
        ),
        (
            lambda: rekindle.rewrite(one)(takes_int),
            "the replacement 'takes_int' takes 'x' as a int; in the pattern it is a Tensor",
        ),
        (
            lambda: rekindle.rewrite(one, builds=True)(build),
            (
                "the function that builds the replacement is called with (build, match, x): "
                "multiple values for argument 'x'"
            ),
        ),
        (
            lambda: rekindle.rewrite(one)(loops).apply(rekindle.script(one)),
            "the rules 'loops' do not terminate: what one makes, one of them rewrites again",
        ),
    ],
)
def test_rules_that_cannot_be(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(RuleError) as caught:
        make()
    assert str(caught.value).partition("\n")[0] == message


def test_rules_that_do_not_terminate_change_nothing() -> None:
    program = rekindle.create_function(rekindle.script(one).graph, "program")
    before = str(program.graph)
    with pytest.raises(RuleError, match="do not terminate"):
        rekindle.rewrite(one)(loops).apply(program)
    assert str(program.graph) == before
    x = torch.ones(3)
    assert torch.equal(program(x), one(x))


def test_a_replacement_of_another_type_is_not_put_in() -> None:
    explanation = rekindle.rewrite(one)(two).explain(rekindle.script(one))
    why = "is a Tensor, but the replacement gives a (Tensor, Tensor)"
    assert explanation.text.endswith(why)


def test_only_what_has_a_graph_is_rewritten() -> None:
    with pytest.raises(
        rekindle.errors.GraphError, match=r"^a function has no graph; compile it first: rekindle\.script"
    ):
        rekindle.rewrite(one)(takes_more_or_less).apply(one)  # type: ignore[arg-type]


def takes_more_or_less(x: Tensor) -> Tensor:
    return x - -1
