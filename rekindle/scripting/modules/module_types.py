"""Compile-time knowledge of a module: its attributes and their types, constants, submodules, and the functions of its
class. Equal modules share it, and with it their compiled code."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from enum import Enum, auto
from types import FunctionType
from typing import Any

import torch

from rekindle.errors import CompileError
from rekindle.frontend.calls.generic import GenericFunction
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.types import ClassType, InterfaceType, Type
from rekindle.ir.types.named import AttributeKind
from rekindle.program import torch_jit
from rekindle.program.function import Function
from rekindle.program.names import qualified_name, unique_name
from rekindle.scripting.annotations import class_annotations
from rekindle.scripting.callables.functions import underlying_function
from rekindle.scripting.callables.generic_functions import may_be_generic
from rekindle.scripting.callables.modifiers import Modifier, is_left_to_python, modifier_of
from rekindle.scripting.modules.class_keys import class_key, constant_key, object_key
from rekindle.scripting.modules.class_members import find_member


class Container(Enum):
    """The kind of container that a module is, if any; loops over containers are unrolled."""

    NONE = auto()
    LIST = auto()
    DICT = auto()
    PARAMETER_LIST = auto()
    PARAMETER_DICT = auto()


def is_inert(method: object) -> bool:
    """Return whether a method of a class changes nothing but the layout of parameters in the memory of a GPU: calls in
    programs do nothing."""
    return method is torch.nn.RNNBase.flatten_parameters


@dataclass(slots=True)
class ModuleFacts:
    """All properties of a module that compiled code may depend on, gathered from one instance."""

    python_class: type
    container: Container = Container.NONE
    attributes: dict[str, tuple[Type, AttributeKind]] = field(default_factory=dict)
    constants: dict[str, object] = field(default_factory=dict)
    functions: dict[str, FunctionType | Function] = field(default_factory=dict)
    builtins: dict[str, str] = field(default_factory=dict)
    methods: dict[str, FunctionType] = field(default_factory=dict)
    """Methods that were put on the instance, not on its class."""
    submodules: dict[str, ConcreteModuleType | InterfaceType] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    """Attributes that no program can use as values, and why; reported when one does."""
    empty: dict[str, type] = field(default_factory=dict)
    """Attributes of ``failed`` that are empty lists or dicts, with their class: methods that add elements determine
    their types."""
    objects: dict[str, object] = field(default_factory=dict)
    """Attributes of ``failed`` that the compiler can read at compile time: configurations, tables of functions."""
    present: dict[str, object] = field(default_factory=dict)
    """The values of attributes that are strings, numbers or bools. They are not part of the key."""
    items: tuple[str, ...] = ()
    """The names of a container's items, in order."""
    repeated: frozenset[str] = frozenset()
    """The paths of submodules, parameters and buffers that an earlier path has too: tied weights, shared parts."""
    repeated_children: frozenset[str] = frozenset()
    """The names of submodules that an earlier name has too."""
    does_more_in_call: bool = False
    """Whether the class defines a ``__call__`` that may do more than to call ``forward`` with the same arguments."""
    read_by_call: frozenset[str] = frozenset()
    """The constants in the class on which it depends that ``__call__`` does no more; they are among ``constants``."""
    hooks_take_keywords: bool = False
    """Whether a hook was registered with ``with_kwargs=True``."""
    hooks: tuple[Any, ...] = ()
    pre_hooks: tuple[Any, ...] = ()
    has_traced_hooks: bool = False
    """Whether the module had hooks when it was traced: they are part of the methods that the trace made."""

    @property
    def has_hooks(self) -> bool:
        return bool(self.hooks or self.pre_hooks)

    def hides_method(self, name: str) -> bool:
        """Return whether the module itself has an attribute that is not a method of it, for which Python does not find
        the method ``name`` of the class."""
        return name in self.failed or name in self.functions or name in self.builtins

    @property
    def is_dict(self) -> bool:
        return self.container in (Container.DICT, Container.PARAMETER_DICT)

    def key(self) -> object:
        """Return a key that is equal for modules that can share a type."""
        return (
            class_key(self.python_class),
            self.container,
            tuple((name, *entry) for name, entry in self.attributes.items()),
            tuple((name, constant_key(value)) for name, value in self.constants.items()),
            tuple((name, id(function)) for name, function in self.functions.items()),
            tuple(self.builtins.items()),
            tuple((name, id(function)) for name, function in self.methods.items()),
            tuple((name, id(part)) for name, part in self.submodules.items()),
            tuple(self.failed.items()),
            tuple((name, object_key(obj)) for name, obj in self.objects.items()),
            self.items,
            self.repeated,
            self.repeated_children,
            self.hooks_take_keywords,
            tuple(map(id, self.hooks)),
            tuple(map(id, self.pre_hooks)),
        )


