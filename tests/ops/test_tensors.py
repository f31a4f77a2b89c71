"""Tensors from numbers, their properties, and operators without an entry in the dispatcher: eager's results."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from rekindle.ir.scalar_types import DTYPE_NUMBERS, DTYPES
from rekindle.ir.types import INT, ListType
from tests.ops.calling import call

FLOAT64 = DTYPE_NUMBERS[torch.float64]


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride() and torch.equal(a, b)


# -------------------------------------------------------------------------------------------------------- from numbers


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("aten::tensor.int", 3),
        ("aten::tensor.float", 2.5),
        ("aten::tensor.bool", True),
        ("aten::tensor.complex", 1 + 2j),
        ("aten::tensor", [1, 2]),
        ("aten::tensor", [1.5]),
        ("aten::tensor", [[True], [False]]),
        ("aten::tensor", []),
        ("aten::as_tensor.int", 3),
        ("aten::as_tensor.list", [[1.0, 2.0]]),
    ],
)
def test_tensors_of_numbers_have_eagers_dtype(name: str, value: Any) -> None:
    rest = (None, None, False) if "as_tensor" not in name else (None, None)
    assert _equal(call(name, value, *rest), torch.tensor(value))
    rest = (FLOAT64, *rest[1:])
    if not isinstance(value, complex):
        assert _equal(call(name, value, *rest), torch.tensor(value, dtype=torch.float64))


def test_the_default_dtype_counts() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        assert call("aten::tensor.float", 2.5, None, None, False).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_tensors_that_require_grad() -> None:
    assert call("aten::tensor.float", 2.5, None, torch.device("cpu"), True).requires_grad


def test_as_tensor_keeps_a_tensor_that_fits() -> None:
    x = torch.ones(2)
    assert call("aten::as_tensor", x, None, None) is x
    assert _equal(call("aten::as_tensor", x, FLOAT64, None), x.double())


def test_errors_of_tensor() -> None:
    with pytest.raises(ValueError, match=r"^expected sequence of length 2 at dim 1 \(got 1\)$"):
        call("aten::tensor", [[1, 2], [3]], None, None, False)
    with pytest.raises(ValueError, match=r"^there is no dtype with the number 999$"):
        call("aten::tensor.int", 3, 999, None, False)


def test_lists_of_tensors() -> None:
    assert _equal(call("aten::_list_to_tensor", [1, 2]), torch.tensor([1, 2], dtype=torch.int32))
    assert call("aten::_tensor_to_list", torch.tensor([[1], [2]], dtype=torch.int32)) == [1, 2]
    with pytest.raises(RuntimeError) as raised:
        call("aten::_tensor_to_list", torch.tensor([1]))
    assert str(raised.value) == "expected a tensor of dtype torch.int32, got torch.int64"


@pytest.mark.parametrize(
    ("tensor", "dimensions", "element"),
    [
        (torch.tensor([[1, 2]]), 2, 0),
        (torch.tensor(2.5), 0, 1),
        (torch.tensor([0.5], dtype=torch.float64), 1, 1),
        (torch.tensor([True]), 1, 2),
        (torch.tensor([1j]), 1, 3),
        (torch.tensor([]), 1, 0),
    ],
)
def test_tolist(tensor: torch.Tensor, dimensions: int, element: int) -> None:
    types: dict[str, Any] = {"outputs": [INT]}
    assert call("prim::tolist", tensor, dimensions, element, **types) == tensor.tolist()


def test_tolist_of_another_shape_or_dtype_than_annotated() -> None:
    with pytest.raises(RuntimeError) as raised:
        call("prim::tolist", torch.ones(2), 2, 1)
    assert str(raised.value) == "tolist() is annotated to give 2 nested lists, but the tensor has 1 dimensions"
    with pytest.raises(RuntimeError) as raised:
        call("prim::tolist", torch.ones(2), 1, 0)
    assert str(raised.value) == (
        "tolist() is annotated to give elements of type int, but the tensor is of torch.float32"
    )


# ---------------------------------------------------------------------------------------------------------- properties


def test_properties() -> None:
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    for name in (
        "is_cpu",
        "is_cuda",
        "is_meta",
        "is_sparse",
        "is_quantized",
        "is_nested",
        "requires_grad",
        "is_mkldnn",
    ):
        assert call(f"prim::{name}", x) is getattr(x, name)
    for name in ("is_ipu", "is_maia", "is_mps", "is_mtia", "is_sparse_csr", "is_vulkan", "is_xla", "is_xpu"):
        assert call(f"prim::{name}", x) is False
    assert call("prim::device", x) == torch.device("cpu")
    assert DTYPES[call("prim::dtype", x)] is torch.float64
    assert call("prim::layout", x.detach().to_sparse()) == 1
    assert call("prim::itemsize", x) == call("aten::element_size", x) == 8
    assert call("prim::nbytes", x) == 48
    assert call("prim::name", x) is None
    assert call("aten::len.Tensor", x) == 2
    assert not call("prim::data", x).requires_grad
    assert call("prim::grad", x) is None
    x.sum().backward()
    assert call("prim::grad", x) is x.grad


def test_shapes_are_lists_of_their_own() -> None:
    x = torch.ones(2, 3)
    for name, expected in (("size", [2, 3]), ("sym_size", [2, 3]), ("stride", [3, 1]), ("sym_stride", [3, 1])):
        found = call(f"aten::{name}", x)
        assert found == expected
        assert type(found) is list
    assert call("aten::Size", [1, 2]) == [1, 2]


def test_transposes() -> None:
    x = torch.randn(2, 3, dtype=torch.complex64)
    assert _equal(call("aten::mT.a", x), x.mT)
    assert _equal(call("aten::numpy_T.a", x), x.T)
    assert torch.equal(call("aten::mH.a", x), x.mH)
    assert torch.equal(call("aten::matrix_H.a", x), x.H)


LAYOUTS = [
    torch.ones(2, 3, 4, 5),
    torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last),
    torch.ones(2, 3, 4, 5).transpose(2, 3),
    torch.ones(2, 3, 4, 5)[:, ::2],
    torch.ones(2, 1, 4, 4).to(memory_format=torch.channels_last),
    torch.ones(1, 3, 1, 1),
    torch.ones(2, 3, 0, 5),
    torch.ones(2, 3, 4, 5, 6).to(memory_format=torch.channels_last_3d),
    torch.ones(3).expand(2, 3),
    torch.ones(()),
    torch.ones(2, 3).t(),
]


@pytest.mark.parametrize("x", LAYOUTS, ids=lambda x: f"{tuple(x.shape)}-{x.stride()}")
def test_memory_layout_is_told_as_torchscript_tells_it(x: torch.Tensor) -> None:
    expected = torch.ops.aten.is_non_overlapping_and_dense.default(x)
    assert call("aten::is_non_overlapping_and_dense", x) is expected
    for form in range(4):
        expected = torch.ops.aten.is_strides_like_format.default(x, form)
        assert call("aten::is_strides_like_format", x, form) is expected


# -------------------------------------------------------------------------------------------------- moving and writing


def test_conversions() -> None:
    x = torch.ones(2)
    cpu = torch.device("cpu")
    assert call("aten::to.prim_Device", x, cpu, None, False, False) is x
    assert _equal(call("aten::to.prim_Device", x, None, FLOAT64, False, False), x.double())
    assert _equal(call("aten::to.prim_dtype", x, FLOAT64, False, False), x.double())
    assert call("aten::to.prim_dtype", x, None, False, False) is x
    copied = call("aten::to.prim_other", x, False, True)
    assert _equal(copied, x)
    assert copied is not x
    assert call("aten::cpu", x) is x


def test_copying_numbers_keeps_their_precision() -> None:
    x = torch.zeros(2, dtype=torch.float64)
    assert call("aten::copy_.float", x, 0.1) is x
    assert x.tolist() == [0.1, 0.1]
    assert call("aten::copy_.int", torch.zeros(1, dtype=torch.uint8), 300).item() == 44
    assert call("aten::copy_.Tensor", x, torch.tensor([1, 2])).tolist() == [1.0, 2.0]


def test_indexing_with_lists_of_tensors() -> None:
    x, at = torch.arange(6).reshape(2, 3), [torch.tensor([0, 1]), torch.tensor([2, 0])]
    values = torch.tensor([10, 20])
    written = x.clone()
    written[0, 2], written[1, 0] = 10, 20
    for name in ("index.Tensor_hacked_twin", "_unsafe_index.Tensor_hacked_twin"):
        assert torch.equal(call(f"aten::{name}", x, at), x[at[0], at[1]])
    for name in ("index_put.hacked_twin", "_unsafe_index_put.hacked_twin"):
        assert torch.equal(call(f"aten::{name}", x, at, values, False), written)
    y = x.clone()
    assert call("aten::index_put_.hacked_twin", y, at, values, False) is y
    assert torch.equal(y, written)
    y = x.clone()
    assert torch.equal(call("aten::_index_put_impl_.hacked_twin", y, at, values, True, False), y)
    assert y[0, 2].item() == 12


def test_splitting_and_einsum() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    parts = call("aten::split", x, [1, 2], 1)
    assert [part.shape for part in parts] == [(2, 1), (2, 2)]
    assert type(parts) is list
    found = call("aten::einsum.sublist", x, [0, 1], x, [0, 1], [0])
    assert torch.equal(found, torch.einsum("ij,ij->i", x, x))


# -------------------------------------------------------------------------------------------------------------- shapes


def test_shape_arithmetic() -> None:
    assert call("aten::_infer_size", [1, 2], [3, 1, 1]) == [3, 1, 2]
    assert call("aten::broadcast_shapes", [5], []) == [5]
    with pytest.raises(RuntimeError):
        call("aten::broadcast_shapes", [4, 2], [3, 3])
    assert call("aten::_size_if_not_equal", [1, 2], [1, 2]) is None
    assert call("aten::_size_if_not_equal", [1, 2], [1, 3]) == [1, 2]
    assert torch.equal(call("aten::_grad_sum_to_size", torch.ones(2, 3), [3]), torch.full((3,), 2.0))
    assert torch.equal(call("aten::_grad_sum_to_size", torch.ones(2), None), torch.ones(2))
    assert call("prim::BroadcastSizes", [2, 1], [3], [1, 1, 1]) == [1, 2, 3]
    assert call("prim::ReductionSizes", [2, 3, 4], [1, -1], False) == [2]
    assert call("prim::ReductionSizes", [2, 3, 4], [1], True) == [2, 1, 4]
    assert call("aten::_ncf_unsqueeze", torch.ones(6), 4).shape == (1, 6, 1, 1)
    assert call("aten::_ncf_view", torch.ones(6), [2, 3, 5], 1).shape == (2, 3, 1)


# -------------------------------------------------------------------------------------- what passes put in their place


def test_constant_chunks() -> None:
    x = torch.arange(7.0)
    attributes = {"chunks": 3, "dim": 0}
    found = call("prim::ConstantChunk", x, attributes=attributes)
    assert [part.tolist() for part in found] == [part.tolist() for part in x.chunk(3)]
    with pytest.raises(ValueError, match=r"^not enough values to unpack \(expected 3, got 2\)$"):
        call("prim::ConstantChunk", torch.ones(4), attributes=attributes)
    for length in (1, 6, 7, 8):
        regular, last = call("prim::ChunkSizes", [2, length], attributes={"chunks": 3, "dim": 1}, outputs=[INT, INT])
        pieces = torch.ones(2, length).chunk(3, 1)
        assert (regular, last) == (list(pieces[0].shape), list(pieces[-1].shape))


def test_joined_concatenations() -> None:
    x, y = torch.ones(2, 1), torch.zeros(2, 2)
    expected = torch.cat([x, y], 1)
    assert torch.equal(call("prim::FusedConcat", x, y, attributes={"dim": 1}), expected)
    assert torch.equal(call("prim::VarConcat", x, y, 1), expected)
    assert torch.equal(call("prim::VarStack", x, x, 0), torch.stack([x, x]))


def test_batches_of_matrix_products() -> None:
    a, b, c, d = (torch.randn(3, 3) for _ in range(4))
    torch.testing.assert_close(call("prim::MMTreeReduce", a, b, c, d), a @ c + b @ d)
    left = call("prim::MMBatchSide", a, b, c, attributes={"side": 0})
    torch.testing.assert_close(left, (a @ b, a @ c))
    right = call("prim::MMBatchSide", a, b, c, attributes={"side": 1})
    torch.testing.assert_close(right, (b @ a, c @ a))


# ----------------------------------------------------------------------------------------------------------- gradients


def test_gradients() -> None:
    x = torch.ones(2, requires_grad=True)
    call("aten::backward", (x * x).sum(), None, None, False)
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0]
    call("aten::backward.TensorList", [(x * 3).sum()], None, None, False)
    assert x.grad.tolist() == [5.0, 5.0]
    y = torch.ones(1, requires_grad=True)
    arguments: tuple[Any, ...] = ([x.sum()], [x, y], None, None, False, True)
    assert [None if g is None else g.tolist() for g in call("aten::grad", *arguments)] == [[1.0, 1.0], None]


def test_gradients_that_do_not_exist() -> None:
    x = torch.ones(1)
    assert call("prim::AutogradZero") is None
    assert call("prim::AutogradAdd", None, x) is x
    assert call("prim::AutogradAdd", x, None) is x
    assert call("prim::AutogradAdd", x, x).item() == 2
    types: dict[str, Any] = {"inputs": [ListType(INT), INT]}
    assert call("prim::AutogradAnyNonZero", [None, x], None, **types) is True
    assert call("prim::AutogradAllNonZero", [None, x], x, **types) is False
    assert call("prim::AutogradAllZero", [None], None, **types) is True


# ----------------------------------------------------------------------------------------------------- neural networks


def test_interpolation() -> None:
    x = torch.randn(1, 2, 4, 4)
    rest = ("bilinear", False, None, False)
    expected = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
    assert torch.equal(call("aten::__interpolate", x, None, 2.0, *rest), expected)
    assert torch.equal(call("aten::__interpolate.scale_list", x, None, [2.0, 2.0], *rest), expected)
    assert torch.equal(call("aten::__interpolate.size_list", x, [8, 8], None, *rest), expected)
    assert torch.equal(call("aten::__upsample", x, 8, None, "nearest", None), F.interpolate(x, 8))
    assert torch.equal(call("aten::__upsample_nearest", x, None, 2), F.interpolate(x, scale_factor=2.0))
    expected = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=True)
    assert torch.equal(call("aten::__upsample_bilinear", x, None, 2), expected)
    assert torch.equal(call("aten::__upsample_bilinear.scale_list", x, None, [2, 2]), expected)


def test_initialization_is_not_recorded() -> None:
    x = torch.ones(3, requires_grad=True)
    assert call("aten::_no_grad_fill_", x, 2.0) is x
    assert x.tolist() == [2.0] * 3
    assert call("aten::_no_grad_zero_", x).tolist() == [0.0] * 3
    generator = torch.Generator().manual_seed(3)
    expected = torch.empty(3).uniform_(2.0, 3.0, generator=generator.manual_seed(3))
    assert torch.equal(call("aten::_no_grad_uniform_", x, 2.0, 3.0, generator.manual_seed(3)), expected)
    expected = torch.empty(3).normal_(2.0, 3.0, generator=generator.manual_seed(3))
    assert torch.equal(call("aten::_no_grad_normal_", x, 2.0, 3.0, generator.manual_seed(3)), expected)
    assert x.requires_grad
    assert x.is_leaf
    weight = torch.full((2, 2), 3.0)
    call("aten::_no_grad_embedding_renorm_", weight, torch.tensor([1]), 1.0, 2.0)
    assert weight[0].tolist() == [3.0, 3.0]
    torch.testing.assert_close(weight[1].norm(), torch.tensor(1.0))


def test_packed_sequences() -> None:
    x = torch.ones(2)
    assert call("aten::_pack_sequence", x, x, None, x) == (x, x, None, x)


@pytest.mark.filterwarnings("ignore:.*quantized tensor creation functions.*are deprecated:UserWarning")
def test_dequantization() -> None:
    x = torch.quantize_per_tensor(torch.tensor([1.0, 2.0]), 0.5, 0, torch.quint8)
    assert call("aten::dequantize.tensor", x).tolist() == [1.0, 2.0]
    assert [part.tolist() for part in call("aten::dequantize.list", [x])] == [[1.0, 2.0]]
    nested = call("aten::dequantize.any", (x, [x]))
    assert (nested[0].tolist(), nested[1][0].tolist()) == ([1.0, 2.0], [1.0, 2.0])
    with pytest.raises(RuntimeError) as raised:
        call("aten::dequantize.any", 3)
    assert str(raised.value) == "dequantize() takes a Tensor or a list or tuple of them, not a int"
