"""From one kind of number to another, and from Tensors to numbers."""

from __future__ import annotations

import torch
from torch import Tensor

from rekindle.ops.registration.declare import declare, implements

# ------------------------------------------------------------------------------------------------------------ explicit

declare(
    bool,
    "aten::Bool.Tensor(Tensor a) -> bool",
    "aten::Bool.int(int a) -> bool",
    "aten::Bool.float(float a) -> bool",
)
declare(
    float,
    "aten::Float.Tensor(Tensor a) -> float",
    "aten::Float.Scalar(Scalar a) -> float",
    "aten::Float.int(int a) -> float",
    "aten::Float.bool(bool a) -> float",
    "aten::Float.str(str a) -> float",
)
declare(
    int,
    "aten::Int.Tensor(Tensor a) -> int",
    "aten::Int.bool(bool a) -> int",
    "aten::Int.float(float a) -> int",
    "aten::Int.Scalar(Scalar a) -> int",
    "aten::Int.str(str a) -> int",
)
declare(complex, "aten::Complex.Scalar(Scalar a) -> complex")


@implements(
    "aten::Complex.Tensor_Tensor(Tensor a, Tensor b) -> complex",
)
def complex_of_tensors(a: Tensor, b: Tensor) -> complex:
    """Return ``complex(a, b)`` of two tensors of one element each."""
    return complex(a.item(), b.item())


declare(
    complex,
    "aten::Complex.int_bool(int x, bool y) -> complex",
    "aten::Complex.bool_int(bool x, int y) -> complex",
    "aten::Complex.float_bool(float x, bool y) -> complex",
    "aten::Complex.bool_float(bool x, float y) -> complex",
    "aten::Complex.float_int(float x, int y) -> complex",
    "aten::Complex.int_float(int x, float y) -> complex",
    "aten::Complex.int_int(int x, int y) -> complex",
    "aten::Complex.bool_bool(bool x, bool y) -> complex",
    "aten::Complex.float_float(float x, float y) -> complex",
)


@implements(
    "aten::Complex.Tensor_float(Tensor x, float y) -> complex",
    "aten::Complex.float_Tensor(float x, Tensor y) -> complex",
    "aten::Complex.Tensor_int(Tensor x, int y) -> complex",
    "aten::Complex.int_Tensor(int x, Tensor y) -> complex",
    "aten::Complex.Tensor_bool(Tensor x, bool y) -> complex",
    "aten::Complex.bool_Tensor(bool x, Tensor y) -> complex",
)
def complex_of_mixed(x: Tensor | float, y: Tensor | float) -> complex:
    """Return ``complex(x, y)``, where one of the two is a tensor of one element."""
    return complex(
        x.item() if isinstance(x, Tensor) else x,
        y.item() if isinstance(y, Tensor) else y,
    )


# ------------------------------------------------------------------------------------------------------------ implicit


def _check_implicit(a: Tensor) -> None:
    """Check that a tensor may be converted to a number implicitly.

    Raises:
        RuntimeError: the tensor requires a gradient, which the number would lose, or it is not 0-dimensional.
    """
    if a.requires_grad:
        raise RuntimeError("a tensor that requires grad cannot stand for a number; call .item() or detach it")
    if a.dim() != 0:
        raise RuntimeError(f"only a 0-dimensional tensor can stand for a number, not one of shape {list(a.shape)}")


@implements("aten::IntImplicit(Tensor a) -> int")
def int_implicit(a: Tensor) -> int:
    """Return the number in a 0-dimensional tensor of ints.

    Raises:
        RuntimeError: the tensor holds a float, a complex number or a bool, requires a gradient, or is not
            0-dimensional.
    """
    _check_implicit(a)
    if a.dtype.is_floating_point or a.dtype.is_complex or a.dtype == torch.bool:
        raise RuntimeError(f"a tensor of dtype {a.dtype} cannot stand for an int; convert it with int()")
    return int(a.item())


@implements("aten::FloatImplicit(Tensor a) -> float")
def float_implicit(a: Tensor) -> float:
    """Return the number in a 0-dimensional tensor of real numbers, as a float.

    Raises:
        RuntimeError: the tensor holds a complex number, requires a gradient, or is not 0-dimensional.
    """
    _check_implicit(a)
    if a.dtype.is_complex:
        raise RuntimeError(f"a tensor of dtype {a.dtype} cannot stand for a float")
    return float(a.item())


@implements("aten::ComplexImplicit(Tensor a) -> complex")
def complex_implicit(a: Tensor) -> complex:
    """Return the number in a 0-dimensional tensor, as a complex.

    Raises:
        RuntimeError: the tensor requires a gradient, or is not 0-dimensional.
    """
    _check_implicit(a)
    return complex(a.item())


@implements("aten::ScalarImplicit(Tensor a) -> Scalar")
def scalar_implicit(a: Tensor) -> int | float | complex:
    """Return the number in a 0-dimensional tensor.

    Raises:
        RuntimeError: the tensor requires a gradient, or is not 0-dimensional.
    """
    _check_implicit(a)
    return a.item()


@implements("prim::NumToTensor.Scalar(Scalar a) -> Tensor", "prim::NumToTensor.bool(bool a) -> Tensor")
def number_to_tensor(a: bool | int | float | complex) -> Tensor:
    """Return a 0-dimensional tensor of the widest dtype of its kind: int64, float64, complex128 or bool."""
    if isinstance(a, bool):
        return torch.tensor(a)
    if isinstance(a, int):
        return torch.tensor(a, dtype=torch.int64)
    return torch.tensor(a, dtype=torch.float64 if isinstance(a, float) else torch.complex128)
