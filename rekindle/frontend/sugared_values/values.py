"""Sugared values that refer to values of the graph, with their attributes and methods."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Final, cast

import torch

from rekindle.errors import (
    CascadingError,
    Cause,
    SchemaError,
    SourceRange,
    TypeMismatchError,
    UndefinedNameError,
    UnknownLibraryClassError,
    UnsupportedError,
)
from rekindle.errors.layer_hooks import LayerHook
from rekindle.frontend.calls.builtin_calls import insert_builtin_call
from rekindle.frontend.calls.enum_members import plain_type, plain_value
from rekindle.frontend.calls.insertion import (
    constant_int,
    insert_empty,
    insert_function_constant,
    insert_get_attribute,
    insert_method_call,
    is_method_operator,
    is_prim_method,
)
from rekindle.frontend.calls.python_signatures import call_as_python_does, takes_other_default
from rekindle.frontend.calls.string_methods import STRING_METHODS, as_string_method, limit_at_white_space
from rekindle.frontend.containers.default_factories import insert_item_or_default
from rekindle.frontend.containers.number_containers import NUMBER_KINDS, as_containers_of_numbers
from rekindle.frontend.containers.set_values import SET_AWARE_KINDS, convert_set_arguments, refuse_order, set_attribute
from rekindle.frontend.inference.none_error_messages import ATTRIBUTE_ERROR, TYPE_ERROR
from rekindle.frontend.python.result_types import as_python_has_it, gives_nothing
from rekindle.frontend.sugared_values.attribute_questions import ask_type, missing_attribute, type_has
from rekindle.frontend.sugared_values.base import CallSite, FlattenedValue, StaticValue, SugaredValue
from rekindle.frontend.sugared_values.tensor_attributes import PYTHON_METHODS, TENSOR_CASTS, TENSOR_PROPERTIES
from rekindle.ir.graph import Graph, Value
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.declared_bools import as_declared_bool
from rekindle.ir.operators.registry import Operator
from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.operators.schema_matching import NamedValue, convert_value, match_schemas, unpack_tuple
from rekindle.ir.redefinition import rely_on, shows_elements, widen_attribute
from rekindle.ir.text.type_parser import custom_class
from rekindle.ir.types import (
    DEVICE,
    INT,
    LIBRARY_CLASSES,
    STRING,
    TENSOR,
    AwaitType,
    ClassType,
    DictType,
    EnumType,
    FunctionType,
    InterfaceType,
    ListType,
    StringType,
    TensorType,
    TupleType,
    Type,
    is_open_number,
    is_python_key,
    lost_class,
    mismatch_note,
    unshaped,
)
from rekindle.ops.registration.libraries import missing_library
from rekindle.ops.tensor.torchbind_objects import (
    is_installed,
    methods_of,
    python_class_of,
    schemas_of_method,
)

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

    def flatten(self, range: SourceRange, graph: Graph) -> FlattenedValue:
        return FlattenedValue(unshaped(self.value.type), (self.value,), lambda values, emitter: SimpleValue(values[0]))

    # -------------------------------------------------------------------------------------- attributes

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        found = self._find_attribute(range, graph, name)
        if found is not None:
            return found
        type = self.value.type
        if isinstance(type, ClassType) and type.is_incomplete:
            raise CascadingError(f"'{name}' may be an attribute of '{type.basename}', which could not be compiled")
        present = self._present(range, graph, f"'NoneType' object has no attribute '{name}'", ATTRIBUTE_ERROR)
        if present is not None:
            return present.attribute(range, graph, name)
        if isinstance(type, AwaitType):
            result = graph.insert("prim::awaitable_wait", [self.value], range=range)
            return SimpleValue(result).attribute(range, graph, name)
        found = None if python_attribute is None else python_attribute(range, graph, self.value, name)
        if found is None:
            found = class_member.get()(range, graph, self.value, name)
        if found is not None:
            return found
        if plain_type(type) is not None and graph.follows_python:
            return SimpleValue(plain_value(graph, self.value, range)).attribute(range, graph, name)
        raise missing_attribute(range, type, name)

    def _present(self, range: SourceRange, graph: Graph, message: str, error: str = TYPE_ERROR) -> SimpleValue | None:
        """Emit a check of an Optional value, which raises ``error(message)`` for None, and return the checked value.
        Return None for other values, and if the program has no None checks."""
        checks = graph.none_checks
        if checks is None or not checks.can_check(self.value):
            return None
        return SimpleValue(checks.check(self.value, range, error, message))

    def _container(self, range: SourceRange, graph: Graph, message: str) -> SimpleValue | None:
        """Emit a check of a value that may be None, or a number where a container is needed, and return the checked
        value. The check raises TypeError with ``message``, in which braces are replaced by the class of the value.
        Return None for other values, and if the program has no None checks."""
        checks = graph.none_checks
        found = None if checks is None else checks.container_in(self.value, range, message)
        return self._present(range, graph, message.format("NoneType")) if found is None else SimpleValue(found)

    def has_attribute(self, range: SourceRange, graph: Graph, name: str) -> bool:
        type = self.value.type
        if isinstance(type, ClassType):
            own = (type.attributes, type.methods, type.constants, type.properties)
            tables = (*own, type.static_methods, type.class_methods)
            return any(name in table for table in tables) or _is_left_to_python(self.value, type, name)
        if not graph.follows_python:
            return isinstance(type, TupleType) and type.fields is not None and name in type.fields
        return type_has(type, name)

    def ask_attribute(self, range: SourceRange, graph: Graph, name: str) -> Value | None:
        return None if not graph.follows_python else ask_type(self.value, name, range, graph)

    def _find_attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue | None:
        value, type = self.value, self.value.type
        if isinstance(type, DictType) and type.is_set:
            return set_attribute(range, value, type, name)
        if isinstance(type, TensorType) and name in TENSOR_PROPERTIES:
            kind = _OPERATOR_OF_PROPERTY.get(name, f"{TENSOR_PROPERTIES[name]}::{name}")
            if name == "shape":
                kind = "aten::size"
            elif name == "ndim":
                kind = "aten::dim"
            return SimpleValue(as_python_has_it(kind, graph.insert(kind, [value], range=range)))
        if type == DEVICE and name in _DEVICE_PROPERTIES:
            return SimpleValue(graph.insert(_DEVICE_PROPERTIES[name], [value], range=range))
        if type.kind == "ComplexType" and name in _COMPLEX_PROPERTIES:
            read = BuiltinFunction(_COMPLEX_PROPERTIES[name], NamedValue(value, range=range))
            return read.call(CallSite(range, graph))
        if type.kind == "ComplexType" and name == "conjugate":
            return BuiltinFunction("aten::complex_conjugate", NamedValue(value, range=range))
        if isinstance(type, TupleType) and type.fields is not None and name in type.fields:
            return SimpleValue(self._tuple_element(range, graph, type.fields.index(name)))
        if isinstance(type, TensorType) and name in TENSOR_CASTS:
            return TensorCast(value, TENSOR_CASTS[name])
        if isinstance(type, TensorType) and name in PYTHON_METHODS:
            return BoundCall(PYTHON_METHODS[name](), NamedValue(value, range=range))
        if isinstance(type, ClassType):
            found = class_attribute(range, graph, value, type, name)
            if found is None and type.is_torchbind_class:
                return library_attribute(range, graph, value, type, name)
            return found
        if isinstance(type, InterfaceType) and name in type.methods:
            return InterfaceMethodValue(value, name)
        if isinstance(type, EnumType) and name in ("name", "value"):
            kind, result = ("prim::EnumName", STRING) if name == "name" else ("prim::EnumValue", type.value_type)
            return SimpleValue(graph.insert_node(graph.create(kind, [value], types=[result], range=range)).output)
        if is_method_operator(type, name):
            return BuiltinFunction(f"aten::{name}", NamedValue(value, range=range))
        if is_prim_method(type, name):
            return BuiltinFunction(f"prim::{name}", NamedValue(value, range=range))
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
        present = self._present(range, graph, f"'NoneType' object has no attribute '{name}'", ATTRIBUTE_ERROR)
        if present is not None:
            present.set_attribute(range, graph, name, value)
            return
        if not isinstance(type, ClassType):
            raise UnsupportedError(f"an attribute of a value of type {type.annotation} cannot be assigned", range)
        self.check_not_frozen(range, type, name)
        setter = type.properties.get(name)
        if setter is not None and setter.setter is not None:
            MethodValue(self.value, setter.setter).call(CallSite(range, graph, [NamedValue(value, range=range)]))
            return
        if type.is_torchbind_class:
            set_library_attribute(range, graph, self.value, type, name, value)
            return
        expected = type.attribute_type(name)
        if expected is None:
            if type.is_incomplete:
                raise CascadingError(f"'{name}' may be an attribute of '{type.basename}', which could not be compiled")
            if name in type.constants:
                raise UnsupportedError(f"'{name}' is a constant of '{type.basename}' and cannot be assigned", range)
            raise UndefinedNameError(
                f"'{type.basename}' has no attribute '{name}' to assign",
                range,
                hint=f"give it a value in __init__: self.{name} = …",
            )
        if graph.follows_python:
            rely_on(type, name)
            if not type.attributes[name].is_assumed or shows_elements(value, expected):
                widen_attribute(type, name, value.type)
                expected = type.attributes[name].type
        value = as_declared_bool(graph, value, expected, range)
        converted = convert_value(graph, value, expected, range)
        if not converted.type.is_subtype_of(expected):
            raise TypeMismatchError(
                f"attribute '{name}' of '{type.basename}' is {expected.annotation}, got {converted.type.annotation}"
                + mismatch_note(converted.type, expected),
                range,
                hint=type.attributes[name].note,
                cause=_cause_of(type.attributes[name].note),
            )
        lost = lost_class(converted.type, expected)
        if lost is not None:
            raise TypeMismatchError(f"attribute '{name}' of '{type.basename}': {lost}", range)
        graph.insert_node(
            graph.create("prim::SetAttr", [self.value, converted], outputs=0, attributes={"name": name}, range=range)
        )

    def check_not_frozen(self, range: SourceRange, type: ClassType, name: str) -> None:
        if type.is_frozen:
            raise UnsupportedError(
                f"attribute '{name}' of '{type.basename}' cannot be assigned: the dataclass is frozen", range
            )

    def attribute_type(self, name: str) -> Type | None:
        if not isinstance(self.value.type, ClassType):
            return None
        rely_on(self.value.type, name)
        return self.value.type.attribute_type(name)

    def may_widen_attribute(self, name: str) -> bool:
        return isinstance(self.value.type, ClassType) and self.value.type.may_widen(name)

    # ----------------------------------------------------------------------------------------- calling

    def call(self, call: CallSite) -> SugaredValue:
        type = self.value.type
        if isinstance(type, FunctionType):
            return FunctionValue(type.function).call(call)
        if isinstance(type, (ClassType, InterfaceType)):
            name = "forward" if type.is_module else "__call__"
            return self.attribute(call.range, call.graph, name).call(call)
        present = self._present(call.range, call.graph, "'NoneType' object is not callable")
        return super().call(call) if present is None else present.call(call)

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
        no_iterable = "'{}' object is not iterable" if size_hint is None else "cannot unpack non-iterable {} object"
        present = self._container(range, graph, no_iterable)
        if present is not None:
            return present.as_tuple(range, graph, size_hint)
        raise TypeMismatchError(f"a value of type {type.annotation} cannot be unpacked", range)

    @property
    def gone_over(self) -> list[Value]:
        return [self.value]

    def iterator(self, range: SourceRange, graph: Graph) -> SugaredValue:
        type = self.value.type
        if isinstance(type, (ListType, StringType, TensorType)):
            return self
        if isinstance(type, DictType) and type.is_set:
            raise refuse_order(range)
        if isinstance(type, DictType) and is_python_key(type.key):
            return self._by_operator("aten::keys", range, graph)
        if isinstance(type, DictType):
            return SimpleValue(graph.insert("aten::keys", [self.value], range=range))
        if isinstance(type, TupleType):
            return SugaredTuple(self.as_tuple(range, graph))
        present = self._container(range, graph, "'{}' object is not iterable")
        if present is not None:
            return present.iterator(range, graph)
        raise TypeMismatchError(f"a value of type {type.annotation} cannot be iterated over", range)

    def length(self, range: SourceRange, graph: Graph) -> Value:
        type = self.value.type
        if isinstance(type, TupleType):
            return graph.insert_constant(len(type.elements), range=range)
        if isinstance(type, (ListType, StringType, DictType, TensorType)):
            if isinstance(type, DictType) and is_python_key(type.key):
                return self._by_operator("aten::len", range, graph).as_value(range, graph)
            return graph.insert("aten::len", [self.value], range=range)
        if isinstance(type, ClassType) and has_method(type, "__len__"):
            return self.attribute(range, graph, "__len__").call(CallSite(range, graph)).as_value(range, graph)
        present = self._container(range, graph, "object of type '{}' has no len()")
        if present is not None:
            return present.length(range, graph)
        raise TypeMismatchError(f"a value of type {type.annotation} has no length", range)

    def _by_operator(self, kind: str, range: SourceRange, graph: Graph, *others: NamedValue) -> SugaredValue:
        return BuiltinFunction(kind).call(CallSite(range, graph, [NamedValue(self.value, range=range), *others]))

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None = None) -> SugaredValue:
        type = self.value.type
        if not isinstance(type, DictType) or plain_type(index.type) == type.key:
            index = plain_value(graph, index, range)
        key = NamedValue(index, range=range)
        if isinstance(type, DictType) and type.python == "Counter":
            zero = NamedValue(graph.insert_constant(0, range=range), range=range)
            return self._by_operator("aten::get", range, graph, key, zero)
        if isinstance(type, DictType) and type.python == "defaultdict":
            # The values of defaultdict(int) alone get another type.
            made = insert_empty(graph, INT if is_open_number(type.value) else type.value, range)
            empty = NamedValue(made, range=range)
            return self._by_operator("aten::setdefault", range, graph, key, empty)
        if isinstance(type, DictType) and (is_python_key(type.key) or is_open_number(index.type)):
            return self._by_operator("aten::__getitem__", range, graph, key)
        if isinstance(type, DictType) and type.python.startswith("defaultdict:"):
            return SimpleValue(insert_item_or_default(range, graph, self.value, index))
        if isinstance(type, (ListType, StringType, DictType)):
            return SimpleValue(graph.insert("aten::__getitem__", [self.value, index], range=range))
        if isinstance(type, TensorType):
            return SimpleValue(graph.insert("aten::select", [self.value, 0, index], range=range))
        if isinstance(type, ClassType):
            if type.is_module and "__getitem__" not in type.methods and type_hint is not None:
                # An item of a container of modules, whose type an archive declares.
                taken = graph.create("prim::ModuleContainerIndex", [self.value, index], types=[type_hint], range=range)
                return SimpleValue(graph.insert_node(taken).output)
            method = self.attribute(range, graph, "__getitem__")
            return method.call(CallSite(range, graph, [NamedValue(index, range=range)]))
        present = self._present(range, graph, "'NoneType' object is not subscriptable")
        if present is not None:
            return present.item(range, graph, index, type_hint)
        raise TypeMismatchError(f"a value of type {type.annotation} cannot be indexed", range)


class BoundCall(SugaredValue):
    """A function with its first argument, such as a method of a value."""

    is_passed_sugared = True

    def __init__(self, function: SugaredValue, first: NamedValue) -> None:
        self.function = function
        self.first = first

    @property
    def description(self) -> str:
        return self.function.description

    def flatten(self, range: SourceRange, graph: Graph) -> FlattenedValue:
        first = SimpleValue(self.first.materialize(graph))
        return parts_of_all(
            BoundCall, range, graph, [self.function, first], lambda both: BoundCall(both[0], _argument(both[1], range))
        )

    def call(self, call: CallSite) -> SugaredValue:
        return self.function.call(replace(call, args=[self.first, *call.args]))


def _argument(value: SugaredValue, range: SourceRange) -> NamedValue:
    assert isinstance(value, SimpleValue)
    return NamedValue(value.value, range=range)


def parts_of_all(
    kind: type[SugaredValue],
    range: SourceRange,
    graph: Graph,
    items: Sequence[SugaredValue],
    join: Callable[[list[SugaredValue]], SugaredValue],
    key: Hashable = None,
) -> FlattenedValue:
    """Return the flattened value of a sugared value of class ``kind`` that consists of ``items``, and of static data
    (``key``). ``join`` returns the sugared value for such items."""
    parts = [item.flatten(range, graph) for item in items]

    def rebuild(values: Sequence[Value], emitter: object) -> SugaredValue:
        found: list[SugaredValue] = []
        at = 0
        for count, build in builds:
            found.append(build(values[at : at + count], emitter))
            at += count
        return join(found)

    builds = [(len(part.values), part.unflatten) for part in parts]
    keys = tuple(part.key for part in parts)
    return FlattenedValue((kind, key, keys), [value for part in parts for value in part.values], rebuild)


class TensorCast(SugaredValue):
    """A method such as ``x.float`` or ``x.long``, whose call converts the tensor to another dtype."""

    description = "a method that casts a tensor"

    def __init__(self, tensor: Value, dtype: torch.dtype) -> None:
        self.tensor = tensor
        self.dtype = dtype

    def call(self, call: CallSite) -> SugaredValue:
        if call.args:
            raise UnsupportedError("the cast of a tensor takes no positional arguments", call.range)
        dtype = NamedValue(constant=self.dtype, range=call.range, name="dtype")
        itself = NamedValue(self.tensor, range=call.range)
        return SimpleValue(insert_builtin_call(call.range, call.graph, "aten::to", [], [dtype, *call.kwargs], itself))


def _cause_of(note: str | None) -> Cause | None:
    """Return the cause of a type mismatch according to the note on an attribute's type: that the type was assumed; else
    None."""
    assumed = note is not None and ("no annotation" in note or "without an annotation" in note)
    return Cause.DEFAULT_TYPE_ASSUMED if assumed else None


def _is_left_to_python(value: Value, type: ClassType, name: str) -> bool:
    found = None
    if type.python_class is not None and not type.is_module:
        found = python_method.get()(value, type.python_class, name)
    return found is not None


PythonMethod = Callable[[Value, type, str], SugaredValue | None]

python_method: Final = LayerHook[PythonMethod]("rekindle.scripting", lambda value, cls, name: None)
"""Function that returns a method which a Python class does not compile (``@ignore``), bound to an object; None if the
class has no such method."""


ClassMember = Callable[[SourceRange, Graph, Value, str], SugaredValue | None]

class_member: Final = LayerHook[ClassMember]("rekindle.scripting", lambda range, graph, value, name: None)
"""Function that returns a method or property which the Python class of a NamedTuple or an enum defines, bound to a
value; None if the class has none of that name."""


python_attribute: Callable[[SourceRange, Graph, Value, str], SugaredValue | None] | None = None
"""Hook: return an attribute of a value that is a function of the prelude; None if there is none. It is set by
:mod:`rekindle.frontend.python.methods`.

