"""Candidates are chosen by measuring, once for each machine; the last candidate supports everything."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor

from rekindle.codegen import selection as selection_module
from rekindle.codegen.convolution.direct import DirectConvolution
from rekindle.codegen.convolution.launch_ir import THREADS
from rekindle.codegen.llvm.disk_cache import DIRECTORY, SWITCH
from rekindle.codegen.llvm.symbols import find
from rekindle.codegen.selection import Candidate, NativeCandidate, Selection


def slow(input: Tensor, other: Tensor | None = None) -> Tensor | None:
    finish = time.thread_time() + 2e-3
    while time.thread_time() < finish:
        pass
    return input + 1


def fast(input: Tensor, other: Tensor | None = None) -> Tensor | None:
    return input + 1


def cannot(input: Tensor, other: Tensor | None = None) -> Tensor | None:
    return None


def raises(input: Tensor, other: Tensor | None = None) -> Tensor | None:
    raise RuntimeError("sizes do not fit")


def writes(input: Tensor, other: Tensor | None = None) -> Tensor | None:
    assert other is not None
    return other.add_(input)


def named(*candidates: Candidate) -> dict[str, Candidate]:
    return {f"{candidate.__name__}{number}": candidate for number, candidate in enumerate(candidates)}


@pytest.mark.parametrize("candidates", [[slow, fast], [fast, slow], [cannot, fast], [slow, raises, cannot, fast, slow]])
def test_the_fastest_is_chosen(candidates: list[Candidate]) -> None:
    selection = Selection(named(*candidates))
    assert torch.equal(selection.run("kind", torch.zeros(3)), torch.ones(3))
    assert selection.chosen == {"kind": fast}


def test_page_faults_of_one_measured_call_do_not_decide() -> None:
    calls: list[int] = []

    def slower_at_first(input: Tensor) -> Tensor | None:
        calls.append(len(calls))
        return slow(input) if len(calls) == 2 else fast(input)  # the first call is not timed

    def middling(input: Tensor) -> Tensor | None:
        finish = time.thread_time() + 5e-4
        while time.thread_time() < finish:
            pass
        return input + 1

    selection = Selection(named(slower_at_first, middling))
    selection.run("kind", torch.zeros(3))
    assert selection.chosen == {"kind": slower_at_first}


@pytest.mark.skipif(find(THREADS) is None, reason="this build of PyTorch does not export what launches call")
def test_launches_are_timed_without_their_python_code() -> None:
    kernel = DirectConvolution(torch.eye(8)[:, :, None, None], torch.ones(8))
    runs = []

    def run(input: Tensor) -> Tensor | None:
        runs.append(slow(input))
        return kernel.run(input)

    candidate = NativeCandidate(run, kernel.native_call)
    selection = Selection({"slow": slow, "native": candidate})
    image = torch.randn(1, 8, 3, 3).contiguous(memory_format=torch.channels_last)
    assert torch.equal(selection.run("kind", image), image + 1)
    assert selection.chosen == {"kind": candidate}
    assert len(runs) == 2, "a call that accepts the arguments, and the one for the result"


def test_measuring_does_not_write_to_what_is_added() -> None:
    other = torch.ones(4)
    result = Selection(named(writes, writes), written=1).run(0, torch.ones(4), other)
    assert result is other
    assert torch.equal(other, torch.full((4,), 2.0)), "one call has added to it"


def test_a_candidate_that_fails_later_is_replaced_by_the_last_one() -> None:
    def needs_ones(input: Tensor) -> Tensor | None:
        if not input.all():
            raise RuntimeError("zeros")
        return input + 1

    selection = Selection(named(needs_ones, slow))
    assert torch.equal(selection.run(0, torch.ones(3)), torch.full((3,), 2.0))
    assert selection.chosen == {0: needs_ones}
    assert torch.equal(selection.run(0, torch.zeros(3)), torch.ones(3))


def test_where_none_can_the_last_one_reports_why() -> None:
    selection = Selection(named(cannot, raises))
    with pytest.raises(RuntimeError, match=r"^sizes do not fit$"):
        selection.run(0, torch.zeros(3))


def test_choices_are_kept_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DIRECTORY, str(tmp_path))
    monkeypatch.delenv(SWITCH, raising=False)
    measured: list[str] = []

    def seconds(call: partial[object], calls: int) -> float:
        measured.append(call.func.__name__)
        return {"slow": 2.0, "fast": 1.0}[call.func.__name__]

    monkeypatch.setattr(selection_module, "_seconds", seconds)
    candidates = named(slow, fast)
    Selection(candidates, "operator").run((3, True), torch.zeros(3))
    assert measured
    measured.clear()
    again = Selection(candidates, "operator")
    again.run((3, True), torch.zeros(3))
    assert not measured
    assert again.chosen == {(3, True): fast}
    for other in (Selection(candidates, "another"), Selection(named(slow, fast, slow), "operator")):
        other.run((3, True), torch.zeros(3))
        assert measured
        measured.clear()
    again.run((4, True), torch.zeros(3))
    assert measured
    measured.clear()
    Selection(candidates).run((3, True), torch.zeros(3))
    assert measured, "without an identity nothing is kept"
