"""Canary: what a release of PyTorch changes in its operators, and which files of the package name what it changes.

    python -m tests.versions.canary              reports on the PyTorch that is installed
    python -m tests.versions.canary --write      writes the report into reports/, to be reviewed and committed
    python -m tests.versions.canary --record     records the schemas again, when another release is pinned

``schemas.txt`` holds the schemas of the dispatcher's ``aten`` operators in the pinned release. Rules of the package are
tables by the names of operators (effects, result types, derivatives, fusion, batching), so a file is concerned by a
change if a name in its code or its texts is that of the operator.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import torch

import rekindle

RECORD: Final = Path(__file__).with_name("schemas.txt")
REPORTS: Final = Path(__file__).with_name("reports")
_PACKAGE: Final = Path(rekindle.__file__).parent
_WORD: Final = re.compile(r"[A-Za-z_]\w*")


def release() -> str:
    """Return the release of PyTorch without the last number: ``2.13``."""
    return ".".join(torch.__version__.split(".")[:2])


def installed() -> dict[str, str]:
    """Return the schemas of this PyTorch by the qualified names of overloads."""
    found: dict[str, str] = {}
    for qualified in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = qualified.partition("::")
        if namespace == "aten":
            name, _, overload = rest.partition(".")
            found[qualified] = str(getattr(getattr(torch.ops.aten, name), overload or "default")._schema)
    return found


def recorded() -> dict[str, str]:
    lines = RECORD.read_text(encoding="utf-8").splitlines()
    return {line.partition("(")[0]: line for line in lines}


# ------------------------------------------------------------------------------------------- what names an operator


@cache
def files_by_name() -> dict[str, tuple[str, ...]]:
    """Return the files of the package that contain a name, in code or in a text other than a docstring."""
    found: dict[str, set[str]] = {}
    for path in sorted(_PACKAGE.rglob("*.py")):
        relative = path.relative_to(_PACKAGE).as_posix()
        for word in _words(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(word, set()).add(relative)
    return {word: tuple(sorted(files)) for word, files in found.items()}


def _words(tree: ast.Module) -> Iterator[str]:
    explained = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in explained:
            yield from _WORD.findall(node.value)
        elif isinstance(node, ast.Attribute):
            yield node.attr


def concerned(qualified: str) -> tuple[str, ...]:
    """Return the files that name the operator of an overload, or the operator that writes in place by that name."""
    name = qualified.removeprefix("aten::").partition(".")[0]
    return files_by_name().get(name, ())


# -------------------------------------------------------------------------------------------------------------- report


def report(before: dict[str, str], now: dict[str, str]) -> str:
    """Return what differs between the recorded schemas and those of a release."""
    removed, new = sorted(before.keys() - now.keys()), sorted(now.keys() - before.keys())
    changed = sorted(name for name in before.keys() & now.keys() if before[name] != now[name])
    kinds = {name.partition(".")[0] for name in before}
    overloads = [name for name in new if name.partition(".")[0] in kinds]
    lines = [f"{len(removed)} overloads removed, {len(changed)} changed, {len(new)} new."]
    lines += _section("Removed", removed, before)
    lines += _section("Changed", changed, before, now)
    lines += _section("New overloads of operators that were there", overloads, now)
    lines += _section("New operators", [name for name in new if name not in overloads], now)
    return "\n".join(lines) + "\n"


def _section(title: str, names: Iterable[str], *schemas: dict[str, str]) -> Iterator[str]:
    names = list(names)
    if not names:
        return
    yield from ("", f"## {title}", "")
    for name in names:
        files = concerned(name)
        yield f"- `{name}`: {', '.join(files) if files else 'no file names it'}"
        yield from (f"    - `{each[name]}`" for each in schemas)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tests.versions.canary")
    parser.add_argument("--record", action="store_true", help="record the schemas of this PyTorch")
    parser.add_argument("--write", action="store_true", help="write the report into reports/")
    options = parser.parse_args(arguments)
    now = installed()
    if options.record:
        RECORD.write_text("".join(f"{now[name]}\n" for name in sorted(now)), encoding="utf-8")
        return 0
    text = f"# PyTorch {release()}\n\n{report(recorded(), now)}"
    if options.write:
        REPORTS.mkdir(exist_ok=True)
        (REPORTS / f"{release()}.md").write_text(text, encoding="utf-8")
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
