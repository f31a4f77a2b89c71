"""Trace checking: run the trace and the code again, record again, and report the first difference."""

from __future__ import annotations

import copy
import difflib
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import torch

from rekindle.errors import TracingError
from rekindle.ir.attributes import map_items
from rekindle.ir.graph import Graph
from rekindle.ir.mangling import demangled
from rekindle.tracing.recording.lent_tensors import LentTensors
from rekindle.tracing.recording.recorder import TracerWarning

Call = Callable[..., Any]

_CONSTANT: Final = "prim::Constant"


class TracingCheckError(TracingError):
    """Error of :func:`rekindle.trace`: a second recording, of the example or of a check input, produced another program
    than the first.

    Example:
        >>> from itertools import count
        >>> calls = count()
        >>> def grows(x):
        ...     return x * 2 if next(calls) else x + 1
        >>> try:
        ...     rekindle.trace(grows, torch.ones(2))
        ... except rekindle.TracingCheckError as error:
        ...     print("differs")
        differs
    """


def check_results(
    original: Call,
    traced: Call,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    tolerance: float,
    what: str,
    check_recording: Callable[[], None],
) -> None:
    """Warn if the trace and the original code return different results for these arguments. Both are called. If the
    results differ, ``check_recording`` is called first; it raises if the code takes another path for these arguments.

    Raises:
        TracingCheckError: the results differ, and ``check_recording`` raised.
    """
    expected = _outcome(original, args, kwargs)
    actual = _outcome(traced, args, kwargs)
    for path, wanted in _leaves(expected, "the result"):
        found = dict(_leaves(actual, "the result")).get(path)
        difference = _difference(found, wanted, tolerance)
        if difference is not None:
            check_recording()
            warnings.warn(
                f"the trace gives another answer than the code on {what}: {path} differs. {difference}\n"
                "It depends on properties of the example (see .report) or on chance, or the code keeps state other "
                "than buffers.",
                TracerWarning,
                stacklevel=4,
            )
            return


def _outcome(call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    with LentTensors() as lent:
        own, keywords = map_tensors(lent.lend, (args, dict(kwargs)))
        return call(*own, **keywords)


def copy_of(value: Any) -> Any:
    """Return a copy of a value: tensors, also those in nested containers, are detached and copied, other objects
    shallowly."""

    def copied(tensor: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return tensor.detach().clone().requires_grad_(tensor.requires_grad)

    return map_tensors(copied, value)


def map_tensors(function: Callable[[torch.Tensor], torch.Tensor], value: Any) -> Any:
    """Return a copy of nested lists, tuples and dicts in which ``function`` has been applied to each tensor. Other
    items are copied shallowly."""
    if isinstance(value, torch.Tensor):
        return function(value)
    if isinstance(value, (list, tuple, dict)):
        return map_items(lambda item: map_tensors(function, item), value)
    return copy.copy(value)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield what nested lists, tuples and dicts hold, tensors or not, each with its path."""
    if isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}[{index}]")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{path}[{key!r}]")
    else:
        yield path, value


def _difference(actual: Any, expected: Any, tolerance: float) -> str | None:
    if not isinstance(expected, torch.Tensor):
        return None if actual == expected else f"It was {expected!r} and is {actual!r}."
    if not isinstance(actual, torch.Tensor):
        return f"It was a tensor and is {actual!r}."
    try:
        torch.testing.assert_close(
            actual, expected, rtol=tolerance, atol=tolerance, equal_nan=True, check_stride=False, check_layout=False
        )
    except (AssertionError, ValueError) as error:
        return str(error).strip().splitlines()[0]
    return None


def check_paths(first: Graph, second: Graph, name: str) -> None:
    """Raise if a recording of other arguments calls different operators than the first recording. Constants may differ.

    Raises:
        TracingCheckError: the operators differ. The message shows the first lines that differ, which may be constants.
    """
    before, after = ([node.kind for node in graph.all_nodes() if node.kind != _CONSTANT] for graph in (first, second))
    if before == after:
        return
    raise TracingCheckError(
        f"recording '{name}' with a check input gave another program. The first difference:\n{_shown(first, second)}",
        hint="the code takes another path for other arguments; compile it with script, or compile the part that does",
    )


def check_graphs(first: Graph, second: Graph, name: str) -> None:
    """Raise if a second recording with the same arguments differs from the first, locations and mangled names excepted.

    Raises:
        TracingCheckError: the recordings differ. The message shows the first lines that do.
    """
    if _lines(first) == _lines(second):
        return
    raise TracingCheckError(
        f"recording '{name}' twice with the same arguments gave different programs. The first difference:\n"
        + _shown(first, second),
        hint="the code takes another path each time: it depends on chance, on state that it changes, or on the order "
        "of a set; compile it with script, or trace with check_trace=False if either program will do",
    )


def _shown(first: Graph, second: Graph) -> str:
    """Return the first lines in which the text of two graphs differs, at most five of each, marked by ``-`` and
    ``+``."""
    before, after = _lines(first), _lines(second)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    _, i, i_end, j, j_end = next(op for op in matcher.get_opcodes() if op[0] != "equal")
    shown = [f"- {line}" for line in _texts(first)[i : min(i_end, i + 5)]]
    shown += [f"+ {line}" for line in _texts(second)[j : min(j_end, j + 5)]]
    return "\n".join(shown)


def _lines(graph: Graph) -> list[str]:
    """Return the lines of the text of a graph, without source locations and mangled parts of names."""
    return [demangled(line.partition(" # ")[0]) for line in _texts(graph)]


def _texts(graph: Graph) -> list[str]:
    return [line.strip() for line in str(graph).splitlines()]
