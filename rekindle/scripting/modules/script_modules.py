"""Compile an ``nn.Module`` to a ``ScriptModule``: first its submodules, then its entry points."""

from __future__ import annotations

import inspect
import threading
import types
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Final, TypeAlias

import torch

from rekindle.errors import (
    CompileError,
    Diagnostics,
    NotScriptableError,
    TypeMismatchError,
    compiling,
)
from rekindle.errors.fork_locks import held_while_forking
from rekindle.frontend.sugared_values.base import Resolver
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.scalar_types import NUMBERED_CLASSES
from rekindle.ir.types import InterfaceType, mismatch_note
from rekindle.program.calling import fit_value
from rekindle.program.function import Method, Overloaded
from rekindle.program.modules import module as program_module
from rekindle.program.modules.attribute import ATTRIBUTES
from rekindle.program.modules.module import ScriptContainer, ScriptModule
from rekindle.program.modules.overrides import MethodOfModule, take_functions
from rekindle.program.modules.state_dicts import take_hooks
from rekindle.program.sources.compilation_unit import parse_definitions
from rekindle.program.sources.definition import define_function
from rekindle.scripting.callables.generic_functions import may_be_generic
from rekindle.scripting.callables.modifiers import Modifier, is_left_to_python, modifier_of
from rekindle.scripting.constants import SIMPLE_CONSTANTS
from rekindle.scripting.modules.class_keys import forget_classes
from rekindle.scripting.modules.class_members import find_member, members_of, owners_of
from rekindle.scripting.modules.empty_attributes import refusals_of
from rekindle.scripting.modules.hooks import declare_hooks
from rekindle.scripting.modules.module_inference import forget_prepared, gather_facts, module_type_of, prepared
from rekindle.scripting.modules.module_types import ConcreteModuleType, Container, is_inert
from rekindle.scripting.modules.module_values import (
    ModuleBinding,
    compile_method,
    method_of_interface,
    method_records,
    property_of,
)
from rekindle.scripting.modules.special_methods import check_call_is_forward, check_forward_is_method
from rekindle.scripting.modules.stored_methods import compiled_in_one_file
from rekindle.scripting.resolver import PythonResolver

_MAGIC = ("__len__", "__iter__", "__getitem__", "__contains__")


SCRIPTING: Final = held_while_forking(threading.RLock(), 0)
"""One thread compiles modules at a time, so that equal modules share a type."""


def script_module(module: torch.nn.Module) -> ScriptModule:
    """Return ``module`` compiled with all its submodules. Parameters and buffers are shared with it, not copied.

    Raises:
        CompileError: the module or a submodule cannot be compiled.
    """
    with _compilation():
        return _compile(prepared(module))


def compile_in_place(
    result: ScriptModule, module: torch.nn.Module, definitions: Iterable[Definition], *, is_alone: bool
) -> None:
    """Turn ``result``, which is not compiled yet, into the compiled module of ``module``, with the methods of
    ``definitions`` added. If it ``is_alone``, no other module shares its type.

    Raises:
        CompileError: the module, a submodule or a definition cannot be compiled.
    """
    with _compilation():
        concrete = ConcreteModuleType(gather_facts(module)) if is_alone else module_type_of(module)
        _complete(result, module, concrete, _Made())
        for source, resolver in definitions:
            result._define(source, resolver)
        compile_entry_points(concrete)


Definition: TypeAlias = "tuple[str, Resolver]"
"""Methods as a program text, and the names that it sees."""


@contextmanager
def _compilation() -> Iterator[None]:
    """Hold the lock of compilations within the ``with`` block, and cache facts of classes and modules: they are assumed
    not to change. The caches are empty afterwards."""
    with SCRIPTING:
        forget_classes()
        try:
            yield
        finally:
            forget_prepared()
            forget_classes()


def _compile(module: torch.nn.Module) -> ScriptModule:
    concrete = module_type_of(module)
    result = instantiate(module, concrete)
    compile_entry_points(concrete)
    return result


# -------------------------------------------------------------------------------------------------------------- objects


def instantiate(module: torch.nn.Module, concrete: ConcreteModuleType) -> ScriptModule:
    """Return a compiled module of the type ``concrete`` with the parameters, attributes and parts of ``module``."""
    return _instantiate(module, concrete, _Made())


