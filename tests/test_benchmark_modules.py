"""``python -m benchmarks --only modules``: the list is complete, and a case runs through the measuring code."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

import pytest
import torch
from rich.console import Console
from torch import nn

from benchmarks.modules import catalog, measure, report, selection
from benchmarks.modules.catalog import CASES, PACKAGES, Incomplete, check_complete, check_packages
from benchmarks.modules.measure import Peer, Row
from benchmarks.modules.process import PRODUCTS, difference

ROOT = Path(__file__).parent.parent
NEEDS_ALL_LISTED = pytest.mark.skipif(
    not hasattr(nn, "LinearCrossEntropyLoss"), reason="a listed module is new in PyTorch 2.13"
)


@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="the list is that of PyTorch 2.13")
def test_every_module_of_torch_is_a_case_or_excluded() -> None:
    check_complete({"torch.nn"})


@NEEDS_ALL_LISTED
def test_a_module_that_is_not_listed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nn, "Unheard", type("Unheard", (nn.Module,), {}), raising=False)
    with pytest.raises(Incomplete, match=r"^torch\.nn has modules without a case: Unheard$"):
        check_complete({"torch.nn"})


@NEEDS_ALL_LISTED
def test_a_listed_module_that_is_gone_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(nn, "NLLLoss2d")
    with pytest.raises(Incomplete, match=r"^torch\.nn does not offer: NLLLoss2d$"):
        check_complete({"torch.nn"})


def test_titles_are_unique() -> None:
    assert len({case.title for case in CASES}) == len(CASES)


def test_every_package_is_pinned_in_the_extra() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extra = text.partition("\nmodules = [")[2].partition("]")[0]
    assert [line.strip(' ",') for line in extra.strip().splitlines()] == [f"{a}=={b}" for a, b in PACKAGES.items()]
    assert {case.library for case in CASES} == {*PACKAGES, "torch.nn"}


def test_a_missing_package_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "timm":
            raise importlib.metadata.PackageNotFoundError(name)
        return "0.1+cpu"

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setitem(catalog.PACKAGES, "einops", "0.1")
    with pytest.raises(Incomplete, match=r"^needed: timm .* \(not installed\): pip install 'rekindle\[modules\]'$"):
        check_packages({"torch.nn", "timm", "einops"})
    with pytest.raises(Incomplete, match=r"e3nn 0.6.0 \(0.1\+cpu\)"):
        check_packages({"e3nn"})
    check_packages({"torch.nn", "einops"})


@NEEDS_ALL_LISTED
def test_a_case_is_measured_in_processes_of_its_own(tmp_path: Path) -> None:
    cases = [(case, mode) for case, mode in selection.chosen("torch.nn GELU") if mode == "training"]
    output = tmp_path / "rows.jsonl"
    [row] = selection.measured(cases, 2, 0.0001, 120.0, output, resume=False, console=Console(quiet=True))

    assert (row.title, row.failure, row.share) == ("torch.nn GELU, training", "", 0.0)
    assert {name: (peer.error, peer.differs) for name, peer in row.peers.items()} == {
        "eager": ("", ""),
        "rekindle": ("", ""),
        "torch.jit": ("", ""),
    }
    ours = row.peers["rekindle"]
    assert (len(ours.cold), len(ours.warm), ours.ratios.keys()) == (4, 4, {"eager", "torch.jit"})
    assert row.peers["torch.jit"].cold == []
    assert measure.load(output) == [row]

    again = selection.measured(cases, 2, 0.0001, 120.0, output, resume=True, console=Console(quiet=True))
    assert again == [row]
    assert json.loads(output.read_text(encoding="utf-8")) == measure.as_json(row)


def test_a_process_that_is_too_slow_is_a_row() -> None:
    [case] = [case for case in CASES if case.title == "torch.nn GELU"]
    row = measure.measured(case, "inference", 2, 0.0001, 0.01)
    assert (row.failure, row.peers) == ("start: takes longer than 0 seconds", {})


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ([torch.tensor([1.0, 2.0])], ""),
        ([torch.tensor([1.0, 2.0 + 1e-5])], ""),
        ([torch.tensor([1.0, 2.1])], "tensor 0: off by 1.00e-01 where the largest is 2.00e+00"),
        ([torch.tensor([1.0, float("nan")])], "tensor 0: infinite or NaN elsewhere"),
        ([torch.tensor([1, 2])], "tensor 0: torch.int64 of (2,) instead of torch.float32 of (2,)"),
        ([], "0 tensors instead of 1"),
    ],
)
def test_answers_are_compared(found: list[torch.Tensor], says: str) -> None:
    assert difference(found, [torch.tensor([1.0, 2.0])], [0.0]) == says


def test_what_eager_does_not_determine_is_not_compared() -> None:
    assert difference([torch.tensor([1.0])], [torch.tensor([2.0])], [1.0]) == ""


@pytest.mark.parametrize(
    ("name", "is_product"),
    [
        ("aten::addmm", True),
        ("aten::mkldnn_convolution", True),
        ("aten::convolution_backward", True),
        ("aten::_slow_conv2d_forward", True),
        ("aten::slow_conv_transpose3d", True),
        ("quantized::conv2d_relu", True),
        ("aten::mul", False),
        ("aten::_convert_indices_from_csr_to_coo", False),
    ],
)
def test_products(name: str, is_product: bool) -> None:
    assert bool(PRODUCTS.search(name)) == is_product


def test_summary() -> None:
    def row(name: str, share: float, eager: float, jit: float) -> Row:
        ours = Peer(call=1.0, ratios={"eager": eager, "torch.jit": jit}, load=700.0, cold=[4.0] * 4, warm=[2.0] * 4)
        return Row("lib", name, "inference", {"rekindle": ours, "torch.jit": Peer(warm=[1.0] * 4)}, share)

    refused = Row("lib", "c", "training", {"rekindle": Peer(error="No: so"), "torch.jit": Peer()}, 0.1)
    lines = report.summary([row("a", 0.1, 0.5, 0.25), row("b", 0.9, 1.1, 1.0), refused])
    assert lines[1:9] == [
        "geometric mean, all rows: 0.74 of eager (2 rows), 0.50 of torch.jit (2 rows)",
        (
            "geometric mean, products take less than half: 0.50 of eager (1 rows), 0.25 of torch.jit (1 rows); "
            "to be at most 0.6 of torch.jit"
        ),
        (
            "cold, times those of torch.jit, medians of 2 rows: script 4.00, script and first call 4.00, "
            "script and three calls 4.00"
        ),
        (
            "warm, times those of torch.jit, medians of 2 rows: script 2.00, script and first call 2.00, "
            "script and three calls 2.00"
        ),
        "loading the compiler, once in a process: 700 ms",
        "slower than eager by more than 3 %: 1 rows",
        "  1.10  lib b, inference",
        "slower than torch.jit by more than 3 %: 0 rows",
    ]
    assert "rekindle refuses what torch.jit takes: 1" in lines
    assert "  lib c, training: No: so" in lines
