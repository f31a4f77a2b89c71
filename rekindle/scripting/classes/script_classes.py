"""Script classes: Python classes within a program. Their methods are compiled, and the variables that ``__init__``
assigns are their attributes.

Objects are ordinary Python objects: a program creates them as instances of the Python class, and reads and writes the
attributes of objects that Python passes.
"""

from __future__ import annotations

import abc
import dataclasses
import enum
import inspect
import sys
import typing
from collections.abc import Iterable
from functools import partial
from types import FunctionType
from typing import Any, Final

import torch

import rekindle.scripting.library_values.context_managers  # noqa: F401  (what it knows of PyTorch's classes is asked first)
from rekindle.errors import (
    UNKNOWN_RANGE,
    Cause,
    CompileError,
    Diagnostics,
    NotScriptableError,
    SourceRange,
    TypeMismatchError,
    UnsupportedError,
)
from rekindle.frontend.calls.generic import GenericFunction
from rekindle.frontend.containers.set_values import check_attribute
from rekindle.frontend.sugared_values import values
from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.frontend.sugared_values.classes import InitBinding, ObjectBinding, construct
from rekindle.frontend.sugared_values.values import FunctionValue, MethodValue, SimpleValue
from rekindle.ir.graph import Graph, Value
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.redefinition import forget_users, is_relied_on, restart_users
from rekindle.ir.types import ANY, ClassAttribute, ClassType, Property, Type, keep_type, kept_type
from rekindle.program.calling import fit_value
from rekindle.program.names import qualified_name, unique_name
from rekindle.runtime.calls import conversion
from rekindle.scripting.annotations import (
    CLASS_HOOKS,
    class_annotations,
    is_final,
    type_of_annotation,
)
from rekindle.scripting.callables.functions import record_of
from rekindle.scripting.callables.generic_functions import ANY_ANNOTATIONS, may_be_generic
from rekindle.scripting.callables.generic_methods import MethodOfObject
from rekindle.scripting.callables.modifiers import is_left_to_python
from rekindle.scripting.callables.python_calls import PythonFunctionValue
from rekindle.scripting.callables.untyped_parameters import open_parameters
from rekindle.scripting.class_values import CLASS_VALUE_HOOKS
from rekindle.scripting.classes.dataclass_methods import (
    check_dataclass,
    define_generated,
    generated_methods,
    inner_of_init_var,
    is_frozen,
)
from rekindle.scripting.classes.interfaces import check_implements, is_interface
from rekindle.scripting.compilation import compile_function
from rekindle.scripting.constants import SIMPLE_CONSTANTS, is_constant, plain
from rekindle.scripting.modules.init_parameters import learn_parameters, shown_parameters
from rekindle.scripting.python_values import ClassValue
from rekindle.scripting.resolver import PythonResolver, closure_of, names_beside, note_owner

_NO_SCRIPT_CLASSES: Final = (
    *(torch.nn.Module, torch.Tensor, BaseException, enum.Enum, type),
    *(bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset),
)
"""Classes that are not compiled as script classes, nor are any derived from them."""

_TAKEN_OVER: Final = ("__new__", "__getattr__", "__getattribute__", "__setattr__", "__delattr__", "__init_subclass__")
"""Methods with which a class changes the creation of objects or the reading of attributes."""

_HEAP_TYPE: Final = 1 << 9


def may_be_script_class(cls: type) -> bool:
    """Return whether ``cls`` is an ordinary Python class, which programs may use: not a builtin, an enum or a module
    class, and without methods that are not written in Python."""
    if (
        not cls.__flags__ & _HEAP_TYPE
        or issubclass(cls, _NO_SCRIPT_CLASSES)
        or cls.__module__ in ("typing", "builtins", "collections.abc")
    ):
        return False
    members = [inspect.unwrap(_function_of(member)) for member in vars(cls).values() if _is_routine(member)]
    return all(hasattr(member, "__code__") for member in members)


def _is_routine(member: object) -> bool:
    return inspect.isroutine(_function_of(member))


def _function_of(member: Any) -> Any:
    return member.__func__ if isinstance(member, (staticmethod, classmethod)) else member


