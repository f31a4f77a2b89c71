"""Libraries have kernels for all sizes of dynamic dimensions, also those that no example has."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.building import size_exploration
from rekindle.building.group_layouts import GroupInputs
from rekindle.building.group_recipes import recipes_for_calls
from rekindle.building.size_relations import relations_of
from rekindle.codegen.compiled_kernels import kernel_recipe
from rekindle.codegen.layout import Layout, contiguous_strides
from rekindle.codegen.loop_ir.builder import Unsupported
from rekindle.ir.text.parser import parse_graph


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(16, 64)
        self.norm = nn.LayerNorm(64)
        self.output = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(self.output(torch.relu(self.norm(self.hidden(x)))), -1)


class Images(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.norm(x))
        return torch.cat([y, y * 2], 1).mean((2, 3))


def distances(x: Tensor, y: Tensor) -> Tensor:
    return torch.sqrt(((x[:, None] - y[None]) ** 2).sum(-1))


def shifted_differences(x: Tensor) -> Tensor:
    return torch.tanh(x[1:] - x[:-1]) + x[1:]


@dataclass(frozen=True)
class Case:
    program: Callable[[], Any]
    example: Sequence[Tensor]
    dynamic: Mapping[str, Sequence[int]]
    others: Sequence[Sequence[int]]
    make: Callable[..., Sequence[Tensor]]


_ROWS = (0, 1, 2, 3, 7, 8, 10, 16, 17, 32, 64, 65, 257, 1000, 3000)
_PAIRS = [(n, k) for n in (1, 2, 4, 10, 16, 64, 65, 257) for k in (1, 2, 7, 10, 16, 64, 65)]

CASES = {
    "rows": Case(Classifier, (torch.randn(4, 16),), {"x": [0]}, [(n,) for n in _ROWS], lambda n: (torch.randn(n, 16),)),
    "rows of rows": Case(
        Classifier, (torch.randn(4, 7, 16),), {"x": [0, 1]}, _PAIRS, lambda n, k: (torch.randn(n, k, 16),)
    ),
    "images": Case(
        Images,
        (torch.randn(2, 8, 9, 11),),
        {"x": [0, 2, 3]},
        [(n, h, w) for n in (1, 2, 8, 16) for h in (1, 2, 8, 16) for w in (1, 8, 33)],
        lambda n, h, w: (torch.randn(n, 8, h, w),),
    ),
    "two sizes": Case(
        lambda: distances,
        (torch.randn(4, 3), torch.randn(5, 3)),
        {"x": [0], "y": [0]},
        [(n, k) for n in (0, 1, 3, 4, 16, 100) for k in (0, 1, 3, 4, 16, 100)],
        lambda n, k: (torch.randn(n, 3), torch.randn(k, 3)),
    ),
    "one less": Case(
        lambda: shifted_differences,
        (torch.randn(6, 3),),
        {"x": [0]},
        [(n,) for n in (1, 2, 3, 4, 5, 100, 3000)],
        lambda n: (torch.randn(n, 3),),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_library_runs_with_any_sizes_of_dynamic_dimensions(case: Case, tmp_path: Path) -> None:
    torch.manual_seed(0)
    program = case.program()
    eager = program.eval() if isinstance(program, nn.Module) else program
    built = rekindle.build(rekindle.script(eager), tmp_path, [case.example], dynamic=case.dynamic, freestanding=True)
    library = rekindle.NativeLibrary(built.folder)
    for sizes in case.others:
        args = case.make(*sizes)
        with torch.no_grad():
            torch.testing.assert_close(library(*args), eager(*args), rtol=1e-4, atol=1e-5)


def test_products_of_any_size_need_no_pytorch_in_a_freestanding_library(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = rekindle.script(nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 8)).eval())
    x = torch.randn(64, 256)
    assert rekindle.build(net, tmp_path / "torch", [(x,)]).torch_operators == ("aten::linear",)
    built = rekindle.build(net, tmp_path / "own", [(x,)], freestanding=True)
    with torch.no_grad():
        torch.testing.assert_close(rekindle.NativeLibrary(built.folder)(x), net(x), rtol=1e-4, atol=1e-4)


def test_products_are_left_to_pytorch_only_where_no_example_is_small(tmp_path: Path) -> None:
    net = rekindle.script(nn.Sequential(nn.Linear(256, 512), nn.ReLU()).eval())
    examples = [(torch.randn(1, 256),), (torch.randn(300, 256),)]
    built = rekindle.build(net, tmp_path, examples)
    assert built.is_freestanding
    library = rekindle.NativeLibrary(built.folder)
    for (x,) in examples:
        with torch.no_grad():
            torch.testing.assert_close(library(x), net(x), rtol=1e-4, atol=1e-4)


# ----------------------------------------------------------------------------------------------------------- relations


def _layout(*sizes: int) -> Layout:
    return Layout(sizes, contiguous_strides(sizes), torch.float32)


def test_relations_are_found_in_calls() -> None:
    calls: list[GroupInputs] = [(_layout(n, 8), _layout(2 * n - 1), _layout(n * k, k), int) for n, k in _PAIRS[:20]]
    relations = relations_of(calls)
    assert relations is not None
    assert relations.calls == tuple(_PAIRS[:20])
    assert relations.layouts((30, 5)) == (_layout(30, 8), _layout(59), _layout(150, 5), int)
    assert relations.layouts((0, 5)) is None  # a size of -1


def test_relations_keep_the_order_of_dimensions_in_memory_and_the_strides_of_slices() -> None:
    calls: list[GroupInputs] = [
        (
            Layout((n, 8), (1, n), torch.float32),
            Layout((n, 4), (10, 1), torch.float32),
            Layout((n, 3), (0, 1), torch.int64),
        )
        for n in (4, 9, 14)
    ]
    relations = relations_of(calls)
    assert relations is not None
    assert relations.layouts((100,)) == (
        Layout((100, 8), (1, 100), torch.float32),
        Layout((100, 4), (10, 1), torch.float32),
        Layout((100, 3), (0, 1), torch.int64),
    )


def test_there_are_no_relations_where_nothing_varies_or_strides_follow_no_rule() -> None:
    assert relations_of([(_layout(3, 4),), (_layout(3, 4),)]) is None
    assert relations_of([(Layout((n, 4), (n * n + 4, 1), torch.float32),) for n in (2, 3, 4, 7)]) is None


GROUPS = {
    "a normalization of rows": (
        """graph(%x : Tensor, %w : Tensor):
  %shape : int[] = prim::Constant[value=[16]]()
  %none : NoneType = prim::Constant()
  %eps : float = prim::Constant[value=1.0000000000000001e-05]()
  %false : bool = prim::Constant[value=0]()
  %y : Tensor = aten::layer_norm(%x, %shape, %w, %none, %eps, %false)
  %z : Tensor = aten::gelu(%y, %kind)
  return (%z)""".replace("  %z : Tensor", '  %kind : str = prim::Constant[value="none"]()\n  %z : Tensor'),
        lambda n, k: (_layout(n, k, 16), _layout(16)),
    ),
    "a product and a sum": (
        """graph(%x : Tensor, %w : Tensor, %b : Tensor):
  %one : int = prim::Constant[value=1]()
  %y : Tensor = aten::matmul(%x, %w)
  %z : Tensor = aten::add(%y, %b, %one)
  return (%z)""",
        lambda n, k: (_layout(n, k, 16), _layout(16, 8), _layout(8)),
    ),
    "a table of pairs": (
        """graph(%x : Tensor, %y : Tensor):
  %z : Tensor = aten::mul(%x, %y)
  return (%z)""",
        lambda n, k: (_layout(n, 1, 4), _layout(k, 4)),
    ),
}


@pytest.mark.parametrize(("text", "make"), GROUPS.values(), ids=GROUPS.keys())
def test_a_group_has_a_recipe_wherever_there_can_be_one(text: str, make: Callable[[int, int], GroupInputs]) -> None:
    group = parse_graph(text)
    observed = [make(n, k) for n, k in ((4, 7), (9, 7), (14, 7), (1, 7), (4, 15), (4, 23), (4, 1))]
    recipes = recipes_for_calls(group, observed, may_defer=False)
    assert len(recipes) <= 24
    generator = random.Random(20261126)
    served = 0
    for _ in range(300):
        n, k = (generator.choice((0, 1, 2, 4, 7, 8, 16, 64, generator.randrange(1, 5000))) for _ in range(2))
        inputs = make(n, k)
        if any(recipe.numbers(inputs) is not None for recipe in recipes):
            served += 1
            continue
        with pytest.raises(Unsupported):
            kernel_recipe(group, inputs, defer_to_libraries=False)
    assert served >= 240


def test_each_dtype_has_a_search_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size_exploration, "_MAX_TRIES", 5)
    calls: list[GroupInputs] = [
        (Layout((n, 3), (3, 1), dtype),) for dtype in (torch.float32, torch.float64) for n in (4, 9, 14)
    ]
    tried: list[torch.dtype] = []

    def make(inputs: GroupInputs) -> None:
        (layout,) = inputs
        assert isinstance(layout, Layout)
        tried.append(layout.dtype)

    size_exploration.add_recipes(calls, [], make)
    assert tried == [torch.float32] * 5 + [torch.float64] * 5
