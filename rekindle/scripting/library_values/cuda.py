"""``torch.cuda`` in programs: its functions are operators of namespace ``cuda``, its classes those of TorchScript.

TorchScript's operators accept fewer forms of arguments than Python's functions: a device is an index or a
``torch.device``, and is never omitted. The arguments of calls are converted, so that ``torch.jit.load`` reads archives
with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
import torch.cuda.nvtx

from rekindle.errors import SchemaError, Source, SourceRange
from rekindle.frontend.sugared_values.base import CallSite, StaticValue, SugaredValue
from rekindle.frontend.sugared_values.values import BuiltinFunction, FunctionValue, MethodValue, SimpleValue
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.text.type_parser import custom_class
from rekindle.ir.types import DEVICE, DTYPE, INT, NONE, STREAM, STRING, ClassType, FunctionType, TupleType
from rekindle.ops.tensor.cuda import EVENT_CLASS, STREAM_CLASS
from rekindle.program.sources.source_importer import SourceImporter
from rekindle.scripting.annotations import CLASS_HOOKS
from rekindle.scripting.class_values import CLASS_VALUE_HOOKS
from rekindle.scripting.library_values.torchbind_classes import TorchBindClass

_TEXTS: Final = {
    "__torch__.torch.cuda._utils": """
def _get_device_index(device: Device, optional: bool) -> int:
  if torch.ne(ops.prim.type(device), "cuda"):
    ops.prim.RaiseException(torch.format("Expected a cuda device, but got: {}", device), "builtins.ValueError")
  else:
    pass
  index = ops.prim.index(device)
  if torch.__is__(index, None):
    if torch.__not__(optional):
      _0 = "Expected a torch.device with a specified index or an integer, but got:{}"
      ops.prim.RaiseException(torch.format(_0, device), "builtins.ValueError")
    else:
      pass
    found = ops.cuda._current_device()
  else:
    found = unchecked_cast(int, index)
  return found
""",
    "__torch__.torch.cuda": """
class StreamContext:
  stream : Optional[__torch__.torch.classes.cuda.Stream]
  src_prev_stream : Optional[__torch__.torch.classes.cuda.Stream]
  dst_prev_stream : Optional[__torch__.torch.classes.cuda.Stream]
  def __init__(self: __torch__.torch.cuda.StreamContext,
               stream: Optional[__torch__.torch.classes.cuda.Stream]) -> NoneType:
    self.stream = stream
    self.src_prev_stream = None
    self.dst_prev_stream = None
  def __enter__(self: __torch__.torch.cuda.StreamContext) -> NoneType:
    stream = self.stream
    if stream is not None:
      before = ops.cuda.current_stream(None)
      self.src_prev_stream = before
      if torch.ne((before).device_getter(), (stream).device_getter()):
        self.dst_prev_stream = ops.cuda.current_stream((stream).device_getter())
      else:
        pass
      ops.cuda.set_stream(stream)
    else:
      pass
  def __exit__(self: __torch__.torch.cuda.StreamContext, type: Any, value: Any, traceback: Any) -> NoneType:
    there = self.dst_prev_stream
    if there is not None:
      ops.cuda.set_stream(there)
    else:
      pass
    here = self.src_prev_stream
    if here is not None:
      ops.cuda.set_stream(here)
    else:
      pass
class device:
  idx : int
  prev_idx : int
  def __init__(self: __torch__.torch.cuda.device, idx: int) -> NoneType:
    self.idx = idx
    self.prev_idx = -1
  def __enter__(self: __torch__.torch.cuda.device) -> NoneType:
    self.prev_idx = ops.cuda._exchange_device(self.idx)
  def __exit__(self: __torch__.torch.cuda.device, type: Any, value: Any, traceback: Any) -> bool:
    self.idx = ops.cuda._maybe_exchange_device(self.prev_idx)
    return False
