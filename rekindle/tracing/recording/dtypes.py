"""Provenance of dtypes: for ``torch.zeros(n, dtype=x.dtype)`` the program queries the dtype of ``x``.

Dtypes are singletons, so the object does not record which tensor it came from. The source of the call determines it:
the argument must be the expression ``x.dtype``, a local variable whose only assignment is one, or a parameter for which
the caller passed one of these. Any other dtype is a constant. Before Python 3.11 code does not record columns, and all
dtypes are constants.
"""

from __future__ import annotations

import ast
import dis
import linecache
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType
from typing import Final

import torch

from rekindle.tracing.source_locations import innermost_frame

_Position = tuple[int, int, int, int]
"""The position of a piece of source: first and last line from 1, first and last column in bytes."""

_DEPTH: Final = 8
"""The maximum number of callers that are examined."""


class DtypeOrigins:
    """Record of the tensors whose dtypes the traced code queried, each with the frame and the source position of the
    query."""

    def __init__(self) -> None:
        self._queried: dict[tuple[int, _Position], tuple[FrameType, torch.Tensor]] = {}

    def note(self, tensor: torch.Tensor) -> None:
        """Record that the running code queried the dtype of ``tensor``."""
        frame = innermost_frame()
        position = None if frame is None else _position(frame.f_code, frame.f_lasti)
        if frame is not None and position is not None:
            self._queried[id(frame), position] = frame, tensor

    def origin(self, dtype: torch.dtype, argument: int | str) -> torch.Tensor | None:
        """Return the tensor whose dtype is passed as an argument of the current call; None unless that is certain.

        ``argument`` is the name of a keyword argument, or a negative position counted from the end (-1 is the last).
        """
        frame = innermost_frame()
        call = None if frame is None else _call(frame)
        if frame is None or call is None:
            return None
        if isinstance(argument, str):
            found = self._resolve(_keyword(call, argument), frame)
        else:
            found = self._resolve(call.args[argument], frame) if -argument <= len(call.args) else None
        return found if found is not None and found.dtype is dtype else None

    def _resolve(self, expression: ast.expr | None, frame: FrameType, depth: int = 0) -> torch.Tensor | None:
        if isinstance(expression, ast.Attribute) and expression.attr == "dtype":
            return self._queried_at(frame, _extent(expression))
        if not isinstance(expression, ast.Name):
            return None
        stores = _stores(frame.f_code, expression.id)
        parameters = _parameters(frame.f_code)
        if expression.id in parameters:
            given = _given(frame, expression.id) if not stores and depth < _DEPTH else None
            return None if given is None or frame.f_back is None else self._resolve(given, frame.f_back, depth + 1)
        return self._queried_at(frame, stores[0]) if len(stores) == 1 else None

    def _queried_at(self, frame: FrameType, position: _Position | None) -> torch.Tensor | None:
        found = None if position is None else self._queried.get((id(frame), position))
        return None if found is None else found[1]


def _given(frame: FrameType, parameter: str) -> ast.expr | None:
    """Return the expression that the caller of ``frame`` passed for a parameter; None if it cannot be determined."""
    call = None if frame.f_back is None else _call(frame.f_back)
    if call is None:
        return None
    found = _keyword(call, parameter)
    if found is not None:
        return found
    names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
    if parameter not in names:
        return None
    index = names.index(parameter) - (names[0] in ("self", "cls"))
    return call.args[index] if 0 <= index < len(call.args) else None


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


# ----------------------------------------------------------------------------------------------------------- the source


def _call(frame: FrameType) -> ast.Call | None:
    """Return the call that ``frame`` is making, if all its arguments can be identified; None otherwise."""
    position = _position(frame.f_code, frame.f_lasti)
    return None if position is None else _call_at(frame.f_code.co_filename, position)


@lru_cache(maxsize=4096)
def _call_at(filename: str, position: _Position) -> ast.Call | None:
    first, last, start, end = position
    lines = [line.encode() for line in linecache.getlines(filename)[first - 1 : last]]
    if len(lines) != last - first + 1:
        return None
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    try:
        found = ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(found, ast.Call) or any(isinstance(item, ast.Starred) for item in found.args):
        return None
    if any(keyword.arg is None for keyword in found.keywords):
        return None
    for node in ast.walk(found):
        if isinstance(node, ast.expr):
            _move(node, first, start)
    return found


def _move(node: ast.expr, first: int, start: int) -> None:
    """Correct the position of ``node``, which was parsed separately after an added parenthesis, to its position in the
    file."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    node.col_offset += start - 1 if node.lineno == 1 else 0
    node.end_col_offset += start - 1 if node.end_lineno == 1 else 0
    node.lineno += first - 1
    node.end_lineno += first - 1


def _extent(node: ast.expr) -> _Position | None:
    if node.end_lineno is None or node.end_col_offset is None:
        return None
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


@lru_cache(maxsize=16384)
def _position(code: CodeType, instruction: int) -> _Position | None:
    """Return the source position of an instruction, given its offset in bytes; None before Python 3.11, or if it has
    none."""
    positions = getattr(code, "co_positions", None)
    if positions is None:
        return None
    first, last, start, end = next(islice(positions(), instruction // 2, None), (None,) * 4)
    if first is None or last is None or start is None or end is None:
        return None
    return first, last, start, end


def _parameters(code: CodeType) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


@lru_cache(maxsize=4096)
def _stores(code: CodeType, name: str) -> list[_Position | None]:
    """Return one entry for each store to the local variable ``name``: the position of the ``x.dtype`` that it stores,
    or None if it stores something else."""
    found: list[_Position | None] = []
    before: dis.Instruction | None = None
    for instruction in dis.get_instructions(code):
        if instruction.opname.startswith(("STORE", "DELETE")) and name in _stored(instruction):
            is_dtype = before is not None and before.opname == "LOAD_ATTR" and before.argval == "dtype"
            is_first = _stored(instruction)[0] == name
            found.append(_position(code, before.offset) if before is not None and is_dtype and is_first else None)
        before = instruction
    return found


def _stored(instruction: dis.Instruction) -> tuple[str, ...]:
    """Return the names that a store instruction stores to, in order."""
    if not isinstance(instruction.argval, tuple):
        return (str(instruction.argval),)
    return instruction.argval[:1] if "LOAD" in instruction.opname else instruction.argval
