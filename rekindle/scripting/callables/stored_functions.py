"""Compiled Python functions on disk, so that a new process need not compile them again.

A function is stored if it is defined in a module's file, and compiles to the same graph in every process that finds the
same objects under the names that it uses. Closures and wrappers are not stored. A file holds the graph, the schema, and
a description of what was found under each name, in the order in which the compiler looked them up::

    ("relu", globals)              a function, by its code, and by the digest of what it was compiled to
    ("torch", globals)             a module
    ("tanh", attribute of torch)   a function of PyTorch, by its name

The form is valid if the same descriptions are found again. A function that uses an object without such a description,
such as an object of a user's class, is not stored.
"""

from __future__ import annotations

import hashlib
import logging
import marshal
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from rekindle.codegen.llvm.engine import disk_cache
from rekindle.frontend.calls.torchscript_builtins import find_builtin_functions
from rekindle.frontend.dialect import DIALECT
from rekindle.ir.bitcode.reader import GraphReader, check_operators
from rekindle.ir.bitcode.references import Encoded, NotEncodable, References, marshalled
from rekindle.ir.bitcode.writer import GraphWriter
from rekindle.ir.graph import Graph, subgraphs_of
from rekindle.ir.graph_function import GraphFunction, StoredForm, called_function
from rekindle.ir.operators.schema import MISSING, Argument, FunctionSchema
from rekindle.ir.types import ClassType, TupleType, kept_type
from rekindle.ops.python.exceptions import EXCEPTION_CLASSES
from rekindle.program.names import unique_name
from rekindle.runtime.strategies.graph_cache import are_passes_watched, process_description
from rekindle.scripting.annotations import is_named_tuple, named_tuple_type
from rekindle.scripting.callables.current_storage import Storage, current_storage
from rekindle.scripting.callables.dependencies import (
    OWN_CLASS,
    Dependencies,
    NotKept,
    describe,
    described_declaration,
    described_function,
)
from rekindle.scripting.callables.overloads import Declaration
from rekindle.scripting.callables.untyped_parameters import open_parameters
from rekindle.scripting.resolver import ABSENT

_LOG: Final = logging.getLogger(__name__)
_FORMAT: Final = 5


# ---------------------------------------------------------------------------------------------------------- on disk


class Owner(Protocol):
    """The interface of the class or module that a stored method belongs to."""

    @property
    def class_types(self) -> Sequence[ClassType]:
        """The class types to which the method's graph may refer."""

    @property
    def functions(self) -> Sequence[types.FunctionType]:
        """The functions that the method may call in addition to those that it finds by name."""

    @property
    def is_unchanged(self) -> bool:
        """Return whether the current state equals the state that is part of the storage key."""

    def method(self, number: int, name: str) -> GraphFunction | None:
        """Return a method of the class type ``number``; None if it has no method of that name."""


Records = Callable[[types.FunctionType], Sequence[GraphFunction]]


