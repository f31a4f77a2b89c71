"""Partial evaluation of whole programs: what is inlined, folded and assumed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.analysis.attribute_writes import AttributeKey
from rekindle.ir.graph import Graph
from rekindle.ir.text.printer import print_graph
from rekindle.ir.verifier import verify
from rekindle.passes import PartialEvaluation, run_passes
from rekindle.passes.simplification import partial_evaluation
from rekindle.passes.simplification.partial_evaluation import PRESENT, UNKNOWN, AttributeRead
from rekindle.rewriting.changes import ChangeCounter
from tests.support.golden import GoldenTexts


class Block(nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.repeats = 2

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if self.training:
            x = x + torch.rand_like(x)
        if mask is not None:
            x = x * mask
        for _ in range(self.repeats):
            x = x * self.scale
        return x


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Block(2.0)
        self.second = Block(2.0)
        self.third = Block(3.0)
        self.calls = 0

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        self.calls += 1
        if self.calls < 0:
            return x
        return self.third(self.second(self.first(x)), mask)


class Values:
    """The attributes of a module, all of which are known but ``Net.calls``, which the program writes to."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module

    def value_of(self, read: AttributeRead) -> object:
        found: Any = self.module
        for name in read.module.names:
            found = found._modules[name]
        return found.__dict__.get(read.name, UNKNOWN)

    def is_written(self, key: AttributeKey) -> bool:
        return key[1] == "calls"


def evaluated(module: Any, known: dict[int, object]) -> tuple[str, PartialEvaluation]:
    """The graph of ``forward`` after the pass, and the pass."""
    graph = module.forward.graph.copy()
    found = PartialEvaluation(known, attributes=Values(module))
    assert run_passes(graph, [found], verify)
    return text_of(graph), found


def text_of(graph: Graph) -> str:
    return print_graph(graph, ranges=False)


def test_programs(golden: GoldenTexts) -> None:
    module = rekindle.script(Net().eval())
    programs = {"forward": module, "forward of a block": module.first}
    parts = [f"# {name}\n\n{text_of(each.forward.graph)}" for name, each in programs.items()]
    for title, known in (("mask is None", {2: None}), ("mask is present", {2: PRESENT}), ("nothing is known", {})):
        text, found = evaluated(module, known)
        reads = {".".join((*read.module.names, read.name)): value for read, value in found.assumptions.items()}
        assumed = [f"#   {name} = {value}" for name, value in reads.items()]
        parts.append("\n".join([f"# where {title}; assumes", *assumed, "", text]))
    golden("passes/partial_evaluation", "\n".join(parts))


def test_blocks_of_which_the_same_is_known_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial_evaluation, "_SMALL", 0)
    module = rekindle.script(Net().eval())
    reads = [name for _, name in _reads(module)]
    assert reads.count("training") == 3
    # Two evaluations of a block, of three attributes each; the second block shares that of the first.
    assert _count_of("assume", module) == 6


def _reads(module: Any) -> list[tuple[tuple[str, ...], str]]:
    _, found = evaluated(module, {2: None})
    return [(read.module.names, read.name) for read in found.assumptions]


def _count_of(verb: str, module: Any) -> int:
    seen: list[str] = []

    class Noting(ChangeCounter):
        def may_change(self, name: str, what: str, subject: object) -> bool:
            seen.append(what)
            return True

    with Noting().attributed_to("partial_evaluation"):
        PartialEvaluation({2: None}, attributes=Values(module)).run(module.forward.graph.copy())
    return sum(what.startswith(verb) for what in seen)


@pytest.mark.parametrize("small", [0, 24])
def test_a_limit_on_changes_leaves_a_valid_graph(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial_evaluation, "_SMALL", small)
    module = rekindle.script(Net().eval())
    x = torch.ones(3)
    for limit in range(0, 60, 7):
        graph = module.forward.graph.copy()
        counter = ChangeCounter({"partial_evaluation": limit})
        with counter.attributed_to("partial_evaluation"):
            PartialEvaluation({2: None}, attributes=Values(module)).run(graph)
        verify(graph)
        function = rekindle.create_function(graph, "limited")
        assert torch.equal(function(module, x, None), torch.full((3,), 4.0 * 4.0 * 9.0))


# ----------------------------------------------------------------------------------------------- lists that are written


class Appended(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, 4))

    def forward(self, x: Tensor) -> Tensor:
        dims: list[int] = []
        dims.append(0)
        return x * (self.weight * 2).sum(dims).dim()


class AppendedInBranch(Appended):
    def forward(self, x: Tensor) -> Tensor:
        dims: list[int] = []
        if x.sum() > 0:
            dims.append(1)
        return x * (self.weight * 2).sum(dims).dim()


