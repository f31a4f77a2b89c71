"""``python -m benchmarks --only libraries``: a program through the measuring code, and the programs beside eager."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from torch.utils._pytree import tree_leaves

import rekindle
from benchmarks.libraries import measure
from benchmarks.libraries.arguments import leaf_bytes, read_leaves
from benchmarks.libraries.programs import PROGRAMS, DeployedProgram
from benchmarks.libraries.ways import IN_PROCESS, OURS

SMALL = [each for each in PROGRAMS if "ResNet" not in each.name]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="this machine has no C compiler")
def test_a_library_is_measured() -> None:
    [row] = measure.run(1, "edit distance", 0.01, (OURS, IN_PROCESS))
    ours = row.ways[OURS]
    assert not ours.unavailable
    assert row.torch_operators == []
    assert ours.error == 0.0
    assert ours.runtime == 0
    assert 0 < ours.resident < 10_000_000
    assert ours.build > 0
    assert ours.start > 0
    assert row.ratio == row.ways[IN_PROCESS].ours_of_it == ours.call / row.ways[IN_PROCESS].call
    assert len(measure.table([row])) == 3
    assert measure.remarks([row]) == [f"{row.program}: a library leaves nothing to PyTorch"]


@pytest.mark.parametrize("program", SMALL, ids=lambda program: program.name)
def test_programs_give_the_answers_of_eager(program: DeployedProgram) -> None:
    module, arguments = program.make()
    with torch.no_grad():
        expected, found = module(*arguments), rekindle.script(module)(*arguments)
    torch.testing.assert_close(found, expected)


def test_the_decoder_stops_by_its_data() -> None:
    module, (state,) = next(each for each in PROGRAMS if "decoder" in each.name).make()
    assert [len(module(state + shift)) for shift in (0.0, 0.3, 0.6, 0.9)] == [40, 60, 39, 3]


def test_leaves_are_read_as_they_are_written(tmp_path: Path) -> None:
    values = [torch.arange(6.0).reshape(2, 3), torch.tensor([1, 2]), "é", 7]
    file = tmp_path / "leaves"
    file.write_bytes(b"".join(map(leaf_bytes, values)))
    found = tree_leaves(read_leaves(file))
    assert all(torch.equal(a, b) for a, b in zip(found[:2], values[:2], strict=True))
    assert found[2:] == values[2:]
