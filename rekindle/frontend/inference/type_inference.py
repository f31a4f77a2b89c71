"""Type inference by restarts: types of variables whose first assignment does not determine them: ``xs = []``, ``d =
{}``, ``best = None``.

A function is emitted with the type that such an assignment alone implies. A later use that implies another type is
evidence: emission ends with a :class:`RestartEmission` and starts again, as if the assignment had been annotated with
that type. Programs without such variables are emitted once, at no cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn, TypeVar

from rekindle.errors import Diagnostics
from rekindle.frontend.type_expressions import dotted_name
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.redefinition import widen_result
from rekindle.ir.types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    STRING,
    TENSOR,
    DictType,
    ListType,
    TupleType,
    Type,
    join_contents,
    number_members,
    optional,
    unify,
    unify_all,
    unshaped,
)
from rekindle.syntax.keyword_dicts import literal_of_dict
from rekindle.syntax.tree import Tree
from rekindle.syntax.views import (
    Apply,
    BinOp,
    Const,
    DictComp,
    DictLiteral,
    Expr,
    ListComp,
    ListLiteral,
    NoneLiteral,
    Select,
    Stmt,
    StringLiteral,
    TernaryIf,
    TupleLiteral,
    UnaryOp,
    Var,
)

T = TypeVar("T")

LIST: Final = "list"
DICT: Final = "dict"
SET: Final = "set"
TUPLE: Final = "tuple"
NOTHING: Final = "None"
NUMBERS: Final = "numbers"  # a list or dict with elements, which may be numbers or hold them
ATTRIBUTE: Final = "attribute"  # the list or dict in an attribute: ``xs = self.history``
RESULT: Final = "result"  # the list or dict that a function returns, which does not declare it
"""Kind of origin of the function's result."""


class RestartEmission(BaseException):
    """Raised if the type of a variable is not the assumed one. This is not an error: :func:`with_inference` restarts
    the emission."""


@dataclass(slots=True)
class FirstAssignment:
    """The first assignment of a variable, and the assigned expression."""

    statement: Tree
    kind: str
    is_optional: bool = False
    """Whether the statement may assign None instead: ``xs = [] if wanted else None``."""
    holds_empty: bool = False
    """Whether the value is a list or dict of empty lists: ``{"loss": []}``."""
    attribute: Expr | None = None
    """The attribute of which the variable is an alias, ``self.history``."""
    function: GraphFunction | None = None
    """The function whose result the variable is."""
    maker: tuple[str, Type] | None = None
    """For a Counter or a defaultdict of numbers, its name in Python, and the type of its default values."""
    others: tuple[FirstAssignment, ...] = ()
    """First assignments of the same variable in other branches, for which evidence from its uses is recorded, too."""

    def joined(self, other: FirstAssignment) -> FirstAssignment:
        """Return the first assignment of a variable that begins with this one in one branch, and with ``other`` in
        another."""
        known = {id(origin) for origin in self.all}
        return replace(self, others=(*self.others, *(origin for origin in other.all if id(origin) not in known)))

    @property
    def all(self) -> tuple[FirstAssignment, ...]:
        return (self, *self.others)


