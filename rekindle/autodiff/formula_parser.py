"""Parser of derivative formulas: TorchScript functions with an additional keyword before each.

.. code-block:: text

    backward mul.Tensor(grad, self, other) -> self, other:
        return sum_to(grad * other, self), sum_to(grad * self, other)

A text is a list of definitions, each of which begins at the start of a line:

* ``backward OPERATOR(WHAT IT USES) -> ARGUMENTS:`` returns the gradients of arguments of an operator, in that order.
* ``forward OPERATOR(ARGUMENTS):`` runs in place of the operator, and returns names: the results of the operator, then
  whatever else ``backward`` uses.
* ``composite OPERATOR(ARGUMENTS):`` defines the operator in terms of others, whose formulas are then used.
* ``def NAME(…):`` is a function that all texts may call.
* ``constant OPERATOR, …`` lists operators whose results have no gradient.

OPERATOR is the name in the ``aten`` namespace, and the overload after a dot, or ``own.NAME`` for an operator of this
package; several, separated by commas, share one definition. Types that the schema of the operator determines are
omitted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rekindle.errors import InternalError

FORMULAS: Final = ("backward", "forward", "composite")
"""Keywords of definitions that describe operators."""


@dataclass(slots=True, frozen=True)
class Definition:
    """One definition of a text. ``targets`` are the arguments whose gradients a ``backward`` returns; ``body`` is
    source text, for a ``def`` and a ``constant`` all of it."""

    word: str
    operators: tuple[str, ...]
    parameters: tuple[str, ...]
    targets: tuple[str, ...]
    body: str


def read_definitions(text: str, words: Sequence[str] = FORMULAS) -> Iterator[Definition]:
    """Yield the definitions of a text, in order. ``words`` are the keywords of definitions that describe operators.

    Raises:
        InternalError: the head of a definition is malformed.
    """
    for part in re.split(rf"\n(?=(?:{'|'.join(words)}|def|constant) |#)", text.strip("\n")):
        word = part.partition(" ")[0]
        if word == "def":
            yield Definition(word, (part[4 : part.index("(")],), (), (), part.rstrip() + "\n")
        elif word == "constant":
            yield Definition(word, _names(part[len(word) :]), (), (), part)
        elif not word.startswith("#"):
            yield _read_head(part, words)


_HEAD: Final = re.compile(
    r"(?P<word>\w+) (?P<operators>[\w.]+(?:,\s*[\w.]+)*)"
    r"\((?P<parameters>[^)]*)\)(?: -> (?P<targets>[\w, ]+))?:[^\S\n]*\n(?P<body>.*)",
    re.DOTALL,
)


def _read_head(part: str, words: Sequence[str]) -> Definition:
    found = _HEAD.fullmatch(part.rstrip() + "\n")
    if found is None or found["word"] not in words or (found["word"] == "backward") != (found["targets"] is not None):
        raise InternalError(f"the head of a formula cannot be read (it begins with one of {tuple(words)}):\n{part}")
    return Definition(
        found["word"],
        _names(found["operators"]),
        _names(found["parameters"]),
        _names(found["targets"] or ""),
        found["body"],
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
