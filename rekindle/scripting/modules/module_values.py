"""Modules within a program: ``self.layer(x)``, ``for layer in self.layers``, ``self.weight``."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from types import FunctionType
from typing import Final, cast

import torch

from rekindle.errors import (
    Cause,
    NotScriptableError,
    SourceRange,
    TypeMismatchError,
    UndefinedNameError,
    UnsupportedError,
)
from rekindle.frontend.calls.insertion import constant_int, insert_get_attribute
from rekindle.frontend.python.library import library_function
from rekindle.frontend.sugared_values.base import CallSite, FlattenedValue, Keywords, SugaredValue
from rekindle.frontend.sugared_values.runtime_dispatch import RuntimeDispatch
from rekindle.frontend.sugared_values.values import (
    BuiltinFunction,
    FunctionValue,
    MethodValue,
    SimpleValue,
    SugaredTuple,
)
from rekindle.ir.graph import Graph, Value
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.types import (
    INT,
    NONE,
    STRING,
    TENSOR,
    ClassAttribute,
    ClassType,
    DictType,
    InterfaceType,
    ListType,
    Property,
    Type,
    mismatch_note,
    unshaped,
)
from rekindle.program.function import Function
from rekindle.program.names import qualified_name
from rekindle.scripting.callables.cached_functions import CACHED
from rekindle.scripting.callables.dependencies import Dependencies
from rekindle.scripting.callables.generic_functions import may_be_generic
from rekindle.scripting.callables.generic_methods import FixedMethod, GenericMethod
from rekindle.scripting.callables.modifiers import is_left_to_python
from rekindle.scripting.callables.python_calls import PythonFunctionValue
from rekindle.scripting.compilation import compile_function
from rekindle.scripting.constants import constant_value, construct
from rekindle.scripting.library_values.math_functions import math_function
from rekindle.scripting.library_values.python_objects import BoundFunction, PythonObject
from rekindle.scripting.library_values.special_names import ConstantFunction
from rekindle.scripting.library_values.unusable_values import UnusableValue, correction, did_you_mean
from rekindle.scripting.modules import stored_methods
from rekindle.scripting.modules.class_members import find_member, members_of, own_method, owners_of
from rekindle.scripting.modules.dynamic_attributes import (
    ask,
    dynamic_slot,
    make_slot,
    may_be_created_by_method,
    note_made,
    note_read,
)
from rekindle.scripting.modules.empty_attributes import empty_slot
from rekindle.scripting.modules.hooks import HookedCall
from rekindle.scripting.modules.module_slices import ModuleSlice
from rekindle.scripting.modules.module_types import ConcreteModuleType, Container, is_inert
from rekindle.scripting.modules.module_views import ModuleView, is_view_of_items, is_view_of_parts
from rekindle.scripting.modules.special_methods import (
    check_iterates_over_items,
    has_compiled_call,
    warn_of_omitted_call,
)
from rekindle.scripting.modules.stored_methods import stored_method
from rekindle.scripting.python_values import ClassValue, function_value, sugared_value
from rekindle.scripting.resolver import PythonResolver

_NO_ATTRIBUTE: Final = object()
_EMPTY: Final = PythonResolver()


class ModuleBinding:
    """The binding of ``self`` in a method of a module."""

    def __init__(self, concrete: ConcreteModuleType) -> None:
        self.concrete = concrete

    @property
    def type(self) -> ClassType:
        return self.concrete.type

    def sugared(self, value: Value) -> SugaredValue:
        return ModuleValue(value, self.concrete)

    def record_of(self, name: str, function: FunctionType, owner: builtins.type) -> GraphFunction:
        """Return the record of a method ``name``, compiled for this module type from ``function``, which is that of the
        class or of its base ``owner``."""
        if function is self.concrete.class_function(name):
            return method_records(self.concrete, name)[0]
        return _record(self.concrete, f"{name}__{owner.__name__}", function, None)


# -------------------------------------------------------------------------------------------------------------- methods


def method_records(concrete: ConcreteModuleType, name: str) -> tuple[GraphFunction, ...]:
    """Return the records of the method ``name``: one, or one for each overload; none if there is no such method to
    compile."""
    known = concrete.type.methods.get(name)
    if known is not None:
        return (known,)
    function = concrete.method_function(name)
    if function is None:
        return ()
    return _overload_records(concrete, name) or (_record(concrete, name, function, None),)


def _overload_records(concrete: ConcreteModuleType, name: str) -> tuple[GraphFunction, ...]:
    """Return the records of the overloads of the method ``name``, in the order of their declarations; empty if it has
    none."""
    function = concrete.method_function(name)
    if function is None:
        return ()
    return tuple(
        _record(concrete, f"{name}__{index}", function, declaration)
        for index, declaration in enumerate(concrete.overloads(name))
    )


def method_of_interface(concrete: ConcreteModuleType, name: str) -> GraphFunction | None:
    """Return the method that implements an interface method; None if the module has no such method, or overloads of it.

    Raises:
        NotScriptableError: the method is ``forward`` and the module has hooks, which a call through an interface would
            not run.
    """
    if name == "forward" and concrete.facts.has_hooks:
        raise NotScriptableError(
            f"the module '{concrete.name}' has hooks, which calls through an interface do not run",
            hint="remove them before compiling, or declare no interface for the module",
        )
    records = method_records(concrete, name)
    return records[0] if len(records) == 1 else None


def _record(
    concrete: ConcreteModuleType, name: str, function: FunctionType, declaration: FunctionType | None
) -> GraphFunction:
    methods = concrete.type.methods
    found = methods.get(name)
    if found is None:

        def define(record: GraphFunction) -> None:
            compile_method(concrete, record, function, declaration)

        found = methods[name] = GraphFunction(
            f"{concrete.type.name}.{name}",
            function_creator=define,
            docstring=function.__doc__,
            is_from_class=True,
            left_out=_variadic(function),
        )
    return found


def _variadic(function: FunctionType) -> dict[str, str]:
    """Return ``*args`` and ``**kwargs`` of a function as its source spells them, each with its place, by the stars."""
    code, found = function.__code__, {}
    names = iter(code.co_varnames[code.co_argcount + code.co_kwonlyargcount :])
    for flag, stars in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")):
        if code.co_flags & flag:
            found[stars] = f"'{stars}{next(names)}' ({code.co_filename}:{code.co_firstlineno})"
    return found


def _check_hooks_known(concrete: ConcreteModuleType, name: str) -> None:
    """Reject the compilation of ``forward`` of a traced submodule with hooks: only its trace could record these hooks.

    Raises:
        NotScriptableError: the trace did not call the submodule, and it has hooks.
    """
    if name == "forward" and concrete.facts.has_traced_hooks:
        raise NotScriptableError(
            f"the module '{concrete.name}' is part of a trace that did not call it, so that its hooks are lost",
            hint="call it in what is traced, or remove its hooks before tracing",
        )


def compile_method(
    concrete: ConcreteModuleType,
    record: GraphFunction,
    function: FunctionType,
    declaration: FunctionType | None = None,
) -> None:
    """Compile a function of the module's class as a method into ``record`` and store the result on disk if possible, or
    load it from there.

    Raises:
        CompileError: the function cannot be compiled, or is the ``forward`` of a submodule with hooks that was not
            called by the trace to which it belongs.
    """
    _check_hooks_known(concrete, record.basename)
    binding = ModuleBinding(concrete)
    forms: dict[str, SugaredValue] = {"super": SuperForm(concrete, function)}
    stored = stored_method(concrete, record, function, declaration)
    if stored is None:
        compile_function(record, function, declaration, self_binding=binding, forms=forms)
    elif not stored.load(record):
        dependencies = Dependencies(function)
        compile_function(record, function, declaration, self_binding=binding, forms=forms, observer=dependencies)
        stored.store(record, dependencies)


def _method_called(concrete: ConcreteModuleType, name: str) -> GraphFunction | None:
    """Return the record of the method ``name`` of the class, of one of its overloads (``forward__0``), or of a method
    of one of its bases as ``super()`` calls it (``forward__Base``). Return None if there is none, or if ``name`` has
    several overloads."""
    records = method_records(concrete, name)
    if records:
        return records[0] if len(records) == 1 else None
    base, _, owner = name.rpartition("__")
    if owner.isdigit():
        return next((each for each in _overload_records(concrete, base) if each.basename == name), None)
    for cls in owners_of(concrete.python_class):
        function = dict(members_of(cls)).get(base) if cls.__name__ == owner else None
        if isinstance(function, FunctionType):
            return _record(concrete, name, function, None)
    return None


stored_methods.make_method = _method_called


def property_of(concrete: ConcreteModuleType, name: str) -> Property | None:
    """Return the property ``name`` of the module's class; its getter and setter are compiled on first use. Return None
    if there is none, or it is left to Python."""
    known = concrete.type.properties.get(name)
    if known is not None:
        return known
    found = find_member(concrete.python_class, name)
    if not isinstance(found, property) or found.fget is None:
        return None
    cls = concrete.python_class
    left_out = {*getattr(cls, "__jit_unused_properties__", ()), *getattr(cls, "__jit_ignored_attributes__", ())}
    if name in left_out or is_left_to_python(found):
        return None
    getter = _record(concrete, f"__{name}_getter", cast("FunctionType", found.fget), None)
    setter = (
        None if found.fset is None else _record(concrete, f"__{name}_setter", cast("FunctionType", found.fset), None)
    )
    made = concrete.type.properties[name] = Property(name, getter, setter)
    return made


# --------------------------------------------------------------------------------------------------------------- values


class ModuleValue(SugaredValue):
    """A module: a value of the graph, and its compile-time facts."""

    is_passed_sugared = True

    def __init__(self, value: Value, concrete: ConcreteModuleType) -> None:
        self.value = value
        self.concrete = concrete
        self.facts = concrete.facts

    @property
    def description(self) -> str:
        return f"the module '{self.concrete.name}'"

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        return self.value

    def flatten(self, range: SourceRange, graph: Graph) -> FlattenedValue:
        concrete = self.concrete
        return FlattenedValue(
            (ModuleValue, concrete), (self.value,), lambda values, emitter: ModuleValue(values[0], concrete)
        )

    @property
    def class_of_module(self) -> type | None:
        return self.concrete.python_class

    # ------------------------------------------------------------------------------------------------------- attributes

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        found = self.find_attribute(range, graph, name)
        if found is not None:
            return found
        if name in self.facts.failed:
            raise self._failure(name, range)
        hint = self._missing_hint(name)
        raise UndefinedNameError(
            f"{self.description} has no attribute '{name}'", range, hint=hint, edit=correction(range, name, hint)
        )

    def _missing_hint(self, name: str) -> str | None:
        if hasattr(torch.nn.Module, name):
            return f"'{name}' is a method of nn.Module that only Python can call"
        facts = self.facts
        known = [*self.concrete.type.attributes, *facts.constants, *facts.functions, *facts.builtins, *facts.failed]
        own = [item for item in dir(self.concrete.python_class) if not hasattr(torch.nn.Module, item)]
        return did_you_mean(name, [*known, *own]) or f"give it a value in __init__: self.{name} = …"

    def has_attribute(self, range: SourceRange, graph: Graph, name: str) -> bool:
        if name in self.concrete.type.attributes or name in self.facts.failed:
            return True
        tables = (self.facts.constants, self.facts.functions, self.facts.builtins, self.facts.methods)
        return any(name in table for table in tables) or hasattr(self.concrete.python_class, name)

    def ask_attribute(self, range: SourceRange, graph: Graph, name: str) -> Value | None:
        slot = self.concrete.type.attributes.get(name)
        if slot is None and not self.has_attribute(range, graph, name):
            if not may_be_created_by_method(self.concrete.python_class, name):
                return None
            slot = dynamic_slot(self.concrete, name)
            if slot is None:
                note_read(self.concrete, name, graph)
        if slot is None or not slot.is_dynamic or slot.initial is not None:
            return None
        return ask(slot, self.concrete, self.value, range, graph)

    def find_attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue | None:
        """Return the sugared value of ``self.name``, for which reads of the slot or a property are emitted; None if the
        module has no attribute ``name``, or one that programs cannot use."""
        facts = self.facts
        slot = self._slot(name, range)
        if slot is not None:
            value = insert_get_attribute(range, graph, self.value, name, slot.type)
            part = facts.submodules.get(name)
            return ModuleValue(value, part) if isinstance(part, ConcreteModuleType) else SimpleValue(value)
        if name in facts.constants:
            constant = constant_value(facts.constants[name], range, graph)
            assert constant is not None
            return SimpleValue(constant)
        if name in facts.functions:
            return self._function(facts.functions[name])
        if name in facts.builtins:
            kind = facts.builtins[name]
            return math_function(kind) or BuiltinFunction(kind)
        if is_view_of_items(self.concrete, name):
            return ModuleView(self, self.concrete, name)
        method = self._method(name)
        if method is not None:
            return method
        accessors = property_of(self.concrete, name)
        if accessors is not None:
            return MethodValue(self.value, accessors.getter).call(CallSite(range, graph))
        if name in facts.objects:
            return self._known_object(range, graph, name)
        if name in facts.failed:
            return None
        if is_view_of_parts(self.concrete, name):
            return ModuleView(self, self.concrete, name)
        if may_be_created_by_method(self.concrete.python_class, name):
            slot = dynamic_slot(self.concrete, name)
            if slot is not None:
                return SimpleValue(insert_get_attribute(range, graph, self.value, name, slot.type))
            note_read(self.concrete, name, graph)
        return self._from_class(range, graph, name)

    def _slot(self, name: str, range: SourceRange) -> ClassAttribute | None:
        slot = self.concrete.type.attributes.get(name)
        if slot is None and name in self.facts.empty:
            return empty_slot(self.concrete, name, self._failure(name, range))
        return slot

    def _method(self, name: str) -> SugaredValue | None:
        function = self.concrete.generic_function(name)
        if function is not None and not self.concrete.overloads(name):
            _check_hooks_known(self.concrete, name)
            return self._generic(function, partial(method_records, self.concrete, name))
        records = method_records(self.concrete, name)
        if len(records) == 1 and not records[0].is_from_class:
            return FixedMethod(self.value, records[0], self.concrete.method_function(name))
        return MethodValue(self.value, *records) if records else None

    def _generic(self, function: FunctionType, find: Callable[[], tuple[GraphFunction, ...]]) -> SugaredValue:
        """Return a method that may be compiled separately for the argument types of each call. ``find`` returns its
        records."""
        concrete = self.concrete
        itself = ModuleValue(self.value, concrete)
        forms = {"super": SuperForm(concrete, function)}
        owner = qualified_name(concrete.python_class)
        return GenericMethod(itself, self.value, concrete.specialized, owner, function, find, forms)

    def with_super(self, function: FunctionType) -> SugaredValue | None:
        owner = defining_class(self.concrete.python_class, function)
        if owner is None:
            return None
        find = partial(_records_of_base, self.concrete, function, owner)
        return self._generic(function, find) if may_be_generic(function) else MethodValue(self.value, *find())

    def _known_object(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        """Return the sugared value of the attribute ``name``, an object known at compile time. Its use as a run-time
        value raises."""
        found = sugared_value(self.facts.objects[name], range, graph, _EMPTY, f"self.{name}")
        if not isinstance(found, PythonObject):
            return found
        return PythonObject(found.obj, found.name, _EMPTY, partial(self._failure, name, range))

    def _failure(self, name: str, range: SourceRange) -> NotScriptableError:
        reason = self.facts.failed[name]
        return NotScriptableError(f"attribute '{name}' of {self.description} cannot be used: {reason}", range)

    def _function(self, function: FunctionType | Function) -> SugaredValue:
        if isinstance(function, Function):
            return FunctionValue(function._record)
        return function_value(function, PythonResolver.of_function(function))

    def _from_class(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue | None:
        """Return the sugared value of ``name`` in the class, or of the function with which the module replaces a method
        of its class: functions left to Python, static and class methods, constants. Return None if the class has no
        such name, or a method that is compiled.

        Raises:
            NotScriptableError: ``name`` is a property that is marked as not to be compiled.
        """
        cls = self.concrete.python_class
        if name == "__class__":
            return ClassValue(cls, _EMPTY)
        found = self.facts.methods.get(name) or find_member(cls, name, _NO_ATTRIBUTE)
        if found is _NO_ATTRIBUTE or (isinstance(found, FunctionType) and self.facts.hides_method(name)):
            return None
        if isinstance(found, staticmethod):
            return sugared_value(found.__func__, range, graph, _EMPTY, name)
        if isinstance(found, property):
            raise NotScriptableError(
                f"the property '{name}' of {self.description} is marked as not to be compiled, but is used here", range
            )
        if isinstance(found, classmethod) and isinstance(found.__func__, FunctionType):
            function = found.__func__
            resolver = PythonResolver.of_function(function)
            return BoundFunction(function_value(function, resolver), PythonObject(cls, None, resolver))
        if isinstance(found, FunctionType):
            if is_inert(found):
                return ConstantFunction(name, None)
            if is_left_to_python(found):
                return PythonFunctionValue(found, PythonResolver.of_function(found), self.value)
            return None
        if isinstance(found, CACHED):
            return UnusableValue(found, name)  # the cache holds results for each state of the module
        return sugared_value(found, range, graph, _EMPTY, name)

    def set_attribute(self, range: SourceRange, graph: Graph, name: str, value: Value) -> None:
        facts = self.facts
        if name in facts.failed and self._slot(name, range) is None:
            raise NotScriptableError(
                f"attribute '{name}' of {self.description} cannot be assigned: {facts.failed[name]}", range
            )
        if name in facts.submodules and not isinstance(facts.submodules[name], InterfaceType):
            raise UnsupportedError(f"'{name}' is a part of {self.description}; a program cannot replace it", range)
        if name in facts.constants:
            raise UnsupportedError(
                f"'{name}' is a constant of {self.description} and cannot be assigned",
                range,
                hint=f"take '{name}' out of __constants__, or Final out of its annotation"
                if name not in facts.read_by_call
                else f"the '__call__' of the class depends on '{name}'; set it before compiling",
            )
        property_of(self.concrete, name)
        make_slot(self.concrete, name, value.type, range, graph)
        SimpleValue(self.value).set_attribute(range, graph, name, value)
        note_made(self.concrete, self.value, name, range, graph)

    def declare_attribute(self, range: SourceRange, name: str, type: Type) -> None:
        if name not in self.concrete.type.attributes and name not in self.facts.failed:
            dynamic_slot(self.concrete, name, type)

    def attribute_type(self, name: str) -> Type | None:
        """Return the type of the slot ``name``, which types literals that are assigned to it; None if there is no such
        slot."""
        return self.concrete.type.attribute_type(name)

    def may_widen_attribute(self, name: str) -> bool:
        return self.concrete.type.may_widen(name)

    # ---------------------------------------------------------------------------------------------------------- calling

    @property
    def accepts_sugared_args(self) -> bool:
        if has_compiled_call(self.facts):
            return self.concrete.generic_function("__call__") is not None
        return ForwardWithHooks(self).accepts_sugared_args

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        return self._called(range, graph).call_with(range, graph, args, kwargs, targets)

    def call(self, call: CallSite) -> SugaredValue:
        return self._called(call.range, call.graph).call(call)

    def _called(self, range: SourceRange, graph: Graph) -> SugaredValue:
        """Return what a call of the module calls: the ``__call__`` of its class, or that of ``nn.Module``."""
        if has_compiled_call(self.facts):
            return self.attribute(range, graph, "__call__")
        warn_of_omitted_call(self.facts)
        return ForwardWithHooks(self)

    # ------------------------------------------------------------------------------------------------------- containers

    def _items(self, range: SourceRange, graph: Graph) -> list[SugaredValue]:
        """Return the items of the container."""
        return [self.attribute(range, graph, name) for name in self.facts.items]

    def _keys(self, range: SourceRange, graph: Graph) -> list[SugaredValue]:
        return [SimpleValue(graph.insert_constant(name, range=range)) for name in self.facts.items]

    def as_tuple(self, range: SourceRange, graph: Graph, size_hint: int | None = None) -> list[SugaredValue]:
        if self.facts.container is Container.NONE:
            return super().as_tuple(range, graph, size_hint)
        check_iterates_over_items(self.facts.python_class, range)
        return self._keys(range, graph) if self.facts.is_dict else self._items(range, graph)

    def iterator(self, range: SourceRange, graph: Graph) -> SugaredValue:
        if self.facts.container is Container.NONE:
            raise UnsupportedError(
                f"{self.description} cannot be iterated over",
                range,
                hint="a loop can go over a ModuleList, a Sequential, a ModuleDict or a list of parameters",
            )
        return SugaredTuple(self.as_tuple(range, graph))

    def sliced(self, items: list[SugaredValue]) -> SugaredValue | None:
        return ModuleSlice(items, self.facts.python_class)

    @property
    def static_length(self) -> int | None:
        return None if self.facts.container is Container.NONE else len(self.facts.items)

    @property
    def must_unroll(self) -> bool:
        return self.facts.container is not Container.NONE

    def _has_own(self, name: str) -> bool:
        """Return whether to call the special method ``name`` of the class: it is not a container of PyTorch, or
        overrides the container's method."""
        return self.facts.container is Container.NONE or own_method(self.facts.python_class, name) is not None

    def length(self, range: SourceRange, graph: Graph) -> Value:
        if self._has_own("__len__"):
            return self.attribute(range, graph, "__len__").call(CallSite(range, graph)).as_value(range, graph)
        return graph.insert_constant(len(self.facts.items), range=range)

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None = None) -> SugaredValue:
        if self._has_own("__getitem__"):
            method = self.attribute(range, graph, "__getitem__")
            return method.call(CallSite(range, graph, [NamedValue(index, range=range)]))
        if self.facts.is_dict:
            return self._item_by_key(range, graph, index, type_hint)
        if index.type != INT:
            raise TypeMismatchError(f"{self.description} is indexed by an int, got {index.type.annotation}", range)
        position = constant_int(index)
        names = self.facts.items
        if position is None:
            return self._item_at_run_time(range, graph, index, type_hint)
        if not -len(names) <= position < len(names):
            raise TypeMismatchError(f"index {position} is out of range for {len(names)} items", range)
        return self.attribute(range, graph, names[position])

    def _item_by_key(self, range: SourceRange, graph: Graph, key: Value, type_hint: Type | None) -> SugaredValue:
        if key.type != STRING:
            raise TypeMismatchError(f"{self.description} is indexed by a str, got {key.type.annotation}", range)
        name = key.node.attributes.get("value") if key.node.kind == "prim::Constant" else None
        if not isinstance(name, str):
            return self._item_at_run_time(range, graph, key, type_hint)
        if name not in self.facts.items:
            known = ", ".join(map(repr, self.facts.items))
            raise UndefinedNameError(f"{self.description} has no item '{name}'", range, hint=f"its items are {known}")
        return self.attribute(range, graph, name)

    def _item_at_run_time(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None) -> SugaredValue:
        """Return the item at an index that is known only at run time. Items of one type, or of a declared interface,
        are read by one node. Otherwise each use of the item branches on the index.

        Raises:
            UnsupportedError: there are no items, or an item is not a submodule.
            TypeMismatchError: an item does not implement the interface ``type_hint``.
        """
        parts = [self.facts.submodules.get(name) for name in self.facts.items]
        if parts and all(part is None for part in parts):
            return self._parameter_at_run_time(range, graph, index)
        if not parts or None in parts:
            raise UnsupportedError(
                f"{self.description} can only be indexed by a constant here", range, cause=Cause.DYNAMIC_BEHAVIOUR
            )
        first = parts[0]
        if isinstance(type_hint, InterfaceType):
            self._check_items(range, type_hint)
            result: Type = type_hint
        elif all(part is first for part in parts):
            result = first.type if isinstance(first, ConcreteModuleType) else NONE if first is None else first
        else:
            names = self.facts.items
            makes = [partial(self.attribute, range, graph, name) for name in names]
            return RuntimeDispatch(self.description, index, names, makes)
        node = graph.insert_node(
            graph.create("prim::ModuleContainerIndex", [self.value, index], types=[result], range=range)
        )
        if isinstance(first, ConcreteModuleType) and result is first.type:
            return ModuleValue(node.output, first)
        return SimpleValue(node.output)

    def _parameter_at_run_time(self, range: SourceRange, graph: Graph, index: Value) -> SugaredValue:
        """Return the parameter at an index, or with a name, that is known only at run time, as the item of a list or a
        dict of all.

        Raises:
            UnsupportedError: an item is not a tensor.
        """
        names = self.facts.items
        items = [self.attribute(range, graph, name).as_value(range, graph) for name in names]
        if any(unshaped(item.type) != TENSOR for item in items):
            raise UnsupportedError(
                f"{self.description} can only be indexed by a constant here", range, cause=Cause.DYNAMIC_BEHAVIOUR
            )
        if index.type == STRING:
            keys = [graph.insert_constant(name, range=range) for name in names]
            pairs = [value for pair in zip(keys, items, strict=True) for value in pair]
            made = construct("prim::DictConstruct", pairs, DictType(STRING, TENSOR), range, graph)
        else:
            made = construct("prim::ListConstruct", items, ListType(TENSOR), range, graph)
        function = library_function("parameter_named" if index.type == STRING else "parameter_at")
        return function.call_with(range, graph, [SimpleValue(made), SimpleValue(index)], {})

    def _check_items(self, range: SourceRange, interface: InterfaceType) -> None:
        """Check that all items implement ``interface``.

        Raises:
            TypeMismatchError: an item does not.
        """
        for name in self.facts.items:
            part = self.facts.submodules[name]
            type = part.type if isinstance(part, ConcreteModuleType) else part
            if not type.is_subtype_of(interface):
                raise TypeMismatchError(
                    f"item '{name}' of {self.description} is not a {interface.annotation}"
                    + mismatch_note(type, interface),
                    range,
                )


