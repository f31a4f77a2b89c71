"""Categories of compile errors that tools can rely on, default advice for each, and suggested edits of the source."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from rekindle.errors.source import SourceRange


class Cause(Enum):
    """The kind of problem of a :class:`CompileError`. The list is closed, so that tools can distinguish them.

    Example:
        >>> rekindle.errors.Cause.UNDEFINED_NAME.value
        'undefined name'
    """

    TYPE_MISMATCH = "type mismatch"
    """A value whose type does not fit its use, or a call that fits no signature."""
    DYNAMIC_BEHAVIOUR = "dynamic behaviour"
    """Something that only Python can know, and only when the program runs."""
    DEFAULT_TYPE_ASSUMED = "default type assumed"
    """A value without an annotation was assumed to be a Tensor (an empty list: of Tensors), and it is not."""
    UNSUPPORTED_CONSTRUCT = "unsupported construct"
    """Python that the language leaves out."""
    MISSING_REFINEMENT = "missing refinement"
    """A use of an Optional, a Union or Any that requires a narrower type."""
    INVALID_CLASS = "invalid class"
    """An unsupported class, enum or module."""
    UNDEFINED_NAME = "undefined name"
    """A name or an attribute that does not exist, or not on every path."""
    INVALID_SYNTAX = "invalid syntax"
    """Text that is not a program."""

    def __str__(self) -> str:
        return self.value

    @property
    def advice(self) -> str:
        """The default advice for this cause."""
        return _ADVICE[self]


_ADVICE: Final = {
    Cause.TYPE_MISMATCH: "convert the value to the type that is needed, or declare the type that is meant",
    Cause.DYNAMIC_BEHAVIOUR: "pass what it gives as an argument, or call it through a function marked with @ignore",
    Cause.DEFAULT_TYPE_ASSUMED: "annotate it where it is made",
    Cause.UNSUPPORTED_CONSTRUCT: "say it in another way, or leave it to Python in a function marked with @ignore",
    Cause.MISSING_REFINEMENT: "check it first: if x is not None, or if isinstance(x, T)",
    Cause.INVALID_CLASS: "use a NamedTuple or a plain class, or pass what its objects hold",
    Cause.UNDEFINED_NAME: "give it a value on every path that leads here, or correct the name",
    Cause.INVALID_SYNTAX: "correct it here or shortly before",
}


@dataclass(slots=True, frozen=True)
class Edit:
    r"""A change of the source that would help: replace the text of ``range`` with ``replacement``.

    Example:
        >>> try:
        ...     rekindle.CompilationUnit("def f(x):\n    return torch.rleu(x)")
        ... except rekindle.errors.CompileError as error:
        ...     print(error.edit.replacement)
        relu
    """

    range: SourceRange
    replacement: str

    @property
    def line(self) -> str:
        """The line of the source after the change, with its indentation."""
        source, range = self.range.source, self.range
        index = source.line_index(range.start)
        start = source.line_starts[index]
        text = source.line(index)
        return text[: range.start - start] + self.replacement + text[range.end - start :]

    def __str__(self) -> str:
        """Return the changed line with its number: ``line 3: def f(x: int):``."""
        return f"line {self.range.line}: {self.line.strip()}"
