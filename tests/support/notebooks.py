"""Executes the notebook of the documentation, and writes its outputs: ``python -m tests.support.notebooks``.

Cells run in this process, as IPython would run them, and values are shown by the same methods. nbclient would do so in
a kernel, and needs Jupyter's two dozen packages for it; the notebook uses nothing of IPython.
"""

from __future__ import annotations

import ast
import io
import json
import linecache
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import torch

NOTEBOOK = Path(__file__).parent.parent.parent / "docs" / "notebook.ipynb"
FORMATS = {"text/html": "_repr_html_", "image/svg+xml": "_repr_svg_"}


def read() -> dict[str, Any]:
    """The notebook as it is on disk."""
    found: dict[str, Any] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return found


def execute(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Run the code cells; return the outputs of each."""
    torch.manual_seed(0)
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [_run("".join(cell["source"]), f"<cell {number}>", names) for number, cell in enumerate(cells, 1)]


def _run(source: str, filename: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    tree = ast.parse(source, filename)
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        tree.body[-1] = ast.Assign([ast.Name("_", ast.Store())], tree.body[-1].value)
    names["_"] = None
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(ast.fix_missing_locations(tree), filename, "exec"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    if names["_"] is not None:
        result = {"execution_count": None, "metadata": {}, "data": _shown(names["_"])}
        outputs.append({"output_type": "execute_result", **result})
    return outputs


def _shown(value: object) -> dict[str, list[str]]:
    """The formats in which a value is shown, as Jupyter stores them."""
    shown = {kind: getattr(value, method)() for kind, method in FORMATS.items() if hasattr(value, method)}
    shown["text/plain"] = str(value)  # Jupyter would store addresses and times
    return {kind: _lines(text) for kind, text in shown.items() if text is not None}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    """Write the outputs into the notebook."""
    notebook = read()
    outputs = iter(execute(notebook))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = next(outputs)
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