class ForwardWithHooks(SugaredValue):
    """The ``__call__`` of ``nn.Module``: it runs the hooks of a module, and its ``forward``."""

    def __init__(self, module: ModuleValue) -> None:
        self.module = module

    @property
    def description(self) -> str:
        return f"'__call__' of {self.module.description}"

    @property
    def accepts_sugared_args(self) -> bool:
        module = self.module
        return not module.facts.has_hooks and module.concrete.generic_function("forward") is not None

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        if self.accepts_sugared_args:
            return self.module.attribute(range, graph, "forward").call_with(range, graph, args, kwargs, targets)
        return super().call_with(range, graph, args, kwargs, targets)

    def call(self, call: CallSite) -> SugaredValue:
        module = self.module
        forward = module.find_attribute(call.range, call.graph, "forward")
        if forward is None and "forward" in module.facts.failed:
            raise module._failure("forward", call.range)
        if forward is None:
            raise NotScriptableError(f"{module.description} cannot be called: it has no method 'forward'", call.range)
        if not module.facts.has_hooks:
            return forward.call(call)
        hooked = HookedCall(module.concrete, module.value, call.range, call.graph, compile_method)
        return hooked(call.args, lambda args: forward.call(replace(call, args=args)))


class SuperForm(SugaredValue):
    """``super`` within a method of a module."""

    description = "'super'"

    def __init__(self, concrete: ConcreteModuleType, function: FunctionType) -> None:
        self.concrete = concrete
        self.function = function

    def call(self, call: CallSite) -> SugaredValue:
        if call.args or call.kwargs:
            raise UnsupportedError("'super' takes no arguments in a program", call.range, hint="write super()")
        owner = defining_class(self.concrete.python_class, self.function)
        if owner is None:
            raise UnsupportedError("super() is used outside of a class here", call.range)
        return SuperValue(call.graph.self_value, self.concrete, owner)


