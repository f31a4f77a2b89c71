"""Loops, and the expressions that are loops: comprehensions, ``list(iterable)``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final

from rekindle.errors import SourceRange, TypeMismatchError, UnsupportedError
from rekindle.frontend.builtin_calls import insert_builtin_call
from rekindle.frontend.changing_loops import (
    dict_behind,
    error_of,
    library_of_keys,
    may_change_length,
    may_delete,
    read_live,
)
from rekindle.frontend.emission import LoopKind
from rekindle.frontend.environment import Frame
from rekindle.frontend.generators import as_generator, flattened, loop_over_generator, names_read_late
from rekindle.frontend.kept_generators import KeptGenerator
from rekindle.frontend.recovery import assigned_names, names_in, target_names, walk_scope
from rekindle.frontend.subscripts import SubscriptEmitter
from rekindle.frontend.sugared import GIVEN_UP, Call, SugaredValue
from rekindle.frontend.values import BuiltinFunction, SimpleValue
from rekindle.ir.graph import Node, Value
from rekindle.ir.matching import unpack_tuple
from rekindle.ir.types import (
    ANY,
    BOOL,
    INT,
    STRING,
    TENSOR,
    DictType,
    ListType,
    StringType,
    TupleType,
    Type,
    UnionBase,
    is_python_key,
    unify,
    unshaped,
    without_none,
)
from rekindle.syntax.views import (
    Break,
    Comprehension,
    DictComp,
    Expr,
    For,
    GeneratorExpr,
    If,
    ListComp,
    Stmt,
    Var,
    Walrus,
    While,
    bare,
)

_COMPREHENSIONS_ARE_INLINED: Final = sys.version_info >= (3, 12)
"""Whether Python runs comprehensions where they stand, and generators alone as functions."""

FOREVER = 2**63 - 1
"""The trip count of a loop that only its condition ends."""


class LoopEmitter(SubscriptEmitter):
    """Emits loops.

    A loop is ``prim::Loop(%max_trip_count)`` with two blocks until the conversion to SSA: the body, whose input
    counts the trips, and
    the condition.
    """

    def assign_targets(self, targets: Sequence[Expr], values: Sequence[SugaredValue], range: SourceRange) -> None:
        """Assign one value to each target; a target may be a tuple of targets, an attribute, a subscript."""
        raise NotImplementedError

    def give_up_condition(self, condition: Expr) -> None:
        """What a condition that could not be compiled says of variables is not known: those that it can have narrowed
        are given up, and those that it was to assign."""
        for name in assigned_names([condition]):
            self.environment.give_up(name)
        for name in names_in(condition):
            type = self.environment.frame.find_type(self.environment.frame.variable(name))
            if isinstance(type, UnionBase) or type == ANY:
                self.environment.give_up(name)

    def _forget_checks(self, statement: While | For) -> None:
        """What checks have shown of variables holds in the first turn only, where the loop assigns them."""
        if self.environment.narrowed:
            self.environment.forget_checks(assigned_names([statement]), statement.range)

    def emit_while(self, statement: While) -> None:
        """A condition that assigns does so in the body: ``while True: if not …: break``."""
        self._forget_checks(statement)
        condition = statement.condition
        if any(tree.kind == Walrus.KIND for tree in walk_scope(condition.tree)):
            leaving: list[Stmt] = [bare(Break, condition.range)]
            turn: list[Stmt] = [If.create(statement.range, condition, statement.body, leaving)]
            self._emit_loop(statement, lambda: self.emit_statements(turn))
            return
        self._emit_loop(statement, lambda: self.emit_statements(statement.body), condition=statement.condition)

    def generator_of(self, expr: Expr, functions: Collection[str] = ("filter",)) -> GeneratorExpr | None:
        """The generator expression that ``expr`` is, or that a call of one of the ``functions`` is: ``map``,
        ``filter``."""
        if not self.environment.checks_assignment:
            return None
        if expr.tree.kind == Var.KIND:
            kept = self.environment.find_static(Var(expr.tree).name.name)
            return kept.take(expr.range) if isinstance(kept, KeptGenerator) else None
        return as_generator(expr, functions, self.environment.is_builtin)

    def _generator_apart(self, expr: Expr, names: set[str]) -> GeneratorExpr | None:
        """A generator that a comprehension goes over whose targets are called ``names``; None where it reads other
        variables that are called so."""
        generator = self.generator_of(expr)
        return None if generator is None or names & names_read_late(generator) else generator

    def emit_for(self, statement: For) -> None:
        generator = self.generator_of(statement.iterable, ("filter",))
        if generator is not None:
            self.emit_statements([self.evidence.rewrite(statement, lambda: loop_over_generator(statement, generator))])
            return
        iterator = self.attempt(lambda: self._iterator(statement.iterable), statement.iterable.tree)
        if iterator is None:
            self._loop_over_what_failed(statement)
            return
        if not iterator.must_unroll:
            self._forget_checks(statement)
        if iterator.must_unroll:
            self._unroll(statement.range, statement.target, iterator, lambda: self.emit_statements(statement.body))
            return
        self._emit_loop(
            statement, lambda: self.emit_statements(statement.body), iterator=iterator, target=statement.target
        )

    def _loop_over_what_failed(self, statement: For) -> None:
        """Look for other problems in the body of a loop of which the iterable could not be compiled. Whether it would
        be unrolled is not known, and so nothing of the variables that it assigns."""
        node = self.insert_node("prim::Loop", statement.range, [self.literal(FOREVER, statement.range)], [])
        body = node.add_block()
        node.add_block()
        body.add_input(type=INT)
        names = assigned_names([statement])
        with self.in_loop(LoopKind.LOOP), self.inside(body) as frame:
            frame.is_lenient = True
            for name in target_names(statement.target):
                self.environment.give_up(name)
            self.emit_statements(statement.body)
        for name in names:
            self.environment.give_up(name)

    def _iterator(self, iterable: Expr) -> SugaredValue:
        return self.emit_sugared(iterable).iterator(iterable.range, self.graph)

    def _loop_over(
        self, range: SourceRange, target: Expr, iterator: SugaredValue, body: Callable[[], None], until: str | None
    ) -> None:
        if iterator.must_unroll:
            self._unroll(range, target, iterator, body, until)
        else:
            self._run_loop(range, body, iterator=iterator, target=target, until=until)

    def _unroll(
        self,
        range: SourceRange,
        target: Expr,
        iterator: SugaredValue,
        body: Callable[[], None],
        until: str | None = None,
    ) -> None:
        count = iterator.static_length
        assert count is not None
        problems = len(self.diagnostics.problems)
        with self.in_loop(LoopKind.UNROLLED):
            for index in _indices(count):
                position = self.literal(index, range)
                if until is not None:
                    self._unless(until, range, partial(self._take, range, target, iterator, position, body))
                    continue
                self._take(range, target, iterator, position, body)
                if self.has_exited or len(self.diagnostics.problems) > problems:
                    return

    def _take(
        self, range: SourceRange, target: Expr, iterator: SugaredValue, position: Value, body: Callable[[], None]
    ) -> None:
        self.assign_targets([target], [iterator.item(range, self.graph, position)], target.range)
        body()

    def _unless(self, variable: str, range: SourceRange, body: Callable[[], None]) -> None:
        """Run ``body`` where the variable, a bool, is not set."""
        node = self.insert_node("prim::If", range, [self.environment.load(variable, BOOL, variable)], [])
        node.add_block()
        with self.inside(node.add_block()):
            body()

    def _emit_loop(
        self,
        statement: For | While,
        body: Callable[[], None],
        *,
        iterator: SugaredValue | None = None,
        target: Expr | None = None,
        condition: Expr | None = None,
    ) -> None:
        """A loop that is a statement, so that what it assigns is known after it."""
        with self.environment.in_loop(statement):
            frame = self._run_loop(statement.range, body, iterator=iterator, target=target, condition=condition)
            self._leave_loop(frame, statement)

    def _run_loop(
        self,
        range: SourceRange,
        body: Callable[[], None],
        *,
        iterator: SugaredValue | None = None,
        target: Expr | None = None,
        condition: Expr | None = None,
        until: str | None = None,
    ) -> Frame:
        self.environment.widen_carried(range)
        count = self.literal(FOREVER, range) if iterator is None else iterator.length(range, self.graph)
        constant_true = (
            None if condition is not None or until is not None else self.graph.insert_constant(True, range=range)
        )
        node = self.insert_node("prim::Loop", range, [count], [])
        body_block, condition_block = node.add_block(), node.add_block()
        refinements: dict[str, Type] = {}
        if condition is not None:
            with self.inside(condition_block):
                found = self.attempt(lambda: self.emit_condition(condition), condition.tree)
                if found is not None:
                    refinements = found.refinements.if_true
                    condition_block.add_output(found.value)
            if found is None:
                self.give_up_condition(condition)
        elif until is not None:
            with self.inside(condition_block):
                is_set = self.environment.load(until, BOOL, until)
                condition_block.add_output(self.insert("aten::__not__", range, is_set))
        else:
            assert constant_true is not None
            condition_block.add_output(constant_true)
        trip = body_block.add_input(type=INT)
        with self.in_loop(LoopKind.LOOP), self.inside(body_block, refinements, range) as frame:
            frame.loop = (range.start, range.end)
            if iterator is not None and target is not None:
                element = iterator.item(range, self.graph, trip).as_value(range, self.graph)
                self.assign_targets([target], [SimpleValue(element)], target.range)
            body()
        if iterator is not None and self.environment.checks_assignment:
            self._heed_changes(node, iterator, range)
        return frame

    def _heed_changes(self, node: Node, iterator: SugaredValue, range: SourceRange) -> None:
        """Ask for the lengths of what the body of the loop may make longer or shorter."""
        asks_again = False
        for value in iterator.gone_over:
            container = dict_behind(value) or value
            if not isinstance(container.type, (ListType, DictType)):
                continue
            if not may_change_length(node.blocks[0], container, self.environment.is_private):
                continue
            if isinstance(container.type, DictType) or container.type.python.startswith("deque"):
                self._check_length(node, container, range)
                if container is not value:
                    read_live(value, node, range)
            else:
                asks_again = True
        if asks_again:
            self._ask_length_again(node, iterator, range)

    def _check_length(self, node: Node, container: Value, range: SourceRange) -> None:
        """Raise before an iteration that finds the container with another length than the loop began with, or a dict
        with other keys."""
        message, error = error_of(container.type)

        def keys() -> Value:
            return self.insert(f"{library_of_keys(container.type)}::keys", range, container)

        def length() -> Value:
            is_of_python = library_of_keys(container.type) == "python"
            return self.insert("aten::len", range, keys() if is_of_python else container)

        self._check_unchanged(node, length, (message, error), range)
        if message.startswith("dictionary") and may_delete(node.blocks[0], container, self.environment.is_private):
            self._check_unchanged(node, keys, ("dictionary keys changed during iteration", error), range)

    def _check_unchanged(
        self, node: Node, measured: Callable[[], Value], said: tuple[str, str], range: SourceRange
    ) -> None:
        with self.graph.inserting_before(node):
            before = measured()
        with self.inside(node.blocks[1]):
            after = measured()
            of_keys = isinstance(before.type, ListType) and is_python_key(before.type.element)
            differs = self.insert("python::ne" if of_keys else "aten::ne", range, after, before)
            failing = self.insert_node("prim::If", range, [differs], [])
            with self.inside(failing.add_block()):
                inputs = [self.graph.insert_constant(text, range=range) for text in said]
                self.graph.insert_node(self.graph.create("prim::RaiseException", inputs, outputs=0, range=range))
            failing.add_block()

    def _ask_length_again(self, node: Node, iterator: SugaredValue, range: SourceRange) -> None:
        body, condition = node.blocks
        counter = self.environment.hidden_variable("at")
        with self.graph.inserting_before(node):
            self.environment.store(counter, range, self.literal(0, range), INT)
        with self.graph.inserting_before(body.return_node.next):
            passed = self.insert("aten::add", range, body.inputs[0], 1)
            self.environment.store(counter, range, passed, INT)
        with self.inside(condition):
            at = self.environment.load(counter, INT, counter)
            more = self.insert("aten::lt", range, at, iterator.length(range, self.graph))
            before = condition.outputs[0]
            if before.node.kind != "prim::Constant":
                more = self.insert("aten::__and__", range, more, before)
            condition.replace_output(0, more)
        node.replace_input(0, self.literal(FOREVER, range))

    def _leave_loop(self, frame: Frame, statement: For | While) -> None:
        """What the names that the body has assigned mean behind the loop."""
        outer, range = self.environment.frame, statement.range
        for name, value in frame.sugared.items():
            if value is GIVEN_UP and outer.find(name) is not None:
                self.environment.give_up(name)
        self.environment.keep_origins([frame])
        if self.environment.checks_assignment:
            self.environment.leave_loop(frame.block, statement)
            return
        given_up = [name for name, value in frame.sugared.items() if value is GIVEN_UP]
        for name in [*frame.types, *given_up]:
            if self.environment.frame.find(name) is None:
                where = f"the loop of line {range.line}" if range.is_known else "a loop above"
                self.environment.frame.undefined_because[name] = f"{where}, which may not run at all, assigns it"

    # ---------------------------------------------------------------------------------- comprehensions

    def emit_comprehension(self, expr: Expr, hint: Type | None) -> Value:
        if expr.tree.kind == DictComp.KIND:
            return self._dict_comprehension(DictComp(expr.tree), hint)
        # A generator is eaten where it stands, so that the list of what it gives serves as well.
        view = GeneratorExpr if expr.tree.kind == GeneratorExpr.KIND else ListComp
        return self._list_comprehension(view(expr.tree), hint)

    def _list_comprehension(self, expr: ListComp, hint: Type | None) -> Value:
        wanted = None if hint is None else without_none(hint)
        result = self.insert_node("prim::ListConstruct", expr.range, [], [ListType(TENSOR)]).output
        known = isinstance(wanted, ListType)
        if isinstance(wanted, ListType):
            result.set_type(wanted)

        def body() -> None:
            nonlocal known
            element = self.emit_expression(expr.element, wanted.element if isinstance(wanted, ListType) else None)
            if not known:
                result.set_type(ListType(unshaped(element.type)))
                known = True
            self.append_to(expr.range, result, element)

        is_function = not _COMPREHENSIONS_ARE_INLINED or expr.tree.kind == GeneratorExpr.KIND
        self.nest(expr.generators, body, is_function=is_function)
        return result

    def append_to(self, range: SourceRange, result: Value, element: Value) -> None:
        type = result.type
        assert isinstance(type, ListType)
        if not element.type.is_subtype_of(type.element):
            common = unify(type.element, element.type, default_to_union=True)
            if result.uses and common is not None and self.loop is not LoopKind.LOOP:
                _widen_list(result, ListType(common))  # an unrolled loop: the first elements were of a narrower type
            else:
                raise TypeMismatchError(
                    f"the elements must be of one type, got {type.element.annotation} and {element.type.annotation}",
                    range,
                )
        insert_builtin_call(
            range, self.graph, "aten::append", [self.argument(element, range)], [], self.argument(result, range)
        )

    def _dict_comprehension(self, expr: DictComp, hint: Type | None) -> Value:
        wanted = None if hint is None else without_none(hint)
        result = self.insert_node("prim::DictConstruct", expr.range, [], [DictType(STRING, TENSOR)]).output
        known = isinstance(wanted, DictType)
        if isinstance(wanted, DictType):
            result.set_type(wanted)

        def body() -> None:
            nonlocal known
            key, value = self.emit_expression(expr.key), self.emit_expression(expr.value)
            if not known:
                result.set_type(DictType(key.type, unshaped(value.type)))
                known = True
            arguments = [self.argument(item, expr.range) for item in (result, key, value)]
            BuiltinFunction("aten::_set_item").call(Call(expr.range, self.graph, arguments))

        self.nest(expr.generators, body, is_function=not _COMPREHENSIONS_ARE_INLINED)
        return result

    def nest(
        self,
        generators: Sequence[Comprehension],
        body: Callable[[], None],
        *,
        is_function: bool,
        until: str | None = None,
    ) -> None:
        """Loop over all generators, the first outermost, and run ``body`` where all conditions hold.

        The targets are variables of the comprehension, not of the code around it, which sees only what the first
        generator goes over. Where the variable ``until`` is set, the loops end.
        """
        if self.environment.checks_assignment:
            names = {name for item in generators for name in target_names(item.target)}
            generators = flattened(generators, lambda expr: self._generator_apart(expr, names))
        iterator = self._iterator(generators[0].iterable)
        before = self.graph.insert_point.prev
        hidden = self.environment.push_hiding(
            {name for item in generators for name in target_names(item.target)}, is_function=is_function
        )
        try:
            self._generate(generators[0], iterator, generators[1:], body, until)
        finally:
            assert self.environment.pop() is hidden
        node = before.next
        while node is not self.graph.insert_point:
            for block in node.blocks:
                self.environment.leave_comprehension(block)
            node = node.next

    def _generate(
        self,
        first: Comprehension,
        iterator: SugaredValue,
        rest: Sequence[Comprehension],
        body: Callable[[], None],
        until: str | None,
    ) -> None:
        def inner() -> None:
            self._where(first.conditions, further)

        def further() -> None:
            if rest:
                self._generate(rest[0], self._iterator(rest[0].iterable), rest[1:], body, until)
            else:
                body()

        self._loop_over(first.range, first.target, iterator, inner, until)

    def _where(self, conditions: Sequence[Expr], body: Callable[[], None]) -> None:
        if not conditions:
            body()
            return
        condition = self.emit_condition(conditions[0])
        node = self.insert_node("prim::If", conditions[0].range, [condition.value], [])
        with self.inside(node.add_block(), condition.refinements.if_true, conditions[0].range):
            self._where(conditions[1:], body)
        node.add_block()

    # -------------------------------------------------------------------------------- list(…), dict(…)

    def list_of(self, range: SourceRange, source: SugaredValue, hint: Type | None) -> Value:
        """``list(source)``"""
        value = source.value if isinstance(source, SimpleValue) else None
        if value is not None and isinstance(value.type, (ListType, StringType)):
            return insert_builtin_call(range, self.graph, "aten::list", [self.argument(value, range)], [])
        iterator = source.iterator(range, self.graph)
        if iterator.must_unroll:
            items = [item.as_value(range, self.graph) for item in iterator.as_tuple(range, self.graph)]
            element: Type = TENSOR
            for position, item in enumerate(items):
                found = (
                    unshaped(item.type) if position == 0 else unify(element, unshaped(item.type), default_to_union=True)
                )
                assert found is not None
                element = found
            return self.insert_node("prim::ListConstruct", range, items, [ListType(element)]).output
        wanted = None if hint is None else without_none(hint)
        result = self.insert_node("prim::ListConstruct", range, [], [wanted or ListType(TENSOR)]).output

        def append(element: Value) -> None:
            if wanted is None:
                result.set_type(ListType(unshaped(element.type)))
            self.append_to(range, result, element)

        self.each(range, iterator, append)
        return result

    def dict_of(self, range: SourceRange, source: SugaredValue, hint: Type | None) -> Value:
        """``dict(source)``, of pairs"""
        wanted = None if hint is None else without_none(hint)
        result = self.insert_node("prim::DictConstruct", range, [], [wanted or DictType(STRING, TENSOR)]).output

        def put(pair: Value) -> None:
            if not isinstance(pair.type, TupleType) or len(pair.type.elements) != 2:
                raise TypeMismatchError(f"dict takes pairs of key and value, got {pair.type.annotation}", range)
            key, value = unpack_tuple(self.graph, pair, range)
            if wanted is None:
                result.set_type(DictType(key.type, unshaped(value.type)))
            item = [self.argument(part, range) for part in (result, key, value)]
            BuiltinFunction("aten::_set_item").call(Call(range, self.graph, item))

        self.each(range, source.iterator(range, self.graph), put)
        return result

    def each(self, range: SourceRange, iterator: SugaredValue, body: Callable[[Value], None]) -> None:
        """Run ``body`` on each element of ``iterator``."""
        if iterator.must_unroll:
            for item in iterator.as_tuple(range, self.graph):
                body(item.as_value(range, self.graph))
            return
        count = iterator.length(range, self.graph)
        always = self.graph.insert_constant(True, range=range)
        node = self.insert_node("prim::Loop", range, [count], [])
        block, condition = node.add_block(), node.add_block()
        condition.add_output(always)
        trip = block.add_input(type=INT)
        with self.in_loop(LoopKind.LOOP), self.inside(block):
            body(iterator.item(range, self.graph, trip).as_value(range, self.graph))

    def check_jump(self, word: str, range: SourceRange) -> None:
        """Refuse ``break`` and ``continue`` where they have no loop, or one that is unrolled."""
        if self.loop is LoopKind.NONE:
            raise UnsupportedError(f"'{word}' stands outside of a loop", range)
        if self.loop is LoopKind.UNROLLED:
            raise UnsupportedError(
                f"'{word}' cannot stand in a loop over modules or a tuple: such a loop is unrolled",
                range,
                hint="put the rest of the body under an if",
            )


_indices = range


def _widen_list(result: Value, type: Type) -> None:
    """Let a list that was made here, and what ``append`` returned of it, have a wider type."""
    result.set_type(type)
    for use in result.uses:
        if use.user.kind == "aten::append":
            use.user.output.set_type(type)