@dataclass(slots=True)
class StoredFunction:
    """A Python function whose compiled form may be stored on disk."""

    disk: Storage
    key: bytes
    """The key in ``disk``: a description of the function's code, of its name and of this process."""
    function: types.FunctionType
    records: Records
    """Returns the compiled forms (``GraphFunction``) of another function, which this one calls."""
    owner: Owner | None = None
    """The class or module of which this is a method; None for other functions."""

    @classmethod
    def of(
        cls,
        function: types.FunctionType,
        name: str,
        records: Records,
        declaration: Declaration = None,
        overloads: Sequence[Declaration] = (),
        *,
        is_method: bool = False,
    ) -> StoredFunction | None:
        """Return a handle for the stored form of ``function``, compiled under ``name``, whether or not one is stored
        yet; None if it cannot be stored. For a method, the caller sets ``owner`` of the result.

        ``declaration`` is that of an overload, ``overloads`` those of all overloads. They are part of the key, since a
        caller is stored with the digest of the overload that it calls, and the others determine which one that is.
        """
        disk = current_storage[-1] if current_storage else disk_cache()
        if disk is None or are_passes_watched() or "__wrapped__" in vars(function):
            return None
        if function.__code__.co_freevars and not (is_method and function.__code__.co_freevars == (OWN_CLASS,)):
            return None
        if function.__name__ == "<lambda>" or "<locals>" in function.__qualname__ or open_parameters(function):
            return None
        try:
            declared = tuple([described_declaration(each) for each in (declaration, *overloads)])
            described = described_function(function), declared
        except NotKept as reason:
            _LOG.debug("'%s' is not kept on disk: %s", name, reason)
            return None
        key = (_FORMAT, "function", process_description(), DIALECT.tensors_as_numbers, name, described)
        return cls(disk, marshalled(key), function, records)

    def note_refusal(self, reason: Exception) -> None:
        """Log why the function is not stored."""
        _LOG.debug("'%s' is not kept on disk: %s", self.function.__qualname__, reason)

    def load(self, record: GraphFunction) -> bool:
        """Define ``record`` from the stored form, if there is a valid one; return whether there is. The functions and
        methods that it calls are compiled or loaded."""
        payload = self.disk.load(self.key)
        if payload is None:
            return False
        found, callees, methods, relied_on, builtins, library, tuples, definition = marshal.loads(payload)
        objects = self._objects(found)
        if objects is None:
            return False
        called: list[tuple[GraphFunction, bytes]] = []
        references = References()
        functions: list[Any] = objects
        if self.owner is not None:
            functions = [*objects, *self.owner.functions]
            for type in self.owner.class_types:
                references.add(type)
        for place, description in tuples:
            if not is_named_tuple(objects[place]):
                return False
            named_tuple = named_tuple_type(objects[place])
            if _described_fields(named_tuple) != description:
                return False
            references.add(named_tuple)
        for number, name, digest in methods:
            method = None if self.owner is None else self.owner.method(number, name)
            if method is None:
                return False
            method.ensure_defined()
            if method.digest != digest:
                return False
            called.append((method, digest))
        for place, index, digest in callees:
            records = self.records(functions[place])
            if index >= len(records):
                return False
            records[index].ensure_defined()
            if records[index].digest != digest:
                return False
            called.append((records[index], digest))
            references.add(records[index])
        for name, index in builtins:
            references.add(find_builtin_functions(name)[index])
        try:
            others = References()
            for name, library_name, content in library:
                function = _library_function(name, library_name, content, others)
                others.add(function)
                references.add(function)
            reader, schema = _decoded(definition, references)
        except NotEncodable as reason:
            _LOG.info("'%s' is not read from disk: %s", record.name, reason)
            return False
        if self.owner is not None:
            if not self.owner.is_unchanged:
                return False
            record.relies_on.update((self.owner.class_types[number], name) for number, name in relied_on)
        record.takes_tensors_as_numbers = DIALECT.tensors_as_numbers
        record.define_later(reader, schema)
        record.is_stored_as(self._form(payload, called))
        return True

    def _form(self, payload: bytes, called: Sequence[tuple[GraphFunction, bytes]]) -> StoredForm:
        owner = self.owner
        digest = hashlib.sha256(self.key + payload).digest()
        if owner is None:
            return StoredForm(digest, (), called, lambda: True)
        return StoredForm(digest, owner.class_types, called, lambda: owner.is_unchanged)

    def _objects(self, found: Encoded) -> list[Any] | None:
        """Return the objects found under the names, in the order of ``found``; None if one differs from that when the
        function was stored. Exception classes are registered in :data:`EXCEPTION_CLASSES`."""
        objects: list[Any] = []
        names = self.function.__globals__
        for owner, name, description in found:
            value = names.get(name, ABSENT) if owner < 0 else getattr(objects[owner], name, ABSENT)
            try:
                if describe(value) != description:
                    return None
            except NotKept:
                return None
            if isinstance(value, type) and issubclass(value, BaseException):
                EXCEPTION_CLASSES.setdefault(_exception_name(value), value)
            objects.append(value)
        return objects

    def store(self, record: GraphFunction, dependencies: Dependencies) -> None:
        """Store the compiled form of ``record``, if possible, and set its digest. Log the reason if it cannot be
        stored."""
        try:
            payload, called = self._payload(record, dependencies)
        except (NotKept, NotEncodable) as reason:
            _LOG.debug("'%s' is not kept on disk: %s", record.name, reason)
            return
        if self.disk.store(self.key, payload):
            record.is_stored_as(self._form(payload, called))

    def _payload(
        self, record: GraphFunction, dependencies: Dependencies
    ) -> tuple[bytes, Sequence[tuple[GraphFunction, bytes]]]:
        """Return the encoded function, and the stored functions that it depends on, with their digests.

        Raises:
            NotKept: the function cannot be stored.
            NotEncodable: the graph holds something that can be neither written nor referred to.
        """
        if dependencies.reason:
            raise NotKept(dependencies.reason)
        graph, schema = (
            record._graph,
            record._schema,
        )  # the properties take a function that is being defined for recursive
        if graph is None or schema is None or record.is_recursive or record.result is not None:
            raise NotKept("a result whose type may become wider")
        if any(subgraphs_of(node) for node in graph.all_nodes()):
            raise NotKept("a function within it")
        references = References()
        functions = dependencies.objects
        methods: Encoded = ()
        called: list[tuple[GraphFunction, bytes]] = []
        if self.owner is not None:
            if not self.owner.is_unchanged:
                raise NotKept("what is known of its module after it was compiled")
            functions = [*functions, *self.owner.functions]
            for type in self.owner.class_types:
                references.add(type)
        tuples = tuple(_named_tuples(dependencies.objects))
        for place, _ in tuples:
            references.add(named_tuple_type(dependencies.objects[place]))
        if self.owner is not None:
            methods = _called_methods(graph, references, self.owner)
            for number, name, digest in methods:
                method = self.owner.method(number, name)
                assert method is not None
                called.append((method, digest))
        relied_on = tuple([(_number_of(owner, references), name) for owner, name in record.relies_on])
        callees: list[Encoded] = []
        for place, item in enumerate(functions):
            if not isinstance(item, types.FunctionType):
                continue
            for index, callee in enumerate(self.records(item)):
                if callee.is_defined and references.find(callee) is None:
                    if not callee.digest:
                        raise NotKept(f"the function '{callee.name}'")
                    references.add(callee)
                    callees.append((place, index, callee.digest))
                    called.append((callee, callee.digest))
        builtins = tuple(_builtin_functions(graph))
        for name, index in builtins:
            references.add(find_builtin_functions(name)[index])
        library: list[Encoded] = []
        others = References()
        for each in _library_functions(graph):
            library.append((each.name, each.library_name, _encoded(each.graph, each.schema, others)))
            others.add(each)
            references.add(each)
        found = tuple([(owner, name, description) for (owner, name), description in dependencies.found.items()])
        definition = _encoded(graph, schema, references)
        payload = marshalled((found, tuple(callees), methods, relied_on, builtins, tuple(library), tuples, definition))
        return payload, called