class SuperValue(ModuleValue):
    """``super()`` in a method of ``owner``: the module, with the methods of the classes after ``owner`` in the
    resolution order."""

    def __init__(self, value: Value, concrete: ConcreteModuleType, owner: type) -> None:
        super().__init__(value, concrete)
        self.owner = owner

    def find_attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue | None:
        mro = [*owners_of(self.concrete.python_class)]
        for cls in mro[mro.index(self.owner) + 1 :]:
            found = dict(members_of(cls)).get(name)
            if found is None:
                continue
            if name == "__call__" and found is torch.nn.Module.__call__:
                return ForwardWithHooks(ModuleValue(self.value, self.concrete))
            if not isinstance(found, FunctionType):
                raise UnsupportedError(
                    f"'{name}' of '{cls.__name__}' is not a method, and only methods can be had of super()", range
                )
            if is_left_to_python(found):
                return PythonFunctionValue(found, PythonResolver.of_function(found), self.value)
            find = partial(_records_of_base, self.concrete, found, cls)
            return self._generic(found, find) if may_be_generic(found) else MethodValue(self.value, *find())
        return None


def _records_of_base(concrete: ConcreteModuleType, function: FunctionType, owner: type) -> tuple[GraphFunction, ...]:
    """Return the record of a method that the body of ``owner``, a class of the module or a base, defines."""
    name = function.__name__
    if function is concrete.class_function(name):
        return method_records(concrete, name)
    return (_record(concrete, f"{name}__{owner.__name__}", function, None),)


def defining_class(cls: type, function: FunctionType) -> type | None:
    """Return the class among ``cls`` and its bases whose body defines ``function``, or a wrapper of it that uses
    ``super()``; None if none does."""
    for owner in owners_of(cls):
        for _, found in members_of(owner):
            if found is function or (isinstance(found, property) and function in (found.fget, found.fset)):
                return owner
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    defining = cells["__class__"].cell_contents if "__class__" in cells else None
    return defining if isinstance(defining, type) and issubclass(cls, defining) else None