def script_class(cls: type, range: SourceRange = UNKNOWN_RANGE) -> ClassType:
    """Return the type of the objects of ``cls``; it is stored with the class. Its ``__init__`` is compiled to find its
    attributes; other methods are compiled when they are called.

    Raises:
        NotScriptableError: the class, or a base of it, has something that script classes do not support.
        CompileError: ``__init__`` cannot be compiled, or the class lacks methods of an interface from which it derives.
    """
    diagnostics = Diagnostics()
    type = _make_type(cls, range, diagnostics)
    diagnostics.raise_all()
    return type


def _make_type(cls: type, range: SourceRange, diagnostics: Diagnostics) -> ClassType:
    """Return the type of the objects of ``cls``, created on the first call. If ``__init__`` cannot be compiled, or the
    class lacks methods of an interface from which it derives, the error is added to ``diagnostics``, and the result is
    an incomplete type, which is not stored with the class.

    Raises:
        NotScriptableError: the class has something that script classes do not support.
    """
    found = kept_type(cls)
    if isinstance(found, ClassType):
        return found
    _check(cls, range)
    type = ClassType(unique_name(qualified_name(cls)), python_class=cls, is_open=True)
    keep_type(cls, type)
    try:
        _Filler(cls, type).fill(range)
        check_implements(cls, type, range)
    except CompileError as error:
        keep_type(cls, None)
        type.is_incomplete = True
        diagnostics.add(error)
    except BaseException:
        keep_type(cls, None)
        raise
    return type


def compile_class(cls: type) -> None:
    """Compile all methods of ``cls``, except class methods, and all properties. Errors are reported together; if the
    class has bases, those of ``__init__`` alone.

    Raises:
        CompileError: a method or property cannot be compiled.
    """
    diagnostics = Diagnostics()
    type = _make_type(cls, UNKNOWN_RANGE, diagnostics)
    if cls.__bases__ != (object,):
        diagnostics.raise_all()  # Python gives classes with an interface methods of its own
    records = [*type.methods.values(), *type.static_methods.values()]
    records += [item.getter for item in type.properties.values()]
    records += [item.setter for item in type.properties.values() if item.setter is not None]
    for record in records:
        with diagnostics.recovering():
            record.ensure_defined()
    diagnostics.raise_all()


def _check(cls: type, range: SourceRange) -> None:
    for base in lineage(cls)[1:]:
        if not may_be_script_class(base):
            raise NotScriptableError(
                f"the class '{cls.__name__}' inherits from '{base.__name__}', which is not written in Python",
                range,
                hint=f"let it hold an object of '{base.__name__}' as an attribute",
                cause=Cause.INVALID_CLASS,
            )
    for owner in lineage(cls):
        for name in _TAKEN_OVER:
            if name in vars(owner) and not (is_frozen(owner) and _is_written_by_dataclass(vars(owner)[name])):
                raise NotScriptableError(
                    f"the class '{owner.__name__}' defines {name}, which no program calls",
                    range,
                    hint="leave calls that need it to Python, in a function marked with @ignore",
                    cause=Cause.INVALID_CLASS,
                )
    if dataclasses.is_dataclass(cls):
        if "__dataclass_params__" not in vars(cls):
            raise NotScriptableError(
                f"the class '{cls.__name__}' inherits from a dataclass and is none",
                range,
                hint="decorate it with @dataclass, too",
                cause=Cause.INVALID_CLASS,
            )
    if not may_be_script_class(cls):
        raise NotScriptableError(
            f"the class '{cls.__name__}' cannot be compiled: not all of its methods are written in Python",
            range,
            cause=Cause.INVALID_CLASS,
        )


def _is_written_by_dataclass(function: Any) -> bool:
    """Return whether ``@dataclass`` added the method to the class: it was compiled from generated source or, since
    Python 3.13, is a function of the dataclasses module."""
    made = ("<string>", dataclasses.__file__)
    return isinstance(function, FunctionType) and inspect.unwrap(function).__code__.co_filename in made


_NO_MEMBERS: Final = (object, abc.ABC, typing.Generic, typing.Protocol)
"""Bases without members that a program could use."""


def lineage(cls: type) -> list[type]:
    """Return the class and its bases in the order of Python's lookup, without those that define nothing for
    programs."""
    return [base for base in cls.__mro__ if base not in _NO_MEMBERS and not is_interface(base)]


