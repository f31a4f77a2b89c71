"""Every pass: the graphs before it, and the ones that it makes of them."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import pkgutil
import re
from collections.abc import Callable

import pytest

import rekindle.codegen.frozen_operators  # registers what a pass makes
import rekindle.ops
import rekindle.passes
from rekindle.autodiff import CreateDifferentiableGraphs
from rekindle.codegen.fusion import FuseGraph
from rekindle.codegen.native import FormNativeRegions
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.verifier import verify
from rekindle.passes.canonicalization import annotate_warns
from rekindle.passes.pass_manager import Pass, PassManager, run_passes
from rekindle.rewriting.changes import ChangeCounter
from tests.passes.cases import CASES
from tests.support.golden import GoldenTexts

WITH_TESTS_OF_THEIR_OWN = {"inlining", "freezing", "lower_graph", "fuse_graph", "partial_evaluation"}
"""Passes whose golden text is not made of single graphs, or has more; each has a test of its own that writes it."""


def passes() -> dict[str, Callable[..., Pass]]:
    """Every pass of the package, by name, and those that form subgraphs."""
    found: dict[str, Callable[..., Pass]] = {
        cls.name: cls for cls in (CreateDifferentiableGraphs, FuseGraph, FormNativeRegions)
    }
    for info in pkgutil.walk_packages(rekindle.passes.__path__, "rekindle.passes."):
        module = importlib.import_module(info.name)
        for title, cls in vars(module).items():
            is_own = inspect.isclass(cls) and cls.__module__ == module.__name__ and not title.startswith("_")
            if is_own and hasattr(cls, "run") and cls not in (Pass, PassManager):
                found[cls.name] = cls
    return found


def pass_for(name: str, title: str) -> Pass:
    """The pass ``name`` with the options that a title gives it: ``fuse_graph{least=1, most=2}``."""
    told = re.search(rf"{name}\{{(.*?)\}}", title)
    options = {} if told is None else dict(item.split("=") for item in told[1].split(", "))
    return passes()[name](**{key: ast.literal_eval(value) for key, value in options.items()})


def test_every_pass_has_a_golden_text() -> None:
    assert set(passes()) == set(CASES) | WITH_TESTS_OF_THEIR_OWN


@pytest.mark.parametrize("name", sorted(CASES))
def test_graphs(name: str, golden: GoldenTexts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotate_warns, "_numbers", itertools.count())
    texts = []
    for title, text in CASES[name].items():
        graph = parse_graph(text.lstrip())
        verify(graph)
        before = str(graph)
        changed = run_passes(graph, [pass_for(name, title)], verify)
        after = str(graph)
        assert changed == (before != after), f"{title}: the pass says {changed}"
        told = f"# becomes\n\n{after}" if changed else "# stays as it is\n"
        texts.append(f"# {title}\n\n{before}\n{told}")
    golden(f"passes/{name}", "\n".join(texts))


@pytest.mark.parametrize("name", sorted(CASES))
def test_twice_is_once(name: str) -> None:
    """A pass leaves nothing for itself to do, but for dead code that other dead code used."""
    for title, text in CASES[name].items():
        graph = parse_graph(text.lstrip())
        while pass_for(name, title).run(graph):
            pass
        before = str(graph)
        assert not pass_for(name, title).run(graph)
        assert str(graph) == before


@pytest.mark.parametrize("name", sorted(CASES))
def test_every_single_change_leaves_a_valid_graph(name: str) -> None:
    """As many changes as are allowed, and the graph is valid after each; none, and it is as it was."""
    for title, text in CASES[name].items():
        free = PassManager(verify)
        free.run(parse_graph(text.lstrip()), [pass_for(name, title)])
        for limit in range(free.changes.counts.get(name, 0)):
            graph = parse_graph(text.lstrip())
            before = str(graph)
            limited = PassManager(verify, changes=ChangeCounter(dict.fromkeys([name, *free.changes.counts], limit)))
            changed = limited.run(graph, [pass_for(name, title)])
            assert limited.changes.counts.get(name, 0) == limit, title
            assert changed == (str(graph) != before), title
            assert limit > 0 or not changed, title