@dataclass(slots=True)
class _Made:
    """Compiled objects, by the id of the original: an object that occurs twice is compiled once."""

    modules: dict[int, ScriptModule] = field(default_factory=dict)
    containers: dict[int, tuple[object, object]] = field(default_factory=dict)
    """Lists and dicts, with the originals, which are kept alive."""


def _instantiate(module: torch.nn.Module, concrete: ConcreteModuleType, made: _Made) -> ScriptModule:
    """Return the compiled module of ``module``. A submodule that occurs twice is one object."""
    known = made.modules.get(id(module))
    if known is not None:
        return known
    facts = concrete.facts
    is_container = facts.container is not Container.NONE or any(hasattr(facts.python_class, name) for name in _MAGIC)
    cls = ScriptContainer if is_container else ScriptModule
    result = cls.__new__(cls)
    torch.nn.Module.__init__(result)
    made.modules[id(module)] = result
    _complete(result, module, concrete, made)
    return result


def _complete(result: ScriptModule, module: torch.nn.Module, concrete: ConcreteModuleType, made: _Made) -> None:
    """Set the type of ``result``, an empty compiled module, and copy the state of ``module`` to it: parameters,
    buffers, compiled submodules, attributes and hooks."""
    result._take_type(concrete.type, ModuleBinding(concrete), concrete.python_class)
    if concrete.type.method_finder is None:
        concrete.type.method_finder = partial(method_of_interface, concrete)
        declare_hooks(concrete, compile_method)
    _fill(result, module, concrete, made)


def _fill(result: ScriptModule, module: torch.nn.Module, concrete: ConcreteModuleType, made: _Made) -> None:
    result._parameters.update(module._parameters)
    result._buffers.update(module._buffers)
    result._non_persistent_buffers_set.update(module._non_persistent_buffers_set)
    for name, part in module._modules.items():
        type = concrete.facts.submodules.get(name)
        result._modules[name] = made_part = _part(part, type, made)
        if isinstance(type, InterfaceType) and made_part is not None:
            _check_part(made_part, type, f"the part '{name}' of '{concrete.name}'")
    for name, slot in concrete.type.attributes.items():
        if slot.kind == "attribute" and name not in result._modules:
            if (slot.is_dynamic or slot.initial is not None) and not hasattr(module, name):
                continue  # another object of the class was compiled before: the program makes it in this one too
            value = getattr(module, name)
            if isinstance(value, ATTRIBUTES):
                value = value.value
            where = f"attribute '{name}' of '{concrete.name}'"
            try:
                result.__dict__[name] = fitted = _own(fit_value(value, slot.type, where), made)
            except TypeError as error:
                raise NotScriptableError(str(error), hint="correct the declaration of its type") from error
            if isinstance(value, NUMBERED_CLASSES):
                result.__dict__.setdefault("_rekindle_python_values", {})[name] = (fitted, value)
    for name in getattr(module, "__jit_ignored_attributes__", ()):
        if name in vars(module):
            result.__dict__[name] = vars(module)[name]
    for table in (
        "_forward_hooks",
        "_forward_pre_hooks",
        "_forward_hooks_with_kwargs",
        "_forward_pre_hooks_with_kwargs",
    ):
        vars(result)[table].update(vars(module)[table])
    take_hooks(result, module)
    take_functions(result, module)


def _own(value: Any, made: _Made) -> Any:
    """Return ``value`` with its lists and dicts copied, since compiled modules change their own. An object that occurs
    twice is copied once: copies are recorded in ``made``."""
    kind = type(value)
    if kind is tuple:
        return tuple(_own(item, made) for item in value)
    if kind is not list and kind is not dict:
        return value
    if id(value) not in made.containers:
        copied = (
            [_own(item, made) for item in value]
            if kind is list
            else {key: _own(item, made) for key, item in value.items()}
        )
        made.containers[id(value)] = (value, copied)
    return made.containers[id(value)][1]


def _part(
    part: torch.nn.Module | None, concrete: ConcreteModuleType | InterfaceType | None, made: _Made
) -> ScriptModule | None:
    part = None if part is None else prepared(part)
    if part is None or isinstance(part, ScriptModule):
        return part
    if isinstance(concrete, ConcreteModuleType):
        return _instantiate(part, concrete, made)
    return _instantiate(part, module_type_of(part), made)


