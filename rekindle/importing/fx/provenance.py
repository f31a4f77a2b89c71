"""Where in the author's source the nodes of a graph of ``torch.fx`` come from."""

from __future__ import annotations

import re
from typing import Final

from torch import fx

from rekindle.errors import UNKNOWN_RANGE, SourceRange
from rekindle.tracing.source_locations import line_of

_FRAME: Final = re.compile(r'File "([^"]+)", line (\d+)')


def place_of(node: fx.Node) -> SourceRange:
    """The line that the innermost frame of its stack trace names; unknown where it has none."""
    trace = node.meta.get("stack_trace")
    if not isinstance(trace, str):
        return UNKNOWN_RANGE
    frames = _FRAME.findall(trace)
    if not frames:
        return UNKNOWN_RANGE
    filename, number = frames[-1]
    return line_of(filename, int(number))
