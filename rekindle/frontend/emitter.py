"""The emitter: the state of the emission of one function, and helpers for nodes, blocks and control state.

:class:`Language` is the table of handlers by the kind of tree; :mod:`rekindle.frontend.language` has its entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from rekindle.errors import CompileError, Diagnostics, SourceRange, TypeMismatchError, UnsupportedError
from rekindle.frontend.calls.enum_members import defined, plain_type, plain_value
from rekindle.frontend.inference.none_error_messages import TYPE_ERROR
from rekindle.frontend.inference.type_inference import TypeEvidence
from rekindle.frontend.scopes.environment import Environment
from rekindle.frontend.scopes.frames import EnvironmentFrame, LoopKind
from rekindle.frontend.scopes.merging import merge_branches
from rekindle.frontend.scopes.refinement import KNOWN_NONE, CondValue, RefinementSet
from rekindle.frontend.sugared_values.base import CallSite, Resolver, SugaredValue
from rekindle.frontend.sugared_values.special_forms import GLOBALS
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.graph import AttributeValue, Block, Graph, Node, Value
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.types import (
    BOOL,
    NUMBER,
    TENSOR,
    ClassType,
    EnumType,
    NoneType,
    Type,
    UnionBase,
    UnionType,
    join_values,
    may_be_bool,
    number_beside_tensor,
    unify,
    union,
    unshaped,
    without_none,
)
from rekindle.syntax.views import Apply, BinOp, Expr, Select, Stmt, Var

T = TypeVar("T")

_UNSUPPORTED: Final = {
    "dots": "'...' is only supported within subscripts",
    "starred": "'*' is only supported in calls, literals and assignments",
    "slice": "a slice is only supported within subscripts",
}

_NUMBER_GIVEN: Final = "unsupported operand: a number, where a Tensor is needed"
_TENSOR_GIVEN: Final = "unsupported operand: a Tensor, where a number is needed"


class SelfBinding(Protocol):
    """Binding of ``self`` of a method: its class, and its sugared value."""

    @property
    def type(self) -> ClassType: ...

    def sugared(self, value: Value) -> SugaredValue: ...


@dataclass(slots=True)
class ReturnTypes:
    """The return type that a function declares, and the common type of its return statements so far."""

    declared: Type | None = None
    merged: Type | None = None
    given: Type | None = None
    """Type of the values returned so far, which may be more specific than the declared one."""
    announce: Callable[[Type], None] | None = None
    """Function that is called with the type of the first return statement, which recursive calls need."""
    is_uncertain: bool = False
    """Whether a return statement, or the declaration of the function, could not be compiled."""


@dataclass(slots=True)
class EmissionPoint:
    """A position of the emitter, from which emission continues after an error."""

    frame: EnvironmentFrame
    insert_point: Node
    loop: LoopKind


ExpressionHandler = Callable[["Emitter", Expr, int, "Type | None"], SugaredValue]
"""Emits expressions of one kind of tree; see :meth:`Emitter.emit_sugared`."""

FormHandler = Callable[["Emitter", Apply, "Type | None"], SugaredValue]
"""Emits calls of one special form; see :attr:`Language.special_forms`."""


@dataclass(frozen=True, slots=True)
class Language:
    """Table of the functions that emit each construct of a language. They are in modules by subject, and
    :mod:`rekindle.frontend.language` lists them."""

    expressions: Mapping[str, ExpressionHandler]
    """Handlers of expressions, by the kind of the tree."""
    emit_statements: Callable[[Emitter, Sequence[Stmt]], None]
    assign: Callable[[Emitter, Sequence[Expr], Sequence[SugaredValue], SourceRange], None]
    """Emits the assignment of sugared values to targets."""
    special_forms: Mapping[str, FormHandler]
    """Handlers of calls of builtins and other special functions, by name: ``zip(xs, ys)``."""
    attributes: Sequence[Callable[[Emitter, SugaredValue, Select, str], SugaredValue | None]]
    """Handlers of attributes of Python's classes; the first result that is not None counts."""
    operators: Sequence[Callable[[Emitter, str, Value, Value, BinOp], Value | None]]
    """Binary operators of Python's classes; the first result that is not None counts."""
    questions: Sequence[Callable[[Emitter, BinOp], CondValue | None]]
    """Comparisons that the compiler evaluates: ``type(x) is int``; the first result that is not None counts."""