class ConcreteModuleType:
    """The type of modules with equal properties: these properties, its class type in programs, and the state of its
    compilation."""

    def __init__(self, facts: ModuleFacts, type: ClassType | None = None) -> None:
        self.facts = facts
        self.type = type or _class_type(facts)
        self.hooks: dict[FunctionType, GraphFunction] = {}
        """The compiled hooks of these modules, by their functions."""
        self.specialized: dict[FunctionType, GenericFunction] = {}
        """The methods that are compiled separately for the argument types of each call, by their functions."""
        self.is_compiled = False
        """Whether the entry points have been compiled."""
        self.assumed: dict[str, CompileError] = {}
        """The used attributes that hold empty containers, with the error to raise unless a method fills them."""
        self.queried: dict[str, Graph] = {}
        """The attributes that were read or tested with ``hasattr`` before any method had assigned them, and the graph
        of the method."""

    @property
    def python_class(self) -> type:
        return self.facts.python_class

    @property
    def name(self) -> str:
        """The name of the Python class."""
        return self.facts.python_class.__name__

    def class_function(self, name: str) -> FunctionType | None:
        """Return the function ``name`` of the class that programs can call; None if there is none. Methods of
        ``nn.Module`` itself, and those of containers that are special in programs, are excluded."""
        found = None if self.facts.hides_method(name) else find_member(self.python_class, name)
        if not isinstance(found, FunctionType) or is_inert(found) or found is vars(torch.nn.Module).get(name):
            return None  # what nn.Module itself can do is for Python only
        found = underlying_function(found) or found
        # Methods of containers are special in programs: their loops are unrolled.
        return None if modifier_of(found) is Modifier.COPIED else found

    def method_function(self, name: str) -> FunctionType | None:
        """Return the Python function that is to be compiled as the method ``name``; None if there is none, or it is
        left to Python."""
        function = self.facts.methods.get(name) or self.class_function(name)
        return None if function is None or is_left_to_python(function) else function

    def generic_function(self, name: str) -> FunctionType | None:
        """Return the Python function of the method ``name`` if it may have to be compiled for the argument types of
        each call; None for other methods, and for those not compiled from the class, such as the methods of a trace."""
        known = self.type.methods.get(name)
        if known is not None and not known.is_from_class:
            return None
        function = self.method_function(name)
        return function if function is not None and may_be_generic(function) else None

    def was_specialized(self, function: FunctionType) -> bool:
        """Return whether a call of the method has determined its parameter types."""
        found = self.specialized.get(function)
        return found is not None and bool(found.records)

    def overloads(self, name: str) -> list[FunctionType]:
        """Return the declarations of overloads of a method (``torch.jit._overload_method``) in the class that defines
        it; empty if it has none."""
        for owner in self.python_class.__mro__:
            function = vars(owner).get(name)
            if function is None:
                continue
            if not inspect.isfunction(function):
                return []
            found = torch_jit.overloads_of_method(qualified_name(function), owner.__name__)
            return [declaration for declaration in found if declaration.__qualname__ == function.__qualname__]
        return []


def _class_type(facts: ModuleFacts) -> ClassType:
    """Return a new class type for modules with these properties."""
    result = ClassType(unique_name(qualified_name(facts.python_class)), is_module=True, is_open=True)
    declared = class_annotations(facts.python_class)
    for name, (type, kind) in facts.attributes.items():
        result.add_attribute(name, type, kind, is_declared=name in declared)
        result.attributes[name].present = facts.present.get(name)
    for name, part in facts.submodules.items():
        result.add_attribute(name, part.type if isinstance(part, ConcreteModuleType) else part)
    result.constants.update(facts.constants)
    return result