class device_of:
  idx : int
  prev_idx : int
  def __init__(self: __torch__.torch.cuda.device_of, obj: Tensor) -> NoneType:
    if ops.prim.is_cuda(obj):
      self.idx = torch.get_device(obj)
    else:
      self.idx = -1
    self.prev_idx = -1
  def __enter__(self: __torch__.torch.cuda.device_of) -> NoneType:
    self.prev_idx = ops.cuda._exchange_device(self.idx)
  def __exit__(self: __torch__.torch.cuda.device_of, type: Any, value: Any, traceback: Any) -> bool:
    self.idx = ops.cuda._maybe_exchange_device(self.prev_idx)
    return False
""",
}
"""The context managers of ``torch.cuda`` as archives hold them. They work where there are no GPUs, if Python's do."""


def _text_of(qualifier: str) -> Source | None:
    text = _TEXTS.get(qualifier)
    return None if text is None else Source(text, f"{qualifier}.py")


cuda_importer: Final = SourceImporter(_text_of)

ConvertDevice = Callable[[SourceRange, Graph, Value], Value]


def as_device(range: SourceRange, graph: Graph, device: Value) -> Value:
    """Emit the conversion of ``device`` to a ``torch.device`` from its name or the index of a GPU, and return the
    result. Values of other types are returned unchanged."""
    if device.type == STRING:
        return graph.insert("aten::device", [device], range=range)
    if device.type == INT:
        name = graph.insert_constant("cuda", range=range)
        return graph.insert("aten::device", [name, device], range=range)
    return device


def _as_device_or_index(range: SourceRange, graph: Graph, device: Value) -> Value:
    return device if device.type == INT else as_device(range, graph, device)


def as_index(*, optional: bool) -> ConvertDevice:
    """Return a function that emits the conversion of a device to its index. The converted program raises ValueError for
    a device other than a GPU; for one without an index it uses the current GPU if ``optional``, and raises ValueError
    otherwise."""

    def convert(range: SourceRange, graph: Graph, device: Value) -> Value:
        if device.type == INT:
            return device
        function = cuda_importer.load_type("__torch__.torch.cuda._utils._get_device_index")
        assert isinstance(function, FunctionType)
        arguments = [as_device(range, graph, device), graph.insert_constant(optional, range=range)]
        named = [NamedValue(value, range=range) for value in arguments]
        return FunctionValue(function.function).call(CallSite(range, graph, named)).as_value(range, graph)

    return convert


@dataclass(slots=True)
class _Parameter:
    """A parameter of a Python function. ``default`` is the value if it is omitted; a required one has none."""

    name: str
    is_required: bool = False
    convert: ConvertDevice | None = None
    default: object = None


class CudaFunction(StaticValue):
    """A function of ``torch.cuda`` that the operator ``kind`` implements. If ``omits`` is set, a call without arguments
    calls the operator without arguments; otherwise omitted arguments are passed as their defaults."""

    def __init__(self, name: str, kind: str, parameters: Sequence[_Parameter], *, omits: bool = False) -> None:
        self.name = name
        self.kind = kind
        self.parameters = parameters
        self.omits = omits

    @property
    def description(self) -> str:
        return f"the function 'torch.cuda.{self.name}'"

    def call(self, call: CallSite) -> SugaredValue:
        args = bind_devices(self.description, call, self.parameters)
        if self.omits and not call.args and not call.kwargs:
            args = []
        made = BuiltinFunction(self.kind).call(replace(call, args=args, kwargs=[]))
        if call.targets and made.as_value(call.range, call.graph).type == TupleType(()):
            return SimpleValue(call.graph.insert_constant(None, range=call.range))
        return made


