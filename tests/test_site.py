"""The documentation site: what it is made of is complete. ``make site-check`` builds it, with links checked."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
SITE = ROOT / "docs" / "site"


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of ``docs/site``, which Sphinx imports by its bare name."""
    monkeypatch.syspath_prepend(SITE)
    spec = importlib.util.spec_from_file_location(name, SITE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    return module


def test_every_page_is_in_the_menu(monkeypatch: pytest.MonkeyPatch) -> None:
    sections = load("navigation", monkeypatch).SECTIONS
    listed = sorted(page for pages in sections.values() for page in pages)
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")]
    names = {page.relative_to(ROOT).with_suffix("").as_posix() for page in pages} - {"docs/index"}
    assert listed == sorted({*names, "docs/api/index"})


def test_every_public_name_is_in_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    api = load("api", monkeypatch)
    listed = [name for subject in api.SUBJECTS if subject.module == "rekindle" for name in subject.names]
    assert sorted(listed) == sorted(api.public_names())


def test_pages_of_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = dict(load("api", monkeypatch).pages())
    assert ".. autofunction:: rekindle.grad\n" in pages["derivatives.md"]
    assert ".. autoclass:: rekindle.errors.CompileError\n   :members:" in pages["errors.md"]
    assert "- [rekindle.viz](viz.md): Pictures of graphs." in pages["index.md"]


def test_links_to_files_lead_to_pages_that_show_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    staging = load("staging", monkeypatch)
    monkeypatch.setattr(staging, "ROOT", tmp_path / "repository")
    monkeypatch.setattr(staging, "SOURCE", tmp_path / "staged")
    docs = tmp_path / "repository" / "docs"
    docs.mkdir(parents=True)
    (docs / "page.md").write_text("# A\n\n[a test](../code.py) [b](other.md#part) `[c](d.py)` [e](https://e.org)\n")
    (docs / "other.md").write_text("# Other\n")
    (docs.parent / "code.py").write_text("'''```'''\n")

    staging.Staging().page(docs / "page.md")

    staged = tmp_path / "staged"
    assert (staged / "docs" / "page.md").read_text() == (
        "# A\n\n[a test](../code.py.md) [b](other.md#part) `[c](d.py)` [e](https://e.org)\n"
    )
    assert (staged / "docs" / "other.md").read_text() == "# Other\n"
    assert (staged / "code.py.md").read_text() == (
        "---\norphan: true\n---\n\n# code.py\n\n````python\n'''```'''\n````\n"
    )
