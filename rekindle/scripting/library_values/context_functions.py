"""Functions of PyTorch that ``contextlib.contextmanager`` made, within a program: ``with cudnn.flags(…): …``"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, Final

import torch
import torch.backends.mkldnn
import torch.cuda.nvtx
import torch.nn.attention

from rekindle.errors import SourceRange
from rekindle.frontend.sugared_values.base import Keywords, StaticValue, SugaredValue
from rekindle.frontend.sugared_values.functions import SugaredFunction
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.types import ANY, NONE, ClassType
from rekindle.program.names import qualified_name
from rekindle.scripting.library_values.python_objects import PythonObject


def declared_method(type: ClassType, name: str) -> GraphFunction:
    """Return a method with a schema and no graph: Python implements it, and programs call it only in ``with``
    statements."""
    record = GraphFunction(f"{type.name}.{name}")
    arguments = [Argument("self", type)]
    if name == "__exit__":
        arguments += [Argument(part, ANY) for part in ("type", "value", "traceback")]
    result = Argument("", NONE if name == "__exit__" else ANY)
    record.declare(FunctionSchema(name, "", tuple(arguments), (result,)))
    return record


@cache
def _type_of_managers() -> ClassType:
    """Return the type of the context managers that such functions return."""
    cls = contextlib._GeneratorContextManager
    found = ClassType(qualified_name(cls), python_class=cls)
    found.methods |= {name: declared_method(found, name) for name in ("__enter__", "__exit__")}
    return found


class ContextFunction(SugaredFunction, StaticValue):
    """A function of PyTorch that ``contextlib.contextmanager`` made. A program creates the context manager by calling
    Python. Archives cannot hold it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    @property
    def description(self) -> str:
        return f"the function '{self.function.__name__}'"

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        given = [*args, *kwargs.values()]
        held = {index: item.obj for index, item in enumerate(given) if isinstance(item, PythonObject)}
        inputs = [item.as_value(range, graph) for index, item in enumerate(given) if index not in held]
        node = graph.create("prim::PythonOp", inputs, types=[_type_of_managers()], range=range)
        node.attributes["name"] = self.function.__name__
        node.attributes["function"] = ConstantObject(_HeldArguments(self.function, len(args), tuple(kwargs), held))
        return SimpleValue(graph.insert_node(node).output)


class _HeldArguments:
    """A callable that calls ``function`` with some arguments fixed to Python objects, by their index in ``held``.
    Arguments from number ``positional`` on are passed by name."""

    def __init__(
        self, function: Callable[..., Any], positional: int, names: tuple[str, ...], held: dict[int, object]
    ) -> None:
        self.function = function
        self.positional = positional
        self.names = names
        self.held = held
        self.__qualname__ = self.__name__ = function.__name__

    def __call__(self, *args: Any) -> Any:
        rest = iter(args)
        count = self.positional + len(self.names)
        whole = [self.held[index] if index in self.held else next(rest) for index in range(count)]
        return self.function(*whole[: self.positional], **dict(zip(self.names, whole[self.positional :], strict=True)))


_FUNCTIONS: Final = (
    *("backends.cudnn.flags", "backends.mkldnn.flags", "nn.attention.sdpa_kernel", "cuda.nvtx.range"),
    "random.fork_rng",
)

CONTEXT_FUNCTIONS: Final[dict[int, SugaredValue]] = {
    id(function): ContextFunction(function) for function in (attrgetter(name)(torch) for name in _FUNCTIONS)
}
"""Sugared values of functions, by identity."""


def creator_of(manager: object) -> ContextFunction | None:
    """Return a function without parameters that creates context managers equal to ``manager``; None if ``manager`` was
    not created by a function in :data:`CONTEXT_FUNCTIONS`."""
    if not isinstance(manager, contextlib._GeneratorContextManager):
        return None
    functions = (attrgetter(name)(torch) for name in _FUNCTIONS)
    function = next((each for each in functions if inspect.unwrap(each) is manager.func), None)
    if function is None:
        return None
    values = (*manager.args, *manager.kwds.values())
    return ContextFunction(_HeldArguments(function, len(manager.args), tuple(manager.kwds), dict(enumerate(values))))
