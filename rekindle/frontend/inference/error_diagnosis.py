"""Diagnosis of type errors: a missing annotation of a parameter, an unchecked Optional.

The emitter tests a hypothesis: would the failed construct compile if the variable had another type?
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, NoReturn, TypeVar

from rekindle.errors import CascadingError, Cause, CompileError, Diagnostics, Edit, UndefinedNameError, current_frames
from rekindle.frontend.emitter import EmissionPoint, Emitter
from rekindle.frontend.scopes.frames import EnvironmentFrame
from rekindle.frontend.statements.error_recovery import asks_compiler, assigns_attribute, names_in
from rekindle.ir.types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    NONE,
    STRING,
    TENSOR,
    DictType,
    ListType,
    Type,
    UnionBase,
    union_members,
    without_none,
)
from rekindle.syntax.tree import Tree
from rekindle.syntax.views import Expr, Starred

_TRIED: Final[tuple[Type, ...]] = (
    *(INT, FLOAT, STRING, BOOL),
    *(ListType(INT), ListType(FLOAT), ListType(STRING), ListType(TENSOR)),
    *(DictType(STRING, TENSOR), DictType(STRING, INT)),
)
"""Types to try for a parameter without an annotation, the most common first."""

T = TypeVar("T")

_EXPLAINED: Final = frozenset({Cause.TYPE_MISMATCH, Cause.UNDEFINED_NAME, Cause.UNSUPPORTED_CONSTRUCT})


def recover(
    emitter: Emitter,
    error: Exception,
    place: EmissionPoint,
    tree: Tree | None = None,
    retry: Callable[[], object] | None = None,
) -> None:
    """Record ``error`` and continue at ``place``: the state of the emitter is restored. ``retry`` emits the failed
    ``tree`` again, to find the cause of the error. An exception other than a CompileError is suppressed if there was an
    error before.

    Raises:
        Exception: ``error``, if it is a RecursionError, or neither a CompileError nor preceded by one.
    """
    if isinstance(error, CompileError):
        emitter.restore(place)
        if tree is not None and retry is not None:
            explain(emitter, error, tree, retry)
        emitter.diagnostics.add(error)
        return
    if isinstance(error, RecursionError) or not emitter.diagnostics.has_failed:
        raise error  # else it comes from what is missing
    emitter.restore(place)


def try_to_emit(emitter: Emitter, emit: Callable[[], T], tree: Tree | None = None) -> T | None:
    """Return the result of ``emit``; if it fails, record the error and return None. ``tree`` is the tree that it emits,
    if it is known. Other exceptions than CompileError are raised unless an error was recorded before."""
    place = emitter.place
    try:
        return emit()
    except Exception as error:
        recover(emitter, error, place, tree, emit)
        return None


def emit_for_errors(emitter: Emitter, rest: Sequence[Expr], error: CompileError, failed: Expr) -> NoReturn:
    """Emit the ``rest`` of an expression to find further errors, and raise. ``error`` is that of the part ``failed``.

    Raises:
        CompileError: ``error`` itself, if there is no rest, or the branch is unreachable for the current attributes.
        CascadingError: otherwise; ``error`` is recorded.
    """
    if not rest or emitter.is_unexpected:
        raise error
    recover(emitter, error, emitter.place, failed.tree, partial(_emit_part, emitter, failed))
    for expr in rest:
        try_to_emit(emitter, partial(_emit_part, emitter, expr), expr.tree)
    raise CascadingError("a part of this expression could not be compiled")


def _emit_part(emitter: Emitter, expr: Expr) -> object:
    if expr.tree.kind == Starred.KIND:
        return emitter.emit_sugared(Starred(expr.tree).value).as_tuple(expr.range, emitter.graph)
    return emitter.emit_expression(expr)


def explain(emitter: Emitter, error: CompileError, tree: Tree, retry: Callable[[], object]) -> None:
    """Find the cause of ``error``, and set its cause, hint and edit accordingly: a variable that was assumed to be a
    Tensor, or has several possible types. ``retry`` emits ``tree``, which failed, again."""
    if not _may_be_explained(error) or assigns_attribute(tree) or _asks_for_types(tree):
        return
    names = sorted(names_in(Expr(tree)))
    assumed = [name for name in names if _is_assumed(emitter, name)]
    for tried in [*([name] for name in assumed), *([assumed] if len(assumed) > 1 else [])]:
        for type in _TRIED:
            if _works(emitter, dict.fromkeys(tried, type), retry):
                _blame_assumption(emitter, error, tried, type)
                return
    for name in names:
        found = emitter.environment.frame.find_type(name)
        if found is None or not (isinstance(found, UnionBase) or found == ANY):
            continue
        for type in _narrower(found):
            if _works(emitter, {name: type}, retry):
                _blame_missing_refinement(error, name, found, type)
                return


def _is_assumed(emitter: Emitter, name: str) -> bool:
    return name in emitter.assumed and emitter.environment.frame.find_type(name) == TENSOR


def _works(emitter: Emitter, types: dict[str, Type], retry: Callable[[], object]) -> bool:
    """Return whether ``retry`` compiles the failed code if the variables have these types. The emitter's state is
    restored."""
    with _trying(emitter):
        for name, type in types.items():
            frame = emitter.environment.frame.find(name)
            assert frame is not None
            frame.types[name] = type
        try:
            retry()
        except Exception:
            return False
        return not emitter.diagnostics.has_failed


@contextmanager
def _trying(emitter: Emitter) -> Iterator[None]:
    """Restore the state of the emitter after the ``with`` block. Nodes that it inserted remain in a graph that is
    discarded."""
    saved, emitter.diagnostics = emitter.diagnostics, Diagnostics()
    try:
        with keeping_if(emitter, lambda: False):
            yield
    finally:
        emitter.diagnostics = saved


@contextmanager
def keeping_if(emitter: Emitter, is_good: Callable[[], bool]) -> Iterator[None]:
    """Keep the changes of the emitter's state in the ``with`` block if ``is_good()`` at its end; undo them if not, and
    if the block raises."""
    place, returns = emitter.place, emitter.returns
    frames: list[EnvironmentFrame] = []
    frame: EnvironmentFrame | None = place.frame
    while frame is not None:
        frames.append(frame)
        frame = frame.parent
    tables = [
        (dict(frame.types), dict(frame.sugared), dict(frame.undefined_reason), dict(frame.partial)) for frame in frames
    ]
    saved = (returns.merged, returns.is_uncertain, set(emitter.exited), dict(emitter.assumed))
    is_kept = False
    try:
        yield
        is_kept = is_good()
    finally:
        if not is_kept:
            returns.merged, returns.is_uncertain, emitter.exited, emitter.assumed = saved
            emitter.restore(place)
            for frame, table in zip(frames, tables, strict=True):
                frame.types, frame.sugared, frame.undefined_reason, frame.partial = table


def _blame_assumption(emitter: Emitter, error: CompileError, names: list[str], type: Type) -> None:
    listed = " and ".join(f"'{name}'" for name in names)
    was = (
        "was assumed to be a Tensor because it has"
        if len(names) == 1
        else "were assumed to be Tensors because they have"
    )
    examples = ", ".join(f"{name}: {type.annotation}" for name in names)
    error.cause = Cause.DEFAULT_TYPE_ASSUMED
    error.hint = f"{listed} {was} no annotation; write, for example, {examples}"
    error.edit = Edit(emitter.assumed[names[0]], f"{names[0]}: {type.annotation}")
    for name in names:
        emitter.environment.give_up(name)  # else every use of it would be reported


def _asks_for_types(tree: Tree) -> bool:
    """Return whether ``tree`` contains a compile-time condition on types, which may hide errors."""
    return asks_compiler(Expr(tree)) or any(each.kind in ("is", "is_not") for each in tree.walk())


def _may_be_explained(error: CompileError) -> bool:
    """Return whether ``error`` is in the function that is being compiled, and is one that a wrong type may cause."""
    return (
        error.cause in _EXPLAINED
        and error.errors == (error,)
        and not isinstance(error, CascadingError)
        and not (isinstance(error, UndefinedNameError) and error.range is not None and error.range.text.isidentifier())
        and error.frames == current_frames()
    )


def _narrower(type: Type) -> tuple[Type, ...]:
    if type == ANY:
        return (*_TRIED, TENSOR)
    members = tuple(member for member in union_members(type) if member != NONE)
    return (without_none(type), *members) if type.is_optional else members


def _blame_missing_refinement(error: CompileError, name: str, found: Type, type: Type) -> None:
    error.cause = Cause.MISSING_REFINEMENT
    if error.hint is None:
        may_be_none = found.is_optional and type == without_none(found)
        check = f"{name} is not None" if may_be_none else f"isinstance({name}, {type.annotation})"
        error.hint = f"{name} may be something else; check it first: if {check}"
