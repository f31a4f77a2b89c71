"""PyTorch's context managers within a program: ``with torch.no_grad(): …``

The managers of gradient mode are script classes, as in ``torch.jit``: their methods are compiled from PyTorch's source.
Others are imported from TorchScript source, as archives hold it. Objects of the rest are created by calling Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import torch
import torch.autograd.profiler

from rekindle.errors import Source, SourceRange
from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.frontend.sugared_values.values import BuiltinFunction, MethodValue, SimpleValue
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.operators.schema_matching import NamedValue, match_schemas
from rekindle.ir.scalar_types import DTYPE_NUMBERS
from rekindle.ir.types import BOOL, ClassType, Type
from rekindle.program.modules.module import ObjectBinding
from rekindle.program.names import qualified_name
from rekindle.program.sources.source_importer import SourceImporter
from rekindle.scripting.class_values import CLASS_VALUE_HOOKS
from rekindle.scripting.compilation import compile_function
from rekindle.scripting.library_values.context_functions import declared_method

_COMPILED: Final[dict[type, dict[str, Type]]] = {
    torch.no_grad: {"prev": BOOL},
    torch.enable_grad: {"prev": BOOL},
    torch.set_grad_enabled: {"prev": BOOL, "mode": BOOL},
}
"""Classes that are compiled, with the types of their attributes."""


_HELD: Final[dict[type, tuple[Argument, ...]]] = {torch.inference_mode: (Argument("mode", BOOL, True),)}
"""Classes whose objects a program creates by calling Python, with the parameters of their constructors. Archives cannot
hold them."""

_TEXTS: Final = {
    "__torch__.torch.amp.autocast_mode": """
class autocast:
  fast_dtype : int
  _enabled : bool
  device : str
  def __init__(self: __torch__.torch.amp.autocast_mode.autocast, device_type: str, dtype: Optional[int]=None,
               enabled: bool=True, cache_enabled: Optional[bool]=None) -> NoneType:
    if dtype is None:
      self.fast_dtype = torch.get_autocast_dtype(device_type)
    else:
      self.fast_dtype = dtype
    self._enabled = enabled
    self.device = device_type
  def __enter__(self: __torch__.torch.amp.autocast_mode.autocast) -> __torch__.torch.amp.autocast_mode.autocast:
    return self
  def __exit__(self: __torch__.torch.amp.autocast_mode.autocast, exc_type: Any, exc_val: Any, exc_tb: Any) -> NoneType:
    return None
""",
    **{
        f"__torch__.torch.{device}.amp.autocast_mode": f"""
class autocast:
  _enabled : bool
  device : str
  fast_dtype : int
  def __init__(self: __torch__.torch.{device}.amp.autocast_mode.autocast, enabled: bool=True,
               dtype: int={DTYPE_NUMBERS[dtype]}, cache_enabled: bool=True) -> NoneType:
    self._enabled = enabled
    self.device = "{device}"
    self.fast_dtype = dtype
  def __enter__(self: __torch__.torch.{device}.amp.autocast_mode.autocast
      ) -> __torch__.torch.{device}.amp.autocast_mode.autocast:
    return self
  def __exit__(self: __torch__.torch.{device}.amp.autocast_mode.autocast, exc_type: Any, exc_val: Any,
               exc_tb: Any) -> NoneType:
    return None
"""
        for device, dtype in (("cpu", torch.bfloat16), ("cuda", torch.float16))
    },
    "__torch__.torch.autograd.profiler": """
class record_function:
  name : str
  args : Optional[str]
  record : Optional[__torch__.torch.classes.profiler._RecordFunction]
  def __init__(self: __torch__.torch.autograd.profiler.record_function, name: str,
               args: Optional[str]=None) -> NoneType:
    self.name = name
    self.args = args
    self.record = None
  def __enter__(self: __torch__.torch.autograd.profiler.record_function
      ) -> __torch__.torch.autograd.profiler.record_function:
    self.record = ops.profiler._record_function_enter_new(self.name, self.args)
    return self
  def __exit__(self: __torch__.torch.autograd.profiler.record_function, exc_type: Any, exc_value: Any,
               traceback: Any) -> NoneType:
    record = self.record
    if record is not None:
      ops.profiler._record_function_exit(record)
