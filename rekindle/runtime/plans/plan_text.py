"""Plans as self-contained Python source.

The text of a plan calls its operators ``f0``, ``f1`` …, which are its globals; here each gets a line that imports it by
name. One that has no such name is a comment, and the text cannot be run. A group of operators, for which calls have a
kernel, is written as the plan of its operators.
"""

from __future__ import annotations

import importlib
import operator
import re
import textwrap
from collections.abc import Iterator
from typing import Any, Final

import torch

from rekindle.ir.graph import Node
from rekindle.ir.scalar_types import NUMBERED_CLASSES
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.plans.plan import ExecutionPlan
from rekindle.runtime.plans.python_code import NotCompilable

_CALLED: Final = re.compile(r"f\d+")
"""Names of the functions of instructions, by index."""


def plan_text(plan: ExecutionPlan) -> str:
    """Return the source of ``plan``, preceded by the imports and definitions that it needs. An object that has no
    importable name is described by a comment."""
    imports: dict[str, None] = {}
    lines: list[str] = []
    groups: list[str] = []
    for name, value in plan.function.__globals__.items():
        if name.startswith("__") or name == plan.function.__name__:
            continue
        node = plan.code.instructions[int(name[1:])].node if _CALLED.fullmatch(name) else None
        found = _spelling(value, node) or _spelling(value, None)
        group = None if node is None else _group_text(name, node)
        if group is not None:
            groups.append(group)
        elif found is None:
            text = " ".join(repr(value).split())
            lines.append(f"# {name} has no name to import it by: {text}")
        else:
            imports[found[0]] = None
            lines.append(f"{name} = {found[1]}")
    head = ["\n".join(f"import {module}" for module in sorted(imports)), "\n".join(lines)]
    return "\n\n".join(part for part in (*head, *groups, plan.source.rstrip("\n")) if part) + "\n"


def _group_text(name: str, node: Node) -> str | None:
    """Return the source of a function named ``name`` that computes the graph within ``node``; None if it has no graph,
    or no plan can run it."""
    if "Subgraph" not in node.attributes:
        return None
    try:
        inner = ExecutionPlan(Code(node.get_graph("Subgraph"), "group"))
    except NotCompilable:
        return None
    text = textwrap.indent(plan_text(inner), "    ")
    return f"def {name}():  # {node.kind}\n{text}    return {inner.function.__name__}\n\n{name} = {name}()"


def _spelling(value: Any, node: Node | None) -> tuple[str, str] | None:
    """Return a module to import, and an expression for ``value`` with it; ``node`` is the node that it implements; None
    if there is no such expression."""
    schema = None if node is None or node.operator is None else node.operator.schema
    if schema is not None:
        overload = f"torch.ops.{schema.name.replace('::', '.')}.{schema.overload or 'default'}"
        if _is("torch", f"{overload}._op", value):
            return "torch", overload
    if isinstance(value, torch.device):
        return "torch", f"torch.{value!r}"
    if isinstance(value, NUMBERED_CLASSES):
        return "torch", str(value)
    if isinstance(value, dict):
        return "torch", repr(value)  # dtypes by their numbers
    name = getattr(value, "__name__", None)
    if not isinstance(name, str) or not name.isidentifier():
        return None
    return next((found for found in _places(value, name) if _is(found[0], found[1], value)), None)


def _places(value: Any, name: str) -> Iterator[tuple[str, str]]:
    for home in ("torch", "torch.Tensor", "torch._C._nn"):
        yield "torch", f"{home}.{name}"
    yield operator.__name__, f"{operator.__name__}.{name}"
    module: object = getattr(value, "__module__", None)
    if isinstance(module, str):
        yield module, f"{module}.{getattr(value, '__qualname__', name)}"


def _is(module: str, expression: str, value: Any) -> bool:
    """Return whether ``value`` is found under the dotted name ``expression``."""
    try:
        found: Any = importlib.import_module(module)
        for part in expression.removeprefix(f"{module}.").split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return False
    return found is value or (type(found) is type(value) and bool(found == value))
