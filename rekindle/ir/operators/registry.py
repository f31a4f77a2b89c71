"""The registry of operators: extensible, empty here, filled by :mod:`rekindle.ops` and by users.

An operator is a schema with what runs it. Those of PyTorch's dispatcher number thousands, so a provider looks them up
by name when a kind is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from rekindle.ir.operators.lazy_sequence import LazySequence
from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types.base import NONE, Type, has_free_variables
from rekindle.ir.types.containers import ListType, OptionalType
from rekindle.ir.types.unify import Bindings, match_variables, substitute

if TYPE_CHECKING:
    from rekindle.ir.node import Node

Operation = Callable[..., object]
"""Function that runs a node: called with the inputs, it returns the output; several as a tuple, anything for none."""


_OWN_NAMESPACES: Final = frozenset({"aten", "prim", "archive", "autodiff"})


def is_foreign(kind: str) -> bool:
    """Return whether ``kind`` is in another namespace than ``aten``, ``prim``, ``archive`` and ``autodiff``."""
    return "::" in kind and kind.partition("::")[0] not in _OWN_NAMESPACES


class AliasAnalysisKind(Enum):
    """Effects of a call beyond computing its results that its schema does not declare."""

    FROM_SCHEMA = "from_schema"
    """It reads, writes and aliases as its alias annotations declare."""
    PURE = "pure"
    """It does nothing but compute fresh results."""
    CONSERVATIVE = "conservative"
    """It may do anything to its inputs and results."""
    SPECIAL = "special"
    """The alias analysis knows the kind itself."""


@dataclass(slots=True, frozen=True)
class Invocation:
    """A call that runs a node: ``function`` with some of the node's inputs, by position and by name."""

    function: Operation
    positional: tuple[int, ...]
    named: tuple[tuple[str, int], ...] = ()
    """The names of parameters, each with the index of the input bound to it."""
    constants: tuple[int, ...] = ()
    """Numbers that follow the inputs that are passed by position."""
    objects: tuple[tuple[int, object], ...] = ()
    """Inputs in whose place something else is passed, which is constant: by index, dtypes for their numbers."""
    tables: tuple[tuple[int, Mapping[int, object]], ...] = ()
    """Inputs that are numbers, and the objects that are passed for these: by index, dtypes by their numbers."""
    spreads: bool = False
    """Whether the last of the inputs that are passed by position, a list of ints that is not empty, may be passed as
    separate arguments."""


