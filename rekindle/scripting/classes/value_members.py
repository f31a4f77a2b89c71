"""Members of NamedTuples and enums: the methods and properties of their classes, ``box._replace(x=1)``.

A method is a function whose first argument is the value; it is compiled for the value's type.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from types import FunctionType
from typing import Final

from rekindle.errors import SourceRange, UnsupportedError
from rekindle.frontend.sugared_values import values
from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.frontend.sugared_values.values import BoundCall, SimpleValue, SugaredTuple
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.operators.schema_matching import NamedValue, match_schemas
from rekindle.ir.types import STRING, DictType, EnumType, TupleType
from rekindle.scripting.constants import construct
from rekindle.scripting.python_values import function_value
from rekindle.scripting.resolver import PythonResolver


def named_tuple(
    type: TupleType, arguments: Sequence[Argument], range: SourceRange, graph: Graph, call: CallSite
) -> SugaredValue:
    """Emit the construction of a NamedTuple of this ``type``, whose fields are the ``arguments`` of a schema, from the
    arguments of ``call``. Return the tuple.

    Raises:
        SchemaError: the arguments of the call do not fit the fields.
    """
    name = type.annotation.rpartition(".")[2]
    schema = FunctionSchema(name, "", tuple(arguments), (Argument("", type),))
    _, plan = match_schemas(name, [schema], range, call.args, call.kwargs)
    return SimpleValue(construct("prim::TupleConstruct", plan.inputs(graph, range), type, range, graph))


class Replace(SugaredValue):
    """The method ``_replace`` of a NamedTuple."""

    description = "the method '_replace'"

    def __init__(self, value: Value, type: TupleType) -> None:
        self.value = value
        self.type = type

    def call(self, call: CallSite) -> SugaredValue:
        fields = self.type.fields or ()
        if call.args:
            raise UnsupportedError("_replace takes the fields by their names", call.range)
        given = {item.name for item in call.kwargs}
        itself = SimpleValue(self.value)
        kept = [
            NamedValue(itself.attribute(call.range, call.graph, name).as_value(call.range, call.graph), name=name)
            for name in fields
            if name not in given
        ]
        arguments = [Argument(name, element) for name, element in zip(fields, self.type.elements, strict=True)]
        all_fields = CallSite(call.range, call.graph, (), [*call.kwargs, *kept])
        return named_tuple(self.type, arguments, call.range, call.graph, all_fields)


class AsDict(SugaredValue):
    """The method ``_asdict`` of a NamedTuple."""

    description = "the method '_asdict'"

    def __init__(self, value: Value, type: TupleType) -> None:
        self.value = value
        self.type = type

    def call(self, call: CallSite) -> SugaredValue:
        kinds = dict.fromkeys(self.type.elements)
        if len(kinds) != 1:
            listed = ", ".join(kind.annotation for kind in kinds)
            raise UnsupportedError(
                f"_asdict of '{self.type.annotation}' would be a dict with values of several types: {listed}",
                call.range,
                hint="name the fields that are needed",
            )
        itself = SimpleValue(self.value)
        pairs: list[Value] = []
        for name in self.type.fields or ():
            pairs.append(call.graph.insert_constant(name, range=call.range))
            pairs.append(itself.attribute(call.range, call.graph, name).as_value(call.range, call.graph))
        type = DictType(STRING, self.type.elements[0])
        return SimpleValue(construct("prim::DictConstruct", pairs, type, call.range, call.graph))


_METHODS: Final[dict[str, type[Replace | AsDict]]] = {"_replace": Replace, "_asdict": AsDict}


def member(range: SourceRange, graph: Graph, value: Value, name: str) -> SugaredValue | None:
    """Return the method or property ``name`` that the class of a NamedTuple or an enum defines, or ``_fields``. A
    property is evaluated. Return None if there is none, for other values, and in a graph that does not follow
    Python."""
    type = value.type
    if not graph.follows_python or not isinstance(type, (TupleType, EnumType)) or type.python_class is None:
        return None
    if isinstance(type, TupleType) and type.fields is not None and type.name is not None:
        if name == "_fields":
            return SugaredTuple([SimpleValue(graph.insert_constant(field, range=range)) for field in type.fields])
        if name in _METHODS:
            return _METHODS[name](value, type)
    found = inspect.getattr_static(type.python_class, name, None)
    itself = NamedValue(value, range=range)
    resolver = PythonResolver()
    if isinstance(found, property) and isinstance(found.fget, FunctionType):
        return function_value(found.fget, resolver).call(CallSite(range, graph, [itself]))
    if isinstance(found, staticmethod) and isinstance(found.__func__, FunctionType):
        return function_value(found.__func__, resolver)
    return BoundCall(function_value(found, resolver), itself) if isinstance(found, FunctionType) else None


values.class_member.provide(member)