def _exception_name(cls: type) -> str:
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _named_tuples(objects: Sequence[object]) -> Iterator[tuple[int, Encoded]]:
    """Yield the position and the description of each class of ``objects`` that programs of this process use as the type
    of a NamedTuple. These are classes of PyTorch: functions that use others are not stored."""
    for place, item in enumerate(objects):
        known = kept_type(item) if isinstance(item, type) and is_named_tuple(item) else None
        if isinstance(known, TupleType):
            yield place, _described_fields(known)


def _described_fields(type: TupleType) -> Encoded:
    return type.name, type.fields, tuple(map(str, type.elements)), repr(type.defaults)


def _builtin_functions(graph: Graph) -> Sequence[tuple[str, int]]:
    """Return the functions that extend operators and that a graph calls, each by the operator and its number among
    them."""
    found: dict[tuple[str, int], None] = {}
    for node in graph.all_nodes():
        callee = called_function(node)
        known = () if callee is None else find_builtin_functions(callee.name)
        if callee is not None and callee in known:
            found[callee.name, known.index(callee)] = None
    return list(found)


def _number_of(owner: object, references: References) -> int:
    number = references.find(owner) if isinstance(owner, ClassType) else None
    if number is None:
        raise NotKept("a result whose type may become wider")
    return number


