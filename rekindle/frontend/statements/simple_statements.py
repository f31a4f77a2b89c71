"""Emit statements one by one. An error in one does not prevent the emission of the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from rekindle.errors import (
    Diagnostics,
    SourceRange,
    TypeMismatchError,
    UndefinedNameError,
    UnsupportedError,
    bug_while,
    is_bug,
)
from rekindle.frontend.archive_resolver import ForkedFunction
from rekindle.frontend.containers.counters import forgets_missing
from rekindle.frontend.containers.variable_length_tuples import text_of_value
from rekindle.frontend.emitter import EmissionPoint, Emitter
from rekindle.frontend.expressions.conditions import emit_condition
from rekindle.frontend.expressions.primaries import from_library, local_function
from rekindle.frontend.expressions.subscripts import as_position, assign_slice, indices_of
from rekindle.frontend.inference.attribute_evaluation import evaluate_on_current_attributes
from rekindle.frontend.inference.error_diagnosis import keeping_if, recover, try_to_emit
from rekindle.frontend.inference.type_inference import RestartEmission
from rekindle.frontend.scopes.refinement import CondValue
from rekindle.frontend.statements.assignments import assign, emit_assign, emit_aug_assign
from rekindle.frontend.statements.error_recovery import (
    asks_compiler,
    assigned_names,
    assigns_attribute,
    may_leave,
    target_names,
)
from rekindle.frontend.statements.if_statements import BranchBody, emit_if_else
from rekindle.frontend.statements.loops import emit_for, emit_while, generator_of, give_up_condition
from rekindle.frontend.statements.results import as_declared
from rekindle.frontend.statements.try_statements import (
    caught_exception,
    emit_import,
    emit_jump,
    emit_try,
    leave_with,
    raise_again,
)
from rekindle.frontend.statements.with_statements import enter
from rekindle.frontend.sugared_values.base import CallSite
from rekindle.frontend.sugared_values.special_forms import (
    CaughtException,
    ExceptionClass,
    ExceptionInstance,
    InertContext,
    MagicMethod,
)
from rekindle.frontend.sugared_values.values import BuiltinFunction, SimpleValue
from rekindle.ir.node import Value
from rekindle.ir.operators.schema import MISSING
from rekindle.ir.redefinition import fix_result, wanted_result
from rekindle.ir.types import (
    ANY,
    BOOL,
    NONE,
    STRING,
    TENSOR,
    DictType,
    ListType,
    TupleType,
    Type,
    differs_in_python,
    join_numbers,
    lost_class,
    unify,
    union,
    unshaped,
)
from rekindle.syntax.tree import Tree
from rekindle.syntax.views import (
    Assert,
    Assign,
    AugAssign,
    CurrentException,
    Def,
    Delete,
    ErrorStmt,
    Expr,
    ExprStmt,
    For,
    If,
    LocalClass,
    Nonlocal,
    OptionField,
    Raise,
    Return,
    Stmt,
    StringLiteral,
    Subscript,
    Try,
    Var,
    While,
    With,
    WithItem,
    option_tree,
)

_NOT_COMPILED: Final = "builtins.RuntimeError"
"""Class of the error that a branch raises at run time if it was not compiled."""


class _AssertionFailure(Expr):
    """The exception of a failed ``assert``: ``(assertion_failure (option message))``. Only the emitter creates it."""

    __slots__ = ()
    KIND = "assertion_failure"
    message = OptionField(0, Expr)

    @classmethod
    def create(cls, range: SourceRange, message: Expr | None) -> _AssertionFailure:
        return cls._build(range, option_tree(range, message))


_COMPOUND: Final = frozenset({"if", "while", "for", "with", "try", "given_up"})
"""Kinds of compound statements. The functions that emit these handle errors in the head of the statement."""


def emit_statements(emitter: Emitter, statements: Sequence[Stmt]) -> None:
    """Emit statements in order. An error in one is recorded in the diagnostics, and emission continues after it.
    Statements that are unreachable because an earlier one exits are not emitted."""
    for statement in statements:
        place = emitter.place
        # No function of its own: nested statements would take twice as much of Python's stack.
        try:
            emit = _STATEMENTS.get(statement.tree.kind)
            if emit is None:
                raise UnsupportedError(f"'{statement.tree.kind}' statements are not supported", statement.range)
            emit(emitter, statement.tree)
        except Exception as error:
            _give_up_statement(emitter, statement, error, place)
        if emitter.has_exited:
            return  # what follows is never reached, and need not even compile


def _give_up_statement(emitter: Emitter, statement: Stmt, error: Exception, place: EmissionPoint) -> None:
    """Record the error of a statement in the diagnostics, so that emission can continue after it. The names that the
    statement assigns become unknown. If the statement reads an undefined name in a branch that is unreachable with the
    current attributes of the module, emit Python's error instead (:func:`_raises_as_python`).

    Raises:
        InternalError: ``error`` is a bug in the compiler, and no error was recorded before.
    """
    if _raises_as_python(emitter, statement, error, place):
        return
    if is_bug(error) and not emitter.diagnostics.has_failed:
        raise bug_while(error, f"in the compilation of this statement:\n{statement.range.highlight()}") from error
    emit = _STATEMENTS.get(statement.tree.kind)
    if emit is None or statement.tree.kind in _COMPOUND:
        recover(emitter, error, place)
    else:
        recover(emitter, error, place, statement.tree, partial(emit, emitter, statement.tree))
    for name in assigned_names([statement]):
        emitter.environment.give_up(name)
    if emitter.self_binding is not None and assigns_attribute(statement.tree):
        emitter.self_binding.type.is_incomplete = True
    kind = statement.tree.kind
    if kind == Assert.KIND:
        give_up_condition(emitter, Assert(statement.tree).test)
    if kind in (Return.KIND, Raise.KIND):
        emitter.mark_exited()
    elif may_leave([statement]):
        emitter.returns.is_uncertain = True


def _emit_expression_statement(emitter: Emitter, tree: Tree) -> None:
    expr = ExprStmt(tree).expr
    if expr.tree.kind in (StringLiteral.KIND, "dots"):
        return  # a docstring, or a body that is left out
    generator = generator_of(emitter, expr, ())
    if generator is not None:  # its elements are not used
        emitter.emit_sugared(generator.generators[0].iterable)
        return
    emitter.emit_sugared(expr, 0)


def _emit_pass(emitter: Emitter, tree: Tree) -> None:
    pass


def _emit_nonlocal(emitter: Emitter, tree: Tree) -> None:
    for name in Nonlocal(tree).names:
        if emitter.environment.find_local(name) is None and not emitter.environment.is_own(name):
            raise UndefinedNameError(f"no function around this one has assigned '{name}'", tree.range)


def _emit_local_class(emitter: Emitter, tree: Tree) -> None:
    statement = LocalClass(tree)
    found = emitter.resolver.define_class(statement, emitter.graph)
    if found is None:
        raise UnsupportedError("classes within functions are not supported here", tree.range)
    emitter.environment.assign(statement.name, tree.range, found)


def _emit_break(emitter: Emitter, tree: Tree) -> None:
    emit_jump(emitter, "break", tree.range)


def _emit_continue(emitter: Emitter, tree: Tree) -> None:
    emit_jump(emitter, "continue", tree.range)


def _emit_delete(emitter: Emitter, tree: Tree) -> None:
    for target in Delete(tree).targets:
        if target.tree.kind == Var.KIND:
            name = Var(target.tree).name.name
            emitter.environment.lookup(name, target.range)
            _check_deletion(emitter, name, target.range)
            emitter.environment.forget(name, tree.range)
        elif target.tree.kind == Subscript.KIND:
            subscript = Subscript(target.tree)
            if len(subscript.indices) == 1 and subscript.indices[0].tree.kind == "slice":
                base = emitter.emit_expression(subscript.value)
                if isinstance(base.type, ListType):
                    nothing = emitter.insert_node("prim::ListConstruct", tree.range, [], [base.type]).output
                    assign_slice(emitter, tree.range, subscript, base, nothing, deleted=True)
                    continue
            base = emitter.emit_expression(subscript.value)
            indices = indices_of(emitter, subscript, base)
            if len(indices) != 1 or indices[0].tree.kind == "slice":
                raise UnsupportedError("only one element can be deleted at a time", target.range)
            index = as_position(emitter, emitter.emit_expression(indices[0]), base.type)
            base = emitter.present(base, target.range, "'NoneType' object does not support item deletion")
            places = (subscript.value.range, indices[0].range)
            arguments = [emitter.argument(*item) for item in zip((base, index), places, strict=True)]
            if forgets_missing(emitter, base.type):
                from_library(emitter, "discard", tree.range, base, index)
                continue
            delete = MagicMethod("__delitem__", BuiltinFunction("aten::Delete"))
            delete.call(CallSite(tree.range, emitter.graph, arguments, targets=0))
        else:
            raise UnsupportedError("this cannot be deleted", target.range)


def _check_deletion(emitter: Emitter, name: str, range: SourceRange) -> None:
    attempt, variable = emitter.environment.tried, emitter.environment.frame.variable(name)
    if attempt is None:
        return
    attempt.set_flag(emitter.graph, variable, emitter.graph.insert_constant(False, range=range), range)
    if attempt.outer.find_type(variable) is not None or attempt.outer.find_partial(variable) is not None:
        raise UnsupportedError(f"'{name}' was assigned outside of this try block, and cannot be deleted in it", range)


def _emit_local_function(emitter: Emitter, tree: Tree) -> None:
    definition = Def(tree)
    body = definition.body
    if emitter.graph.follows_python:
        emitter.environment.assign(definition.name.name, definition.name.range, local_function(emitter, definition))
        return
    if definition.params or body[-1].tree.kind != Return.KIND:
        raise UnsupportedError("a function within a function takes nothing here and ends in a return", tree.range)

    def emit() -> Value:
        emitter.emit_statements(body[:-1])
        return emitter.emit_expression(Return(body[-1].tree).value)

    name = definition.name.name
    emitter.environment.assign(name, tree.range, ForkedFunction(name, emit))


def _emit_raise(emitter: Emitter, tree: Tree) -> None:
    statement = Raise(tree)
    if statement.value.tree.kind == _AssertionFailure.KIND:
        _emit_assertion_failure(emitter, _AssertionFailure(statement.value.tree), statement.range)
        return
    if statement.value.tree.kind == CurrentException.KIND:
        raise_again(emitter, caught_exception(emitter.caught, statement.range), statement.range)
        return
    found = emitter.emit_sugared(statement.value)
    if isinstance(found, CaughtException):
        raise_again(emitter, found.value, statement.range)
        return
    if isinstance(found, ExceptionClass):
        found = found.call(CallSite(statement.value.range, emitter.graph))
    if not isinstance(found, ExceptionInstance):
        raise TypeMismatchError(f"only exceptions can be raised, not {found.description}", statement.value.range)
    message = found.message
    if found.is_text:
        _insert_raise(emitter, [message, found.class_name], statement.range)
        return
    arguments = message
    if found.count == 1:
        kind = TupleType((message.type,))
        arguments = emitter.insert_node("prim::TupleConstruct", statement.range, [message], [kind]).output
    text = text_of_value(emitter, message, statement.range)
    _insert_raise(emitter, [text, found.class_name, arguments], statement.range)


def _insert_raise(emitter: Emitter, inputs: list[Value], range: SourceRange) -> None:
    node = emitter.graph.create("prim::RaiseException", inputs, outputs=0, range=range)
    emitter.graph.insert_node(node)
    emitter.mark_exited()


def _emit_assert(emitter: Emitter, tree: Tree) -> None:
    if not __debug__ and emitter.graph.follows_python:
        return  # ``python -O``: Python leaves assertions out, what they compute too
    statement = Assert(tree)
    condition = emit_condition(emitter, statement.test)
    range = statement.range
    failure = Raise.create(range, _AssertionFailure.create(range, statement.message))
    _emit_branches(emitter, range, condition, [], [failure])


def _emit_assertion_failure(emitter: Emitter, failure: _AssertionFailure, range: SourceRange) -> None:
    """Emit the error of a failed assertion as TorchScript does: the message begins with ``AssertionError:``, and the
    error has no class."""
    message = emitter.graph.insert_constant("AssertionError: ", range=range)
    if failure.message is not None:
        said = emitter.emit_expression(failure.message)
        if said.type != STRING:
            said = text_of_value(emitter, said, failure.message.range)
        message = emitter.insert("aten::add", range, message, said)
    _insert_raise(emitter, [message, emitter.graph.insert_constant(None, range=range)], range)


def _emit_return_statement(emitter: Emitter, tree: Tree) -> None:
    emit_return(emitter, Return(tree))


def _forget_any(emitter: Emitter, type: Type, range: SourceRange) -> None:
    """Infer the result type of the function although it declares ``Any``: in the IR only the type distinguishes a
    ``torch.Size`` from a list, and a dtype from an int.

    Raises:
        TypeMismatchError: an earlier ``return`` returns a value of another type.
    """
    if emitter.returns.merged is not None:
        raise TypeMismatchError(
            f"the function is declared to return Any, and returns {type.annotation} here and something else before",
            range,
            hint="leave the declaration of the result away",
        )
    emitter.returns.declared = None


def emit_return(emitter: Emitter, statement: Return) -> None:
    declared = emitter.returns.declared
    value = emitter.emit_expression(statement.value, declared)
    if declared is not None and emitter.returns.merged is None and _is_other_tuple(value.type, declared):
        declared = emitter.returns.declared = None  # ``-> tuple[Tensor]`` of what gives two: Python does not mind
    if declared is not None and emitter.returns.merged is None and value.type.is_subtype_of(declared):
        if isinstance(declared, (ListType, DictType)) and lost_class(value.type, declared) is not None:
            declared = emitter.returns.declared = value.type  # ``-> Dict[str, int]`` of what gives a Counter
    if declared == ANY and differs_in_python(value.type) and emitter.graph.follows_python:
        _forget_any(emitter, value.type, statement.range)
        declared = None
    if declared is not None:
        if declared is emitter.evidence.result and not value.type.is_subtype_of(declared):
            _learn_wanted(emitter, statement.value, value.type, declared)
            emitter.evidence.learn_result(union((declared, value.type)))
        value = as_declared(emitter, value, declared, statement)
        emitter.returns.merged = declared
        before = emitter.returns.given
        emitter.returns.given = value.type if before is None else unify(before, value.type) or declared
        if value.type != declared and (declared == ANY or declared is emitter.evidence.result):
            # So that returns on different paths have one type.
            value = emitter.insert_node("prim::unchecked_cast", statement.range, [value], [declared]).output
    else:
        before = emitter.returns.merged
        merged = value.type if before is None else unify(before, value.type)
        if merged is None and before is not None and emitter.graph.follows_python:
            merged = join_numbers(before, value.type)
            if merged is not None and not value.type.is_subtype_of(merged):
                value = emitter.as_number(value, statement.range)
        if merged is None:
            assert before is not None
            emitter.evidence.learn_result(union((unshaped(before), unshaped(value.type))))
        if before is None and emitter.returns.announce is not None:
            emitter.returns.announce(unshaped(merged))
        emitter.returns.merged = merged
    leave_with(emitter, value, statement.range)


def _is_other_tuple(type: Type, declared: Type) -> bool:
    """Return whether both are tuples without field names that differ in length, or in an item that is None: results of
    ``-> tuple[Tensor, Tensor]`` often are ``(x, None)``."""
    if not isinstance(type, TupleType) or not isinstance(declared, TupleType):
        return False
    if type.fields is not None or declared.fields is not None:
        return False
    if len(type.elements) != len(declared.elements):
        return True
    pairs = zip(type.elements, declared.elements, strict=True)
    return any(item == NONE and not item.is_subtype_of(wanted) for item, wanted in pairs)


def _learn_wanted(emitter: Emitter, expr: Expr, type: Type, wanted: Type) -> None:
    """Infer the element type of a returned list or dict from the type that the caller has found out, ``wanted``.
    ``expr`` is the returned expression, of ``type``. Do nothing if no caller has.

    Raises:
        RestartEmission: the evidence records the type.
    """
    if wanted != wanted_result():
        return
    origin = emitter.environment.origin_of(expr)
    if origin is not None:
        emitter.evidence.learn_contents(origin, unshaped(type), wanted)
    fix_result()
    emitter.evidence.result = None
    raise RestartEmission


def _raises_as_python(emitter: Emitter, statement: Stmt, error: Exception, place: EmissionPoint) -> bool:
    """Emit Python's error for ``statement``, if it reads an undefined name in a branch that the current attributes of
    the module make unreachable. Return whether it was emitted."""
    missing = error.missing if isinstance(error, UndefinedNameError) else None
    if not emitter.is_unexpected or missing is None or statement.tree.kind in _COMPOUND:
        return False
    block = place.insert_point.owning_block
    if missing.block is not block or emitter.graph.insert_point.owning_block is not block:
        return False  # only a part of the statement reads it, which may not run
    said = [emitter.graph.insert_constant(each, range=statement.range) for each in (missing.text, missing.class_name)]
    _insert_raise(emitter, said, statement.range)
    return True


def _emit_if(emitter: Emitter, tree: Tree) -> None:
    statement = If(tree)
    condition = try_to_emit(emitter, lambda: emit_condition(emitter, statement.condition), statement.condition.tree)
    if condition is None:
        condition = _unknown_condition(emitter, statement)
    if condition is not None:
        _emit_expected(emitter, statement, condition)


def _emit_expected(emitter: Emitter, statement: If, condition: CondValue) -> None:
    """Emit the branches of an ``if``. If the current attributes of the module make one unreachable, that raises at run
    time where it cannot be compiled."""
    branches = [_branch(emitter, statement.range, body) for body in (statement.true_branch, statement.false_branch)]
    if condition.static is None and emitter.graph.follows_python:
        taken = evaluate_on_current_attributes(condition.value)
        if taken is not MISSING:
            other = 1 if taken else 0
            body = (statement.true_branch, statement.false_branch)[other]
            if body:
                branches[other] = BranchBody(partial(emit_unexpected, emitter, body), branches[other].range)
    emit_if_else(emitter, statement.range, condition, *branches)


def emit_unexpected(emitter: Emitter, statements: list[Stmt]) -> None:
    """Emit statements that are unreachable with the current attributes of the module. If they cannot be compiled, the
    emitted code raises, and no error is recorded."""
    saved, emitter.diagnostics = emitter.diagnostics, Diagnostics()
    was_unexpected, emitter.is_unexpected = emitter.is_unexpected, True
    before = emitter.graph.insert_point.prev
    try:
        with keeping_if(emitter, lambda: not emitter.diagnostics.has_failed):
            try_to_emit(emitter, partial(emitter.emit_statements, statements))
        branch_diagnostics = emitter.diagnostics
    finally:
        emitter.diagnostics, emitter.is_unexpected = saved, was_unexpected
    if not branch_diagnostics.has_failed:
        return
    while emitter.graph.insert_point.prev is not before:
        emitter.graph.insert_point.prev.destroy()
    range = statements[0].range
    why = (
        branch_diagnostics.problems[0].message.partition("\n")[0]
        if branch_diagnostics.problems
        else "it needs what could not be compiled"
    )
    text = f"this branch was not compiled, because no attribute of the module led here: {why}"
    _insert_raise(emitter, [emitter.graph.insert_constant(item, range=range) for item in (text, _NOT_COMPILED)], range)


def _unknown_condition(emitter: Emitter, statement: If) -> CondValue | None:
    """Return a placeholder for the condition of ``statement``, which could not be compiled. Return None if the
    condition may be known at compile time, so that one of the branches need not compile. The variables that the
    condition may narrow or assign become unknown, in the second case those that the branches assign."""
    branches = [*statement.true_branch, *statement.false_branch]
    if _may_be_static(emitter, statement.condition):
        for name in assigned_names([statement.condition, *branches]):
            emitter.environment.give_up(name)
        emitter.returns.is_uncertain |= may_leave(branches)
        return None
    give_up_condition(emitter, statement.condition)
    return CondValue(emitter.insert_node("prim::Uninitialized", statement.range, [], [BOOL]).output)


def _may_be_static(emitter: Emitter, expr: Expr) -> bool:
    """Return whether a condition that could not be compiled contains a part that may be known at compile time."""
    if expr.tree.kind in ("and", "or", "not"):
        return any(_may_be_static(emitter, Expr(part)) for part in expr.tree.subtrees())
    saved, emitter.diagnostics = emitter.diagnostics, Diagnostics()
    try:
        found = try_to_emit(emitter, lambda: emit_condition(emitter, expr))
    finally:
        emitter.diagnostics = saved
    return asks_compiler(expr) if found is None else found.static is not None


def _emit_branches(
    emitter: Emitter, range: SourceRange, condition: CondValue, if_true: list[Stmt], if_false: list[Stmt]
) -> None:
    emit_if_else(emitter, range, condition, _branch(emitter, range, if_true), _branch(emitter, range, if_false))


def _branch(emitter: Emitter, range: SourceRange, statements: list[Stmt]) -> BranchBody:
    return BranchBody(partial(emitter.emit_statements, statements), statements[0].range if statements else range)


def _emit_given_up(emitter: Emitter, tree: Tree) -> None:
    """Emit the blocks of an unsupported statement, whose error is already recorded, to find the other errors in them.
    The variables that they assign become unknown."""
    statement = ErrorStmt(tree)
    names = {*statement.names, *assigned_names([statement])}
    lost = names - {name for block in statement.blocks for name in assigned_names(block)}
    for block in statement.blocks:
        with emitter.inside(emitter.insert_node("prim::If", tree.range, [], []).add_block()) as frame:
            frame.allows_any_type = True
            for name in lost:
                emitter.environment.give_up(name)
            emitter.emit_statements(block)
        lost = names
    for name in names:
        emitter.environment.give_up(name)
    emitter.returns.is_uncertain |= may_leave([statement])


def _emit_with(emitter: Emitter, tree: Tree) -> None:
    statement = With(tree)
    entered: list[tuple[Value, SourceRange]] = []
    for item in statement.items:
        if try_to_emit(emitter, partial(_emit_with_item, emitter, item, entered)) is None and item.target is not None:
            for name in target_names(item.target):
                emitter.environment.give_up(name)
    emitter.emit_statements(statement.body)
    for context, range in reversed(entered):
        # TorchScript declares a Tensor, whatever __exit__ returns; it is never read.
        emitter.insert_node("prim::Exit", range, [context], [TENSOR])


def _emit_with_item(emitter: Emitter, item: WithItem, entered: list[tuple[Value, SourceRange]]) -> Value:
    found = emitter.emit_sugared(item.context)
    if isinstance(found, InertContext):
        result = emitter.graph.insert_constant(None, range=item.context.range)
    else:
        context = found.as_value(item.context.range, emitter.graph)
        result = enter(emitter, context, item.context)
        entered.append((context, item.context.range))
    if item.target is not None:
        assign(emitter, item.target, SimpleValue(result), item.context.range)
    return result


_STATEMENTS: Final[dict[str, Callable[[Emitter, Tree], None]]] = {
    "assign": lambda emitter, tree: emit_assign(emitter, Assign(tree)),
    "aug_assign": lambda emitter, tree: emit_aug_assign(emitter, AugAssign(tree)),
    "while": lambda emitter, tree: emit_while(emitter, While(tree)),
    "for": lambda emitter, tree: emit_for(emitter, For(tree)),
    "expression_statement": _emit_expression_statement,
    "pass": _emit_pass,
    "nonlocal": _emit_nonlocal,
    "local_import": emit_import,
    "local_class": _emit_local_class,
    "break": _emit_break,
    "continue": _emit_continue,
    "delete": _emit_delete,
    "raise": _emit_raise,
    "assert": _emit_assert,
    "return": _emit_return_statement,
    "if": _emit_if,
    "with": _emit_with,
    "try": lambda emitter, tree: emit_try(emitter, Try(tree)),
    "given_up": _emit_given_up,
    "def": _emit_local_function,
}
