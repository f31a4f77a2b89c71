"""Import a ``torch.fx`` graph of ATen operators as nodes of the IR.

.. code-block:: text

    %linear : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = (%x, %w), kwargs = {})
    %sym_size : [num_users=1] = call_function[target=torch.ops.aten.sym_size.int](args = (%x, 0), kwargs = {})
    %view : [num_users=1] = call_function[target=torch.ops.aten.view.default](args = (%linear, [%sym_size, -1]), …)

    becomes

    %linear : Tensor = aten::linear(%x, %w, %none)
    %sym_size : int = aten::size(%x, %0)
    %6 : int[] = prim::ListConstruct(%sym_size, %minus_1)
    %view : Tensor = aten::view(%linear, %6)

``torch.export``, AOTAutograd and ``make_fx`` write such graphs. Dynamo's own graphs, which call functions and methods
of ``torch``, are not supported. A node of ``torch.fx`` may compute several values, or an object known at import time:
its *imported value* is an IR value, a Python constant, a graph, or a list or tuple of imported values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import fx
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket

from rekindle.errors import UNKNOWN_RANGE, CaptureError, CompileError, SchemaError, SourceRange
from rekindle.ir.graph import Block, Graph, Value
from rekindle.tracing.source_locations import line_of

ImportedValue = Any
"""A :class:`Value`, a Python constant, a ``GraphModule``, or a list or tuple of such."""

LOST: Final = object()
"""The imported value of a node that could not be imported."""

Handler = Callable[["FxImporter", fx.Node, Sequence[ImportedValue], Mapping[str, ImportedValue]], ImportedValue]
"""Importer of a call: it inserts nodes at the graph's insertion point, and returns the imported value of the call."""

CALLS: Final[dict[object, Handler]] = {}
"""Importers of calls of certain functions, filled by the files beside this one. All other operators of ATen, and those
of libraries, are imported by their schemas."""


def reads(*functions: object) -> Callable[[Handler], Handler]:
    """Register the decorated function in :data:`CALLS` as the importer of calls of ``functions``."""

    def register(handler: Handler) -> Handler:
        CALLS.update(dict.fromkeys(functions, handler))
        return handler

    return register


