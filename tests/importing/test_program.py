"""Programs of ``torch.export`` that come back; ``tests.sweeps.imports`` has all of them."""

from __future__ import annotations

import re

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, export

import rekindle
from rekindle.errors import CaptureError
from tests.importing.checking import AGREES, checked
from tests.importing.programs import PROGRAMS, CalledTwice, of
from tests.importing.transformers_models import NAMES
from tests.sweeps.report import RESULTS

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")  # PyTorch's own

SAMPLE = ("cond.data", "while.data", "map.rows", "sizes.derived", "tree.nested", "state.argument", "modules.no_grad")


@pytest.mark.parametrize("name", SAMPLE)
def test_programs_agree(name: str) -> None:
    outcome = checked(PROGRAMS[name])
    assert outcome.stage == AGREES, outcome.detail


def test_the_hierarchy_comes_back() -> None:
    module = rekindle.from_exported(export(CalledTwice(), (torch.ones(2, 3),)))
    assert [name for name, _ in module.named_parameters()] == [
        *("layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias")
    ]
    first = module.layers.get_submodule("0")
    assert first.original_name == "Linear"
    assert [name for name in ("forward", "forward1") if hasattr(first, name)] == ["forward", "forward1"]
    assert module.layers.get_submodule("1").graph.find_node("aten::linear") is not None


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((torch.ones(3), torch.ones(2, 8)), "x must have 2 dimensions, as when the program was exported"),
        ((torch.ones(3, 5), torch.ones(3, 8)), "x.size(1) must be 4, as when the program was exported"),
        ((torch.ones(3, 4), torch.ones(2, 8)), "y.size(0) must be the same as x.size(0)"),
        ((torch.ones(9, 4), torch.ones(9, 8)), "x.size(0) must be 8 or less"),
        ((torch.ones(3, 4), torch.ones(3, 7)), "y.size(1) must be 8, as when the program was exported"),
    ],
)
def test_arguments_are_held_to_what_was_exported(args: tuple[Tensor, ...], message: str) -> None:
    rows = Dim("rows", min=3, max=8)
    exported = export(
        of(lambda x, y: x.repeat(1, 2) + y)(),
        (torch.ones(4, 4), torch.ones(4, 8)),
        dynamic_shapes={"x": {0: rows}, "y": {0: rows}},
    )
    with pytest.raises(RuntimeError, match=re.escape(message)):
        rekindle.from_exported(exported)(*args)


@pytest.mark.parametrize("rows", [5, 8, 11, 23, 50])
def test_size_that_determines_a_symbol_is_accepted(rows: int) -> None:
    n = Dim("n", min=2, max=50)
    exported = export(of(lambda x: x * 2)(), (torch.ones(8),), dynamic_shapes={"x": {0: 3 * n - 1}})
    x = torch.ones(rows)
    assert torch.equal(rekindle.from_exported(exported)(x), exported.module()(x))


@pytest.mark.parametrize("rows", [1, 3, 4, 103])
def test_size_that_is_an_expression_is_held_to_its_range(rows: int) -> None:
    n = Dim("n", min=2, max=50)
    exported = export(of(lambda x: x * 2)(), (torch.ones(7),), dynamic_shapes={"x": {0: 2 * n + 1}})
    x = torch.ones(rows)
    with pytest.raises((AssertionError, RuntimeError)):
        exported.module()(x)
    with pytest.raises(RuntimeError, match=re.escape("must be ")):
        rekindle.from_exported(exported)(x)


def test_symbol_that_a_size_determines_is_checked_in_others() -> None:
    n = Dim("n", min=2, max=50)
    exported = export(
        of(lambda x, y: x.sum() + y.sum())(),
        (torch.ones(8), torch.ones(6)),
        dynamic_shapes={"x": {0: 3 * n - 1}, "y": {0: 2 * n}},
    )
    imported = rekindle.from_exported(exported)
    assert imported(torch.ones(5), torch.ones(4)) == 9
    with pytest.raises(RuntimeError, match=re.escape("y.size(0) must be ")):
        imported(torch.ones(5), torch.ones(6))


def test_what_has_no_form_is_refused() -> None:
    def f(x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return x @ x

    with pytest.raises(CaptureError) as raised:
        rekindle.from_exported(export(of(f)(), (torch.ones(2, 2),)))
    assert raised.value.message == "'wrap_with_autocast' has no form in a program"


def test_committed_result_is_of_these_programs() -> None:
    text = (RESULTS / "imports.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([\w.]+) \| (.+) \|$", text, re.MULTILINE))
    models = {f"transformers.{name}" for name in NAMES}
    assert rows.keys() - {"program"} == PROGRAMS.keys() | models
    assert sum(told == AGREES for told in rows.values()) >= 50


def test_arguments_without_a_type_are_refused() -> None:
    class Net(nn.Module):
        def forward(self, x: list[object]) -> Tensor:
            return x[0] * x[1]

    with pytest.raises(CaptureError) as raised:
        rekindle.from_exported(export(Net(), ([torch.ones(2), 3],)))
    assert str(raised.value) == (
        "x is a list of (Tensor, int), which no type describes\nHint: export the program with a tuple there"
    )
