"""Every pass: the graphs before it, and the ones that it makes of them."""

from __future__ import annotations

import importlib
import inspect
import itertools
import pkgutil
from collections.abc import Callable

import pytest

import rekindle.ops
import rekindle.passes
from rekindle.ir.parser import parse_graph
from rekindle.ir.verifier import verify
from rekindle.passes.canonicalization import annotate_warns
from rekindle.passes.pass_manager import Pass, PassManager, run_passes
from rekindle.rewriting.changes import ChangeCounter
from tests.passes.cases import CASES
from tests.support.golden import GoldenTexts

WITH_TESTS_OF_THEIR_OWN = {"inlining", "freezing", "lower_graph"}
"""Passes whose golden text is not made of single graphs; each has a test of its own that writes it."""


def passes() -> dict[str, Callable[[], Pass]]:
    """Every pass of the package, by name."""
    found: dict[str, Callable[[], Pass]] = {}
    for info in pkgutil.walk_packages(rekindle.passes.__path__, "rekindle.passes."):
        module = importlib.import_module(info.name)
        for title, cls in vars(module).items():
            is_own = inspect.isclass(cls) and cls.__module__ == module.__name__ and not title.startswith("_")
            if is_own and hasattr(cls, "run") and cls not in (Pass, PassManager):
                found[cls.name] = cls
    return found


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
        changed = run_passes(graph, [passes()[name]()], verify)
        after = str(graph)
        assert changed == (before != after), f"{title}: the pass says {changed}"
        told = f"# becomes\n\n{after}" if changed else "# stays as it is\n"
        texts.append(f"# {title}\n\n{before}\n{told}")
    golden(f"passes/{name}", "\n".join(texts))


@pytest.mark.parametrize("name", sorted(CASES))
def test_twice_is_once(name: str) -> None:
    """A pass leaves nothing for itself to do, but for dead code that other dead code used."""
    for text in CASES[name].values():
        graph = parse_graph(text.lstrip())
        while passes()[name]().run(graph):
            pass
        before = str(graph)
        assert not passes()[name]().run(graph)
        assert str(graph) == before


@pytest.mark.parametrize("name", sorted(CASES))
def test_every_single_change_leaves_a_valid_graph(name: str) -> None:
    """As many changes as are allowed, and the graph is valid after each; none, and it is as it was."""
    for title, text in CASES[name].items():
        free = PassManager(verify)
        free.run(parse_graph(text.lstrip()), [passes()[name]()])
        for limit in range(free.changes.counts.get(name, 0)):
            graph = parse_graph(text.lstrip())
            before = str(graph)
            limited = PassManager(verify, changes=ChangeCounter(dict.fromkeys([name, *free.changes.counts], limit)))
            changed = limited.run(graph, [passes()[name]()])
            assert limited.changes.counts.get(name, 0) == limit, title
            assert changed == (str(graph) != before), title
            assert limit > 0 or not changed, title
