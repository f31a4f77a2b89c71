"""Recording of calls of PyTorch's C++ functions.

Everything that code does to tensors ends in a call of a function, a method or a descriptor that C++ defines. Most are
operators of the same name. The others are in the tables here.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any, Final

import torch

from rekindle.errors import SchemaError, TracingError, UndefinedNameError
from rekindle.frontend.sugared_values.tensor_attributes import TENSOR_CASTS
from rekindle.ir.graph import Value
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.types import NONE
from rekindle.scripting.library_values.builtin_table import builtin_kind, is_operator
from rekindle.tracing.recording import autocasting, creation
from rekindle.tracing.recording.autocasting import Casts
from rekindle.tracing.recording.creation import as_in_schema
from rekindle.tracing.recording.recorder import ATTRIBUTE, Recorder
from rekindle.tracing.recording.subscripts import record_getitem, record_setitem
from rekindle.tracing.report import Baked
from rekindle.tracing.source_locations import is_foreign_code, users_place

Arguments = tuple[Any, ...]
Keywords = dict[str, Any]
Handler = Callable[[Recorder, Callable[..., Any], Arguments, Keywords], Any]


def perform(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    """Call ``function``, record what the call computes, and return its result.

    Raises:
        TracingError: the call computes tensors, and is not an operator, or its arguments cannot be recorded.
    """
    if torch._C._functorch.maybe_current_level() is not None:
        return _transformed(recorder, function, args, kwargs)
    name = name_of(function)
    handler = _HANDLERS.get(name)
    if handler is not None:
        with recorder.within_call():
            return handler(recorder, function, args, kwargs)
    kind = kind_of(function)
    if name in _QUERIES:
        return function(*args, **kwargs)
    if kind is None or not is_operator(kind):
        return _unrecorded(recorder, name, function, args, kwargs)
    return record_call(recorder, kind, function, args, kwargs)


def _transformed(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    """Run a function within a transform of ``torch.vmap`` or ``torch.func`` and return its result. The call is not
    recorded here: the dispatch mode records the operators that it calls."""
    recorder.bake_setting(
        "a transform of torch.func", "applied", "the trace keeps the sizes that the tensors within it had"
    )
    return function(*args, **kwargs)


def _unrecorded(recorder: Recorder, name: str, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    """Run a function other than an operator and return its result. It may query tensors.

    Raises:
        TracingError: it returns a new tensor, and takes one that the trace computes.
    """
    result = function(*args, **kwargs)
    computed = [result] if isinstance(result, torch.Tensor) else result if isinstance(result, (list, tuple)) else []
    inputs = [item for item in (*args, *kwargs.values()) if isinstance(item, torch.Tensor)]
    for tensor in computed:
        fresh = isinstance(tensor, torch.Tensor) and recorder.known(tensor) is None
        if fresh and any(recorder.is_computed(item) for item in inputs):
            raise TracingError(
                f"{name} computes a tensor and is not an operator that a trace can record",
                users_place(),
                hint="use another function, or put the call into a scripted function, which traces keep as it is",
            )
    return result


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of ``function`` in the tables of handlers: ``Tensor.size``, ``Tensor.shape:get``,
    ``torch.zeros``."""
    if isinstance(function, types.MethodWrapperType):
        # A descriptor's __get__, __set__ or __delete__.
        return f"Tensor.{function.__self__.__name__}:{function.__name__.strip('_')}"  # type: ignore[attr-defined]
    if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return f"Tensor.{function.__name__}"
    return f"torch.{getattr(function, '__name__', '?')}"


def kind_of(function: Callable[..., Any]) -> str | None:
    """Return the kind of the operator that ``function`` calls; None if it is not an operator."""
    if isinstance(function, types.MethodWrapperType):
        return _PROPERTIES.get(name_of(function))
    if isinstance(function, torch._ops.OpOverload):
        return function._schema.name
    if isinstance(function, torch._ops.OpOverloadPacket):
        return function._qualified_op_name
    if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        public = getattr(torch.Tensor, function.__name__)
        # What Python extends under the same name is an operator still.
        return _MAGIC.get(function.__name__) or builtin_kind(function if inspect.isfunction(public) else public)
    return builtin_kind(function)


