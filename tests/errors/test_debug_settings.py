"""The environment variables that make passes log, and stop them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rekindle.errors.debug_settings import Settings, read_settings
from rekindle.errors.log import GRAPH_DEBUG, GRAPH_UPDATE
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.text.printer import print_graph

ROOT = Path(__file__).parent.parent.parent

PROGRAM = """
import torch
import rekindle

def inner(x: torch.Tensor):
    return x * 2

def outer(x: torch.Tensor):
    return inner(x) + inner(x)

rekindle.set_execution_strategy("simple")
print([node.kind for node in rekindle.script(outer).graph_for(torch.ones(1)).nodes])
"""


def run(tmp_path: Path, **variables: str) -> tuple[str, str]:
    """What the program writes to stdout and stderr in a process with these variables."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTORCH_JIT_")}
    done = subprocess.run(
        [sys.executable, str(program)],
        env={**environment, "PYTHONPATH": str(ROOT), **variables},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr


def test_nothing_is_set() -> None:
    assert read_settings({}) == Settings({}, {}, 3, ())
    assert read_settings({"PYTORCH_JIT_LOG_LEVEL": "", "PYTORCH_JIT_OPT_LIMIT": ""}) == Settings({}, {}, 3, ())
    assert read_settings({"REKINDLE_VERIFY": "0"}) == read_settings({"REKINDLE_VERIFY": ""}) == Settings()


def test_everything_is_set() -> None:
    found = read_settings(
        {
            "PYTORCH_JIT_LOG_LEVEL": "inlining:>constant_pooling.cpp:>>>dead_code_elimination.py",
            "PYTORCH_JIT_OPT_LIMIT": "inlining=3:constant_propagation.cpp=0",
            "PYTORCH_JIT_TYPE_VERBOSITY": "1",
            "REKINDLE_VERIFY": "1",
        }
    )
    levels = {"inlining": GRAPH_UPDATE, "constant_pooling": GRAPH_DEBUG, "dead_code_elimination": GRAPH_DEBUG}
    assert found == Settings(levels, {"inlining": 3, "constant_propagation": 0}, 1, (), verify=True)


def test_what_cannot_be_read_is_told() -> None:
    found = read_settings(
        {
            "PYTORCH_JIT_LOG_LEVEL": "inlining:a b:>",
            "PYTORCH_JIT_OPT_LIMIT": "inlining=many:inlining=2:3",
            "PYTORCH_JIT_TYPE_VERBOSITY": "4",
        }
    )
    assert found.levels == {"inlining": GRAPH_UPDATE}
    assert found.limits == {"inlining": 2}
    assert found.verbosity == 3
    assert found.problems == (
        "PYTORCH_JIT_LOG_LEVEL is a list of a file or '>' and a file, joined by colons, so this is ignored: 'a b', '>'",
        "PYTORCH_JIT_OPT_LIMIT is a list of pass=number, joined by colons, so this is ignored: 'inlining=many', '3'",
        "PYTORCH_JIT_TYPE_VERBOSITY is a number from 0 to 3, so this is ignored: '4'",
    )


def test_without_variables_nothing_is_written(tmp_path: Path) -> None:
    kinds = "['prim::Constant', 'prim::Constant', 'aten::mul', 'aten::add']\n"
    assert run(tmp_path) == (kinds, "")


def test_the_log_goes_to_stderr(tmp_path: Path) -> None:
    _, errors = run(tmp_path, PYTORCH_JIT_LOG_LEVEL="partial_evaluation", PYTORCH_JIT_TYPE_VERBOSITY="0")
    place = tmp_path / "program.py"
    assert errors.splitlines()[:2] == [
        f"[UPDATE partial_evaluation] inline %3 = prim::CallFunction(%2, %x.1) # {place}:9:11",
        f"[UPDATE partial_evaluation] inline %4 = prim::CallFunction(%2, %x.1) # {place}:9:22",
    ]
    assert errors.splitlines()[2:4] == [
        "[DUMP partial_evaluation] after partial_evaluation:",
        "[DUMP partial_evaluation] graph(%x.1):",
    ]
    assert all(
        line.startswith(("[UPDATE partial_evaluation] ", "[DUMP partial_evaluation] ")) for line in errors.splitlines()
    )


def test_names_of_no_pass_are_told_at_the_end(tmp_path: Path) -> None:
    _, errors = run(tmp_path, PYTORCH_JIT_LOG_LEVEL="partial_evalution", PYTORCH_JIT_OPT_LIMIT="no_such=3:inlining=9")
    assert (
        "RuntimeWarning: PYTORCH_JIT_LOG_LEVEL names 'partial_evalution', and no pass of that name ran (did you mean "
        "'partial_evaluation'?); PYTORCH_JIT_OPT_LIMIT names 'no_such', and no pass of that name ran\n"
    ) in errors


def test_the_level_of_the_root_logger_prints_no_graphs() -> None:
    program = (
        "import logging\nlogging.basicConfig(level=logging.DEBUG)\nimport rekindle\n"
        "from rekindle.errors.log import GRAPH_DUMP\n"
        "log = logging.getLogger('rekindle.passes.inlining')\n"
        "print(log.isEnabledFor(GRAPH_DUMP), log.isEnabledFor(logging.WARNING))\n"
        "log.setLevel(GRAPH_DUMP)\nprint(log.isEnabledFor(GRAPH_DUMP))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.split() == ["False", "True", "True"]


def test_limits_hold(tmp_path: Path) -> None:
    output, errors = run(tmp_path, PYTORCH_JIT_OPT_LIMIT="partial_evaluation=1:inlining=0")
    assert errors == ""
    assert output.count("aten::mul") == output.count("prim::CallFunction") == 1


def test_one_warning_for_what_cannot_be_read(tmp_path: Path) -> None:
    _, errors = run(tmp_path, PYTORCH_JIT_OPT_LIMIT="inlining", PYTORCH_JIT_TYPE_VERBOSITY="much")
    assert errors.count("RuntimeWarning: ") == 1
    assert (
        "PYTORCH_JIT_OPT_LIMIT is a list of pass=number, joined by colons, so this is ignored: 'inlining'; "
        "PYTORCH_JIT_TYPE_VERBOSITY is a number from 0 to 3, so this is ignored: 'much'\n"
    ) in errors


@pytest.mark.parametrize(
    ("verbosity", "declared"),
    [
        (0, "%x"),
        (1, "%x : Float(2, 3)[]"),
        (2, "%x : Float(2, 3, strides=[3, 1])[]"),
        (3, "%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)[]"),
    ],
)
def test_how_much_is_told_of_types(verbosity: int, declared: str) -> None:
    graph = parse_graph("graph(%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)[]):\n  return (%x)\n")
    assert print_graph(graph, verbosity=verbosity) == f"graph({declared}):\n  return (%x)\n"
