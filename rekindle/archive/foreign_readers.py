"""What ``torch.jit.load`` makes of an archive: operators that it does not know, and those that mean something else to
it."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from rekindle.analysis.attribute_writes import nodes_within
from rekindle.ir.graph import Graph, Node

_UNKNOWN: Final = {"autodiff": "an operator of rekindle's derivatives"}
"""Namespaces of operators that ``torch.jit.load`` does not know, and what they contain."""


def _has_specification(node: Node) -> bool:
    """Return whether a text like ``"{:.2f}"`` has more than ``{}``."""
    text = node.inputs[0].to_python()
    if not isinstance(text, str):
        return False
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError:
        return False
    return any(field or specification or conversion for _, field, specification, conversion in parts)


def _has_width_or_precision(node: Node) -> bool:
    """Return whether a text like ``"%.2f"`` has more than a letter after ``%``."""
    text = node.inputs[0].to_python()
    return isinstance(text, str) and re.search(r"%[^a-zA-Z%]", text) is not None


_DIFFERENT: Final[dict[str, tuple[Callable[[Node], bool], str]]] = {
    "aten::format": (_has_specification, "TorchScript's format knows '{}' only: the text differs, or is not a number"),
    "aten::percentFormat": (_has_width_or_precision, "TorchScript's '%' knows no widths and precisions"),
}
"""Operators that mean something else in TorchScript: when, and what."""


def differences(graphs: Iterable[Graph]) -> Iterator[tuple[Node, str]]:
    """Yield the nodes that ``torch.jit.load`` rejects or that have another result there, each with the reason."""
    for graph in graphs:
        for node in nodes_within(graph):
            namespace = node.kind.partition("::")[0]
            if namespace in _UNKNOWN:
                yield node, f"torch.jit.load rejects '{node.kind}', {_UNKNOWN[namespace]}"
            elif node.kind in _DIFFERENT:
                differs, why = _DIFFERENT[node.kind]
                if differs(node):
                    yield node, why
