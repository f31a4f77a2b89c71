"""``docs/operators.md``: TorchScript's operators outside of the dispatcher, and which test shows that the
implementation is right. ``python -m tests.ops.page`` writes it."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import rekindle.runtime.executor  # noqa: F401  (registers the operators)
from rekindle.ir.operators.registry import REGISTRY
from tests.ops import test_beside_torchscript, test_coverage, test_dicts

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
PAGE = ROOT / "docs" / "operators.md"

HEAD = """\
# Operators

Most operators are in PyTorch's dispatcher, where rekindle finds them by name. TorchScript has others, on numbers,
strings, lists and dicts, and its own primitives. This page lists them: first those that are excluded, then the others,
each with a test that runs it, most of them beside Python or TorchScript. `make pages` writes the page from the
registry and the tests. A test fails if it is stale, or if an operator has no test.
"""


ELSEWHERE = {
    "prim::DifferentiableGraph": "../autodiff/test_differentiable_graph.py",
    "prim::FusionGroup": "../codegen/test_pointwise.py",
}
"""Operators that stand for graphs have their tests beside what makes them."""


@cache
def evidence() -> dict[str, str]:
    """The file with the test of each operator, from this folder, by qualified name."""
    found: dict[str, str] = {}
    for path in sorted(FOLDER.glob("test_*.py")):
        if path.name in ("test_coverage.py", "test_beside_torchscript.py"):
            continue  # they list operators that they do not run, too
        for name in re.findall(r"\"((?:aten|prim)::[\w.]+)\"", path.read_text(encoding="utf-8")):
            found.setdefault(name, path.name)
    found.update(dict.fromkeys(test_beside_torchscript.comparable(), "test_beside_torchscript.py"))
    found.update(dict.fromkeys(test_dicts.OPERATORS, "test_dicts.py"))
    return found | ELSEWHERE


def without_test() -> list[str]:
    """The operators that are there, and that no test runs."""
    return [name for name in test_coverage.ours_to_define() if REGISTRY.find(name) and name not in evidence()]


def _state(name: str) -> str:
    if REGISTRY.find(name) is None:
        return "excluded"
    file = evidence().get(name)
    return f"[{Path(file).name}]({os.path.normpath(f'../tests/ops/{file}')})" if file else "no test"


def _escaped(schema: str) -> str:
    return schema.replace("|", "\\|")


def _figures(names: list[str]) -> str:
    spaces: dict[str, int] = defaultdict(int)
    for name in names:
        spaces[name.partition("::")[0]] += 1
    there = sum(REGISTRY.find(name) is not None for name in names)
    return (
        f"{len(names)} overloads ({spaces['aten']} in `aten`, {spaces['prim']} in `prim`): {there} work, "
        f"{len(names) - there} are excluded."
    )


def render() -> str:
    """The text of the page."""
    schemas = test_coverage.ours_to_define()
    reasons = test_coverage.listed()
    lines = [HEAD, _figures(list(schemas)), "", "## Excluded", "", "| operator | why |", "| --- | --- |"]
    lines += [f"| `{name}` | {reasons[name]} |" for name in sorted(reasons)]
    for space in ("aten", "prim"):
        lines += ["", f"## `{space}`", "", "| schema | test |", "| --- | --- |"]
        there = sorted(name for name in schemas if name.startswith(f"{space}::") and name not in reasons)
        lines += [f"| `{_escaped(schemas[name])}` | {_state(name)} |" for name in there]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