@dataclass(slots=True)
class TypeEvidence:
    """The types that uses show for variables, by the statement that assigns the variable first: for a list the
    ``element``, for a dict the ``key`` and the ``value``, for others the ``value``."""

    shown: dict[tuple[int, str], Type] = field(default_factory=dict)
    provisional: set[tuple[int, str]] = field(default_factory=set)
    """Keys of ``shown`` with the types of empty lists or dicts (``d[k] = []``), which other uses replace."""
    result: Type | None = None
    """Result type of the function, if its returns have no smaller type in common."""
    widened: dict[tuple[int, int], dict[str, Type]] = field(default_factory=dict)
    """The types of loop-carried variables to which the body assigns a wider type than they have before the loop, by the
    source location of the loop and by variable."""

    observed: set[tuple[int, str]] = field(default_factory=set)
    """Pairs of a ``try`` statement, by id, and a variable that is read after it, and that its body may have left
    unassigned when it raised."""
    carried: dict[tuple[int, str], Type] = field(default_factory=dict)
    """For loops, the variables that an iteration reads before it assigns them: the types assigned by earlier
    iterations."""

    rewritten: dict[int, tuple[Tree, Stmt]] = field(default_factory=dict)
    """Statements that are rewritten before they are emitted, by the id of their trees, each with the result. A
    restarted emission uses the same result, for which evidence was recorded by id."""

    def rewrite(self, statement: Stmt, rewrite: Callable[[], Stmt]) -> Stmt:
        """Return the result of ``rewrite`` on the statement, cached."""
        key = id(statement.tree)
        if key not in self.rewritten:
            self.rewritten[key] = (statement.tree, rewrite())
        return self.rewritten[key][1]

    def watch(self, name: str, tries: Iterable[int]) -> None:
        """Record that a variable is read that the bodies of the ``try`` statements ``tries``, given by id, may have
        left unassigned.

        Raises:
            RestartEmission: this was not recorded before.
        """
        wanted = {(statement, name) for statement in tries}
        if not wanted <= self.observed:
            self.observed |= wanted
            raise RestartEmission

    def learn_carried(self, loop: Tree, name: str, type: Type) -> NoReturn:
        """Record that an iteration reads a value of ``type``, which an earlier one may have assigned to a variable.

        Raises:
            RestartEmission: always.
        """
        self.carried[id(loop), name] = type
        raise RestartEmission

    def learn_result(self, type: Type) -> NoReturn:
        """Record that the function returns values of ``type``.

        Raises:
            RestartEmission: always.
        """
        self.result = unshaped(type)
        raise RestartEmission

    def learn_widened(self, loop: tuple[int, int], variable: str, type: Type) -> None:
        """Record that a variable has ``type`` at the entry of a loop body. ``loop`` is the source location of the loop.

        Raises:
            RestartEmission: another type, or none, was recorded before.
        """
        known = self.widened.setdefault(loop, {})
        if known.get(variable) != type:
            known[variable] = type
            raise RestartEmission

    def type_of(self, origin: FirstAssignment) -> Type | None:
        """Return the type inferred for the variable with the first assignment ``origin``; None if no use determines
        it."""
        type = self._type_of(origin)
        return optional(type) if type is not None and origin.is_optional else type

    def _type_of(self, origin: FirstAssignment) -> Type | None:
        statement = id(origin.statement)
        if origin.kind in (LIST, TUPLE):
            element = self.shown.get((statement, "element"))
            return None if element is None else ListType(element, "tuple" if origin.kind == TUPLE else "")
        value = self.shown.get((statement, "value"))
        if origin.kind == SET:
            key = self.shown.get((statement, "key"))
            return None if key is None else DictType(key, BOOL, "set")
        if origin.kind == DICT:
            key = self.shown.get((statement, "key"))
            if origin.maker is not None and key is not None:
                name, made = origin.maker
                joined = made if value is None or made == FLOAT else join_contents(made, value)
                return DictType(key, joined or made, name)
            return None if key is None and value is None else DictType(key or STRING, value or TENSOR)
        return value

    def learn_contents(self, origin: FirstAssignment, container: Type, wanted: Type) -> None:
        """Record that a list or dict of the type ``container`` must hold the elements of ``wanted``.

        Raises:
            RestartEmission: its elements need a wider type.
            Redefinition: a function returned the container, and has to be compiled again with a wider result type.
        """
        for each in origin.all:
            if each.function is not None:
                widen_result(each.function, wanted)
        wider = [self._shows_contents(each, container, unshaped(wanted)) for each in origin.all]
        if any(wider):
            raise RestartEmission

    def _shows_contents(self, origin: FirstAssignment, container: Type, wanted: Type) -> bool:
        """Record the wider type of the elements of the container, if they need one; return whether they do."""
        if origin.holds_empty and (id(origin.statement), "value") not in self.shown:
            joined: Type | None = wanted  # the lists were taken for lists of Tensors
        else:
            joined = join_contents(container, wanted) if origin.kind in (NUMBERS, LIST, DICT) else None
        if joined is None or joined == container:
            return False
        part = "element" if origin.kind == LIST else "value"
        key = (id(origin.statement), part)
        if origin.maker is not None:
            if origin.maker[1] == FLOAT:
                return False
        elif origin.kind != NUMBERS and key not in self.shown:
            return False
        shown = joined if origin.kind == NUMBERS else joined.contained[-1]
        if self.shown.get(key) == shown:
            return False  # emission has not heeded it, and would not the next time
        self.shown[key] = shown
        return True

    def record(self, origin: FirstAssignment, **parts: Type) -> None:
        """Record the types that a use of a variable implies, as ``element=``, ``key=`` or ``value=``.

        Raises:
            RestartEmission: the variable needs another type than the one assumed so far.
        """
        other = [self._shows(each, parts) for each in origin.all]
        if any(other):
            raise RestartEmission

    def record_empty(self, origin: FirstAssignment, part: str, type: Type) -> None:
        """Record that a variable holds empty lists or dicts of ``type`` (``part`` is ``element`` or ``value``), whose
        own elements later uses may show.

        Raises:
            RestartEmission: the variable needs another type than the one assumed so far.
        """
        unknown = [each for each in origin.all if (id(each.statement), part) not in self.shown]
        other = [self._shows(each, {part: type}) for each in unknown]
        self.provisional.update((id(each.statement), part) for each in unknown)
        if any(other):
            raise RestartEmission

    def _shows(self, origin: FirstAssignment, parts: Mapping[str, Type]) -> bool:
        """Record the types ``parts`` that a use of the variable implies; return whether its type differs from the one
        assumed so far."""
        before = self.type_of(origin)
        for part, type in parts.items():
            key = (id(origin.statement), part)
            known = self.shown.get(key)
            is_first = known is None or key in self.provisional
            merged = unshaped(type) if known is None or is_first else _merged(known, unshaped(type))
            self.provisional.discard(key)
            if merged is not None:
                self.shown[key] = merged
        now = self.type_of(origin)
        assumed = _ASSUMED.get(origin.kind)
        if assumed is not None and origin.is_optional:
            assumed = optional(assumed)
        return now is not None and now != (before or assumed)


