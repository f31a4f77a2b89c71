"""What PyTorch's C++ side is called for, and what the recording makes of it.

Everything that code does to tensors ends in a call of a function, a method or a descriptor that C++ defines. Most are
operators under the same name. The others stand in the tables here.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch

from rekindle.errors import SchemaError, TracingError, UndefinedNameError
from rekindle.frontend.values import TENSOR_CASTS
from rekindle.ir.graph import Value
from rekindle.ir.matching import CallArgument
from rekindle.ir.registry import REGISTRY
from rekindle.ir.types import NONE
from rekindle.scripting.builtin_table import builtin_kind
from rekindle.tracing.places import users_place
from rekindle.tracing.recorder import Recorder
from rekindle.tracing.report import Baked
from rekindle.tracing.subscripts import record_getitem, record_setitem

Arguments = tuple[Any, ...]
Keywords = dict[str, Any]
Handler = Callable[[Recorder, Callable[..., Any], Arguments, Keywords], Any]


def perform(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    """Call ``function``, and record what the call does.

    Raises:
        TracingError: it computes tensors in a way that no graph can hold.
    """
    if torch._C._functorch.maybe_current_level() is not None:
        raise TracingError(
            "a function that torch.vmap or torch.func transforms cannot be recorded",
            users_place(),
            hint="call the function on the whole batch, or trace it before it is transformed",
        )
    name = name_of(function)
    handler = _HANDLERS.get(name)
    if handler is not None:
        return handler(recorder, function, args, kwargs)
    kind = kind_of(function)
    if name in _QUERIES:
        return function(*args, **kwargs)
    if kind is None:
        return _unrecorded(recorder, name, function, args, kwargs)
    return record_call(recorder, kind, function, args, kwargs)


def _unrecorded(recorder: Recorder, name: str, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    """Run what is no operator. It may ask something; it may not compute a tensor from those of the trace."""
    result = function(*args, **kwargs)
    computed = [result] if isinstance(result, torch.Tensor) else result if isinstance(result, (list, tuple)) else []
    inputs = [item for item in (*args, *kwargs.values()) if isinstance(item, torch.Tensor)]
    for tensor in computed:
        fresh = isinstance(tensor, torch.Tensor) and recorder.known(tensor) is None
        if fresh and any(_is_computed(recorder, item) for item in inputs):
            raise TracingError(
                f"{name} computes a tensor and is no operator that a trace can record",
                users_place(),
                hint="use another function, or put the call into a scripted function, which traces keep as it is",
            )
    return result


def name_of(function: Callable[..., Any]) -> str:
    """A name for the tables: ``Tensor.size``, ``Tensor.shape:get``, ``torch.zeros``."""
    if isinstance(function, types.MethodWrapperType):
        # A descriptor's __get__, __set__ or __delete__.
        return f"Tensor.{function.__self__.__name__}:{function.__name__.strip('_')}"  # type: ignore[attr-defined]
    if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return f"Tensor.{function.__name__}"
    return f"torch.{getattr(function, '__name__', '?')}"


def kind_of(function: Callable[..., Any]) -> str | None:
    """The kind of the operator that ``function`` is, if it is one."""
    if isinstance(function, types.MethodWrapperType):
        return _PROPERTIES.get(name_of(function))
    if isinstance(function, torch._ops.OpOverload):
        return function._schema.name
    if isinstance(function, torch._ops.OpOverloadPacket):
        return function._qualified_op_name
    if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return _MAGIC.get(function.__name__) or builtin_kind(getattr(torch.Tensor, function.__name__))
    return builtin_kind(function)


def record_call(recorder: Recorder, kind: str, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    """Run ``function`` and record it as ``kind``."""
    keywords = _as_in_schema(kwargs, kind)
    # Before the call: an operator that writes to its argument gives the argument a new value.
    positional = [recorder.argument(item) for item in args]
    named = {name: recorder.argument(item, name) for name, item in keywords.items()}
    result = function(*args, **kwargs)
    if not _holds_tensor(result):
        return result
    is_method = isinstance(function, types.MethodDescriptorType)
    try:
        try:
            value = recorder.insert(kind, positional, named, is_method=is_method)
        except SchemaError:
            # Python's functions take numbers in places where operators take tensors: torch.floor_divide(7, x).
            numbers = [item if isinstance(item, torch.Tensor) else _number_as_tensor(recorder, item) for item in args]
            if any(item is None for item in numbers):
                raise
            value = recorder.insert(kind, numbers, named, is_method=is_method)
    except (SchemaError, UndefinedNameError) as error:
        raise TracingError(
            f"the call of {kind} cannot be recorded: {error.message}",
            users_place(),
            hint="please report this call; as a way round, put it into a scripted function, which traces keep as it is",
        ) from error
    if value.type == NONE:
        return result
    return recorder.bind_result(result, value)


def _holds_tensor(result: object) -> bool:
    if isinstance(result, (list, tuple)):
        return any(_holds_tensor(item) for item in result)
    return isinstance(result, torch.Tensor)


def _number_as_tensor(recorder: Recorder, item: object) -> CallArgument | None:
    """A number as a tensor without dimensions; None for what is no number."""
    if isinstance(item, bool) or not isinstance(item, (int, float, complex)):
        return None
    if recorder.is_traced_number(item):
        return CallArgument(recorder.insert("aten::tensor", [item]))
    return CallArgument(recorder.constant(torch.tensor(item)))


_SPELLINGS: Final = {"input": "self", "axis": "dim", "keepdims": "keepdim"}
"""Python's names of arguments that are called otherwise in schemas."""


