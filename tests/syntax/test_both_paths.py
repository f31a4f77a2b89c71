"""The same source through Python's parser and through ours gives the same tree, with the same ranges."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from rekindle.errors import NotScriptableError, Source, UnsupportedError
from rekindle.syntax.live_source import source_of
from rekindle.syntax.parser import parse_function, parse_module
from rekindle.syntax.python_ast import class_def, function_def
from rekindle.syntax.tree import Tree
from rekindle.syntax.views import ClassDef
from tests.syntax import corpus


def functions_of(owner: Any) -> Iterator[types.FunctionType]:
    for member in vars(owner).values():
        member = getattr(member, "fget", None) or getattr(member, "__func__", None) or member
        if inspect.isclass(member) and member.__module__ == getattr(owner, "__module__", None):
            yield from functions_of(member)
        elif inspect.isfunction(member):
            yield member


CORPUS = [*(f for f in vars(corpus).values() if inspect.isfunction(f)), *functions_of(corpus.Klass)]


def assert_same(ours: Tree, pythons: Tree) -> None:
    """Equal kinds and strings, and equal places, all the way down."""
    assert str(ours) == str(pythons)
    assert ours.same_as(pythons)
    for a, b in zip(ours.walk(), pythons.walk(), strict=True):
        assert (a.kind, a.range.text, a.range.place) == (b.kind, b.range.text, b.range.place)


@pytest.mark.parametrize("fn", CORPUS, ids=lambda fn: fn.__qualname__)
def test_the_corpus(fn: types.FunctionType) -> None:
    assert_same(parse_function(source_of(fn)).tree, function_def(fn).tree)


def test_the_corpus_is_large() -> None:
    assert len(CORPUS) >= 60


def test_a_class() -> None:
    class Local:
        """A class."""

        count: int
        scale: float = 1.0
        names = ["a", "b"]

        def method(self, a: int = 1) -> int:
            return a

    (ours,) = parse_module(source_of(Local))
    assert isinstance(ours, ClassDef)
    assert_same(ours.tree, class_def(Local).tree)


def torch_functions() -> list[types.FunctionType]:
    functions = [f for f in vars(torch.nn.functional).values() if inspect.isfunction(f)]
    for cls in vars(torch.nn).values():
        if inspect.isclass(cls):
            functions.extend(functions_of(cls))
    return list(dict.fromkeys(functions))


def test_torch_nn_and_its_functions() -> None:
    """All that one path accepts, the other reads as the same tree; what one refuses, the other refuses too. But for
    ``global``, which means nothing where a Python function only reads the variable; texts have no such variables."""
    equal = refused = reads_globals = 0
    for fn in torch_functions():
        try:
            theirs = function_def(fn)
        except NotScriptableError:  # made by a dataclass, or by C++
            continue
        except UnsupportedError:
            with pytest.raises(UnsupportedError):
                parse_function(source_of(fn))
            refused += 1
            continue
        if "    global " in source_of(fn).text:
            with pytest.raises(UnsupportedError, match=r"^'global' is not supported"):
                parse_function(source_of(fn))
            reads_globals += 1
            continue
        assert_same(parse_function(source_of(fn)).tree, theirs.tree)
        equal += 1
    assert equal > 500
    assert refused > 0
    assert reads_globals > 0


def test_the_tree_knows_its_source() -> None:
    source = source_of(corpus.arithmetic)
    tree = function_def(corpus.arithmetic).tree
    assert tree.range.source.filename == corpus.__file__
    assert isinstance(tree.range.source, Source)
    assert tree.range.text == source.text.rstrip("\n")