@dataclass(slots=True, eq=False)
class Operator:
    """A registered operator.

    ``operation`` runs it; if that depends on the node (its attributes, its number of outputs), ``operation_for_node``
    makes it. Code that is written for one node calls it as ``invocation_of`` specifies; ``invocation_for_node``
    determines that if not all inputs have to be passed. ``has_side_effects``: it must run even if its results are
    unused, such as printing and raising. ``is_nondeterministic``: equal arguments may yield different results.

    Two properties that some schemas lack: ``may_alias_inputs``: a result without an alias annotation may be one of the
    arguments, a view of one, or an element. ``hidden_writes`` names arguments that are written to without an
    annotation, each with the bool argument that disables this if it is False. ``takes_any_sequence``: list arguments
    may be tuples, since the operator only reads them. ``traits`` are further properties for passes. ``is_dispatched``:
    PyTorch's dispatcher runs it directly, without Python code in between.
    """

    schema: FunctionSchema
    operation: Operation | None = None
    operation_for_node: Callable[[Node], Operation] | None = None
    invocation_for_node: Callable[[Node], Invocation] | None = None
    effects: AliasAnalysisKind = AliasAnalysisKind.FROM_SCHEMA
    has_side_effects: bool = False
    is_nondeterministic: bool = False
    may_alias_inputs: bool = False
    hidden_writes: tuple[tuple[str, str], ...] = ()
    takes_any_sequence: bool = False
    traits: frozenset[Trait] = frozenset()
    is_dispatched: bool = False
    _generic: bool | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The kind of the nodes that call it."""
        return self.schema.name

    def operation_of(self, node: Node) -> Operation:
        """Return the function that runs ``node``."""
        if self.operation is not None:
            return self.operation
        assert self.operation_for_node is not None, f"{self.schema.qualified_name} has no implementation"
        return self.operation_for_node(node)

    def invocation_of(self, node: Node) -> Invocation:
        """Return the shortest call that runs ``node``, for code that is generated for it."""
        if self.invocation_for_node is not None:
            return self.invocation_for_node(node)
        return Invocation(self.operation_of(node), tuple(range(len(node.inputs))))

    def matches(self, node: Node) -> bool:
        """Return whether the inputs of ``node`` are of the types that the schema takes; nothing is converted."""
        arguments = self.schema.arguments
        inputs = node.inputs
        if len(inputs) != len(arguments) and not (self.schema.is_vararg and len(inputs) >= len(arguments)):
            return False
        bindings: Bindings = {}
        for argument, value in zip(arguments, inputs, strict=False):
            formal: Type | None = argument.type
            if self._is_generic:
                assert formal is not None
                if match_variables(formal, value.type, bindings) is not None:
                    return False
                formal = substitute(formal, bindings)
                if formal is None and value.type == NONE:
                    continue  # the element of an Optional, which None does not determine
            if formal is None:
                return False
            if not value.type.is_subtype_of(formal) and not (argument.alias is None and _reads_as(value.type, formal)):
                return False
        return True

    def gives_outputs_of(self, node: Node) -> bool:
        """Return whether the outputs of ``node`` fit the declared result types of the schema: of each pair of types,
        one is a subtype of the other. Some overloads differ only in these, such as those of ``prim::EnumValue``."""
        returns = self.schema.returns
        if len(returns) != len(node.outputs):
            return self.schema.is_varret
        for result, output in zip(returns, node.outputs, strict=True):
            formal, actual = result.type, output.type
            if formal is actual or has_free_variables(formal):
                continue
            if not actual.is_subtype_of(formal) and not formal.is_subtype_of(actual):
                return False
        return True

    @property
    def _is_generic(self) -> bool:
        if self._generic is None:
            self._generic = any(has_free_variables(argument.type) for argument in self.schema.arguments)
        return self._generic


@dataclass(slots=True, frozen=True)
class Provider:
    """A source of operators, each of which is always the same object.

    ``operators`` returns those of a kind, in the order in which overloads are tried; they may be made as they are read.
    ``operator`` returns the one of a kind and an overload name without making the others, or None.
    """

    operators: Callable[[str], Sequence[Operator]]
    operator: Callable[[str, str], Operator | None]


def _reads_as(actual: Type, formal: Type) -> bool:
    """Return whether a list may be passed to a parameter that only reads it: a ``Tensor[]`` for ``Tensor?[]``."""
    return (
        isinstance(actual, ListType)
        and isinstance(formal, ListType)
        and isinstance(formal.element, OptionalType)
        and actual.element.is_subtype_of(formal.element)
    )


class OperatorRegistry:
    """Operators by kind, in the order in which overloads are tried."""

    def __init__(self) -> None:
        self._registered: dict[str, list[Operator]] = {}
        self._resolved: dict[str, Sequence[Operator]] = {}
        """The operators of the kinds that were looked up; none for unknown kinds of this package's and PyTorch's own
        namespaces, whose operators are complete unless one is registered here. Other libraries add operators at any
        time."""
        self._found: dict[str, Operator] = {}
        """The operators of this package's and PyTorch's own namespaces that were looked up by their qualified names."""
        self._providers: list[Provider] = []
        self._namespaces: set[str] = set()

    def register(self, operator: Operator) -> Operator:
        """Add an operator after those of its kind. One with the same overload name is replaced."""
        self._namespaces.add(operator.name.partition("::")[0])
        known = self._registered.setdefault(operator.name, [])
        for index, other in enumerate(known):
            if other.schema.overload == operator.schema.overload:
                known[index] = operator
                break
        else:
            known.append(operator)
        self.forget(operator.name)
        return operator

    def forget(self, kind: str) -> None:
        """Discard the cached operators of a kind, so that the next lookup queries the providers again."""
        self._resolved.pop(kind, None)
        self._found.clear()

    def add_provider(self, provider: Provider) -> None:
        """Register ``provider``, which makes the operators of a kind at the first lookup of the kind. Its operators
        precede the registered ones.
        """
        self._providers.append(provider)
        self._resolved.clear()
        self._found.clear()

    def overloads(self, kind: str) -> Sequence[Operator]:
        """Return the operators of a kind; none for an unknown kind. Each is made when it is first read."""
        found = self._resolved.get(kind)
        if found is None:
            provided = [provider.operators(kind) for provider in self._providers]
            found = tuple(self._registered.get(kind, ()))
            if any(provided):
                found = LazySequence.chained((*provided, found))
            if found or not is_foreign(kind):
                self._resolved[kind] = found
            if found:
                self._namespaces.add(kind.partition("::")[0])
        return found

    def find(self, qualified_name: str) -> Operator | None:
        """Return the operator called ``aten::add.Tensor``; without a dot, the one without an overload name; None if
        there is no such operator."""
        found = self._found.get(qualified_name)
        if found is None:
            found = self._find(qualified_name)
            if found is not None and not is_foreign(found.name):
                self._found[qualified_name] = found
        return found

    def _find(self, qualified_name: str) -> Operator | None:
        kind, _, overload = qualified_name.partition(".")
        for provider in self._providers:
            operator = provider.operator(kind, overload)
            if operator is not None:
                self._namespaces.add(kind.partition("::")[0])
                return operator
        known = self._registered.get(kind, ())
        return next((operator for operator in known if operator.schema.overload == overload), None)

    def resolve(self, node: Node) -> Operator | None:
        """Return the operator that ``node`` calls: of the overloads that take inputs of its types, the first whose
        results have the types of its outputs, or else the first; None if no overload takes its inputs."""
        first = None
        for operator in self.overloads(node.kind):
            if operator.matches(node):
                if operator.gives_outputs_of(node):
                    return operator
                first = first or operator
        return first

    def knows_namespace(self, namespace: str) -> bool:
        """Return whether an operator of this namespace, such as ``aten``, has been registered or looked up."""
        return namespace in self._namespaces

    def registered_kinds(self) -> list[str]:
        """Return the kinds that were registered, without those of providers."""
        return list(self._registered)


REGISTRY = OperatorRegistry()
"""The one registry of the process."""
