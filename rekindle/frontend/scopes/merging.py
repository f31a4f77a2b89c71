"""Merge the bindings of names where control flow joins: after both branches of an ``if``, or of an expression."""

from __future__ import annotations

from collections.abc import Sequence

from rekindle.errors import Diagnostics, SourceRange, TypeMismatchError
from rekindle.frontend.inference.type_inference import learn_from_branches
from rekindle.frontend.scopes.environment import Environment
from rekindle.frontend.scopes.frames import EnvironmentFrame
from rekindle.frontend.ssa.assignedness import Partial, join
from rekindle.frontend.sugared_values.base import ERROR_VALUE
from rekindle.ir.types import ANY, Type, UnionBase, join_values, unify, union


def merge_branches(
    environment: Environment,
    diagnostics: Diagnostics,
    range: SourceRange,
    frames: Sequence[EnvironmentFrame],
    exits: tuple[bool, bool] = (False, False),
    what: str = "the if statement",
) -> None:
    """Merge the names that the branches with these ``frames`` assign, after the ``if``. ``exits`` says which branches
    end with an exit, and ``what`` is the name of the construct in error messages.

    A name is defined if all branches without an exit define it, or if it was defined before. Otherwise it is possibly
    assigned if the program follows Python, and undefined in TorchScript.
    """
    words = ("if the condition holds", "if the condition does not hold")
    environment.keep_origins([frame for frame, exited in zip(frames, exits, strict=True) if not exited])
    lost = {
        name
        for frame, exited in zip(frames, exits, strict=True)
        for name in {*frames[0].types, *frames[0].sugared, *frames[1].types, *frames[1].sugared}
        if not exited and frame.has_given_up(name)
    }
    for name in lost:
        environment.give_up(name)
    named = {*frames[0].types, *frames[1].types, *frames[0].partial, *frames[1].partial}
    for name in sorted(named - lost):
        known = [frame.find_type(name) for frame in frames]
        if exits[0] or exits[1]:
            side = 1 if exits[0] else 0
            _merge_with_exit(environment, name, frames[side])
            continue
        types = [type for type in known if type is not None]
        if len(types) < len(known):
            if environment.graph.follows_python:
                _merge_partial(environment, name, frames)
                continue
            missing = 0 if known[0] is None else 1
            place = f"line {range.line}" if range.is_known else "above"
            environment.frame.undefined_reason[name] = f"{what} of {place} does not assign it {words[missing]}"
            continue
        before = environment.frame.find_type(name)
        takes_any = isinstance(before, UnionBase) or before == ANY
        unified = unify(types[0], types[1], default_to_union=takes_any)
        if unified is None and environment.graph.follows_python:
            number = join_values(types[0], types[1])
            if number is not None:
                _merge_numbers(environment, name, types, number, range)
                continue
            if before is None:
                learn_from_branches(environment.evidence, [frame.origins.get(name) for frame in frames], types)
                unified = join(types[0], types[1])
        if unified is None:
            reason = (
                f"{what} of line {range.line} makes it {types[0].annotation} {words[0]} "
                f"and {types[1].annotation} {words[1]}"
            )
            if before is not None:
                diagnostics.add(TypeMismatchError(f"variable '{name}' has no one type: {reason}", range))
                environment.give_up(name)
                continue
            environment.frame.undefined_reason[name] = reason
            continue
        environment.frame.types[name] = unified
    for frame, exited in zip(frames, exits, strict=True):
        for name, value in frame.sugared.items():
            if value is ERROR_VALUE or exited:
                continue
            environment.frame.partial.pop(name, None)
            environment.frame.undefined_reason[name] = (
                f"{value.description} exists only while compiling, so that no branch can give it"
            )


def _merge_numbers(
    environment: Environment, name: str, types: Sequence[Type], joined: Type, range: SourceRange
) -> None:
    """Convert ``name`` to the number type ``joined`` after an ``if`` whose branches assign numbers of different
    types."""
    merged = union(types)
    environment.frame.types[name] = merged
    if merged != joined:
        environment.store(name, range, environment.cast(environment.load(name, merged, name), joined, range), joined)


def _merge_partial(environment: Environment, name: str, frames: Sequence[EnvironmentFrame]) -> None:
    """Mark a name as possibly assigned after an ``if`` of which not both branches definitely assign it."""
    found: Partial | None = None
    for frame in frames:
        type = frame.find_type(name)
        if type is None and frame.find(name) is not None:
            return  # one that exists only while compiling
        known = Partial(type) if type is not None else frame.find_partial(name)
        if known is not None:
            found = known if found is None else found.joined(known)
    if found is not None:
        environment.frame.set_partial(name, found)


def _merge_with_exit(environment: Environment, name: str, frame: EnvironmentFrame) -> None:
    """Give a name, after an ``if`` of which one branch exits early, the type that it has in ``frame``, that of the
    other branch."""
    type = frame.find_type(name)
    partial = frame.find_partial(name)
    if type is not None:
        environment.frame.types[name] = type
    elif partial is not None:
        environment.frame.set_partial(name, partial)
