"""Programs as inputs and results of transformations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rekindle.autodiff.functionalization.programs import functionalize
from rekindle.errors import DifferentiationError, NotScriptableError
from rekindle.ir.graph import Graph, Value
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.passes import RemoveMutation, run_passes
from rekindle.program.function import Function
from rekindle.program.modules.module import ScriptModule
from rekindle.runtime.pipelines import REQUIRED
from rekindle.scripting.script import script
from rekindle.transforms.derivatives.lower_contexts import lower_contexts
from rekindle.transforms.derivatives.modules import function_of
from rekindle.transforms.derivatives.pytrees import Pytree, leaves
from rekindle.transforms.derivatives.scalar_replacement import scalar_replace_objects
from rekindle.transforms.indexing import inline_with_plain_indices
from rekindle.transforms.split_unions import split_unions


@dataclass(slots=True)
class Program:
    """A graph that a transform may change, with the names and types of its inputs. Calls in it are inlined, except of
    recursive functions and of interface methods whose object is not known."""

    name: str
    graph: Graph
    arguments: tuple[Argument, ...]
    entries: dict[int, Pytree] = field(default_factory=dict)
    """The entries of arguments that are dicts, where their keys are known."""

    def function(self, name: str, docstring: str) -> Function:
        """Return the graph as a function named ``name``, whose parameters are ``arguments``."""
        (output,) = self.graph.outputs
        record = GraphFunction(name, docstring=docstring)
        record.define(self.graph, FunctionSchema(record.basename, "", self.arguments, (Argument("", output.type),)))
        return Function(record)

    @property
    def basename(self) -> str:
        return self.name.rpartition(".")[2]


def program_of(function: Any) -> Program:
    """Return a copy of the graph of ``function``: a compiled function or module, or a Python one, which is compiled
    first. A module becomes a function of its parameters followed by the arguments of ``forward``.

    Raises:
        DifferentiationError: ``function`` is none of these, or has a construct without derivative, such as a write that
            cannot be functionalized.
        CompileError: ``function`` cannot be compiled.
    """
    try:
        compiled = script(function)
    except NotScriptableError as error:
        if isinstance(function, type) or not callable(function):
            raise _not_a_function(function) from error
        raise
    if isinstance(compiled, Function):
        graph = compiled._record.graph.copy()
        inline_with_plain_indices(graph)
        program = Program(compiled.qualified_name, graph, compiled.schema.arguments)
    elif isinstance(compiled, ScriptModule):
        name, graph, arguments, entries = function_of(compiled)
        program = Program(name, graph, arguments, {0: entries})
    else:
        raise _not_a_function(function)
    whole = split_unions(program.graph, program.name.rpartition(".")[2])
    if whole is not None:
        raise DifferentiationError(
            "no gradient goes through a list, dict or tuple that holds Tensors and numbers",
            whole.range,
            hint="hold Tensors alone: torch.tensor(number)",
        )
    _rewrite(program)
    return program


def _rewrite(program: Program) -> None:
    """Remove what has no derivative from the graph, in place: tasks, gradient contexts, objects that do not escape, and
    writes.

    Raises:
        DifferentiationError: one of these cannot be removed.
    """
    graph = program.graph
    lower_contexts(graph)
    scalar_replace_objects(graph)
    with kept(graph, [leaf for tree in program.entries.values() for leaf in leaves(tree)]):
        run_passes(graph, (*REQUIRED, RemoveMutation()))
        functionalize(graph)
        run_passes(graph, REQUIRED)


@contextmanager
def kept(graph: Graph, values: Sequence[Value]) -> Iterator[None]:
    """Make ``values`` outputs of ``graph`` within the ``with`` block, so that no pass removes them."""
    for value in values:
        graph.add_output(value)
    yield
    for _ in values:
        graph.block.erase_output(len(graph.outputs) - 1)


def _not_a_function(what: object) -> DifferentiationError:
    return DifferentiationError(
        f"a value of class '{type(what).__name__}' is not a function",
        hint="pass a function or a module, or one compiled by rekindle.script or rekindle.trace",
    )


def numbers_of(argnums: int | Sequence[int], program: Program) -> tuple[int, ...]:
    """Return the indices of the arguments that ``argnums`` selects; negative numbers count from the end.

    Raises:
        DifferentiationError: there is no such argument, none is named, or one is named twice.
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