def bind_devices(what: str, call: CallSite, parameters: Sequence[_Parameter]) -> list[NamedValue]:
    """Return the arguments of a call by position, with devices converted, and the default of each omitted argument.

    Raises:
        SchemaError: the call does not fit the parameters. The message begins with ``what``.
    """
    names = [each.name for each in parameters]
    given = dict(zip(names, call.args, strict=False))
    for named in call.kwargs:
        if named.name not in names or named.name in given:
            raise SchemaError(f"{what} cannot be called with an argument '{named.name}' here", call.range)
        given[named.name] = replace(named, name=None)
    if len(call.args) > len(names):
        raise SchemaError(f"{what} takes at most {len(names)} arguments, got {len(call.args)}", call.range)
    found: list[NamedValue] = []
    for parameter in parameters:
        item: NamedValue | None = given.get(parameter.name)
        if item is None and parameter.is_required:
            raise SchemaError(f"{what} needs the argument '{parameter.name}'", call.range)
        if item is None:
            found.append(NamedValue(call.graph.insert_constant(parameter.default, range=call.range), range=call.range))
        elif parameter.convert is None or item.type == NONE:
            found.append(item)
        else:
            found.append(
                NamedValue(parameter.convert(call.range, call.graph, item.materialize(call.graph)), range=call.range)
            )
    return found


class IsAvailable(StaticValue):
    """``torch.cuda.is_available``: whether there are devices when the program runs, not when it is compiled."""

    description = "the function 'torch.cuda.is_available'"

    def call(self, call: CallSite) -> SugaredValue:
        count = call.graph.insert("cuda::device_count", [], range=call.range)
        zero = call.graph.insert_constant(0, range=call.range)
        return SimpleValue(call.graph.insert("aten::gt", [count, zero], range=call.range))


class IsAutocastEnabled(StaticValue):
    """``torch.is_autocast_enabled``. TorchScript has an operator for each of two types of devices."""

    description = "the function 'is_autocast_enabled'"

    _KINDS: Final = {"cuda": "aten::is_autocast_enabled", "cpu": "aten::is_autocast_cpu_enabled"}

    def call(self, call: CallSite) -> SugaredValue:
        given = [*call.args, *call.kwargs]
        device = given[0].materialize(call.graph).to_python(None) if len(given) == 1 else None
        kind = self._KINDS.get(device) if isinstance(device, str) else None
        if kind is None:
            return BuiltinFunction("aten::is_autocast_enabled").call(call)
        return BuiltinFunction(kind).call(replace(call, args=[], kwargs=[]))


class AutocastGpuDtype(StaticValue):
    """``torch.get_autocast_gpu_dtype``"""

    description = "the function 'get_autocast_gpu_dtype'"

    def call(self, call: CallSite) -> SugaredValue:
        device = NamedValue(call.graph.insert_constant("cuda", range=call.range), range=call.range)
        return BuiltinFunction("aten::get_autocast_dtype").call(replace(call, args=[device, *call.args]))


class GeneratorClass(BuiltinFunction):
    """``torch.Generator``. The operator takes the device as a keyword argument only."""

    def __init__(self) -> None:
        super().__init__("aten::Generator")

    def call(self, call: CallSite) -> SugaredValue:
        devices = [replace(item, name="device") for item in call.args]
        given = [*devices, *call.kwargs]
        for index, item in enumerate(given):
            if item.name == "device":
                value = as_device(call.range, call.graph, item.materialize(call.graph))
                given[index] = NamedValue(value, name="device", range=call.range)
        return super().call(replace(call, args=[], kwargs=given))


class CudaClass(TorchBindClass):
    """The class ``torch.cuda.Stream`` or ``torch.cuda.Event``; a call creates an object."""

    def call(self, call: CallSite) -> SugaredValue:
        return super().call(
            replace(
                call,
                args=[self._converted(call, item, index == 0) for index, item in enumerate(call.args)],
                kwargs=[self._converted(call, item, item.name == "device") for item in call.kwargs],
            )
        )

    def _converted(self, call: CallSite, item: NamedValue, may_be_device: bool) -> NamedValue:
        if self.wrapper is not torch.cuda.Stream or not may_be_device or item.type not in (INT, STRING, DEVICE):
            return item
        value = as_device(call.range, call.graph, item.materialize(call.graph))
        return NamedValue(value, name=item.name, range=call.range)


