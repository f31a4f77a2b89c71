"""Attributes that methods of a module create: ``self.last = …`` in ``forward`` without an assignment in ``__init__``.

Such an attribute is a slot of the class type, of the type that is assigned first. Until the assignment, objects do not
have it. If a program tests whether they do (``hasattr``, ``getattr`` with a default), a second slot, a bool, stores it.
If a method reads or tests the attribute before it assigns it, its emission restarts once the type is known.
"""

from __future__ import annotations

import copy
import dis
from dataclasses import dataclass, field
from functools import lru_cache
from inspect import unwrap
from types import CodeType, FunctionType

import torch

from rekindle.errors import SourceRange, UnsupportedError
from rekindle.frontend.calls.insertion import insert_get_attribute
from rekindle.frontend.inference.type_inference import RestartEmission
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import BOOL, ClassAttribute, Type, unshaped
from rekindle.scripting.annotations import class_annotations, find_type
from rekindle.scripting.modules.class_members import members_of, owners_of
from rekindle.scripting.modules.module_types import ConcreteModuleType
from rekindle.scripting.value_types import infer

_MISSING = object()


def may_be_created_by_method(cls: type, name: str) -> bool:
    """Return whether a method of the class other than ``__init__`` assigns an attribute ``name`` of some object, or
    calls ``setattr`` and contains the string ``name``."""
    return name in _names_in_methods(cls).assigned


@dataclass(slots=True)
class _Names:
    assigned: set[str] = field(default_factory=set)
    queried: set[str] = field(default_factory=set)
    """The identifiers among the strings in the methods: names that ``hasattr`` or ``getattr`` may test."""


@lru_cache(maxsize=512)
def _names_in_methods(cls: type) -> _Names:
    names = _Names()
    for base in owners_of(cls):
        if base is not torch.nn.Module and issubclass(base, torch.nn.Module):
            for name, member in members_of(base):
                if isinstance(member, FunctionType) and name != "__init__":
                    _read(unwrap(member).__code__, names)
    return names


def _read(code: CodeType, names: _Names) -> None:
    calls_setattr = "setattr" in code.co_names
    for instruction in dis.get_instructions(code):
        if instruction.opname == "STORE_ATTR":
            names.assigned.add(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, str) and constant.isidentifier():
            names.queried.add(constant)
            if calls_setattr:
                names.assigned.add(constant)
        elif isinstance(constant, CodeType):
            _read(constant, names)


def dynamic_slot(concrete: ConcreteModuleType, name: str, type: Type | None = None) -> ClassAttribute | None:
    """Return the slot of an attribute that a method assigns; it is added to the class type if it is new. Its type is
    the one that the class declares, that of a value in the class, or ``type``. An existing slot of any kind is returned
    as it is.

    Return None if ``name`` is a property, if ``type`` is None and no method assigns the attribute, if the class has an
    object other than a number, string, container, tensor or None under the name, or if no type is known.
    """
    slot = concrete.type.attributes.get(name)
    if slot is not None or name in concrete.type.properties:
        return slot
    cls = concrete.python_class
    if type is None and not may_be_created_by_method(cls, name):
        return None
    value = getattr(cls, name, _MISSING)
    if value is not _MISSING and not _is_plain(value):
        return None
    declared = class_annotations(cls).get(name)
    found = None if declared is None else find_type(declared[0])
    if found is None and value is not _MISSING:
        inferred = infer(value)
        found = inferred if isinstance(inferred, Type) else None
    found = found or type
    if found is None:
        return None
    concrete.type.add_attribute(name, unshaped(found))
    slot = concrete.type.attributes[name]
    slot.is_dynamic = True
    if value is not _MISSING:
        slot.initial = lambda: copy.deepcopy(value)
    return slot


def _is_plain(value: object) -> bool:
    return isinstance(value, (bool, int, float, complex, str, list, dict, tuple, torch.Tensor, type(None)))


def flag_of(slot: ClassAttribute, concrete: ConcreteModuleType) -> str:
    """Return the name of the bool slot that stores whether an object has the attribute. The slot is added if it is
    new."""
    name = f"_has_{slot.name}"
    if name not in concrete.type.attributes:
        concrete.type.add_attribute(name, BOOL)
        concrete.type.attributes[name].initial = bool
    return name


def ask(slot: ClassAttribute, concrete: ConcreteModuleType, module: Value, range: SourceRange, graph: Graph) -> Value:
    """Emit the query whether ``module`` already has the attribute; return its result."""
    return insert_get_attribute(range, graph, module, flag_of(slot, concrete), BOOL)


def note_made(concrete: ConcreteModuleType, module: Value, name: str, range: SourceRange, graph: Graph) -> None:
    """Emit the assignment of True to the bool slot of an attribute that was just assigned, so that later tests of its
    existence return True. Emit nothing if no method tests the attribute, or every object has it."""
    slot = concrete.type.attributes.get(name)
    if slot is None or not slot.is_dynamic or slot.initial is not None:
        return
    if name not in _names_in_methods(concrete.python_class).queried:
        return
    attributes = {"name": flag_of(slot, concrete)}
    yes = graph.insert_constant(True, range=range)
    graph.insert_node(graph.create("prim::SetAttr", [module, yes], outputs=0, attributes=attributes, range=range))


def note_read(concrete: ConcreteModuleType, name: str, graph: Graph) -> None:
    """Record that ``graph`` reads or tests an attribute whose type is not known yet; an earlier record stays."""
    concrete.queried.setdefault(name, graph)


def make_slot(concrete: ConcreteModuleType, name: str, type: Type, range: SourceRange, graph: Graph) -> None:
    """Add the slot of an attribute that is assigned for the first time, unless it has one or cannot have one. The
    caller emits the assignment.

    Raises:
        RestartEmission: the same graph has read or tested the attribute before.
        UnsupportedError: another method has read or tested the attribute, and was compiled as if it did not exist.
    """
    if name in concrete.type.attributes or dynamic_slot(concrete, name, type) is None:
        return
    queried = concrete.queried.pop(name, None)
    if queried is graph:
        raise RestartEmission
    if queried is not None:
        raise UnsupportedError(
            f"attribute '{name}' is assigned here first, but another method that was compiled before asks for it",
            range,
            hint=f"declare its type in the class: {name}: {unshaped(type).annotation}",
        )