class AppendedByCallee(Appended):
    def add(self, dims: list[int]) -> None:
        dims.append(0)

    def forward(self, x: Tensor) -> Tensor:
        dims: list[int] = []
        self.add(dims)
        return x * (self.weight * 2).sum(dims).dim()


class AppendedInTuple(Appended):
    def forward(self, x: Tensor) -> Tensor:
        dims: list[int] = []
        pair = (dims, 1)
        pair[0].append(0)
        return x * (self.weight * 2).sum(dims).dim()


class AppendedTensors(Appended):
    def forward(self, x: Tensor) -> Tensor:
        parts = [self.weight * 2]
        parts[0] = self.weight.sum()
        return x * (parts[0] + 1).dim()


@pytest.mark.parametrize("cls", [Appended, AppendedInBranch, AppendedByCallee, AppendedInTuple, AppendedTensors])
def test_a_list_that_is_written_is_not_known_by_its_first_items(cls: type[nn.Module]) -> None:
    module, x = cls(), torch.ones(2)
    compiled = rekindle.script(module)
    for _ in range(3):
        torch.testing.assert_close(compiled(x), module(x))


def test_sizes_that_are_written_are_not_known_by_the_tensor() -> None:
    """In TorchScript, the sizes of a tensor are a list."""

    class Sized(Appended):
        def forward(self, x: Tensor) -> Tensor:
            sizes = self.weight.size()
            sizes.append(1)
            return x * (self.weight * 2).reshape(sizes).dim()

    compiled = rekindle.script(Sized())
    for _ in range(3):
        torch.testing.assert_close(compiled(torch.ones(2)), torch.full((2,), 3.0))


class Attends(nn.Module):
    """Calls a method with the same tensor twice, with different tensors, and with tensors that may be the same."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        if query is key:
            return query * 2 + value
        query, key = (x.transpose(0, 1) for x in (query, key))
        if query is key:
            return query * 5
        if key is value:
            return query - key
        return query + key * value.transpose(0, 1)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        z = x + y
        return self.attend(x, x, y, x), self.attend(z, x, x, None), self.attend(x, y, y, y)


@pytest.mark.parametrize("small", [0, 24])
def test_identity_of_arguments_selects_branches(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partial_evaluation, "_SMALL", small)
    module = rekindle.script(Attends())
    graph = module.forward.graph.copy()
    assert run_passes(graph, [PartialEvaluation(attributes=Values(module))], verify)
    kinds = [node.kind for node in graph.all_nodes()]
    assert kinds.count("aten::__is__") == 1  # whether x is y
    assert kinds.count("prim::If") == 1
    assert "prim::ListUnpack" not in kinds
    assert kinds.count("aten::mul") == 4  # one in the first and second call, and in both branches of the last
    assert "aten::sub" not in kinds  # a transposed tensor is a new one
    x, y = torch.arange(4.0).reshape(2, 2), torch.ones(2, 2)
    for arguments in ((x, y), (x, x)):
        torch.testing.assert_close(module(*arguments), Attends()(*arguments))


class Unpacks(nn.Module):
    """Unpacks lists that are written to, or that others hold, before and after."""

    def forward(self, x: Tensor, c: bool) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
        appended = [x + 1]
        appended.append(x + 2)
        a, b = appended
        written = [x + 3]
        written[0] = x + 4
        (d,) = written
        perhaps = [x]
        if c:
            perhaps.append(x + 5)
        else:
            perhaps.append(x + 6)
        _, e = perhaps
        kept = [x + 7, x + 8]
        f, _ = kept
        later = [x + 9]
        if c:
            (g,) = later
            f = f * g
        later.append(x)
        return a * b, d, e * f, kept + later


def test_lists_are_unpacked_where_their_items_are_known() -> None:
    module = rekindle.script(Unpacks())
    graph = module.forward.graph.copy()
    assert run_passes(graph, [PartialEvaluation(attributes=Values(module))], verify)
    unpacked = [node for node in graph.all_nodes() if node.kind == "prim::ListUnpack" and node.has_uses]
    assert len(unpacked) == 4  # of those that are written to, passed on, or read in a branch
    for c in (True, False):
        torch.testing.assert_close(module(torch.ones(2), c), Unpacks()(torch.ones(2), c))


class ReturnsFromALoop(nn.Module):
    """Returns a tuple in the first iteration, if a flag says so."""

    def forward(self, n: int, c: bool, x: Tensor) -> tuple[int, Tensor]:
        for i in range(3):
            if c:
                return i, x + 1
            n = n + i
        return n, x


def test_a_flag_decides_that_the_first_iteration_returns() -> None:
    module = rekindle.script(ReturnsFromALoop())
    for c in (True, False, True):
        torch.testing.assert_close(module(5, c, torch.ones(2)), ReturnsFromALoop()(5, c, torch.ones(2)))
