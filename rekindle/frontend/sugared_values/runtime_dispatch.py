"""``self.layers[i]`` and ``ACTIVATIONS[name]``, where ``i`` and ``name`` are known only at run time.

What is done with such a module or function is emitted once for each that it may be, in the branches of an ``if``::

    self.layers[i](x)                 if i == 0:
                                          y = self.layers[0](x)
                            becomes   elif i == 1:
                                          y = self.layers[1](x)
                                      else:
                                          raise IndexError(…)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rekindle.errors import SourceRange, TypeMismatchError
from rekindle.frontend.sugared_values.base import Keywords, SugaredValue
from rekindle.frontend.sugared_values.functions import SugaredFunction
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.graph import Graph, Value
from rekindle.ir.types import INT, STRING, Type, unify, unshaped

Make = Callable[[], SugaredValue]


class RuntimeDispatch(SugaredFunction):
    """One of several objects, selected by an index or a name (``key``) that is known only at run time. Each of
    ``makes`` emits one of the objects. A call, and a use as a value, become an ``if`` with a branch for each object."""

    is_passed_sugared = False

    def __init__(self, what: str, key: Value, names: Sequence[str], makes: Sequence[Make]) -> None:
        self.what = what
        self.key = key
        self.names = names
        self.makes = makes

    @property
    def description(self) -> str:
        return f"an item of {self.what}"

    def as_value(self, range: SourceRange, graph: Graph) -> Value:
        return self._branch(range, graph, lambda item: item.as_value(range, graph))

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        return RuntimeDispatch(
            self.what, self.key, self.names, [_attribute(make, range, graph, name) for make in self.makes]
        )

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        def call(item: SugaredValue) -> Value:
            return item.call_with(range, graph, args, kwargs, targets).as_value(range, graph)

        return SimpleValue(self._branch(range, graph, call))

    def _branch(self, range: SourceRange, graph: Graph, emit: Callable[[SugaredValue], Value]) -> Value:
        """Emit a branch for each object, and return the result of ``emit`` for the selected one.

        Raises:
            TypeMismatchError: the results have no common type.
        """
        result: Type | None = None
        for make in self.makes:
            # The common type of the results is determined in a block that is then removed.
            scratch = graph.insert_node(graph.create("prim::If", [graph.insert_constant(True)], outputs=0))
            with graph.inserting_at_end(scratch.add_block()):
                found = unshaped(emit(make()).type)
            scratch.add_block()
            scratch.destroy()
            common = found if result is None else unify(result, found)
            if common is None:
                assert result is not None
                raise TypeMismatchError(
                    f"the items of {self.what} give different types here: {result.annotation} and {found.annotation}",
                    range,
                )
            result = common
        assert result is not None
        return self._from(0, range, graph, emit, result)

    def _from(
        self, index: int, range: SourceRange, graph: Graph, emit: Callable[[SugaredValue], Value], result: Type
    ) -> Value:
        if index == len(self.makes):
            return self._missing(range, graph, result)
        node = graph.insert_node(graph.create("prim::If", [self._is(index, range, graph)], outputs=0, range=range))
        chosen, others = node.add_block(), node.add_block()
        with graph.inserting_at_end(chosen):
            chosen.add_output(emit(self.makes[index]()))
        with graph.inserting_at_end(others):
            others.add_output(self._from(index + 1, range, graph, emit, result))
        return node.add_output(result)

    def _is(self, index: int, range: SourceRange, graph: Graph) -> Value:
        """Emit a test whether the object at ``index`` is selected. As in Python, negative keys count from the end."""
        if self.key.type == STRING:
            return graph.insert("aten::eq", [self.key, self.names[index]], range=range)
        assert self.key.type == INT
        count = graph.insert_constant(len(self.makes), range=range)
        from_end = graph.insert("aten::add", [self.key, count], range=range)
        is_negative = graph.insert("aten::lt", [self.key, 0], range=range)
        position = graph.insert_node(graph.create("prim::If", [is_negative], outputs=0, range=range))
        position.add_block().add_output(from_end)
        position.add_block().add_output(self.key)
        return graph.insert("aten::eq", [position.add_output(INT), index], range=range)

    def _missing(self, range: SourceRange, graph: Graph, result: Type) -> Value:
        """Emit the error that Python's container raises for a missing key or index."""
        if self.key.type == STRING:
            message, error = self.key, "builtins.KeyError"
        else:
            template = graph.insert_constant("index {} is out of range", range=range)
            message, error = graph.insert("aten::format", [template, self.key], range=range), "builtins.IndexError"
        class_name = graph.insert_constant(error, range=range)
        graph.insert_node(graph.create("prim::RaiseException", [message, class_name], outputs=0, range=range))
        return graph.insert_node(graph.create("prim::Uninitialized", types=[result], range=range)).output


def _attribute(make: Make, range: SourceRange, graph: Graph, name: str) -> Make:
    return lambda: make().attribute(range, graph, name)