_MAKERS: Final = {
    **{name: name for name in (LIST, DICT, SET)},
    "deque": LIST,
    "defaultdict": DICT,
    "OrderedDict": DICT,
    "Counter": DICT,
}
"""Calls that create empty containers, with the kind of container."""

_ASSUMED: Final[dict[str, Type]] = {
    LIST: ListType(TENSOR),
    DICT: DictType(STRING, TENSOR),
    SET: DictType(INT, BOOL, "set"),
}

_EMPTY: Final = frozenset({(LIST, ListType.kind), (DICT, DictType.kind)})
"""Kinds of assignment of empty literals, with the types that they may have."""


def kind_of_origin(value: Expr) -> str | None:
    """Return the kind of a first assignment whose ``value`` does not determine the type of the variable, such as
    ``[]``; None for other values."""
    kind = value.tree.kind
    if kind == ListLiteral.KIND and not ListLiteral(value.tree).items:
        return LIST
    if kind == TupleLiteral.KIND and not TupleLiteral(value.tree).items:
        return TUPLE
    if kind == DictLiteral.KIND and not DictLiteral(value.tree).keys:
        return DICT
    if kind == NoneLiteral.KIND:
        return NOTHING
    if makes_container(value):
        return NUMBERS
    if kind == Apply.KIND:
        call = Apply(value.tree)
        name = Var(call.callee.tree).name.name if call.callee.tree.kind == Var.KIND else ""
        is_limited = name == "deque" and [item.name.name for item in call.attributes] == ["maxlen"]
        if name in _MAKERS and (is_limited or not call.attributes) and len(call.inputs) == (name == "defaultdict"):
            return _MAKERS[name]
    return None


def makes_other_class(value: Expr) -> bool:
    """Return whether ``value`` creates a deque or a defaultdict, whose type has more than the types of the elements."""
    return value.tree.kind == Apply.KIND and Apply(value.tree).callee_name in ("deque", "defaultdict")


_CONSTANTS: Final = frozenset(f"{module}.{name}" for module in ("math", "torch") for name in ("inf", "nan", "pi", "e"))