def _check_part(part: ScriptModule, interface: InterfaceType, where: str) -> None:
    """Check that ``part`` implements ``interface``, and compile the methods that this requires.

    Raises:
        TypeMismatchError: a method is missing, or has another signature.
    """
    binding = part._rekindle_binding
    if isinstance(binding, ModuleBinding):
        _define_container_methods(binding.concrete)
        _find_properties(binding.concrete)
    with compiling(part.original_name, reason=f"it is {where}"):
        fits = part.script_type.is_subtype_of(interface)
    if not fits:
        raise TypeMismatchError(
            f"{where} is declared {interface.annotation}, but is a {part.original_name}"
            + mismatch_note(part.script_type, interface)
        )


# ---------------------------------------------------------------------------------------------------------- compilation


def compile_entry_points(concrete: ConcreteModuleType) -> None:
    """Compile the methods that Python can call: ``forward`` and exported methods, of submodules first.

    Raises:
        CompileError: a method cannot be compiled; the type is then not marked as compiled.
    """
    check_call_is_forward(concrete.facts)
    check_forward_is_method(concrete.facts)
    progress = _Progress()
    try:
        with compiled_in_one_file(concrete):
            _compile_entry_points(concrete, progress, is_part=False)
    except CompileError:
        for begun in progress.begun:
            begun.is_compiled = False
        raise


@dataclass(slots=True)
class _Progress:
    """Progress of compiling one module: what has been compiled, and what has failed."""

    begun: list[ConcreteModuleType] = field(default_factory=list)
    failed: list[_FailedPart] = field(default_factory=list)
    members: dict[type, _ClassMembers] = field(default_factory=dict)

    def members_of(self, cls: type) -> _ClassMembers:
        """Return the definitions of a class that module types need, once for all types of its modules."""
        found = self.members.get(cls)
        if found is None:
            found = self.members[cls] = _ClassMembers.of(cls)
        return found


_WITHOUT_ENTRY_POINTS: Final = (object, torch.nn.Module)
"""Bases of modules that have neither exported methods nor properties for programs."""


@dataclass(slots=True)
class _ClassMembers:
    """The names of members of a class and its bases: exported methods, and properties."""

    exported: list[str]
    properties: list[str]

    @classmethod
    def of(cls, python_class: type) -> _ClassMembers:
        """Return the names of the exported methods and the properties of a class and its bases."""
        exported, properties = list[str](), list[str]()
        hidden = set[str]()
        for owner in owners_of(python_class):
            if owner not in _WITHOUT_ENTRY_POINTS:
                for name, member in members_of(owner):
                    if name in hidden:
                        continue
                    if isinstance(member, property):
                        properties.append(name)
                    if modifier_of(member) is Modifier.EXPORT:
                        exported.append(name)
            hidden.update(vars(owner))
        return cls(sorted(exported), sorted(properties))


@dataclass(slots=True)
class _FailedPart:
    """A submodule whose ``forward`` cannot be compiled by itself, since its signature lacks types. Calls of it may
    supply them."""

    concrete: ConcreteModuleType
    forward: types.FunctionType
    error: CompileError


def _compile_entry_points(concrete: ConcreteModuleType, progress: _Progress, *, is_part: bool) -> None:
    if concrete.is_compiled:
        return
    concrete.is_compiled = True
    progress.begun.append(concrete)
    diagnostics = Diagnostics()
    try:
        for name, part in concrete.facts.submodules.items():
            if isinstance(part, ConcreteModuleType):
                reason = f"it is the part '{name}' of '{concrete.python_class.__name__}'"
                with diagnostics.recovering(), compiling(part.python_class.__name__, reason=reason):
                    _compile_entry_points(part, progress, is_part=True)
        _define_container_methods(concrete)
        members = progress.members_of(concrete.python_class)
        _make_properties(concrete, members.properties)
        for name in _entry_points(concrete, members.exported):
            for record in method_records(concrete, name):
                with diagnostics.recovering():
                    try:
                        record.ensure_defined()
                    except CompileError as error:
                        forward = concrete.method_function(name) if is_part and name == "forward" else None
                        if forward is None or not may_be_generic(forward):
                            raise
                        progress.failed.append(_FailedPart(concrete, forward, error))
        if not is_part:
            _check_parts(progress.failed, diagnostics)
            for refusal in chain.from_iterable(map(refusals_of, progress.begun)):
                diagnostics.add(refusal)
        diagnostics.raise_all()
    except CompileError:
        concrete.is_compiled = False
        raise