CLASSES: Final[dict[type, ClassType]] = {
    torch.cuda.Stream: custom_class(STREAM_CLASS),
    torch.cuda.Event: custom_class(EVENT_CLASS),
}

_DEVICE_OR_INDEX: Final = (_Parameter("device", convert=_as_device_or_index),)
_DEVICE: Final = (_Parameter("device", convert=as_device),)


_WITHOUT_ARGUMENTS: Final = ("is_initialized", "is_current_stream_capturing", "empty_cache")
_OF_DEVICES: Final = (
    *("get_device_name", "get_device_capability", "get_device_properties", "mem_get_info", "reset_peak_memory_stats"),
    *("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"),
)


def _functions() -> list[tuple[Any, CudaFunction]]:
    index = (_Parameter("device", True, as_index(optional=False)),)
    cuda: Any = torch.cuda
    found = [
        CudaFunction("current_stream", "cuda::current_stream", _DEVICE_OR_INDEX),
        CudaFunction("default_stream", "cuda::default_stream", _DEVICE_OR_INDEX),
        CudaFunction("synchronize", "cuda::synchronize", _DEVICE_OR_INDEX, omits=True),
        CudaFunction("current_device", "cuda::_current_device", ()),
        CudaFunction("device_count", "cuda::device_count", ()),
        CudaFunction("set_device", "cuda::_set_device", index),
        CudaFunction("_exchange_device", "cuda::_exchange_device", (_Parameter("device", True),)),
        CudaFunction("_maybe_exchange_device", "cuda::_maybe_exchange_device", (_Parameter("device", True),)),
        CudaFunction("set_stream", "cuda::set_stream", (_Parameter("stream", True),)),
        CudaFunction(
            "is_bf16_supported", "python::cuda_is_bf16_supported", (_Parameter("including_emulation", default=True),)
        ),
        CudaFunction("get_rng_state", "python::cuda_get_rng_state", _DEVICE),
        CudaFunction("set_rng_state", "python::cuda_set_rng_state", (_Parameter("new_state", True), *_DEVICE)),
        *(CudaFunction(name, f"python::cuda_{name}", ()) for name in _WITHOUT_ARGUMENTS),
        *(CudaFunction(name, f"python::cuda_{name}", _DEVICE) for name in _OF_DEVICES),
        *(
            CudaFunction(name, f"python::cuda_{name}", (_Parameter("seed", True),))
            for name in ("manual_seed", "manual_seed_all")
        ),
    ]
    nvtx = torch.cuda.nvtx
    message = (_Parameter("msg", True),)
    return [
        *((getattr(cuda, each.name), each) for each in found),
        (nvtx.range_push, CudaFunction("nvtx.range_push", "python::cuda_nvtx_range_push", message)),
        (nvtx.range_pop, CudaFunction("nvtx.range_pop", "python::cuda_nvtx_range_pop", ())),
        (nvtx.mark, CudaFunction("nvtx.mark", "python::cuda_nvtx_mark", message)),
    ]


CUDA_FUNCTIONS: Final[dict[int, SugaredValue]] = {
    **{id(function): value for function, value in _functions()},
    id(torch.cuda.is_available): IsAvailable(),
    id(torch.is_autocast_enabled): IsAutocastEnabled(),
    id(torch.get_autocast_gpu_dtype): AutocastGpuDtype(),
    id(torch.Generator): GeneratorClass(),
}
"""Sugared values of functions, by identity."""


class CudaMethod(StaticValue):
    """``x.cuda(device, non_blocking)`` of a tensor."""

    description = "the method 'cuda'"

    def call(self, call: CallSite) -> SugaredValue:
        if len(call.args) == 1 and not call.kwargs:
            return BuiltinFunction("aten::cuda").call(call)
        tensor, *others = call.args
        names = ("device", "non_blocking")
        given = dict(zip(names, others, strict=False)) | {item.name or "": item for item in call.kwargs}
        device: NamedValue | None = given.pop("device", None)
        if device is None or device.type == NONE:
            place = call.graph.insert("aten::device", [call.graph.insert_constant("cuda", range=call.range)])
        else:
            place = as_device(call.range, call.graph, device.materialize(call.graph))
        named = [replace(item, name=name) for name, item in given.items()]
        args = [NamedValue(place, range=call.range)]
        return BuiltinFunction("aten::to", tensor).call(replace(call, args=args, kwargs=named))


