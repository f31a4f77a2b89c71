"""The operators of Python callables: ``torch.add`` is ``aten::add``, ``math.ceil`` is ``aten::ceil``."""

from __future__ import annotations

import cmath
import collections
import inspect
import math
import types
import warnings
from collections.abc import Iterator
from typing import Any, Final

import torch
import torch.backends.cudnn
import torch.nn.functional as F
from torch.nn.modules import utils as nn_utils

from rekindle.frontend.calls.torchscript_builtins import find_builtin_functions
from rekindle.ir.operators.registry import REGISTRY

_NAMESPACES: Final[tuple[Any, ...]] = (
    torch,
    torch._C._nn,
    torch._C._fft,  # type: ignore[attr-defined]
    torch._C._linalg,  # type: ignore[attr-defined]
    torch._C._nested,  # type: ignore[attr-defined]
    torch._C._sparse,  # type: ignore[attr-defined]
    torch._C._special,  # type: ignore[attr-defined]
    torch._C._VariableFunctions,
)
"""Where Python finds functions that are operators under the same name."""

_MATH_SPELLINGS: Final = {"remainder": "mathremainder"}
_CMATH_SPELLINGS: Final = {"phase": "angle", "rect": "polar"}

_ONE_BY_ONE: Final[tuple[tuple[Any, str], ...]] = (
    (nn_utils._single, "aten::_single"),
    (nn_utils._pair, "aten::_pair"),
    (nn_utils._triple, "aten::_triple"),
    (nn_utils._quadruple, "aten::_quadruple"),
    (nn_utils._list_with_default, "aten::list_with_default"),
    (collections.OrderedDict, "aten::dict"),
    (torch.device, "aten::device"),
    (torch._assert, "aten::_assert"),
    (torch._C._infer_size, "aten::_infer_size"),
    (torch._C._get_tracing_state, "aten::_get_tracing_state"),
    (torch._C._set_grad_enabled, "aten::set_grad_enabled"),
    (torch._C._get_cpu_capability, "aten::_get_cpu_capability"),
    (torch.autograd.grad, "aten::grad"),
    (torch.autograd.backward, "aten::backward"),
    (torch.backends.cudnn.is_acceptable, "aten::cudnn_is_acceptable"),
    (torch.broadcast_shapes, "aten::broadcast_shapes"),
    (vars(F)["_no_grad_embedding_renorm_"], "aten::_no_grad_embedding_renorm_"),
    (F.assert_int_or_pair, "aten::_assert_int_or_pair"),
    (torch.nn.init._no_grad_fill_, "aten::_no_grad_fill_"),
    (torch.nn.init._no_grad_normal_, "aten::_no_grad_normal_"),
    (torch.nn.init._no_grad_uniform_, "aten::_no_grad_uniform_"),
    (torch.nn.init._no_grad_zero_, "aten::_no_grad_zero_"),
    (warnings.warn, "aten::warn"),
)

_COMPILED_FROM_SOURCE: Final = ("stft", "lu", "cdist", "norm", "unique", "unique_consecutive", "tensordot")
"""Functions of ``torch.functional`` whose operators take other arguments than they do."""


def builtin_kind(function: object) -> str | None:
    """Return the kind of the operator for ``function``, such as ``aten::add``; None if there is none. A Python function
    or class whose operator does not exist has none; a builtin function of PyTorch has one even then."""
    function = _behind_torch_compile(function)
    kind = _TABLE.get(id(function))
    if kind is None:
        kind = _kind_by_name(function)
    if kind is None or not (inspect.isfunction(function) or inspect.isclass(function)):
        return kind
    # What has Python source can be compiled from it where there is no such operator.
    return kind if is_operator(kind) else None


def _behind_torch_compile(function: Any) -> Any:
    """Return ``function`` without the wrapper that torch.compile adds to some functions, such as torch.manual_seed,
    once it is imported."""
    if isinstance(function, types.FunctionType) and function.__globals__.get("__name__") == "torch._compile":
        return inspect.unwrap(function)
    return function


def is_operator(kind: str) -> bool:
    """Return whether there is an operator, or a function written in TorchScript, of this kind."""
    return bool(REGISTRY.overloads(kind)) or bool(find_builtin_functions(kind))


def _kind_by_name(function: object) -> str | None:
    """Return the kind of the operator for a method of tensors, or for a C++ function of torch that is recreated on each
    access; None for other objects, and for methods without an operator."""
    if isinstance(function, types.MethodDescriptorType) and issubclass(torch.Tensor, function.__objclass__):
        kind = f"aten::{function.__name__}"
        return kind if is_operator(kind) else None
    if not isinstance(function, types.BuiltinFunctionType):
        return None
    owner = function.__self__
    if owner is torch._C._VariableFunctions or any(owner is namespace for namespace in _NAMESPACES[1:]):
        return f"aten::{function.__name__}"
    return None


def _entries() -> Iterator[tuple[Any, str]]:
    from_source = {id(getattr(torch.functional, name)) for name in _COMPILED_FROM_SOURCE}
    for namespace in _NAMESPACES:
        for name, value in vars(namespace).items() if namespace is torch else _members(namespace):
            if callable(value) and not inspect.isclass(value) and id(value) not in from_source:
                # The one name that differs from its operator's.
                yield value, "aten::segment_reduce" if name == "_segment_reduce" else f"aten::{name}"
    for module, spellings in ((math, _MATH_SPELLINGS), (cmath, _CMATH_SPELLINGS)):
        for name, value in vars(module).items():
            if isinstance(value, types.BuiltinFunctionType):
                yield value, f"aten::{spellings.get(name, name)}"
    yield from _ONE_BY_ONE


def _members(namespace: object) -> Iterator[tuple[str, Any]]:
    for name in dir(namespace):
        if not name.startswith("__"):
            yield name, getattr(namespace, name)


def _table() -> dict[int, str]:
    return {id(_behind_torch_compile(function)): kind for function, kind in _entries()}


_TABLE: Final = _table()
