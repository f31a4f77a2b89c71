"""Products of matrices in kernels: small ones are computed there, with the operators around them; large ones by
BLAS."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import rekindle
import rekindle.ops
import rekindle.runtime.executor  # (runs graphs)
from rekindle.codegen import product_selection
from rekindle.codegen.fusion import FuseGraph
from rekindle.codegen.fusion_executor import FusionExecutor
from rekindle.codegen.loop_ir.printer import kernel_text
from rekindle.codegen.operators.matmul import LEFT_TO_BLAS, MAX_MULTIPLICATIONS
from rekindle.codegen.selection import Selection
from rekindle.ir import subgraph_execution
from rekindle.ir.graph import Graph
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.text.parser import parse_graph

PRODUCT: Final = """
graph(%x : Tensor, %y : Tensor):
  %p : Tensor = aten::NAME(%x, %y)
  %r : Tensor = aten::relu(%p)
  return (%r)
"""

LINEAR: Final = """
graph(%x : Tensor, %w : Tensor, %b : Tensor):
  %a : Tensor = aten::relu(%x)
  %p : Tensor = aten::linear(%a, %w, %b)
  %r : Tensor = aten::tanh(%p)
  return (%r)
"""

TRANSPOSED: Final = """
graph(%x : Tensor, %y : Tensor):
  %t : Tensor = aten::t(%y)
  %p : Tensor = aten::mm(%x, %t)
  %r : Tensor = aten::relu(%p)
  return (%r)
