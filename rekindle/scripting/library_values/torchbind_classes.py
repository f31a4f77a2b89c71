"""Classes that libraries write in C++: ``torch.classes.space.Name``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rekindle.errors import SourceRange, UnsupportedError
from rekindle.frontend.sugared_values.base import CallSite, StaticValue, SugaredValue
from rekindle.frontend.sugared_values.values import SimpleValue, unknown_library_class
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.operators.schema_matching import match_schemas
from rekindle.ir.types import ClassType
from rekindle.ops.tensor.torchbind_objects import class_of_wrapper, methods_of, static_method_of


class TorchBindClass(StaticValue):
    """A class written in C++, which is a type of programs. A call creates an object, in Python unless the schema of
    ``__init__`` is known."""

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

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        schema = static_method_of(self.type, name)
        if schema is not None:
            return StaticMethod(self, schema)
        if methods_of(self.type) is None:
            raise unknown_library_class(self.type, range)
        return super().attribute(range, graph, name)

    def call(self, call: CallSite) -> SugaredValue:
        if "__init__" in (methods_of(self.type) or {}):
            node = call.graph.create("prim::CreateObject", types=[self.type], range=call.range)
            made = SimpleValue(call.graph.insert_node(node).output)
            made.attribute(call.range, call.graph, "__init__").call(replace(call, targets=0))
            return made
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


class StaticMethod(StaticValue):
    """A static method of a class written in C++."""

    def __init__(self, owner: TorchBindClass, schema: FunctionSchema) -> None:
        self.owner = owner
        self.schema = schema

    @property
    def description(self) -> str:
        return f"the static method '{self.schema.name}' of {self.owner.description}"

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        raise UnsupportedError(f"{self.description} cannot be used as a value", range)

    def call(self, call: CallSite) -> SugaredValue:
        returns = tuple(item.type for item in self.schema.returns)
        _, plan = match_schemas(self.schema.name, [self.schema], call.range, call.args, call.kwargs)
        inputs = plan.inputs(call.graph, call.range)
        node = call.graph.create("prim::PythonOp", inputs, types=returns, range=call.range)
        node.attributes["name"] = self.schema.name
        node.attributes["function"] = ConstantObject(getattr(self.owner.wrapper, self.schema.name))
        return SimpleValue(call.graph.insert_node(node).output)
