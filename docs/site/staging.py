"""Copy the pages of the site to ``build/site-source``: ``python docs/site/staging.py``.

The copy has the paths of the repository, so that the pages' links are valid on GitHub and on the site. Links to files
that are not pages (a test, a table of results) lead to pages that show the file. The API reference is generated, and
diagrams in Mermaid's text are drawn by :func:`rekindle.to_svg`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

SITE: Final = Path(__file__).parent
ROOT: Final = SITE.parent.parent
SOURCE: Final = ROOT / "build" / "site-source"
sys.path[:0] = [str(SITE), str(ROOT)]

import api  # noqa: E402
from navigation import toctrees  # noqa: E402

CODE: Final = re.compile(r"^(```+).*?^\1$|(`+)(?!`).+?(?<!`)\2(?!`)", re.MULTILINE | re.DOTALL)
LINK: Final = re.compile(r"(?<=\]\()([^)#\s]+)(#[^)\s]*)?(?=\))")
PROGRAM: Final = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DIAGRAM: Final = re.compile(r"^```mermaid\n.*?^```$", re.MULTILINE | re.DOTALL)
LANGUAGES: Final = {".py": "python", ".toml": "toml", ".json": "json"}
MAX_LISTING: Final = 100_000
"""Bytes of a file that has a page; larger ones are downloads."""

DRAW: Final = """
import pathlib
import rekindle
_text, _drawn = rekindle.to_mermaid, []
def _draw(graph):
    pathlib.Path(f"{_name}_{len(_drawn)}.svg").write_text(rekindle.to_svg(graph), encoding="utf-8")
    _drawn.append(graph)
    return _text(graph)
rekindle.to_mermaid = _draw
"""


class Staging:
    """Pages and files that have been copied so far."""

    def __init__(self) -> None:
        self.done: set[Path] = set()

    def page(self, path: Path) -> None:
        """Copy a page, and all that it links to."""
        if path in self.done:
            return
        self.done.add(path)
        text = path.read_text(encoding="utf-8")
        if DIAGRAM.search(text):
            text = self.draw(path, text)
        parts, end = [], 0
        for code in CODE.finditer(text):
            parts += [self.relink(path, text[end : code.start()]), code[0]]
            end = code.end()
        text = "".join([*parts, self.relink(path, text[end:])])
        if path == ROOT / "docs" / "index.md":
            text += "\n" + toctrees()
        elif path.parent not in (ROOT, ROOT / "docs", ROOT / "docs" / "start"):
            text = "---\norphan: true\n---\n\n" + text.replace("](a!)", "]\\(a!)")  # a schema's, not a link
        self.write(path.relative_to(ROOT), text)

    def relink(self, page: Path, prose: str) -> str:
        """Return ``prose`` with links to the pages that show files."""
        return LINK.sub(lambda link: self.linked(page, link[1]) + (link[2] or ""), prose)

    def linked(self, page: Path, target: str) -> str:
        """Stage what ``page`` links to, and return the link to it."""
        path = Path(os.path.normpath(page.parent / target))
        if target.startswith(("http://", "https://", "/")) or not path.exists() or ROOT not in path.parents:
            return target  # Sphinx reports links that lead nowhere
        if path.suffix == ".md":
            self.page(path)
        elif path.suffix == ".ipynb":
            return str(Path(target).with_suffix(".md"))  # see notebook
        elif path.is_dir():
            self.folder(path)
            return f"{target.rstrip('/')}/index.md"
        elif path.suffix in (".svg", ".png") or path.stat().st_size > MAX_LISTING:
            (SOURCE / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, SOURCE / path.relative_to(ROOT))
        else:
            self.listing(path)
            return f"{target}.md"
        return target

    def notebook(self, path: Path) -> None:
        """Write a notebook with its stored outputs as a page."""
        parts = []
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            text = "".join(cell["source"])
            parts.append(f"```python\n{text}\n```" if cell["cell_type"] == "code" else text)
            parts += map(_output, cell.get("outputs", ()))
        self.write(path.relative_to(ROOT).with_suffix(".md"), "\n\n".join(parts) + "\n")

    def listing(self, path: Path) -> None:
        """Write the page that shows a file."""
        if path in self.done:
            return
        self.done.add(path)
        name = path.relative_to(ROOT)
        text = path.read_text(encoding="utf-8")
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
        language = LANGUAGES.get(path.suffix, "text")
        self.write(
            name.with_name(f"{name.name}.md"),
            f"---\norphan: true\n---\n\n# {name.as_posix()}\n\n{fence}{language}\n{text}{fence}\n",
        )

    def folder(self, path: Path) -> None:
        """Write the page that lists a folder."""
        if path in self.done:
            return
        self.done.add(path)
        files = [each for each in sorted(path.iterdir()) if each.is_file() and not each.name.startswith((".", "__"))]
        links = [f"- [{each.name}]({self.linked(path / 'index.md', each.name)})" for each in files]
        name = path.relative_to(ROOT)
        self.write(
            name / "index.md", "\n".join(["---\norphan: true\n---", "", f"# {name.as_posix()}/", "", *links, ""])
        )

    def draw(self, path: Path, text: str) -> str:
        """Run a page's programs, which print the diagrams, and return its text with pictures in their place."""
        folder = SOURCE / path.parent.relative_to(ROOT)
        folder.mkdir(parents=True, exist_ok=True)
        program = folder / f"{path.stem}.py"  # a file, from which the compiler reads the source of functions
        program.write_text("\n".join([f"_name = {path.stem!r}", DRAW, *PROGRAM.findall(text)]), encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run([sys.executable, program], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        count = 0

        def picture(_: re.Match[str]) -> str:
            nonlocal count
            count += 1
            return f"![The graph as a picture]({path.stem}_{count - 1}.svg)"

        return DIAGRAM.sub(picture, text)

    def write(self, name: Path, text: str) -> None:
        """Write a file of the copy, unless it is there as it should be: Sphinx reads what is newer than its result."""
        path = SOURCE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _output(output: dict[str, Any]) -> str:
    """Return an output of a cell: HTML or a picture where there is one."""
    data = output.get("data", {})
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            return f"```{{raw}} html\n{''.join(data[kind])}\n```"
    return f"```text\n{''.join(data.get('text/plain', output.get('text', ''))).rstrip()}\n```"


def main() -> None:
    """Stage all pages."""
    staging = Staging()
    for path in [ROOT / "docs" / "index.md", *sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]:
        staging.page(path)
    for path in sorted((ROOT / "docs").rglob("*.ipynb")):
        staging.notebook(path)
    for name, text in api.pages():
        staging.write(Path("docs", "api", name), text)


if __name__ == "__main__":
    main()
