"""Lists from outside of a program: a global list that a function names is a constant in compiled code.

In Python a function that writes to it changes it for all code. Compiled code would change a copy, so that such a
function is rejected, also where alias analysis is conservative. The emitter marks the node that makes the
constant; the check removes the mark. Writes by a caller to a list that a function returns are not found.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.errors import UnsupportedError
from rekindle.ir.graph import Graph, Node
from rekindle.passes.canonicalization.inlining import inline

FROM_OUTSIDE: Final = "from_outside"
"""Attribute of a ``prim::ListConstruct`` that makes a list that exists outside of the program."""


def check_outside_lists(graph: Graph) -> None:
    """Check that an emitted graph, with the functions that it calls, does not write to lists from outside, and remove
    their marks.

    Raises:
        UnsupportedError: an operator may write to such a list.
    """
    marked = list(_marked(graph))
    if not marked:
        return
    inlined = graph.copy()
    inline(inlined)
    aliases = AliasDb(inlined)
    lists = {node.output: node for node in _marked(inlined) if aliases.has_writers(node.output)}
    for node in inlined.all_nodes() if lists else ():
        if node.schema is None or not node.schema.is_mutable:
            continue
        written = next((made for value, made in lists.items() if aliases.writes_to_alias(node, [value])), None)
        if written is not None:
            text = written.range.text
            name = f"'{text}'" if text.replace(".", "").isidentifier() else "this"
            raise UnsupportedError(
                f"{name} is a list from outside of the program, a constant here, and the function may write to it",
                written.range,
                hint="copy it with list(…), pass it as an argument, or assign it in the '__init__' of a module",
            )
    for node in marked:
        node.remove_attribute(FROM_OUTSIDE)


def _marked(graph: Graph) -> Iterator[Node]:
    return (node for node in graph.find_nodes("prim::ListConstruct") if FROM_OUTSIDE in node.attributes)
