"""A bool is an int where a count is asked for, ``*args`` that are given nothing are empty, of whatever type, and what
``__exit__`` is given may be None."""

from __future__ import annotations

import io
from typing import Any, Dict

import pytest
import torch
from torch import Tensor, nn

import rekindle
from tests.frontend.outcomes import agrees, outcome


def counts(b: bool, s: str):
    return (
        *(s * b, b * s, "-" * (len(s) > 1), [1] * b, range(3)[b], sum(range(b))),
        *(list(range(b)), list(range(b, 3)), [i for i in range(0, 3, b + 1)]),
    )


def total(*xs: int) -> int:
    return sum(xs)


def named_total(**xs: int) -> int:
    return sum(xs.values()) + len(xs)


def given_nothing(n: int):
    return total(), total(1, n), total(*(1, 2)), named_total(), named_total(a=n), sum(())


class Manager:
    def __init__(self, n: int) -> None:
        self.n = n

    def __enter__(self):
        self.n += 1
        return self.n

    def __exit__(self, kind, error, traceback):
        self.n += 10


def managed(n: int):
    manager = Manager(n)
    with manager as k:
        print(k, flush=True)  # noqa: T201
    print(n, manager.n, sep=",", flush=False)  # noqa: T201
    return k, manager.n


class HoldsAnything(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last: Any = None
        self.known: Dict[str, Any] = {}

    def forward(self, x: Tensor):
        self.last = x + 1
        self.known["x"] = x
        self.known["n"] = 3
        return self.last, self.known


@pytest.mark.parametrize(
    ("program", "calls"),
    [
        (counts, [(True, "ab"), (False, "x")]),
        (given_nothing, [(1,), (5,)]),
        (managed, [(1,)]),
        (HoldsAnything(), [(torch.ones(2),)]),
    ],
    ids=["counts", "given nothing", "managed", "holds anything"],
)
def test_as_eager(program: Any, calls: list[tuple[Any, ...]]) -> None:
    agrees(program, *calls)


def test_parameters_of_exit_may_be_none_after_loading() -> None:
    file = io.BytesIO()
    rekindle.save(rekindle.script(managed), file)
    file.seek(0)
    assert outcome(rekindle.load(file), (1,)) == outcome(managed, (1,))
