"""One call under test: compile it, run it, compare it; and what came of it."""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from tests.support.equality import assert_same
from tests.sweeps.cases import seed

Compiler = Callable[[Any, Sequence[Any], dict[str, Any]], Any]
"""Compiles a function or a module, given an example of the arguments."""


@dataclass(slots=True, frozen=True)
class Outcome:
    """``stage`` is ``passed`` or where it went wrong: ``eager`` itself, ``compile``, ``run``, ``compare``, or the last
    two of them with other arguments, ``others``."""

    stage: str
    error: str = ""
    others: int = 0
    """How many further arguments were compared."""

    @property
    def passed(self) -> bool:
        return self.stage == "passed"


def check(
    subject: Callable[[], Any],
    arguments: Sequence[Any],
    keywords: dict[str, Any],
    compiler: Compiler,
    *,
    values: bool = True,
    calls: int = 1,
    others: Iterable[tuple[Sequence[Any], dict[str, Any]]] = (),
) -> Outcome:
    """Compile what ``subject`` gives, compare calls of it with eager's; shapes and dtypes without ``values``.

    Of ``others``, further arguments, those count that eager takes.
    """
    same = partial(_assert_same, values=values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the operators themselves warn about much that is not our business here
        try:
            expected = _run(subject(), arguments, keywords, calls)
        except Exception as error:
            return Outcome("eager", _describe(error))
        try:
            compiled = compiler(subject(), arguments, keywords)
        except Exception as error:
            return Outcome("compile", _describe(error))
        state = copy.deepcopy(compiled.state_dict()) if isinstance(compiled, torch.nn.Module) else None
        try:
            actual = _run(compiled, arguments, keywords, calls)
        except Exception as error:
            return Outcome("run", _describe(error))
        try:
            same(actual, expected)
        except Exception as error:
            return Outcome("compare", _describe(error))
        count = 0
        for own, own_keywords in others:
            try:
                expected = _run(subject(), own, own_keywords, calls)
            except Exception:
                continue
            try:
                if state is not None:
                    compiled.load_state_dict(state)
                same(_run(compiled, own, own_keywords, calls), expected)
                count += 1
            except Exception as error:
                shapes = ", ".join(str(list(t.shape)) for t in tree_leaves((own, own_keywords)) if hasattr(t, "shape"))
                return Outcome("others", f"for sizes {shapes}: {_describe(error)}")
    return Outcome("passed", others=count)


def _assert_same(actual: Any, expected: Any, values: bool) -> None:
    assert_same(actual if values else _shapes(actual), expected if values else _shapes(expected))


def _run(function: Any, arguments: Sequence[Any], keywords: dict[str, Any], calls: int) -> Any:
    """The results of the calls, and what the calls left in the arguments and in the module."""
    results: list[Any] = []
    for _ in range(calls):
        own, own_keywords = copy.deepcopy((arguments, keywords))
        seed()
        result = function(*own, **own_keywords)
        results.append([_plain(result), _plain(own)])
    if isinstance(function, torch.nn.Module):
        results.append(dict(function.state_dict()))
    return results


def _plain(value: Any) -> Any:
    """Without what carries no meaning: sizes and named results, lists and tuples are alike."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _shapes(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return [list(value.shape), value.dtype]
    if isinstance(value, list):
        return [_shapes(item) for item in value]
    return type(value)


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:1500]


def cause(outcome: Outcome) -> str:
    """A failure in one line without the names in it, so that like failures can be counted."""
    lines = [line.strip() for line in outcome.error.splitlines() if line.strip()]
    line = lines[0] if lines else ""
    return f"{outcome.stage}: " + re.sub(r"\b\d+(\.\d+)?\b", "N", line)[:160]
