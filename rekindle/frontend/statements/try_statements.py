"""``try`` statements: the body runs in a graph of its own, which returns how it was left.

.. code-block:: text

    y = 0                          %cell : int[] = prim::ListConstruct(%zero)
    try:                           %how : int, %error : Any = prim::Try()
        y = g(x)                     block0():
        if y < 0:                      %y : int = prim::CallFunction(%g, %x)
            break                      = aten::_set_item(%cell, %zero, %y)
    except ValueError:                 …: prim::ReturnStmt(2) for the break
        y = 1                          -> (%zero)
                        becomes    %failed : bool = aten::lt(%how, %zero)
                                   prim::If(%failed)
                                     block0():
                                       %y.2 : int = aten::__getitem__(%cell, %zero)
                                       %1 : bool = prim::is_exception(%error, ["builtins.ValueError"])
                                       prim::If(%1)                 # … else prim::RaiseException(%error)
                                     block1():
                                       …: break if %how is 2

Assignments in the body to a variable from outside also write to a list of one element, from which the handlers get its
last value. ``prim::Try`` returns 0 if control reached the end of the body, another positive number if it was left by
``return``, ``break`` or ``continue``, and -1, with the exception, if it raised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from typing import Final

from rekindle.errors import CompileError, SourceRange, UndefinedNameError, UnsupportedError
from rekindle.frontend.emitter import Emitter
from rekindle.frontend.expressions.conditions import exception_classes, is_exception
from rekindle.frontend.inference.error_diagnosis import try_to_emit
from rekindle.frontend.scopes.frames import EnvironmentFrame, LoopKind
from rekindle.frontend.scopes.refinement import CondValue
from rekindle.frontend.ssa.assignedness import Partial, stored_types
from rekindle.frontend.statements.cells import TryBody
from rekindle.frontend.statements.error_recovery import assigned_names
from rekindle.frontend.statements.if_statements import BranchBody, emit_if_else
from rekindle.frontend.statements.loops import check_jump
from rekindle.frontend.sugared_values.base import ERROR_VALUE
from rekindle.frontend.sugared_values.special_forms import CaughtException
from rekindle.ir.graph import Block, Value
from rekindle.ir.types import ANY, BOOL, INT, Type
from rekindle.syntax.tree import Tree
from rekindle.syntax.views import Handler, LocalImport, Stmt, Try

_RETURN: Final = 1
_JUMPS: Final = {"break": 2, "continue": 3}
"""First result of ``prim::Try`` if ``break`` or ``continue`` left the body."""


def caught_exception(caught: Sequence[Value], range: SourceRange) -> Value:
    """Return the exception that a ``raise`` without an exception raises again: that of the innermost handler around it.

    Raises:
        UnsupportedError: there is no handler around it.
    """
    if not caught:
        raise UnsupportedError(
            "'raise' without an exception is outside of a handler",
            range,
            hint='say what is raised: raise RuntimeError("…")',
        )
    return caught[-1]


# ------------------------------------------------------------------------------------------ leaving


def leave_with(emitter: Emitter, value: Value, range: SourceRange) -> None:
    """Emit ``return value``, also in a ``try`` statement."""
    attempt = emitter.environment.tried
    if attempt is None:
        emitter.graph.insert_node(emitter.graph.create("prim::ReturnStmt", [value], outputs=0, range=range))
        emitter.mark_exited()
        return
    if attempt.returned is None:
        attempt.returned = attempt.empty_cell(emitter.graph, value.type, range)
    attempt.returned.write(emitter.graph, value, value.type, range)
    _leave_attempt(emitter, _RETURN, range)


def emit_jump(emitter: Emitter, word: str, range: SourceRange) -> None:
    """Emit ``break`` or ``continue`` (the ``word``), also one that leaves a ``try`` statement.

    Raises:
        UnsupportedError: it is outside of a loop, or in an unrolled loop that cannot express it.
    """
    attempt = emitter.environment.tried
    if emitter.loop is LoopKind.NONE and attempt is not None:
        with emitter.in_loop(attempt.loop):
            check_jump(emitter, word, range)
        if word not in attempt.jumps:
            attempt.jumps.append(word)
        _leave_attempt(emitter, _JUMPS[word], range)
        return
    check_jump(emitter, word, range)
    emitter.insert_node(f"prim::{word.capitalize()}Stmt", range, [], [])
    emitter.mark_exited()


def _leave_attempt(emitter: Emitter, how: int, range: SourceRange) -> None:
    code = emitter.graph.insert_constant(how, range=range)
    emitter.graph.insert_node(emitter.graph.create("prim::ReturnStmt", [code], outputs=0, range=range))
    emitter.mark_exited()


def raise_again(emitter: Emitter, error: Value, range: SourceRange) -> None:
    emitter.graph.insert_node(emitter.graph.create("prim::RaiseException", [error], outputs=0, range=range))
    emitter.mark_exited()


# --------------------------------------------------------------------------------------- statements


def emit_import(emitter: Emitter, tree: Tree) -> None:
    """Emit an import within the function: the module is imported now, while compiling, and its name assigned.

    Raises:
        UndefinedNameError: the import fails.
        UnsupportedError: the source is not from a Python program.
    """
    statement = LocalImport(tree)
    found = emitter.resolver.import_object(statement, emitter.graph)
    if found is None:
        raise UnsupportedError("imports within functions are not supported here", tree.range)
    emitter.environment.assign(statement.name, tree.range, found)


def emit_try(emitter: Emitter, statement: Try) -> None:
    decided = _without_imports(emitter, statement)
    if decided is not None:
        emitter.emit_statements(decided)
    elif statement.final:
        _emit_final(emitter, statement)
    else:
        _emit_handled(emitter, statement)


def _without_imports(emitter: Emitter, statement: Try) -> list[Stmt] | None:
    """Execute the imports with which the body of a ``try`` begins, and return the statements that remain to be emitted:
    those of a handler if an import fails, else the rest of the ``try``. Return None if the body does not begin with an
    import.

    Raises:
        UndefinedNameError: an import fails, and no handler catches the error, or one that gives it a name.
    """
    imports = list(takewhile(lambda each: each.tree.kind == LocalImport.KIND, statement.body))
    if not imports:
        return None
    try:
        for each in imports:
            emit_import(emitter, each.tree)
    except UndefinedNameError as error:
        handler = _handler_of(emitter, error.__cause__, statement.handlers)
        if handler is None or handler.name:
            raise
        return [*handler.body, *statement.final]
    rest = statement.body[len(imports) :]
    if not rest:
        return [*statement.otherwise, *statement.final]
    return [Try.create(statement.range, rest, statement.handlers, statement.otherwise, statement.final)]


def _handler_of(emitter: Emitter, error: BaseException | None, handlers: Sequence[Handler]) -> Handler | None:
    """Return the handler that catches ``error``, that of an import; None if none does."""
    if not isinstance(error, ImportError):
        return None
    raised = {f"builtins.{cls.__name__}" for cls in type(error).__mro__}
    for handler in handlers:
        if handler.type is None:
            return handler
        if raised.intersection(exception_classes(emitter, emitter.emit_sugared(handler.type), handler.type.range)):
            return handler
    return None


def _emit_handled(emitter: Emitter, statement: Try) -> None:
    """Emit the ``try``, ``except`` and ``else`` blocks of a statement, without its ``finally``."""
    range = statement.range
    attempt = _try(emitter, statement, partial(emitter.emit_statements, statement.body))
    error = attempt.node.outputs[1]

    def handle() -> None:
        _restore(emitter, attempt, range)
        _restore_partial(emitter, attempt, range)
        _emit_handlers(emitter, statement.handlers, error, range)

    def go_on() -> None:
        _restore_partial(emitter, attempt, range)
        if attempt.jumps or attempt.returned is not None:
            _restore(emitter, attempt, range)
            _leave_as(emitter, attempt, range)
        if not emitter.has_exited:
            _define(emitter, attempt, range)
            emitter.emit_statements(statement.otherwise)

    if not attempt.ends and not attempt.jumps and attempt.returned is None:
        handle()  # the body always raises
        return
    failed = CondValue(emitter.insert("aten::lt", range, attempt.node.outputs[0], 0))
    emit_if_else(emitter, range, failed, BranchBody(handle, range), BranchBody(go_on, range))


def _emit_final(emitter: Emitter, statement: Try) -> None:
    """Emit a statement with ``finally``. Its final block is emitted once, and runs however control leaves the blocks
    before."""
    range = statement.range

    def tried() -> None:
        if statement.handlers:
            _emit_handled(emitter, statement)
        else:
            emitter.emit_statements(statement.body)

    attempt = _try(emitter, statement, tried)
    how, error = attempt.node.outputs
    _restore(emitter, attempt, range)
    _restore_partial(emitter, attempt, range)
    emitter.emit_statements(statement.final)
    if emitter.has_exited:
        return
    if not attempt.ends and not attempt.jumps and attempt.returned is None:
        raise_again(emitter, error, range)
        return
    failed = CondValue(emitter.insert("aten::lt", range, how, 0))
    raising = BranchBody(partial(raise_again, emitter, error, range), range)
    emit_if_else(emitter, range, failed, raising, _nothing(emitter, range))
    _leave_as(emitter, attempt, range)
    if not emitter.has_exited:
        _define(emitter, attempt, range, assigned_names(statement.final))


def _emit_handlers(emitter: Emitter, handlers: Sequence[Handler], error: Value, range: SourceRange) -> None:
    """Emit the handlers: the first that matches the exception runs. If none matches, the exception is raised again."""
    if not handlers:
        raise_again(emitter, error, range)
        return
    first, *others = handlers
    run = partial(_emit_handler, emitter, first, error)
    if first.type is None:
        run()
        return
    named = first.type
    condition = try_to_emit(emitter, lambda: CondValue(is_exception(emitter, error, named)), named.tree)
    if condition is None:
        condition = CondValue(emitter.insert_node("prim::Uninitialized", range, [], [BOOL]).output)
    otherwise = BranchBody(partial(_emit_handlers, emitter, others, error, range), range)
    emit_if_else(emitter, first.range, condition, BranchBody(run, first.range), otherwise)


def _emit_handler(emitter: Emitter, handler: Handler, error: Value) -> None:
    saved, emitter.caught = emitter.caught, (*emitter.caught, error)
    try:
        if handler.name:
            _lose_outer(emitter, handler)
            emitter.environment.define_static(handler.name, CaughtException(error))
        emitter.emit_statements(handler.body)
    finally:
        emitter.caught = saved
    if handler.name and isinstance(emitter.environment.find_static(handler.name), CaughtException):
        emitter.environment.forget(handler.name, handler.range)


def _lose_outer(emitter: Emitter, handler: Handler) -> None:
    """Make the exception's variable of an enclosing handler undefined if ``handler`` has one of the same name, which is
    deleted at its end."""
    frame = emitter.environment.frame.find(handler.name)
    if frame is not None and isinstance(frame.sugared.get(handler.name), CaughtException):
        del frame.sugared[handler.name]
        frame.undefined_reason[handler.name] = "a handler within this one has the same name, and deletes it"


# ------------------------------------------------------------------------------------------ the body


def _try(emitter: Emitter, statement: Try, emit: Callable[[], None]) -> TryBody:
    """Emit the body of a ``try`` by a call of ``emit``, and return its record."""
    environment, range = emitter.environment, statement.range
    node = emitter.insert_node("prim::Try", range, [], [INT, ANY])
    block = node.add_block()
    saved, loop = environment.tried, emitter.loop
    left = saved.loop if loop is LoopKind.NONE and saved is not None else loop
    observed = {name for tree, name in emitter.evidence.observed if tree == id(statement.tree)}
    if saved is not None:
        observed |= saved.observed  # the body around learns of assignments here from the cells of this one
    attempt = TryBody(node, environment.frame, left, tree=id(statement.tree), observed=observed)
    environment.tried, emitter.loop = attempt, LoopKind.NONE
    try:
        with emitter.inside(block) as frame:
            emit()
            attempt.ends = not emitter.has_exited
            if attempt.ends:
                _keep_new(emitter, attempt, frame, range)
            block.add_output(emitter.graph.insert_constant(0, range=range))
    except CompileError:
        node.destroy()
        raise
    finally:
        environment.tried, emitter.loop = saved, loop
    environment.keep_origins([frame])
    for name, value in frame.sugared.items():
        if value is ERROR_VALUE:
            environment.give_up(name)
        else:
            environment.frame.undefined_reason[name] = (
                f"{value.description} exists only while compiling, so that no try block can give it"
            )
    if emitter.graph.follows_python:
        _note_assigned(emitter, attempt, statement, block)
    for cell in (*attempt.cells.values(), *attempt.flags.values()):
        cell.finish()
    if attempt.returned is not None:
        attempt.returned.finish()
    return attempt


def _keep_new(emitter: Emitter, attempt: TryBody, frame: EnvironmentFrame, range: SourceRange) -> None:
    """Record the variables that are defined at the end of the body and that it has assigned, in its loops, too. New
    ones are also written to cells."""
    assigned = {name: type for name in attempt.cells if (type := attempt.outer.find_type(name)) is not None}
    for name, type in (assigned | frame.types).items():
        if name in attempt.cells:
            attempt.new[name] = type
        elif attempt.outer.find_type(name) is None:
            attempt.new[name] = type
            attempt.cells[name] = attempt.empty_cell(emitter.graph, type, range)
            value = emitter.environment.load(name, type, name)
            attempt.cells[name].write(emitter.graph, value, type, range)


def _note_assigned(emitter: Emitter, attempt: TryBody, statement: Try, block: Block) -> None:
    """Record the variables that the body assigns, and that may be unassigned before it."""
    stored = stored_types(block)
    for name in sorted(assigned_names([statement])):
        variable = emitter.environment.frame.variable(name)
        if variable in stored and attempt.outer.find(variable) is None:
            attempt.assigned[variable] = stored[variable]


# ------------------------------------------------------------------------------------- and after it


def _restore(emitter: Emitter, attempt: TryBody, range: SourceRange) -> None:
    """Assign to the variables from outside of the body their values when control left it."""
    for name, cell in attempt.cells.items():
        if attempt.outer.find_type(name) is not None:
            _store(emitter, name, cell.read(emitter.graph, range), cell.type, range)


def _restore_partial(emitter: Emitter, attempt: TryBody, range: SourceRange) -> None:
    """Mark the variables that only the body assigns as possibly assigned, since an exception may precede the
    assignment. Those that are read later get their values and flags from the cells."""
    environment = emitter.environment
    for name, type in attempt.assigned.items():
        partial = Partial(type, frozenset({attempt.tree}))
        before = environment.frame.find_partial(name)
        flag = attempt.flags.get(name)
        if flag is not None:
            value = attempt.cells[name].read(emitter.graph, range)
            assigned = flag.read(emitter.graph, range)
            environment.store(name, range, value, value.type)
            environment.set_flag(name, assigned, range)
            if environment.tried is not None:
                environment.tried.note(emitter.graph, name, value, value.type, range, assigned)
        environment.frame.set_partial(name, partial if before is None else partial.joined(before))


def _define(emitter: Emitter, attempt: TryBody, range: SourceRange, but: set[str] | None = None) -> None:
    """Assign to the body's variables their values at its end, except to those in ``but``."""
    for name, type in attempt.new.items():
        if but is not None and name in but:
            continue
        value = attempt.cells[name].read(emitter.graph, range)
        if value.type != type:
            value = emitter.insert_node("prim::unchecked_cast", range, [value], [type]).output
        _store(emitter, name, value, type, range)


def _store(emitter: Emitter, name: str, value: Value, type: Type, range: SourceRange) -> None:
    emitter.environment.store(name, range, value, type)
    if emitter.environment.tried is not None:
        emitter.environment.tried.note(emitter.graph, name, value, type, range)


def _leave_as(emitter: Emitter, attempt: TryBody, range: SourceRange) -> None:
    """Emit a ``return``, ``break`` or ``continue`` that runs if the body was left by one."""
    how = attempt.node.outputs[0]
    ways: list[tuple[int, Callable[[], None]]] = []
    returned = attempt.returned
    if returned is not None:
        ways.append((_RETURN, lambda: leave_with(emitter, returned.read(emitter.graph, range), range)))
    ways += [(_JUMPS[word], partial(emit_jump, emitter, word, range)) for word in attempt.jumps]
    for index, (code, leave) in enumerate(ways):
        if not attempt.ends and index == len(ways) - 1:
            leave()
            return
        condition = CondValue(emitter.insert("aten::eq", range, how, code))
        emit_if_else(emitter, range, condition, BranchBody(leave, range), _nothing(emitter, range))


def _nothing(emitter: Emitter, range: SourceRange) -> BranchBody:
    return BranchBody(lambda: None, range)
