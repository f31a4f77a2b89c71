"""Standalone programs that reproduce the effect of a change to a graph on its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from rekindle.api.reports.outcomes import Outcome, outcome_of
from rekindle.errors import RekindleError
from rekindle.ir.graph import Graph
from rekindle.ir.subgraph_execution import callable_of, compile_immediately
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.text.printer import print_graph
from rekindle.ir.verifier import verify
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.state import InterpreterState

_TEMPLATE = """{title}

import torch
from torch import inf, nan

import rekindle.runtime.executor  # makes the operators known
from rekindle.api.bisect_script import interpreted, planned
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.verifier import verify

BEFORE = {before}

AFTER = {after}


def answer(text, run):
    torch.manual_seed(0)
    arguments = [{arguments}]
    try:
        graph = parse_graph(text)
        verify(graph)
        return run(graph)(arguments)
    except Exception as error:
        return error


print("before:", repr(answer(BEFORE, interpreted)))
print("after: ", repr(answer(AFTER, {run})))
"""


def interpreted(graph: Graph) -> Callable[[Sequence[Any]], Any]:
    """Return a function that runs ``graph`` in the interpreter, and takes the list of its inputs. Fusion groups run
    compiled kernels from the first call on."""

    def run(arguments: Sequence[Any]) -> Any:
        with compile_immediately():
            return InterpreterState(Code(graph, "f")).run(arguments)

    return run


def planned(graph: Graph) -> Callable[[Sequence[Any]], Any]:
    """Return a function that runs ``graph`` through its execution plan, as calls do, and takes the list of its
    inputs."""

    def run(arguments: Sequence[Any]) -> Any:
        with compile_immediately():
            return callable_of(graph, "f")(*arguments)

    return run


def script_of(
    title: str,
    before: Graph,
    after: Graph,
    arguments: Sequence[Any],
    shows: Callable[[Outcome, Outcome], bool],
    *,
    by_plan: bool = False,
) -> str | None:
    """Return the text of a program that runs two graphs on ``arguments`` and prints both results. ``title`` is its
    comment.

    Return None if an argument has no literal form, or if the program would not show the difference. To find out, both
    graphs are parsed from their texts and run here: ``shows`` receives the two outcomes. The first graph runs in the
    interpreter, and so does the second, unless ``by_plan``: then an execution plan runs the second.
    """
    written = [_literal(value) for value in arguments]
    if None in written:
        return None
    texts = [print_graph(graph, ranges=False) for graph in (before, after)]
    run = planned if by_plan else interpreted
    if not shows(_answer(texts[0], interpreted, arguments), _answer(texts[1], run, arguments)):
        return None
    listed = ", ".join(text for text in written if text is not None)
    lines = "\n".join(f"# {line}" for line in title.splitlines())
    first, second = map(_quoted, texts)
    return _TEMPLATE.format(title=lines, before=first, after=second, arguments=listed, run=run.__name__)


def _answer(text: str, run: Callable[[Graph], Callable[[Sequence[Any]], Any]], arguments: Sequence[Any]) -> Outcome:
    try:
        graph = parse_graph(text)
        verify(graph)
        function = run(graph)
    except RekindleError as error:
        return Outcome(error=error)
    return outcome_of(function, arguments)


def _quoted(text: str) -> str:
    return repr(text) if "\\" in text or '"""' in text else f'"""{text}"""'


def _literal(value: Any) -> str | None:
    """Return a Python expression that creates ``value``; None if there is no such expression."""
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        items = [_literal(item) for item in value]
        if None in items:
            return None
        listed = ", ".join(item for item in items if item is not None)
        return f"[{listed}]" if isinstance(value, list) else f"({listed},)" if items else "()"
    if isinstance(value, dict):
        pairs = [_literal([key, item]) for key, item in value.items()]
        return None if None in pairs else f"dict([{', '.join(pair for pair in pairs if pair is not None)}])"
    if value is None or type(value) in (bool, int, float, str, complex):
        return repr(value) if not isinstance(value, complex) or math.isfinite(abs(value)) else None
    return None


def _tensor(value: torch.Tensor) -> str | None:
    if type(value) is not torch.Tensor or value.layout is not torch.strided or value.is_quantized:
        return None
    if value.device.type != "cpu":
        return None
    text = f"torch.tensor({value.tolist()!r}, dtype={value.dtype})"
    if value.numel() == 0:
        text = f"torch.empty({list(value.shape)}, dtype={value.dtype})"
    elif not value.is_contiguous():
        text = f"torch.empty_strided({list(value.shape)}, {list(value.stride())}, dtype={value.dtype}).copy_({text})"
    return f"{text}.requires_grad_()" if value.requires_grad else text
