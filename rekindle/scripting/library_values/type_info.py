"""``torch.finfo(dtype).max`` and ``torch.iinfo(dtype).min`` within a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from rekindle.errors import SourceRange, UndefinedNameError
from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.attributes import ConstantObject, constant_value
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.operators.schema_matching import match_schemas
from rekindle.ir.scalar_types import DTYPE_NUMBERS, DTYPES
from rekindle.ir.types import ANY, FLOAT, INT, Type
from rekindle.scripting.class_values import CLASS_VALUE_HOOKS

_FIELDS: Final[dict[Any, dict[str, Type]]] = {
    torch.finfo: {
        "bits": INT,
        **dict.fromkeys(("eps", "max", "min", "tiny", "smallest_normal", "resolution"), FLOAT),
    },
    torch.iinfo: {"bits": INT, "max": INT, "min": INT},
}


class TypeInfoClass(SugaredValue):
    """``torch.finfo`` or ``torch.iinfo``."""

    def __init__(self, cls: Any) -> None:
        self.cls = cls

    @property
    def description(self) -> str:
        return f"'torch.{self.cls.__name__}'"

    def call(self, call: CallSite) -> SugaredValue:
        name = self.cls.__name__
        default = DTYPE_NUMBERS[torch.get_default_dtype()]
        dtype = Argument("type", INT, default) if self.cls is torch.finfo else Argument("type", INT)
        schema = FunctionSchema(name, "", (dtype,), (Argument("", ANY),))
        _, plan = match_schemas(name, [schema], call.range, call.args, call.kwargs)
        return TypeInfo(self.cls, plan.inputs(call.graph, call.range)[0])


class TypeInfo(SugaredValue):
    """A ``torch.finfo`` or ``torch.iinfo``: its attributes are constants if the dtype is constant, else read at run
    time."""

    def __init__(self, cls: Any, dtype: Value) -> None:
        self.cls = cls
        self.dtype = dtype

    @property
    def description(self) -> str:
        return f"a 'torch.{self.cls.__name__}'"

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        type = _FIELDS[self.cls].get(name)
        if type is None:
            raise UndefinedNameError(
                f"{self.description} has no attribute '{name}'", range, hint=f"it has {', '.join(_FIELDS[self.cls])}"
            )
        read = _reader(self.cls, name)
        node = self.dtype.node
        if node.kind == "prim::Constant":
            number = constant_value(node.attributes.get("value"), self.dtype.type)
            assert isinstance(number, int)
            return SimpleValue(graph.insert_constant(read(number), range=range))
        call = graph.create("prim::PythonOp", [self.dtype], types=[type], range=range)
        call.attributes.update(name=f"{self.cls.__name__}_{name}", function=ConstantObject(read))
        return SimpleValue(graph.insert_node(call).output)


def _reader(cls: Any, name: str) -> Callable[[int], int | float]:
    def read(dtype: int) -> int | float:
        found: int | float = getattr(cls(DTYPES[dtype]), name)
        return found

    return read


def _value_of_class(cls: type, range: SourceRange) -> SugaredValue | None:
    return TypeInfoClass(cls) if cls in _FIELDS else None


CLASS_VALUE_HOOKS.append(_value_of_class)
