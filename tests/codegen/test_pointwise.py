"""Kernels of single operators give what PyTorch gives, on the samples of its database: on some of them here, on all
of them, of all dtypes, under ``make sweep-fusion``."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Callable
from typing import Any, Final

import pytest
import torch
from torch import Tensor

from rekindle.codegen.fusion import FuseGraph
from rekindle.codegen.fusion_executor import FusionExecutor
from rekindle.codegen.layout import Layout
from rekindle.codegen.operators import RULES
from rekindle.codegen.operators.math_functions import LIBRARY
from rekindle.ir.graph import Graph
from rekindle.ir.operators.registry import REGISTRY
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.text.parser import parse_graph
from tests.codegen.comparison import assert_as_eager
from tests.codegen.samples import DTYPES, Case, cases, names

UNITS: Final = {
    **dict.fromkeys(LIBRARY, 2),
    **dict.fromkeys(("sigmoid", "asinh", "acosh", "sqrt", "rsqrt", "pow", "atan2", "hypot", "addcdiv"), 2),
    **{
        f"nn.functional.{name}": 2
        for name in ("silu", "mish", "softplus", "elu", "selu", "celu", "logsigmoid", "hardswish", "hardsigmoid")
    },
}
"""How many units in the last place an operator may be away from PyTorch's, which calls other implementations of the
same functions; the others give the same bits."""

PRODUCTS: Final = frozenset({"add", "sub", "rsub"})
"""On short floats PyTorch rounds ``alpha * other`` where it works on single elements, and not where it works on
vectors; kernels never do."""

ABSOLUTE: Final = {"nn.functional.gelu": 2e-6}
"""The difference of 1 and erf is small where the activation is: there PyTorch's own error is large."""


ROW_ENTRIES: Final = frozenset(
    {
        *("softmax", "softmax.with_dtype", "log_softmax", "log_softmax.with_dtype", "logsumexp", "sum", "nansum"),
        *("nn.functional.layer_norm", "nn.functional.group_norm", "nn.functional.batch_norm"),
        *("nn.functional.batch_norm.without_cudnn", "mean", "prod", "std", "std.unbiased", "var", "var.unbiased"),
        *("cumsum", "cumprod", "norm", "norm.fro", "norm.inf", "linalg.vector_norm"),
    }
)
"""Sums and products, whose terms PyTorch takes in another order."""

PRODUCT_ENTRIES: Final = frozenset(
    {
        *("mm", "bmm", "bmm.triton_optimized", "matmul", "addmm", "addmm.decomposed", "nn.functional.linear"),
        *(f"nn.functional.{kind}_pool{dims}d" for kind in ("avg", "adaptive_avg") for dims in (1, 2)),
    }
)
"""Sums whose terms may be much larger than they: by how much they may be away goes by the size of the result. A zero
may have the other sign."""

CONTRACTED: Final = frozenset({"addcmul", "addcdiv", "nn.functional.hardsigmoid", "nn.functional.hardswish"})
"""Products and sums of which PyTorch's kernels for GPUs round one alone, as NVIDIA's compiler makes them; kernels here
round both, as on CPUs."""

SIXTHS: Final = frozenset({"nn.functional.hardsigmoid", "nn.functional.hardswish"})
"""What PyTorch's kernels for GPUs multiply by 1/6, rounded to a float, whatever the dtype."""

SUMS: Final = {torch.float32: 32, torch.float64: 32, torch.bfloat16: 1, torch.float16: 2}
"""How many units in the last place they may be away; and by how much in all, where terms cancel each other, in
epsilons."""


def by_group(graph: Graph, inputs: list[Any]) -> Any:
    """What a fused group gives; None where it had no kernel and ran the operators."""
    group = FusionExecutor(graph)
    found = group(*inputs)
    return None if group.failures or group.fallbacks else found


def check(case: Case, dtype: torch.dtype, run: Callable[[Graph, list[Any]], Any] = by_group) -> bool:
    """Whether there was a kernel, which ``run`` calls; fails where it gives something else than PyTorch."""
    try:
        expected = callable_of(case.graph, "eager")(*case.inputs)
    except (RuntimeError, TypeError, ValueError, IndexError):
        return False
    found = run(case.graph, case.inputs)
    if found is None:
        return False
    pairs = [(found, expected)] if isinstance(expected, Tensor) else zip(found, expected, strict=True)
    for mine, theirs in pairs:
        assert mine.device == theirs.device
        is_contracted = theirs.is_cuda and case.name in CONTRACTED and theirs.is_floating_point()
        _compare(case, mine.cpu(), theirs.cpu(), dtype, is_contracted=is_contracted)
    return True


