"""Docstrings of public names: every one has an example, and the examples do what they show."""

from __future__ import annotations

import ast
import doctest
import functools
import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
import torch

import rekindle
from tests.test_docs import PAGES, blocks
from tests.test_site import load

FLAGS: Final = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@functools.cache
def public_objects() -> dict[str, Any]:
    """Every object of the API reference, by its path."""
    with pytest.MonkeyPatch.context() as patch:
        api: ModuleType = load("api", patch)
        paths = [path for subject in api.SUBJECTS for path in subject.paths]
    split = [(path, *path.rpartition(".")) for path in paths]
    return {path: getattr(importlib.import_module(module), name) for path, module, _, name in split}


def docstring(path: str) -> str:
    """The docstring of a public name, from its source: objects may have a docstring of their own."""
    value = public_objects()[path]
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return ""
    with pytest.MonkeyPatch.context() as patch:
        text: str = load("api", patch).docstring_of(value)
    return text


def examples() -> list[doctest.DocTest]:
    parser = doctest.DocTestParser()
    once = {id(value): path for path, value in public_objects().items()}
    parsed = [parser.get_doctest(docstring(path), {}, path, None, None) for path in once.values()]
    return [each for each in parsed if each.examples]


@pytest.mark.parametrize("example", examples(), ids=lambda each: each.name)
def test_examples_do_what_they_show(example: doctest.DocTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some write files
    example.globs = {"torch": torch, "rekindle": rekindle, "__name__": "__main__"}
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=FLAGS).run(example, out=report.append, clear_globs=False)
    assert result.failed == 0, "".join(report)


@pytest.mark.parametrize("example", examples(), ids=lambda each: each.name)
def test_examples_show_results(example: doctest.DocTest) -> None:
    """An example that expects nothing would pass whatever the name does, and so would one that is skipped."""
    assert any(each.want.strip() or "assert" in each.source for each in example.examples)
    assert not any(doctest.SKIP in each.options for each in example.examples)


def test_names_that_pages_import_are_public() -> None:
    """Functions and classes that a page imports from a module of the package are in the API reference."""
    public = list(public_objects().values())
    imported = {
        (node.module, alias.name): getattr(importlib.import_module(node.module), alias.name)
        for page in PAGES
        for text in blocks(page, "python")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("rekindle")
        for alias in node.names
    }
    assert len(imported) >= 20
    assert [
        ".".join(path)
        for path, value in imported.items()
        if (inspect.isclass(value) or inspect.isfunction(value)) and not any(value is each for each in public)
    ] == []


def test_every_public_name_has_an_example() -> None:
    own = {"rekindle.Final"}  # typing's
    assert {path for path in public_objects() if ">>>" not in docstring(path)} - own == set()


RESULT_TYPES = Path("rekindle/ops/result_types")  # its modules say once that None is for what is not known


def test_results_that_may_be_none_are_documented() -> None:
    """A docstring of a function that returns ``X | None`` says when it returns None."""
    root = Path(rekindle.__file__).parents[1]
    files = [path.relative_to(root) for path in sorted((root / "rekindle").rglob("*.py"))]
    functions = [
        (path, node)
        for path in files
        if RESULT_TYPES not in path.parents
        for node in ast.walk(ast.parse((root / path).read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.returns is not None
        if re.search(r"^None \||\| None$", ast.unparse(node.returns).strip("'\""))
    ]
    assert len(functions) >= 500
    assert [
        f"{path}:{node.lineno} {node.name}"
        for path, node in functions
        if (text := ast.get_docstring(node)) is not None and not re.search(r"\bNone\b", text)
    ] == []