def members_of(cls: type) -> dict[str, tuple[Any, type]]:
    """Return the definitions in the bodies of the class and of its bases by name, each with the class that contains it;
    the bases first. A class overrides its bases."""
    found: dict[str, tuple[Any, type]] = {}
    for owner in reversed(lineage(cls)):
        for name, member in vars(owner).items():
            found[name] = (member, owner)
    return found


class _Filler:
    """A builder of the type of a Python class: adds attributes, methods, properties and constants. Inherited methods
    are compiled again for objects of this class."""

    def __init__(self, cls: type, type: ClassType) -> None:
        self.cls = cls
        self.type = type
        init, self.owner_of_init = members_of(cls).get("__init__", (None, cls))
        self.init = init if isinstance(init, FunctionType) else None
        closure = {} if self.init is None else closure_of(self.init)
        module = sys.modules.get(cls.__module__)
        self.given: dict[str, dict[str, ClassAttribute]] = {}
        """The attributes that a method called by ``__init__`` creates, by the method's name and by their names."""
        self.resolver = PythonResolver({cls.__name__: cls}, closure, {} if module is None else vars(module))
        self.specialized: dict[FunctionType, GenericFunction] = {}
        """The methods that are compiled separately for the argument types of each call."""
        self.makers: list[GraphFunction] = []
        """The methods that ``__init__`` calls, which may create attributes."""
        self.generated: list[str] = []
        """The methods that ``@dataclass`` writes."""

    def fill(self, range: SourceRange) -> None:
        annotations = {
            name: inner_of_init_var(annotation) or annotation
            for name, (annotation, _) in class_annotations(self.cls).items()
        }
        owners = {name: owner for name, (_, owner) in class_annotations(self.cls).items()}
        declared = {
            name: type_of_annotation(annotation, range, self._resolver_of(owners[name]))
            for name, annotation in annotations.items()
            if not _is_constant_of_class(name, annotation, self.cls)
        }
        generated = self.generated = generated_methods(self.cls) if dataclasses.is_dataclass(self.cls) else []
        self.type.is_frozen = is_frozen(self.cls)
        if "__init__" in generated:
            check_dataclass(self.cls, declared, range)
            for item in dataclasses.fields(self.cls):
                check_attribute(self.cls.__name__, item.name, declared[item.name], range)
                self.type.add_attribute(item.name, declared[item.name], is_declared=True)
        for name, (member, owner) in members_of(self.cls).items():
            if name not in generated and not ("__init__" in generated and name in declared):
                self._member(name, member, owner, declared, range)
        for name in generated:
            self.type.methods[name] = self._generated(name, declared)
        if self.init is not None:
            if "__init__" not in generated:
                record = self._record("__init__", self.init, self.owner_of_init, declared)
                self.type.methods["__init__"] = record
            self.type.methods["__init__"].ensure_defined(range)

    def _resolver_of(self, owner: type) -> PythonResolver:
        """Return a resolver of names in the module that defines ``owner``."""
        if owner.__module__ == self.cls.__module__:
            return self.resolver
        module = sys.modules.get(owner.__module__)
        return PythonResolver({owner.__name__: owner}, {}, {} if module is None else vars(module))

    def _member(self, name: str, member: Any, owner: type, declared: dict[str, Type], range: SourceRange) -> None:
        type = self.type
        if name == "__init__":
            return
        if isinstance(member, FunctionType):
            made = dataclasses.is_dataclass(self.cls) and _is_written_by_dataclass(member)
            if not made and not is_left_to_python(member):
                type.methods[name] = self._record(name, member, owner)
                if _takes_unannotated(member):
                    type.generic_methods[name] = partial(self._method_of, name, member, owner)
        elif isinstance(member, staticmethod):
            if isinstance(member.__func__, FunctionType) and not is_left_to_python(member.__func__):
                note_owner(member.__func__, owner)
                type.static_methods[name] = record_of(member.__func__)
        elif isinstance(member, classmethod):
            if isinstance(member.__func__, FunctionType) and not is_left_to_python(member.__func__):
                type.class_methods[name] = self._class_method(member.__func__, owner)
        elif isinstance(member, property):
            if isinstance(member.fget, FunctionType) and not is_left_to_python(member):
                self._property(name, member.fget, member.fset, owner)
        elif name.startswith("__") or not is_constant(member):
            return
        elif name in declared:
            self._default(name, member, declared[name], range)
        elif isinstance(member, SIMPLE_CONSTANTS):
            type.constants[name] = plain(member)

    def _property(self, name: str, getter: FunctionType, setter: Any, owner: type) -> None:
        compiled_setter = self._record(f"__{name}_setter", setter, owner) if isinstance(setter, FunctionType) else None
        compiled_getter = self._record(f"__{name}_getter", getter, owner)
        for record in (compiled_getter, compiled_setter):
            if record is not None:
                self.type.methods[record.basename] = record
        self.type.properties[name] = Property(name, compiled_getter, compiled_setter)

    def _default(self, name: str, value: object, type: Type, range: SourceRange) -> None:
        """Add an attribute with a default, from ``name: type = value`` in the body of the class.

        Raises:
            TypeMismatchError: ``value`` does not have the declared type, or would have to be converted.
        """
        try:
            fitting = fit_value(value, type, f"'{name}' of '{self.cls.__name__}'")
        except TypeError as why:
            raise TypeMismatchError(str(why), range) from None
        if fitting is not value:
            raise TypeMismatchError(
                f"'{name}' of '{self.cls.__name__}' is declared {type.annotation}, but its value is {value!r}", range
            )
        self.type.add_attribute(name, type, is_declared=True)
        if value is None or isinstance(value, (bool, int, float, complex, str)):
            self.type.attributes[name].initial = lambda: value

    def _generated(self, name: str, declared: dict[str, Type]) -> GraphFunction:
        binding = InitBinding(self.type, declared) if name == "__init__" else ObjectBinding(self.type)

        def define(record: GraphFunction) -> None:
            define_generated(record, self.cls, self.type, declared, self.resolver, binding)

        return GraphFunction(f"{self.type.name}.{name}", function_creator=define)

    def _class_method(self, function: FunctionType, owner: type) -> GraphFunction:
        """Return the record of a class method, whose first parameter is fixed to the class."""

        def define(record: GraphFunction) -> None:
            compile_function(
                record,
                function,
                first=PythonClassValue(self.cls, PythonResolver()),
                names={**names_beside(owner), self.cls.__name__: self.cls},
            )

        name = unique_name(qualified_name(function))
        return GraphFunction(name, function_creator=define, docstring=function.__doc__)

    def inherited(self, name: str, after: type, declared: dict[str, Type] | None, value: Value) -> SugaredValue | None:
        """Return the method of ``value`` that ``super().name`` refers to in a method of the class ``after``, compiled
        for objects of this class. Return None if no class following ``after`` in the lookup order has that name, or the
        first one with it has no function there. ``declared`` are the declared types of attributes while ``__init__`` is
        compiled, else None."""
        order = lineage(self.cls)
        for owner in order[order.index(after) + 1 :]:
            member = vars(owner).get(name)
            if isinstance(member, FunctionType):
                known = f"{name}__{owner.__name__}"
                record = self.type.methods.get(known)
                if record is None:
                    record = self._record(known, member, owner, declared)
                    self.type.methods[known] = record
                if declared is not None:
                    return _MethodInMaking(value, record, self, member)
                return (
                    self._method_of(known, member, owner, value)
                    if _takes_unannotated(member)
                    else MethodValue(value, record)
                )
            if member is not None:
                return None
        return None

    def _method_of(self, name: str, function: FunctionType, owner: type, value: Value) -> SugaredValue:
        """Return a method of the object ``value``. It is compiled separately for arguments that do not have the types
        assumed for its parameters."""
        return MethodOfObject(
            SimpleValue(value),
            value,
            self.specialized,
            qualified_name(self.cls),
            function,
            lambda: (self.type.methods[name],),
            {"super": _Super(self, owner, None)},
            {**names_beside(owner), self.cls.__name__: self.cls},
        )

    def _method_in_making(self, declared: dict[str, Type], value: Value, name: str) -> SugaredValue | None:
        """Return the method ``name`` in the form in which ``__init__`` calls it: it may create attributes. Return None
        if the class has no such method, or the method was compiled before ``__init__`` called it."""
        member, owner = members_of(self.cls).get(name, (None, self.cls))
        if not isinstance(member, FunctionType) or name not in self.type.methods or name in self.generated:
            return None
        record = self.type.methods[name]
        if record not in self.makers and not record.is_defined and not record.is_being_defined:
            record = self.type.methods[name] = self._record(name, member, owner, declared)
            self.makers.append(record)
        return _MethodInMaking(value, record, self, member) if record in self.makers else None

    def _record(
        self,
        name: str,
        function: FunctionType,
        owner: type,
        declared: dict[str, Type] | None = None,
    ) -> GraphFunction:
        """Return a record that compiles a method on first use. ``declared`` are the attribute types if ``__init__``
        calls it: then it may create attributes, and calls determine the types of its parameters."""
        own = {**names_beside(owner), self.cls.__name__: self.cls}

        def define(record: GraphFunction) -> None:
            if not inspect.signature(function).parameters:
                raise UnsupportedError(
                    f"the method '{name}' of '{self.cls.__name__}' takes no self", cause=Cause.INVALID_CLASS
                )
            forms: dict[str, SugaredValue] = {"super": _Super(self, owner, declared)}
            if declared is None:
                # What __exit__ is given is None unless there is an exception.
                given = dict.fromkeys(_without_annotation(function), ANY) if name == "__exit__" else None
                compile_function(record, function, given, self_binding=ObjectBinding(self.type), forms=forms, names=own)
                return
            shown = shown_parameters(self.cls, function)
            assumed = _without_annotation(function).difference(shown)
            binding = InitBinding(self.type, declared, assumed, partial(self._method_in_making, declared))
            compile_function(record, function, dict(shown), self_binding=binding, forms=forms, names=own)

        return GraphFunction(f"{self.type.name}.{name}", function_creator=define, docstring=function.__doc__)