def _is_number(value: Expr) -> bool:
    """Return whether ``value`` is a constant number, with or without minus: ``0``, ``-math.inf``, ``float("nan")``."""
    tree = value.tree
    if tree.kind == "unary_minus":
        tree = UnaryOp(tree).operand.tree
    if tree.kind == Apply.KIND:
        call = Apply(tree)
        return call.callee_name == "float" and [item.tree.kind for item in call.inputs] == [StringLiteral.KIND]
    return tree.kind == Const.KIND or (tree.kind == Select.KIND and dotted_name(Expr(tree)) in _CONSTANTS)


def sides_of(choice: TernaryIf) -> tuple[Expr, Expr]:
    """Return the two alternatives of a conditional expression, ``a if c else b``."""
    return choice.true_expr, choice.false_expr


def _as_literal(value: Expr) -> Expr:
    """Return the literal equivalent to ``dict(loss=0.0)``; other expressions unchanged."""
    call = Apply(value.tree) if value.tree.kind == Apply.KIND else None
    is_dict = call is not None and call.callee_name == "dict" and not call.inputs
    return literal_of_dict(call) if call is not None and is_dict else value


def makes_container(value: Expr) -> bool:
    """Return whether ``value`` creates a list or a dict that is not empty: ``[0, n]``, ``[0] * n``, ``{"sum": 0}``."""
    value = _as_literal(value)
    kind = value.tree.kind
    if kind in (ListComp.KIND, DictComp.KIND):
        return True
    if kind == "*":
        return BinOp(value.tree).lhs.tree.kind == ListLiteral.KIND and makes_container(BinOp(value.tree).lhs)
    if kind == TernaryIf.KIND:
        sides = sides_of(TernaryIf(value.tree))
        return any(map(makes_container, sides)) and all(
            makes_container(side) or kind_of_origin(side) in (LIST, DICT) for side in sides
        )
    if kind == ListLiteral.KIND:
        return bool(ListLiteral(value.tree).items)
    return kind == DictLiteral.KIND and bool(DictLiteral(value.tree).values)


def holds_empty(value: Expr) -> bool:
    """Return whether ``value`` creates a list or dict of empty lists only: ``{"a": [], "b": []}``, ``[[] for _ in
    range(n)]``."""
    value = _as_literal(value)
    kind = value.tree.kind
    if kind == ListComp.KIND:
        items: Sequence[Expr] = [ListComp(value.tree).element]
    elif kind == DictComp.KIND:
        items = [DictComp(value.tree).value]
    elif kind == DictLiteral.KIND:
        items = DictLiteral(value.tree).values
    else:
        items = ListLiteral(value.tree).items if kind == ListLiteral.KIND else []
    return bool(items) and all(kind_of_origin(item) == LIST for item in items)


def is_literal_of(value: Expr, type: Type) -> bool:
    """Return whether ``value`` creates a list or dict of literal numbers, possibly nested, that can have ``type``:
    ``[0, 0]`` and ``[0] * n`` as a list of any numbers."""
    value = _as_literal(value)
    kind = value.tree.kind
    if _is_number(value):
        return number_members(type) is not None
    if kind == TernaryIf.KIND:
        return all(is_literal_of(side, type) for side in sides_of(TernaryIf(value.tree)))
    if isinstance(type, TupleType) and kind == TupleLiteral.KIND:
        items = TupleLiteral(value.tree).items
        return len(items) == len(type.elements) and all(map(is_literal_of, items, type.elements))
    if (kind_of_origin(value), type.kind) in _EMPTY:
        return True
    if not isinstance(type, (ListType, DictType)) or not makes_container(value):
        return False
    if isinstance(type, DictType):
        if kind == DictComp.KIND:
            return is_literal_of(DictComp(value.tree).value, type.value)
        values = DictLiteral(value.tree).values if kind == DictLiteral.KIND else []
        return bool(values) and all(is_literal_of(item, type.value) for item in values)
    if kind == ListComp.KIND:
        return is_literal_of(ListComp(value.tree).element, type.element)
    if kind == "*":
        return is_literal_of(BinOp(value.tree).lhs, type)
    items = ListLiteral(value.tree).items if kind == ListLiteral.KIND else []
    return bool(items) and all(is_literal_of(item, type.element) for item in items)


