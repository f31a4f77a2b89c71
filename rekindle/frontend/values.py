"""Sugared values that stand for values of the graph, and what their attributes and methods are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch

from rekindle.errors import (
    Cause,
    GivenUpError,
    SchemaError,
    SourceRange,
    TypeMismatchError,
    UndefinedNameError,
    UnsupportedError,
)
from rekindle.frontend.builtin_calls import insert_builtin_call
from rekindle.frontend.python_signatures import call_as_python_does
from rekindle.frontend.sugared import Parts, StaticValue, SugaredValue
from rekindle.frontend.tensor_attributes import PYTHON_METHODS, TENSOR_CASTS, TENSOR_PROPERTIES
from rekindle.ir.graph import Graph, Value
from rekindle.ir.matching import CallArgument, convert_value, match_schemas, unpack_tuple
from rekindle.ir.records import FunctionRecord
from rekindle.ir.registry import REGISTRY, Operator
from rekindle.ir.schema import FunctionSchema
from rekindle.ir.types import (
    DEVICE,
    INT,
    STRING,
    TENSOR,
    AnyType,
    AwaitType,
    ClassType,
    DictType,
    EnumType,
    FunctionType,
    InterfaceType,
    ListType,
    OptionalType,
    StringType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    mismatch_note,
    unshaped,
)
from rekindle.ops.library_objects import methods_of

if TYPE_CHECKING:
    from rekindle.frontend.emission import Emission

_OPERATOR_OF_PROPERTY = {"T": "aten::numpy_T", "H": "aten::matrix_H"}
_DEVICE_PROPERTIES = {"type": "prim::type", "index": "prim::index"}
_COMPLEX_PROPERTIES = {"real": "aten::real", "imag": "aten::imag"}


class SimpleValue(SugaredValue):
    """A value of the graph."""

    def __init__(self, value: Value) -> None:
        self.value = value

    @property
    def description(self) -> str:
        return f"a value of type {self.value.type.annotation}"

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        return self.value

    def parts(self, range: SourceRange, graph: Graph) -> Parts:
        return Parts(unshaped(self.value.type), (self.value,), lambda values, emitter: SimpleValue(values[0]))

    # -------------------------------------------------------------------------------------- attributes

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        found = self._find_attribute(range, graph, name)
        if found is not None:
            return found
        type = self.value.type
        if isinstance(type, ClassType) and type.is_incomplete:
            raise GivenUpError(f"'{name}' may be an attribute of '{type.basename}', which could not be compiled")
        if isinstance(type, AwaitType):
            result = graph.insert("prim::awaitable_wait", [self.value], range=range)
            return SimpleValue(result).attribute(range, graph, name)
        if isinstance(type, ClassType) and not type.is_module:
            hint: str | None = f"give it a value in __init__: self.{name} = …"
            if name.startswith("__"):
                hint = f"define the method: def {name}(self, …)"
            if type.python_class is not None and isinstance(vars(type.python_class).get(name), classmethod):
                hint = "class methods cannot be compiled; make it a static method or a function"
            raise UndefinedNameError(f"'{type.basename}' has no attribute or method '{name}'", range, hint=hint)
        if isinstance(type, InterfaceType):
            raise UndefinedNameError(
                f"the interface '{type.name.rpartition('.')[2]}' has no method '{name}'",
                range,
                hint=f"its methods are {', '.join(type.methods)}",
            )
        hint = None
        if type.is_optional:
            hint = f"the value may be None; check it first, for example: assert {_spell(range)} is not None"
        raise UndefinedNameError(
            f"a value of type {type.annotation} has no attribute or method '{name}'",
            range,
            hint=hint,
            cause=Cause.MISSING_REFINEMENT if type.is_optional else None,
        )

    def has_attribute(self, range: SourceRange, graph: Graph, name: str) -> bool:
        type = self.value.type
        if isinstance(type, ClassType):
            tables = (
                type.attributes,
                type.methods,
                type.constants,
                type.properties,
                type.static_methods,
                type.class_methods,
            )
            return any(name in table for table in tables) or _is_left_to_python(self.value, type, name)
        return isinstance(type, TupleType) and type.fields is not None and name in type.fields

    def _find_attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue | None:
        value, type = self.value, self.value.type
        if isinstance(type, TensorType) and name in TENSOR_PROPERTIES:
            kind = _OPERATOR_OF_PROPERTY.get(name, f"{TENSOR_PROPERTIES[name]}::{name}")
            if name == "shape":
                kind = "aten::size"
            elif name == "ndim":
                kind = "aten::dim"
            return SimpleValue(graph.insert(kind, [value], range=range))
        if type == DEVICE and name in _DEVICE_PROPERTIES:
            return SimpleValue(graph.insert(_DEVICE_PROPERTIES[name], [value], range=range))
        if type.kind == "ComplexType" and name in _COMPLEX_PROPERTIES:
            read = BuiltinFunction(_COMPLEX_PROPERTIES[name], CallArgument(value, range=range))
            return read.call(range, graph, [], [], 1)
        if isinstance(type, TupleType) and type.fields is not None and name in type.fields:
            return SimpleValue(self._tuple_element(range, graph, type.fields.index(name)))
        if isinstance(type, TensorType) and name in TENSOR_CASTS:
            return TensorCast(value, TENSOR_CASTS[name])
        if isinstance(type, TensorType) and name in PYTHON_METHODS:
            return BoundCall(PYTHON_METHODS[name](), CallArgument(value, range=range))
        if isinstance(type, ClassType):
            found = class_attribute(range, graph, value, type, name)
            return LibraryMethod(value, type, name) if found is None and type.is_library_class else found
        if isinstance(type, InterfaceType) and name in type.methods:
            return InterfaceMethodValue(value, name)
        if isinstance(type, EnumType) and name in ("name", "value"):
            kind, result = ("prim::EnumName", STRING) if name == "name" else ("prim::EnumValue", type.value_type)
            return SimpleValue(graph.insert_node(graph.create(kind, [value], types=[result], range=range)).output)
        if is_method_operator(type, name):
            return BuiltinFunction(f"aten::{name}", CallArgument(value, range=range))
        if is_prim_method(type, name):
            return BuiltinFunction(f"prim::{name}", CallArgument(value, range=range))
        return None

    def _tuple_element(self, range: SourceRange, graph: Graph, index: int) -> Value:
        type = self.value.type
        assert isinstance(type, TupleType)
        position = graph.insert_constant(index, range=range)
        element = type.elements[index]
        return graph.insert_node(
            graph.create("prim::TupleIndex", [self.value, position], types=[element], range=range)
        ).output

    def set_attribute(self, range: SourceRange, graph: Graph, name: str, value: Value) -> None:
        type = self.value.type
        if not isinstance(type, ClassType):
            raise UnsupportedError(f"an attribute of a value of type {type.annotation} cannot be assigned", range)
        self.check_not_frozen(range, type, name)
        setter = type.properties.get(name)
        if setter is not None and setter.setter is not None:
            MethodValue(self.value, setter.setter).call(range, graph, [CallArgument(value, range=range)], [], 1)
            return
        expected = type.attribute_type(name)
        if expected is None:
            if type.is_incomplete:
                raise GivenUpError(f"'{name}' may be an attribute of '{type.basename}', which could not be compiled")
            if name in type.constants:
                raise UnsupportedError(f"'{name}' is a constant of '{type.basename}' and cannot be assigned", range)
            raise UndefinedNameError(
                f"'{type.basename}' has no attribute '{name}' to assign",
                range,
                hint=f"give it a value in __init__: self.{name} = …",
            )
        converted = convert_value(graph, value, expected, range)
        if not converted.type.is_subtype_of(expected):
            raise TypeMismatchError(
                f"attribute '{name}' of '{type.basename}' is {expected.annotation}, got {converted.type.annotation}"
                + mismatch_note(converted.type, expected),
                range,
                hint=type.attributes[name].note,
                cause=_cause_of(type.attributes[name].note),
            )
        graph.insert_node(
            graph.create("prim::SetAttr", [self.value, converted], outputs=0, attributes={"name": name}, range=range)
        )

    def check_not_frozen(self, range: SourceRange, type: ClassType, name: str) -> None:
        if type.is_frozen:
            raise UnsupportedError(
                f"attribute '{name}' of '{type.basename}' cannot be assigned: the dataclass is frozen", range
            )

    def attribute_type(self, name: str) -> Type | None:
        return self.value.type.attribute_type(name) if isinstance(self.value.type, ClassType) else None

    # ----------------------------------------------------------------------------------------- calling

    def call(
        self,
        range: SourceRange,
        graph: Graph,
        args: Sequence[CallArgument],
        kwargs: Sequence[CallArgument],
        targets: int,
    ) -> SugaredValue:
        type = self.value.type
        if isinstance(type, FunctionType):
            return FunctionValue(type.function).call(range, graph, args, kwargs, targets)
        if isinstance(type, (ClassType, InterfaceType)):
            name = "forward" if type.is_module else "__call__"
            return self.attribute(range, graph, name).call(range, graph, args, kwargs, targets)
        return super().call(range, graph, args, kwargs, targets)

    # -------------------------------------------------------------------------------------- containers

    def as_tuple(self, range: SourceRange, graph: Graph, size_hint: int | None = None) -> list[SugaredValue]:
        type = self.value.type
        if isinstance(type, TupleType):
            return [SimpleValue(item) for item in unpack_tuple(graph, self.value, range)]
        if isinstance(type, ListType):
            if size_hint is None:
                raise UnsupportedError(
                    f"a {type.annotation} cannot be unpacked here: its length is known only when the program runs",
                    range,
                    hint="unpack it to a fixed number of names, or index it",
                    cause=Cause.DYNAMIC_BEHAVIOUR,
                )
            types = [type.element] * size_hint
            node = graph.insert_node(graph.create("prim::ListUnpack", [self.value], types=types, range=range))
            return [SimpleValue(output) for output in node.outputs]
        if isinstance(type, TensorType) and size_hint is not None:
            items = graph.insert("aten::unbind", [self.value, 0], range=range)
            return SimpleValue(items).as_tuple(range, graph, size_hint)
        raise TypeMismatchError(f"a value of type {type.annotation} cannot be unpacked", range)

    def iterator(self, range: SourceRange, graph: Graph) -> SugaredValue:
        type = self.value.type
        if isinstance(type, (ListType, StringType, TensorType)):
            return self
        if isinstance(type, DictType):
            return SimpleValue(graph.insert("aten::keys", [self.value], range=range))
        if isinstance(type, TupleType):
            return SugaredTuple(self.as_tuple(range, graph))
        raise TypeMismatchError(f"a value of type {type.annotation} cannot be iterated over", range)

    def length(self, range: SourceRange, graph: Graph) -> Value:
        type = self.value.type
        if isinstance(type, TupleType):
            return graph.insert_constant(len(type.elements), range=range)
        if isinstance(type, (ListType, StringType, DictType, TensorType)):
            return graph.insert("aten::len", [self.value], range=range)
        if isinstance(type, ClassType) and "__len__" in type.methods:
            return self.attribute(range, graph, "__len__").call(range, graph, [], [], 1).as_value(range, graph)
        raise TypeMismatchError(f"a value of type {type.annotation} has no length", range)

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None = None) -> SugaredValue:
        type = self.value.type
        if isinstance(type, (ListType, StringType, DictType)):
            return SimpleValue(graph.insert("aten::__getitem__", [self.value, index], range=range))
        if isinstance(type, TensorType):
            return SimpleValue(graph.insert("aten::select", [self.value, 0, index], range=range))
        if isinstance(type, ClassType):
            if type.is_module and "__getitem__" not in type.methods and type_hint is not None:
                # An item of a container of modules, whose type an archive declares.
                made = graph.create("prim::ModuleContainerIndex", [self.value, index], types=[type_hint], range=range)
                return SimpleValue(graph.insert_node(made).output)
            method = self.attribute(range, graph, "__getitem__")
            return method.call(range, graph, [CallArgument(index, range=range)], [], 1)
        raise TypeMismatchError(f"a value of type {type.annotation} cannot be indexed", range)


class BoundCall(SugaredValue):
    """A function with its first argument."""

    def __init__(self, function: SugaredValue, first: CallArgument) -> None:
        self.function = function
        self.first = first

    @property
    def description(self) -> str:
        return self.function.description

    @property
    def stays_itself(self) -> bool:
        return True

    def parts(self, range: SourceRange, graph: Graph) -> Parts:
        first = SimpleValue(self.first.materialise(graph))
        return parts_of_all(
            BoundCall, range, graph, [self.function, first], lambda both: BoundCall(both[0], _argument(both[1], range))
        )

    def call(
        self,
        range: SourceRange,
        graph: Graph,
        args: Sequence[CallArgument],
        kwargs: Sequence[CallArgument],
        targets: int,
    ) -> SugaredValue:
        return self.function.call(range, graph, [self.first, *args], kwargs, targets)


def _argument(value: SugaredValue, range: SourceRange) -> CallArgument:
    assert isinstance(value, SimpleValue)
    return CallArgument(value.value, range=range)


def parts_of_all(
    kind: type[SugaredValue],
    range: SourceRange,
    graph: Graph,
    items: Sequence[SugaredValue],
    join: Callable[[list[SugaredValue]], SugaredValue],
    key: Hashable = None,
) -> Parts:
    """What ``join`` makes of ``items``, one of ``kind``, taken apart, each of the items for itself."""
    parts = [item.parts(range, graph) for item in items]

    def rebuild(values: Sequence[Value], emitter: Emission) -> SugaredValue:
        found: list[SugaredValue] = []
        at = 0
        for count, build in builds:
            found.append(build(values[at : at + count], emitter))
            at += count
        return join(found)

    builds = [(len(part.values), part.rebuild) for part in parts]
    keys = tuple(part.key for part in parts)
    return Parts((kind, key, keys), [value for part in parts for value in part.values], rebuild)


class TensorCast(SugaredValue):
    """``x.float``, ``x.long`` …: called, a tensor of another dtype."""

    def __init__(self, tensor: Value, dtype: torch.dtype) -> None:
        self.tensor = tensor
        self.dtype = dtype

    @property
    def description(self) -> str:
        return "a method that casts a tensor"

    def call(
        self,
        range: SourceRange,
        graph: Graph,
        args: Sequence[CallArgument],
        kwargs: Sequence[CallArgument],
        targets: int,
    ) -> SugaredValue:
        if args:
            raise UnsupportedError("the cast of a tensor takes no positional arguments", range)
        dtype = CallArgument(constant=self.dtype, range=range, name="dtype")
        itself = CallArgument(self.tensor, range=range)
        return SimpleValue(insert_builtin_call(range, graph, "aten::to", [], [dtype, *kwargs], itself))


def _cause_of(note: str | None) -> Cause | None:
    """What the note on an attribute tells of its type: whether it was assumed."""
    assumed = note is not None and ("no annotation" in note or "without an annotation" in note)
    return Cause.DEFAULT_TYPE_ASSUMED if assumed else None


def _spell(range: SourceRange) -> str:
    text = range.text.rpartition(".")[0] if range.is_known else ""
    return text if text.isidentifier() else "x"


def is_method_operator(type: Type, name: str) -> bool:
    """Whether ``aten::name`` has an overload that takes a ``type`` as its self."""
    for operator in REGISTRY.overloads(f"aten::{name}"):
        arguments = operator.schema.arguments
        if not arguments:
            continue
        formal = arguments[0]
        if isinstance(type, TensorType):
            # Any operator with a tensor called self can be written as a method.
            if any(item.name == "self" and TENSOR.is_subtype_of(item.type) for item in arguments):
                return True
        elif formal.type.kind == type.kind or (
            formal.name == "self"
            and not isinstance(formal.type, (AnyType, OptionalType, UnionType))
            and type.is_subtype_of(formal.type)
        ):
            return True
    return False


def is_prim_method(type: Type, name: str) -> bool:
    """Whether ``prim::name`` is a method of tensors (``tolist`` is handled by the emitter)."""
    return isinstance(type, TensorType) and name == "type" and bool(REGISTRY.overloads(f"prim::{name}"))


def _is_left_to_python(value: Value, type: ClassType, name: str) -> bool:
    found = None
    if python_method is not None and type.python_class is not None and not type.is_module:
        found = python_method(value, type.python_class, name)
    return found is not None


PythonMethod = Callable[[Value, type, str], SugaredValue | None]

python_method: PythonMethod | None = None
"""A slot: a method that a Python class leaves to Python (``@ignore``), bound to an object; None where it has no such
method. :mod:`rekindle.scripting` fills it."""


def class_attribute(range: SourceRange, graph: Graph, value: Value, type: ClassType, name: str) -> SugaredValue | None:
    """Attribute ``name`` of an object of class ``type``: a slot, a constant, a method or a property."""
    if name in type.methods:
        return MethodValue(value, type.methods[name])
    if name in type.static_methods:
        return FunctionValue(type.static_methods[name])
    if name in type.class_methods:
        return FunctionValue(type.class_methods[name])
    if name in type.properties:
        return MethodValue(value, type.properties[name].getter).call(range, graph, [], [], 1)
    attribute = type.attributes.get(name)
    if attribute is not None:
        return SimpleValue(insert_get_attribute(range, graph, value, name, attribute.type))
    if name in type.constants:
        return SimpleValue(graph.insert_constant(type.constants[name], range=range))
    if python_method is not None and type.python_class is not None and not type.is_module:
        return python_method(value, type.python_class, name)
    return None


def insert_get_attribute(range: SourceRange, graph: Graph, object: Value, name: str, type: Type) -> Value:
    """Insert ``prim::GetAttr[name=…](%object)``."""
    node = graph.create("prim::GetAttr", [object], types=[type], attributes={"name": name}, range=range)
    # Items of containers are called by their numbers, which are the names of values without one.
    return graph.insert_node(node).output.set_name(f"_{name}" if name.isdigit() else name)


class SugaredTuple(SugaredValue):
    """Several sugared values side by side. As a value it is a tuple, if all of them are values."""

    def __init__(self, elements: Sequence[SugaredValue]) -> None:
        self.elements = list(elements)

    @property
    def description(self) -> str:
        return "a tuple"

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        values = [element.as_value(range, graph) for element in self.elements]
        type = TupleType(tuple(value.type for value in values))
        return graph.insert_node(graph.create("prim::TupleConstruct", values, types=[type], range=range)).output

    def as_tuple(self, range: SourceRange, graph: Graph, size_hint: int | None = None) -> list[SugaredValue]:
        return self.elements

    def parts(self, range: SourceRange, graph: Graph) -> Parts:
        return parts_of_all(SugaredTuple, range, graph, self.elements, SugaredTuple)

    def iterator(self, range: SourceRange, graph: Graph) -> SugaredValue:
        return self

    @property
    def static_length(self) -> int | None:
        return len(self.elements)

    @property
    def must_unroll(self) -> bool:
        return True

    def length(self, range: SourceRange, graph: Graph) -> Value:
        return graph.insert_constant(len(self.elements), range=range)

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None = None) -> SugaredValue:
        position = constant_int(index)
        if position is None:
            raise UnsupportedError(
                "the elements of a tuple can only be taken by a constant index", range, cause=Cause.DYNAMIC_BEHAVIOUR
            )
        if not -len(self.elements) <= position < len(self.elements):
            raise TypeMismatchError(f"index {position} is out of range for {len(self.elements)} elements", range)
        return self.elements[position]


def constant_int(value: Value) -> int | None:
    """The int that ``value`` is a constant of, or None."""
    if value.node.kind == "prim::Constant" and value.type == INT:
        found = value.node.attributes.get("value")
        return found if isinstance(found, int) else None
    return None


class BuiltinFunction(SugaredValue):
    """An operator by its kind, with the self that it is a method of, if any, and what is tried first."""

    def __init__(
        self,
        kind: str,
        self_value: CallArgument | None = None,
        preferred: Sequence[Operator | FunctionRecord] = (),
    ) -> None:
        self.kind = kind
        self.self_value = self_value
        self.preferred = preferred

    @property
    def description(self) -> str:
        return f"the operator '{self.kind}'"

    @property
    def stays_itself(self) -> bool:
        return True

    def parts(self, range: SourceRange, graph: Graph) -> Parts:
        kind, preferred = self.kind, self.preferred
        if self.self_value is None:
            return Parts((type(self), kind, tuple(preferred)), (), lambda values, emitter: self)
        itself = self.self_value.materialise(graph)
        return Parts(
            (type(self), kind, itself.type),
            (itself,),
            lambda values, emitter: BuiltinFunction(kind, CallArgument(values[0], range=range), preferred),
        )

    def call(
        self,
        range: SourceRange,
        graph: Graph,
        args: Sequence[CallArgument],
        kwargs: Sequence[CallArgument],
        targets: int,
    ) -> SugaredValue:
        kind, itself = self.kind, self.self_value
        try:
            return SimpleValue(insert_builtin_call(range, graph, kind, args, kwargs, itself, self.preferred))
        except SchemaError:
            made = call_as_python_does(range, graph, kind, args, kwargs, itself)
            if made is None:
                raise
            return SimpleValue(made)


class FunctionValue(StaticValue):
    """A compiled function; several, where it is overloaded."""

    def __init__(self, *functions: FunctionRecord) -> None:
        self.functions = functions

    @property
    def description(self) -> str:
        return f"the function '{self.functions[0].basename}'"

    @property
    def identity(self) -> Hashable:
        return self.functions

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        if len(self.functions) != 1:
            return super().as_value(range, graph)
        return insert_function_constant(range, graph, self.functions[0])

    def call(
        self,
        range: SourceRange,
        graph: Graph,
        args: Sequence[CallArgument],
        kwargs: Sequence[CallArgument],
        targets: int,
    ) -> SugaredValue:
        for function in self.functions:
            function.ensure_defined(range)
        schemas = [function.schema for function in self.functions]
        index, plan = match_schemas(self.functions[0].basename, schemas, range, args, kwargs)
        inputs = plan.inputs(graph, range)
        callee = insert_function_constant(range, graph, self.functions[index])
        node = graph.create("prim::CallFunction", [callee, *inputs], types=plan.return_types, range=range)
        return SimpleValue(graph.insert_node(node).output)


def insert_function_constant(range: SourceRange, graph: Graph, function: FunctionRecord) -> Value:
    """``prim::Constant[name="f"]() : Function``"""
    node = graph.create(
        "prim::Constant", types=[FunctionType(function)], attributes={"name": function.basename}, range=range
    )
    return graph.insert_node(node).output


class MethodValue(SugaredValue):
    """A compiled method of an object; several, where it is overloaded."""

    def __init__(self, object: Value, *methods: FunctionRecord) -> None:
        self.object = object
        self.methods = methods

    @property
    def description(self) -> str:
        return f"the method '{self.methods[0].basename}'"

    @property
    def stays_itself(self) -> bool:
        return True

    def parts(self, range: SourceRange, graph: Graph) -> Parts:
        methods = self.methods
        return Parts((MethodValue, methods), (self.object,), lambda values, emitter: MethodValue(values[0], *methods))

    def call(
        self,
        range: SourceRange,
        graph: Graph,
        args: Sequence[CallArgument],
        kwargs: Sequence[CallArgument],
        targets: int,
    ) -> SugaredValue:
        for method in self.methods:
            method.ensure_defined(range)
        schemas = [method.schema for method in self.methods]
        arguments = [CallArgument(self.object, range=range), *args]
        index, plan = match_schemas(self.methods[0].basename, schemas, range, arguments, kwargs)
        return SimpleValue(
            insert_method_call(range, graph, self.methods[index].basename, plan.inputs(graph, range), plan.return_types)
        )


def insert_method_call(
    range: SourceRange, graph: Graph, name: str, inputs: Sequence[Value], types: Sequence[Type]
) -> Value:
    """``prim::CallMethod[name=…](%self, …)``"""
    node = graph.create("prim::CallMethod", inputs, types=types, attributes={"name": name}, range=range)
    return graph.insert_node(node).output


class LibraryMethod(SugaredValue):
    """A method of an object that is written in C++. Where nothing is known of its class, what it gives is taken for
    Tensors, unless its place says otherwise."""

    def __init__(self, object: Value, type: ClassType, name: str) -> None:
        self.object = object
        self.type = type
        self.name = name

    @property
    def description(self) -> str:
        return f"the method '{self.name}'"

    def call(
        self,
        range: SourceRange,
        graph: Graph,
        args: Sequence[CallArgument],
        kwargs: Sequence[CallArgument],
        targets: int,
    ) -> SugaredValue:
        known = methods_of(self.type)
        if known is not None:
            return self._call_known(range, graph, args, kwargs, known)
        if kwargs:
            raise UnsupportedError(f"{self.description} of a class written in C++ takes no arguments by name", range)
        inputs = [self.object, *(argument.materialise(graph) for argument in args)]
        type: Type = TENSOR if targets == 1 else TupleType((TENSOR,) * targets)
        result = insert_method_call(range, graph, self.name, inputs, [type])
        return SimpleValue(result) if targets else SimpleValue(graph.insert_constant(None, range=range))

    def _call_known(
        self,
        range: SourceRange,
        graph: Graph,
        args: Sequence[CallArgument],
        kwargs: Sequence[CallArgument],
        known: Mapping[str, FunctionSchema],
    ) -> SugaredValue:
        if self.name not in known:
            raise UndefinedNameError(
                f"'{self.type.basename}' has no method '{self.name}'", range, hint=f"its methods are {', '.join(known)}"
            )
        myself = CallArgument(self.object, range=range)
        _, plan = match_schemas(self.name, [known[self.name]], range, args, kwargs, myself)
        return SimpleValue(insert_method_call(range, graph, self.name, plan.inputs(graph, range), plan.return_types))


class InterfaceMethodValue(SugaredValue):
    """A method of an object of which only the interface is known."""

    def __init__(self, object: Value, name: str) -> None:
        self.object = object
        self.name = name

    @property
    def description(self) -> str:
        return f"the method '{self.name}'"

    def call(
        self,
        range: SourceRange,
        graph: Graph,
        args: Sequence[CallArgument],
        kwargs: Sequence[CallArgument],
        targets: int,
    ) -> SugaredValue:
        type = self.object.type
        assert isinstance(type, InterfaceType)
        arguments = [CallArgument(self.object, range=range), *args]
        _, plan = match_schemas(self.name, [type.methods[self.name]], range, arguments, kwargs)
        return SimpleValue(insert_method_call(range, graph, self.name, plan.inputs(graph, range), plan.return_types))
