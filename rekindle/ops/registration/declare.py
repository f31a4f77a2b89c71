"""How an operator is declared: the text of its schema beside what runs it.

Texts are parsed when their kind is first looked up, so that declaring hundreds of them costs next to nothing at
import::

    declare(operator.add, "aten::add.int(int a, int b) -> int", "aten::add.float(float a, float b) -> float")

    @implements("aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)")
    def append(self: list[Any], el: Any) -> list[Any]: ...

What is declared overlaps nowhere with the operators of PyTorch's dispatcher, which
:mod:`rekindle.ops.registration.dispatcher` finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rekindle.errors import GraphError
from rekindle.ir.graph import Node
from rekindle.ir.operators.lazy_sequence import LazySequence
from rekindle.ir.operators.registry import REGISTRY, AliasAnalysisKind, Invocation, Operation, Operator
from rekindle.ir.text.schema_parser import parse_schema
from rekindle.ops.registration.overload_order import ORDER
from rekindle.ops.registration.traits import traits_of_kind

MakeOperation = Callable[[Node], Operation]


@dataclass(slots=True, eq=False)
class Declaration:
    """A declared operator, whose schema is parsed when it is first needed."""

    text: str
    operation: Operation | None
    operation_for_node: MakeOperation | None
    effects: AliasAnalysisKind
    has_side_effects: bool
    is_nondeterministic: bool
    may_alias_inputs: bool = False
    invocation_for_node: Callable[[Node], Invocation] | None = None
    _operator: Operator | None = None

    @property
    def overload(self) -> str:
        return self.text[: self.text.index("(")].partition(".")[2]

    @property
    def operator(self) -> Operator:
        """The operator."""
        if self._operator is None:
            self._operator = self._parse()
        return self._operator

    def _parse(self) -> Operator:
        schema = parse_schema(self.text)
        return Operator(
            schema,
            operation=self.operation,
            operation_for_node=self.operation_for_node,
            invocation_for_node=self.invocation_for_node,
            effects=self.effects,
            has_side_effects=self.has_side_effects,
            is_nondeterministic=self.is_nondeterministic,
            may_alias_inputs=self.may_alias_inputs,
            traits=traits_of_kind(schema.name),
        )


_DECLARED: dict[str, list[Declaration]] = {}


def _add(declaration: Declaration) -> None:
    text = declaration.text
    kind = text.partition("(")[0].partition(".")[0] if "(" in text else parse_schema(text).name
    _DECLARED.setdefault(kind, []).append(declaration)
    REGISTRY.forget(kind)


def declare(
    operation: Operation,
    *texts: str,
    effects: AliasAnalysisKind = AliasAnalysisKind.FROM_SCHEMA,
    side_effects: bool = False,
    nondeterministic: bool = False,
    may_alias_inputs: bool = False,
) -> None:
    """Declare the operators with these schemas, all run by ``operation``; see
    :class:`~rekindle.ir.operators.registry.Operator` for the properties that schemas do not declare.

    A text is parsed at the first lookup of its kind, such as ``aten::add``; a wrong text raises a ``ParseError`` there,
    or here if it has no arguments in parentheses. Overloads may be declared after that lookup. Of two with the same
    schema, the first runs.

    Example:
        >>> from rekindle.ops.registration.declare import declare
        >>> declare(str.removesuffix, "example::without_suffix(str self, str suffix) -> str")
        >>> from rekindle.ir.text.parser import parse_graph
        >>> graph = parse_graph(
        ...     "graph(%name : str, %suffix : str):"
        ...     "  %2 : str = example::without_suffix(%name, %suffix)"
        ...     "  return (%2)"
        ... )
        >>> rekindle.create_function(graph, "without_suffix")("setup.py", ".py")
        'setup'
    """
    for text in texts:
        _add(Declaration(text, operation, None, effects, side_effects, nondeterministic, may_alias_inputs))


_F = TypeVar("_F", bound=Operation)


def implements(
    *texts: str,
    effects: AliasAnalysisKind = AliasAnalysisKind.FROM_SCHEMA,
    side_effects: bool = False,
    nondeterministic: bool = False,
    may_alias_inputs: bool = False,
) -> Callable[[_F], _F]:
    """Return a decorator that calls :func:`declare` with the decorated implementation.

    Example:
        >>> from rekindle.ops.registration.declare import implements
        >>> @implements("example::twice(int n) -> int")
        ... def twice(n: int) -> int:
        ...     return 2 * n
        >>> from rekindle.ir.text.parser import parse_graph
        >>> graph = parse_graph("graph(%n : int):  %1 : int = example::twice(%n)  return (%1)")
        >>> rekindle.create_function(graph, "twice")(21)
        42
    """

    def decorate(operation: _F) -> _F:
        declare(
            operation,
            *texts,
            effects=effects,
            side_effects=side_effects,
            nondeterministic=nondeterministic,
            may_alias_inputs=may_alias_inputs,
        )
        return operation

    return decorate


_M = TypeVar("_M", bound=MakeOperation)


def implements_for_node(
    *texts: str,
    effects: AliasAnalysisKind = AliasAnalysisKind.FROM_SCHEMA,
    side_effects: bool = False,
    may_alias_inputs: bool = False,
    invocation_for_node: Callable[[Node], Invocation] | None = None,
) -> Callable[[_M], _M]:
    """Return a decorator that declares operators whose implementation depends on the node: the decorated function makes
    it, once for each node. ``invocation_for_node`` returns a shorter call for code that is generated for the node."""

    def decorate(make: _M) -> _M:
        for text in texts:
            made = (effects, side_effects, False, may_alias_inputs, invocation_for_node)
            _add(Declaration(text, None, make, *made))
        return make

    return decorate


def int_attribute(node: Node, name: str, default: int | None = None) -> int:
    """Return the attribute ``name`` of a node, an int.

    Raises:
        GraphError: the attribute is something else, or it is missing and there is no default.
    """
    value = node.attributes.get(name, default)
    if not isinstance(value, int):
        raise GraphError(f"{node.kind} needs an int as its attribute '{name}'")
    return value


def declared_operators(kind: str) -> Sequence[Operator]:
    """Return the declared operators of a kind, in the order in which overloads are tried. The schema of each is parsed
    when it is first read."""
    declarations = _DECLARED.get(kind)
    if declarations is None:
        return ()
    order = ORDER.get(kind)
    if order is not None:
        rank = {overload: index for index, overload in enumerate(order)}
        declarations = sorted(declarations, key=lambda declaration: rank.get(declaration.overload, len(rank)))
    return LazySequence.mapped(_operator_of, declarations)


def _operator_of(declaration: Declaration) -> Operator:
    return declaration.operator


def declared_operator(kind: str, overload: str) -> Operator | None:
    """Return one declared operator of a kind; None if there is none."""
    return next((each.operator for each in _DECLARED.get(kind, ()) if each.overload == overload), None)


def is_declared(kind: str) -> bool:
    """Return whether operators of this kind were declared, without a lookup in PyTorch's dispatcher, which would search
    all its operators."""
    return kind in _DECLARED


def declared_kinds() -> Iterator[str]:
    """Return an iterator over the kinds that were declared."""
    return iter(_DECLARED)
