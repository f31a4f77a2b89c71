"""Functions as plain records: their contents, without the code that runs them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakMethod

from rekindle.errors import (
    CompileError,
    InternalError,
    SourceRange,
    bug_while,
    compiling,
    is_bug,
    known_failure,
    remember_failure,
)
from rekindle.errors.fork_locks import held_while_forking
from rekindle.errors.gc_pause import gc_paused
from rekindle.ir.graph import Graph, Node
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.profiling import recorded
from rekindle.ir.redefinition import Redefinition, ResultSlot, being_defined, inherit_reliance, users_of
from rekindle.ir.types.base import Type
from rekindle.ir.types.named import ClassType, FunctionType

COMPILING = held_while_forking(threading.RLock(), 1)
"""Held while functions are compiled or optimized: by one thread at a time, since functions share their callees."""


@dataclass(frozen=True, slots=True)
class StoredForm:
    """A compiled Python function on disk. ``digest`` covers the function with all its dependences; ``types`` are the
    class types to which its graph and those of its callees may refer, ``callees`` the stored functions that it calls,
    with their digests. ``is_valid`` returns whether the class types are still as they were when the digest was
    computed."""

    digest: bytes
    types: Sequence[ClassType]
    callees: Sequence[tuple[GraphFunction, bytes]]
    is_valid: Callable[[], bool]


def stored_program(record: GraphFunction) -> Sequence[GraphFunction] | None:
    """Return a function with all that it calls, if all of it is as it is stored on disk, so that its digest identifies
    the program. Return None otherwise, and if a function is recursive or its result type is inferred
    (:attr:`GraphFunction.result`)."""
    if record.stored is None or not record.stored.is_valid():
        return None
    found: dict[GraphFunction, None] = {record: None}
    pending = [record]
    while pending:
        form = pending.pop().stored
        if form is None:
            return None
        for callee, digest in form.callees:
            if callee.digest != digest:
                return None
            if callee not in found:
                found[callee] = None
                pending.append(callee)
    return None if any(each.result is not None or each.is_recursive for each in found) else list(found)


class _Referable:
    """The base of classes with slots whose objects weak references may refer to."""

    __slots__ = ("__weakref__",)


@dataclass(slots=True, eq=False)
class GraphFunction(_Referable):
    """A function or a method: its qualified name, graph and schema.

    ``function_creator`` fills in graph and schema when either is first read, so that functions are compiled on demand.
    """

    name: str
    _graph: Graph | None = None
    _schema: FunctionSchema | None = None
    function_creator: Callable[[GraphFunction], None] | None = field(default=None, repr=False)
    docstring: str | None = field(default=None, repr=False)
    executable: object = field(default=None, repr=False)
    """Compiled objects of the runtime for the graph; the runtime owns this slot."""
    binder: object = field(default=None, repr=False)
    """Binder of the runtime for the schema; the runtime owns this slot too."""
    runner: Callable[[GraphFunction, Sequence[Any], Mapping[str, Any]], Any] | None = field(default=None, repr=False)
    """Calls the function from Python; set at the first such call. :mod:`rekindle.program.calling` owns this slot."""
    is_from_class: bool = False
    """Whether it is compiled from a function of its module's class. If not, as in a trace, its graph is all there
    is: calls with other arguments cannot recompile the function."""
    is_from_archive: bool = False
    """Whether it is part of a program from an archive, which accepts the arguments that TorchScript accepts."""
    takes_tensors_as_numbers: bool = False
    """Whether Python may pass a Tensor of one element for a number: compiled through the drop-in."""
    result_in_python: Callable[[Type], Type] | None = field(default=None, repr=False)
    """Maps the type of the result to one that has its class in Python, of which the schema of a program from an archive
    knows nothing; None if the schema says it."""
    left_out: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The parameters ``*args`` and ``**kwargs`` of a method's Python function, which are always empty: each with its
    place, by its stars."""
    is_recursive: bool = False
    """Whether it calls itself, directly or through others: calls of it stay calls."""
    relies_on: set[tuple[ClassType | GraphFunction, str]] = field(default_factory=set, repr=False)
    """The attributes and functions whose inferred types this graph depends on, and which may still be widened."""
    result: ResultSlot | None = field(default=None, repr=False)
    """State of the inference of its result type, if it returns a list or dict without declaring it; else None."""
    library_name: str = ""
    """For a function of the frontend's library, its name there."""
    digest: bytes = b""
    """The key of the compiled form of a Python function and all its dependences, if it is stored on disk; empty after
    an edit of the graph."""
    stored: StoredForm | None = field(default=None, repr=False)
    """That compiled form, if :attr:`digest` is not empty."""
    _graph_reader: Callable[[], Graph] | None = field(default=None, repr=False)
    """Decodes the graph when it is first asked for."""
    _when_loaded: list[Callable[[GraphFunction], None]] = field(default_factory=list, repr=False)
    _state: str = "undefined"
    _last_definer: Callable[[GraphFunction], None] | None = field(default=None, repr=False)
    """Function that recompiles it, if a wider type may be needed."""

    @property
    def basename(self) -> str:
        return self.name.rsplit(".", 1)[-1]

    @classmethod
    def of(cls, graph: Graph, name: str) -> GraphFunction:
        """Return a function that runs ``graph``, part of another function. Its schema follows from the graph."""
        arguments = tuple([Argument(value.base_name, value.type) for value in graph.inputs])
        function = cls(name)
        function.define(
            graph, FunctionSchema(name, "", arguments, tuple([Argument("", v.type) for v in graph.outputs]))
        )
        return function

    @property
    def is_defined(self) -> bool:
        return self._graph is not None or self._graph_reader is not None

    @property
    def is_loaded(self) -> bool:
        """Whether the graph is in memory: not if it is still to be compiled, or to be decoded from disk."""
        return self._graph is not None

    @property
    def input_types(self) -> Sequence[Type]:
        """The types of the inputs of the graph. If it is not in memory, those of the schema, which are the same."""
        self.ensure_defined()
        if self._graph is None and self._schema is not None:
            return [argument.type for argument in self._schema.arguments]
        return [value.type for value in self.graph.inputs]

    @property
    def is_being_defined(self) -> bool:
        return self._state == "defining"

    @property
    def graph(self) -> Graph:
        self.ensure_defined()
        if self._graph is None and self._graph_reader is not None:
            self._load()
        if self._graph is None:
            raise InternalError(f"the function '{self.name}' has no graph")
        return self._graph

    @property
    def schema(self) -> FunctionSchema:
        if self._schema is None:
            self.ensure_defined()
        if self._schema is None:
            raise InternalError(f"the function '{self.name}' has no schema")
        return self._schema

    def define(self, graph: Graph, schema: FunctionSchema) -> None:
        self._graph = graph
        self._schema = schema
        self.digest = b""
        self.stored = self._graph_reader = None
        self.executable = self.binder = self.runner = None

    def define_later(self, reader: Callable[[], Graph], schema: FunctionSchema) -> None:
        """Define the function, with a graph that ``reader`` decodes when it is first asked for."""
        self._graph = None
        self._schema = schema
        self.executable = self.binder = self.runner = None
        self._graph_reader = reader

    def is_stored_as(self, form: StoredForm) -> None:
        """Record the form in which the function is stored on disk, until its graph is edited."""
        self.digest, self.stored = form.digest, form
        if self._graph is not None:
            self._graph.watch(WeakMethod(self._note_edit))

    def when_loaded(self, callback: Callable[[GraphFunction], None]) -> None:
        """Have ``callback`` called with this function when its graph is decoded, before anything can edit it. It is not
        called if the graph is in memory already."""
        self._when_loaded.append(callback)

    def _load(self) -> None:
        with COMPILING, gc_paused():
            if self._graph_reader is None:
                return  # another thread was faster
            graph = self._graph_reader()
            graph.watch(WeakMethod(self._note_edit))
            callbacks, self._when_loaded = self._when_loaded, []
            self._graph, self._graph_reader = graph, None
            for callback in callbacks:
                callback(self)

    def _note_edit(self) -> None:
        self.digest, self.stored = b"", None

    def declare(self, schema: FunctionSchema | None) -> None:
        """Set the schema before the graph is compiled; None removes it."""
        self._schema = schema
        self.binder = self.runner = None

    def forget_definition(self) -> None:
        """Discard the compiled graph and the schema: the next use compiles the function again. Has no effect on a
        function that depends on no inferred type that may be widened."""
        if self._state == "defined" and self._last_definer is not None:
            self.function_creator = self._last_definer
            self._graph = self._graph_reader = None
            self._note_edit()
            self.declare(None)
            self.executable = None
            self._state = "undefined"

    def ensure_defined(self, called_from: SourceRange | None = None) -> None:
        """Compile the function, unless it is compiled already. If it is being compiled and its schema is known, mark it
        as recursive. Record that the function under compilation, if any, depends on it (:func:`inherit_reliance`).

        Raises:
            CompileError: the function cannot be compiled, or it calls itself without declaring its result type.
            InternalError: the compilation failed because of a bug.
        """
        definer = self.function_creator
        if self._state != "defined" and definer is not None:
            with COMPILING, gc_paused(), recorded(f"emit {self.name.removeprefix('__torch__.')}"):
                self._define_now(definer, called_from)
        if self.relies_on or self.result is not None:
            inherit_reliance(self)

    def _define_now(self, definer: Callable[[GraphFunction], None], called_from: SourceRange | None) -> None:
        if self._state == "defined":
            return  # by another thread, in the meantime
        if self._state == "defining":
            if self._schema is not None:
                self.is_recursive = True
                return  # what it takes and gives is known, and no more is needed for a call
            raise CompileError(
                f"function '{self.basename}' calls itself, directly or through others, before it is known what it "
                "returns",
                called_from,
                hint="declare the type of its result, for example: -> int",
            )
        failure = known_failure(self)
        if failure is not None:
            raise failure
        while not self._define_once(definer, called_from):
            continue
        self._state = "defined"
        self.function_creator = None  # it may hold the unit, or the module, that holds this function
        if self.relies_on or self.result is not None:
            self._last_definer = definer
            for owner, name in self.relies_on:
                users_of(owner, name).add(self)

    def _define_once(self, definer: Callable[[GraphFunction], None], called_from: SourceRange | None) -> bool:
        """Compile the function; return False if the compilation has to restart."""
        self._state = "defining"
        self.relies_on.clear()
        being_defined.append(self)
        try:
            with compiling(self.basename, called_from):
                definer(self)
        except CompileError as error:
            self._state = "undefined"
            remember_failure(self, error)
            raise
        except Redefinition as again:
            self._state = "undefined"
            if again.record is not self:
                raise
            return False
        except BaseException as error:
            self._state = "undefined"
            if is_bug(error):
                raise bug_while(error, f"in the compilation of '{self.name}'") from error
            raise
        finally:
            being_defined.pop()
        return True


def called_function(node: Node) -> GraphFunction | None:
    """Return the function or method that ``node`` calls; None for other nodes, and if it is unknown."""
    if node.kind not in ("prim::CallFunction", "prim::CallMethod"):
        return None
    callee, *_ = node.inputs
    if isinstance(callee.type, FunctionType):
        return callee.type.function
    return callee.type.methods.get(node.get_string("name")) if isinstance(callee.type, ClassType) else None
