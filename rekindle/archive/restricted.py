"""``__setstate__`` of a program's classes, which runs while an archive is loaded: in this package's interpreter, with
operators that reach neither files nor the system, and for a bounded time.

The method is inlined into one graph first, so that everything that it may do stands there to be looked at. Each turn of
a loop then counts.
"""

from __future__ import annotations

import threading
from typing import Final

from rekindle.archive.limits import ArchiveLimits
from rekindle.errors import ArchiveLimitError, RekindleError, UnsafeArchiveError
from rekindle.ir.graph import Graph
from rekindle.ir.records import FunctionRecord
from rekindle.ir.registry import Effects
from rekindle.ops.declare import implements
from rekindle.program.calling import inlined
from rekindle.runtime.executor import execute

_REFUSED: Final = frozenset(
    {
        *("aten::save", "aten::from_file", "prim::Print", "archive::Print", "aten::manual_seed"),
        *("prim::fork", "prim::awaitable", "prim::PythonOp", "prim::CallFunction", "prim::CallMethod"),
        *("aten::set_num_threads", "aten::_set_num_threads", "prim::SetNumThreads", "aten::set_grad_enabled"),
    }
)
"""Operators that reach beyond the object that is made, or that hide what they run."""

_ALLOWED_NAMESPACES: Final = frozenset({"aten", "prim", "archive", "quantized", "sparse", "rnn"})
"""Namespaces of PyTorch's own operators: those of libraries may do anything."""


class _Budget(threading.local):
    left = 0


_budget = _Budget()


@implements("archive::count() -> ()", effects=Effects.CONSERVATIVE, side_effects=True)
def count() -> None:
    """One turn of a loop.

    Raises:
        ArchiveLimitError: there were too many.
    """
    _budget.left -= 1
    if _budget.left < 0:
        raise ArchiveLimitError(
            "'__setstate__' takes too many steps.",
            hint="If you trust this file, raise the limit: limits=rekindle.ArchiveLimits(steps=…).",
        )


class StateSetter:
    """Runs the methods ``__setstate__`` of one archive."""

    def __init__(self, limits: ArchiveLimits, allowed: bool) -> None:
        self._left = limits.steps
        self._allowed = allowed
        self._prepared: dict[int, FunctionRecord] = {}

    def run(self, method: FunctionRecord, target: object, state: object) -> None:
        """Call ``method`` with an object whose attributes it sets.

        Raises:
            UnsafeArchiveError: it may not run, or may do what loading never does.
            ArchiveLimitError: it takes too long.
            CompileError: it is no program.
        """
        if not self._allowed:
            raise UnsafeArchiveError(
                f"The archive holds an object that '{method.name}' would have to make.",
                hint="Load with allow_setstate=True if you trust this file: it runs in rekindle's interpreter, without "
                "access to files or the system.",
            )
        prepared = self._prepared.get(id(method))
        if prepared is None:
            prepared = self._prepared[id(method)] = _restricted(method)
        _budget.left = self._left
        try:
            execute(prepared, [target, state])
        except (RekindleError, MemoryError):
            raise
        except Exception as error:
            raise UnsafeArchiveError(f"'{method.name}' of the archive failed: {error}") from error
        finally:
            self._left = _budget.left


def _restricted(method: FunctionRecord) -> FunctionRecord:
    graph = inlined(method)
    _check(graph, method.name)
    for node in list(graph.all_nodes()):
        if node.kind == "prim::Loop":
            node.blocks[0].prepend(graph.create("archive::count", types=[]))
    record = FunctionRecord(method.name)
    record.define(graph, method.schema)
    return record


def _check(graph: Graph, name: str) -> None:
    """
    Raises:
        UnsafeArchiveError: the graph holds an operator that may not run.
    """
    for node in graph.all_nodes():
        if node.kind in _REFUSED or node.kind.partition("::")[0] not in _ALLOWED_NAMESPACES:
            raise UnsafeArchiveError(
                f"'{name}' calls '{node.kind}', which may not run while an archive is loaded.",
                hint="Do not trust this file, unless you know why it does that.",
            )
