"""Gradients of activations in kernels: PyTorch's operators, on ordinary numbers and at the limits of each."""

from __future__ import annotations

import itertools
import math
from typing import Final

import pytest
import torch
from torch import Tensor

from rekindle.codegen.fusion_executor import FusionExecutor
from rekindle.ir.text.parser import parse_graph
from rekindle.runtime.executor import callable_of

CALLS: Final = {
    "gelu": 'gelu_backward(%g, %x, "none")',
    "gelu by tanh": 'gelu_backward(%g, %x, "tanh")',
    "silu": "silu_backward(%g, %x)",
    "leaky_relu": "leaky_relu_backward(%g, %x, 0.1, False)",
    "elu": "elu_backward(%g, 1.3, 1.1, 0.9, False, %x)",
    "elu of its result": "elu_backward(%g, 1.3, 1.1, 0.9, True, %x)",
    "hardtanh": "hardtanh_backward(%g, %x, -3, 3)",
    "relu6": "hardtanh_backward(%g, %x, 0, 6)",
    "hardsigmoid": "hardsigmoid_backward(%g, %x)",
    "hardswish": "hardswish_backward(%g, %x)",
    "hardshrink": "hardshrink_backward(%g, %x, 0.5)",
    "softshrink": "softshrink_backward(%g, %x, 0.5)",
    "softplus": "softplus_backward(%g, %x, 1.5, 20)",
    "sigmoid": "sigmoid_backward(%g, %x)",
    "tanh": "tanh_backward(%g, %x)",
    "threshold": "threshold_backward(%g, %x, 0.5)",
}
LIMITS: Final = [0.0, 0.5, 3.0, 6.0, 1e-3, 1e-30, 2.9999998, 3.0000002, 14.0, 100.0, math.inf]


def executor(call: str) -> FusionExecutor:
    """Return the kernel of ``call`` with its numbers as constants."""
    name, _, arguments = call.removesuffix(")").partition("(")
    constants: list[str] = []
    inputs: list[str] = []
    for number, argument in enumerate(arguments.split(", ")):
        if argument.startswith("%"):
            inputs.append(argument)
            continue
        type = {'"': "str", "T": "bool", "F": "bool"}.get(argument[0], "float" if "." in argument else "int")
        value = {"True": "1", "False": "0"}.get(argument, argument)
        constants.append(f"  %c{number} : {type} = prim::Constant[value={value}]()\n")
        inputs.append(f"%c{number}")
    return FusionExecutor(
        parse_graph(
            f"""graph(%g : Tensor, %x : Tensor):
{"".join(constants)}  %found : Tensor = aten::{name}({", ".join(inputs)})
  return (%found)
"""
        )
    )


def numbers(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return gradients and operands: random ones, then each pair of limits. Their number is a multiple of PyTorch's
    vectors: what remains is computed by other loops, which treat NaN differently."""
    torch.manual_seed(0)
    gradients = [1.0, -2.5, 0.0, 1e-20]
    operands = [sign * limit for limit in LIMITS for sign in (1.0, -1.0)] + [math.nan]
    pairs = list(itertools.product(gradients, operands))
    pairs += [(1.0, 1.0)] * (-len(pairs) % 64)
    g, x = (torch.tensor(each, dtype=torch.float64) for each in zip(*pairs, strict=True))
    return torch.cat([torch.randn(640), g]).to(dtype), torch.cat([torch.randn(640) * 3, x]).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_kernel_computes_what_the_operator_does(call: str, dtype: torch.dtype) -> None:
    group = executor(call)
    g, x = numbers(dtype)
    expected = callable_of(group.graph, call, False)(g, x)
    found = group(g, x)
    assert group.failures == []
    assert found.dtype == expected.dtype
    assert torch.equal(found.isnan(), expected.isnan())
    # PyTorch's own error of gelu by tanh is 18 roundings of 1, where two terms cancel: see the next test.
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(found, expected, rtol=4 * eps, atol=32 * eps, equal_nan=True)


def test_errors_are_as_small_as_pytorchs() -> None:
    torch.manual_seed(0)
    x, g = torch.randn(100_000) * 3, torch.ones(100_000)
    for call in ("gelu", "gelu by tanh", "silu", "elu", "softplus"):
        group = executor(CALLS[call])
        operators = callable_of(group.graph, call, False)
        exact = operators(g.double(), x.double())
        errors = [float((each(g, x).double() - exact).abs().max()) for each in (group, operators)]
        assert group.failures == []
        assert errors[0] <= 1.5 * errors[1], (call, errors)


@pytest.mark.parametrize("other", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
def test_the_layout_of_the_result_is_that_of_the_operator(
    layout: torch.memory_format, other: torch.memory_format
) -> None:
    g = torch.randn(2, 3, 4, 5).to(memory_format=layout)
    x = torch.randn(2, 3, 4, 5).to(memory_format=other)
    for call in CALLS.values():
        group = executor(call)
        found, expected = group(g, x), callable_of(group.graph, call, False)(g, x)
        assert group.failures == []
        assert found.stride() == expected.stride(), call


def test_a_gradient_of_another_dtype_is_promoted_or_left_to_the_operator() -> None:
    for call in CALLS.values():
        group = executor(call)
        g, x = torch.randn(64), torch.randn(64, dtype=torch.float64)
        expected = callable_of(group.graph, call, False)(g, x)
        torch.testing.assert_close(group(g, x), expected)
        assert len(group.failures) == call.startswith("gelu"), call