def _called_methods(graph: Graph, references: References, owner: Owner) -> Encoded:
    """Return the methods that a graph calls: the numbers of their types in ``references``, their names, and their
    digests. For a call of an overload, the earlier overloads are included: that they did not fit has decided the call.

    Raises:
        NotKept: one of the methods has no digest, so that it is not stored.
    """
    found: dict[tuple[int, str], bytes] = {}
    for node in graph.find_nodes("prim::CallMethod"):
        callee, name = called_function(node), node.get_string("name")
        number = references.find(node.inputs[0].type)
        if callee is None or not callee.digest or number is None:
            raise NotKept(f"the method '{name}'")
        found[number, name] = callee.digest
        for tried in _earlier_overloads(name):
            method = owner.method(number, tried)
            if method is None:
                break  # no overload, but a method with such a name
            if not method.is_defined or not method.digest:
                raise NotKept(f"the method '{tried}'")
            found[number, tried] = method.digest
    return tuple([(number, name, digest) for (number, name), digest in found.items()])


def _earlier_overloads(name: str) -> Sequence[str]:
    """Return the names of the overloads before ``name``, if it is that of one: ``f__0``, ``f__1`` of ``f__2``."""
    base, separator, number = name.rpartition("__")
    return [f"{base}__{each}" for each in range(int(number))] if separator and number.isdecimal() else ()


# ------------------------------------------------------------------------------------------- functions of the library


def _library_functions(graph: Graph, found: dict[GraphFunction, None] | None = None) -> Sequence[GraphFunction]:
    """Return the prelude functions that a graph calls, each after those that it calls itself. They are added to
    ``found``.

    Raises:
        NotKept: one of them is recursive.
    """
    found = {} if found is None else found
    for node in graph.all_nodes():
        callee = called_function(node)
        if callee is not None and callee.library_name and callee not in found:
            if callee.is_recursive:
                raise NotKept(f"the function '{callee.name}', which calls itself")
            _library_functions(callee.graph, found)
            found[callee] = None
    return list(found)


_LOADED: Final[dict[tuple[str, Encoded, tuple[int, ...]], GraphFunction]] = {}
"""The functions of the library that were loaded, by their names, contents, and references."""


def _library_function(name: str, library_name: str, content: Encoded, references: References) -> GraphFunction:
    key = library_name, content, tuple(map(id, references.objects))
    if key not in _LOADED:
        made = GraphFunction(unique_name(name), library_name=library_name)
        reader, schema = _decoded(content, references)
        made.define(reader(), schema)
        _LOADED[key] = made
    return _LOADED[key]


# ------------------------------------------------------------------------------------------------------------ encoding


def _encoded(graph: Graph, schema: FunctionSchema, references: References) -> Encoded:
    """Encode the graph and the schema of a function, each with tables of its own. Classes and functions to which they
    refer must be in ``references``.

    Raises:
        NotKept: the schema has variadic arguments, an overload name, or parts that only schemas of operators have.
        NotEncodable: the graph holds something that can be neither written nor referred to.
    """
    if schema.is_vararg or schema.is_varret or schema.overload:
        raise NotKept("a schema with more than arguments")
    body, head = GraphWriter(references), GraphWriter(references)
    number = body.add(graph)
    parts = [tuple([_encoded_argument(each, head) for each in part]) for part in (schema.arguments, schema.returns)]
    return marshalled(body.bundle()), number, body.foreign_operators, schema.name, *parts, head.bundle()


def _encoded_argument(argument: Argument, writer: GraphWriter) -> Encoded:
    if argument.alias is not None or argument.spelling or argument.default_spelling:
        raise NotKept("a schema of an operator")
    default = () if argument.default is MISSING else (writer.constant(argument.default),)
    type = writer.type(argument.type)
    return argument.name, type, default, argument.kwarg_only, argument.size, argument.assumed


def _decoded(encoded: Encoded, references: References) -> tuple[Callable[[], Graph], FunctionSchema]:
    """Decode a schema, and return it with a function that decodes the graph.

    Raises:
        NotEncodable: the graph calls an operator that is not known.
    """
    bundle, number, foreign, name, arguments, returns, tables = encoded
    check_operators(foreign)
    head = GraphReader(tables, references)
    takes, gives = [tuple([_decoded_argument(each, head) for each in part]) for part in (arguments, returns)]

    def read() -> Graph:
        return GraphReader(marshal.loads(bundle), references).graph(number)

    return read, FunctionSchema(name, "", takes, gives)


def _decoded_argument(encoded: Encoded, reader: GraphReader) -> Argument:
    name, type, default, kwarg_only, size, assumed = encoded
    value = reader.constant(default[0]) if default else MISSING
    return Argument(name, reader.type(type), value, kwarg_only, None, size, assumed=assumed)
