"""PyTorch's context managers within a program: ``with torch.no_grad(): …``

The managers of gradient mode are classes like those of ``torch.jit``: their methods are compiled from PyTorch's
source. Of the others a program holds the Python object.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import torch
import torch.autograd.profiler

from rekindle.errors import SourceRange
from rekindle.frontend.sugared import SugaredValue
from rekindle.frontend.values import BuiltinFunction, MethodValue, SimpleValue
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.graph import Graph
from rekindle.ir.matching import CallArgument, match_schemas
from rekindle.ir.records import FunctionRecord
from rekindle.ir.scalar_types import DTYPE_NUMBERS, DTYPES
from rekindle.ir.schema import Argument, FunctionSchema
from rekindle.ir.types import ANY, BOOL, INT, NONE, STRING, ClassType, Type, optional
from rekindle.program.module import ObjectBinding
from rekindle.program.names import qualified_name
from rekindle.scripting.compilation import compile_function
from rekindle.scripting.python_values import CLASS_VALUE_HOOKS

_COMPILED: Final[dict[type, dict[str, Type]]] = {
    torch.no_grad: {"prev": BOOL},
    torch.enable_grad: {"prev": BOOL},
    torch.set_grad_enabled: {"prev": BOOL, "mode": BOOL},
}
"""Classes that are compiled, with the types of their attributes."""


def _autocast_parameters(dtype: torch.dtype) -> tuple[Argument, ...]:
    number = Argument("dtype", INT, DTYPE_NUMBERS[dtype])
    return Argument("enabled", BOOL, True), number, Argument("cache_enabled", BOOL, True)


_HELD: Final[dict[type, tuple[Argument, ...]]] = {
    torch.inference_mode: (Argument("mode", BOOL, True),),
    torch.autograd.profiler.record_function: (Argument("name", STRING), Argument("args", optional(STRING), None)),
    torch.autocast: (
        Argument("device_type", STRING),
        Argument("dtype", optional(INT), None),
        Argument("enabled", BOOL, True),
        Argument("cache_enabled", optional(BOOL), None),
    ),
    torch.cpu.amp.autocast_mode.autocast: _autocast_parameters(torch.bfloat16),
    torch.cuda.amp.autocast_mode.autocast: _autocast_parameters(torch.float16),
}
"""Classes of which a program makes objects by calling Python, with what they take."""

_DEVICES: Final[dict[type, str]] = {
    torch.cpu.amp.autocast_mode.autocast: "cpu",
    torch.cuda.amp.autocast_mode.autocast: "cuda",
}
"""Older names for ``torch.autocast`` of one kind of device. Python deprecates them; what they make is the same."""

_types: dict[type, ClassType] = {}


class ContextManagerValue(SugaredValue):
    """A class of context managers."""

    def __init__(self, cls: type) -> None:
        self.cls = cls

    @property
    def description(self) -> str:
        return f"the class '{self.cls.__name__}'"

    def as_type(self, range: SourceRange) -> Type:
        return class_type_of(self.cls)

    def call(
        self,
        range: SourceRange,
        graph: Graph,
        args: Sequence[CallArgument],
        kwargs: Sequence[CallArgument],
        targets: int,
    ) -> SugaredValue:
        if self.cls in _HELD:
            return self._call_python(range, graph, args, kwargs)
        if self.cls is torch.set_grad_enabled and targets == 0:
            return BuiltinFunction("aten::set_grad_enabled").call(range, graph, args, kwargs, targets)
        type = class_type_of(self.cls)
        made = graph.insert_node(graph.create("prim::CreateObject", types=[type], range=range)).output
        if "__init__" in type.methods:
            MethodValue(made, type.methods["__init__"]).call(range, graph, args, kwargs, 1)
        return SimpleValue(made)

    def _call_python(
        self, range: SourceRange, graph: Graph, args: Sequence[CallArgument], kwargs: Sequence[CallArgument]
    ) -> SugaredValue:
        type = class_type_of(torch.autocast if self.cls in _DEVICES else self.cls)
        schema = FunctionSchema(self.cls.__name__, "", _HELD[self.cls], (Argument("", type),))
        _, plan = match_schemas(self.cls.__name__, [schema], range, args, kwargs)
        node = graph.create("prim::PythonOp", plan.inputs(graph, range), types=[type], range=range)
        node.attributes["name"] = self.cls.__name__
        node.attributes["function"] = ConstantObject(_maker(self.cls))
        return SimpleValue(graph.insert_node(node).output)


def _maker(cls: type) -> Any:
    """What makes an object of ``cls`` of the values that programs have: dtypes are numbers there."""
    if cls in _DEVICES:
        return partial(_autocast_for, _DEVICES[cls])
    return _autocast if cls is torch.autocast else cls


def _autocast_for(device_type: str, enabled: bool, dtype: int, cache_enabled: bool) -> Any:
    return _autocast(device_type, dtype, enabled, cache_enabled)


def _autocast(device_type: str, dtype: int | None, enabled: bool, cache_enabled: bool | None) -> Any:
    return torch.autocast(device_type, None if dtype is None else DTYPES[dtype], enabled, cache_enabled)


def class_type_of(cls: type) -> ClassType:
    """The type of the objects of a class of context managers."""
    found = _types.get(cls)
    if found is None:
        found = _types[cls] = ClassType(qualified_name(cls), python_class=cls)
        for name, type in _COMPILED.get(cls, {}).items():
            found.add_attribute(name, type)
        for name in ("__init__", "__enter__", "__exit__"):
            if cls in _COMPILED and name in vars(cls):
                found.methods[name] = _compiled(found, cls, name)
            elif name != "__init__":
                found.methods[name] = _declared(found, name)
    return found


def _compiled(type: ClassType, cls: type, name: str) -> FunctionRecord:
    def define(record: FunctionRecord) -> None:
        compile_function(record, vars(cls)[name], self_binding=ObjectBinding(type))

    return FunctionRecord(f"{type.name}.{name}", definer=define)


def _declared(type: ClassType, name: str) -> FunctionRecord:
    """A method that is Python's; the program enters and leaves, and calls nothing else."""
    record = FunctionRecord(f"{type.name}.{name}")
    arguments = [Argument("self", type)]
    if name == "__exit__":
        arguments += [Argument(part, ANY) for part in ("type", "value", "traceback")]
    result = Argument("", NONE if name == "__exit__" else ANY)
    record.declare(FunctionSchema(name, "", tuple(arguments), (result,)))
    return record


def _value_of_class(cls: type, range: SourceRange) -> SugaredValue | None:
    return ContextManagerValue(cls) if cls in _COMPILED or cls in _HELD else None


CLASS_VALUE_HOOKS.append(_value_of_class)
