"""Numbers of dimensions that an operator rejects for one example are rejected for a batch of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import rekindle
from rekindle.transforms.vmap.batching_rule import operators_with_rules
from rekindle.transforms.vmap.rules.ranks import RANKS, checks

R = torch.randn

REJECTED: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...], str]] = {
    "mm": (lambda a, b: torch.mm(a, b), (R(2, 3, 4, 5), R(2, 5, 6)), "mm: 'self' must have 2 dimensions, got 3"),
    "mm of a vector": (lambda a, b: torch.mm(a, b), (R(2, 3), R(2, 3, 3)), "mm: 'self' must have 2 dimensions, got 1"),
    "bmm": (lambda a, b: torch.bmm(a, b), (R(2, 4, 5), R(2, 5, 6)), "bmm: 'self' must have 3 dimensions, got 2"),
    "mv": (lambda a, b: torch.mv(a, b), (R(2, 3, 4, 5), R(2, 5)), "mv: 'self' must have 2 dimensions, got 3"),
    "outer": (lambda a, b: torch.outer(a, b), (R(2, 4, 5), R(2, 4, 5)), "outer: 'self' must have 1 dimension, got 2"),
    "matmul": (lambda a, b: torch.matmul(a, b), (R(2), R(2)), "matmul: 'self' must have at least 1 dimension, got 0"),
    "mT": (lambda a: a.mT, (R(2, 4),), "mT: 'self' must have at least 2 dimensions, got 1"),
    "H": (lambda a: a.H, (R(2, 4),), "matrix_H: 'self' must have 0 or 2 dimensions, got 1"),
    "t": (lambda a: a.t(), (R(2, 4, 3, 3),), "t: 'self' must have 0 to 2 dimensions, got 3"),
    "trace": (lambda a: torch.trace(a), (R(2, 4, 3, 3),), "trace: 'self' must have 2 dimensions, got 3"),
    "tril": (lambda a: torch.tril(a), (R(2, 4),), "tril: 'self' must have at least 2 dimensions, got 1"),
    "inverse": (lambda a: torch.linalg.inv(a), (R(4, 4),), "linalg_inv: 'A' must have at least 2 dimensions, got 1"),
    "cdist": (lambda a, b: torch.cdist(a, b), (R(2, 4), R(2, 4)), "cdist: 'x1' must have at least 2 dimensions, got 1"),
    "cross": (
        lambda a, b: torch.linalg.cross(a, b),
        (R(2, 3), R(2, 4, 3)),
        "linalg.cross: inputs must have the same number of dimensions.",
    ),
    "multi_dot": (
        lambda a, b: torch.linalg.multi_dot([a, b]),
        (R(2, 3, 4, 5), R(2, 3, 5, 4)),
        "linalg_multi_dot: tensor 0 must have 1 to 2 dimensions, got 3",
    ),
    "index_add": (
        lambda a, i, s: torch.index_add(a, 0, i, s),
        (R(3, 4), torch.zeros(3, dtype=torch.long), R(3)),
        "index_add: 'source' must have 1 dimensions, as 'self', got 0",
    ),
    "linear": (
        lambda a, b: torch.nn.functional.linear(a, b),
        (R(2, 3, 4), R(2, 3, 4, 4)),
        "linear: 'weight' must have 1 to 2 dimensions, got 3",
    ),
    "attention": (
        lambda a: torch.nn.functional.scaled_dot_product_attention(a, a, a),
        (R(2, 4),),
        "scaled_dot_product_attention: 'query' must have at least 2 dimensions, got 1",
    ),
    "norm": (
        lambda a: torch.linalg.norm(a, 2),
        (R(2, 3, 4, 4),),
        "linalg_norm: with 'ord' alone 'self' must have 1 to 2 dimensions, got 3",
    ),
    "norm by name": (
        lambda a: torch.linalg.norm(a, "fro"),
        (R(2, 3, 4, 4),),
        "linalg_norm: with a name as 'ord' 'self' must have 2 dimensions, got 3",
    ),
    "reflection": (
        lambda a: torch.nn.functional.pad(a, (1, 1), mode="reflect"),
        (R(2, 4),),
        "pad: 'self' must have 2 to 3 dimensions, got 1",
    ),
    "prelu": (
        lambda a, w: torch.nn.functional.prelu(a, w),
        (R(2, 3), R(2, 3)),
        "shape '[2, 1]' is invalid for input of size 6",
    ),
    "roll": (lambda a: torch.roll(a, 1, 0), (R(3),), "Dimension specified as 0 but tensor has no dimensions"),
    "pad": (
        lambda a: torch.nn.functional.pad(a, (1, 1, 1, 1)),
        (R(2, 4),),
        (
            "Padding length should be less than or equal to two times the input dimension but got padding length 4 and "
            "input of dimension 1"
        ),
    ),
}


@pytest.mark.parametrize("name", REJECTED)
def test_what_an_example_is_rejected_for(name: str) -> None:
    function, batches, text = REJECTED[name]
    with pytest.raises((RuntimeError, IndexError)):
        function(*(batch[0] for batch in batches))
    with pytest.raises((RuntimeError, IndexError)) as caught:
        rekindle.vmap(function)(*batches)
    assert str(caught.value).startswith(f"{text}\n") or str(caught.value) == text


ACCEPTED: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "matmul of vectors": (lambda a, b: torch.matmul(a, b), (R(2, 3), R(2, 3))),
    "solve": (lambda a, b: torch.linalg.solve(a, b), (R(2, 3, 3), R(2, 3))),
    "multi_dot": (lambda a, b, c: torch.linalg.multi_dot([a, b, c]), (R(2, 4), R(2, 4, 3), R(2, 3))),
    "index_add of numbers": (
        lambda a, i, s: torch.index_add(a, 0, i, s),
        (R(3), torch.zeros(3, dtype=torch.long), R(3)),
    ),
    "roll without dimensions": (lambda a: torch.roll(a, 1), (R(3),)),
    "flip": (lambda a: torch.flip(a, (0,)), (R(3),)),
    "H": (lambda a: a.H, (R(3, 2, 4),)),
    "nuclear_norm": (lambda a: torch.nuclear_norm(a), (R(2, 3, 4, 5),)),
    "distance of numbers": (lambda a, b: torch.nn.functional.pairwise_distance(a, b), (R(3), R(3))),
    "distance": (lambda a, b: torch.nn.functional.pairwise_distance(a, b, keepdim=True), (R(3, 2, 4), R(3, 2, 4))),
    "reflection": (lambda a: torch.nn.functional.pad(a, (1, 1), mode="reflect"), (R(2, 3, 4),)),
    "prelu": (lambda a, w: torch.nn.functional.prelu(a, w), (R(2, 3), R(2, 1))),
    "pad": (lambda a: torch.nn.functional.pad(a, (1, 1, 1, 1)), (R(2, 4, 4),)),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_an_example_is_accepted_for(name: str) -> None:
    function, batches = ACCEPTED[name]
    expected = torch.stack([function(*parts) for parts in zip(*batches, strict=True)])
    torch.testing.assert_close(rekindle.vmap(function)(*batches), expected)


def test_an_argument_that_is_the_same_for_all_examples_is_checked_too() -> None:
    with pytest.raises(RuntimeError) as caught:
        rekindle.vmap(lambda a, b: torch.mm(a, b), in_dims=(0, None))(R(2, 3, 4), R(2, 4, 5))
    assert str(caught.value).startswith("mm: 'mat2' must have 2 dimensions, got 3")


def test_the_table_names_operators_with_rules() -> None:
    assert set(RANKS) <= set(operators_with_rules())
    assert checks("t", {"self"}) == ["    check_rank(self, True, 0, 2, \"t: 'self' must have 0 to 2 dimensions\")\n"]
    assert checks("add.Tensor", {"self"}) == []
