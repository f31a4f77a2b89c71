"""The limit on the nesting depth of programs."""

from __future__ import annotations

from rekindle.errors import ParseError, SourceRange

MAX_DEPTH = 200
"""Maximum nesting depth of brackets, unary operators, powers and ternaries; Python allows 200 brackets. Long sums,
chains of calls and of ``elif`` do not count: they are parsed in loops.

The parser uses up to four of Python's thousand stack frames per level.
"""

MAX_BLOCKS = 1_500
"""Maximum nesting depth of blocks. Python allows 100, but in archives each early return has moved the statements after
it into a block."""


def too_deep(range: SourceRange) -> ParseError:
    """Return the error for a program that nests further than :data:`MAX_DEPTH`, :data:`MAX_BLOCKS`, or than Python's
    stack allows."""
    return ParseError(
        "This program is nested too deeply.",
        range,
        hint=f"More than {MAX_DEPTH} brackets and operators, or {MAX_BLOCKS} blocks, within one another are not "
        "supported. Give names to intermediate results, or move inner blocks into functions of their own.",
    )