""",
}
"""The text of classes in archives. :mod:`rekindle.program.context_effects` implements their effects."""

_READ: Final[tuple[type, ...]] = (
    torch.autocast,
    torch.cpu.amp.autocast_mode.autocast,
    torch.cuda.amp.autocast_mode.autocast,
    torch.autograd.profiler.record_function,
)
"""The Python classes that the classes in ``_TEXTS`` represent."""


def _text_of(qualifier: str) -> Source | None:
    text = _TEXTS.get(qualifier)
    return None if text is None else Source(text, f"{qualifier}.py")


_importer: Final = SourceImporter(_text_of)

_types: dict[type, ClassType] = {}


class ContextManagerValue(SugaredValue):
    """A class of context managers. A call creates a context manager; ``torch.set_grad_enabled(…)`` as a statement sets
    the mode instead."""

    def __init__(self, cls: type) -> None:
        self.cls = cls

    @property
    def description(self) -> str:
        return f"the class '{self.cls.__name__}'"

    def as_type(self, range: SourceRange) -> Type:
        return class_type_of(self.cls)

    def call(self, call: CallSite) -> SugaredValue:
        if self.cls in _HELD:
            return self._call_python(call.range, call.graph, call.args, call.kwargs)
        if self.cls is torch.set_grad_enabled and call.targets == 0:
            return BuiltinFunction("aten::set_grad_enabled").call(call)
        type = class_type_of(self.cls)
        made = call.graph.insert_node(call.graph.create("prim::CreateObject", types=[type], range=call.range)).output
        if "__init__" in type.methods:
            MethodValue(made, type.methods["__init__"]).call(replace(call, targets=1))
        return SimpleValue(made)

    def _call_python(
        self, range: SourceRange, graph: Graph, args: Sequence[NamedValue], kwargs: Sequence[NamedValue]
    ) -> SugaredValue:
        type = class_type_of(self.cls)
        schema = FunctionSchema(self.cls.__name__, "", _HELD[self.cls], (Argument("", type),))
        _, plan = match_schemas(self.cls.__name__, [schema], range, args, kwargs)
        node = graph.create("prim::PythonOp", plan.inputs(graph, range), types=[type], range=range)
        node.attributes["name"] = self.cls.__name__
        node.attributes["function"] = ConstantObject(self.cls)
        return SimpleValue(graph.insert_node(node).output)


def class_type_of(cls: type) -> ClassType:
    """Return the type of the objects of ``cls``, one of PyTorch's classes of context managers; created on the first
    call."""
    found = _types.get(cls)
    if found is None and cls in _READ:
        read = _importer.load_type(qualified_name(cls))
        assert isinstance(read, ClassType)
        found = _types[cls] = read
    if found is None:
        found = _types[cls] = ClassType(qualified_name(cls), python_class=cls)
        for name, type in _COMPILED.get(cls, {}).items():
            found.add_attribute(name, type)
        for name in ("__init__", "__enter__", "__exit__"):
            if cls in _COMPILED and name in vars(cls):
                found.methods[name] = _compiled(found, cls, name)
            elif name != "__init__":
                found.methods[name] = declared_method(found, name)
    return found


def _compiled(type: ClassType, cls: type, name: str) -> GraphFunction:
    def define(record: GraphFunction) -> None:
        compile_function(record, vars(cls)[name], self_binding=ObjectBinding(type))

    return GraphFunction(f"{type.name}.{name}", function_creator=define)


def _value_of_class(cls: type, range: SourceRange) -> SugaredValue | None:
    return ContextManagerValue(cls) if cls in _COMPILED or cls in _HELD or cls in _READ else None


CLASS_VALUE_HOOKS.append(_value_of_class)
