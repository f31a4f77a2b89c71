"""``rekindle.bisect``: find the one change of one pass, or the plan, that makes a result wrong."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rekindle.api.bisect_script import interpreted, planned, script_of
from rekindle.api.drop_in.entry_points import entry_point_of
from rekindle.api.reports.outcomes import Outcome, outcome_of, same_outcome
from rekindle.errors import UNKNOWN_RANGE, RekindleError
from rekindle.frontend.recursion_limit import room_to_recurse
from rekindle.ir.graph import Graph, Node
from rekindle.ir.text.printer import print_graph, print_head
from rekindle.ir.verifier import verify
from rekindle.passes import Pass, PassManager
from rekindle.rewriting.changes import ChangeCounter
from rekindle.runtime.executor import pipeline_of_calls
from rekindle.runtime.user_passes import UserPasses

Same = Callable[[Outcome, Outcome], bool]

PLAN: Final = "plan"


@dataclass(frozen=True, slots=True)
class Culprit:
    """A change by a pass, or the execution plan, that makes the outcome of a call wrong."""

    pass_name: str
    """Name of the pass. ``plan`` if the optimized graph is right in the interpreter, but wrong in the execution plan
    that calls run."""
    number: int
    """Index of the change among those of this pass to this graph, from 1. 0 if the pass does not count its changes, so
    that they cannot be distinguished, and for the plan."""
    change: str
    """The change, and the node that was changed: ``fold %3 : int = aten::add(%1, %2)``."""
    before: str
    after: str
    """The graph on both sides of the change, as text. For the plan, both are the optimized graph."""
    right: Outcome
    wrong: Outcome
    """The outcomes of the call with the graphs ``before`` and ``after``."""
    limit: str
    """The value of ``PYTORCH_JIT_OPT_LIMIT`` with which this is the last change to the graph; empty if the pass does
    not count its changes. For the plan, the value that permits all changes."""
    script: str | None = field(default=None, repr=False)
    """A program that runs both graphs. None if an argument, such as an object, has no literal form, or if the graphs'
    texts do not reproduce the difference."""

    def __str__(self) -> str:
        which = f"change {self.number} of the pass" if self.number else "the pass"
        what = f"{which} '{self.pass_name}'" if self.pass_name != PLAN else "the plan"
        return (
            f"{what} changes the result: {self.change}\n\n"
            f"# before: {self.right}\n{self.before}\n# after: {self.wrong}\n{self.after}"
        )


def bisect(
    f: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    passes: Sequence[Pass] | None = None,
    same: Same = same_outcome,
    script: str | os.PathLike[str] | None = None,
) -> Culprit | None:
    """Find the change to the graph of ``f`` after which a call with ``args`` has another outcome. Return None if all
    passes together do not change the outcome, and the plan that calls run does not either.

    Without ``passes``, the passes are those that run before a call with these arguments. Fused groups run their kernels
    from the first call on. ``f`` is called on copies of the arguments many times: binary search over the changes.

    Args:
        f: a function, a method or a module, compiled or not.
        args: a tuple of the positional arguments of the call.
        kwargs: a dict of its arguments by name.
        passes: the passes to search.
        same: compares two outcomes. An outcome is the result or the error, and the written arguments.
        script: a path. If a change is found, a program that shows the difference is written there.

    Raises:
        ArgumentError: the arguments do not fit.
        CompileError, NotScriptableError: ``f`` cannot be compiled.
        TypeError: ``f`` is an overloaded function, or a class.
        ValueError: ``script`` is given and there is a change, but it cannot be written as a program; see
            ``Culprit.script``.

    Example:
        >>> print(rekindle.bisect(lambda x: x * 2, (torch.ones(2),)))
        None
    """
    subject = entry_point_of(f)
    arguments = subject.bind(args, kwargs or {})
    chosen = passes
    if chosen is None:
        pipeline = pipeline_of_calls(subject.record, arguments)
        chosen = [one for each in pipeline for one in (each.added if isinstance(each, UserPasses) else (each,))]
    search = _Search(subject.record.graph, arguments, chosen, same)
    with room_to_recurse(UNKNOWN_RANGE):
        culprit = search.run()
    if culprit is not None and script is not None:
        if culprit.script is None:
            raise ValueError(f"no program can show this: its graph or its arguments have no text\n{culprit}")
        Path(script).write_text(culprit.script, encoding="utf-8")
    return culprit


@dataclass(slots=True)
class _Stopping(ChangeCounter):
    """Counter of changes that permits the first ``most`` changes, by any pass, and stores the last of them in ``last``.

    If ``most`` is None, all changes are permitted, and ``last`` stays empty.
    """

    most: int | None = None
    total: int = 0
    last: tuple[str, str] = ("", "")
    """The name of the pass, and the change that it made."""

    def may_change(self, name: str, what: str, subject: object) -> bool:
        if self.total == self.most:
            return False
        self.total += 1
        self.counts[name] = self.counts.get(name, 0) + 1
        if self.total == self.most:
            self.last = name, f"{what} {print_head(subject) if isinstance(subject, Node) else repr(subject)}"
        return True


@dataclass(slots=True)
class _Trial:
    """A graph after a number of changes by passes, the log of the changes, and the outcome of a call."""

    graph: Graph
    log: _Stopping
    answer: Outcome

    @property
    def text(self) -> str:
        return print_graph(self.graph, ranges=False)


@dataclass(slots=True)
class _Search:
    graph: Graph
    arguments: Sequence[Any]
    passes: Sequence[Pass]
    same: Same

    def run(self) -> Culprit | None:
        right = self._try((), None)
        full = self._try(self.passes, None)
        if self.same(right.answer, full.answer):
            return self._of_the_plan(full)
        none = self._try(self.passes, 0)
        if not self.same(right.answer, none.answer):
            return self._unasked(right)
        low, high = none, self._try(self.passes, full.log.total)
        if self.same(right.answer, high.answer):
            return self._unasked(right)
        below, above = 0, full.log.total
        while above - below > 1:
            middle = (below + above) // 2
            trial = self._try(self.passes, middle)
            if self.same(right.answer, trial.answer):
                below, low = middle, trial
            else:
                above, high = middle, trial
        name, change = high.log.last
        counts = {each: high.log.counts.get(each, 0) for each in full.log.counts}
        return self._culprit(low, high, name, counts, change)

    def _try(self, passes: Sequence[Pass], most: int | None) -> _Trial:
        graph = self.graph.copy()
        log = _Stopping(most=most)
        try:
            PassManager(verify, changes=log).run(graph, passes)
        except RekindleError as error:
            return _Trial(graph, log, Outcome(error=error))
        return _Trial(graph, log, outcome_of(interpreted(graph), self.arguments))

    def _of_the_plan(self, full: _Trial) -> Culprit | None:
        """Return the culprit if the plan that calls run has another outcome than the interpreter; else None."""
        answer = outcome_of(planned(full.graph), self.arguments)
        if self.same(full.answer, answer):
            return None
        wrong = _Trial(full.graph, full.log, answer)
        return self._culprit(full, wrong, PLAN, full.log.counts, "the graph as Python")

    def _unasked(self, right: _Trial) -> Culprit:
        """Return the culprit among passes that do not count their changes: the first pass with another outcome than
        ``right``, the trial without passes.

        Raises:
            AssertionError: no pass has another outcome.
        """
        low = right
        for index, each in enumerate(self.passes):
            high = self._try(self.passes[: index + 1], 0)
            if not self.same(right.answer, high.answer):
                return self._culprit(low, high, each.name, {}, "all that it does, as it does not count its changes")
            low = high
        raise AssertionError("the passes change the answer, and none of them does")

    def _culprit(self, low: _Trial, high: _Trial, name: str, counts: Mapping[str, int], change: str) -> Culprit:
        number = counts.get(name, 0)
        by_plan = name == PLAN
        which = "The plan" if by_plan else f"{f'Change {number} of the' if number else 'The'} pass '{name}'"
        return Culprit(
            name,
            number,
            change,
            low.text,
            high.text,
            low.answer,
            high.answer,
            ":".join(f"{each}={count}" for each, count in counts.items()),
            script_of(
                f"{which} changes the result: {change}",
                low.graph,
                high.graph,
                self.arguments,
                lambda before, after: self.same(before, low.answer) and self._is_as_wrong(after, high.answer),
                by_plan=by_plan,
            ),
        )

    def _is_as_wrong(self, answer: Outcome, wrong: Outcome) -> bool:
        """Return whether ``answer``, the outcome of running a graph's text, is wrong in the same way as ``wrong``, the
        outcome of the graph itself. If ``wrong`` is an error of this package, any error of this package counts."""
        if isinstance(wrong.error, RekindleError):
            return isinstance(answer.error, RekindleError)
        return self.same(answer, wrong)
