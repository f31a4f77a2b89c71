"""What the alias database says, beside what happens when a program runs."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest
import torch

import rekindle
from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.verifier import verify
from rekindle.passes import inline
from tests.analysis.aliasing_programs import aliasing_program
from tests.analysis.watching import Watcher, walk
from tests.property.test_programs import load, unload
from tests.support.equality import assert_same


def program_arguments(module: Any, seed: int) -> list[Any]:
    """Arguments that share memory in many ways, which ones depends on ``seed``."""
    choose = random.Random(seed)
    tensors = [torch.full([2, 2], float(value)) for value in (1, -2, 3, -4)]
    base = choose.choice(tensors)
    pool = [*tensors, base.t(), base.view(2, 2)]

    def tensor() -> torch.Tensor:
        return choose.choice(pool)

    lists = [[tensor()], [tensor(), tensor()]]
    nested = [choose.choice(lists), [tensor()]]
    boxes = [module.Box(tensor(), choose.choice(lists)), module.Box(tensor(), choose.choice(nested))]
    return [
        *(choose.random() < 0.5, tensor(), tensor(), tensor()[0]),
        *(choose.choice(lists), choose.choice(lists), nested, {"a": tensor()}),
        *(choose.choice(boxes), choose.choice(boxes)),
    ]


def _values(graph: Graph) -> list[Value]:
    found = [*graph.inputs]
    for node in graph.all_nodes():
        found += [*node.outputs, *(value for block in node.blocks for value in block.inputs)]
        subgraph = node.attributes.get("Subgraph")
        if isinstance(subgraph, Graph):
            found += _values(subgraph)
    return found


def _nodes(graph: Graph) -> list[Node]:
    found = []
    for node in graph.all_nodes():
        found.append(node)
        subgraph = node.attributes.get("Subgraph")
        if isinstance(subgraph, Graph):
            found += _nodes(subgraph)
    return found


def _check_aliases(db: AliasDb, graph: Graph, seen: Watcher) -> None:
    values = [value for value in _values(graph) if seen.own.get(value) or seen.within.get(value)]
    for a, b in itertools.combinations(values, 2):
        if seen.own[a] & seen.own[b]:
            assert db.may_alias(a, b), f"%{a.name} and %{b.name} share memory"
        if seen.within[a] & seen.within[b]:
            assert db.may_contain_alias(a, b), f"%{a.name} and %{b.name} hold the same memory"


def _check_writes(db: AliasDb, graph: Graph, seen: Watcher) -> None:
    values = _values(graph)
    for node in _nodes(graph):
        for place in seen.written.get(node, ()):
            for value in values:
                if place in seen.own.get(value, ()):
                    assert db.writes_to_alias(node, [value]), f"{node.kind} writes to %{value.name}"
                    assert db.has_writers(value), f"{node.kind} writes to %{value.name}"


def _state(result: Any, arguments: list[Any]) -> list[Any]:
    """What a caller can observe after a call: all values, and which of them are one object."""
    parts = [part for part in walk([result, arguments]) if not isinstance(part, (tuple, bool, str))]
    numbers: dict[int, int] = {}
    found: list[Any] = []
    for part in parts:
        found.append(numbers.setdefault(id(part), len(numbers)))
        if isinstance(part, torch.Tensor):
            found.append(part.clone())
    return found


@pytest.mark.parametrize("seed", range(40))
def test_whatever_shares_memory_may_alias(tmp_path: Path, seed: int) -> None:
    module = load(aliasing_program(seed), tmp_path)
    try:
        graph = rekindle.script(module.f).graph.copy()
        if seed % 4:
            inline(graph)
        db = AliasDb(graph)
        for arguments in range(3):
            seen = Watcher(late=arguments % 2 == 1)
            seen.run(graph, program_arguments(module, arguments))
            _check_aliases(db, graph, seen)
            _check_writes(db, graph, seen)
    finally:
        unload(module)


@pytest.mark.parametrize("seed", range(40))
def test_moving_changes_nothing(tmp_path: Path, seed: int) -> None:
    module = load(aliasing_program(seed), tmp_path)
    try:
        original = rekindle.script(module.f).graph.copy()
        if seed % 4:
            inline(original)
        graph = original.copy()
        db = AliasDb(graph)
        choose = random.Random(seed)
        for _ in range(40):
            _move_something(db, graph, choose)
        verify(graph)
        for arguments in range(2):
            ours, theirs = program_arguments(module, arguments), program_arguments(module, arguments)
            after, before = Watcher().run(graph, ours), Watcher().run(original, theirs)
            assert_same(_state(after, ours), _state(before, theirs))
    finally:
        unload(module)


def test_moves_are_tried_that_succeed(tmp_path: Path) -> None:
    moved = 0
    for seed in range(10):
        module = load(aliasing_program(seed), tmp_path)
        graph = rekindle.script(module.f).graph.copy()
        unload(module)
        inline(graph)
        db, choose = AliasDb(graph), random.Random(seed)
        moved += sum(_move_something(db, graph, choose) for _ in range(40))
    assert moved > 50


def _move_something(db: AliasDb, graph: Graph, choose: random.Random) -> bool:
    """Try to move some node to some other; returns whether the order has changed."""
    node = choose.choice([node for node in graph.all_nodes() if node.kind != "prim::Constant"])
    assert node.owning_block is not None
    before = list(node.owning_block.nodes)
    place = choose.choice([other for other in before if other.kind != "prim::Constant"])
    behind = choose.random() < 0.5
    could = (db.could_move_after_topologically if behind else db.could_move_before_topologically)(node, place)
    move = db.move_after_topologically_valid if behind else db.move_before_topologically_valid
    assert move(node, place) == could
    after = list(node.owning_block.nodes)
    assert sorted(map(id, after)) == sorted(map(id, before))
    if could and node is not place:
        assert node.is_after(place) == behind
    elif not could:
        assert after == before
    return after != before
