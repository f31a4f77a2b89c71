"""Compiled methods of modules on disk: see :mod:`rekindle.scripting.callables.stored_functions`.

Beside the names that it uses, a method depends on what is known of its module and its parts, which is described whole:
the facts by which modules share their types, and what their classes define. Modules with hooks, with attributes that
methods make or fill, or with objects that only the compiler knows are compiled in every process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Final

import torch

from rekindle.ir.bitcode.references import Encoded, NotEncodable, References, marshalled
from rekindle.ir.bitcode.writer import GraphWriter
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.types import ClassType, Type
from rekindle.scripting.callables.functions import records_called
from rekindle.scripting.callables.stored_functions import NotKept, StoredFunction, described_function, described_value
from rekindle.scripting.modules.class_keys import class_key, is_seen
from rekindle.scripting.modules.class_members import members_of, owners_of
from rekindle.scripting.modules.module_types import ConcreteModuleType

_OF_CONTAINERS: Final = frozenset({"__len__", "__contains__"})
"""The methods that follow from the items of a container."""


@dataclass(slots=True)
class _Tree:
    """A module and its parts, each type once, with what is known of them."""

    members: list[ConcreteModuleType]
    digest: bytes

    @classmethod
    def of(cls, concrete: ConcreteModuleType) -> _Tree:
        """Describe a type of modules.

        Raises:
            NotKept: it depends on something that only this process has.
        """
        numbers: dict[ConcreteModuleType, int] = {}
        pending = [concrete]
        while pending:
            member = pending.pop()
            if member not in numbers:
                numbers[member] = len(numbers)
                pending += reversed(_parts(member))
        shape = tuple([tuple([numbers[part] for part in _parts(member)]) for member in numbers])
        described = tuple(map(_description, numbers))
        return cls([*numbers], hashlib.sha256(marshalled((shape, described))).digest())

    @property
    def is_as_described(self) -> bool:
        """Whether no method has changed what is known of the modules."""
        return all(
            not member.queried
            and not member.assumed
            and {name: slot.type for name, slot in member.type.attributes.items()} == _slots(member)
            and all(method.is_from_class or name in _OF_CONTAINERS for name, method in member.type.methods.items())
            for member in self.members
        )


def _slots(concrete: ConcreteModuleType) -> dict[str, Type]:
    """The attributes that a type of modules begins with."""
    facts = concrete.facts
    parts = {name: part.type for name, part in facts.submodules.items() if isinstance(part, ConcreteModuleType)}
    return {**{name: type for name, (type, _) in facts.attributes.items()}, **parts}


def _parts(concrete: ConcreteModuleType) -> list[ConcreteModuleType]:
    parts = list(concrete.facts.submodules.values())
    found = [part for part in parts if isinstance(part, ConcreteModuleType)]
    if len(found) != len(parts):
        raise NotKept("a part that has an interface for its type")
    return found


def stored_method(concrete: ConcreteModuleType, record: GraphFunction, function: FunctionType) -> StoredFunction | None:
    """Return where a method is, or may be, on disk; None if it is not kept."""
    stored = StoredFunction.of(function, record.basename, records_called, is_method=True)
    if stored is None:
        return None
    try:
        tree = _Tree.of(concrete)
    except (NotKept, NotEncodable) as reason:
        stored.note_refusal(reason)
        return None
    stored.key = marshalled((stored.key, tree.digest))
    stored.owner = _Owner(tree)
    return stored if tree.is_as_described else None


@dataclass(slots=True)
class _Owner:
    """See :class:`rekindle.scripting.callables.stored_functions.Owner`."""

    tree: _Tree

    @property
    def class_types(self) -> Sequence[ClassType]:
        """The types of the module and its parts."""
        return [member.type for member in self.tree.members]

    @property
    def functions(self) -> Sequence[FunctionType]:
        """The functions in attributes."""
        every = (function for member in self.tree.members for function in member.facts.functions.values())
        return [function for function in every if isinstance(function, FunctionType)]

    @property
    def is_unchanged(self) -> bool:
        """Whether what is known of the modules is what was described."""
        return self.tree.is_as_described

    def method(self, number: int, name: str) -> GraphFunction | None:
        """The method that a module or one of its parts has, where it is to be compiled as it stands in the class."""
        member = self.tree.members[number]
        found = member.type.methods.get(name)
        if found is None and make_method is not None:
            found = make_method(member, name)
        return found


make_method: Any = None
"""A slot: the record of a method that nothing has asked for yet. :mod:`rekindle.scripting.modules.module_values` fills
it."""


# --------------------------------------------------------------------------------------------------------- descriptions


def _description(concrete: ConcreteModuleType) -> bytes:
    """Describe a type of modules without its parts."""
    facts = concrete.facts
    if facts.empty or facts.objects or facts.methods or facts.has_hooks or facts.has_traced_hooks:
        raise NotKept(f"the module '{concrete.name}', of which more is known than its values")
    writer = GraphWriter(References())
    attributes = tuple([(name, writer.type(type), kind) for name, (type, kind) in facts.attributes.items()])
    functions = []
    for name, function in facts.functions.items():
        if not isinstance(function, FunctionType):
            raise NotKept(f"the function in the attribute '{name}'")
        functions.append((name, described_function(function)))
    encoded = (
        *(_class_description(facts.python_class), facts.container.name, attributes, writer.bundle()),
        tuple([(name, described_value(value)) for name, value in facts.constants.items()]),
        tuple([(name, described_value(value)) for name, value in facts.present.items()]),
        *(tuple(functions), tuple(facts.builtins.items()), tuple(facts.submodules), tuple(facts.failed.items())),
        *(facts.items, facts.hooks_take_keywords),
    )
    return hashlib.sha256(marshalled(encoded)).digest()


_CLASSES: Final[dict[type, tuple[object, bytes]]] = {}
"""The descriptions of classes, with the keys that say whether these still hold the same."""


def _class_description(cls: type) -> bytes:
    key = class_key(cls)
    known = _CLASSES.get(cls)
    if known is not None and known[0] is key:
        return known[1]
    owners = [owner for owner in owners_of(cls) if owner is not object and owner is not torch.nn.Module]
    encoded = tuple([(owner.__module__, owner.__qualname__, _members(owner)) for owner in owners])
    digest = hashlib.sha256(marshalled(encoded)).digest()
    _CLASSES[cls] = key, digest
    return digest


def _members(owner: type) -> Encoded:
    described = [(name, _member(value)) for name, value in members_of(owner) if is_seen(name, value)]
    return tuple(described), repr(vars(owner).get("__annotations__"))


def _member(value: object) -> Encoded:
    if isinstance(value, FunctionType):
        return "function", described_function(value)
    if isinstance(value, (staticmethod, classmethod)):
        return type(value).__name__, _member(value.__func__)
    if isinstance(value, property):
        return "property", *_of_each(value.fget, value.fset)
    return "value", described_value(value)


def _of_each(*values: object) -> Iterable[Encoded]:
    return [None if value is None else _member(value) for value in values]
