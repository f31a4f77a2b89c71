"""Graphs for tests of what runs them: random ones, operators that watch, and the plainest evaluator there is."""

from __future__ import annotations

import random
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from rekindle.ir.attributes import constant_value
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.operators.registry import REGISTRY, Operator
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.types import BOOL, INT, TENSOR


class Thing:
    """Represents a tensor: an object that can be watched. ``text`` is how it was computed."""

    __slots__ = ("__weakref__", "text")

    def __init__(self, text: str) -> None:
        self.text = text


class Watch:
    """Sees every call of ``test::mix`` and ``test::test``, and what is alive then."""

    def __init__(self) -> None:
        self.alive: weakref.WeakSet[Thing] = weakref.WeakSet()
        self.on_call: Callable[[Node], None] = lambda node: None
        self.answers: random.Random = random.Random(0)

    def thing(self, text: str) -> Thing:
        made = Thing(text)
        self.alive.add(made)
        return made


WATCH = Watch()


def _mix(node: Node) -> Callable[..., Any]:
    """``test::mix``: as many new things as the node has outputs, made of all inputs."""
    count = len(node.outputs)

    def mix(*inputs: Thing) -> Any:
        WATCH.on_call(node)
        text = f"({' '.join(thing.text for thing in inputs)})"[-200:]
        made = tuple(WATCH.thing(f"{text}{index}") for index in range(count))
        return made[0] if count == 1 else made

    return mix


def _test(node: Node) -> Callable[..., bool]:
    """``test::test``: some bool or other."""

    def test(*inputs: Thing) -> bool:
        WATCH.on_call(node)
        return WATCH.answers.random() < 0.6

    return test


def register() -> None:
    """Make the operators known."""
    for name, make in (("mix", _mix), ("test", _test)):
        schema = FunctionSchema(f"test::{name}", returns=(Argument("", TENSOR),), is_vararg=True)
        REGISTRY.register(Operator(schema, operation_for_node=make))


class _Maker:
    def __init__(self, seed: int, size: int) -> None:
        self.random = random.Random(seed)
        self.left = size
        self.graph = Graph()

    def block(self, block: Block, visible: list[Value], outputs: int, depth: int) -> None:
        visible = list(visible)
        for _ in range(self.random.randint(0, 4)):
            if self.left > 0:
                self.left -= 1
                self.node(block, visible, depth)
        for _ in range(outputs):
            block.add_output(self.random.choice(visible))

    def pick(self, visible: Sequence[Value], most: int) -> list[Value]:
        return [self.random.choice(visible) for _ in range(self.random.randint(1, most))]

    def test(self, block: Block, visible: list[Value]) -> Value:
        return block.append(self.graph.create("test::test", self.pick(visible, 2), types=[BOOL])).output

    def node(self, block: Block, visible: list[Value], depth: int) -> None:
        choice = self.random.random()
        if choice < 0.5 or depth > 3:
            outputs = self.random.choice([1, 1, 1, 2])
            node = self.graph.create("test::mix", self.pick(visible, 3), outputs=outputs)
            block.append(node)
        elif choice < 0.75:
            outputs = self.random.randint(0, 3)
            node = self.graph.create("prim::If", [self.test(block, visible)], outputs=outputs)
            block.append(node)
            for _ in range(2):
                self.block(node.add_block(), visible, outputs, depth + 1)
        else:
            node = self.loop(block, visible, depth)
        visible += node.outputs

    def loop(self, block: Block, visible: list[Value], depth: int) -> Node:
        carried = self.random.randint(0, 3)
        limit = self.graph.create_constant(self.random.choice([0, 1, 2, 3, 2**63 - 1]))
        true = self.graph.create_constant(True)
        block.append(limit)
        block.append(true)
        endless = limit["value"] == 2**63 - 1
        condition = true.output if self.random.random() < 0.5 else self.test(block, visible)
        first = [self.random.choice(visible) for _ in range(carried)]
        node = self.graph.create("prim::Loop", [limit.output, condition, *first], outputs=carried)
        block.append(node)
        body = node.add_block()
        body.add_input(type=INT)
        inside = [*visible, *(body.add_input() for _ in range(carried))]
        self.block(body, inside, carried, depth + 1)
        again = true.output if self.random.random() < 0.5 and not endless else self.test(body, inside)
        body.insert_output(0, again)
        return node


def random_graph(seed: int, size: int = 25) -> Graph:
    """A graph of nested control flow over ``test::mix`` and ``test::test``, with up to ``size`` nodes of all sorts."""
    maker = _Maker(seed, size)
    inputs = [maker.graph.add_input() for _ in range(maker.random.randint(1, 3))]
    maker.block(maker.graph.block, inputs, maker.random.randint(1, 2), 0)
    return maker.graph


class Evaluator:
    """Runs a graph by walking it, and keeps everything. ``values`` is what each value has been bound to last."""

    def __init__(self) -> None:
        self.values: dict[Value, Any] = {}

    def run(self, graph: Graph, arguments: Sequence[Any]) -> Any:
        self.values.update(zip(graph.inputs, arguments, strict=True))
        outputs = self.block(graph.block)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def block(self, block: Block) -> list[Any]:
        for node in block.nodes:
            results = self.node(node)
            self.values.update(zip(node.outputs, results, strict=True))
        return [self.values[value] for value in block.outputs]

    def node(self, node: Node) -> list[Any]:
        inputs = [self.values[value] for value in node.inputs]
        if node.kind == "prim::Constant":
            return [constant_value(node.attributes.get("value"), node.output.type)]
        if node.kind == "prim::If":
            return self.block(node.blocks[0 if inputs[0] else 1])
        if node.kind == "prim::Loop":
            return self.loop(node.blocks[0], *inputs)
        assert node.operator is not None
        result = node.operator.operation_of(node)(*inputs)
        return [result] if len(node.outputs) == 1 else list(result or ())

    def loop(self, body: Block, limit: int, condition: bool, *carried: Any) -> list[Any]:
        current = list(carried)
        count = 0
        while condition and count < limit:
            self.values.update(zip(body.inputs, [count, *current], strict=True))
            condition, *current = self.block(body)
            count += 1
        return current