"""

ADDED: Final = """
graph(%c : Tensor, %x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %p : Tensor = aten::addmm(%c, %x, %y, %one, %one)
  %r : Tensor = aten::relu(%p)
  return (%r, %p)
"""


def graph(text: str, name: str = "") -> Graph:
    return parse_graph(text.replace("NAME", name).lstrip())


def _units(found: Tensor, exact: Tensor, of: Tensor) -> float:
    """The largest error, in units in the last place of the sum of all that was added without its signs."""
    return float(((found.double() - exact).abs() / of / torch.finfo(found.dtype).eps).max())


SIZES: Final = (1, 2, 4, 7, 16, 17, 33, 70)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["across", "transposed"])
def test_sums_are_as_near_as_those_of_blas(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    group = FusionExecutor(graph(TRANSPOSED) if name == "transposed" else graph(PRODUCT, "mm"))
    for m, n, k in itertools.product((1, 2, 4, 7), SIZES, SIZES):
        x, y = torch.randn(m, k, dtype=dtype), torch.randn(k, n, dtype=dtype)
        given = y.t().contiguous() if name == "transposed" else y
        found = group(x, given)
        exact, absolute = x.double() @ y.double(), x.double().abs() @ y.double().abs()
        assert found.stride() == (n, 1)
        assert _units(found, exact.relu(), absolute) <= 3
    assert group.failures == []
    assert len(group.recipes) <= 16


@pytest.mark.parametrize(
    ("shape", "other"),
    [
        ((3, 5), (5,)),
        ((5,), (5, 4)),
        ((2, 3, 5), (5, 4)),
        ((2, 1, 3, 5), (6, 5, 4)),
        ((6, 1, 5), (5, 40)),
        ((6, 5), (5, 1)),
    ],
)
def test_matmul_broadcasts(shape: tuple[int, ...], other: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    x, y = torch.randn(shape), torch.randn(other)
    group = FusionExecutor(graph(PRODUCT, "matmul"))
    expected = torch.relu(torch.matmul(x, y))
    found = group(x, y)
    torch.testing.assert_close(found, expected)
    assert found.stride() == expected.stride()
    assert group.failures == []


def test_a_batch_of_matrices_with_gaps() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(2, 4, 6, 3).transpose(1, 2), torch.randn(2, 6, 3, 8)[..., ::2]
    group = FusionExecutor(graph(PRODUCT, "matmul"))
    torch.testing.assert_close(group(x, y), torch.relu(x @ y))
    assert group.failures == ["a product of matrices with gaps"]
    group = FusionExecutor(graph(PRODUCT, "matmul"))
    y = torch.randn(2, 4, 6, 3).transpose(1, 2).transpose(-2, -1)
    torch.testing.assert_close(group(x, y), torch.relu(x @ y))
    assert group.failures == []


@pytest.mark.parametrize("rows", [1, 6])
def test_a_linear_map_of_what_is_computed(rows: int) -> None:
    torch.manual_seed(0)
    x, w, b = torch.randn(rows, 20), torch.randn(33, 20), torch.randn(33)
    group = FusionExecutor(graph(LINEAR))
    torch.testing.assert_close(group(x, w, b), torch.tanh(F.linear(torch.relu(x), w, b)))
    assert group.failures == []


def test_the_text_of_a_linear_map() -> None:
    group = FusionExecutor(graph(LINEAR))
    group(torch.randn(1, 20), torch.randn(33, 20), torch.randn(33))
    assert kernel_text(group.recipes[0].kernel.kernel) == (
        "kernel(in0: f32, in1: f32, in2: f32) -> (out0: f32) with (temp0: f32, temp1: f32)\n"
        "  for 1 loop:\n"
        "    %0 = load in0[1]\n"
        "    %1 : bool = gt(f32(0.0), %0)\n"
        "    %2 : f32 = select(%1, f32(0.0), %0)\n"
        "    store temp1[1] = %2\n"
        "  store temp0[0, n] = sum of temp1[0, k] * in1[k, n] for all k, along k\n"
        "  for 1 loop:\n"
        "    %0 = load in2[1]\n"
        "    %1 = load temp0[1]\n"
        "    %2 : f32 = add(%0, %1)\n"
        "    %3 : f32 = tanh(%2)\n"
        "    store out0[1] = %3\n"
    )


def test_an_addend_broadcasts() -> None:
    torch.manual_seed(0)
    x, y = torch.randn(3, 5), torch.randn(5, 7)
    for addend in (torch.randn(7), torch.randn(3, 7), torch.randn(3, 1)):
        group = FusionExecutor(graph(ADDED))
        for found, wanted in zip(group(addend, x, y), callable_of(graph(ADDED), "eager")(addend, x, y), strict=True):
            torch.testing.assert_close(found, wanted)
        assert group.failures == []


def test_what_is_not_finite() -> None:
    x, y = torch.tensor([[torch.inf, 1.0], [torch.nan, 2.0]]), torch.tensor([[1.0, 0.0], [3.0, 4.0]])
    found = FusionExecutor(graph(PRODUCT, "mm"))(x, y)
    assert torch.equal(found.isnan(), torch.tensor([[False, True], [True, True]]))
    assert found[0, 0] == torch.inf


@pytest.mark.usefixtures("blas_is_faster")
def test_large_products_are_those_of_blas() -> None:
    """And what follows them is fused without."""
    torch.manual_seed(0)
    text = graph("""
graph(%x : Tensor, %y : Tensor):
  %p : Tensor = aten::mm(%x, %y)
  %t : Tensor = aten::tanh(%p)
  %r : Tensor = aten::mul(%t, %p)
  return (%r)
""")
    group = FusionExecutor(text)
    x, y = torch.randn(64, 128), torch.randn(128, 128)
    assert 64 * 128 * 128 > MAX_MULTIPLICATIONS
    product = x @ y
    for _ in range(3):
        torch.testing.assert_close(group(x, y), torch.tanh(product) * product, rtol=1e-6, atol=1e-6)
    assert group.failures == [LEFT_TO_BLAS]
    small = group(x[:1], y[:, :16])
    torch.testing.assert_close(small, torch.tanh(product[:1, :16]) * product[:1, :16], rtol=1e-4, atol=1e-4)
    assert len(group.recipes) == 1


def test_errors_are_those_of_pytorch() -> None:
    group = FusionExecutor(graph(PRODUCT, "mm"))
    with pytest.raises(RuntimeError, match=r"^(mm: )?mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x5\)$"):
        group(torch.ones(2, 3), torch.ones(4, 5))
    with pytest.raises(RuntimeError, match=r"^(mm: )?self must be a matrix"):
        group(torch.ones(3), torch.ones(3, 5))


def test_other_dtypes_are_left_to_pytorch() -> None:
    x = torch.arange(6).view(2, 3)
    group = FusionExecutor(graph(PRODUCT, "mm"))
    assert torch.equal(group(x, x.t()), x @ x.t())
    assert group.failures == ["a product of matrices of torch.int64"]


@pytest.mark.parametrize(
    ("text", "summand", "message"),
    [
        (ADDED, "%c", "self and mat2 must have the same dtype, but got Long and Float"),
        (LINEAR, "%b", "self and mat2 must have the same dtype, but got Long and Float"),
    ],
    ids=["addmm", "linear"],
)
def test_a_summand_of_another_dtype_is_an_error(text: str, summand: str, message: str) -> None:
    run = FusionExecutor(made := graph(text))
    names = [f"%{each.name}" for each in made.inputs]
    for _ in range(3):
        values = [torch.arange(4) if each == summand else torch.randn(4, 4) for each in names]
        with pytest.raises(RuntimeError, match=f"^{message}$"):
            run(*values)


def test_a_group_has_four_products_at_most() -> None:
    def chain(x: Tensor, w: Tensor) -> Tensor:
        for _ in range(6):
            x = torch.relu(x.mm(w))
        return x

    text = rekindle.script(chain).graph.copy()
    from rekindle.runtime.optimization import optimize
    from rekindle.runtime.pipelines import OPTIMIZATION

    optimize(text, (*OPTIMIZATION, FuseGraph()))
    counts = [
        sum(node.kind == "aten::mm" for node in each.get_graph("Subgraph").nodes)
        for each in text.find_nodes("prim::FusionGroup")
    ]
    assert counts == [2, 4]


def test_a_model_that_is_trained_and_then_used() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()
    compiled = rekindle.script(model)
    x = torch.randn(1, 8)
    for _ in range(50):
        compiled(x).sum().backward()
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(compiled(x), model(x))
        assert [len(group.kernels) for group in rekindle.report(compiled).versions[-1].groups] == [1]
    compiled(x).sum().backward()
    assert model[0].weight.grad is not None


# ------------------------------------------------------------------------------------------------------ large products


@pytest.mark.usefixtures("kernels_are_faster")
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    ("m", "n", "k"), [(64, 128, 128), (67, 131, 257), (5, 7, 20_000), (2, 300, 1500), (129, 1, 8192)]
)
def test_large_products_in_kernels_are_as_accurate_as_those_of_blas(m: int, n: int, k: int, transposed: bool) -> None:
    generator = torch.Generator().manual_seed(m * n + k)
    x = torch.randn(m, k, generator=generator)
    y = torch.randn(n, k, generator=generator).t() if transposed else torch.randn(k, n, generator=generator)
    group = FusionExecutor(graph(PRODUCT, "mm"))
    found = group(x, y)
    assert (group.failures, len(group.recipes)) == ([], 1)
    exact = torch.relu(x.double() @ y.double())
    error, allowed = (found - exact).norm(), (torch.relu(x @ y) - exact).norm()
    assert error <= 3 * allowed + 1e-6 * exact.norm()


@pytest.mark.usefixtures("kernels_are_faster")
def test_large_products_of_one_row_are_those_of_blas() -> None:
    group = FusionExecutor(graph(PRODUCT, "mm"))
    x, y = torch.randn(1, 1024), torch.randn(1024, 1024)
    torch.testing.assert_close(group(x, y), torch.relu(x @ y))
    assert group.failures == [LEFT_TO_BLAS]


@pytest.fixture
def nothing_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A process and a disk that know nothing of the speed of products."""
    monkeypatch.setenv("REKINDLE_CACHE_DIR", str(tmp_path))
    product_selection._RESULTS.clear()
    yield
    product_selection._RESULTS.clear()


@pytest.mark.usefixtures("nothing_measured")
def test_products_are_measured_once_and_as_far_as_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []

    def measure(size: int) -> str:
        measured.append(size)
        return "kernel" if size < 300 else "blas"

    monkeypatch.setattr(product_selection, "_measured", measure)
    assert [product_selection.max_multiplications(200**3) for _ in range(3)] == [256**3] * 3
    assert measured == [176]
    product_selection._RESULTS.clear()  # as another process
    assert product_selection.max_multiplications(256**3) == 256**3
    assert product_selection.max_multiplications(256**3 + 1) == MAX_MULTIPLICATIONS
    assert product_selection.max_multiplications(1024**3 + 1) == MAX_MULTIPLICATIONS
    assert measured == [176, 352]


@pytest.mark.usefixtures("nothing_measured")
@pytest.mark.parametrize("faster", ["blas", "kernel"])
def test_first_calls_measure_nothing(monkeypatch: pytest.MonkeyPatch, faster: str) -> None:
    """They run PyTorch's products, and what was decided for them is not kept."""
    monkeypatch.setattr(subgraph_execution, "DEFER_FIRST_CALLS", True)
    measured: list[int] = []

    def measure(size: int) -> str:
        measured.append(size)
        return faster

    monkeypatch.setattr(product_selection, "_measured", measure)
    x, w = torch.randn(64, 96), torch.randn(96, 96, requires_grad=True)
    scripted = rekindle.script(lambda x, w: F.linear(x, w))
    for call in range(3):
        found, eager = (torch.autograd.grad(y.sum(), w)[0] for y in (scripted(x, w), F.linear(x, w)))
        torch.testing.assert_close(found, eager)
        assert measured == ([] if call == 0 else [96])
        has_gradient = "prim::DifferentiableGraph" in str(rekindle.last_executed_graph())
        assert has_gradient == (call > 0 and faster == "kernel")


@pytest.mark.usefixtures("nothing_measured")
@pytest.mark.parametrize(("needed", "limit"), [(100**3, 128**3), (256**3, 256**3), (500**3, MAX_MULTIPLICATIONS)])
def test_the_limit_is_a_product_that_a_kernel_wins(monkeypatch: pytest.MonkeyPatch, needed: int, limit: int) -> None:
    def fastest(self: Selection, arguments: tuple[torch.Tensor, ...]) -> str:
        a, b = arguments
        torch.testing.assert_close(self.candidates["kernel"](a, b), a @ b, rtol=1e-3, atol=1e-3)
        return "blas" if len(a) >= 300 else "kernel"

    monkeypatch.setattr(Selection, "fastest", fastest)
    assert product_selection.max_multiplications(needed) == limit


@pytest.mark.usefixtures("kernels_are_faster")
@pytest.mark.parametrize(
    ("shape", "other"),
    [
        ((300, 129), (129, 67)),
        ((67, 300), (300, 517)),
        ((1, 700), (700, 700)),
        ((3, 130, 70), (3, 70, 131)),
        ((5, 4, 300), (300, 1001)),
        ((40, 2000), (2000, 40)),
    ],
)
@pytest.mark.parametrize("transposed", [False, True])
def test_threads_share_large_products(shape: tuple[int, ...], other: tuple[int, ...], transposed: bool) -> None:
    """Each element is summed up in the same order, whatever the number of threads."""
    generator = torch.Generator().manual_seed(math.prod(shape))
    x, y = torch.randn(shape, generator=generator), torch.randn(other, generator=generator)
    if transposed:
        y = y.transpose(-1, -2).contiguous().transpose(-1, -2)
    group = FusionExecutor(graph(PRODUCT, "matmul"))
    alone = group(x, y)
    threads = torch.get_num_threads()
    try:
        for count in (2, 3, 7):
            torch.set_num_threads(count)
            assert torch.equal(group(x, y), alone)
    finally:
        torch.set_num_threads(threads)
    torch.testing.assert_close(alone, torch.relu(x @ y), rtol=1e-4, atol=1e-4)