class ToMethod(StaticValue):
    """``x.to(…)`` of a tensor. An int is the index of a device in Python, and the number of a dtype in the operator.

    Only a literal int is converted to a device: a parameter annotated as int, as TorchScript declares dtypes, may hold
    a ``torch.dtype``.
    """

    description = "the method 'to'"

    def call(self, call: CallSite) -> SugaredValue:
        tensor, *others = call.args
        if others and call.graph.follows_python and others[0].type == INT and others[0].type != DTYPE:
            given = others[0].materialize(call.graph)
            if given.node.kind == "prim::Constant":
                device = call.graph.insert("python::accelerator", [given], range=call.range)
                others[0] = NamedValue(device, range=call.range)
        return BuiltinFunction("aten::to", tensor).call(replace(call, args=others))


class RecordStream(StaticValue):
    """``x.record_stream(s)`` of a tensor, for streams of CUDA too."""

    description = "the method 'record_stream'"

    def call(self, call: CallSite) -> SugaredValue:
        return BuiltinFunction("aten::record_stream").call(
            replace(
                call,
                args=[self._stream(call, item) for item in call.args],
                kwargs=[self._stream(call, item) for item in call.kwargs],
            )
        )

    def _stream(self, call: CallSite, item: NamedValue) -> NamedValue:
        if item.type != CLASSES[torch.cuda.Stream]:
            return item
        node = call.graph.create(
            "prim::unchecked_cast", [item.materialize(call.graph)], types=[STREAM], range=call.range
        )
        return replace(item, value=call.graph.insert_node(node).output)


class CudaContext(StaticValue):
    """A class of context managers of ``torch.cuda``."""

    def __init__(self, cls: type, parameter: _Parameter) -> None:
        self.name = cls.__name__
        self.parameter = parameter

    @property
    def description(self) -> str:
        return f"the class 'torch.cuda.{self.name}'"

    def as_type(self, range: SourceRange) -> ClassType:
        found = cuda_importer.load_type(f"__torch__.torch.cuda.{self.name}")
        assert isinstance(found, ClassType)
        return found

    def call(self, call: CallSite) -> SugaredValue:
        args = bind_devices(self.description, call, [self.parameter])
        if args[0].type == NONE and self.parameter.convert is not None:
            args = [NamedValue(call.graph.insert_constant(-1, range=call.range), range=call.range)]
        type = self.as_type(call.range)
        made = call.graph.insert_node(call.graph.create("prim::CreateObject", types=[type], range=call.range)).output
        MethodValue(made, type.methods["__init__"]).call(replace(call, args=args, kwargs=[], targets=1))
        return SimpleValue(made)


_CONTEXTS: Final[dict[type, CudaContext]] = {
    torch.cuda.StreamContext: CudaContext(torch.cuda.StreamContext, _Parameter("stream", True)),
    torch.cuda.device: CudaContext(torch.cuda.device, _Parameter("device", True, as_index(optional=True))),
    torch.cuda.device_of: CudaContext(torch.cuda.device_of, _Parameter("obj", True)),
}
CUDA_FUNCTIONS[id(torch.cuda.stream)] = _CONTEXTS[torch.cuda.StreamContext]


def _cuda_class(cls: type, range: SourceRange) -> SugaredValue | None:
    return CudaClass(cls, CLASSES[cls]) if cls in CLASSES else _CONTEXTS.get(cls)


def _type_of_context(cls: type, range: SourceRange) -> ClassType | None:
    return _CONTEXTS[cls].as_type(range) if cls in _CONTEXTS else None


CLASS_VALUE_HOOKS.append(_cuda_class)
CLASS_HOOKS.append(_type_of_context)