def _is_constant_of_class(name: str, annotation: object, cls: type) -> bool:
    """Return whether the annotation is ``ClassVar``, or ``Final`` of an attribute assigned in the body of the class
    that is not a field of a dataclass."""
    if is_final(annotation):
        return name in members_of(cls) and name not in getattr(cls, "__dataclass_fields__", ())
    if isinstance(annotation, str):
        return annotation.partition("[")[0].rpartition(".")[2] == "ClassVar"
    return annotation is typing.ClassVar or typing.get_origin(annotation) is typing.ClassVar


def _takes_unannotated(function: FunctionType) -> bool:
    """Return whether the method has no overloads, and has a parameter other than ``self`` without an annotation, or
    with one that is not a type, or declared Any."""
    undeclared = (inspect.Parameter.empty, *ANY_ANNOTATIONS)
    return may_be_generic(function) and any(
        item.annotation in undeclared or item.name in open_parameters(function)
        for item in list(inspect.signature(function).parameters.values())[1:]
    )


def _without_annotation(function: FunctionType) -> frozenset[str]:
    parameters = inspect.signature(function).parameters.values()
    return frozenset(item.name for item in parameters if item.annotation is inspect.Parameter.empty)


# --------------------------------------------------------------------------------------------------------------- values


class _Super(SugaredValue):
    """The value of ``super`` and ``super()`` in a method of the class ``owner``. If there is no further base,
    ``super().__init__()`` does nothing."""

    def __init__(self, filler: _Filler, owner: type, declared: dict[str, Type] | None) -> None:
        self.filler = filler
        self.owner = owner
        self.declared = declared

    @property
    def description(self) -> str:
        inherits = lineage(self.filler.cls)[-1] is not self.owner
        return f"super() of '{self.owner.__name__}'" if inherits else "super() of a class that inherits from nothing"

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        found = self.filler.inherited(name, self.owner, self.declared, graph.self_value)
        if found is None:
            return self if name == "__init__" else super().attribute(range, graph, name)
        return found

    def call(self, call: CallSite) -> SugaredValue:
        if call.args or call.kwargs:
            raise TypeMismatchError(f"{self.description} takes no arguments", call.range)
        return self

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        return graph.insert_constant(None, range=range)