def _as_in_schema(kwargs: Mapping[str, Any], kind: str) -> Keywords:
    """The arguments by the names that the operators of ``kind`` give them, without those that say nothing."""
    taken = {argument.name for operator in REGISTRY.overloads(kind) for argument in operator.schema.arguments}
    found = {}
    for name, item in kwargs.items():
        says_nothing = (name == "requires_grad" and not item) or (name == "out" and item is None)
        if name in taken or not says_nothing:
            found[name if name in taken else _SPELLINGS.get(name, name)] = item
    return found


# ------------------------------------------------------------------------------------------------------------- handlers


def _size(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    tensor, dim = args[0], args[1] if len(args) > 1 else kwargs.get("dim")
    return recorder.shape(tensor) if dim is None else recorder.size(tensor, dim)


def _numel(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    return recorder.bind_result(function(*args, **kwargs), recorder.insert("aten::numel", [args[0]]))


def _shape(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    return recorder.shape(args[0])


def _device(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    found = function(*args, **kwargs)
    recorder.remember_device(found, args[0])
    return found


def _getitem(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    result = function(*args)
    return recorder.bind_result(result, record_getitem(recorder, args[0], args[1]))


def _setitem(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    record_setitem(recorder, args[0], args[1], args[2])
    return function(*args)


def _bakes(what: str) -> Handler:
    def handler(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
        result = function(*args, **kwargs)
        source = next((item for item in args if isinstance(item, torch.Tensor)), None)
        if source is not None and _is_computed(recorder, source):
            kind = Baked.BRANCH if isinstance(result, bool) else Baked.NUMBER
            recorder.bake_tensor(what, result, kind)
        return result

    return handler


def _is_computed(recorder: Recorder, tensor: torch.Tensor) -> bool:
    """Whether the tensor can be another in another run."""
    value = recorder.known(tensor)
    return value is not None and value.node.kind != "prim::Constant"


def _tensor(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    """``torch.tensor(data)``: an operator where the data are numbers of the trace, else a constant."""
    result = function(*args, **kwargs)
    data = args[0] if args else kwargs.get("data")
    if _is_traced(recorder, data):
        keywords = _as_in_schema({name: item for name, item in kwargs.items() if name != "data"}, "aten::tensor")
        return recorder.bind_result(result, recorder.insert("aten::tensor", [data], keywords))
    if isinstance(data, torch.Tensor):
        value = recorder.insert("aten::clone", [CallArgument(recorder.insert("aten::detach", [data]))])
        return recorder.bind_result(result, value)
    recorder.bind(result, recorder.constant(result))
    return result


def _is_traced(recorder: Recorder, data: object) -> bool:
    if isinstance(data, (list, tuple)):
        return any(_is_traced(recorder, item) for item in data)
    return recorder.is_traced_number(data)


def _nonzero(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    as_tuple = kwargs.get("as_tuple", False)
    kind = "aten::nonzero_numpy" if as_tuple else "aten::nonzero"
    source = args[0] if args else kwargs["input"]
    return recorder.bind_result(function(*args, **kwargs), recorder.insert(kind, [source]))


def _scalar_type(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    """``x.type(torch.float64)``; without an argument, it asks for a name."""
    wanted = args[1] if len(args) > 1 else kwargs.get("dtype")
    result = function(*args, **kwargs)
    if wanted is None:
        return result
    return recorder.bind_result(result, recorder.insert("aten::to", [args[0], result.dtype]))


def _cast(dtype: torch.dtype) -> Handler:
    """``x.float()`` and its like."""

    def handler(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
        result = function(*args, **kwargs)
        return recorder.bind_result(result, recorder.insert("aten::to", [args[0], dtype, False, False, None]))

    return handler


def _to_device(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    """``x.cpu()``, ``x.cuda()``"""
    result = function(*args, **kwargs)
    return recorder.bind_result(result, recorder.insert("aten::to", [args[0], result.device], {"dtype": result.dtype}))


def _data(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    result = function(*args, **kwargs)
    return recorder.bind_result(result, recorder.insert("aten::detach", [args[0]]))


def _requires_grad(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    value: Value = recorder.insert("aten::requires_grad_", [*args], kwargs)
    return recorder.bind_result(function(*args, **kwargs), value)


_HANDLERS: Final[dict[str, Handler]] = {
    "Tensor.size": _size,
    "Tensor.shape:get": _shape,
    "Tensor.numel": _numel,
    "Tensor.nelement": _numel,
    "torch.numel": _numel,
    "Tensor.device:get": _device,
    "Tensor.__getitem__": _getitem,
    "Tensor.__setitem__": _setitem,
    "Tensor.item": _bakes("the number in a tensor"),
    "Tensor.__bool__": _bakes("the truth of a tensor"),
    "Tensor.__int__": _bakes("int() of a tensor"),
    "Tensor.__float__": _bakes("float() of a tensor"),
    "Tensor.__complex__": _bakes("complex() of a tensor"),
    "Tensor.__index__": _bakes("the number in a tensor, as an index,"),
    "Tensor.is_nonzero": _bakes("the truth of a tensor"),
    "torch.is_nonzero": _bakes("the truth of a tensor"),
    "Tensor.tolist": _bakes("the list of a tensor's numbers"),
    "Tensor.numpy": _bakes("the array of a tensor's numbers"),
    "Tensor.equal": _bakes("whether two tensors are equal"),
    "torch.equal": _bakes("whether two tensors are equal"),
    "Tensor.allclose": _bakes("whether two tensors are close"),
    "torch.allclose": _bakes("whether two tensors are close"),
    "torch.tensor": _tensor,
    "Tensor.nonzero": _nonzero,
    "torch.nonzero": _nonzero,
    "Tensor.type": _scalar_type,
    "Tensor.data:get": _data,
    "Tensor.requires_grad_": _requires_grad,
    "Tensor.cpu": _to_device,
    "Tensor.cuda": _to_device,
    **{f"Tensor.{name}": _cast(dtype) for name, dtype in TENSOR_CASTS.items()},
}

_QUERIES: Final = frozenset(
    {
        "Tensor.backward",
        "torch._has_compatible_shallow_copy_type",
        "torch.get_default_dtype",
        "torch.set_grad_enabled",
        "torch._set_grad_enabled",
        "torch.is_grad_enabled",
        "torch.result_type",
    }
)
"""What is called and leaves nothing in the graph, though there is an operator of that name."""

_PROPERTIES: Final = {
    "Tensor.T:get": "aten::numpy_T",
    "Tensor.mT:get": "aten::mT",
    "Tensor.H:get": "aten::matrix_H",
    "Tensor.mH:get": "aten::mH",
    "Tensor.real:get": "aten::real",
    "Tensor.imag:get": "aten::imag",
}
"""Attributes of tensors that are operators."""

_MAGIC: Final = {
    "__neg__": "aten::neg",
    "__invert__": "aten::bitwise_not",
    "__matmul__": "aten::matmul",
    **{f"__{name}__": f"aten::{name}" for name in ("eq", "ne", "lt", "le", "gt", "ge")},
}
