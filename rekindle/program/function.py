"""Compiled functions and methods as a user holds them."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from rekindle.errors import ArgumentError
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema import FunctionSchema
from rekindle.program import public_names
from rekindle.program.calling import call, compile, graph_for, inlined, interceptors, late_hooks, launch
from rekindle.program.debug_state import DebugState, debug_state_of
from rekindle.program.dynamo import skipped_by_dynamo
from rekindle.program.saving import Savable
from rekindle.program.sources.source import Constants, code_with_constants
from rekindle.runtime.calls.arguments import binder_of
from rekindle.runtime.executable import executable_of
from rekindle.runtime.executor import execute
from rekindle.runtime.interpreter.futures import Future


class _Compiled:
    """Base class of functions and methods: a :class:`~rekindle.ir.graph_function.GraphFunction` and views of it."""

    _record: GraphFunction

    @property
    def name(self) -> str:
        return self._record.basename

    @property
    def qualified_name(self) -> str:
        """The qualified name: ``__torch__.package.module.function``."""
        return self._record.name

    @property
    def schema(self) -> FunctionSchema:
        """The schema: parameters and results."""
        return self._record.schema

    @property
    def graph(self) -> Graph:
        """The graph of the function itself, in which calls of other functions are not inlined. After an edit, the next
        call verifies it."""
        return executable_of(self._record).expose(self._record.graph)

    @property
    def inlined_graph(self) -> Graph:
        """A copy of the graph with calls inlined, except those of interface methods and recursive functions."""
        return inlined(self._record)

    @property
    def code(self) -> str:
        """The graph as TorchScript source, as archives hold it."""
        return self.code_with_constants[0]

    @property
    def code_with_constants(self) -> tuple[str, Constants]:
        """The source, and an object with the constants that it refers to as ``CONSTANTS.c0``, ``CONSTANTS.c1`` … as
        attributes."""
        return code_with_constants(self._record, is_method=isinstance(self, Method))

    def get_debug_state(self) -> DebugState:
        """Return the graph and the versions that the runtime has compiled so far."""
        return debug_state_of(self._record)

    def show(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the page of :func:`rekindle.show`: the graph after each pass, for calls with these arguments if there
        are any."""
        return public_names.public.get()("show")(self, *args, **kwargs)

    def measure(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return how long each node takes in calls with these arguments: see :func:`rekindle.measure`."""
        return public_names.public.get()("measure")(self, *args, **kwargs)

    def _repr_html_(self) -> str:
        """Return the representation in notebooks."""
        text: str = self.show()._repr_html_()
        return text

    def __copy__(self) -> Any:
        return self  # it never changes

    def __deepcopy__(self, memo: dict[int, object]) -> Any:
        return self


def _named(module: str, name: str) -> Any:
    """Return the object that the dotted ``name`` refers to in a module that is imported; None if there is none."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _read_function(data: bytes) -> Any:
    """Return the method ``forward`` of the module in an archive: a function is saved as that method."""
    return public_names.public.get()("load")(data).forward


class Function(_Compiled, Savable):
    """A compiled function. Calling it runs its graph.

    ``__wrapped__`` is the Python function that it was compiled from, if there is one. An error of a call names the line
    of the source.

    Example:
        >>> double = rekindle.script(lambda x: x * 2)
        >>> isinstance(double, rekindle.Function)
        True
        >>> print(double.schema.returns[0].type)
        Tensor
        >>> double.graph.find_node("aten::mul").kind
        'aten::mul'
    """

    def __init__(self, record: GraphFunction, python: Any = None) -> None:
        self._record = record
        self.__name__ = record.basename
        self.__qualname__ = record.basename
        self.__doc__ = record.docstring
        if python is not None:
            self.__wrapped__ = python
            self.__module__ = python.__module__
            self.__name__ = python.__name__
            self.__qualname__ = python.__qualname__

    def __reduce__(self) -> str | tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle by the qualified name in the module, as Python pickles functions, if that name refers to this function
        or to the Python function that it was compiled from. Otherwise pickle as an archive, which is read as a method.

        Raises:
            SaveError: the name refers to neither, and the function cannot be saved in an archive.
        """
        python = getattr(self, "__wrapped__", None)
        found = _named(self.__module__, self.__qualname__)
        if found is self:
            return str(self.__qualname__)
        if python is not None and found is python:
            return public_names.public.get()("script"), (python,)
        return _read_function, (self.save_to_buffer(),)

    @property
    def __signature__(self) -> inspect.Signature:
        wrapped = getattr(self, "__wrapped__", None)
        return signature_of(self.schema) if wrapped is None else inspect.signature(wrapped)

    @skipped_by_dynamo
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return call(self._record, args, kwargs)

    def launch(self, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Start a call on another thread, and return the future of its result.

        Raises:
            ArgumentError: the arguments do not fit the schema.
        """
        return launch(self._record, args, kwargs)

    def graph_for(self, /, *args: Any, **kwargs: Any) -> Graph:
        """Return the graph that a call with these arguments would run. The function is not called.

        Raises:
            ArgumentError: the arguments do not fit the schema.
        """
        return graph_for(self._record, args, kwargs)

    def compile(self, /, *args: Any, **kwargs: Any) -> None:
        """Optimize for calls with such arguments now, not in the first of them. The function is not called.

        Raises:
            ArgumentError: the arguments do not fit the schema.
        """
        compile(self._record, args, kwargs)

    def __repr__(self) -> str:
        return f"<compiled function {self.qualified_name}>"


class Method(_Compiled):
    """A compiled method of an object. Calling it runs its graph, with the object as the first argument.

    Example:
        >>> net = rekindle.script(torch.nn.ReLU())
        >>> isinstance(net.forward, rekindle.Method)
        True
        >>> net.forward(torch.tensor([-1.0, 1.0]))
        tensor([0., 1.])
    """

    __slots__ = ("_record", "owner")

    def __init__(self, owner: Any, record: GraphFunction) -> None:
        self.owner = owner
        self._record = record

    @property
    def __name__(self) -> str:
        return self._record.basename

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        return self._record.docstring

    @property
    def __signature__(self) -> inspect.Signature:
        return signature_of(self.schema, skip=1)

    @skipped_by_dynamo
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return call(self._record, (self.owner, *args), kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> Method:
        """Return a method of a deep copy of its object, as Python copies methods."""
        return type(self)(copy.deepcopy(self.owner, memo), self._record)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle as a method of its object, which is pickled with it."""
        return getattr, (self.owner, self.name)

    def launch(self, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Start a call on another thread, and return the future of its result.

        Raises:
            ArgumentError: the arguments do not fit the schema.
        """
        return launch(self._record, (self.owner, *args), kwargs)

    def graph_for(self, /, *args: Any, **kwargs: Any) -> Graph:
        """Return the graph that a call with these arguments would run. The method is not called.

        Raises:
            ArgumentError: the arguments do not fit the schema.
        """
        return graph_for(self._record, (self.owner, *args), kwargs)

    def compile(self, /, *args: Any, **kwargs: Any) -> None:
        """Optimize for calls with such arguments now, not in the first of them. The method is not called.

        Raises:
            ArgumentError: the arguments do not fit the schema.
        """
        compile(self._record, (self.owner, *args), kwargs)

    def __repr__(self) -> str:
        return f"<compiled method {self.qualified_name}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Method) and other.owner is self.owner and other._record is self._record

    def __hash__(self) -> int:
        return hash((id(self.owner), id(self._record)))


class Overloaded:
    """A function, or a method of ``owner``, that was compiled once for each of its declared overloads.

    A call runs the first overload that the arguments fit. It raises ArgumentError if they fit none.
    """

    __slots__ = ("_records", "owner")

    def __init__(self, records: Sequence[GraphFunction], owner: Any = None) -> None:
        self._records = tuple(records)
        self.owner = owner

    @property
    def overloads(self) -> list[Function | Method]:
        """The overloads, each as a function or a method of its own."""
        if self.owner is None:
            return [Function(record) for record in self._records]
        return [Method(self.owner, record) for record in self._records]

    @skipped_by_dynamo
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if interceptors or late_hooks:
            with torch._C.DisableTorchFunction():  # or a recording would observe the comparison with the schemas
                record, _ = self._bound(args, kwargs)
            return call(record, args if self.owner is None else (self.owner, *args), kwargs)
        record, bound = self._bound(args, kwargs)
        return binder_of(record).result(execute(record, bound))

    def fitting(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Function | Method:
        """Return the overload that a call with these arguments runs: the first that accepts them.

        Raises:
            ArgumentError: the arguments fit none of the overloads.
        """
        record, _ = self._bound(args, kwargs)
        return Function(record) if self.owner is None else Method(self.owner, record)

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[GraphFunction, Sequence[Any]]:
        reasons: list[str] = []
        for record in self._records:
            record.ensure_defined()
            record.takes_tensors_as_numbers = False  # an overload for Tensors may follow one for numbers
            try:
                return record, binder_of(record).bind(args if self.owner is None else (self.owner, *args), kwargs)
            except ArgumentError as error:
                reasons.append(str(error))
        raise ArgumentError("the arguments fit none of the overloads:\n" + "\n".join(reasons))

    def __repr__(self) -> str:
        return f"<compiled overloads {', '.join(record.name for record in self._records)}>"


def signature_of(schema: FunctionSchema, skip: int = 0) -> inspect.Signature:
    """Return a schema as Python's signature, with annotations, without the first ``skip`` parameters. The return
    annotation is the type of the first result."""
    parameters = [
        inspect.Parameter(
            argument.name,
            inspect.Parameter.KEYWORD_ONLY if argument.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=argument.default if argument.has_default else inspect.Parameter.empty,
            annotation=argument.type.annotation,
        )
        for argument in schema.arguments[skip:]
    ]
    result = schema.returns[0].type.annotation if schema.returns else "None"
    return inspect.Signature(parameters, return_annotation=result)
