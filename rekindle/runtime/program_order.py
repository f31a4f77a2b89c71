"""Errors of optimized calls: where in the program they occur, and which one a call raises if several operators would.

Passes move operators on tensors past a ``raise`` of the program, since fusion gathers them into kernels::

    y = torch.sigmoid(x)                            y, z = sigmoid_mul(x, t)      # raises for sizes that differ
    if y.size() != t.size():                        if y.size() != t.size():
        raise ValueError("sizes differ")   becomes      raise ValueError("sizes differ")
    z = y * t

Only a call that raises shows a difference. So nothing is spent on calls that return: once an operator has raised an
error, the program runs again as it was written, in the interpreter, up to its first error, and that error is raised.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Final

import torch

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.analysis.effects import has_side_effects, is_nondeterministic
from rekindle.autodiff.reverse_mode.tape import is_recomputable
from rekindle.ir.graph import Graph, Node
from rekindle.ir.graph_function import GraphFunction
from rekindle.ops.python.exceptions import EXCEPTION_CLASSES
from rekindle.passes import Inlining
from rekindle.runtime.calls.subscript_errors import word_as_python_does
from rekindle.runtime.calls.tracebacks import foreign_frames, traceback_through
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.state import InterpreterState, places_of
from rekindle.runtime.plans.running_plan import running_plan

_RAISE: Final = "prim::RaiseException"
_OUTPUT: Final = frozenset({"prim::Print", "aten::warn"})
"""Kinds whose effects no node of a program observes."""
_RESOURCES: Final = (MemoryError, RecursionError, torch.OutOfMemoryError)
"""Errors that do not depend on the arguments alone."""


class _Effect(Exception):
    """Exception that stops a repeated call before an effect."""


_EFFECT: Final = f"{__name__}.{_Effect.__name__}"
EXCEPTION_CLASSES[_EFFECT] = _Effect


def origin_of(error: BaseException) -> tuple[TracebackType | None, Node | None]:
    """Return the traceback of an error that a version of a function has raised: the positions in the program that it
    passed, then the Python frames below, None if there is none of either; and the node that raised the error, if a plan
    ran it. Errors of subscripts get Python's message."""
    failed = running_plan(error.__traceback__)
    tail = foreign_frames(error.__traceback__)
    if failed is None:
        return tail, None
    code, index, function = failed
    node = code.instructions[index].node
    word_as_python_does(error, node)
    del error  # the frames of the traceback know this one, which must not know the error
    return traceback_through(places_of(code, index, function), tail), node


def first_error(
    record: GraphFunction, version: Graph, failed: Node, error: BaseException, arguments: Sequence[object]
) -> BaseException:
    """Return the error that a call raises in program order.

    Args:
        record: the function that was called.
        version: the optimized graph that ran, and raised ``error`` at the node ``failed``.
        arguments: the arguments of the call.

    Returns:
        ``error`` itself, if ``failed`` is a ``raise`` of the program, if ``error`` depends on memory or recursion or is
        not an Exception, if the program has no ``raise``, if its effects forbid to run it again, or if it does not fail
        again before its first effect.
    """
    if failed.kind == _RAISE or not isinstance(error, Exception) or isinstance(error, _RESOURCES):
        return error
    program = record.graph.copy()
    Inlining().run(program)
    if all(node.kind != _RAISE for node in program.all_nodes()) or not _is_repeatable(version):
        return error
    _stop_before_effects(program)
    # Hooks for saved tensors would be called again: they may count the tensors, or end a run by an exception of theirs.
    records = torch.is_grad_enabled() and torch._C._autograd._top_saved_tensors_default_hooks(False) is None
    try:
        with torch.set_grad_enabled(records):
            InterpreterState(Code(program, record.name)).run(arguments)
    except _Effect:
        return error
    except Exception as first:
        return first
    return error


def _is_repeatable(graph: Graph) -> bool:
    """Return whether a call that ``graph`` ran may run again: it writes to no memory that outlives the call, has no
    effects but output, and draws no random numbers."""
    for node in graph.all_nodes():
        if node.kind == _RAISE or node.kind in _OUTPUT or node.blocks:
            continue
        if has_side_effects(node) or (is_nondeterministic(node) and not is_recomputable(node)):
            return False
    aliases = AliasDb(graph)
    return not aliases.written & aliases.outliving_memory


def _stop_before_effects(program: Graph) -> None:
    """Insert a ``raise`` of :class:`_Effect` before each node with an effect other than an error."""
    for node in list(program.all_nodes()):
        if node.kind != _RAISE and has_side_effects(node):
            with program.inserting_before(node):
                message, name = program.insert_constant(""), program.insert_constant(_EFFECT)
                program.insert_node(program.create(_RAISE, [message, name], types=[]))
