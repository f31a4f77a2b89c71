"""An evaluator that remembers what every value of a graph has been, and who has written to what."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import torch

from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import FunctionType
from rekindle.runtime.interpreter.instructions import copy_constant
from tests.support.graphs import Evaluator

Place = Hashable
"""A piece of memory: the storage of a tensor, the identity of a list, dict or object."""


class Later:
    """A future whose graph runs when a caller waits for it, or before."""

    def __init__(self, run: Any) -> None:
        self.run = run
        self.result: list[Any] = []

    def get(self) -> Any:
        if not self.result:
            self.result.append(self.run())
        return self.result[0]


class Watcher(Evaluator):
    """See the module. ``own`` are the places that a value has been, ``within`` those that were ever found in it;
    ``written`` what each node has written to. ``late`` runs forks when they are waited for."""

    def __init__(self, *, late: bool = False) -> None:
        super().__init__()
        self.late = late
        self.own: dict[Value, set[Place]] = {}
        self.within: dict[Value, set[Place]] = {}
        self.written: dict[Node, set[Place]] = {}
        self._kept: list[Any] = []
        self._states: dict[Place, tuple[Any, Any]] = {}
        """What was seen of a place last: the object, and what changes when it is written to."""

    def run(self, graph: Graph, arguments: Sequence[Any]) -> Any:
        for value, argument in zip(graph.inputs, arguments, strict=True):
            self.remember(value, argument)
        result = super().run(graph, arguments)
        self._look_again()
        return result

    def remember(self, value: Value, found: Any) -> None:
        """``value`` is ``found`` now."""
        self._kept.append(found)
        self.own.setdefault(value, set()).update([place] if (place := place_of(found)) is not None else [])
        self.within.setdefault(value, set()).update(self._places(found))

    def _places(self, found: Any) -> set[Place]:
        places: set[Place] = set()
        for part in walk(found):
            place = place_of(part)
            if place is not None:
                places.add(place)
                self._states.setdefault(place, (part, state_of(part)))
        return places

    def _look_again(self) -> None:
        for value, found in self.values.items():
            self.within.setdefault(value, set()).update(self._places(found))

    def node(self, node: Node) -> list[Any]:
        if node.blocks:
            return super().node(node)
        before = dict(self._states)
        changed = False
        results = self._run(node)
        for value, result in zip(node.outputs, results, strict=True):
            self.remember(value, result)
        for place, (found, state) in before.items():
            now = state_of(found)
            if now != state:
                self.written.setdefault(node, set()).add(place)
                self._states[place] = (found, now)
                changed = not isinstance(found, torch.Tensor)
        if changed:
            self._look_again()
        return results

    def _run(self, node: Node) -> list[Any]:
        inputs = [self.values.get(value) for value in node.inputs]
        if node.kind == "prim::Constant":
            return [None] if isinstance(node.output.type, FunctionType) else [copy_constant(super().node(node)[0])]
        if node.kind == "prim::fork":
            graph = node.get_graph("Subgraph")
            later = Later(lambda: self._call(graph, inputs))
            if not self.late:
                later.get()
            return [later]
        if node.kind == "aten::wait":
            return [inputs[0].get()]
        if node.kind == "prim::CallFunction":
            type = node.inputs[0].type
            assert isinstance(type, FunctionType)
            return [self._call(type.function.graph, inputs[1:])]
        if node.kind == "prim::CallMethod":
            record = node.inputs[0].type.find_method(node.get_string("name"))  # type: ignore[attr-defined]
            return [self._call(record.graph, inputs)]
        return super().node(node)

    def _call(self, graph: Graph, arguments: list[Any]) -> Any:
        for value, argument in zip(graph.inputs, arguments, strict=True):
            self.remember(value, argument)
        return Evaluator.run(self, graph, arguments)

    def loop(self, body: Any, limit: int, condition: bool, *carried: Any) -> list[Any]:
        current = list(carried)
        count = 0
        while condition and count < limit:
            for value, found in zip(body.inputs, [count, *current], strict=True):
                self.values[value] = found
                self.remember(value, found)
            condition, *current = self.block(body)
            count += 1
        return current

    def block(self, block: Any) -> list[Any]:
        for node in block.nodes:
            results = self.node(node)
            self.values.update(zip(node.outputs, results, strict=True))
            for value, result in zip(node.outputs, results, strict=True):
                self.remember(value, result)
        return [self.values[value] for value in block.outputs]


def walk(found: Any) -> Iterator[Any]:
    """``found`` and all that it holds."""
    pending, seen = [found], set()
    while pending:
        part = pending.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, (list, tuple)):
            pending += part
        elif isinstance(part, dict):
            pending += [*part.keys(), *part.values()]
        elif isinstance(part, Later):
            pending += part.result
        elif place_of(part) is not None and not isinstance(part, torch.Tensor):
            pending += vars(part).values()


def place_of(found: Any) -> Place | None:
    """The memory that ``found`` itself is; None for a tuple and what cannot be written to."""
    if isinstance(found, torch.Tensor):
        return ("storage", found.untyped_storage()._cdata)
    if isinstance(found, (list, dict, Later)) or type(found).__name__ == "Box":
        return ("object", id(found))
    return None


def state_of(found: Any) -> Any:
    """What changes when ``found`` itself is written to."""
    if isinstance(found, torch.Tensor):
        return found._version
    if isinstance(found, list):
        return [id(part) for part in found]
    if isinstance(found, dict):
        return [(key, id(part)) for key, part in found.items()]
    if isinstance(found, Later):
        return None
    return {name: id(part) for name, part in vars(found).items()}
