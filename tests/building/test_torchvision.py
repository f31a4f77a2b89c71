"""A share of the sweep over torchvision's classification models; all are in results/torchvision_libraries.md."""

from __future__ import annotations

import json

import pytest

from tests.building.c_process import compiler
from tests.sweeps.report import RESULTS
from tests.sweeps.torchvision_libraries import attempt, names

pytest.importorskip("torchvision", reason="torchvision is in the extra [modules]")


@pytest.mark.skipif(compiler() is None, reason="this machine has no C compiler")
@pytest.mark.parametrize("name", ["squeezenet1_1", "shufflenet_v2_x0_5"])
def test_models(name: str) -> None:
    outcome = attempt(name)
    assert outcome.verdict == "same", f"{outcome.detail} {outcome.error}"


def test_the_results_are_those_of_models() -> None:
    found = json.loads((RESULTS / "torchvision_libraries.json").read_text(encoding="utf-8"))
    assert found
    assert set(found) <= set(names())
    assert list(found) == sorted(found)
