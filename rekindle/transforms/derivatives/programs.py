"""Programs as transformations take them, and as they give them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rekindle.autodiff.functional import make_functional
from rekindle.errors import DifferentiationError, NotScriptableError
from rekindle.ir.graph import Graph
from rekindle.ir.records import FunctionRecord
from rekindle.ir.schema import Argument, FunctionSchema
from rekindle.passes import Inlining, RemoveMutation, run_passes
from rekindle.program.function import Function
from rekindle.runtime.pipelines import REQUIRED
from rekindle.scripting.script import script
from rekindle.transforms.derivatives.contexts import make_plain


@dataclass(slots=True)
class Program:
    """A graph that a transformation may change, with what its inputs are called. All calls in it are inlined."""

    name: str
    graph: Graph
    arguments: tuple[Argument, ...]

    def function(self, name: str, docstring: str) -> Function:
        """The graph as a function: ``arguments`` are its parameters."""
        (output,) = self.graph.outputs
        record = FunctionRecord(name, docstring=docstring)
        record.define(self.graph, FunctionSchema(record.basename, "", self.arguments, (Argument("", output.type),)))
        return Function(record)

    @property
    def basename(self) -> str:
        return self.name.rpartition(".")[2]


def program_of(function: Any) -> Program:
    """A copy of what ``function`` computes: a compiled function, or a Python function, which is compiled first.

    Raises:
        DifferentiationError: it is neither.
        CompileError: it cannot be compiled.
    """
    try:
        compiled = script(function)
    except NotScriptableError as error:
        if isinstance(function, type) or not callable(function):
            raise _not_a_function(function) from error
        raise
    if not isinstance(compiled, Function):
        raise _not_a_function(function)
    graph = compiled.graph.copy()
    run_passes(graph, (Inlining(),))
    make_plain(graph)
    run_passes(graph, (*REQUIRED, RemoveMutation()))
    make_functional(graph)
    run_passes(graph, REQUIRED)
    return Program(compiled.qualified_name, graph, compiled.schema.arguments)


def _not_a_function(what: object) -> DifferentiationError:
    return DifferentiationError(
        f"a value of class '{type(what).__name__}' is no function",
        hint="pass a function, or one compiled by rekindle.script or rekindle.trace",
    )


def numbers_of(argnums: int | Sequence[int], program: Program) -> tuple[int, ...]:
    """Which arguments of ``program`` are meant; negative numbers count from the end.

    Raises:
        DifferentiationError: there is no such argument, or one is named twice.
    """
    count = len(program.arguments)
    given = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    found = []
    for number in given:
        if not -count <= number < count:
            raise DifferentiationError(
                f"there is no argument {number}: '{program.basename}' takes {count}",
                hint=f"argnums counts from 0 to {count - 1}",
            )
        found.append(number % count)
    if not found or len(set(found)) != len(found):
        raise DifferentiationError(f"argnums={argnums!r} names {'no argument' if not found else 'an argument twice'}")
    return tuple(found)
