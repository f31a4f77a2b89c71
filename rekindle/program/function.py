"""A compiled function as a user holds it."""

from __future__ import annotations

import inspect
from typing import Any, NoReturn

from rekindle.ir.graph import Graph
from rekindle.ir.records import FunctionRecord
from rekindle.ir.schema import FunctionSchema


class Function:
    """A compiled function. Calling it runs its graph.

    ``__wrapped__`` is the Python function that it was made from, where there is one.
    """

    def __init__(self, record: FunctionRecord, python: Any = None) -> None:
        self._record = record
        self.__name__ = record.basename
        self.__qualname__ = record.basename
        self.__doc__ = record.docstring
        if python is not None:
            self.__wrapped__ = python
            self.__module__ = python.__module__
            self.__qualname__ = python.__qualname__
            self.__doc__ = python.__doc__

    @property
    def name(self) -> str:
        return self._record.basename

    @property
    def qualified_name(self) -> str:
        """The name with what it is qualified with: ``__torch__.package.module.function``."""
        return self._record.name

    @property
    def schema(self) -> FunctionSchema:
        return self._record.schema

    @property
    def graph(self) -> Graph:
        """The graph of the function, in which calls of other functions are still calls."""
        return self._record.graph

    @property
    def inlined_graph(self) -> Graph:
        """A copy of the graph with every call replaced by what it calls."""
        raise NotImplementedError

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"the compiled function '{self.name}' cannot be pickled; pickle the Python function instead")

    def __copy__(self) -> Function:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Function:
        # A function never changes.
        return self

    def __repr__(self) -> str:
        return f"<compiled function {self.qualified_name}>"
