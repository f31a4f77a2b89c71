"""Bring a result of a program and that of its library to one form, so that they can be compared.

Libraries return fewer types than programs: a dtype or a member of an enum is a number, a set is a dict, an instance of
a class is a handle. The form has only types that libraries return, and dicts of attributes in place of objects.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Any, Final, NamedTuple

import torch

from rekindle.building.lowering.constants import member_number
from rekindle.building.native_library import LibraryError, LibraryObject
from rekindle.ir.scalar_types import number_of
from rekindle.ops.python.values import script_class

_MAX_NESTED: Final = 64


class Comparable(NamedTuple):
    """A result of the program and one of the library, in one form."""

    program: Any
    library: Any


def comparable(program: Any, library: Any, seen: frozenset[int] = frozenset()) -> Comparable:
    """Return both results with objects as dicts of their attributes, and everything else as libraries return it.

    Results of different structure are returned as they are. ``seen`` are the ids of objects that hold these values: an
    object that holds itself is not compared again.

    Raises:
        LibraryError: the library of an object was closed, or it is within too many others.
    """
    match program:
        case Enum():
            return Comparable(member_number(program), library)
        case torch.dtype() | torch.layout() | torch.memory_format():
            return Comparable(number_of(program), library)
        case set() | frozenset():
            return _of_sets(program, library)
        case dict():
            return _of_dicts(program, library, seen)
        case list() | tuple() | deque():
            return _of_sequences(program, library, seen)
    owner = script_class(program)
    if owner is None or not isinstance(library, LibraryObject):
        return Comparable(program, library)
    if id(program) in seen:
        return Comparable(None, None)
    if len(seen) == _MAX_NESTED:
        raise LibraryError(f"objects within {_MAX_NESTED} others are not compared")
    seen = seen | {id(program)}
    values = library.unpack()
    pairs = {
        name: comparable(getattr(program, name), value, seen)
        for name, value in zip(owner.attributes, values, strict=True)
    }
    return Comparable(
        {name: pair.program for name, pair in pairs.items()}, {name: pair.library for name, pair in pairs.items()}
    )


def _of_sequences(program: Any, library: Any, seen: frozenset[int]) -> Comparable:
    """Return a sequence of the program as the library returns it: a deque is a list there, and so are some tuples in an
    object, a Union or a key."""
    is_alike = isinstance(library, list) or (isinstance(library, tuple) and isinstance(program, tuple))
    if not is_alike or len(program) != len(library):
        return Comparable(program, library)
    pairs = [comparable(*pair, seen) for pair in zip(program, library, strict=True)]
    return Comparable(*(type(library)(parts) for parts in zip(*pairs, strict=True))) if pairs else Comparable([], [])


def _of_dicts(program: dict[Any, Any], library: Any, seen: frozenset[int]) -> Comparable:
    """Return dicts whose keys and values are in one form."""
    if not isinstance(library, dict) or len(program) != len(library):
        return Comparable(program, library)
    found = Comparable({}, {})
    for (our_key, ours), (key, theirs) in zip(program.items(), library.items(), strict=True):
        keys, values = comparable(our_key, key, seen), comparable(ours, theirs, seen)
        found.program[keys.program], found.library[keys.library] = values
    return found


def _of_sets(program: set[Any] | frozenset[Any], library: Any) -> Comparable:
    """Return a set as a dict from its elements to true. A set has no order, so both dicts get that of the program."""
    ours = {comparable(each, None).program: True for each in program}
    if not isinstance(library, dict):
        return Comparable(ours, library)
    return Comparable(ours, {key: library[key] for key in ours if key in library} | library)