def _maker_of(value: Expr) -> tuple[str, Type] | None:
    """Return the Python class of the dict of numbers that ``value`` creates (``Counter``, ``defaultdict``), and the
    type of the numbers that it adds itself; None if it creates none."""
    call = Apply(value.tree) if value.tree.kind == Apply.KIND else None
    if call is not None and call.callee_name == "Counter":
        return "Counter", INT
    if call is None or call.callee_name != "defaultdict" or [item.tree.kind for item in call.inputs] != [Var.KIND]:
        return None
    (factory,) = call.inputs
    made = {"int": INT, "float": FLOAT}.get(Var(factory.tree).name.name)
    return None if made is None else ("defaultdict", made)


def origin_of_value(statement: Tree, value: Expr) -> FirstAssignment | None:
    """Return the first assignment of a variable by ``statement``, if its ``value`` does not determine the type; else
    None."""
    kind = kind_of_origin(value)
    if value.tree.kind != TernaryIf.KIND or kind is not None:
        return (
            None
            if kind is None
            else FirstAssignment(statement, kind, holds_empty=holds_empty(value), maker=_maker_of(value))
        )
    kinds = [kind_of_origin(side) for side in sides_of(TernaryIf(value.tree))]
    if NOTHING not in kinds:
        return None
    kind = kinds[1 - kinds.index(NOTHING)]
    return FirstAssignment(statement, kind, is_optional=True) if kind in (LIST, DICT, SET, TUPLE) else None


def learn_from_conflict(evidence: TypeEvidence, origin: FirstAssignment, expected: Type, actual: Type) -> None:
    """Record the type that the assignment of an ``actual`` type, in a branch or a loop, to a variable of the
    ``expected`` type implies. ``origin`` is the first assignment of the variable.

    Raises:
        RestartEmission: the variable needs another type than the one assumed so far.
    """
    if origin.kind == TUPLE:
        elements = actual.elements if isinstance(actual, TupleType) else actual.contained
        common = unify_all(map(unshaped, elements))
        if common is not None and (isinstance(actual, TupleType) or (isinstance(actual, ListType) and actual.is_tuple)):
            evidence.record(origin, element=common)
    elif origin.kind in (NUMBERS, RESULT):
        evidence.learn_contents(origin, expected, actual)
    elif origin.kind == LIST and isinstance(actual, ListType):
        evidence.record(origin, element=actual.element)
    elif origin.kind == DICT and isinstance(actual, DictType):
        evidence.record(origin, key=actual.key, value=actual.value)
    elif origin.kind == SET and isinstance(actual, DictType) and actual.is_set:
        evidence.record(origin, key=actual.key)
    elif origin.kind == NOTHING and expected == NONE:
        evidence.record(origin, value=optional(actual))


def _merged(known: Type, shown: Type) -> Type | None:
    """Return the type that joins two types inferred from uses: their common supertype, or, for numbers and for types
    without one, the type that :func:`join_contents` returns; None if there is none."""
    found = unify(known, shown)
    if found is None or (number_members(known) is not None and number_members(shown) is not None):
        return join_contents(known, shown) or found
    return found


def learn_from_branches(
    evidence: TypeEvidence, origins: Sequence[FirstAssignment | None], types: Sequence[Type]
) -> None:
    """Record the type of a variable whose first assignments are in both branches of an ``if``, with different types.

    ``origins`` are these assignments, and ``types`` the types, first of the true branch. An origin is None if its
    assignment determines the type. Another, such as ``x = []``, gets its element type from the other branch.

    Raises:
        RestartEmission: the variable needs another type than the one assumed so far.
    """
    for side, origin in enumerate(origins):
        other = origins[1 - side]
        is_empty = other is not None and other.kind in _ASSUMED and evidence.type_of(other) is None
        if origin is not None and not is_empty:
            learn_from_conflict(evidence, origin, types[side], types[1 - side])


def with_inference(diagnostics: Diagnostics, emit: Callable[[TypeEvidence], T]) -> T:
    """Return the result of ``emit``, which is called again each time a use of a variable implies that its assumed type
    is wrong. Errors that a discarded emission recorded in ``diagnostics`` are removed."""
    evidence = TypeEvidence()
    reported = list(diagnostics.problems)
    while True:
        try:
            return emit(evidence)
        except RestartEmission:
            diagnostics.forget_since(reported)