def _check_parts(failed: list[_FailedPart], diagnostics: Diagnostics) -> None:
    """Report to ``diagnostics`` the submodules for which no call has supplied argument types. Remove ``forward`` from
    the types of the others, since Python cannot call it."""
    for part in failed:
        if part.concrete.was_specialized(part.forward):
            part.concrete.type.methods.pop("forward", None)  # there is none that could be called from outside
        else:
            diagnostics.add(part.error)


def _entry_points(concrete: ConcreteModuleType, exported: list[str]) -> list[str]:
    """Return the names of the methods that are compiled even if no compiled code calls them: the exported ones and,
    unless the class derives from ScriptModule, ``forward``."""
    if issubclass(concrete.python_class, ScriptModule):
        return exported  # what is not marked is Python's
    return ["forward", *(name for name in exported if name != "forward")]


def _find_properties(concrete: ConcreteModuleType) -> None:
    """Declare the properties of the class, so that assignments from Python call their setters. They are compiled on
    first use."""
    _make_properties(concrete, _ClassMembers.of(concrete.python_class).properties)


def _make_properties(concrete: ConcreteModuleType, names: list[str]) -> None:
    for name in names:
        property_of(concrete, name)


def _define_container_methods(concrete: ConcreteModuleType) -> None:
    """Add ``__len__`` and, for dicts, ``__contains__`` to the class type of a container, for ``len(self.layers)`` and
    ``key in self.layers``. A method that the user's class defines takes precedence. Other modules are unchanged."""
    facts = concrete.facts
    if facts.container is Container.NONE:
        return
    texts = {"__len__": f"def __len__(self) -> int:\n    return {len(facts.items)}\n"}
    if facts.is_dict:
        test = " or ".join(f"key == {name!r}" for name in facts.items) or "False"
        texts["__contains__"] = f"def __contains__(self, key: str) -> bool:\n    return {test}\n"
    for name, text in texts.items():
        own = inspect.getattr_static(facts.python_class, name, None)
        is_torchs = getattr(own, "__module__", "").startswith("torch.nn.modules.container")
        if name in concrete.type.methods:
            continue
        if own is None or is_torchs:
            concrete.type.methods[name] = _from_text(concrete, name, text)
        else:
            method_records(concrete, name)  # what the user's class has in its place


def _from_text(concrete: ConcreteModuleType, name: str, text: str) -> GraphFunction:
    (definition,) = parse_definitions(text)

    def define(record: GraphFunction) -> None:
        define_function(record, definition, PythonResolver(), self_binding=ModuleBinding(concrete))

    return GraphFunction(f"{concrete.type.name}.{name}", function_creator=define)


# ----------------------------------------------------------------------------------------------- what is left to Python


def python_attribute(module: ScriptModule, python_class: type, name: str) -> Any:
    """Return an attribute of a compiled module that was not compiled with it: methods left to Python, methods that are
    compiled on access, overloaded methods, properties, static methods and constants of the class. Return None if there
    is none, for names that begin with ``__`` or that :class:`torch.nn.Module` defines itself, except ``forward``, and
    for modules that were not compiled from Python."""
    binding = module._rekindle_binding
    if not isinstance(binding, ModuleBinding) or name.startswith("__"):
        return None
    concrete = binding.concrete
    facts = concrete.facts
    if name in facts.functions:
        return facts.functions[name]
    found = facts.methods.get(name) or find_member(python_class, name)
    if callable(found) and is_inert(found):
        return MethodOfModule(name, found, module)
    if is_left_to_python(found) and isinstance(found, types.FunctionType):
        return types.MethodType(found, module)
    if found is None or name in vars(torch.nn.Module):
        return None if name != "forward" else _methods(module, concrete, name)
    if isinstance(found, property):
        return _property(module, concrete, found, name)
    if isinstance(found, staticmethod):
        return found.__func__
    if isinstance(found, SIMPLE_CONSTANTS):
        return found
    return _methods(module, concrete, name)


def _methods(module: ScriptModule, concrete: ConcreteModuleType, name: str) -> Any:
    records = method_records(concrete, name)
    if not records:
        return None
    return module._rekindle_method_class(module, records[0]) if len(records) == 1 else Overloaded(records, module)


def _property(module: ScriptModule, concrete: ConcreteModuleType, found: property, name: str) -> Any:
    accessors = property_of(concrete, name)
    if accessors is None:
        assert found.fget is not None
        return found.fget(module)
    return Method(module, accessors.getter)()


program_module.python_attribute.provide(python_attribute)
