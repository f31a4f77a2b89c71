"""Loops, and the expressions that are loops: comprehensions, ``list(iterable)``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final

from rekindle.errors import SourceRange, TypeMismatchError, UnsupportedError
from rekindle.frontend.calls.builtin_calls import insert_builtin_call
from rekindle.frontend.containers.set_values import is_set
from rekindle.frontend.emitter import Emitter
from rekindle.frontend.expressions.conditions import emit_condition
from rekindle.frontend.expressions.generators import as_generator, flattened, loop_over_generator, names_read_late
from rekindle.frontend.inference.error_diagnosis import try_to_emit
from rekindle.frontend.scopes.frames import EnvironmentFrame, LoopKind
from rekindle.frontend.statements.changing_loops import (
    error_of,
    library_of_keys,
    may_change_length,
    may_delete,
    read_live,
    underlying_dict,
)
from rekindle.frontend.statements.error_recovery import assigned_names, names_in, target_names, walk_scope
from rekindle.frontend.sugared_values.base import ERROR_VALUE, CallSite, SugaredValue
from rekindle.frontend.sugared_values.kept_generators import KeptGenerator
from rekindle.frontend.sugared_values.values import BuiltinFunction, SimpleValue
from rekindle.ir.control_flow import MAX_TRIP_COUNT, LoopView
from rekindle.ir.graph import Node, Value
from rekindle.ir.operators.schema_matching import unpack_tuple
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
from rekindle.syntax.desugaring import hidden
from rekindle.syntax.structured_jumps import NotStructured, jumps_in, without_jumps
from rekindle.syntax.views import (
    Assign,
    Break,
    Comprehension,
    DictComp,
    Expr,
    FalseLiteral,
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
"""Whether Python compiles comprehensions into the function around them, and only generators to functions."""


def give_up_condition(emitter: Emitter, condition: Expr) -> None:
    """Continue after a condition that could not be compiled: mark the variables that it may narrow or assign as
    unknown."""
    for name in assigned_names([condition]):
        emitter.environment.give_up(name)
    for name in names_in(condition):
        type = emitter.environment.frame.find_type(emitter.environment.frame.variable(name))
        if isinstance(type, UnionBase) or type == ANY:
            emitter.environment.give_up(name)


def _forget_checks(emitter: Emitter, statement: While | For) -> None:
    """Undo the narrowing of variables that the loop assigns: it applies to the first iteration only."""
    if emitter.environment.narrowed:
        emitter.environment.forget_checks(assigned_names([statement]), statement.range)


def emit_while(emitter: Emitter, statement: While) -> None:
    """Emit a while loop. A condition that contains an assignment is moved into the body: ``while True:`` with the
    condition in an ``if``, whose ``else`` is a ``break``."""
    _forget_checks(emitter, statement)
    condition = statement.condition
    if any(tree.kind == Walrus.KIND for tree in walk_scope(condition.tree)):
        leaving: list[Stmt] = [bare(Break, condition.range)]
        iteration: list[Stmt] = [If.create(statement.range, condition, statement.body, leaving)]
        _emit_loop(emitter, statement, lambda: emitter.emit_statements(iteration))
        return
    _emit_loop(emitter, statement, lambda: emitter.emit_statements(statement.body), condition=statement.condition)


def generator_of(emitter: Emitter, expr: Expr, functions: Collection[str] = ("filter",)) -> GeneratorExpr | None:
    """Return ``expr`` as a generator expression: it is one, a variable that holds one, or a call of one of the
    ``functions``, such as ``map`` or ``filter``. The generator in a variable is thereby used up. Return None for other
    expressions, and in programs from archives.

    Raises:
        UnsupportedError: ``expr`` is a variable whose generator cannot be used here (:meth:`KeptGenerator.take`).
    """
    if not emitter.graph.follows_python:
        return None
    if expr.tree.kind == Var.KIND:
        kept = emitter.environment.find_static(Var(expr.tree).name.name)
        return kept.take(expr.range) if isinstance(kept, KeptGenerator) else None
    return as_generator(expr, functions, emitter.environment.is_builtin)


def _generator_apart(emitter: Emitter, expr: Expr, names: set[str]) -> GeneratorExpr | None:
    """Return the generator over which a comprehension with targets ``names`` iterates, if the loops of both can be
    nested. Return None if ``expr`` is not a generator, or if it reads variables of these names after they are
    assigned."""
    generator = generator_of(emitter, expr)
    return None if generator is None or names & names_read_late(generator) else generator


def emit_for(emitter: Emitter, statement: For) -> None:
    generator = generator_of(emitter, statement.iterable, ("filter",))
    if generator is not None:
        emitter.emit_statements(
            [emitter.evidence.rewrite(statement, lambda: loop_over_generator(statement, generator))]
        )
        return
    iterator = try_to_emit(emitter, lambda: _iterator(emitter, statement.iterable), statement.iterable.tree)
    if iterator is None:
        _loop_over_what_failed(emitter, statement)
        return
    if not iterator.must_unroll:
        _forget_checks(emitter, statement)
    if iterator.must_unroll:
        _unroll_statement(emitter, statement, iterator)
        return
    _emit_loop(
        emitter, statement, lambda: emitter.emit_statements(statement.body), iterator=iterator, target=statement.target
    )


def _unroll_statement(emitter: Emitter, statement: For, iterator: SugaredValue) -> None:
    """Unroll a loop statement. If the program follows Python, ``break`` and ``continue`` in the body become
    branches."""
    range, body, until = statement.range, statement.body, None
    jumps = jumps_in(body)
    if jumps and emitter.graph.follows_python:
        flag = hidden(range, "left")
        try:
            body = without_jumps(body, flag)
        except NotStructured:
            jumps = set()  # they are reported where they are
        if Break.KIND in jumps:
            emitter.emit_statements([Assign.create(range, [flag], bare(FalseLiteral, range))])
            until = flag.name.name
    _unroll(emitter, range, statement.target, iterator, lambda: emitter.emit_statements(body), until)


def _loop_over_what_failed(emitter: Emitter, statement: For) -> None:
    """Emit the body of a loop whose iterable could not be compiled, to find the other errors in it. The variables that
    it assigns become unknown."""
    node = emitter.insert_node("prim::Loop", statement.range, [emitter.literal(MAX_TRIP_COUNT, statement.range)], [])
    body = node.add_block()
    node.add_block()
    body.add_input(type=INT)
    names = assigned_names([statement])
    with emitter.in_loop(LoopKind.LOOP), emitter.inside(body) as frame:
        frame.allows_any_type = True
        for name in target_names(statement.target):
            emitter.environment.give_up(name)
        emitter.emit_statements(statement.body)
    for name in names:
        emitter.environment.give_up(name)


def _iterator(emitter: Emitter, iterable: Expr) -> SugaredValue:
    found = emitter.emit_sugared(iterable)
    if isinstance(found, SimpleValue) and id(iterable.tree) in emitter.order_free:
        if is_set(found.value):
            emitter.order_free.discard(id(iterable.tree))
            return SimpleValue(emitter.insert("aten::keys", iterable.range, found.value))
    return found.iterator(iterable.range, emitter.graph)


def _loop_over(
    emitter: Emitter,
    range: SourceRange,
    target: Expr,
    iterator: SugaredValue,
    body: Callable[[], None],
    until: str | None,
) -> None:
    if iterator.must_unroll:
        _unroll(emitter, range, target, iterator, body, until)
    else:
        _run_loop(emitter, range, body, iterator=iterator, target=target, until=until)


def _unroll(
    emitter: Emitter,
    range: SourceRange,
    target: Expr,
    iterator: SugaredValue,
    body: Callable[[], None],
    until: str | None = None,
) -> None:
    count = iterator.static_length
    assert count is not None
    problems = len(emitter.diagnostics.problems)
    with emitter.in_loop(LoopKind.UNROLLED):
        for index in _indices(count):
            position = emitter.literal(index, range)
            take = partial(_take, emitter, range, target, iterator, position, body)
            for other in iterator.bounded_by:
                take = partial(_if_longer, emitter, other, position, range, take)
            if until is not None:
                _unless(emitter, until, range, take)
                continue
            take()
            if emitter.has_exited or len(emitter.diagnostics.problems) > problems:
                return


def _take(
    emitter: Emitter,
    range: SourceRange,
    target: Expr,
    iterator: SugaredValue,
    position: Value,
    body: Callable[[], None],
) -> None:
    emitter.language.assign(emitter, [target], [iterator.item(range, emitter.graph, position)], target.range)
    body()


def _if_longer(
    emitter: Emitter, iterable: SugaredValue, position: Value, range: SourceRange, body: Callable[[], None]
) -> None:
    """Emit ``body`` in a branch that runs only if ``iterable`` has an element at ``position``."""
    length = iterable.length(range, emitter.graph)
    node = emitter.insert_node("prim::If", range, [emitter.insert("aten::lt", range, position, length)], [])
    with emitter.inside(node.add_block()):
        body()
    node.add_block()


def _unless(emitter: Emitter, variable: str, range: SourceRange, body: Callable[[], None]) -> None:
    """Emit ``body`` in a branch that runs only if the variable, a bool, is false."""
    node = emitter.insert_node("prim::If", range, [emitter.environment.load(variable, BOOL, variable)], [])
    node.add_block()
    with emitter.inside(node.add_block()):
        body()


def _emit_loop(
    emitter: Emitter,
    statement: For | While,
    body: Callable[[], None],
    *,
    iterator: SugaredValue | None = None,
    target: Expr | None = None,
    condition: Expr | None = None,
) -> None:
    """Emit a loop statement, and merge the variables that it assigns after it."""
    with emitter.environment.in_loop(statement):
        frame = _run_loop(emitter, statement.range, body, iterator=iterator, target=target, condition=condition)
        _leave_loop(emitter, frame, statement)


def _run_loop(
    emitter: Emitter,
    range: SourceRange,
    body: Callable[[], None],
    *,
    iterator: SugaredValue | None = None,
    target: Expr | None = None,
    condition: Expr | None = None,
    until: str | None = None,
) -> EnvironmentFrame:
    emitter.environment.widen_carried(range)
    count = emitter.literal(MAX_TRIP_COUNT, range) if iterator is None else iterator.length(range, emitter.graph)
    constant_true = (
        None if condition is not None or until is not None else emitter.graph.insert_constant(True, range=range)
    )
    node = emitter.insert_node("prim::Loop", range, [count], [])
    body_block, condition_block = node.add_block(), node.add_block()
    refinements: dict[str, Type] = {}
    if condition is not None:
        with emitter.inside(condition_block):
            found = try_to_emit(emitter, lambda: emit_condition(emitter, condition), condition.tree)
            if found is not None:
                refinements = found.refinements.if_true
                condition_block.add_output(found.value)
        if found is None:
            give_up_condition(emitter, condition)
    elif until is not None:
        with emitter.inside(condition_block):
            is_set = emitter.environment.load(until, BOOL, until)
            condition_block.add_output(emitter.insert("aten::__not__", range, is_set))
    else:
        assert constant_true is not None
        condition_block.add_output(constant_true)
    trip = body_block.add_input(type=INT)
    with emitter.in_loop(LoopKind.LOOP), emitter.inside(body_block, refinements, range) as frame:
        frame.loop = (range.start, range.end)
        if iterator is not None and target is not None:
            element = iterator.item(range, emitter.graph, trip).as_value(range, emitter.graph)
            emitter.language.assign(emitter, [target], [SimpleValue(element)], target.range)
        body()
    if iterator is not None and emitter.graph.follows_python:
        _heed_changes(emitter, node, iterator, range)
    return frame


def _heed_changes(emitter: Emitter, node: Node, iterator: SugaredValue, range: SourceRange) -> None:
    """Emit the checks, or repeated reads of the length, that a loop needs if its body may change the containers over
    which it iterates."""
    asks_again = False
    for value in iterator.gone_over:
        container = underlying_dict(value) or value
        if not isinstance(container.type, (ListType, DictType)):
            continue
        if not may_change_length(node.blocks[0], container, emitter.environment.is_private):
            continue
        if isinstance(container.type, DictType) or container.type.python.startswith("deque"):
            _check_length(emitter, node, container, range)
            if container is not value:
                read_live(value, node, range)
        else:
            asks_again = True
    if asks_again:
        _ask_length_again(emitter, node, iterator, range)


def _check_length(emitter: Emitter, node: Node, container: Value, range: SourceRange) -> None:
    """Emit a check before each iteration. It raises if the length of the container has changed since the loop began,
    or the keys of a dict from which the body may delete."""
    message, error = error_of(container.type)

    def keys() -> Value:
        return emitter.insert(f"{library_of_keys(container.type)}::keys", range, container)

    def length() -> Value:
        is_of_python = library_of_keys(container.type) == "python"
        return emitter.insert("aten::len", range, keys() if is_of_python else container)

    _check_unchanged(emitter, node, length, (message, error), range)
    if message.startswith("dictionary") and may_delete(node.blocks[0], container, emitter.environment.is_private):
        _check_unchanged(emitter, node, keys, ("dictionary keys changed during iteration", error), range)


def _check_unchanged(
    emitter: Emitter, node: Node, measured: Callable[[], Value], said: tuple[str, str], range: SourceRange
) -> None:
    with emitter.graph.inserting_before(node):
        before = measured()
    with emitter.inside(node.blocks[1]):
        after = measured()
        of_keys = isinstance(before.type, ListType) and is_python_key(before.type.element)
        differs = emitter.insert("python::ne" if of_keys else "aten::ne", range, after, before)
        failing = emitter.insert_node("prim::If", range, [differs], [])
        with emitter.inside(failing.add_block()):
            inputs = [emitter.graph.insert_constant(text, range=range) for text in said]
            emitter.graph.insert_node(emitter.graph.create("prim::RaiseException", inputs, outputs=0, range=range))
        failing.add_block()


def _ask_length_again(emitter: Emitter, node: Node, iterator: SugaredValue, range: SourceRange) -> None:
    body, condition = node.blocks
    counter = emitter.environment.hidden_variable("at")
    with emitter.graph.inserting_before(node):
        emitter.environment.store(counter, range, emitter.literal(0, range), INT)
    with emitter.graph.inserting_before(body.return_node.next):
        passed = emitter.insert("aten::add", range, LoopView(node).iteration, 1)
        emitter.environment.store(counter, range, passed, INT)
    with emitter.inside(condition):
        at = emitter.environment.load(counter, INT, counter)
        more = emitter.insert("aten::lt", range, at, iterator.length(range, emitter.graph))
        before = condition.outputs[0]
        if before.node.kind != "prim::Constant":
            more = emitter.insert("aten::__and__", range, more, before)
        condition.replace_output(0, more)
    node.replace_input(0, emitter.literal(MAX_TRIP_COUNT, range))


def _leave_loop(emitter: Emitter, frame: EnvironmentFrame, statement: For | While) -> None:
    """Merge the names that the body has assigned, after the loop."""
    outer, range = emitter.environment.frame, statement.range
    for name, value in frame.sugared.items():
        if value is ERROR_VALUE and outer.find(name) is not None:
            emitter.environment.give_up(name)
    emitter.environment.keep_origins([frame])
    if emitter.graph.follows_python:
        emitter.environment.leave_loop(frame.block, statement)
        return
    given_up = [name for name, value in frame.sugared.items() if value is ERROR_VALUE]
    for name in [*frame.types, *given_up]:
        if emitter.environment.frame.find(name) is None:
            where = f"the loop of line {range.line}" if range.is_known else "a loop above"
            emitter.environment.frame.undefined_reason[name] = f"{where}, which may not run at all, assigns it"


# ---------------------------------------------------------------------------------- comprehensions


def emit_comprehension(emitter: Emitter, expr: Expr, hint: Type | None) -> Value:
    if expr.tree.kind == DictComp.KIND:
        return _dict_comprehension(emitter, DictComp(expr.tree), hint)
    # A generator is consumed right here, so that the list of its elements is equivalent.
    view = GeneratorExpr if expr.tree.kind == GeneratorExpr.KIND else ListComp
    return list_comprehension(emitter, view(expr.tree), hint)


def list_comprehension(emitter: Emitter, expr: ListComp, hint: Type | None) -> Value:
    wanted = None if hint is None else without_none(hint)
    result = emitter.insert_node("prim::ListConstruct", expr.range, [], [ListType(TENSOR)]).output
    known = isinstance(wanted, ListType)
    if isinstance(wanted, ListType):
        result.set_type(wanted)

    def body() -> None:
        nonlocal known
        element = emitter.emit_expression(expr.element, wanted.element if isinstance(wanted, ListType) else None)
        if not known:
            result.set_type(ListType(unshaped(element.type)))
            known = True
        append_to(emitter, expr.range, result, element)

    is_function = not _COMPREHENSIONS_ARE_INLINED or expr.tree.kind == GeneratorExpr.KIND
    nest(emitter, expr.generators, body, is_function=is_function)
    return result


def append_to(emitter: Emitter, range: SourceRange, result: Value, element: Value) -> None:
    type = result.type
    assert isinstance(type, ListType)
    if not element.type.is_subtype_of(type.element):
        common = unify(type.element, element.type, default_to_union=True)
        if result.uses and common is not None and emitter.loop is not LoopKind.LOOP:
            _widen_list(result, ListType(common))  # an unrolled loop: the first elements were of a narrower type
        else:
            raise TypeMismatchError(
                f"the elements must be of one type, got {type.element.annotation} and {element.type.annotation}",
                range,
            )
    insert_builtin_call(
        range, emitter.graph, "aten::append", [emitter.argument(element, range)], [], emitter.argument(result, range)
    )


def _dict_comprehension(emitter: Emitter, expr: DictComp, hint: Type | None) -> Value:
    wanted = None if hint is None else without_none(hint)
    result = emitter.insert_node("prim::DictConstruct", expr.range, [], [DictType(STRING, TENSOR)]).output
    known = isinstance(wanted, DictType)
    if isinstance(wanted, DictType):
        result.set_type(wanted)

    def body() -> None:
        nonlocal known
        key, value = emitter.emit_expression(expr.key), emitter.emit_expression(expr.value)
        if not known:
            result.set_type(DictType(key.type, unshaped(value.type)))
            known = True
        arguments = [emitter.argument(item, expr.range) for item in (result, key, value)]
        BuiltinFunction("aten::_set_item").call(CallSite(expr.range, emitter.graph, arguments))

    nest(emitter, expr.generators, body, is_function=not _COMPREHENSIONS_ARE_INLINED)
    return result


def nest(
    emitter: Emitter,
    generators: Sequence[Comprehension],
    body: Callable[[], None],
    *,
    is_function: bool,
    until: str | None = None,
) -> None:
    """Emit nested loops over all generators, the first outermost, with ``body`` where all conditions are true.

    The targets are variables of the comprehension that are unknown outside; only the iterable of the first generator is
    evaluated outside. If the variable ``until`` is given, the loops end once it is true.
    """
    if emitter.graph.follows_python:
        names = {name for item in generators for name in target_names(item.target)}
        generators = flattened(generators, lambda expr: _generator_apart(emitter, expr, names))
    iterator = _iterator(emitter, generators[0].iterable)
    before = emitter.graph.insert_point.prev
    hidden = emitter.environment.push_hiding(
        {name for item in generators for name in target_names(item.target)}, is_function=is_function
    )
    try:
        _generate(emitter, generators[0], iterator, generators[1:], body, until)
    finally:
        assert emitter.environment.pop() is hidden
    node = before.next
    while node is not emitter.graph.insert_point:
        for block in node.blocks:
            emitter.environment.leave_comprehension(block)
        node = node.next


def _generate(
    emitter: Emitter,
    first: Comprehension,
    iterator: SugaredValue,
    rest: Sequence[Comprehension],
    body: Callable[[], None],
    until: str | None,
) -> None:
    def inner() -> None:
        _where(emitter, first.conditions, further)

    def further() -> None:
        if rest:
            _generate(emitter, rest[0], _iterator(emitter, rest[0].iterable), rest[1:], body, until)
        else:
            body()

    _loop_over(emitter, first.range, first.target, iterator, inner, until)


def _where(emitter: Emitter, conditions: Sequence[Expr], body: Callable[[], None]) -> None:
    if not conditions:
        body()
        return
    condition = emit_condition(emitter, conditions[0])
    node = emitter.insert_node("prim::If", conditions[0].range, [condition.value], [])
    with emitter.inside(node.add_block(), condition.refinements.if_true, conditions[0].range):
        _where(emitter, conditions[1:], body)
    node.add_block()


# -------------------------------------------------------------------------------- list(…), dict(…)


def list_of(emitter: Emitter, range: SourceRange, source: SugaredValue, hint: Type | None) -> Value:
    """Emit ``list(source)``, and return it. ``hint`` is the expected type of a list that a loop collects.

    Raises:
        TypeMismatchError: a loop collects elements of another type than those of ``hint``.
    """
    value = source.value if isinstance(source, SimpleValue) else None
    if value is not None and isinstance(value.type, (ListType, StringType)):
        return insert_builtin_call(range, emitter.graph, "aten::list", [emitter.argument(value, range)], [])
    iterator = source.iterator(range, emitter.graph)
    if iterator.must_unroll:
        items = [item.as_value(range, emitter.graph) for item in iterator.as_tuple(range, emitter.graph)]
        element: Type = TENSOR
        for position, item in enumerate(items):
            found = unshaped(item.type) if position == 0 else unify(element, unshaped(item.type), default_to_union=True)
            assert found is not None
            element = found
        return emitter.insert_node("prim::ListConstruct", range, items, [ListType(element)]).output
    wanted = None if hint is None else without_none(hint)
    result = emitter.insert_node("prim::ListConstruct", range, [], [wanted or ListType(TENSOR)]).output

    def append(element: Value) -> None:
        if wanted is None:
            result.set_type(ListType(unshaped(element.type)))
        append_to(emitter, range, result, element)

    each(emitter, range, iterator, append)
    return result


def dict_of(emitter: Emitter, range: SourceRange, source: SugaredValue, hint: Type | None) -> Value:
    """Emit ``dict(source)``, where the elements of ``source`` are pairs of key and value.

    Raises:
        TypeMismatchError: an element is not a pair, or has another type than the dict.
    """
    wanted = None if hint is None else without_none(hint)
    result = emitter.insert_node("prim::DictConstruct", range, [], [wanted or DictType(STRING, TENSOR)]).output

    def put(pair: Value) -> None:
        if not isinstance(pair.type, TupleType) or len(pair.type.elements) != 2:
            raise TypeMismatchError(f"dict takes pairs of key and value, got {pair.type.annotation}", range)
        key, value = unpack_tuple(emitter.graph, pair, range)
        if wanted is None:
            result.set_type(DictType(key.type, unshaped(value.type)))
        item = [emitter.argument(part, range) for part in (result, key, value)]
        BuiltinFunction("aten::_set_item").call(CallSite(range, emitter.graph, item))

    each(emitter, range, source.iterator(range, emitter.graph), put)
    return result


def each(emitter: Emitter, range: SourceRange, iterator: SugaredValue, body: Callable[[Value], None]) -> None:
    """Emit a loop that runs ``body`` for each element of ``iterator``."""
    if iterator.must_unroll:
        for item in iterator.as_tuple(range, emitter.graph):
            body(item.as_value(range, emitter.graph))
        return
    count = iterator.length(range, emitter.graph)
    always = emitter.graph.insert_constant(True, range=range)
    node = emitter.insert_node("prim::Loop", range, [count], [])
    block, condition = node.add_block(), node.add_block()
    condition.add_output(always)
    trip = block.add_input(type=INT)
    with emitter.in_loop(LoopKind.LOOP), emitter.inside(block):
        body(iterator.item(range, emitter.graph, trip).as_value(range, emitter.graph))


def check_jump(emitter: Emitter, word: str, range: SourceRange) -> None:
    """Raise UnsupportedError for ``break`` or ``continue`` (the ``word``) outside of a loop, or in an unrolled one that
    cannot express it."""
    if emitter.loop is LoopKind.NONE:
        raise UnsupportedError(f"'{word}' is outside of a loop", range)
    if emitter.loop is LoopKind.UNROLLED:
        raise UnsupportedError(
            f"'{word}' is not supported in a 'with' or 'try' in a loop over modules or a tuple: "
            "such a loop is unrolled",
            range,
            hint="put the rest of the body under an if",
        )


_indices = range


def _widen_list(result: Value, type: Type) -> None:
    """Set a wider type for a list that this function constructs, and for the results of ``append`` to it."""
    result.set_type(type)
    for use in result.uses:
        if use.user.kind == "aten::append":
            use.user.output.set_type(type)