class Emitter:
    """The state of the emission of a function: graph, names and control state, and helpers for all constructs."""

    def __init__(
        self,
        language: Language,
        resolver: Resolver,
        diagnostics: Diagnostics | None = None,
        evidence: TypeEvidence | None = None,
    ) -> None:
        self.language = language
        self.graph = Graph()
        self.resolver = resolver
        self.diagnostics = Diagnostics() if diagnostics is None else diagnostics
        """The errors of this function. After the first one the graph is not valid, but emission continues, to find
        others."""
        self.evidence = TypeEvidence() if evidence is None else evidence
        """Evidence for variables whose first assignment does not determine their types."""
        self.environment = Environment(self.graph, resolver, GLOBALS.get, self.evidence)
        self.assumed: dict[str, SourceRange] = {}
        """Parameters assumed to be Tensors for lack of an annotation, as long as nothing is assigned to them, with
        the location of their names."""
        self.returns = ReturnTypes()
        self.exited: set[Block] = set()
        """Blocks whose end is never reached: all paths return, raise, break or continue."""
        self.is_unexpected = False
        """Whether the values of the module's attributes make the branch that is being emitted unreachable."""
        self.loop = LoopKind.NONE
        self.shared: dict[int, Value | None] = {}
        """Values of trees, by id, that occur twice and are evaluated once, such as the middle of ``a < b < c``.
        None: not yet evaluated."""
        self.caught: tuple[Value, ...] = ()
        """The exceptions that are being handled, the innermost last."""
        self.self_binding: SelfBinding | None = None
        """``self`` of an ``__init__``, whose assignments define the attributes of a class."""
        self.starred: dict[int, SugaredValue] = {}
        """Sugared values of starred items of a literal, by the identity of their trees, while the literal is
        emitted."""
        self.order_free: set[int] = set()
        """Iterables that loops may iterate in any order, by the identity of the trees."""
        self._constants: dict[tuple[type, object], Value] = {}

    # ------------------------------------------------------------------------------------- the language

    def emit_sugared(self, expr: Expr, targets: int = 1, hint: Type | None = None) -> SugaredValue:
        """Emit ``expr``, and return its sugared value; ``targets`` is the number of names that it is unpacked to,
        ``hint`` the expected type, which determines the type of empty literals.

        Raises:
            CompileError: the expression cannot be compiled.
        """
        tree = expr.tree
        if tree.kind == Var.KIND:
            return self.environment.lookup(Var(tree).name.name, tree.range)
        emit = self.language.expressions.get(tree.kind)
        if emit is None:
            text = _UNSUPPORTED.get(tree.kind, f"{tree.kind} expressions are not supported")
            raise UnsupportedError(text, tree.range)
        return emit(self, expr, targets, hint)

    def emit_expression(self, expr: Expr, hint: Type | None = None) -> Value:
        """Emit ``expr``, and return its value. ``hint`` is the expected type, which determines the type of empty
        literals.

        Raises:
            CompileError: the expression cannot be compiled, or has no value.
        """
        key = id(expr.tree)
        if key not in self.shared:
            return self.as_scalar(self.emit_sugared(expr, 1, hint).as_value(expr.range, self.graph))
        found = self.shared[key]
        if found is None:
            found = self.shared[key] = self.emit_sugared(expr, 1, hint).as_value(expr.range, self.graph)
        return found

    def as_scalar(self, value: Value) -> Value:
        """Return a number that may be a bool, cast to a Scalar, which operators on numbers accept; other values
        unchanged."""
        if not isinstance(value.type, UnionType) or not self.graph.follows_python or not may_be_bool(value.type):
            return value
        return self.as_number(value, value.node.range)

    def emit_statements(self, statements: Sequence[Stmt]) -> None:
        """Emit statements one after the other. An error in one is recorded, and emission continues after it."""
        self.language.emit_statements(self, statements)

    # ------------------------------------------------------------------------------------ control state

    @property
    def place(self) -> EmissionPoint:
        return EmissionPoint(self.environment.frame, self.graph.insert_point, self.loop)

    def restore(self, place: EmissionPoint) -> None:
        self.environment.frame = place.frame
        self.graph.insert_point = place.insert_point
        self.loop = place.loop

    # ------------------------------------------------------------------------------------------- nodes

    def insert(self, kind: str, range: SourceRange, *arguments: object, **keywords: object) -> Value:
        """Insert a call of the operator ``kind``, and return its result."""
        return self.graph.insert(kind, arguments, keywords, range)

    def insert_node(
        self,
        kind: str,
        range: SourceRange,
        inputs: Sequence[Value],
        types: Sequence[Type],
        attributes: Mapping[str, AttributeValue] | None = None,
    ) -> Node:
        """Insert a node whose kind, inputs and output types are known, and return it."""
        return self.graph.insert_node(self.graph.create(kind, inputs, types=types, attributes=attributes, range=range))

    def argument(self, value: Value, range: SourceRange) -> NamedValue:
        return NamedValue(value, range=range)

    def literal(self, number: int | float | complex, range: SourceRange) -> Value:
        """Return a constant number. Equal numbers are one constant, at the start of the graph."""
        key = (type(number), repr(number))
        found = self._constants.get(key)
        if found is None:
            start = self.graph.block.return_node.next
            with self.graph.inserting_before(start):
                found = self.graph.insert_constant(number, range=range)
            self._constants[key] = found
        return found

    # ------------------------------------------------------------------------------------------ blocks

    @contextmanager
    def inside(
        self, block: Block, refinements: dict[str, Type] | None = None, range: SourceRange | None = None
    ) -> Iterator[EnvironmentFrame]:
        """Emit to the end of ``block`` within the ``with`` block. The block has its own frame, in which variables have
        the types ``refinements``, if ``range`` is given."""
        frame = self.environment.push(block)
        try:
            with self.graph.inserting_at_end(block):
                if refinements and range is not None:
                    self.refine(refinements, range)
                yield frame
        finally:
            self.environment.pop()

    @contextmanager
    def in_loop(self, kind: LoopKind) -> Iterator[None]:
        saved, self.loop = self.loop, kind
        try:
            yield
        finally:
            self.loop = saved

    def refine(self, types: dict[str, Type], range: SourceRange) -> None:
        """Refine variables to these types, each narrower than before, from here on. ``KNOWN_NONE`` records that a
        variable is None."""
        for name, type in types.items():
            if type == KNOWN_NONE:
                self.environment.frame.known_none.add(self.environment.frame.variable(name))
                continue
            value = self.environment.lookup_value(name, range)
            cast = self.insert_node("prim::unchecked_cast", range, [value], [type]).output
            cast.set_name(name)
            self.environment.store(name, range, cast, type)

    @property
    def has_exited(self) -> bool:
        """Whether the rest of the current block is unreachable."""
        return self.environment.block in self.exited

    def mark_exited(self) -> None:
        self.exited.add(self.environment.block)

    # ------------------------------------------------------------------------------------- conversions

    def to_bool(self, value: Value, range: SourceRange) -> Value:
        """Emit ``bool(value)``, for a condition, and return it.

        Raises:
            TypeMismatchError: a value of this type has no truth value.
        UnsupportedError: the value is a member of an enum that defines the truth of its members.
        """
        if value.type == BOOL:
            return value
        if isinstance(value.type, NoneType):
            return self.graph.insert_constant(False, range=range)
        if isinstance(value.type, UnionBase) and value.type.is_optional:
            return self._present_and_true(value, range)
        if isinstance(value.type, EnumType) and self.graph.follows_python:
            return self._truth_of_member(value, range)
        if isinstance(value.type, UnionType):
            return self._truth_of_each(value, list(value.type.members), range)
        result = GLOBALS["bool"].call(CallSite(range, self.graph, [NamedValue(value, range=range)]))
        found = result.as_value(range, self.graph)
        if found.type != BOOL:
            raise TypeMismatchError(f"a condition must be a bool, got {found.type.annotation}", range)
        return found

    def _truth_of_member(self, value: Value, range: SourceRange) -> Value:
        """Emit ``bool(member)``: that of the number or string which the member is, too, or True.

        Raises:
            UnsupportedError: the enum defines the truth of its members.
        """
        assert isinstance(value.type, EnumType)
        if plain_type(value.type) is not None:
            return self.to_bool(plain_value(self.graph, value, range), range)
        methods = ("__bool__", "__len__")
        if value.type.python_class is None or any(defined(value.type.python_class, name) for name in methods):
            raise UnsupportedError(f"the truth of a member of {value.type.annotation} is not known here", range)
        return self.graph.insert_constant(True, range=range)

    def _present_and_true(self, value: Value, range: SourceRange) -> Value:
        """Emit ``bool(value)`` for a value of an Optional: False if it is None."""
        nothing = self.graph.insert_constant(None, range=range)
        present = self.insert("aten::__isnot__", range, value, nothing)
        node, _, _ = self.branch(
            range,
            present,
            RefinementSet(),
            lambda: self.to_bool(self.without_none(value, range), range),
            lambda: self.graph.insert_constant(False, range=range),
        )
        return node.add_output(BOOL)

    def _truth_of_each(self, value: Value, members: list[Type], range: SourceRange) -> Value:
        """Emit ``bool(value)`` for a value of a Union: test for each of its ``members`` in turn."""
        first, *rest = members

        def cast(type: Type) -> Value:
            return self.insert_node("prim::unchecked_cast", range, [value], [type]).output

        if not rest:
            return self.to_bool(cast(first), range)
        is_first = self.insert_node("prim::isinstance", range, [value], [BOOL], {"types": [first]}).output
        node, _, _ = self.branch(
            range,
            is_first,
            RefinementSet(),
            lambda: self.to_bool(cast(first), range),
            lambda: self._truth_of_each(value, rest, range),
        )
        return node.add_output(BOOL)

    def present(self, value: Value, range: SourceRange, message: str, error: str = TYPE_ERROR) -> Value:
        """Unwrap a value that may be None, in a program from Python: the emitted check raises ``error(message)`` if it
        is None. Return other values unchanged."""
        checks = self.graph.none_checks
        if checks is None or not checks.can_check(value):
            return value
        return checks.check(value, range, error, message)

    def without_none(self, value: Value, range: SourceRange) -> Value:
        """Unwrap an Optional value that is known not to be None: emit a cast without a check."""
        return self.insert_node("prim::unchecked_cast", range, [value], [without_none(value.type)]).output

    def as_number(self, either: Value, range: SourceRange) -> Value:
        """Cast a value of a Union of number types to a number (Scalar), which more operators accept."""
        return self.insert_node("prim::unchecked_cast", range, [either], [NUMBER]).output

    def split(self, value: Value, range: SourceRange, emit: Callable[[Value], Value]) -> Value:
        """Emit a use of a value that is a Tensor or a number: an ``if`` on its type, with ``emit`` called for each.
        Return the result.

        If only one of the two can be compiled, the program raises TypeError if the value is the other.

        Raises:
            CompileError: the use can be compiled for neither.
        """
        number = number_beside_tensor(value.type)
        assert number is not None
        tested: list[Type] = [TENSOR]
        is_tensor = self.insert_node("prim::isinstance", range, [value], [BOOL], {"types": tested}).output
        node = self.insert_node("prim::If", range, [is_tensor], [])
        made: list[Value | None] = []
        errors: list[CompileError] = []
        for type in (TENSOR, number):
            block = node.add_block()
            with self.inside(block):
                part = self.insert_node("prim::unchecked_cast", range, [value], [type]).output
                try:
                    made.append(emit(part))
                except CompileError as error:
                    made.append(None)
                    errors.append(error)
        if len(errors) == len(made):
            raise errors[0]
        for block, result, text in zip(node.blocks, made, (_TENSOR_GIVEN, _NUMBER_GIVEN), strict=True):
            if result is None:
                for failed in list(block.nodes_reversed):
                    failed.destroy()
                with self.inside(block):
                    said = [self.graph.insert_constant(each, range=range) for each in (text, TYPE_ERROR)]
                    self.insert_node("prim::RaiseException", range, said, [])
                    left = next(other for other in made if other is not None)
                    result = self.insert_node("prim::Uninitialized", range, [], [left.type]).output
            block.add_output(result)
        one, other = (unshaped(block.outputs[0].type) for block in node.blocks)
        return node.add_output(unify(one, other) or join_values(one, other) or union((one, other)))

    def branch(
        self,
        range: SourceRange,
        condition: Value,
        refinements: RefinementSet,
        if_true: Callable[[], Value],
        if_false: Callable[[], Value],
    ) -> tuple[Node, Value, Value]:
        """Insert ``prim::If`` whose branches compute one value each, by ``if_true`` and ``if_false``, in which
        variables have the types of ``refinements``. Return the node and both values; the caller adds the output to the
        node. A variable that a branch assigns, in an assignment expression, is merged as after an ``if`` statement."""
        node = self.insert_node("prim::If", range, [condition], [])
        values: list[Value] = []
        frames: list[EnvironmentFrame] = []
        for emit, types in ((if_true, refinements.if_true), (if_false, refinements.if_false)):
            block = node.add_block()
            with self.inside(block, types, range) as frame:
                value = emit()
                block.add_output(value)
                values.append(value)
            frames.append(frame)
        merge_branches(self.environment, self.diagnostics, range, frames, what="the expression")
        return node, values[0], values[1]


def simple(value: SugaredValue) -> Value | None:
    """Return the value of the graph that a sugared value represents; None if it represents something else."""
    return value.value if isinstance(value, SimpleValue) else None