class _MethodInMaking(MethodValue):
    """A method that ``__init__`` calls, such as ``super().__init__`` or ``self.reset``. It creates attributes at each
    call, because emission of the caller may be restarted and discard them."""

    def __init__(self, value: Value, record: GraphFunction, filler: _Filler, function: FunctionType) -> None:
        super().__init__(value, record)
        self.record = record
        self.filler = filler
        self.function = function

    def call(self, call: CallSite) -> SugaredValue:
        type = self.filler.type
        given = self.filler.given.setdefault(self.record.name, {})
        is_new = not is_relied_on(type)
        if (
            learn_parameters(self.filler.cls, self.function, call.args, call.kwargs, may_replace=is_new)
            and self.record.is_defined
        ):
            forget_attributes(type, given)
            self.record.forget_definition()
            given.clear()
        before = set(type.attributes)
        self.record.ensure_defined(call.range)
        given.update((name, item) for name, item in type.attributes.items() if name not in before)
        for name, known in given.items():
            type.attributes.setdefault(name, known)
        return super().call(call)


def forget_attributes(type: ClassType, names: Iterable[str]) -> None:
    """Remove those of the attributes ``names`` that the class has from it. Discard the compiled code of every function
    that uses one of them, so that it is compiled again."""
    found = [name for name in names if name in type.attributes]
    forget_users(type, found)
    for name in found:
        del type.attributes[name]


