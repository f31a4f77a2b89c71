"""Builders: construct nodes by calls of PyTorch's functions.

``graph.inserting_before(node)``, ``inserting_after`` and ``inserting_at_end`` yield a :class:`Builder`::

    with graph.inserting_before(node) as build:
        y = build.tanh(x) @ w + 1
    node.output.replace_all_uses_with(y)

Its methods are the operators of ``aten``. They return a :class:`Proxy`: a value of the graph with the operators,
methods and attributes of tensors. ``build(x)`` wraps a value in a proxy. Methods of graphs, blocks and nodes that take
a value also take a proxy. A call that raises leaves the graph unchanged.

The frontend compiles the expressions: it implements :class:`BuilderFrontend`, and sets the hook :data:`emission`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, overload

import torch

from rekindle.errors import UNKNOWN_RANGE, GraphError, SourceRange
from rekindle.errors.layer_hooks import LayerHook
from rekindle.ir.attributes import constant_attribute
from rekindle.ir.node import AnyValue, AttributeValue, Node, Value, value_of
from rekindle.ir.operators.named_value import NamedValue
from rekindle.ir.types.base import Type
from rekindle.ir.types.containers import ListType, TupleType
from rekindle.ir.types.unify import unify_all

if TYPE_CHECKING:
    from rekindle.ir.graph import Graph

Arguments = Sequence[NamedValue]
Proxies: TypeAlias = "tuple[Proxy, ...]"
Caller = Callable[[Arguments, Arguments], Value]
"""Function that calls a method of a value: with positional and with keyword arguments."""


class BuilderFrontend(Protocol):
    """Services of the frontend for builders. New nodes are inserted at the graph's insertion point."""

    def operator(self, graph: Graph, kind: str, args: Arguments, kwargs: Arguments, range: SourceRange) -> Value:
        """Insert a call of the operator ``kind``, and return its result, a tuple if there are several."""

    def binary(self, graph: Graph, symbol: str, args: Arguments, range: SourceRange) -> Value:
        """Insert ``a + b``, for the symbol ``+``, and return its value."""

    def attribute(self, graph: Graph, value: Value, name: str, range: SourceRange) -> Value | Caller:
        """Insert ``value.name``, and return its value, or a callable for a method."""

    def function(
        self, graph: Graph, function: Any, args: Arguments, kwargs: Arguments, range: SourceRange, *, inline: bool
    ) -> Value:
        """Insert a call of a function, or its inlined body, and return the result."""

    def code(self, graph: Graph, text: str, names: Mapping[str, NamedValue], range: SourceRange, up: int) -> Value:
        """Insert an expression in TorchScript, and return its value. Names are looked up ``up`` frames above."""


emission: Final = LayerHook[BuilderFrontend]("rekindle.transforms.editing")
"""Hook: the implementation of expressions."""


