"""Generators and other iterators in variables: ``g = (f(v) for v in xs)``, ``pairs = zip(xs, ys)``.

As in Python, the first iterable of a generator is evaluated where the generator is created, and everything else where
its elements are computed. Only one loop can iterate over an iterator, which is then at its end: the compiler rejects a
second one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rekindle.errors import SourceRange, UnsupportedError
from rekindle.frontend.scopes.frames import EnvironmentFrame
from rekindle.frontend.statements.error_recovery import names_in
from rekindle.frontend.sugared_values.base import StaticValue, SugaredValue
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.graph import Graph, Value
from rekindle.syntax.views import Apply, GeneratorExpr

if TYPE_CHECKING:
    from rekindle.frontend.emitter import Emitter


class KeptIterator(StaticValue):
    """An iterator in a variable, such as ``zip(xs, ys)``. Only one place in the program may iterate over it."""

    description = "an iterator"

    def __init__(self, emitter: Emitter, name: str, sugared: SugaredValue) -> None:
        self.emitter = emitter
        self.name = name
        self.sugared = sugared
        self.made_in = emitter.environment.frame
        self.taken: SourceRange | None = None

    def use(self, range: SourceRange) -> None:
        """Record that the code at ``range`` iterates over the iterator.

        Raises:
            UnsupportedError: other code has iterated over it, or a loop does so repeatedly.
        """
        if self.taken not in (None, range) or self._is_within_a_loop():
            raise UnsupportedError(
                f"'{self.name}' is {self.description}, which is used up by the first who goes over it",
                range,
                hint=f"keep a list: {self.name} = list(…)",
            )
        self.taken = range

    def _is_within_a_loop(self) -> bool:
        """Return whether the current place is in a loop that does not contain the creation of the iterator, so that it
        would be used repeatedly."""
        frame: EnvironmentFrame | None = self.emitter.environment.frame
        while frame is not None and frame is not self.made_in:
            if frame.is_loop_body:
                return True
            frame = frame.parent
        return False

    @property
    def static_length(self) -> int | None:
        return self.sugared.static_length

    @property
    def must_unroll(self) -> bool:
        return self.sugared.must_unroll

    @property
    def bounded_by(self) -> list[SugaredValue]:
        return self.sugared.bounded_by

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        self.use(range)
        return self.sugared.as_value(range, graph)

    def iterator(self, range: SourceRange, graph: Graph) -> SugaredValue:
        self.use(range)
        return self.sugared.iterator(range, graph)

    def as_tuple(self, range: SourceRange, graph: Graph, size_hint: int | None = None) -> list[SugaredValue]:
        self.use(range)
        return self.sugared.as_tuple(range, graph, size_hint)


class KeptGenerator(KeptIterator):
    """A generator in a variable."""

    description = "a generator"

    def __init__(self, emitter: Emitter, name: str, generator: GeneratorExpr) -> None:
        super().__init__(emitter, name, _NOTHING)
        self.generator = generator
        self.variables = {name: self.made_in.variable(name) for name in names_in(generator)}

    def take(self, range: SourceRange) -> GeneratorExpr:
        """Return the generator expression, for the code at ``range``, which iterates over it.

        Raises:
            UnsupportedError: other code has iterated over it, a loop does so repeatedly, or its names refer to other
                variables here.
        """
        self.use(range)
        frame = self.emitter.environment.frame
        if any(frame.variable(name) != variable for name, variable in self.variables.items()):
            raise UnsupportedError(
                f"'{self.name}' is a generator that reads variables around it, which mean something else here",
                range,
                hint=f"keep a list: {self.name} = [… for …]",
            )
        return self.generator

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        return self.emitter.emit_expression(self.take(range))

    def iterator(self, range: SourceRange, graph: Graph) -> SugaredValue:
        return SimpleValue(self.as_value(range, graph))

    def as_tuple(self, range: SourceRange, graph: Graph, size_hint: int | None = None) -> list[SugaredValue]:
        return SimpleValue(self.as_value(range, graph)).as_tuple(range, graph, size_hint)


class KeptCall(KeptIterator):
    """An iterator of ``itertools`` in a variable. The call, whose arguments have been evaluated, is emitted where the
    elements are needed."""

    static_length = None
    must_unroll = False

    def __init__(self, emitter: Emitter, name: str, call: Apply) -> None:
        super().__init__(emitter, name, _NOTHING)
        self.call_kept = call
        self.variables = {name: self.made_in.variable(name) for name in names_in(call)}

    def use(self, range: SourceRange) -> None:
        is_first = self.taken is None
        super().use(range)
        frame = self.emitter.environment.frame
        if any(frame.variable(name) != variable for name, variable in self.variables.items()):
            raise UnsupportedError(
                f"'{self.name}' is an iterator that reads variables around it, which mean something else here",
                range,
                hint=f"keep a list: {self.name} = list(…)",
            )
        if is_first:
            self.sugared = self.emitter.emit_sugared(self.call_kept)


_NOTHING: Final = SugaredValue()

ITERATORS: Final = frozenset({"zip", "enumerate", "reversed", "iter"})
"""Builtins whose results can be iterated over only once."""

ITERTOOLS: Final = frozenset(
    {
        *("accumulate", "chain", "chain_from_iterable", "product", "combinations", "combinations_with_replacement"),
        *("permutations", "islice", "pairwise", "repeat", "takewhile", "dropwhile", "compress", "filterfalse"),
        *("groupby", "starmap", "zip_longest", "count", "cycle"),
    }
)
"""Special forms of ``itertools`` whose results can be iterated over only once. In Python a later loop over a ``count``
or a ``cycle`` continues where an earlier one has ended."""