@dataclass(slots=True)
class FxImporter:
    """Importer of ``torch.fx`` graphs into ``graph``, at its insertion point.

    ``attribute`` returns the imported value of an attribute of a graph's module. ``operators`` imports calls of
    operators without another handler. ``fallback`` imports calls for which a handler raises; without it their errors
    are added to ``problems``, and the imported value is :data:`LOST`.
    """

    graph: Graph
    attribute: Callable[[FxImporter, fx.GraphModule, str], ImportedValue]
    operators: Handler
    fallback: Handler | None = None
    overrides: Mapping[object, Handler] = field(default_factory=dict)
    """Importers of certain calls that override :data:`CALLS`."""
    problems: list[CompileError] = field(default_factory=list)
    modes: list[tuple[bool, bool, Value]] = field(default_factory=list)
    """The regions that the insertion point is in by calls of ``torch._C._set_grad_enabled``: whether gradients were
    recorded around it, whether they are within, and the object that is entered."""
    range: SourceRange = UNKNOWN_RANGE
    """The source location of the node that is being imported."""

    def read(self, module: fx.GraphModule, inputs: Sequence[ImportedValue]) -> ImportedValue:
        """Import the graph of ``module``, with ``inputs`` for its placeholders; return the imported value of its
        output.

        Raises:
            CaptureError: a node is not the call of a function, or there is a ``fallback``, which raised it.
        """
        env: dict[fx.Node, ImportedValue] = {}
        given = iter(inputs)
        result: ImportedValue = None
        for node in module.graph.nodes:
            if node.op == "placeholder":
                env[node] = next(given)
            elif node.op == "output":
                result = self._looked_up(node.args[0], env)
            else:
                env[node] = self.read_node(module, node, env)
        return result

    def read_node(self, module: fx.GraphModule, node: fx.Node, env: Mapping[fx.Node, ImportedValue]) -> ImportedValue:
        """Import a node other than a placeholder or the output; return its imported value. ``env`` has those of the
        nodes before it. An error of a call is handled by ``fallback``, or added to ``problems``.

        Raises:
            CaptureError: the node is a call of a method or a module.
        """
        self.range = place_of(node)
        if node.op == "get_attr":
            return self.attribute(self, module, str(node.target))
        if node.op != "call_function":
            raise CaptureError(
                f"the graph holds a {node.op} of '{node.target}', but only calls of operators are read",
                self.range,
                hint="capture it with torch.export.export or make_fx, which write operators",
            )
        args = self._looked_up(node.args, env)
        kwargs = self._looked_up(node.kwargs, env)
        if any(env.get(used) is LOST for used in node.all_input_nodes):
            return LOST
        try:
            imported = self.call(node, args, kwargs)
        except (CaptureError, SchemaError) as problem:
            if self.fallback is None:
                self.problems.append(problem)
                return LOST
            imported = self.fallback(self, node, args, kwargs)
        if isinstance(imported, Value) and not imported.has_name:
            imported.set_name(node.name)
        return imported

    def call(self, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]) -> ImportedValue:
        """Import a call of the function of ``node``; return its imported value.

        Raises:
            CaptureError: programs cannot express the call.
            SchemaError: an operator does not take such arguments.
        """
        target = node.target
        handler = self.overrides.get(target) or CALLS.get(target)
        if handler is not None:
            return handler(self, node, args, kwargs)
        if isinstance(target, OpOverload):
            return self.operators(self, node, args, kwargs)
        raise CaptureError(f"'{name_of(target)}' has no form in a program", self.range)

    def _looked_up(self, item: Any, env: Mapping[fx.Node, ImportedValue]) -> Any:
        """Return ``item``, an argument of a node, with nodes replaced by their imported values."""
        if isinstance(item, fx.Node):
            return env[item]
        if isinstance(item, (list, tuple)):
            found = [self._looked_up(part, env) for part in item]
            return found if isinstance(item, list) else tuple(found)
        if isinstance(item, dict):
            return {key: self._looked_up(part, env) for key, part in item.items()}
        if isinstance(item, slice):
            return slice(*(self._looked_up(part, env) for part in (item.start, item.stop, item.step)))
        return item

    # ------------------------------------------------------------------------------------------------- making nodes

    def value(self, imported: ImportedValue, type: Any = None) -> Value:
        """Return the IR value of ``imported``; a constant, or a list or tuple, is inserted.

        Raises:
            CaptureError: it is a symbol that no node computes.
        """
        if isinstance(imported, Value):
            return imported
        if isinstance(imported, (torch.SymInt, torch.SymBool, torch.SymFloat)):
            raise CaptureError(f"the graph holds the symbol {imported}, which no node computes", self.range)
        return self.graph.insert_constant(imported, type, self.range)

    def insert(self, kind: str, *args: ImportedValue, **kwargs: ImportedValue) -> Value:
        """Insert a call of the operator ``kind``, and return its result."""
        return self.graph.insert(kind, args, kwargs, self.range)

    def within(self, block: Block, module: fx.GraphModule, inputs: Sequence[ImportedValue]) -> list[ImportedValue]:
        """Import the graph of ``module`` at the end of ``block``; return its results as a list."""
        with self.graph.inserting_at_end(block):
            return as_list(self.read(module, inputs))


def as_list(result: ImportedValue) -> list[ImportedValue]:
    """Return the results of a graph as a list. ``result`` is a list or tuple of them, or a single result."""
    return list(result) if isinstance(result, (list, tuple)) else [result]


def name_of(target: object) -> str:
    """Return the name of a called function for error messages."""
    if isinstance(target, (OpOverload, OpOverloadPacket, HigherOrderOperator)):
        return f"torch.ops.{target}" if isinstance(target, OpOverload) else str(target)
    module = getattr(target, "__module__", None)
    name = getattr(target, "__qualname__", None) or str(target)
    return f"{module}.{name}" if module else name


_FRAME: Final = re.compile(r'File "([^"]+)", line (\d+)')


def place_of(node: fx.Node) -> SourceRange:
    """Return the source location in the innermost frame of a node's stack trace; an unknown one if it has none."""
    trace = node.meta.get("stack_trace")
    if not isinstance(trace, str):
        return UNKNOWN_RANGE
    frames = _FRAME.findall(trace)
    if not frames:
        return UNKNOWN_RANGE
    filename, number = frames[-1]
    return line_of(filename, int(number))