def record_call(recorder: Recorder, kind: str, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    """Run ``function`` and record it as a call of the operator ``kind``. Return the result, bound to the graph value. A
    call whose result has no tensor is not recorded.

    Raises:
        TracingError: the arguments fit no overload, or one is a C++ object that is not an attribute of the module.
    """
    keywords = as_in_schema(kwargs, kind)
    # Before the call: an operator that writes to its argument gives the argument a new value.
    positional = [_argument(recorder, item, index - len(args)) for index, item in enumerate(args)]
    named = {name: _argument(recorder, item, name) for name, item in keywords.items()}
    if kind == "aten::to" and len(args) > 1 and isinstance(args[1], str):
        recorder.report_device(args[1])
    recorder.casts = Casts() if autocasting.is_on() and kind != "aten::to" else None
    casts = recorder.casts
    try:
        with recorder.within_call():
            result = function(*args, **kwargs)
    finally:
        recorder.casts = None
    if not _holds_tensor(result):
        return result
    if casts is not None:
        with casts.recorded(recorder, kind, args, keywords):
            positional = [_argument(recorder, item, index - len(args)) for index, item in enumerate(args)]
            named = {name: _argument(recorder, item, name) for name, item in keywords.items()}
    is_method = isinstance(function, types.MethodDescriptorType)
    try:
        try:
            value = recorder.insert(kind, positional, named, is_method=is_method)
        except SchemaError as error:
            value = _insert_leniently(recorder, kind, args, keywords, is_method, error)
    except (SchemaError, UndefinedNameError) as error:
        objects = [item for item in (*args, *kwargs.values()) if isinstance(item, torch.ScriptObject)]
        if any(not recorder.is_of_module(item) for item in objects):
            raise TracingError(
                f"the call of {kind} takes an object in C++ that is not an attribute of the traced module",
                users_place(),
                hint="make it an attribute of the module that is traced",
            ) from error
        raise TracingError(
            f"the call of {kind} cannot be recorded: {error.message}",
            users_place(),
            hint="please report this call; as a way round, put it into a scripted function, which traces keep as it is",
        ) from error
    if value.type == NONE:
        return result
    if args and result is args[0] and not _writes(kind):
        result = _unaliased(recorder, args[0], result)
    return recorder.bind_result(result, value)


def _writes(kind: str) -> bool:
    return kind.endswith("_")


def _unaliased(recorder: Recorder, given: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
    """Return ``result``; a new view of it if it is ``given`` itself, as ``x.to(torch.float32)`` may return ``x``. In
    another run it may be a copy, so the graph has two values, and the run needs two tensors."""
    if result is not given or result.layout is not torch.strided or recorder.is_of_module(result):
        return result
    enabled = torch.is_grad_enabled()
    torch._C._set_grad_enabled(True)
    try:
        with recorder.within_call():
            return torch.ops.aten.alias.default(result)  # type: ignore[no-any-return]
    finally:
        torch._C._set_grad_enabled(enabled)


def _argument(recorder: Recorder, item: object, which: int | str) -> NamedValue:
    if isinstance(item, torch.dtype):
        return recorder.dtype_argument(item, which)
    return recorder.argument(item, which if isinstance(which, str) else None)


def _insert_leniently(
    recorder: Recorder, kind: str, args: Arguments, keywords: Keywords, is_method: bool, error: SchemaError
) -> Value:
    """Insert a call with arguments that Python's functions accept and operators do not: ints in a list of floats, and
    numbers in place of tensors, as in ``torch.floor_divide(7, x)``. Return its result.

    Raises:
        SchemaError: ``error``, if the call fits no overload with either conversion.
    """
    for convert in (_floats, _as_tensor):
        try:
            positional = [convert(recorder, item) for item in args]
            named = (
                {name: convert(recorder, item) for name, item in keywords.items()} if convert is _floats else keywords
            )
            return recorder.insert(kind, positional, named, is_method=is_method)
        except SchemaError:
            continue
    raise error


def _floats(recorder: Recorder, item: object) -> object:
    if not isinstance(item, (list, tuple)) or not all(isinstance(part, (int, float)) for part in item):
        return item
    return [recorder.as_float(part) for part in item]


def _as_tensor(recorder: Recorder, item: object) -> object:
    """Return a number as a graph value of a tensor without dimensions; other objects and bools unchanged."""
    if isinstance(item, bool) or not isinstance(item, (int, float, complex)):
        return item
    if recorder.is_traced_number(item):
        return NamedValue(recorder.insert("aten::tensor", [item]))
    return NamedValue(recorder.constant(torch.tensor(item)))


def record_unseen(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    """Run and record an operator that reached the dispatcher without being recorded, and return its result. Its sizes
    and numbers are plain, so that they are constants of the trace."""
    schema = function._schema  # type: ignore[attr-defined]
    if schema.name == "aten::set_":
        with recorder.within_call():
            return _set(recorder, function, args, kwargs)
    transformed = torch._C._functorch.maybe_current_level() is not None
    if (
        not transformed
        and is_foreign_code()
        and any(isinstance(item, torch.Tensor) and recorder.is_computed(item) for item in args)
    ):
        recorder.bake_setting(
            "code that is not Python's", "run", "the trace has the operators that it called, with their numbers"
        )
    for argument, item in zip(schema.arguments, args, strict=False):
        if "size" in argument.name and isinstance(item, (list, tuple)) and item:
            recorder.report.add(Baked.SIZE, f"'{argument.name}' of {schema.name}", list(item), users_place())
    return record_call(recorder, schema.name, function, args, kwargs)


def _holds_tensor(result: object) -> bool:
    if isinstance(result, (list, tuple)):
        return any(_holds_tensor(item) for item in result)
    return isinstance(result, torch.Tensor)


# ------------------------------------------------------------------------------------------------------------- handlers


def _size(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    tensor, dim = args[0], args[1] if len(args) > 1 else kwargs.get("dim")
    return recorder.shape(tensor) if dim is None else recorder.size(tensor, dim)


def _stride(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    result = function(*args, **kwargs)
    value = recorder.insert("aten::stride", args, kwargs)
    if isinstance(result, int):
        return recorder.bind_result(result, value)
    return tuple(recorder.bind_result(list(result), value))


def _refused(name: str) -> Handler:
    """Return a handler that rejects the method ``name`` of tensors, which runs Python code on each element."""

    def handler(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
        raise TracingError(
            f"Tensor.{name} runs Python on each element, which a trace cannot record",
            users_place(),
            hint="compute with operators on the whole tensor",
        )

    return handler


def _numel(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    return recorder.bind_result(function(*args, **kwargs), recorder.insert("aten::numel", [args[0]]))


def _shape(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    return recorder.shape(args[0])


def _device(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    found = function(*args, **kwargs)
    recorder.remember_device(found, args[0])
    return found


def _dtype(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    recorder.dtypes.note(args[0])
    return function(*args, **kwargs)


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
        if source is not None and recorder.is_computed(source):
            kind = Baked.BRANCH if isinstance(result, bool) else Baked.NUMBER
            recorder.bake_tensor(what, result, kind)
        return result

    return handler


def _nonzero(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    as_tuple = kwargs.get("as_tuple", False)
    kind = "aten::nonzero_numpy" if as_tuple else "aten::nonzero"
    source = args[0] if args else kwargs["input"]
    return recorder.bind_result(function(*args, **kwargs), recorder.insert(kind, [source]))


def _scalar_type(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    """Record ``x.type(torch.float64)``; without an argument, the call returns the name of the type."""
    wanted = args[1] if len(args) > 1 else kwargs.get("dtype")
    if wanted is None:
        return function(*args, **kwargs)
    own = _argument(recorder, wanted, -1 if len(args) > 1 else "dtype") if isinstance(wanted, torch.dtype) else None
    result = function(*args, **kwargs)
    value = recorder.insert("aten::to", [args[0], result.dtype if own is None else own])
    return recorder.bind_result(_unaliased(recorder, args[0], result), value)


def _cast(dtype: torch.dtype) -> Handler:
    """Return the handler that records ``x.float()``, or the method of another ``dtype``, as ``aten::to``."""

    def handler(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
        result = function(*args, **kwargs)
        value = recorder.insert("aten::to", [args[0], dtype, False, False, kwargs.get("memory_format")])
        return recorder.bind_result(_unaliased(recorder, args[0], result), value)

    return handler


def _to_device(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    """Record ``x.cpu()`` or ``x.cuda()`` as ``aten::to``."""
    result = function(*args, **kwargs)
    dtype = NamedValue(recorder.insert("prim::dtype", [args[0]]))
    value = recorder.insert("aten::to", [args[0], result.device, dtype, False, False, kwargs.get("memory_format")])
    return recorder.bind_result(_unaliased(recorder, args[0], result), value)


def _data(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    result = function(*args, **kwargs)
    return recorder.bind_result(result, recorder.insert("aten::detach", [args[0]]))


def _set_data(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    """Run and record ``x.data = y``: ``x`` has the value of ``y`` from then on."""
    tensor, data = args
    value = recorder.value_of_tensor(tensor)
    if value.node.kind in (ATTRIBUTE, "prim::Param"):
        recorder.bake_setting("the data of a tensor from outside", "replaced", "the trace does not replace it")
    data_value = recorder.insert("aten::detach", [data])
    result = function(*args, **kwargs)
    recorder.bind(tensor, data_value)
    return result


def _set_requires_grad(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    tensor, wanted = args
    value = recorder.insert("aten::requires_grad_", [tensor, wanted])
    result = function(*args, **kwargs)
    recorder.bind(tensor, value)
    return result


def _set(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    """Run and record ``x.set_(y)``. If the argument is a storage, nothing is recorded: ``x`` is a constant from then
    on."""
    if len(args) > 1 and isinstance(args[1], torch.Tensor):
        return record_call(recorder, "aten::set_", function, args, kwargs)
    result = function(*args, **kwargs)
    recorder.forget(args[0])
    return result


def _grad(recorder: Recorder, function: Callable[..., Any], args: Arguments, kwargs: Keywords) -> Any:
    result = function(*args, **kwargs)
    if result is None or not recorder.is_computed(args[0]):
        return result
    found = recorder.insert("prim::grad", [args[0]])
    return recorder.bind_result(result, recorder.insert("aten::_unwrap_optional", [NamedValue(found)]))


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
    "Tensor.dtype:get": _dtype,
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
    "torch.tensor": creation.tensor,
    "Tensor.new_tensor": creation.new_tensor,
    "Tensor.new": creation.new,
    "Tensor.stride": _stride,
    **{f"Tensor.{name}": _refused(name) for name in ("apply_", "map_", "map2_")},
    "Tensor.nonzero": _nonzero,
    "torch.nonzero": _nonzero,
    "Tensor.type": _scalar_type,
    "Tensor.data:get": _data,
    "Tensor.data:set": _set_data,
    "Tensor.grad:get": _grad,
    "Tensor.requires_grad:set": _set_requires_grad,
    "Tensor.requires_grad_": _requires_grad,
    "Tensor.set_": _set,
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
"""Calls that are not recorded in the graph, though there is an operator of that name."""

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
