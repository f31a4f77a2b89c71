"""Libraries called from C, in processes without Python."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, Tuple

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.building.runtime.objects import ErrorCode
from tests.building.c_process import compiler, run
from tests.building.corpus import RANDOM, attempt, same
from tests.differential import subjects

pytestmark = pytest.mark.skipif(compiler() is None, reason="this machine has no C compiler")

EXAMPLES = Path(__file__).parents[2] / "examples" / "c"


def test_the_example(tmp_path):
    folder = tmp_path / "c"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("net", "main"))
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    environment["PYTHONPATH"] = str(EXAMPLES.parents[1])
    subprocess.run(["make", "main"], cwd=folder, env=environment, check=True, capture_output=True)
    found = subprocess.run([folder / "main"], cwd=folder, check=True, capture_output=True, text=True)
    assert found.stdout == "versicolor (0.174 0.675 0.151)\nversicolor (0.319 0.516 0.165)\n"


def _program(
    x: Tensor, table: Dict[str, List[int]], words: Tuple[str, float]
) -> Tuple[Tensor, Dict[str, int], List[str], List[Tensor]]:
    if len(table) == 0:
        raise KeyError("empty")
    total: Dict[str, int] = {}
    for key, numbers in table.items():
        total[key + words[0]] = sum(numbers)
    parts = [row * words[1] for row in x]
    return torch.stack(parts).softmax(-1), total, sorted(total.keys()), parts


ARGUMENTS = (torch.arange(6.0).reshape(2, 3), {"b": [1, 2], "a": []}, ("é!", 0.5))


def test_values_of_every_kind(tmp_path):
    program = rekindle.script(_program)
    build = rekindle.build(program, tmp_path, [ARGUMENTS], freestanding=True)
    good, bad = run(build, "call", [ARGUMENTS, (ARGUMENTS[0], {}, ("", 1.0))], tmp_path)
    assert same(good.value, program(*ARGUMENTS))
    assert (bad.code, bad.message.split("\n")[0]) == (ErrorCode.KEY_ERROR, "empty")


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="this machine has no valgrind")
def test_memory(tmp_path):
    """Nothing is read or written beyond its memory, and nothing is left: of results, and of errors."""
    build = rekindle.build(rekindle.script(_program), tmp_path, [ARGUMENTS], cpu="x86-64-v3", freestanding=True)
    x, *others = ARGUMENTS
    calls = [ARGUMENTS, (x, {}, ("", 1.0)), (x, {"a": [1]}, ("x",)), (x.long(), *others), (x, {"a": [1.5]}, ("", 1.0))]
    valgrind = (
        "valgrind",
        "--quiet",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite,indirect,possible",
        "--error-exitcode=9",
    )
    answers = run(build, "call", [*calls, ARGUMENTS], tmp_path, prefix=valgrind)
    wrong = [ErrorCode.ARGUMENT_ERROR] * 3
    assert [each.code for each in answers] == [ErrorCode.NONE, ErrorCode.KEY_ERROR, *wrong, ErrorCode.NONE]


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")  # nn.Transformer says so of its own encoder
@pytest.mark.parametrize("name", [each for each in subjects.names("programs") if each not in RANDOM])
def test_programs(name):
    """A library does what the program does, or it is refused."""
    outcome = attempt(name)
    assert outcome.verdict in ("same", "not built", "refused"), outcome.detail
