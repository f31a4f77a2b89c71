"""Composite operators: kernels answer as PyTorch's operators do, with infinities and NaNs too."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from typing import Any, Final

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import rekindle
from rekindle.codegen.operators import COMPOSITES

LOSSES: Final = {
    "mse_loss": "torch.ops.aten.mse_loss(x, y, {r})",
    "l1_loss": "torch.nn.functional.l1_loss(x, y, reduction={s!r})",
    "smooth_l1_loss": "torch.nn.functional.smooth_l1_loss(x, y, reduction={s!r}, beta=0.7)",
    "huber_loss": "torch.ops.aten.huber_loss(x, y, {r}, 0.7)",
    "soft_margin_loss": "torch.ops.aten.soft_margin_loss(x, y, {r})",
    "binary_cross_entropy_with_logits": "torch.binary_cross_entropy_with_logits(x, y, None, None, {r})",
    "binary_cross_entropy": "torch.ops.aten.binary_cross_entropy(x.nan_to_num().sigmoid(), y.tanh(), None, {r})",
    "kl_div": "torch.kl_div(x, y, {r})",
    "poisson_nll_loss": "torch.poisson_nll_loss(x, y, True, False, 1e-8, {r})",
    "hinge_embedding_loss": "torch.hinge_embedding_loss(x, y.sign(), 1.0, {r})",
    "margin_ranking_loss": "torch.margin_ranking_loss(x, x.flip(0), y.sign(), 0.25, {r})",
    "cosine_embedding_loss": "torch.cosine_embedding_loss(x, y, (x[:, 0] > 0).to(x.dtype) * 2 - 1, 0.1, {r})",
    "triplet_margin_loss": "torch.triplet_margin_loss(x, y, x.flip(0), 1.0, 2.0, 1e-6, False, {r})",
}
"""Expressions of ``x`` and ``y``, with a reduction as a number or as a word."""

OTHERS: Final = {
    "glu": ["torch.ops.aten.glu(x, -1)", "torch.ops.aten.glu(x, 0)"],
    "prelu": ["torch.prelu(x, y[0, :1])", "torch.prelu(x, y[0])"],
    "softshrink": ["torch.nn.functional.softshrink(x, 0.25)"],
    "hardshrink": ["torch.hardshrink(x, 0.25)"],
    "rms_norm": [
        "torch.rms_norm(x, [6])",
        "torch.rms_norm(x, [6], y[0], 1e-3)",
        "torch.rms_norm(x, [4, 6], y, None)",
    ],
    "lstm_cell": [
        "torch.lstm_cell(x, [y, x], {w}.view(24, 6), {w}.sin().view(24, 6), {w}[:24], None)",
        "torch.lstm_cell(x, [y, x], {w}.view(24, 6), {w}.sin().view(24, 6))",
    ],
    "gru_cell": ["torch.gru_cell(x, y, {w}[:108].view(18, 6), {w}[18:126].view(18, 6), {w}[:18], {w}[9:27])"],
    "rnn_tanh_cell": ["torch.rnn_tanh_cell(x, y, {w}[:36].view(6, 6), {w}[36:72].view(6, 6), {w}[:6], {w}[6:12])"],
    "rnn_relu_cell": ["torch.rnn_relu_cell(x, y, {w}[:36].view(6, 6), {w}[36:72].view(6, 6))"],
    "pairwise_distance": [
        "torch.pairwise_distance(x, y)",
        "torch.pairwise_distance(x, y, 1.0, 1e-3, True)",
        "torch.pairwise_distance(x, y[0], math.inf)",
    ],
    "cosine_similarity": ["torch.cosine_similarity(x, y, 1)", "torch.cosine_similarity(x, y, 0, 0.5)"],
    "cross_entropy_loss": [
        "torch.nn.functional.cross_entropy(x, torch.tensor([0, 5, 2, 1]))",
        "torch.nn.functional.cross_entropy(x, torch.tensor([0, 5, 2, 1]), reduction='none')",
        "torch.nn.functional.cross_entropy(x, torch.tensor([0, 5, 2, 1]), ignore_index=2, reduction='sum')",
        "torch.nn.functional.cross_entropy(x, torch.tensor([0, 5, 2, 1]), ignore_index=2)",
    ],
    "nll_loss_nd": [
        "torch.nn.functional.nll_loss(x, torch.tensor([0, 5, 2, 1]))",
        "torch.nn.functional.nll_loss(x, torch.tensor([0, 5, 2, 1]), ignore_index=1, reduction='none')",
    ],
    "kl_div": ["torch.kl_div(x, y, 1, log_target=True)", "torch.kl_div(x, (y - 1).clamp(0, 1), 0)"],
    "poisson_nll_loss": [
        "torch.poisson_nll_loss(x.abs(), y.abs() * 2, False, True, 1e-8, 0)",
        "torch.poisson_nll_loss(x, y.abs() * 2, True, True, 1e-8, 1)",
    ],
    "binary_cross_entropy_with_logits": [
        "torch.binary_cross_entropy_with_logits(x, y, y[0], x[0], 1)",
        "torch.binary_cross_entropy_with_logits(x, y, None, y[0], 0)",
    ],
    "binary_cross_entropy": ["torch.ops.aten.binary_cross_entropy((x > 0).to(x.dtype), y.tanh(), y[0])"],
    "triplet_margin_loss": ["torch.triplet_margin_loss(x, y, x.flip(0), 0.5, 1.0, 1e-6, True, 0)"],
}

WEIGHTS: Final = "torch.linspace(-9, 9, 144, dtype=x.dtype).sin()"


def _expressions() -> list[tuple[str, str]]:
    found = []
    for name, expression in LOSSES.items():
        for number, word in enumerate(("none", "mean", "sum")):
            found.append((name, expression.format(r=number, s=word)))
    found += [(name, each.format(w=WEIGHTS)) for name, listed in OTHERS.items() for each in listed]
    return found


def _program(expression: str) -> tuple[Any, Callable[..., Any]]:
    source = f"def f(x: Tensor, y: Tensor):\n    return {expression.replace('math.inf', 'float(1e400)')}\n"
    names: dict[str, Any] = {"torch": torch, "math": math, "Tensor": Tensor}
    exec(source, names)
    return rekindle.CompilationUnit(source).f, names["f"]


def test_every_composite_is_tested() -> None:
    """Those of backward graphs are tested in ``test_gradient_products.py``."""
    composites = {name.removeprefix("aten::") for name in COMPOSITES if not name.startswith("autodiff::")}
    assert {name for name, _ in _expressions()} == composites


def _inputs(dtype: torch.dtype, special: bool) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(7)
    x, y = (torch.randn(4, 6, dtype=dtype, generator=generator) for _ in range(2))
    y = y.abs() + 0.125
    if special:
        x.view(-1)[[1, 8, 15, 22]] = torch.tensor([math.nan, math.inf, -math.inf, 0.0], dtype=dtype)
    return x, y


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize(("name", "expression"), _expressions())
def test_answers_are_those_of_pytorch(name: str, expression: str, dtype: torch.dtype, refused: list[str]) -> None:
    compiled, eager = _program(expression)
    calls = _calls_of(compiled, name)
    with torch.no_grad():
        for special in (False, True, False):
            x, y = _inputs(dtype, special)
            # matrices that are multiplied have to lie in rows
            others = [(_transposed(x), y), (x, _transposed(y)), (_transposed(x), _transposed(y))]
            for a, b in [(x, y), *([] if name.endswith("cell") else others)]:
                torch.testing.assert_close(compiled(a, b), eager(a, b), equal_nan=True, check_stride=True)
    assert set(refused) <= {"rows in another order than those of the result"}
    assert calls() == []


def _transposed(x: Tensor) -> Tensor:
    return x.t().contiguous().t()


def _calls_of(compiled: Any, name: str) -> Callable[[], list[str]]:
    """The operators called ``name`` that are in no kernel, once the program has run."""

    def left() -> list[str]:
        report = rekindle.report(compiled)
        return [each.operator.kind for each in report.unfused if each.operator.kind == f"aten::{name}"]

    return left


@pytest.mark.parametrize(
    ("expression", "make"),
    [
        ("torch.ops.aten.mse_loss(x, y, 1)", lambda x: (x.to(torch.int64), x.to(torch.int64))),
        ("torch.ops.aten.glu(x, -1) + y.sum()", lambda x: (x[:, :5], x)),
        ("torch.ops.aten.huber_loss(x, y, 1, -1.0)", lambda x: (x, x)),
        ("torch.nn.functional.cross_entropy(x, y.to(torch.long))", lambda x: (x, torch.tensor([0.0, 1.0, 2.0, 9.0]))),
        ("torch.nn.functional.cross_entropy(x, y.to(torch.long))", lambda x: (x, torch.tensor([0.0, 1.0, 2.0, -1.0]))),
        ("torch.nn.functional.nll_loss(x, y.to(torch.long))", lambda x: (x, torch.tensor([0.0, 1.0, 2.0]))),
        ("torch.triplet_margin_loss(x, y, y[0])", lambda x: (x, x)),
        ("torch.prelu(x, y[0])", lambda x: (x, x[:, :4])),
        ("torch.ops.aten.binary_cross_entropy(x, y)", lambda x: (x.sigmoid() - 0.9, x.sigmoid())),
        (
            "torch.ops.aten.binary_cross_entropy(x, y).exp()",
            lambda x: (x.sigmoid().index_fill(1, torch.tensor([5]), 1.01), x),
        ),
        (
            "torch.ops.aten.binary_cross_entropy(x, y)",
            lambda x: (x.sigmoid().index_fill(1, torch.tensor([2]), math.nan), x),
        ),
        ("torch.ops.aten.binary_cross_entropy(x, y)", lambda x: (x.sigmoid(), x.sigmoid() * 3)),
        ("torch.ops.aten.binary_cross_entropy(x, y)", lambda x: (x.sigmoid(), x.sigmoid() - 1)),
        ("torch.ops.aten.binary_cross_entropy(x, y)", lambda x: (x.sigmoid(), x * math.nan)),
        ("torch.ops.aten.binary_cross_entropy(x, y, None, 0)", lambda x: (x.sigmoid(), x[0])),
        ("torch.ops.aten.binary_cross_entropy(x[0], x[0], y)", lambda x: (x.sigmoid(), x)),
        ("torch.nn.functional.softshrink(x, -1.0) + y", lambda x: (x, x)),
        ("torch.nn.functional.celu(x, 0.0) + y", lambda x: (x, x)),
        ("torch.cosine_similarity(x, y, eps=-1.0) + y", lambda x: (x, x)),
    ],
)
def test_errors_are_those_of_pytorch(expression: str, make: Any, refused: list[str]) -> None:
    compiled, eager = _program(expression)
    inputs = make(_inputs(torch.float32, False)[0])
    with torch.no_grad():
        with pytest.raises((RuntimeError, IndexError, ValueError)) as expected:
            eager(*inputs)
        for _ in range(3):
            with pytest.raises(type(expected.value)) as found:
                compiled(*inputs)
            assert str(expected.value).splitlines()[0] in str(found.value)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.complex64])
def test_other_dtypes_are_left_to_pytorch(dtype: torch.dtype, refused: list[str]) -> None:
    compiled, eager = _program("torch.pairwise_distance(x, y)")
    x, y = _inputs(torch.float32, False)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(compiled(x.to(dtype), y.to(dtype)), eager(x.to(dtype), y.to(dtype)))
    assert set(refused) == {"elements of torch.complex64" if dtype.is_complex else "a composite of such dtypes"}


@pytest.mark.usefixtures("blas_is_faster")
def test_large_cells_are_left_to_pytorch(refused: list[str]) -> None:
    cell = torch.nn.LSTMCell(256, 256)
    compiled = rekindle.script(cell)
    x = torch.randn(32, 256)
    with torch.no_grad():
        for _ in range(4):
            torch.testing.assert_close(compiled(x), cell(x))
    assert set(refused) == {"a product of matrices so large that BLAS is faster"}


def test_a_module_whose_weights_are_none() -> None:
    """An attribute that is None by its type is a constant."""
    norm = torch.nn.InstanceNorm2d(3)
    compiled = rekindle.script(norm)
    x = torch.randn(2, 3, 4, 4)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(compiled(x), norm(x))
    assert rekindle.report(compiled).unfused == ()


def test_gradients_are_those_of_pytorch() -> None:
    x, y = _inputs(torch.float64, False)
    compiled = rekindle.script(two_losses)
    for _ in range(3):
        weight = x.clone().requires_grad_()
        expected = torch.autograd.grad(two_losses(weight, y), weight)
        torch.testing.assert_close(torch.autograd.grad(compiled(weight, y), weight), expected)


def two_losses(x: Tensor, y: Tensor) -> Tensor:
    return F.smooth_l1_loss(F.glu(x, -1), y[:, :3]) + F.kl_div(F.log_softmax(x, -1), y, reduction="sum")


SIZES: Final = [(), (1,), (3,), (4, 3), (1, 3), (4, 1)]


@pytest.mark.parametrize(
    "weights", [(None, None), ((3,), None), ((4, 3), None), (None, (3,)), (None, (4, 3)), ((), ())]
)
def test_losses_of_other_sizes_raise_where_pytorch_does(weights: tuple[Any, Any]) -> None:
    program = "torch.binary_cross_entropy_with_logits(x, y, w, p, 1)"
    source = f"def f(x: Tensor, y: Tensor, w: Optional[Tensor], p: Optional[Tensor]):\n    return {program}\n"
    compiled = rekindle.CompilationUnit(source).f
    generator = torch.Generator().manual_seed(3)
    weight, positive = (None if each is None else torch.rand(each, generator=generator) for each in weights)
    for sizes in itertools.product(SIZES, SIZES):
        x, y = (torch.rand(each, generator=generator) for each in sizes)
        try:
            expected = torch.binary_cross_entropy_with_logits(x, y, weight, positive, 1)
        except RuntimeError as error:
            for _ in range(2):
                with torch.no_grad(), pytest.raises(RuntimeError, match=re.escape(str(error).splitlines()[0])):
                    compiled(x, y, weight, positive)
            continue
        for _ in range(2):
            with torch.no_grad():
                torch.testing.assert_close(compiled(x, y, weight, positive), expected)
