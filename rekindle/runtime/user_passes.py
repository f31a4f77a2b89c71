"""Passes that users add to the pipelines, by name and with options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, Final, Literal

import rekindle.passes
from rekindle.errors import VerificationError
from rekindle.ir.graph import Graph
from rekindle.ir.verifier import verify
from rekindle.passes import DeadCodeElimination, Pass
from rekindle.passes.pass_manager import run_nested
from rekindle.runtime.executable import forget_strategies

PipelineStage = Literal["start", "end"]
"""``start``: calls are inlined and constants folded. ``end``: all else that needs to know nothing of the arguments has
been done; fusion and derivatives follow."""

_ADDED: Final[dict[PipelineStage, list[AddedPass]]] = {"start": [], "end": []}

_PARTS_OF_SOMETHING: Final = frozenset(
    {
        *("freezing", "lower_graph", "annotate_warns", "canonicalize_outputs", "canonicalize_modified_loops"),
        *("insert_profiling", "insert_guards", "insert_bailouts", "eliminate_guards", "lower_grad_of"),
    }
)
"""Passes of the package that are useful only as a step of the transformation that runs them."""

_KNOWN: Final[dict[str, Callable[..., Pass]]] = {}
"""Factories of the registered passes, by name. Each takes the options of its pass."""


@dataclass(frozen=True, slots=True)
class UserPasses:
    """A pass that runs the passes that users have added at one stage, verifies the graph after each, and removes dead
    code if one changed the graph."""

    name: ClassVar[str] = "user_passes"
    stage: PipelineStage

    @property
    def added(self) -> tuple[Pass, ...]:
        """The passes that users have added at this stage, in order."""
        return tuple(each.what for each in _ADDED[self.stage])

    def run(self, graph: Graph) -> bool:
        changed = False
        for added in _ADDED[self.stage]:
            did = run_nested(added.what, graph)
            try:
                verify(graph)
            except VerificationError as error:
                raise VerificationError(f"after the pass '{added.what.name}': {error}") from error
            changed |= did
        if changed:
            run_nested(DeadCodeElimination(), graph)
        return changed


class AddedPass:
    """A pass that was added. :meth:`remove` takes it out again; in a ``with`` statement, so does its end."""

    def __init__(self, what: Pass, stage: PipelineStage) -> None:
        self.what = what
        self.stage = stage

    def remove(self) -> None:
        """Take the pass out of the pipelines; more than once does nothing."""
        if self in _ADDED[self.stage]:
            _ADDED[self.stage].remove(self)
            forget_strategies()

    def __enter__(self) -> AddedPass:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<the pass '{self.what.name}' at the {self.stage} of the pipeline>"


def add_pass(what: Any, /, *, at: PipelineStage = "start", **options: object) -> AddedPass:
    """Add a pass to the pipeline of every function. Functions that are optimized already are optimized again.

    The pass runs on copies of graphs. Each copy is verified after the pass.

    Args:
        what: a rule (:func:`rekindle.rewrite`), a pass (an object with a ``name`` and ``run(graph) -> bool``), a
            function that takes a graph and returns whether it changed it, or the name of a registered pass
            (:func:`known_passes`).
        at: ``"start"``, after calls are inlined and constants folded, or ``"end"``, before differentiation and fusion.
        options: options of a pass that is given by name.

    Returns:
        A handle: ``remove()``, or the end of a ``with`` block, removes the pass.

    Raises:
        ValueError: there is no pass of that name, or no such stage.
        TypeError: ``what`` cannot be run, or has no such options; or options are passed without a name.

    Example:
        >>> def changes_nothing(graph):
        ...     return False
        >>> f = rekindle.script(lambda x: x * 2)
        >>> with rekindle.add_pass(changes_nothing):
        ...     f(torch.ones(1))
        tensor([2.])
    """
    if at not in _ADDED:
        raise ValueError(f"there is no stage {at!r} in a pipeline; there are 'start' and 'end'")
    if isinstance(what, str):
        made = _make(what, options)
    elif options:
        raise TypeError("options are for passes that are given by name; make the pass with its options instead")
    else:
        made = _as_pass(what)
    added = AddedPass(made, at)
    _ADDED[at].append(added)
    forget_strategies()
    return added


def has_user_passes() -> bool:
    """Return whether users have added passes."""
    return any(_ADDED.values())


def register_pass(what: Any = None, /, *, name: str | None = None) -> Any:
    """Register a pass under a name, which :func:`add_pass` takes. Also a decorator of a class or a function. Return
    ``what``.

    Args:
        what: a rule, a pass, a function of a graph, or a class of passes, whose fields are options.
        name: the name, if it is not its own.

    Raises:
        ValueError: another pass has that name.
        TypeError: ``what`` cannot be run.

    Example:
        >>> @rekindle.register_pass
        ... def example_pass_of_the_documentation(graph):
        ...     return False
        >>> "example_pass_of_the_documentation" in rekindle.known_passes()
        True
    """
    if what is None:
        return lambda found: register_pass(found, name=name)
    if inspect.isclass(what):
        make: Any = what
        title = name or getattr(what, "name", None) or what.__name__
        if not callable(getattr(what, "run", None)):
            raise TypeError(f"the class {what.__qualname__} has no method run(graph)")
    else:
        found = _as_pass(what)
        title = name or found.name

        make = partial(_itself, found)

    if title in known_passes():
        raise ValueError(f"there is a pass '{title}' already")
    _KNOWN[title] = make
    return what


def known_passes() -> list[str]:
    """Return the names that :func:`add_pass` takes: registered passes, and those of the package.

    Example:
        >>> "dead_code_elimination" in rekindle.known_passes()
        True
    """
    return sorted({*_KNOWN, *_of_package()})


def _of_package() -> dict[str, Callable[..., Pass]]:
    classes: list[Any] = [cls for cls in vars(rekindle.passes).values() if inspect.isclass(cls)]
    found = {cls.name: cls for cls in classes if isinstance(getattr(cls, "name", None), str) and hasattr(cls, "run")}
    return {name: cls for name, cls in found.items() if name not in _PARTS_OF_SOMETHING}


def _make(name: str, options: dict[str, object]) -> Pass:
    make = _KNOWN.get(name) or _of_package().get(name)
    if make is None:
        raise ValueError(f"there is no pass {name!r}; there are {_listed(known_passes())}")
    try:
        inspect.signature(make).bind(**options)
    except TypeError as error:
        raise TypeError(f"the pass '{name}': {error}") from None
    return make(**options)


def _itself(found: Pass) -> Pass:
    return found


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def _as_pass(what: Any) -> Pass:
    if callable(getattr(what, "run", None)) and isinstance(getattr(what, "name", None), str):
        made: Pass = what
        return made
    if callable(what) and not inspect.isclass(what):
        return _FunctionPass(what.__name__, what)
    raise TypeError(f"a value of class '{type(what).__qualname__}' is not a pass: it has no name, or no run(graph)")


@dataclass(frozen=True, slots=True)
class _FunctionPass:
    """A pass made of a function that takes a graph."""

    name: str
    function: Callable[[Graph], object]

    def run(self, graph: Graph) -> bool:
        return bool(self.function(graph))
