"""Environment: the bindings of names at a place in the program, as a stack of frames, one for each block of control
flow.

A variable that holds a value of the graph is not bound to that value: an assignment emits ``prim::Store[name=x](%v)``,
a read emits ``prim::Load[name=x]()``, and the conversion to SSA determines which store reaches which load. Sugared
values, which the graph cannot contain, are kept in a table of their own and cannot be assigned again in a branch or a
loop.
"""

from __future__ import annotations

import builtins
import difflib
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from rekindle.errors import (
    CascadingError,
    Cause,
    Edit,
    MissingName,
    SourceRange,
    TypeMismatchError,
    UndefinedNameError,
    UnsupportedError,
)
from rekindle.frontend.inference.type_inference import FirstAssignment, TypeEvidence, learn_from_conflict
from rekindle.frontend.python.result_types import with_none
from rekindle.frontend.scopes.frames import EnvironmentFrame, LoopScope
from rekindle.frontend.ssa.assignedness import FLAG, Partial, join, stored_types, unassigned_text
from rekindle.frontend.ssa.conversion import is_meaningful_name
from rekindle.frontend.statements.cells import TryBody
from rekindle.frontend.statements.error_recovery import assigned_names, deleted_names, tries_that_assign
from rekindle.frontend.sugared_values.base import ERROR_VALUE, Resolver, SugaredValue
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.graph import AttributeValue, Block, Graph, Value
from rekindle.ir.graph_function import called_function
from rekindle.ir.operators.declared_bools import as_declared_bool
from rekindle.ir.operators.schema_matching import convert_value, unpack_tuple
from rekindle.ir.redefinition import widen_result
from rekindle.ir.types import (
    ANY,
    BOOL,
    TENSOR,
    InterfaceType,
    ListType,
    TensorType,
    TupleType,
    Type,
    UnionBase,
    differs_in_python,
    is_open_number,
    join_assigned,
    join_numbers,
    lost_class,
    mismatch_note,
    number_beside_tensor,
    number_members,
    unify,
    union_members,
    unshaped,
    without_none,
)
from rekindle.syntax.views import Expr, Stmt, Var