def _compare(case: Case, found: Tensor, expected: Tensor, dtype: torch.dtype, *, is_contracted: bool = False) -> None:
    if is_contracted and expected.numel():
        largest = float(expected[expected.isfinite()].abs().max().double()) + 1
        precision = torch.finfo(torch.float32 if case.name in SIXTHS and dtype is torch.float64 else found.dtype)
        assert_as_eager(found, expected, 2, atol=4 * precision.eps * largest)
        return
    if case.name in ROW_ENTRIES and found.dtype in SUMS:
        assert_as_eager(found, expected, SUMS[found.dtype], atol=64 * torch.finfo(found.dtype).eps)
        return
    if case.name in PRODUCT_ENTRIES and found.dtype in SUMS and found.numel():
        total = expected[expected.isfinite()].abs().double().sum() + 1
        atol = 64 * torch.finfo(found.dtype).eps * float(total)
        assert_as_eager(found, expected, SUMS[found.dtype], atol=atol, signs_of_zeros=False)
        return
    is_short = dtype in (torch.float16, torch.bfloat16)
    units = UNITS.get(case.name, 3 if case.name in PRODUCTS and is_short else 0)
    if case.name in ABSOLUTE and is_short:
        units = 1  # a smaller difference may round to the adjacent number
    atol = ABSOLUTE.get(case.name, 0.0)
    assert_as_eager(found, expected, units, atol=atol if dtype is torch.float32 else atol * 1e-8)


NOT_ON_FLOATS: Final = frozenset(
    {
        *("bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor"),
        "addmm",  # all samples are scaled
        "nn.functional.adaptive_avg_pool2d",  # none is of a whole image
    }
)
"""Entries of which no sample of floats has a kernel."""


@pytest.mark.filterwarnings("ignore:.*degrees of freedom:UserWarning")  # of samples of one number
@pytest.mark.parametrize("name", names())
def test_samples(name: str) -> None:
    """On float32 until three had a kernel, and two on another dtype."""
    kernels = 0
    for case in itertools.islice(cases(name, torch.float32), 40):
        kernels += check(case, torch.float32)
        if kernels == 3:
            break
    assert (kernels > 0) != (name in NOT_ON_FLOATS)
    other = DTYPES[1 + zlib.crc32(name.encode()) % (len(DTYPES) - 1)]
    for case in itertools.islice(cases(name, other), 2):
        check(case, other)


def test_every_rule_names_an_operator() -> None:
    assert [name for name in RULES if REGISTRY.find(name) is None] == []


@pytest.mark.parametrize(
    "operands", [(torch.bool, torch.float32), (torch.float32, torch.bool), (torch.bool, torch.bool)]
)
def test_differences_of_truth_values_are_refused_as_pytorch_does(operands: tuple[torch.dtype, torch.dtype]) -> None:
    a, b = (torch.ones(4).to(dtype) for dtype in operands)
    graph = parse_graph("""
graph(%a : Tensor, %b : Tensor):
  %1 : int = prim::Constant[value=1]()
  %c : Tensor = aten::sub(%a, %b, %1)
  %d : Tensor = aten::tanh(%c)
  return (%d)
""")
    FuseGraph().run(graph)
    assert graph.find_nodes("prim::FusionGroup")
    with pytest.raises(RuntimeError, match=r"Subtraction, the `-` operator, with .* not supported"):
        callable_of(graph, "f")(a, b)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("exponent", [0.5, -0.5])
def test_roots_of_infinite_and_negative_numbers(dtype: torch.dtype, exponent: float) -> None:
    """PyTorch computes roots as powers in half precision alone, where those of -inf and -0.0 differ."""
    graph = parse_graph(f"""
    graph(%x : Tensor):
      %e : float = prim::Constant[value={exponent}]()
      %1 : Tensor = aten::neg(%x)
      %2 : Tensor = aten::pow(%1, %e)
      %3 : Tensor = aten::neg(%2)
      return (%3)
    """)
    x = torch.tensor([-math.inf, -0.0, 0.0, math.inf, math.nan, -1.0, 4.0], dtype=dtype).repeat(5)
    found, expected = FusionExecutor(graph).prepare([Layout((35,), (1,), dtype)])([x]), -((-x) ** exponent)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=0, equal_nan=True)
    known = ~expected.isnan()
    assert torch.equal(found[known].signbit(), expected[known].signbit())
