"""Compiled methods of modules on disk: see :mod:`rekindle.scripting.callables.stored_functions`.

Beside the names that it uses, a method depends on its module and the module's submodules. Their description covers the
facts by which modules share their types, and the members of their classes. Modules with hooks, with attributes that
methods create or fill, or with attributes that are compile-time objects are compiled in every process.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Final
from weakref import WeakKeyDictionary

from rekindle.codegen.llvm.disk_cache import DiskCache
from rekindle.codegen.llvm.engine import disk_cache
from rekindle.ir.bitcode.references import Encoded, NotEncodable, References, marshalled
from rekindle.ir.bitcode.writer import GraphWriter
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.types import ClassType, Type
from rekindle.ir.types.named import ClassAttribute
from rekindle.runtime.strategies.graph_cache import are_passes_watched, process_description
from rekindle.scripting.annotations import annotations_of
from rekindle.scripting.callables.current_storage import current_storage
from rekindle.scripting.callables.dependencies import NotKept, annotations_text, described_function, described_value
from rekindle.scripting.callables.functions import records_called
from rekindle.scripting.callables.stored_functions import StoredFunction
from rekindle.scripting.modules.class_keys import class_key, visible_members
from rekindle.scripting.modules.class_members import owners_of
from rekindle.scripting.modules.module_types import ConcreteModuleType

_OF_CONTAINERS: Final = frozenset({"__len__", "__contains__"})
"""The methods that follow from the items of a container."""


@dataclass(slots=True)
class _Tree:
    """A module and its submodules, each type once, with their facts. ``slots`` are the attributes of each type, with
    their initial types."""

    members: list[ConcreteModuleType]
    digest: bytes
    slots: list[tuple[ConcreteModuleType, list[tuple[ClassAttribute, Type]]]]

    @classmethod
    def of(cls, concrete: ConcreteModuleType, known: dict[ConcreteModuleType, _Tree]) -> _Tree:
        """Describe a type of modules and the types of their submodules. ``known`` has the descriptions made so far; new
        ones are added.

        Raises:
            NotKept: the type depends on something that exists only in this process.
        """
        found = known.get(concrete)
        if found is None:
            trees = [cls.of(part, known) for part in _parts(concrete)]
            members = list(dict.fromkeys([concrete, *(each for tree in trees for each in tree.members)]))
            numbers = {member: number for number, member in enumerate(members)}
            shape = tuple([tuple([numbers[part] for part in tree.members]) for tree in trees])
            encoded = (_description(concrete), shape, tuple([tree.digest for tree in trees]))
            digest = hashlib.sha256(marshalled(encoded)).digest()
            own = {} if len(members) == 1 else {each[0]: each for tree in trees for each in tree.slots}
            slots = [(concrete, _slots(concrete)), *[own[member] for member in members[1:]]]
            found = known[concrete] = cls(members, digest, slots)
        return found

    @property
    def is_as_described(self) -> bool:
        """Return whether the types are as they were described: no attribute was added or changed since, and no method
        was added that the class does not define."""
        for member, slots in self.slots:
            if member.queried or member.assumed or len(slots) != len(member.type.attributes):
                return False
            for slot, type in slots:
                if slot.type is not type:
                    return False
            if not all(each.is_from_class or name in _OF_CONTAINERS for name, each in member.type.methods.items()):
                return False
        return True


def _slots(concrete: ConcreteModuleType) -> list[tuple[ClassAttribute, Type]]:
    """Return the attributes of a type of modules, each with its type before any method was compiled.

    Raises:
        NotKept: methods have added attributes.
    """
    facts = concrete.facts
    found: list[tuple[ClassAttribute, Type]] = []
    for name, slot in concrete.type.attributes.items():
        part = facts.submodules.get(name)
        type = part.type if isinstance(part, ConcreteModuleType) else facts.attributes.get(name, (slot.type,))[0]
        found.append((slot, type))
    if len(found) != len(facts.attributes) + len(facts.submodules):
        raise NotKept(f"the module '{concrete.name}', to which methods add attributes")
    return found


def _parts(concrete: ConcreteModuleType) -> list[ConcreteModuleType]:
    parts = list(concrete.facts.submodules.values())
    found = [part for part in parts if isinstance(part, ConcreteModuleType)]
    if len(found) != len(parts):
        raise NotKept("a part that has an interface for its type")
    return found


def stored_method(
    concrete: ConcreteModuleType, record: GraphFunction, function: FunctionType, declaration: FunctionType | None
) -> StoredFunction | None:
    """Return a handle for the stored form of a method; None if it cannot be stored. ``declaration`` is that of an
    overload."""
    name = record.basename
    overloads = () if declaration is None else concrete.overloads(name.rpartition("__")[0])
    stored = StoredFunction.of(function, name, records_called, declaration, overloads, is_method=True)
    if stored is None:
        return None
    try:
        batch = stored.disk
        tree = _Tree.of(concrete, batch.trees if isinstance(batch, _Batch) else {})
    except (NotKept, NotEncodable) as reason:
        stored.note_refusal(reason)
        return None
    stored.key = hashlib.sha256(marshalled((stored.key, tree.digest))).digest()
    stored.owner = _Owner(tree)
    return stored if tree.is_as_described else None


# --------------------------------------------------------------------------------------------------------------- files


@dataclass(slots=True)
class _Batch:
    """The methods compiled for a module, its submodules and the functions that they call: they share one file."""

    disk: DiskCache
    key: bytes
    payloads: dict[bytes, bytes]
    trees: dict[ConcreteModuleType, _Tree]
    is_changed: bool = False

    def load(self, key: bytes) -> bytes | None:
        """Return the bytes stored under ``key``; None if there are none."""
        return self.payloads.get(key)

    def store(self, key: bytes, payload: bytes) -> bool:
        """Record the payload until :meth:`write` writes the file; return True."""
        self.payloads[key] = payload
        self.is_changed = True
        return True

    def write(self) -> None:
        """Write the file, if there is anything new."""
        if self.is_changed:
            self.disk.store(self.key, marshalled(tuple(self.payloads.items())))


@contextmanager
def compiled_in_one_file(concrete: ConcreteModuleType) -> Iterator[None]:
    """Read compiled methods within the ``with`` block from one file, and write it at the end if methods were added.
    Without a cache on disk, or while passes are logged, limited, verified or added, do nothing."""
    disk = disk_cache()
    if disk is None or are_passes_watched():
        yield
        return
    name = f"{concrete.python_class.__module__}.{concrete.python_class.__qualname__}"
    trees: dict[ConcreteModuleType, _Tree] = {}
    try:
        key = marshalled(("methods", process_description(), name, _Tree.of(concrete, trees).digest))
    except (NotKept, NotEncodable):
        key = marshalled(("methods", process_description(), name))
    payload = disk.load(key)
    batch = _Batch(disk, key, {} if payload is None else dict(marshal.loads(payload)), trees)
    current_storage.append(batch)
    try:
        yield
    finally:
        current_storage.pop()
        batch.write()


@dataclass(slots=True)
class _Owner:
    """The module that a stored method belongs to."""

    tree: _Tree

    @property
    def class_types(self) -> Sequence[ClassType]:
        """The types of the module and its parts."""
        return [member.type for member in self.tree.members]

    @property
    def functions(self) -> Sequence[FunctionType]:
        """The Python functions in attributes of the module and its submodules."""
        every = (function for member in self.tree.members for function in member.facts.functions.values())
        return [function for function in every if isinstance(function, FunctionType)]

    @property
    def is_unchanged(self) -> bool:
        """Return whether the facts of the modules equal the stored description."""
        return self.tree.is_as_described

    def method(self, number: int, name: str) -> GraphFunction | None:
        """Return the method ``name`` of the module or submodule ``number``; it is created if the class defines it.
        Return None if there is none."""
        member = self.tree.members[number]
        found = member.type.methods.get(name)
        if found is None and make_method is not None:
            found = make_method(member, name)
        return found


make_method: Any = None
"""Hook: create the record of a method that is not in the class type yet. It is set by
:mod:`rekindle.scripting.modules.module_values`."""


# --------------------------------------------------------------------------------------------------------- descriptions


_DESCRIPTIONS: Final[WeakKeyDictionary[ConcreteModuleType, tuple[object, bytes]]] = WeakKeyDictionary()
"""The descriptions of types of modules, with the keys of their classes."""


def _description(concrete: ConcreteModuleType) -> bytes:
    """Return the digest of the description of a type of modules without its submodules.

    Raises:
        NotKept: the type depends on something that exists only in this process.
    """
    key = class_key(concrete.python_class)
    known = _DESCRIPTIONS.get(concrete)
    if known is not None and known[0] is key:
        return known[1]
    digest = hashlib.sha256(marshalled(_described_facts(concrete))).digest()
    _DESCRIPTIONS[concrete] = key, digest
    return digest


def _described_facts(concrete: ConcreteModuleType) -> Encoded:
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
    return (
        *(_class_description(facts.python_class), facts.container.name, attributes, writer.bundle()),
        tuple([(name, described_value(value)) for name, value in facts.constants.items()]),
        tuple([(name, described_value(value)) for name, value in facts.present.items()]),
        *(tuple(functions), tuple(facts.builtins.items()), tuple(facts.submodules), tuple(facts.failed.items())),
        *(facts.items, facts.hooks_take_keywords),
        *(tuple(sorted(facts.repeated)), tuple(sorted(facts.repeated_children))),
    )


_CLASSES: Final[dict[type, tuple[object, bytes]]] = {}
"""The descriptions of classes, with the keys that detect changes of these."""


def _class_description(cls: type) -> bytes:
    key = class_key(cls)
    known = _CLASSES.get(cls)
    if known is not None and known[0] is key:
        return known[1]
    owners = [owner for owner in owners_of(cls) if owner is not object]
    encoded = tuple([(owner.__module__, owner.__qualname__, _members(owner)) for owner in owners])
    digest = hashlib.sha256(marshalled(encoded)).digest()
    _CLASSES[cls] = key, digest
    return digest


_ANNOTATE: Final = "__annotate_func__"
"""What evaluates the annotations of a class, since Python 3.14; its closure is all that the class holds."""


def _members(owner: type) -> Encoded:
    described = [(name, _member(value)) for name, value in visible_members(owner) if name != _ANNOTATE]
    annotations = annotations_text(annotations_of(owner))
    if " at 0x" in annotations:
        raise NotKept(f"the class '{owner.__qualname__}', whose annotations are objects")
    return tuple(described), annotations


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
