"""What a pass is, and how a list of passes runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from rekindle.errors import VerificationError
from rekindle.ir.graph import Graph


class Pass(Protocol):
    """A change to graphs. Its options are its fields; it reads no flags from elsewhere."""

    @property
    def name(self) -> str:
        """What the pass is called in messages and logs."""

    def run(self, graph: Graph) -> bool:
        """Change ``graph`` in place; returns whether anything changed."""


Verifier = Callable[[Graph], None]


def run_passes(graph: Graph, passes: Iterable[Pass], verify: Verifier | None = None) -> bool:
    """Run ``passes`` in order, each followed by ``verify`` if there is one; returns whether anything changed.

    Raises:
        VerificationError: a pass broke the graph; the message says which one.
    """
    changed = False
    for each in passes:
        changed |= each.run(graph)
        if verify is not None:
            try:
                verify(graph)
            except VerificationError as error:
                raise VerificationError(f"after the pass '{each.name}': {error}") from error
    return changed
