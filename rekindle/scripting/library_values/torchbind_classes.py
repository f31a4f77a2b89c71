"""Classes that libraries write in C++: ``torch.classes.space.Name``."""

from __future__ import annotations

from typing import Any

from rekindle.errors import SourceRange, UnsupportedError
from rekindle.frontend.sugared_values.base import CallSite, StaticValue, SugaredValue
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import ClassType
from rekindle.ops.tensor.torchbind_objects import class_of_wrapper


class TorchBindClass(StaticValue):
    """A class written in C++. It is a type, and making an object of it is a call of Python."""

    def __init__(self, wrapper: Any, type: ClassType | None = None) -> None:
        self.wrapper = wrapper
        self.type = type or class_of_wrapper(wrapper)

    @property
    def identity(self) -> ClassType:
        return self.type

    @property
    def description(self) -> str:
        return f"the class '{self.type.name.removeprefix('__torch__.')}'"

    def as_type(self, range: SourceRange) -> ClassType:
        return self.type

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        raise UnsupportedError(f"{self.description} cannot be used as a value", range)

    def call(self, call: CallSite) -> SugaredValue:
        if call.kwargs:
            raise UnsupportedError(
                f"{self.description} takes no arguments by name in a program",
                call.range,
                hint="give them by position",
            )
        inputs = [item.materialize(call.graph) for item in call.args]
        node = call.graph.create("prim::PythonOp", inputs, types=[self.type], range=call.range)
        node.attributes["name"] = self.type.basename
        node.attributes["function"] = ConstantObject(self.wrapper)
        return SimpleValue(call.graph.insert_node(node).output)
