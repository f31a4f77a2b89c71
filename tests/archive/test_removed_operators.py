"""Replacements of removed operators, beside the operators where PyTorch has them. Golden archives show the rest."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import rekindle.ops  # noqa: F401 (fills the registry)
from rekindle.archive.removed_operators import REMOVED_OPERATORS
from rekindle.archive.upgraders import upgraders_of
from rekindle.frontend.calls.torchscript_builtins import read_functions
from rekindle.program.function import Function

FUNCTIONS = [(kind, record) for text in REMOVED_OPERATORS for kind, record in read_functions(text)]
HAS_LAST = torch._C._dispatch_has_kernel("aten::qr")
"""PyTorch 2.13 and before have qr and cholesky."""


def replacement(name: str, index: int = 0) -> Function:
    return Function([record for kind, record in FUNCTIONS if kind == f"aten::{name}"][index])


def matrices() -> list[torch.Tensor]:
    torch.manual_seed(1)
    x = torch.randn(2, 4, 4, dtype=torch.float64)
    z = torch.randn(3, 3, dtype=torch.complex128)
    eye = torch.eye(4, dtype=torch.float64)
    return [x @ x.mT + 2 * eye, (x @ x.mT + 2 * eye + 0.1 * x)[0], z @ z.mH + 2 * torch.eye(3), eye[:0, :0]]


@pytest.mark.parametrize(("kind", "record"), FUNCTIONS, ids=lambda each: each if isinstance(each, str) else "")
def test_every_one_compiles(kind: str, record: Any) -> None:
    assert list(record.graph.block.nodes), record.schema


def test_what_this_pytorch_has_is_not_replaced() -> None:
    find = upgraders_of(10)
    assert len(find("aten::symeig")) == 1
    assert len(find("aten::matrix_rank")) == 2
    assert [len(find(f"aten::{name}")) for name in ("qr", "cholesky")] == ([0, 0] if HAS_LAST else [2, 2])


@pytest.mark.skipif(not HAS_LAST, reason="removed in PyTorch 2.14")
@pytest.mark.filterwarnings("ignore:.*is deprecated in favor of:UserWarning")
def test_answers_are_those_of_the_operators() -> None:
    for x in matrices():
        for flag in (False, True):
            # The operator reads one triangle, and so does the replacement: the other may differ.
            torch.testing.assert_close(replacement("cholesky")(x, flag), torch.cholesky(x, flag))
            torch.testing.assert_close(tuple(replacement("qr")(x, flag)), tuple(torch.qr(x, flag)))
    x = matrices()[1]
    torch.testing.assert_close(tuple(replacement("qr")(x[:, :2], False)), tuple(torch.qr(x[:, :2], False)))
    own, theirs = torch.empty(0, dtype=x.dtype), torch.empty(0, dtype=x.dtype)
    assert replacement("cholesky", 1)(x, out=own) is own
    torch.testing.assert_close(own, torch.cholesky(x, out=theirs))


def test_least_squares_of_few_rows_are_refused() -> None:
    with pytest.raises(NotImplementedError, match=r"^torch.lstsq of fewer rows than columns was removed from PyTorch"):
        replacement("lstsq")(torch.ones(2, 1), torch.ones(2, 3))


def test_solve_of_a_vector_of_batches() -> None:
    """``self`` is a matrix, however many dimensions the other has."""
    A = torch.stack([torch.eye(2), 2 * torch.eye(2)])
    solution, factors = replacement("solve")(torch.tensor([[2.0, 4.0], [6.0, 8.0]]), A)
    assert solution.tolist() == [[[2.0, 4.0], [6.0, 8.0]], [[1.0, 2.0], [3.0, 4.0]]]
    assert factors.shape == (2, 2, 2)