It breaks a cycle of imports: a method of a value may be a generic function, and the parameters of that are values.
"""


def class_attribute(range: SourceRange, graph: Graph, value: Value, type: ClassType, name: str) -> SugaredValue | None:
    """Return the attribute ``name`` of an object of class ``type`` as a sugared value, and emit the read: of a data
    attribute, a constant, a method, also one that is left to Python, or a property, whose getter is called. Return None
    if there is none."""
    if name in type.generic_methods:
        return cast("SugaredValue", type.generic_methods[name](value))
    if name in type.methods:
        return MethodValue(value, type.methods[name])
    if name in type.static_methods:
        return FunctionValue(type.static_methods[name])
    if name in type.class_methods:
        return FunctionValue(type.class_methods[name])
    if name in type.properties:
        return MethodValue(value, type.properties[name].getter).call(CallSite(range, graph))
    attribute = type.attributes.get(name)
    if attribute is not None:
        return SimpleValue(insert_get_attribute(range, graph, value, name, attribute.type))
    if name in type.constants:
        return SimpleValue(graph.insert_constant(type.constants[name], range=range))
    if type.python_class is not None and not type.is_module:
        return python_method.get()(value, type.python_class, name)
    return None


def has_method(type: ClassType, name: str) -> bool:
    """Return whether objects of class ``type`` have a method ``name``, as far as the compiler knows the class."""
    return name in type.methods or (type.is_torchbind_class and name in (methods_of(type) or ()))


def unknown_library_class(type: ClassType, range: SourceRange) -> UnknownLibraryClassError:
    name = type.name.removeprefix("__torch__.")
    if not is_installed(type.name):
        missing = missing_library(f"The class '{name}'", name.split(".")[2])
        message, _, hint = str(missing).partition("\nHint: ")
        return UnknownLibraryClassError(message, range, hint=hint)
    return UnknownLibraryClassError(
        f"nothing is known of the methods of '{name}', a class written in C++, before there is an object of it",
        range,
        hint="register the schemas before this is compiled: "
        "rekindle.add_torchbind_schemas(lambda: torch._C._jit_get_custom_class_schemas())",
    )


def library_attribute(range: SourceRange, graph: Graph, value: Value, type: ClassType, name: str) -> SugaredValue:
    """Return the attribute ``name`` of an object of a C++ class: a method, or a property, whose method ``name_getter``
    is called. If nothing is known of an archive's class, it is a method.

    Raises:
        UndefinedNameError: the class has neither.
        UnknownLibraryClassError: nothing is known of the class, and the program follows Python.
    """
    known = methods_of(type)
    if known is None and graph.follows_python:
        raise unknown_library_class(type, range)
    python = python_class_of(type.name)
    if python is not None and name in python.properties:
        return LibraryProperty(value, type, python.properties[name])
    if known is None or name in known:
        return LibraryMethod(value, type, name)
    if f"{name}_getter" in known:
        return LibraryMethod(value, type, f"{name}_getter").call(CallSite(range, graph))
    raise UndefinedNameError(
        f"'{type.basename}' has no method or property '{name}'", range, hint=f"its methods are {', '.join(known)}"
    )


def set_library_attribute(
    range: SourceRange, graph: Graph, object: Value, type: ClassType, name: str, value: Value
) -> None:
    """Emit an assignment to a property of an object of a C++ class, as a call of the method ``name_setter``.

    Raises:
        UnsupportedError: the class has no such property, or it is read-only.
        UnknownLibraryClassError: nothing is known of the class, and the program follows Python.
    """
    known, setter = methods_of(type), f"{name}_setter"
    if known is None and graph.follows_python:
        raise unknown_library_class(type, range)
    if known is not None and setter not in known:
        raise UnsupportedError(f"'{type.basename}' has no property '{name}' that can be assigned", range)
    assigned = NamedValue(value, range=range)
    LibraryMethod(object, type, setter).call(CallSite(range, graph, [assigned], targets=0))


class SugaredTuple(SugaredValue):
    """A tuple of sugared values. As a value of the graph it is a tuple of their values."""

    description = "a tuple"
    must_unroll = True

    def __init__(self, elements: Sequence[SugaredValue]) -> None:
        self.elements = list(elements)

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        values = [element.as_value(range, graph) for element in self.elements]
        type = TupleType(tuple(value.type for value in values))
        return graph.insert_node(graph.create("prim::TupleConstruct", values, types=[type], range=range)).output

    def as_tuple(self, range: SourceRange, graph: Graph, size_hint: int | None = None) -> list[SugaredValue]:
        return self.elements

    def flatten(self, range: SourceRange, graph: Graph) -> FlattenedValue:
        return parts_of_all(SugaredTuple, range, graph, self.elements, SugaredTuple)

    def iterator(self, range: SourceRange, graph: Graph) -> SugaredValue:
        return self

    @property
    def static_length(self) -> int | None:
        return len(self.elements)

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


class BuiltinFunction(SugaredValue):
    """An operator by its kind, with the receiver ``self_value`` if it is a method. Overloads in ``preferred`` are tried
    first."""

    is_passed_sugared = True

    def __init__(
        self,
        kind: str,
        self_value: NamedValue | None = None,
        preferred: Sequence[Operator | GraphFunction] = (),
    ) -> None:
        self.kind = kind
        self.self_value = self_value
        self.preferred = preferred

    @property
    def description(self) -> str:
        return f"the operator '{self.kind}'"

    def flatten(self, range: SourceRange, graph: Graph) -> FlattenedValue:
        key = (type(self), self.kind, tuple(self.preferred))
        if self.self_value is None:
            return FlattenedValue(key, (), lambda values, emitter: self)
        itself = self.self_value.materialize(graph)

        def unflatten(values: Sequence[Value], emitter: object) -> SugaredValue:
            method = copy(self)
            method.self_value = NamedValue(values[0], range=range)
            return method

        return FlattenedValue((*key, itself.type), (itself,), unflatten)

    def call(self, call: CallSite) -> SugaredValue:
        kind, itself = self.kind, self.self_value
        args = call.args
        if kind in NUMBER_KINDS and call.graph.follows_python:
            kind, itself, args = as_containers_of_numbers(kind, itself, args, call.graph, call.range)
            found = None if call.kwargs else takes_other_default(call.range, call.graph, kind, args, itself)
            if found is not None:
                return SimpleValue(found)
        if kind in SET_AWARE_KINDS:
            args = convert_set_arguments(kind, args, call.graph, call.range)
        if kind in STRING_METHODS and call.graph.follows_python:
            args = as_string_method(kind, itself, args, call.graph, call.range)
        limit = limit_at_white_space(kind, args, call.kwargs) if call.graph.follows_python else None
        if limit is not None and itself is not None:
            assert python_attribute is not None, "rekindle.frontend.python.methods was not imported"
            method = python_attribute(call.range, call.graph, itself.materialize(call.graph), "rsplit")
            assert method is not None
            return method.call(replace(call, args=limit, kwargs=[]))
        try:
            made = insert_builtin_call(call.range, call.graph, kind, args, call.kwargs, itself, self.preferred)
            if call.targets and gives_nothing(kind, made, itself):
                made = call.graph.insert_constant(None, range=call.range)
            return SimpleValue(as_python_has_it(kind, made))
        except SchemaError:
            found = call_as_python_does(call.range, call.graph, kind, args, call.kwargs, itself)
            if found is None:
                raise
            return SimpleValue(as_python_has_it(found.node.kind, found))


class _OverloadSchemas(Sequence[FunctionSchema]):
    """The schemas of overloads. Reading a schema compiles its overload, so that a call compiles none after the first
    that matches."""

    def __init__(self, overloads: Sequence[GraphFunction], called_from: SourceRange) -> None:
        self._overloads = overloads
        self._called_from = called_from

    def __len__(self) -> int:
        return len(self._overloads)

    def __getitem__(self, index: Any) -> Any:
        overload = self._overloads[index]
        overload.ensure_defined(self._called_from)
        return overload.schema


class FunctionValue(StaticValue):
    """A compiled function, or several if it is overloaded."""

    def __init__(self, *functions: GraphFunction) -> None:
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

    def call(self, call: CallSite) -> SugaredValue:
        schemas = _OverloadSchemas(self.functions, call.range)
        index, plan = match_schemas(self.functions[0].basename, schemas, call.range, call.args, call.kwargs)
        inputs = plan.inputs(call.graph, call.range)
        callee = insert_function_constant(call.range, call.graph, self.functions[index])
        node = call.graph.create("prim::CallFunction", [callee, *inputs], types=plan.return_types, range=call.range)
        return SimpleValue(call.graph.insert_node(node).output)


class MethodValue(SugaredValue):
    """A compiled method of an object, or several if it is overloaded."""

    is_passed_sugared = True

    def __init__(self, object: Value, *methods: GraphFunction) -> None:
        self.object = object
        self.methods = methods

    @property
    def description(self) -> str:
        return f"the method '{self.methods[0].basename}'"

    def flatten(self, range: SourceRange, graph: Graph) -> FlattenedValue:
        methods = self.methods
        return FlattenedValue(
            (MethodValue, methods), (self.object,), lambda values, emitter: MethodValue(values[0], *methods)
        )

    def call(self, call: CallSite) -> SugaredValue:
        schemas = _OverloadSchemas(self.methods, call.range)
        arguments = [NamedValue(self.object, range=call.range), *call.args]
        index, plan = match_schemas(self.methods[0].basename, schemas, call.range, arguments, call.kwargs)
        return SimpleValue(
            insert_method_call(
                call.range,
                call.graph,
                self.methods[index].basename,
                plan.inputs(call.graph, call.range),
                plan.return_types,
            )
        )


class LibraryMethod(SugaredValue):
    """A method of a C++ object. If its class is unknown, a call has as many Tensors as results as there are targets."""

    def __init__(self, object: Value, type: ClassType, name: str) -> None:
        self.object = object
        self.type = type
        self.name = name

    @property
    def description(self) -> str:
        return f"the method '{self.name}'"

    def call(self, call: CallSite) -> SugaredValue:
        known = methods_of(self.type)
        if known is not None:
            return self._call_known(call.range, call.graph, call.args, call.kwargs, known)
        if call.kwargs:
            raise UnsupportedError(
                f"{self.description} of a class written in C++ takes no arguments by name", call.range
            )
        inputs = [self.object, *(argument.materialize(call.graph) for argument in call.args)]
        type: Type = TENSOR if call.targets == 1 else TupleType((TENSOR,) * call.targets)
        result = insert_method_call(call.range, call.graph, self.name, inputs, [type])
        return SimpleValue(result) if call.targets else SimpleValue(call.graph.insert_constant(None, range=call.range))

    def _call_known(
        self,
        range: SourceRange,
        graph: Graph,
        args: Sequence[NamedValue],
        kwargs: Sequence[NamedValue],
        known: Mapping[str, FunctionSchema],
    ) -> SugaredValue:
        myself = NamedValue(self.object, range=range)
        python = python_class_of(self.type.name)
        if python is not None and self.name in python.defaults and not args and not kwargs:
            args = [NamedValue(_default_of(python.defaults[self.name], range, graph), range=range)]
        schemas = [known[self.name]] if graph.follows_python else schemas_of_method(self.type, self.name)
        _, plan = match_schemas(self.name, schemas, range, args, kwargs, myself)
        return SimpleValue(insert_method_call(range, graph, self.name, plan.inputs(graph, range), plan.return_types))


def _default_of(name: str, range: SourceRange, graph: Graph) -> Value:
    """Emit the default of Python's method for an omitted argument, and return it: the result of the operator ``name``
    for the current device, or a new object of the C++ class ``name``."""
    if not name.startswith(LIBRARY_CLASSES):
        return graph.insert(name, [graph.insert_constant(None, range=range)], range=range)
    type = custom_class(name)
    made = graph.insert_node(graph.create("prim::CreateObject", types=[type], range=range)).output
    LibraryMethod(made, type, "__init__").call(CallSite(range, graph, targets=0))
    return made


class LibraryProperty(LibraryMethod):
    """A method of a C++ object that is an attribute in Python. It can be called, as in TorchScript, or read."""

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        return self.call(CallSite(range, graph)).as_value(range, graph)


class InterfaceMethodValue(SugaredValue):
    """A method of an object whose type is an interface."""

    def __init__(self, object: Value, name: str) -> None:
        self.object = object
        self.name = name

    @property
    def description(self) -> str:
        return f"the method '{self.name}'"

    def call(self, call: CallSite) -> SugaredValue:
        type = self.object.type
        assert isinstance(type, InterfaceType)
        arguments = [NamedValue(self.object, range=call.range), *call.args]
        _, plan = match_schemas(self.name, [type.methods[self.name]], call.range, arguments, call.kwargs)
        return SimpleValue(
            insert_method_call(
                call.range, call.graph, self.name, plan.inputs(call.graph, call.range), plan.return_types
            )
        )
