"""Real packages that use torch.jit use this one through the drop-in, without knowing, and answer as before.

Run by `make test-packages` in an environment with the versions of `requirements.txt`; not by `make test`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

# Each program, with what of it must reach this package.
COMPILED = {
    "e3nn_layers": "105 programs compiled here: archive 1, function 7, module 97",
    "einops_layers": "8 programs compiled here: archive 1, module 7",
    "graph_tools": "11 programs compiled here: function 2, graph 6, module 3",
    "linear_operator_solvers": "2 programs compiled here: function 2",
    "pyro_inference": "10 programs compiled here: function 10",
    "torch_geometric_layers": "43 programs compiled here: archive 1, class 2, module 40",
    "torchani_models": "6 programs compiled here: archive 1, module 5",
}


def test_every_program_is_run() -> None:
    assert {path.stem for path in (HERE / "programs").glob("*.py")} == {*COMPILED, "keeping"}


@pytest.mark.parametrize("program", COMPILED)
def test_answers_are_as_before(program: str, tmp_path: Path) -> None:
    path = str(HERE / "programs" / f"{program}.py")
    before, ours = tmp_path / "before.pt", tmp_path / "ours.pt"
    _run(path, str(before))
    told = _run("-m", "rekindle", "run-script", "--report", path, str(ours))

    first = re.search(r"^rekindle: .*$", told, re.MULTILINE)
    assert first is not None
    assert first[0].removeprefix("rekindle: ") == COMPILED[program]
    expected, found = (torch.load(file) for file in (before, ours))
    torch.testing.assert_close(found, expected)


def _run(*arguments: str) -> str:
    """Run Python with these arguments; returns what it says on stderr."""
    done = subprocess.run(
        # torch.jit says at each call that it is deprecated, and packages have warnings of their own.
        [sys.executable, "-W", "ignore", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr
