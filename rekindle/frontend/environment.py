"""What each name means at a place in the program: a stack of frames, one for each block of control flow.

A variable that holds a value of the graph is not bound to the value itself: assigning emits
``prim::Store[name=x](%v)``, reading emits ``prim::Load[name=x]()``, and the conversion to SSA finds out which store
reaches which load. Sugared values, which have no place in the graph, are kept in a table of their own and cannot be
assigned again.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rekindle.errors import (
    Cause,
    Edit,
    GivenUpError,
    SourceRange,
    TypeMismatchError,
    UndefinedNameError,
    UnsupportedError,
)
from rekindle.frontend.inference import Evidence, Origin, learn_from_conflict
from rekindle.frontend.sugared import GIVEN_UP, Resolver, SugaredValue
from rekindle.frontend.values import SimpleValue
from rekindle.ir.attributes import AttributeValue
from rekindle.ir.graph import Block, Graph, Value
from rekindle.ir.matching import convert_value
from rekindle.ir.types import (
    TENSOR,
    InterfaceType,
    ListType,
    TensorType,
    Type,
    lost_class,
    mismatch_note,
    unify,
    unshaped,
    without_none,
)
from rekindle.syntax.views import Expr, Var

if TYPE_CHECKING:
    from rekindle.frontend.attempts import Attempt


@dataclass(slots=True)
class Frame:
    """The names of one block."""

    block: Block
    parent: Frame | None = None
    sugared: dict[str, SugaredValue] = field(default_factory=dict)
    types: dict[str, Type] = field(default_factory=dict)
    undefined_because: dict[str, str] = field(default_factory=dict)
    """Why a name that was assigned on some paths has no meaning here."""
    origins: dict[str, Origin] = field(default_factory=dict)
    """The variables whose first assignment, here, does not tell what they are to hold."""
    is_lenient: bool = False
    """Whether variables from outside may become anything: what the block is was not understood."""
    known_none: set[str] = field(default_factory=set)
    """Variables that are None here, though their types say more."""
    hidden: dict[str, str] = field(default_factory=dict)
    """Names that are other variables within than outside, and what those are called: the targets of comprehensions."""

    def find(self, name: str) -> Frame | None:
        """The innermost frame that knows ``name``."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.types or name in frame.sugared:
                return frame
            frame = frame.parent
        return None

    def find_type(self, name: str) -> Type | None:
        """The type of the variable ``name``, if it is one that holds a value of the graph."""
        frame = self.find(name)
        return None if frame is None else frame.types.get(name)

    def has_given_up(self, name: str) -> bool:
        """Whether the statement that gave ``name`` its meaning here could not be compiled."""
        frame = self.find(name)
        return frame is not None and frame.sugared.get(name) is GIVEN_UP

    def knows_none(self, name: str) -> bool:
        """Whether the variable ``name`` is known to be None."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.known_none:
                return True
            if name in frame.types or frame.is_loop_body:
                return False  # it has been assigned since, or may be before the body runs again
            frame = frame.parent
        return False

    @property
    def is_loop_body(self) -> bool:
        """Whether the frame is that of a loop's body: what it assigns is there when the body runs again."""
        owner = self.block.owning_node
        same = self.parent is not None and self.parent.block is self.block
        return owner is not None and owner.kind == "prim::Loop" and not same

    def variable(self, name: str) -> str:
        """The variable that ``name`` means here: itself, unless a comprehension has one of its own."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.hidden:
                return frame.hidden[name]
            frame = frame.parent
        return name

    def find_reason(self, name: str) -> str | None:
        frame: Frame | None = self
        while frame is not None:
            if name in frame.undefined_because:
                return frame.undefined_because[name]
            frame = frame.parent
        return None


class Environment:
    """The stack of frames of one function, and the resolver for names that none of them knows."""

    def __init__(
        self,
        graph: Graph,
        resolver: Resolver,
        builtins: Callable[[str], SugaredValue | None],
        evidence: Evidence,
    ) -> None:
        self.graph = graph
        self.evidence = evidence
        self.resolver = resolver
        self.builtins = builtins
        self.frame = Frame(graph.block)
        self.tried: Attempt | None = None
        """The body of the ``try`` that is being compiled, if one is."""
        self.narrowed: dict[str, Type] = {}
        """The types that variables had before a check showed that they are not None."""
        self._hidden_count = 0

    @property
    def block(self) -> Block:
        return self.frame.block

    def push(self, block: Block) -> Frame:
        self.frame = Frame(block, self.frame)
        return self.frame

    def push_hiding(self, names: Iterable[str]) -> Frame:
        """A frame within which ``names`` are variables of their own."""
        frame = self.push(self.block)
        self._hidden_count += 1
        frame.hidden.update((name, f"${self._hidden_count}.{name}") for name in names)
        return frame

    def hidden_variable(self, name: str) -> str:
        """A variable that no name of the program means."""
        self._hidden_count += 1
        return f"${self._hidden_count}.{name}"

    def pop(self) -> Frame:
        """Leave the innermost frame; returns it."""
        frame = self.frame
        assert frame.parent is not None
        self.frame = frame.parent
        return frame

    # ----------------------------------------------------------------------------------------- reading

    def lookup(self, name: str, range: SourceRange) -> SugaredValue:
        """What ``name`` means here.

        Raises:
            UndefinedNameError: nothing.
            GivenUpError: what could not be compiled.
        """
        found = self.find_local(name)
        if found is None:
            found = self.resolver.resolve_value(name, range, self.graph)
        if found is None:
            found = self.builtins(name)
        if found is not None:
            return found
        reason = self.frame.find_reason(name)
        if reason is not None:
            raise UndefinedNameError(f"'{name}' is not defined here: {reason}", range)
        similar = difflib.get_close_matches(name, self._variables(), n=1, cutoff=0.75)
        hint, edit = (f"did you mean '{similar[0]}'?", Edit(range, similar[0])) if similar else (None, None)
        raise UndefinedNameError(f"the name '{name}' is not defined", range, hint=hint, edit=edit)

    def _variables(self) -> list[str]:
        """The names that have been assigned so far."""
        found: list[str] = []
        frame: Frame | None = self.frame
        while frame is not None:
            found += [name for name in (*frame.types, *frame.sugared) if is_meaningful(name)]
            frame = frame.parent
        return found

    def is_builtin(self, name: str, range: SourceRange) -> bool:
        """Whether ``name`` means here what Python itself has under it."""
        return self.find_local(name) is None and self.resolver.resolve_value(name, range, self.graph) is None

    def find_local(self, name: str) -> SugaredValue | None:
        """What an assignment in the program has made of ``name``."""
        return self.find_variable(self.frame.variable(name), name)

    def find_variable(self, variable: str, name: str) -> SugaredValue | None:
        """What the variable, which the program calls ``name``, holds here; None where nothing has assigned it."""
        frame = self.frame.find(variable)
        if frame is None:
            return None
        if variable in frame.types:
            return SimpleValue(self.load(variable, frame.types[variable], name))
        if frame.sugared[variable] is GIVEN_UP:
            raise GivenUpError(f"what '{name}' means could not be compiled")
        return frame.sugared[variable]

    def find_static(self, name: str) -> SugaredValue | None:
        """What an assignment in the program has made of ``name``, where that is no value of the graph."""
        variable = self.frame.variable(name)
        frame = self.frame.find(variable)
        return None if frame is None else frame.sugared.get(variable)

    def lookup_value(self, name: str, range: SourceRange) -> Value:
        return self.lookup(name, range).as_value(range, self.graph)

    def load(self, variable: str, type: Type, name: str) -> Value:
        node = self.graph.create("prim::Load", types=[type], attributes={"name": variable})
        output = self.graph.insert_node(node).output
        if is_meaningful(name):
            output.set_name(name)
        return output

    # --------------------------------------------------------------------------------------- assigning

    def assign(self, name: str, range: SourceRange, value: SugaredValue, annotated: Type | None = None) -> None:
        """Let ``name`` mean ``value`` from here on. ``annotated`` is the type that the assignment declares.

        Raises:
            TypeMismatchError: the variable has another type.
            UnsupportedError: a sugared value would be assigned again.
        """
        if not isinstance(value, SimpleValue) and self._is_interface(name, annotated):
            value = SimpleValue(value.as_value(range, self.graph))  # a module, of which others may take the place
        simple = value.value if isinstance(value, SimpleValue) else None
        if (
            simple is not None
            and not simple.has_name
            and is_meaningful(name)
            and simple.node.owning_block is self.block
        ):
            simple.set_name(name)
        name = self.frame.variable(name)
        outer = self.frame.parent.find(name) if self.frame.parent is not None else None
        if outer is not None and not self.frame.has_given_up(name) and not self._is_lenient(outer):
            simple = self._check_reassignment(name, range, value, simple, annotated, outer)
        if simple is None:
            self.frame.sugared[name] = value
            self.frame.types.pop(name, None)
            return
        if annotated is not None and not simple.type.is_subtype_of(annotated):
            raise TypeMismatchError(
                f"'{name}' is annotated as {annotated.annotation}, but the value is {simple.type.annotation}"
                + mismatch_note(simple.type, annotated),
                range,
            )
        type = simple.type if annotated is None else annotated
        _check_class(name, simple.type, type, range)
        self.store(name, range, simple, type)
        if self.tried is not None:
            self.tried.note(self.graph, name, simple, type, range)

    def _is_interface(self, name: str, annotated: Type | None) -> bool:
        """Whether the variable is declared as an interface, here or where it was assigned before."""
        type = annotated or self.frame.find_type(self.frame.variable(name))
        return type is not None and isinstance(without_none(type), InterfaceType)

    def _check_reassignment(
        self,
        name: str,
        range: SourceRange,
        value: SugaredValue,
        simple: Value | None,
        annotated: Type | None,
        outer: Frame,
    ) -> Value:
        """An assignment within a branch or a loop to a variable from outside: the type must stay, or the two must have
        one in common."""
        expected = outer.types.get(name)
        spelled = name.rpartition(".")[2]  # of a hidden variable, what the program calls it
        if simple is None or expected is None:
            what = value.description if simple is None else outer.sugared[name].description
            raise UnsupportedError(
                f"'{spelled}' cannot be assigned again within a branch or a loop: {what} exists only while compiling",
                range,
            )
        if annotated is not None and annotated != expected:
            raise UnsupportedError(
                f"'{spelled}' is declared outside of this block and cannot be annotated again", range
            )
        expected = unshaped(expected)
        if isinstance(simple.type, TensorType) and expected.kind in ("IntType", "FloatType"):
            began = self.find_origin(name)
            if began is not None:
                learn_from_conflict(self.evidence, began, expected, simple.type)
        simple = convert_value(self.graph, simple, expected, range)
        _check_class(spelled, simple.type, expected, range)
        if not simple.type.is_subtype_of(expected) and not (annotated is None and self._may_widen(name, simple.type)):
            origin = self.find_origin(name)
            if origin is not None:
                learn_from_conflict(self.evidence, origin, expected, simple.type)
            raise TypeMismatchError(
                f"variable '{spelled}' is {expected.annotation}, "
                f"but is assigned a value of type {simple.type.annotation} here{mismatch_note(simple.type, expected)}",
                range,
                hint=_reassignment_hint(spelled, expected, simple.type),
                cause=Cause.DEFAULT_TYPE_ASSUMED if _is_assumed_list(expected, simple.type) else None,
            )
        return simple

    def find_origin(self, variable: str) -> Origin | None:
        """How the variable was first assigned, where that does not tell what it is to hold."""
        frame: Frame | None = self.frame
        found: Origin | None = None
        while frame is not None:
            found = frame.origins.get(variable, found)  # the outermost
            frame = frame.parent
        return found

    def origin_of(self, expr: Expr) -> Origin | None:
        """How the variable was first assigned that ``expr`` names, if it names one, and if that does not tell all."""
        if expr.tree.kind != Var.KIND:
            return None
        return self.find_origin(self.frame.variable(Var(expr.tree).name.name))

    def _is_lenient(self, outer: Frame) -> bool:
        """Whether a block that was not understood stands around this place, within ``outer``."""
        frame: Frame | None = self.frame
        while frame is not None and frame is not outer:
            if frame.is_lenient:
                return True
            frame = frame.parent
        return False

    def _may_widen(self, name: str, type: Type) -> bool:
        """Whether a variable that had a narrower type so far may get a value of ``type`` in a branch: behind the branch
        it has the type that both have in common.

        Around a loop nothing may change, because the loop has been entered with what was known there: within
        ``while x is not None`` x may become None again where it is Optional outside.
        """
        frame = self.frame
        near: Type | None = None
        while frame.parent is not None:
            inner, frame = frame, frame.parent
            known = frame.types.get(name)
            if inner.is_loop_body:
                limit = frame.find_type(name)
                if limit is not None and not type.is_subtype_of(limit):
                    return False
                if near is None:
                    return False
            near = near or known
        return near is not None and unify(near, type) is not None

    def store(self, name: str, range: SourceRange, value: Value, type: Type) -> None:
        name = self.frame.variable(name)
        self._insert_store(name, range, value)
        self.frame.types[name] = type
        self.frame.sugared.pop(name, None)
        self.narrowed.pop(name, None)
        self.frame.known_none.discard(name)

    def _insert_store(self, variable: str, range: SourceRange, value: Value) -> None:
        attributes: dict[str, AttributeValue] = {"name": variable}
        self.graph.insert_node(self.graph.create("prim::Store", [value], outputs=0, attributes=attributes, range=range))

    def is_known_none(self, variable: str) -> bool:
        return self.frame.knows_none(variable)

    def narrow(self, variable: str, range: SourceRange, value: Value) -> None:
        """From here on the variable is known to hold ``value``, which is what it held before and not None."""
        before = self.frame.find_type(variable)
        if before is None:
            return
        if is_meaningful(variable):
            value.set_name(variable)
        self._insert_store(variable, range, value)
        self.frame.types[variable] = value.type
        self.narrowed.setdefault(variable, before)

    def forget_checks(self, names: Iterable[str], range: SourceRange) -> None:
        """The variables may be None again, as they were before checks: a loop may assign None to them."""
        for name in sorted(names):
            variable = self.frame.variable(name)
            before = self.narrowed.pop(variable, None)
            known = self.frame.find_type(variable)
            if before is None or known is None or known == before:
                continue
            value = self.load(variable, known, name)
            cast = self.graph.create("prim::unchecked_cast", [value], types=[before], range=range)
            self._insert_store(variable, range, self.graph.insert_node(cast).output)
            self.frame.types[variable] = before

    def assign_value(self, name: str, range: SourceRange, value: Value) -> None:
        self.assign(name, range, SimpleValue(value))

    def give_up(self, name: str) -> None:
        """``name`` was to be given a meaning by what could not be compiled."""
        name = self.frame.variable(name)
        self.frame.types.pop(name, None)
        self.frame.sugared[name] = GIVEN_UP

    def define_static(self, name: str, value: SugaredValue) -> None:
        """Let ``name`` mean ``value`` in this block, whatever it means around it."""
        name = self.frame.variable(name)
        self.frame.types.pop(name, None)
        self.frame.sugared[name] = value

    def forget(self, name: str) -> None:
        """``del name``"""
        name = self.frame.variable(name)
        self.frame.types.pop(name, None)
        self.frame.sugared.pop(name, None)
        self.frame.undefined_because[name] = "it was deleted"


def _check_class(name: str, actual: Type, wanted: Type, range: SourceRange) -> None:
    lost = lost_class(actual, wanted)
    if lost is not None:
        raise TypeMismatchError(
            f"variable '{name}' is {wanted.annotation}, and {lost}", range, hint="give it another name"
        )


def _reassignment_hint(name: str, expected: Type, actual: Type) -> str | None:
    if _is_assumed_list(expected, actual):
        return (
            "an empty list without an annotation is a List[Tensor]; "
            f"write {name}: {actual.annotation} = [] where it is made"
        )
    if actual.is_optional or expected.kind == "NoneType":
        return f"declare the variable as Optional where it is first assigned: {name}: Optional[…] = …"
    return None


def _is_assumed_list(expected: Type, actual: Type) -> bool:
    """Whether a list was probably made empty, without an annotation, to hold something else."""
    return isinstance(expected, ListType) and expected.element == TENSOR and isinstance(actual, ListType)


def is_meaningful(name: str) -> bool:
    """Whether a value may be named so: not a temporary of the compiler, not ``_`` or ``_1``, which mean nothing to a
    reader."""
    if not name or name[0] == "$":
        return False
    if name == "_":
        return False
    return name[0] != "_" or not name[1:].isdigit()