class PythonClassValue(ClassValue):
    """A Python class of which a program can make objects."""

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        type = script_class(self.cls, range)
        member = inspect.getattr_static(self.cls, name, None)
        if name in type.methods and isinstance(member, FunctionType):
            return FunctionValue(type.methods[name])
        if name in type.class_methods:
            return FunctionValue(type.class_methods[name])
        if name in type.constants:
            return SimpleValue(graph.insert_constant(type.constants[name], range=range))
        return super().attribute(range, graph, name)

    def call(self, call: CallSite) -> SugaredValue:
        init = inspect.getattr_static(self.cls, "__init__", None)
        known = kept_type(self.cls)
        is_new = not isinstance(known, ClassType) or not is_relied_on(known)
        if isinstance(init, FunctionType) and learn_parameters(
            self.cls, init, call.args, call.kwargs, may_replace=is_new
        ):
            _recompile_init(self.cls, call.range)
        return construct(script_class(self.cls, call.range), call.range, call.graph, call.args, call.kwargs)


def _recompile_init(cls: type, range: SourceRange) -> None:
    """Compile ``__init__`` again, with the parameter types that calls have determined; its attributes with them. Do
    nothing if it is not compiled yet.

    Raises:
        Redefinition: a function that is being compiled uses the attributes of the earlier ``__init__``.
        CompileError: ``__init__`` cannot be compiled with these types.
    """
    type = kept_type(cls)
    init = type.methods.get("__init__") if isinstance(type, ClassType) else None
    if not isinstance(type, ClassType) or init is None or not init.is_defined:
        return
    names = [name for name in type.attributes if type.may_widen(name)]
    forget_attributes(type, names)
    init.forget_definition()
    init.ensure_defined(range)
    restart_users(type, names)


def _python_method(value: Value, cls: type, name: str) -> SugaredValue | None:
    found = inspect.getattr_static(cls, name, None)
    function = found.__func__ if isinstance(found, staticmethod) else found
    if not isinstance(function, FunctionType) or not is_left_to_python(function):
        return None
    itself = None if isinstance(found, staticmethod) else value
    return PythonFunctionValue(function, PythonResolver.of_function(function, names={cls.__name__: cls}), itself)


values.python_method.provide(_python_method)


def _value_of_class(cls: type, range: SourceRange) -> SugaredValue | None:
    return PythonClassValue(cls, PythonResolver()) if may_be_script_class(cls) else None


def _type_of_class(cls: type, range: SourceRange) -> Type | None:
    return script_class(cls, range) if may_be_script_class(cls) else None


CLASS_VALUE_HOOKS.append(_value_of_class)
CLASS_HOOKS.append(_type_of_class)
conversion.class_of_python_object.provide(partial(_type_of_class, range=UNKNOWN_RANGE))
