"""``rekindle.stages``: the graph of a program after each pass."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rekindle.api.drop_in.entry_points import entry_point_of
from rekindle.errors import UNKNOWN_RANGE
from rekindle.errors.html_output import details, diff, listing
from rekindle.frontend.recursion_limit import room_to_recurse
from rekindle.ir.graph import Graph
from rekindle.ir.text.printer import print_graph
from rekindle.passes import Pass
from rekindle.rewriting.changes import ChangeCounter
from rekindle.runtime.executor import pipeline_of_calls
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.optimization import optimize
from rekindle.runtime.pipelines import OPTIMIZATION
from rekindle.runtime.plans.plan import ExecutionPlan
from rekindle.runtime.plans.plan_text import plan_text
from rekindle.runtime.plans.python_code import NotCompilable

COMPILED = "compiled"
"""The name of the stage before the first pass."""


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A graph as it is after one pass."""

    name: str
    """Name of the pass; ``compiled`` before the first pass."""
    graph: Graph
    """A copy of the graph, whose values are renumbered."""
    text: str
    """The graph as text, without source locations, which ``str(stage.graph)`` includes. A value keeps its number from
    stage to stage."""
    diff: str
    """The difference from the text of the stage before, as ``diff -u`` prints it; empty if there is none."""
    changes: int
    """Number of changes, including those of nested passes."""

    @property
    def python(self) -> str | None:
        """The graph as self-contained Python that defines ``plan``; None if only the interpreter can run the graph, as
        with forks. A comment marks functions that Python cannot import by name: only :attr:`function` can call these.
        """
        plan = self._plan()
        return None if plan is None else plan_text(plan)

    @property
    def function(self) -> Any:
        """The function ``plan`` of :attr:`python`, which takes the values of the graph's inputs; None if :attr:`python`
        is None."""
        plan = self._plan()
        return None if plan is None else plan.function

    def _plan(self) -> ExecutionPlan | None:
        try:
            with room_to_recurse(UNKNOWN_RANGE):
                return ExecutionPlan(Code(self.graph, self.name))
        except NotCompilable:
            return None

    def __str__(self) -> str:
        return f"# {_title(self)}\n{self.text}"

    def _repr_html_(self) -> str:
        return details(_title(self), listing(self.text), is_open=True)


class Stages(tuple[Stage, ...]):
    """The stages of a graph, in order. ``str()`` shows the first graph, and what each pass changed."""

    __slots__ = ()

    def __str__(self) -> str:
        first, *others = self
        return "\n".join([str(first), *(f"# {_title(stage)}\n{stage.diff}" for stage in others)])

    def _repr_html_(self) -> str:
        """Return HTML: the first stage, the changes of each pass that made some, and, if one did, the last stage."""
        changed = [details(_title(stage), diff(stage.diff)) for stage in self[1:] if stage.diff]
        last = [details(f"after all {len(self) - 1} passes", listing(self[-1].text), is_open=True)] if changed else []
        return "".join([self[0]._repr_html_(), *changed, *last])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the object in IPython on a terminal."""
        printer.text(str(self))


def stages(f: Any, /, *args: Any, **kwargs: Any) -> Stages:
    """Return the graph of ``f`` after each pass that runs on it before a call with these arguments. ``f`` is not
    called.

    Without arguments, the passes are those for any arguments. Limits set by ``PYTORCH_JIT_OPT_LIMIT`` do not apply.

    Args:
        f: a function, a method or a module, compiled or not.
        args, kwargs: the arguments of one call, as they would be passed to ``f``: not in a tuple.

    Returns:
        A tuple of stages with ``name``, ``graph``, ``text``, ``diff`` and ``changes``. ``str()`` shows the first, and
        what each pass changed.

    Raises:
        ArgumentError: there are arguments, and they do not fit.
        CompileError, NotScriptableError: ``f`` cannot be compiled.
        TypeError: ``f`` is an overloaded function, or a class.

    Example:
        >>> stages = rekindle.stages(lambda x: (x + 0) * 1, torch.ones(2))
        >>> stages[0].name
        'compiled'
        >>> print(stages[-1].text)
        graph(%x.1 : Tensor):
          ...
    """
    subject = entry_point_of(f)
    passes = pipeline_of_calls(subject.record, subject.bind(args, kwargs)) if args or kwargs else OPTIMIZATION
    with room_to_recurse(UNKNOWN_RANGE):
        return stages_of(subject.record.graph, passes)


def stages_of(graph: Graph, passes: Iterable[Pass]) -> Stages:
    """Return the stages of a copy of ``graph``: the graph before ``passes``, and after each of them."""
    graph = graph.copy()
    found = [Stage(COMPILED, graph.copy(), print_graph(graph, ranges=False), "", 0)]
    log = ChangeCounter()
    counted = 0

    def note(each: Pass, graph: Graph, changed: bool) -> None:
        nonlocal counted
        text = print_graph(graph, ranges=False)
        total = sum(log.counts.values())
        found.append(Stage(each.name, graph.copy(), text, _diff(found[-1], each.name, text), total - counted))
        counted = total

    optimize(graph, passes, changes=log, observe=note)
    return Stages(found)


def _diff(before: Stage, name: str, text: str) -> str:
    lines = difflib.unified_diff(before.text.splitlines(), text.splitlines(), before.name, name, lineterm="", n=2)
    return "".join(f"{line}\n" for line in lines)


def _title(stage: Stage) -> str:
    if stage.name == COMPILED:
        return COMPILED
    return f"{stage.name}: {stage.changes or 'no'} change{'' if stage.changes == 1 else 's'}"
