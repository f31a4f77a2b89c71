"""Operators that TorchScript cannot call alone, beside the Python that they stand for: one table."""

from __future__ import annotations

import copy
from enum import Enum
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.ops.calling import call


class Rate(Enum):
    LOW = 0.5
    HIGH = 2.0


class Mode(Enum):
    FAST = "fast"


def tensors(*values: float) -> list[torch.Tensor]:
    return [torch.tensor(value) for value in values]


X = torch.arange(6.0).reshape(2, 3)
IMAGE = torch.arange(16.0).reshape(1, 1, 4, 4)
INDEX = [torch.tensor([1, 0])]

TABLE: list[tuple[str, str, tuple[Any, ...]]] = [
    ("aten::as_tensor.bool", "torch.as_tensor(a)", (True, None, None)),
    ("aten::as_tensor.float", "torch.as_tensor(a, dtype=torch.float64)", (1.5, 7, None)),
    ("aten::as_tensor.complex", "torch.as_tensor(a)", (1.5 - 2j, None, None)),
    ("prim::abs", "abs(a)", (torch.tensor([-1.5, 2.0]),)),
    ("aten::count.Tensor", "a.count(b)", (tensors(1, 2, 1), torch.tensor(1))),
    ("aten::remove.Tensor", "a.remove(b)", (tensors(1, 2, 1), torch.tensor(1))),
    ("aten::sort.Tensor", "a.sort(reverse=b)", (tensors(2, 3, 1), True)),
    ("aten::sort.Tensor", "a.sort()", (tensors(2, 3, 1), False)),
    ("aten::ne.Tensor_list", "a != b", (tensors(1, 2), tensors(1, 2))),
    ("aten::ne.Tensor_list", "a != b", (tensors(1, 2), tensors(1, 3))),
    ("aten::ne.Tensor_list", "a != b", (tensors(1), tensors(1, 3))),
    ("prim::EnumValue.float", "a.value", (Rate.HIGH,)),
    ("prim::EnumValue.str", "a.value", (Mode.FAST,)),
    ("aten::Complex.Tensor_float", "complex(a, b)", (torch.tensor(1.5), -2.0)),
    ("aten::Complex.Tensor_bool", "complex(a, b)", (torch.tensor(1.5), True)),
    ("aten::Complex.float_Tensor", "complex(a, b)", (1.5, torch.tensor(-2.0))),
    ("aten::Complex.int_Tensor", "complex(a, b)", (3, torch.tensor(-2.0))),
    ("aten::size", "list(a.size())", (X,)),
    ("aten::sym_size", "list(a.size())", (X,)),
    ("aten::stride", "list(a.stride())", (X.t(),)),
    ("aten::sym_stride", "list(a.stride())", (X.t(),)),
    ("aten::index.Tensor_hacked_twin", "a[b[0]]", (X, INDEX)),
    ("aten::_unsafe_index.Tensor_hacked_twin", "a[b[0]]", (X, INDEX)),
    ("aten::index_put.hacked_twin", "torch.index_put(a, tuple(b), c)", (X, INDEX, torch.tensor(9.0), False)),
    ("aten::index_put.hacked_twin", "torch.index_put(a, tuple(b), c, True)", (X, INDEX, torch.tensor(9.0), True)),
    ("aten::_unsafe_index_put.hacked_twin", "torch.index_put(a, tuple(b), c)", (X, INDEX, torch.tensor(9.0), False)),
    ("aten::__upsample.size_list", "F.interpolate(a, b)", (IMAGE, [8, 2], None, "nearest", None)),
    ("aten::__upsample_nearest.size_list", "F.interpolate(a, b)", (IMAGE, [8, 2], None)),
    (
        "aten::__upsample_bilinear.size_list",
        "F.interpolate(a, b, mode='bilinear', align_corners=True)",
        (IMAGE, [8, 2], None),
    ),
    (
        "aten::__upsample_bilinear.size_list_scale_list",
        "F.interpolate(a, scale_factor=[2, 3], mode='bilinear', align_corners=True)",
        (IMAGE, None, [2, 3]),
    ),
    (
        "aten::__interpolate.size_list_scale_list",
        "F.interpolate(a, b, mode='bilinear', align_corners=False)",
        (IMAGE, [8, 2], None, "bilinear", False, None, False),
    ),
    (
        "aten::__interpolate.size_list_scale_list",
        "F.interpolate(a, scale_factor=c)",
        (IMAGE, None, [2.0, 1.5], "nearest", None, None, False),
    ),
]


@pytest.mark.parametrize(("name", "expression", "arguments"), TABLE)
def test_as_python(name: str, expression: str, arguments: tuple[Any, ...]) -> None:
    ours, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
    answer = call(name, *ours)
    expected = eval(expression, {"torch": torch, "F": F, **dict(zip("abc", theirs))})  # noqa: S307 (of the table above)
    assert type(answer) is type(expected)
    if isinstance(expected, torch.Tensor):
        assert answer.dtype == expected.dtype
        assert torch.equal(answer, expected)
    else:
        assert repr(answer) == repr(expected)
    assert repr(ours) == repr(theirs)


QUESTIONS = {
    "prim::is_cpu": "is_cpu",
    "prim::is_cuda": "is_cuda",
    "prim::is_ipu": "is_ipu",
    "prim::is_maia": "is_maia",
    "prim::is_meta": "is_meta",
    "prim::is_mkldnn": "is_mkldnn",
    "prim::is_mps": "is_mps",
    "prim::is_mtia": "is_mtia",
    "prim::is_nested": "is_nested",
    "prim::is_quantized": "is_quantized",
    "prim::is_sparse": "is_sparse",
    "prim::is_sparse_csr": "is_sparse_csr",
    "prim::is_vulkan": "is_vulkan",
    "prim::is_xla": "is_xla",
    "prim::is_xpu": "is_xpu",
    "prim::requires_grad": "requires_grad",
}


def kinds_of_tensors() -> list[torch.Tensor]:
    return [
        X,
        X.clone().requires_grad_(),
        X.to("meta"),
        X.to_sparse(),
        torch.sparse_csr_tensor([0, 1], [0], [1.0], size=(1, 1)),
    ]


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state")
@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")
@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_are_the_tensors(name: str) -> None:
    for tensor in kinds_of_tensors():
        assert call(name, tensor) is getattr(tensor, QUESTIONS[name])


def test_to_cuda() -> None:
    if torch.cuda.is_available():
        assert call("aten::cuda", X).device.type == "cuda"
        return
    with pytest.raises((AssertionError, RuntimeError)) as expected:  # the second by a build for CUDA
        X.cuda()
    with pytest.raises(expected.type) as raised:
        call("aten::cuda", X)
    assert str(raised.value) == str(expected.value)


def test_uninitialized_is_what_nobody_reads() -> None:
    """It is on the paths of exits, where a value is needed but not used."""
    assert call("prim::Uninitialized") is None