class Builder:
    """Inserts nodes at the insertion point of ``graph``: ``build.tanh(x)`` inserts a call of ``aten::tanh``. New nodes
    get the source location, the call stack and the scope of the node ``like``."""

    __slots__ = ("_first_number", "_is_used", "graph", "like")

    def __init__(self, graph: Graph, like: Node) -> None:
        self.graph = graph
        self.like = like
        self._first_number = graph._next_unique
        self._is_used = False

    @property
    def range(self) -> SourceRange:
        """The source location of new nodes."""
        return UNKNOWN_RANGE if self.like.is_destroyed else self.like.range

    # -------------------------------------------------------------------------------------- operators

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a function that inserts a call of the operator ``aten::name`` and returns its result.

        Raises:
            AttributeError: the name begins with two underscores.
        """
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: self.op(f"aten::{name}", *args, **kwargs)

    def op(self, kind: str, /, *args: object, **kwargs: object) -> Any:
        """Insert a call of any operator by its kind, such as ``prim::device`` or ``mylib::op``. Return its result, a
        tuple of them if there are several.

        Raises:
            SchemaError: no overload fits the arguments.
            UndefinedNameError: there is no such operator.
        """
        return self._build(
            lambda given, named: emission.get().operator(self.graph, kind, given, named, self.range), args, kwargs
        )

    # --------------------------------------------------------------------------- constants, containers

    def constant(self, value: object, type: Type | None = None) -> Proxy:
        """Insert a constant: None, a bool, a number, a string, a tensor, a dtype, a device, a list, tuple or dict of
        such. ``type`` is needed if the value does not determine it: for an empty list, or for None of type ``int?``.

        Raises:
            GraphError: a constant cannot have the class of ``value``.
        """
        node = self.graph.create_constant(value, type, self.range)
        return Proxy(self, self._insert(node).output)

    def list(self, items: Sequence[object], type: Type | None = None) -> Proxy:
        """Insert the construction of a list of values and constants. ``type`` is the type of its elements; without it,
        they are joined to one type. An empty list needs it.

        Raises:
            GraphError: the elements are not of ``type``, have no type in common, or cannot be constants.
        """
        with self._keeping_out():
            values = [self._value(item) for item in items]
            element = unify_all(value.type for value in values) if type is None else type
            if element is None or any(not value.type.is_subtype_of(element) for value in values):
                given = ", ".join(value.type.annotation for value in values)
                wanted = "one type" if element is None else element.annotation
                raise GraphError(f"the elements of a list must be of {wanted}, not ({given})")
            return Proxy(self, self.node("prim::ListConstruct", values, types=[ListType(element)]).output)

    def tuple(self, items: Sequence[object]) -> Proxy:
        """Insert the construction of a tuple of values and constants.

        Raises:
            GraphError: an item is neither a value nor a constant of a program.
        """
        with self._keeping_out():
            values = [self._value(item) for item in items]
            type = TupleType(tuple(value.type for value in values))
            return Proxy(self, self.node("prim::TupleConstruct", values, types=[type]).output)

    def node(
        self,
        kind: str,
        inputs: Sequence[AnyValue] = (),
        *,
        types: Sequence[Type],
        attributes: Mapping[str, AttributeValue] | None = None,
    ) -> Node:
        """Insert a node of any kind, with outputs of ``types``. It has no blocks yet."""
        return self._insert(self.graph.create(kind, inputs, types=types, attributes=attributes, range=self.range))

    # ------------------------------------------------------------------------------------------- code

    def inline(self, function: Any, /, *args: object, **kwargs: object) -> Any:
        """Insert the inlined code of ``function`` and of the functions that it calls. Return its result, or a tuple of
        proxies if it returns a tuple that it constructs.

        ``function`` is a Python function, compiled or not, a function of PyTorch, or a graph. A parameter of a Python
        function without an annotation has the type of the argument.

        Raises:
            CompileError: ``function`` cannot be compiled, or the arguments do not fit.
        """
        return self._build(
            lambda given, named: emission.get().function(self.graph, function, given, named, self.range, inline=True),
            args,
            kwargs,
        )

    def call(self, function: Any, /, *args: object, **kwargs: object) -> Any:
        """Insert a call of ``function``, without inlining it. Take and return the same as :meth:`inline`, and raise the
        same errors."""
        return self._build(
            lambda given, named: emission.get().function(self.graph, function, given, named, self.range, inline=False),
            args,
            kwargs,
        )

    def code(self, text: str, /, **names: object) -> Any:
        """Insert an expression that is written as in a program: ``build.code("x[:, 0] + n", x=x, n=2)``. Return its
        value. Other names are those of the calling Python code.

        Raises:
            ParseError: ``text`` is not an expression.
            CompileError: the expression cannot be compiled.
        """
        return self._build(
            lambda given, named: emission.get().code(
                self.graph, text, {item.name or "": item for item in named}, self.range, 2
            ),
            (),
            names,
        )

    def clone(self, nodes: Sequence[Node], values: Mapping[Value, AnyValue] | None = None) -> dict[Value, Value]:
        """Insert copies of ``nodes``, in this order, from any graph. An input that is an output of a node copied before
        is replaced by that output's copy. Other inputs are looked up in ``values``; values of this graph without an
        entry are used themselves. Copies keep the source locations of the originals. Return the copy of each output.

        Raises:
            GraphError: an input from another graph has no entry in ``values``.
        """
        known: dict[Value, Value] = {old: value_of(new) for old, new in (values or {}).items()}
        made: dict[Value, Value] = {}

        def mapped(old: Value) -> Value:
            found = made.get(old) or known.get(old)
            if found is None and old.graph is not self.graph:
                raise GraphError(f"nothing stands for %{old.name}, which belongs to another graph")
            return found or old

        with self._keeping_out():
            for node in nodes:
                self.graph.insert_clone(node, made, mapped)
            self._is_used = True
        return made

    # ----------------------------------------------------------------------------------------- proxies

    @overload
    def __call__(self, value: AnyValue, /) -> Proxy: ...
    @overload
    def __call__(self, first: AnyValue, second: AnyValue, /, *more: AnyValue) -> Proxies: ...
    def __call__(self, *values: AnyValue) -> Any:
        """Return a tuple of proxies of the values, ``x, w = build(x, w)``; for one value its proxy alone."""
        proxies = tuple(Proxy(self, value_of(value)) for value in values)
        return proxies[0] if len(proxies) == 1 else proxies

    # ------------------------------------------------------------------------------------------ inside

    def take_out(self) -> None:
        """Remove the nodes without uses that this builder inserted directly before the insertion point."""
        if self._is_used:
            _take_out(self.graph, self._first_number)

    def _insert(self, node: Node) -> Node:
        self._is_used = True
        self._mark(node)
        return self.graph.insert_node(node)

    def _mark(self, node: Node) -> None:
        if not self.like.is_destroyed:
            node.callstack, node.scope = self.like.callstack, self.like.scope
            if not node.range.is_known:
                node.range = self.like.range

    def _keeping_out(self) -> _UndoOnError:
        return _UndoOnError(self.graph)

    def _value(self, item: object) -> Value:
        return self._argument(item).materialize(self.graph)

    def _argument(self, item: object, name: str | None = None) -> NamedValue:
        """Return ``item`` as an argument. A list that contains values is constructed in the graph. So is a tuple, as a
        list if its elements are values of one type, else as a tuple. Anything else is a constant.

        Raises:
            GraphError: it is neither a value nor a constant of a program.
        """
        if isinstance(item, NamedValue):
            return item
        if isinstance(item, (Value, Proxy)):
            return NamedValue(value_of(item), range=self.range, name=name)
        if isinstance(item, (list, tuple)) and _holds_values(item):
            # As lists, where that is possible: a tuple fits where a list is wanted, but costs nodes.
            kinds = {value_of(part).type if _is_value(part) else None for part in item}
            make = self.list if isinstance(item, list) or len(kinds) == 1 else self.tuple
            return NamedValue(make(item).value, range=self.range, name=name)
        constant_attribute(item)  # or it raises
        return NamedValue(constant=item, range=self.range, name=name)

    def _build(
        self, emit: Callable[[Arguments, Arguments], Value], args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Any:
        """Return the results of ``emit`` on these arguments, as proxies."""
        graph = self.graph
        start, before = graph._next_unique, graph.insert_point.prev
        with self._keeping_out():
            given = [self._argument(item) for item in args]
            named = [self._argument(item, name) for name, item in kwargs.items()]
            result = emit(given, named)
        self._is_used = True
        self._mark_after(before)
        return self._proxies(result, start)

    def _mark_after(self, before: Node) -> None:
        node = before.next
        while node is not self.graph.insert_point:
            if not node.callstack:
                self._mark(node)
            node = node.next

    def _proxies(self, result: Value, start: int) -> Any:
        node = result.node
        if node.kind != "prim::TupleConstruct" or result.unique < start or result.has_uses:
            return Proxy(self, result)
        parts = tuple(Proxy(self, part) for part in node.inputs)
        node.destroy()
        return parts


class _UndoOnError:
    """Context manager that removes the nodes inserted in its block if the block raises."""

    __slots__ = ("graph", "start")

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def __enter__(self) -> None:
        self.start = self.graph._next_unique

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if kind is not None:
            _take_out(self.graph, self.start)


def _take_out(graph: Graph, first_number: int) -> None:
    """Destroy the unused nodes directly before the insertion point whose values have numbers from ``first_number``
    on."""
    node = graph.insert_point.prev
    while node.kind != "prim::Return" and _is_new(node, first_number):
        before = node.prev
        if not node.has_uses:
            node.destroy()
        node = before


def _is_new(node: Node, first_number: int) -> bool:
    made = [*node.outputs, *(value for block in node.blocks for value in block.inputs)]
    return bool(made) and all(value.unique >= first_number for value in made)


def _is_value(item: object) -> bool:
    return isinstance(item, (Value, Proxy))


def _holds_values(items: Sequence[object]) -> bool:
    return any(_is_value(item) or (isinstance(item, (list, tuple)) and _holds_values(item)) for item in items)


class Proxy:
    """A value of a graph with the operators, methods and attributes that it has in a program. Functions of ``torch``
    take it as well. Each use makes nodes where its builder does.

    ``==`` and ``!=`` make nodes too, so compare ``.value`` to ask whether two proxies are the same.
    """

    __slots__ = ("_builder", "_value")

    def __init__(self, builder: Builder, value: Value) -> None:
        self._builder = builder
        self._value = value

    @property
    def value(self) -> Value:
        """The value of the graph."""
        return self._value

    def named(self, name: str) -> Proxy:
        """Return this proxy after naming its value."""
        self._value.set_name(name)
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("__", "_repr_", "_ipython_")):
            raise AttributeError(name)
        build = self._builder
        found: list[Caller] = []

        def attribute(args: Arguments, kwargs: Arguments) -> Value:
            result = emission.get().attribute(build.graph, self._value, name, build.range)
            if isinstance(result, Value):
                return result
            found.append(result)
            return self._value

        proxy = build._build(attribute, (), {})
        if not found:
            return proxy
        return lambda *args, **kwargs: build._build(found[0], args, kwargs)

    def __getitem__(self, index: object) -> Any:
        names: dict[str, object] = {"self": self}
        indices = index if isinstance(index, tuple) else (index,)
        text = ", ".join(_index_text(item, names) for item in indices)
        given = {f"_{name}": item for name, item in names.items()}
        return self._builder._build(
            lambda args, named: emission.get().code(
                self._builder.graph,
                f"_self[{text}]",
                {item.name or "": item for item in named},
                self._builder.range,
                2,
            ),
            (),
            given,
        )

    def __iter__(self) -> Iterator[Proxy]:
        type = self._value.type
        if not isinstance(type, TupleType):
            raise TypeError(f"a {type.annotation} of a graph cannot be walked: its length is known when it runs")
        node = self._builder.node("prim::TupleUnpack", [self._value], types=type.elements)
        return iter([Proxy(self._builder, output) for output in node.outputs])

    def __bool__(self) -> bool:
        raise TypeError(
            f"whether %{self._value.name} is true is known when the graph runs; write what depends on it as a "
            "function with an `if`, and put that in: build.inline(function, …)"
        )

    def __len__(self) -> int:
        raise TypeError(
            f"the length of %{self._value.name} is known when the graph runs; build.len(…) asks for it then"
        )

    def __repr__(self) -> str:
        return repr(self._value)

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = [*args, *(kwargs or {}).values()]
        return _first_proxy(given)._builder.inline(function, *args, **(kwargs or {}))

    __hash__ = object.__hash__


def _first_proxy(items: Sequence[Any]) -> Proxy:
    for item in items:
        if isinstance(item, Proxy):
            return item
    inner = [part for item in items if isinstance(item, (list, tuple)) for part in item]
    return _first_proxy(inner)


def _index_text(item: object, names: dict[str, object]) -> str:
    """Format an index as source; values in it get names, which are added to ``names``."""
    if isinstance(item, slice):
        parts = [item.start, item.stop] if item.step is None else [item.start, item.stop, item.step]
        return ":".join("" if part is None else _index_text(part, names) for part in parts)
    if item is Ellipsis:
        return "..."
    if item is None or isinstance(item, (bool, int, str)):
        return repr(item)
    name = f"i{len(names)}"
    names[name] = item
    return f"_{name}"


def _binary(symbol: str, is_reversed: bool = False) -> Callable[[Proxy, object], Any]:
    def operator(self: Proxy, other: object) -> Any:
        build = self._builder
        try:
            pair = (other, self) if is_reversed else (self, other)
            return build._build(
                lambda args, kwargs: emission.get().binary(build.graph, symbol, args, build.range), pair, {}
            )
        except GraphError:
            if _is_operand(other):
                raise
            return NotImplemented

    return operator


def _is_operand(item: object) -> bool:
    return isinstance(item, (Value, Proxy, bool, int, float, complex, str, torch.Tensor, list, tuple, type(None)))


def _unary(kind: str) -> Callable[[Proxy], Any]:
    return lambda self: self._builder.op(kind, self)


_SYMBOLS: Final = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "matmul": "@",
    "and": "&",
    "or": "|",
    "xor": "^",
    "lshift": "<<",
    "rshift": ">>",
}
_COMPARISONS: Final = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_UNARY: Final = {"neg": "aten::neg", "invert": "aten::bitwise_not", "abs": "aten::abs"}

for _name, _symbol in _SYMBOLS.items():
    setattr(Proxy, f"__{_name}__", _binary(_symbol))
    setattr(Proxy, f"__r{_name}__", _binary(_symbol, is_reversed=True))
for _name, _symbol in _COMPARISONS.items():
    setattr(Proxy, f"__{_name}__", _binary(_symbol))
for _name, _kind in _UNARY.items():
    setattr(Proxy, f"__{_name}__", _unary(_kind))