class Environment:
    """The scopes of one function: a stack of frames, and the resolver of names that no frame binds."""

    def __init__(
        self,
        graph: Graph,
        resolver: Resolver,
        builtins: Callable[[str], SugaredValue | None],
        evidence: TypeEvidence,
    ) -> None:
        self.graph = graph
        self.evidence = evidence
        self.resolver = resolver
        self.builtins = builtins
        self.frame = EnvironmentFrame(graph.block)
        self.tried: TryBody | None = None
        """The body of the ``try`` that is being compiled, if one is."""
        self.narrowed: dict[str, Type] = {}
        """The types before narrowing, of the variables whose type a check for None has narrowed."""
        self.own_names: Callable[[], set[str]] = set
        """Function that returns the names that the compiled function assigns anywhere: they never refer to enclosing
        variables."""
        self.private_names: Callable[[], frozenset[str]] = frozenset
        """Function that returns the variables that have the only reference to their container."""
        self.guarded: set[str] = set()
        """The variables of which a read has a guard, which raises if the variable is unassigned."""
        self.has_flags = False
        """Whether the graph stores flags of variables: after ``del``, and for inlined functions."""
        self.loops: list[LoopScope] = []
        """The loops around this place, outermost first."""
        self._hidden_count = 0

    @property
    def block(self) -> Block:
        return self.frame.block

    def push(self, block: Block) -> EnvironmentFrame:
        self.frame = EnvironmentFrame(block, self.frame)
        return self.frame

    def push_hiding(self, names: Iterable[str], *, is_function: bool) -> EnvironmentFrame:
        """Push a frame in which ``names`` are new variables, and return it. ``is_function`` says whether Python runs
        the block as a function."""
        frame = self.push(self.block)
        frame.is_function = is_function
        self._hidden_count += 1
        frame.prefix = f"${self._hidden_count}."
        frame.hidden.update((name, f"{frame.prefix}{name}") for name in names)
        return frame

    def hidden_variable(self, name: str) -> str:
        """Return a new variable to which no name of the program refers."""
        self._hidden_count += 1
        return f"${self._hidden_count}.{name}"

    def pop(self) -> EnvironmentFrame:
        """Remove the innermost frame and return it."""
        frame = self.frame
        assert frame.parent is not None
        self.frame = frame.parent
        return frame

    # ----------------------------------------------------------------------------------------- reading

    def lookup(self, name: str, range: SourceRange) -> SugaredValue:
        """Return the sugared value of ``name``: of a local variable, or what the resolver or the builtins of
        TorchScript have for it. For a local variable that may be unassigned, a check is emitted.

        Raises:
            UndefinedNameError: nothing has this name, or it is a local variable that no path to this place assigns.
            CascadingError: the value is unknown because of an earlier error, or its type until the rest of a loop is
                compiled.
            RestartEmission: a read after a ``try`` has shown that the emission must begin again.
        """
        found = self.find_local(name)
        if found is None:
            found = self._find_guarded(name, range)
        is_own = found is None and self.is_own(name)
        if found is None and not is_own:
            found = self.resolver.resolve_value(name, range, self.graph) or self.builtins(name)
        if found is not None:
            return found
        reason = self.frame.find_reason(name)
        if reason is not None:
            raise UndefinedNameError(f"'{name}' is not defined here: {reason}", range)
        if is_own:
            self._want_of_later_iteration(name, range)
            error, said = _unassigned(name, range), unassigned_text(name, is_free=False)
            error.missing = MissingName(*said, self.graph.insert_point.owning_block)
            raise error
        similar = difflib.get_close_matches(name, self._variables(), n=1, cutoff=0.75)
        hint, edit = (f"did you mean '{similar[0]}'?", Edit(range, similar[0])) if similar else (None, None)
        if not similar and hasattr(builtins, name):
            hint = "compiled programs do not have this function of Python's: call it in a function marked with @ignore"
        error = UndefinedNameError(f"the name '{name}' is not defined", range, hint=hint, edit=edit)
        said = f"name '{name}' is not defined", "builtins.NameError"
        if hasattr(builtins, name):
            said = f"compiled programs do not have Python's '{name}'", "builtins.NotImplementedError"
        error.missing = MissingName(*said, self.graph.insert_point.owning_block)
        raise error

    def _variables(self) -> list[str]:
        """Return the names that have been assigned so far, except temporaries."""
        found: list[str] = []
        frame: EnvironmentFrame | None = self.frame
        while frame is not None:
            found += [name for name in (*frame.types, *frame.sugared) if is_meaningful_name(name)]
            frame = frame.parent
        return found

    def is_builtin(self, name: str, range: SourceRange) -> bool:
        """Return whether neither a variable nor the resolver has ``name``, so that it refers to Python's builtin, if
        there is one."""
        if self.is_own(name):
            return False
        return self.find_local(name) is None and self.resolver.resolve_value(name, range, self.graph) is None

    # --------------------------------------------------------------------------- what may not be assigned

    def is_private(self, variable: str) -> bool:
        """Return whether ``variable`` has the only reference to its container."""
        return variable in self.private_names()

    def is_own(self, name: str) -> bool:
        """Return whether ``name`` is a local variable of the function, whatever it refers to outside."""
        return self.graph.follows_python and (self.frame.variable(name) != name or name in self.own_names())

    def may_be_unassigned(self, name: str, variable: str) -> bool:
        """Return whether ``name`` is a local variable that may not have been assigned at this point."""
        if self.frame.find_partial(variable) is not None:
            return True
        return self.graph.follows_python and (variable != name or name in self.own_names())

    def _find_guarded(self, name: str, range: SourceRange) -> SugaredValue | None:
        """Return the value of a variable that may be unassigned at this point, and emit a check that raises if it is.
        Return None for other names."""
        variable = self.frame.variable(name)
        partial = self.frame.find_partial(variable)
        return None if partial is None else SimpleValue(self.guard(name, variable, partial, range))

    def guard(self, name: str, variable: str, partial: Partial, range: SourceRange) -> Value:
        """Emit a check that raises if the variable is unassigned, and return the variable's value. ``name`` is its name
        in the program.

        Raises:
            RestartEmission: the variable may be assigned in the body of a ``try`` that was emitted as if it is not read
                later, or its type in earlier iterations of a loop is new.
        """
        self.evidence.watch(variable, partial.tries)
        self._carry_across_tries(name, variable, partial)
        self.guarded.add(variable)
        graph = self.graph
        flag = graph.create("prim::Load", types=[BOOL], attributes={"name": FLAG + variable}, range=range)
        node = graph.create("prim::If", [graph.insert_node(flag).output], outputs=0, range=range)
        graph.insert_node(node).add_block()
        with graph.inserting_at_end(node.add_block()):
            said = unassigned_text(name, is_free=self._is_free(variable))
            inputs = [graph.insert_constant(text, range=range) for text in said]
            graph.insert_node(graph.create("prim::RaiseException", inputs, outputs=0, range=range))
        value = self.load(variable, partial.type, name)
        number = _joined_number(partial.type)
        if number is not None and number != partial.type:
            value = self.cast(value, number, range)
            self._insert_store(variable, range, value)
        if graph.insert_point.owning_block is self.block:
            self.frame.types[variable] = value.type
        return value

    def _is_free(self, variable: str) -> bool:
        """Return whether the variable is free in the current function, as Python calls it: an enclosing function
        assigns it."""
        frame: EnvironmentFrame | None = self.frame
        while frame is not None and not (frame.prefix is not None and variable.startswith(frame.prefix)):
            if frame.is_function:
                return True
            frame = frame.parent
        return False

    @contextmanager
    def in_loop(self, statement: Stmt) -> Iterator[None]:
        """Return a context manager whose block compiles the body and the condition of the loop ``statement``. There,
        earlier iterations may have assigned or deleted names."""
        if not self.graph.follows_python:
            yield
            return
        loop = LoopScope(statement.tree, assigned_names([statement]), self.frame, tries_that_assign(statement))
        for name in loop.names:
            found = self.evidence.carried.get((id(statement.tree), name))
            if found is not None and self.frame.find_type(self.frame.variable(name)) is None:
                self.make_partial(name, Partial(found, loop.tries.get(name, frozenset())))
        for name in deleted_names(statement):
            type = self.frame.find_type(self.frame.variable(name))
            if type is not None:
                self.make_partial(name, Partial(type))
        self.loops.append(loop)
        try:
            yield
        finally:
            self.loops.pop()

    def leave_loop(self, body: Block, statement: Stmt) -> None:
        """Mark the variables that the body of a loop assigns as possibly assigned after the loop.

        Raises:
            RestartEmission: the loop reads a variable that an earlier iteration has assigned, and its type is known
                now.
            UndefinedNameError: the loop reads a variable that is unassigned in every iteration.
        """
        loop = self.loops[-1]
        outer = self.frame
        stored = stored_types(body)
        for name, range in loop.wanted.items():
            variable = outer.variable(name)
            if variable in stored:
                self._carry(loop, name, stored[variable])
            raise _unassigned(name, range)
        for name in loop.names:
            variable = outer.variable(name)
            if variable not in stored or outer.find(variable) is not None:
                continue
            before = outer.find_partial(variable)
            after = Partial(stored[variable], loop.tries.get(name, frozenset()))
            after = after if before is None else after.joined(before)
            if before is not None and not after.type.is_subtype_of(before.type) and variable in self.guarded:
                self._carry(loop, name, after.type)
            outer.set_partial(variable, after)

    def leave_comprehension(self, body: Block) -> None:
        """Mark the variables that assignment expressions in the body of a comprehension assign as possibly assigned."""
        if not self.graph.follows_python:
            return
        for variable, type in stored_types(body).items():
            if self.frame.variable(variable.rpartition(".")[2]) == variable and self.frame.find(variable) is None:
                before = self.frame.find_partial(variable)
                self.frame.set_partial(variable, Partial(type) if before is None else Partial(type).joined(before))

    def _carry(self, loop: LoopScope, name: str, type: Type) -> None:
        key = (id(loop.tree), name)
        before = self.evidence.carried.get(key)
        type = unshaped(type) if before is None else join(before, unshaped(type))
        if type != before and len(str(type)) < _LONGEST_TYPE:
            self.evidence.learn_carried(loop.tree, name, type)

    def _carry_across_tries(self, name: str, variable: str, partial: Partial) -> None:
        """Record the type of a variable for earlier iterations if it is read after a ``try`` in a loop: if the body of
        the ``try`` raised before it assigned the variable, that still has the value of an earlier iteration.

        Raises:
            RestartEmission: the type is new.
        """
        for loop in self.loops:
            is_within = not loop.tries.get(name, frozenset()).isdisjoint(partial.tries)
            if is_within and loop.frame.variable(name) == variable and loop.frame.find_partial(variable) is None:
                self._carry(loop, name, partial.type)

    def keep_nonlocals(self, frame: EnvironmentFrame) -> None:
        """Give enclosing variables the types that an inlined function, which has run in ``frame``, has assigned to
        them."""
        for name, type in frame.types.items():
            if frame.prefix is not None and not name.startswith(frame.prefix) and self.frame.find(name) is None:
                self.frame.types[name] = type

    def set_flag(self, variable: str, assigned: Value, range: SourceRange) -> None:
        """Emit a store of ``assigned``, whether the variable has been assigned, to the variable's flag."""
        self._insert_store(FLAG + variable, range, assigned)
        self.has_flags = True

    def begin_function(self, names: Iterable[str], range: SourceRange) -> None:
        """Begin the body of an inlined function: emit stores that mark its variables ``names`` as unassigned. In a
        program from an archive nothing is emitted."""
        if not self.graph.follows_python:
            return
        false = self.graph.insert_constant(False, range=range)
        for name in sorted(names):
            self._insert_store(FLAG + self.frame.variable(name), range, false)
            self.has_flags = True

    def _want_of_later_iteration(self, name: str, range: SourceRange) -> None:
        """Record the read of a variable that is unassigned here, if an enclosing loop assigns it later.

        Raises:
            CascadingError: such a loop exists. The type of the variable is not known yet.
        """
        variable = self.frame.variable(name)
        for loop in self.loops:
            if name in loop.names and loop.frame.variable(name) == variable:
                loop.wanted.setdefault(name, range)
                raise CascadingError(f"what '{name}' holds is determined further on in the loop")

    def make_partial(self, name: str, partial: Partial) -> None:
        self.frame.set_partial(self.frame.variable(name), partial)

    def find_local(self, name: str) -> SugaredValue | None:
        """Return the sugared value of the local variable ``name``, for a value of the graph a load that is emitted;
        None if there is none, or it may be unassigned.

        Raises:
            CascadingError: the variable is unknown because of an earlier error.
        """
        return self.find_variable(self.frame.variable(name), name)

    def find_variable(self, variable: str, name: str) -> SugaredValue | None:
        """Return the sugared value of the variable, which the program calls ``name``, for a value of the graph a load
        that is emitted; None if the variable is or may be unassigned.

        Raises:
            CascadingError: the variable is unknown because of an earlier error.
        """
        frame = self.frame.find(variable)
        if frame is None:
            return None
        if variable in frame.types:
            return SimpleValue(self.load(variable, frame.types[variable], name))
        if frame.sugared[variable] is ERROR_VALUE:
            raise CascadingError(f"what '{name}' means could not be compiled")
        return frame.sugared[variable]

    def find_static(self, name: str) -> SugaredValue | None:
        """Return the sugared value of the local variable ``name`` if it is not a value of the graph; else None."""
        variable = self.frame.variable(name)
        frame = self.frame.find(variable)
        return None if frame is None else frame.sugared.get(variable)

    def lookup_value(self, name: str, range: SourceRange) -> Value:
        return self.lookup(name, range).as_value(range, self.graph)

    def load(self, variable: str, type: Type, name: str) -> Value:
        node = self.graph.create("prim::Load", types=[type], attributes={"name": variable})
        output = self.graph.insert_node(node).output
        if is_meaningful_name(name):
            output.set_name(name)
        return output

    # --------------------------------------------------------------------------------------- assigning

    def assign(self, name: str, range: SourceRange, value: SugaredValue, annotated: Type | None = None) -> None:
        """Bind ``name`` to ``value`` from here on. ``annotated`` is the type that the assignment declares.

        Raises:
            TypeMismatchError: the value has another type than the variable, or than the assignment declares.
            UnsupportedError: within a branch or a loop, a sugared value would be assigned again, or a variable from
                outside annotated again.
            RestartEmission: an enclosing loop must carry the variable with a wider type, or its first assignment gets
                another type.
        """
        if not isinstance(value, SimpleValue) and self._is_interface(name, annotated):
            value = SimpleValue(value.as_value(range, self.graph))  # a module, of which others may take the place
        simple = value.value if isinstance(value, SimpleValue) else None
        is_tensor = isinstance(annotated or self.frame.find_type(self.frame.variable(name)), TensorType)
        if simple is not None and not is_tensor:
            simple = with_none(simple, range)
        if (
            simple is not None
            and not simple.has_name
            and is_meaningful_name(name)
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
        if annotated is not None:
            self.frame.annotated[name] = annotated
            self.frame.origins.pop(name, None)
            if number_members(annotated) is not None or number_beside_tensor(simple.type) is not None:
                simple = as_declared_bool(self.graph, simple, annotated, range)
                simple = convert_value(self.graph, simple, annotated, range)
        if annotated is not None and not simple.type.is_subtype_of(annotated):
            raise TypeMismatchError(
                f"'{name}' is annotated as {annotated.annotation}, but the value is {simple.type.annotation}"
                + mismatch_note(simple.type, annotated),
                range,
            )
        keeps_class = annotated == ANY and differs_in_python(simple.type) and self.graph.follows_python
        type = simple.type if annotated is None or keeps_class else annotated
        _check_class(name, simple.type, type, range)
        self.store(name, range, simple, type)
        if self.tried is not None:
            self.tried.note(self.graph, name, simple, type, range)

    def _is_interface(self, name: str, annotated: Type | None) -> bool:
        """Return whether the variable is declared as an interface, by this assignment or by an earlier one."""
        type = annotated or self.frame.find_type(self.frame.variable(name))
        return type is not None and isinstance(without_none(type), InterfaceType)

    def _check_reassignment(
        self,
        name: str,
        range: SourceRange,
        value: SugaredValue,
        simple: Value | None,
        annotated: Type | None,
        outer: EnvironmentFrame,
    ) -> Value:
        """Check an assignment within a branch or a loop to a variable from outside: the types must be equal or have a
        common supertype. Return the value to store, converted if the variable needs it.

        Raises:
            TypeMismatchError: the types have no common supertype.
            UnsupportedError: the variable or the value exists only while compiling, or the variable is annotated again.
            RestartEmission: an enclosing loop must carry the variable with a wider type, or its first assignment gets
                another type.
        """
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
        if self.frame.is_annotated(name):
            simple = as_declared_bool(self.graph, simple, expected, range)
        may_change = self._may_change_number(name, annotated) and (_is_value(expected) or _is_value(simple.type))
        number = join_assigned(expected, unshaped(simple.type)) if may_change else None
        if number is not None and (number != expected or simple.type != expected):
            return self._widen_number(name, number, simple, range)
        declared = self.frame.find_declared(name)
        if declared is not None and _is_wide(declared) and simple.type.is_subtype_of(declared):
            if not simple.type.is_subtype_of(expected):
                self._widen_loops(name, simple.type, lambda _: declared)
                _check_class(spelled, simple.type, declared, range)
                simple = self.cast(simple, declared, range)
            return simple
        simple = convert_value(self.graph, simple, expected, range)
        _check_class(spelled, simple.type, expected, range)
        if not simple.type.is_subtype_of(expected) and not (annotated is None and self._may_widen(name, simple.type)):
            origin = self.find_origin(name)
            if origin is not None:
                learn_from_conflict(self.evidence, origin, expected, simple.type)
            function = called_function(simple.node)
            if function is not None:
                widen_result(function, expected)
            raise TypeMismatchError(
                f"variable '{spelled}' is {expected.annotation}, "
                f"but is assigned a value of type {simple.type.annotation} here{mismatch_note(simple.type, expected)}",
                range,
                hint=_reassignment_hint(spelled, expected, simple.type),
                cause=Cause.DEFAULT_TYPE_ASSUMED if _is_assumed_list(expected, simple.type) else None,
            )
        return simple

    def _may_change_number(self, variable: str, annotated: Type | None) -> bool:
        """Return whether the variable may get a number of another type than it has, as in Python: no annotation
        declares its type."""
        return self.graph.follows_python and annotated is None and not self.frame.is_annotated(variable)

    def _widen_number(self, variable: str, joined: Type, number: Value, range: SourceRange) -> Value:
        """Return ``number`` with the type ``joined``, for an assignment to a variable from an enclosing block that has
        another number type.

        Where control flow merges, the variable gets the type to which both join. The loops around the assignment carry
        it with the type that joins ``number`` and the type before the loop.

        Raises:
            RestartEmission: the loop was entered with another type.
        """
        type = unshaped(number.type)
        self._widen_loops(variable, number.type, lambda entered: join_assigned(entered, type))
        is_plain = not isinstance(joined, TupleType) and number.type.is_subtype_of(joined)
        return number if is_plain else self.cast(number, joined, range)

    def _widen_loops(self, variable: str, type: Type, join: Callable[[Type], Type | None]) -> None:
        """Ensure that the enclosing loops carry the variable with a type that includes ``type``, that of a value that
        is assigned to it. ``join`` maps the type before a loop to the wider type.

        Raises:
            RestartEmission: a loop was entered with a narrower type. The evidence records the wider one.
        """
        outermost: EnvironmentFrame | None = None
        frame = self.frame
        while frame.parent is not None:
            if frame.is_loop_body and frame.loop is not None:
                entered = frame.parent.find_type(variable)
                if entered is not None and not type.is_subtype_of(entered):
                    outermost = frame
            frame = frame.parent
        if outermost is not None:
            assert outermost.loop is not None
            assert outermost.parent is not None
            entered = outermost.parent.find_type(variable)
            wider = None if entered is None else join(entered)
            if wider is not None and wider != entered:
                self.evidence.learn_widened(outermost.loop, variable, wider)

    def widen_carried(self, loop: SourceRange) -> None:
        """Cast the variables that the loop carries to the wider types that the evidence records for it."""
        for variable, type in self.evidence.widened.get((loop.start, loop.end), {}).items():
            known = self.frame.find_type(variable)
            if known is not None and known != type:
                self.store(variable, loop, self.cast(self.load(variable, known, variable), type, loop), type)

    def cast(self, value: Value, type: Type, range: SourceRange) -> Value:
        """Emit an unchecked cast of ``value`` to ``type``; for tuples, one of each element whose type differs. Return
        the result."""
        if isinstance(type, TupleType) and isinstance(value.type, TupleType):
            parts = zip(unpack_tuple(self.graph, value, range), type.elements, strict=True)
            items = [item if unshaped(item.type) == part else self.cast(item, part, range) for item, part in parts]
            return self.graph.insert_node(
                self.graph.create("prim::TupleConstruct", items, types=[type], range=range)
            ).output
        return self.graph.insert_node(
            self.graph.create("prim::unchecked_cast", [value], types=[type], range=range)
        ).output

    def find_origin(self, variable: str) -> FirstAssignment | None:
        """Return the first assignment of the variable, if it does not determine the type; else None."""
        frame: EnvironmentFrame | None = self.frame
        found: FirstAssignment | None = None
        while frame is not None:
            found = frame.origins.get(variable, found)  # the outermost
            frame = frame.parent
        return found

    def origin_of(self, expr: Expr) -> FirstAssignment | None:
        """Return the first assignment of the variable that ``expr`` consists of. Return None if ``expr`` is not a
        variable, or if the assignment determines its type."""
        if expr.tree.kind != Var.KIND:
            return None
        return self.find_origin(self.frame.variable(Var(expr.tree).name.name))

    def keep_origins(self, frames: Sequence[EnvironmentFrame]) -> None:
        """Add the first assignments of variables in the blocks with these ``frames`` to the current frame: of each
        variable that no frame binds here, and whose type no block's assignment determines."""
        for name in {name for frame in frames for name in frame.origins}:
            if self.frame.find(name) is not None:
                continue
            known = self.find_origin(name)
            for frame in frames:
                origin = frame.origins.get(name)
                if origin is not None:
                    known = origin if known is None else known.joined(origin)
            if known is not None and all(name in frame.origins or name not in frame.types for frame in frames):
                self.frame.origins[name] = known

    def _is_lenient(self, outer: EnvironmentFrame) -> bool:
        """Return whether a block between this point and ``outer`` allows variables to change their type, as a block
        does that could not be compiled."""
        frame: EnvironmentFrame | None = self.frame
        while frame is not None and frame is not outer:
            if frame.allows_any_type:
                return True
            frame = frame.parent
        return False

    def _may_widen(self, name: str, type: Type) -> bool:
        """Return whether an assignment of a value of ``type`` within a branch may widen a variable of a narrower type:
        after the branch the variable has the common supertype.

        A loop's variables may not become wider than they were before the loop: within ``while x is not None`` x may
        become None again if it is Optional outside.
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
        self.frame.partial.pop(name, None)
        self.narrowed.pop(name, None)
        self.frame.known_none.discard(name)

    def _insert_store(self, variable: str, range: SourceRange, value: Value) -> None:
        attributes: dict[str, AttributeValue] = {"name": variable}
        self.graph.insert_node(self.graph.create("prim::Store", [value], outputs=0, attributes=attributes, range=range))

    def is_known_none(self, variable: str) -> bool:
        return self.frame.knows_none(variable)

    def narrow(self, variable: str, range: SourceRange, value: Value) -> None:
        """Narrow the type of the variable to that of ``value``, its value, which is known not to be None."""
        before = self.frame.find_type(variable)
        if before is None:
            return
        if is_meaningful_name(variable):
            value.set_name(variable)
        self._insert_store(variable, range, value)
        self.frame.types[variable] = value.type
        self.narrowed.setdefault(variable, before)

    def forget_checks(self, names: Iterable[str], range: SourceRange) -> None:
        """Give variables that checks for None have narrowed their types of before, because a loop may assign None to
        them."""
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
        """Mark ``name`` as unknown, because the statement that assigns it could not be compiled: reads raise
        CascadingError."""
        name = self.frame.variable(name)
        self.frame.types.pop(name, None)
        self.frame.sugared[name] = ERROR_VALUE

    def define_static(self, name: str, value: SugaredValue) -> None:
        """Bind ``name`` to ``value`` in this block without any check of what it is bound to outside."""
        name = self.frame.variable(name)
        self.frame.types.pop(name, None)
        self.frame.sugared[name] = value

    def forget(self, name: str, range: SourceRange) -> None:
        """Unbind a variable, for ``del name``. Later reads raise: at run time if the program follows Python and the
        variable holds a value of the graph, otherwise when compiled."""
        name = self.frame.variable(name)
        type = self.frame.find_type(name)
        if self.graph.follows_python and type is not None:
            self._insert_store(FLAG + name, range, self.graph.insert_constant(False, range=range))
            self.has_flags = True
            self.frame.set_partial(name, Partial(type))
            return
        self.frame.types.pop(name, None)
        self.frame.sugared.pop(name, None)
        self.frame.undefined_reason[name] = "it was deleted"


_LONGEST_TYPE: Final = 500
"""Length of a type's text from which evidence no longer widens it, since a loop with ``x = [x]`` would never end."""


def _unassigned(name: str, range: SourceRange) -> UndefinedNameError:
    return UndefinedNameError(
        f"'{name}' is not defined here: no path to this place assigns it, but the function does elsewhere",
        range,
        hint="assign it before; what the name means around the function does not count where the function assigns it",
    )


def _is_value(type: Type) -> bool:
    """Return whether values of ``type`` are numbers, or tuples that contain numbers, whose type an assignment may
    widen."""
    if isinstance(type, TupleType):
        return any(map(_is_value, type.elements))
    return number_members(without_none(type)) is not None or number_beside_tensor(type) is not None


def _is_wide(type: Type) -> bool:
    """Return whether a variable that is declared with ``type`` may hold values of several types in turn: with Any, or a
    Union other than one of numbers."""
    return type == ANY or (isinstance(type, UnionBase) and number_members(type) is None)


def _joined_number(type: Type) -> Type | None:
    """Return the common type of the members of a Union of numbers; None for any other type."""
    if not is_open_number(type):
        return None
    return functools.reduce(lambda one, other: join_numbers(one, other) or one, union_members(type))


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
    """Return whether a list was probably created empty and without an annotation, so that a List[Tensor] was
    assumed."""
    return isinstance(expected, ListType) and expected.element == TENSOR and isinstance(actual, ListType)
