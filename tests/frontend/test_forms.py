"""Every form of the language: its graph, seen beside torch.jit's, and its answer beside Python's."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch

from rekindle.ir.verifier import verify
from rekindle.runtime.executor import execute
from tests.frontend.forms import FORMS, Form
from tests.support.equality import assert_same
from tests.support.frontend import before_ssa, compiled, python_function, torch_graph
from tests.support.golden import GoldenTexts
from tests.support.oracle import Comparison, normalize

PROGRAMS = [
    pytest.param(form, id=f"{name}-{position}") for name, forms in FORMS.items() for position, form in enumerate(forms)
]


@pytest.mark.parametrize("name", FORMS)
def test_graphs(name: str, golden: GoldenTexts) -> None:
    golden(f"frontend/{name}", "\n".join(_shown(form) for form in FORMS[name]))


def _shown(form: Form) -> str:
    parts = ["SOURCE", form.text]
    if form.loads:
        parts += ["WITH LOADS AND STORES", str(before_ssa(form.text))]
    parts += ["GRAPH", str(compiled(form.text).graph)]
    return "\n".join(parts)


@pytest.mark.parametrize("form", PROGRAMS)
def test_graph_is_valid(form: Form) -> None:
    verify(compiled(form.text).graph)


@pytest.mark.parametrize("form", PROGRAMS)
def test_graph_is_that_of_torch_jit(form: Form) -> None:
    ours = normalize(str(compiled(form.text).graph))
    try:
        difference = Comparison(ours, normalize(torch_graph(form.text))).differences
    except (RuntimeError, UnicodeDecodeError) as refused:
        difference = str(refused)
    if form.unlike is None:
        assert not difference, difference
    else:
        assert difference, f"the graph is torch.jit's, so there is no reason for: {form.unlike}"


@pytest.mark.parametrize("form", PROGRAMS)
def test_answer_is_that_of_python(form: Form) -> None:
    record, function = compiled(form.text), python_function(form.text)
    differs = False
    for sample in form.samples:
        ours, theirs = copy.deepcopy(sample), copy.deepcopy(sample)
        pairs = (
            _outcome(lambda *arguments: execute(record, arguments), ours),
            _outcome(function, theirs),
        )
        if form.unlike_eager is None:
            assert_same(*pairs)
            assert_same(ours, theirs, "arguments after the call")
        else:
            differs |= repr(pairs[0]) != repr(pairs[1])
    assert differs == (form.unlike_eager is not None), f"the answer is Python's: {form.unlike_eager}"


def _outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[str, Any]:
    try:
        return "returned", _plain(function(*arguments))
    except Exception as error:
        return "raised", type(error).__name__


def _plain(value: Any) -> Any:
    """Results in which dtypes are the numbers, and sizes and named results the tuples, that programs know."""
    if isinstance(value, torch.dtype):
        return repr(value)
    if isinstance(value, torch.Size):
        return list(value)
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
