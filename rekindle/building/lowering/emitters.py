"""The table of emitters, by operator.

An emitter lowers one operator. The emitter of a node is, in this order: that of the qualified name, that of the kind,
the arithmetic of numbers (:mod:`rekindle.codegen.native.arithmetic`), and otherwise a call of PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rekindle.building.lowering.writer import Emitter, ProgramWriter
from rekindle.ir.graph import Node

EMITTERS: Final[dict[str, Emitter]] = {}
"""Emitters by the qualified name of an operator, or by the kind of a node."""


def emits(*names: str) -> Callable[[Emitter], Emitter]:
    """Register the decorated function as the one that lowers the operators ``names``."""

    def register(emitter: Emitter) -> Emitter:
        for name in names:
            assert name not in EMITTERS, f"{name} has two emitters"
            EMITTERS[name] = emitter
        return emitter

    return register


def qualified_name(node: Node) -> str:
    """Return the name of a node's operator with its overload, such as ``aten::add.int``; the kind of a node without a
    schema."""
    schema = node.schema
    return node.kind if schema is None else schema.qualified_name


def arguments(w: ProgramWriter, node: Node) -> list[str]:
    """Return the registers of the inputs of a node."""
    return [w.name(value) for value in node.inputs]
