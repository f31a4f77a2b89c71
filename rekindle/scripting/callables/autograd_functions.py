"""``torch.autograd.Function``: its ``apply`` is a call of Python, so that gradients are what its author wrote.

What ``forward`` does can be compiled, but its derivative is not what ``backward`` computes; only autograd knows that.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import torch

from rekindle.errors import SourceRange, UnsupportedError
from rekindle.frontend.sugared_values.base import CallSite, Keywords, StaticValue, SugaredValue
from rekindle.frontend.sugared_values.functions import SugaredFunction
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.graph import Graph, Value
from rekindle.ir.scalar_types import DTYPES
from rekindle.ir.types import TENSOR, TupleType, Type
from rekindle.scripting.annotations import annotations_of, find_type
from rekindle.scripting.library_values.python_objects import PythonObject
from rekindle.scripting.resolver import PythonResolver

_GIVEN: Final = object()
"""Marks an argument that the program computes, in a list of the arguments that are fixed."""


def function_class_of(obj: object) -> type[torch.autograd.Function] | None:
    """Return the ``torch.autograd.Function`` subclass whose ``apply`` is ``obj``; None for other objects."""
    if not isinstance(obj, (types.MethodType, types.BuiltinMethodType)) or obj.__name__ != "apply":
        return None  # since PyTorch 2.15 ``apply`` is not a Python function
    owner = obj.__self__
    return owner if isinstance(owner, type) and issubclass(owner, torch.autograd.Function) else None


class AppliedFunction(SugaredFunction, StaticValue):
    """``F.apply`` of a subclass ``F`` of ``torch.autograd.Function``."""

    def __init__(self, cls: type[torch.autograd.Function], resolver: PythonResolver) -> None:
        self.cls = cls
        self.resolver = resolver

    @property
    def identity(self) -> type:
        return self.cls

    @property
    def description(self) -> str:
        return f"the autograd function '{self.cls.__name__}'"

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        if kwargs:
            raise self._refuse_names(range)
        known: list[object] = []
        inputs: list[Value] = []
        for item in args:
            python = _python_object(item)
            known.append(python)
            if python is _GIVEN:
                inputs.append(item.as_value(range, graph))
        result = self._result(range, targets)
        node = graph.create("prim::PythonOp", inputs, types=[result], range=range)
        node.attributes["name"] = f"{self.cls.__name__}.apply"
        node.attributes["function"] = ConstantObject(Application(self.cls, tuple(known)))
        return SimpleValue(graph.insert_node(node).output)

    def _refuse_names(self, range: SourceRange) -> UnsupportedError:
        return UnsupportedError(f"{self.description} takes no arguments by name", range, hint="give them by position")

    def _result(self, range: SourceRange, targets: int) -> Type:
        """Return the result type of ``forward``: its annotation. Without one, return as many tensors as its ``return``
        statements have; if the source does not determine that number, as many as the call has ``targets``, at least
        one."""
        annotation = annotations_of(self.cls.forward).get("return")
        declared = None if annotation is None else find_type(annotation, range, self.resolver)
        if declared is not None:
            return declared
        count = _returned(self.cls.forward)
        if count is None:
            count = max(1, targets)
        return TENSOR if count == 1 else TupleType((TENSOR,) * count)


class Application:
    """A callable that calls ``apply`` of an autograd function with some arguments fixed. It converts the numbers by
    which programs represent dtypes."""

    way_out = "its gradient is Python's; for an archive, write what forward does as a function"
    """Hint of saving about a program that calls it."""

    def __init__(self, cls: type[torch.autograd.Function], known: tuple[object, ...]) -> None:
        self.cls = cls
        self.known = known
        self.dtypes = frozenset(_dtype_places(cls))
        self.__qualname__ = self.__name__ = f"{cls.__name__}.apply"

    def __call__(self, *args: Any) -> Any:
        given = iter(args)
        filled = [next(given) if item is _GIVEN else item for item in self.known]
        for place in self.dtypes:
            number = filled[place] if place < len(filled) else None
            if isinstance(number, int):
                filled[place] = DTYPES[number]
        return self.cls.apply(*filled)


def _python_object(item: SugaredValue) -> object:
    """Return the Python object of an argument that is not a value of the graph; :data:`_GIVEN` for a value of the
    graph."""
    if isinstance(item, PythonObject):
        return item.obj
    found = getattr(item, "function", None)  # a function that would be compiled where the program called it
    return found if isinstance(item, StaticValue) and isinstance(found, types.FunctionType) else _GIVEN


def _dtype_places(cls: type[torch.autograd.Function]) -> list[int]:
    """Return the positions of the arguments of ``apply`` that are dtypes, according to the names and annotations of
    ``forward``."""
    names = list(inspect.signature(cls.forward).parameters.values())
    if cls.setup_context is torch.autograd.Function.setup_context:
        names = names[1:]  # ctx comes first
    return [
        place
        for place, item in enumerate(names)
        if item.name == "dtype" or item.annotation in (torch.dtype, "torch.dtype")
    ]


@lru_cache(maxsize=256)
def _returned(forward: Any) -> int | None:
    """Return the number of values that ``forward`` returns according to its source: 1, or the length of the returned
    tuples, at least 2. Return None if the source does not determine it."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(forward))).body[0]
    except (OSError, TypeError, SyntaxError):
        return None
    own = _own_returns(tree)
    counts = {len(item.elts) if isinstance(item, ast.Tuple) else 0 for item in own}
    if len(counts) != 1:
        return None
    (count,) = counts
    if count:
        return count if count > 1 else None
    # What is computed, such as x + y, is one Tensor; a name or a call may be a tuple.
    return None if any(isinstance(item, (ast.Name, ast.Call, ast.IfExp)) for item in own) else 1


def _own_returns(tree: ast.AST) -> list[ast.expr]:
    """Return the returned expressions of a function, in no particular order, without those of inner functions."""
    found: list[ast.expr] = []
    waiting = list(ast.iter_child_nodes(tree))
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        if isinstance(node, ast.Return) and node.value is not None:
            found.append(node.value)
        waiting.extend(ast.iter_child_nodes(node))
    return found


class FunctionClass(StaticValue):
    """A subclass of ``torch.autograd.Function``. Programs use its ``apply``; its other attributes are read at compile
    time."""

    def __init__(self, cls: type[torch.autograd.Function], resolver: PythonResolver) -> None:
        self.cls = cls
        self.resolver = resolver

    @property
    def identity(self) -> type:
        return self.cls

    @property
    def description(self) -> str:
        return f"the autograd function '{self.cls.__name__}'"

    def python_class(self, range: SourceRange) -> type | None:
        return self.cls

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        if name == "apply":
            return AppliedFunction(self.cls, self.resolver)
        return PythonObject(self.cls, self.cls.__name__, self.resolver).attribute(range, graph, name)

    def call(self, call: CallSite) -> SugaredValue:
        raise UnsupportedError(f"no objects of {self.description} are made", call.range, hint="call its apply")
