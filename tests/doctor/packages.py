"""Reports of ``rekindle doctor`` on packages of others: ``python -m tests.doctor.packages NAME=PATH …``,
or ``NAME=PATH::COMMAND`` for one with ``--run``.

Writes ``results/NAME.md`` for each, and ``results/README.md`` with all that are there. Each line that a text search
finds has to be in the report. ``--uses`` prints a line for each use, to be checked by hand.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from rekindle.doctor.report_text import report_lines

HERE: Final = Path(__file__).parent / "results"
TEXT_SEARCH: Final = r"torch\.jit\b|torch import jit|torch\._jit_internal|torch\._C\._jit_|mobile_optimizer"


def main(arguments: list[str]) -> None:
    uses: list[tuple[str, dict[str, Any]]] = []
    for argument in (each for each in arguments if "=" in each):
        name, _, rest = argument.partition("=")
        path, _, command = rest.partition("::")
        data = examine(path, command)
        uses += [(name, use) for use in data["uses"]]
        missing, lines = not_in_report(Path(path), data)
        assert not missing, missing
        data["path"] = name
        write(name, data, lines)
    if "--uses" in arguments:
        for name, use in uses:
            print(f"{name} {use['path']}:{use['line']} {use['name']} [{use['form']}] {use['verdict']}: {use['reason']}")
    summarize()


def examine(path: str, command: str) -> dict[str, Any]:
    options = ["--run", command] if command else []
    done = subprocess.run(
        [sys.executable, "-m", "rekindle", "doctor", path, "--json", *options], capture_output=True, text=True
    )
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def not_in_report(root: Path, data: dict[str, Any]) -> tuple[list[str], int]:
    """The lines that a text search finds and the report has neither as uses nor as mentions; and how many it finds."""
    uses = {(use["path"], line) for use in data["uses"] for line in range(use["line"], use["end_line"] + 1)}
    told = uses | {(mention["path"], mention["line"]) for mention in data["mentions"]}
    found = [
        (path.relative_to(root).as_posix(), number)
        for path in sorted(root.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n"), 1)
        if re.search(TEXT_SEARCH, line)
    ]
    return [f"{path}:{line}" for path, line in found if (path, line) not in told], len(found)


def write(name: str, data: dict[str, Any], lines: int) -> None:
    text = "\n".join(line for line, _ in report_lines(data))
    versions = f"rekindle {data['rekindle']}, PyTorch {data['torch']}"
    head = f"# {name}\n\n{versions}. A text search finds {lines} lines, all in this report.\n"
    (HERE / f"{name}.md").write_text(f"{head}\n```text\n{text}\n```\n", encoding="utf-8")


def summarize() -> None:
    """Write the table of all reports."""
    rows = []
    for path in sorted(HERE.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        counts = re.findall(
            r"^  (?:works as it is|works with a change|does not work|not tried) +(\d+)$", text, re.MULTILINE
        )
        lines = re.search(r"finds (\d+) lines", text)
        if lines is not None:
            rows.append(f"| [{path.stem}]({path.name}) | {lines[1]} | {' | '.join(counts)} |")
    table = [
        "| package | lines of a text search | works | with a change | does not work | not tried |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        *rows,
    ]
    page = HERE / "README.md"
    before = page.read_text(encoding="utf-8") if page.exists() else "# Reports on packages\n\nTABLE\n"
    shown = re.sub(
        r"(^\| package.*?\n)(?=\n|\Z)|TABLE\n", "\n".join(table) + "\n", before, count=1, flags=re.DOTALL | re.MULTILINE
    )
    page.write_text(shown, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
