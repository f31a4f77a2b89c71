"""The emitter: a tree becomes a graph.

It walks a definition, resolves names to sugared values, checks types, and emits nodes; variables become loads and
stores. Then the graph is converted to SSA (:mod:`rekindle.frontend.ssa`).

The emitter is one class in several layers, each of which adds forms of the language to the one before::

    Emission            graph, names, control state           emission.py
    Explaining          what lies behind errors               explaining.py
    ExpressionEmitter   literals, operators, names, calls     expressions.py
    ConditionEmitter    and, or, if-else, is, isinstance      conditions.py
    SubscriptEmitter    indexing and slicing                  subscripts.py
    LoopEmitter         loops and comprehensions              loops.py
    GeneratorEmitter    any, next, zip … of generators        generator_loops.py
    CallEmitter         range, enumerate, annotate …          calls.py
    AssignmentEmitter   assignments                           assignments.py
    BranchEmitter       branches                              branches.py
    AttemptEmitter      try                                   attempts.py
    FunctionEmitter     statements and the whole function     here
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from functools import cache, partial
from types import MappingProxyType
from typing import Final

from rekindle.errors import Diagnostics, SourceRange, TypeMismatchError, UndefinedNameError, UnsupportedError
from rekindle.frontend.archive_names import ArchiveNames, ForkedFunction
from rekindle.frontend.assignedness import settle_guards
from rekindle.frontend.attempts import AttemptEmitter, caught_exception
from rekindle.frontend.branches import Branch
from rekindle.frontend.classes import InitBinding
from rekindle.frontend.closures import lift_closures
from rekindle.frontend.depth import room_to_recurse
from rekindle.frontend.emission import Place, SelfBinding
from rekindle.frontend.environment import is_meaningful
from rekindle.frontend.expectations import expected
from rekindle.frontend.inference import Evidence, Reinference, with_inference
from rekindle.frontend.local_functions import LocalFunction, local_names
from rekindle.frontend.none_checks import CheckedOptionals
from rekindle.frontend.private_names import private_names
from rekindle.frontend.recovery import asks_compiler, assigned_names, assigns_attribute, may_leave, target_names
from rekindle.frontend.refinement import Condition
from rekindle.frontend.signatures import RESULT, Signature, Told, read_signature
from rekindle.frontend.special_forms import CaughtException, ExceptionClass, ExceptionInstance, MagicMethod
from rekindle.frontend.ssa import convert_to_ssa
from rekindle.frontend.sugared import Call, Resolver, SugaredValue
from rekindle.frontend.type_expressions import parse_type_expression
from rekindle.frontend.values import BuiltinFunction, SimpleValue
from rekindle.frontend.with_statements import enter
from rekindle.ir.graph import Graph, Value
from rekindle.ir.matching import convert_value
from rekindle.ir.redefinition import fix_result, infer_result, wanted_result
from rekindle.ir.schema import MISSING, Argument, FunctionSchema
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
    as_python_has,
    differs_in_python,
    join_numbers,
    lost_class,
    mismatch_note,
    number_beside_tensor,
    present,
    unify,
    union,
    unshaped,
    without_none,
)
from rekindle.syntax.tree import Tree
from rekindle.syntax.views import (
    Assert,
    Assign,
    AugAssign,
    Caught,
    Def,
    Delete,
    Expr,
    ExprStmt,
    For,
    GivenUp,
    If,
    LocalClass,
    NoneLiteral,
    Nonlocal,
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


def emit_function(
    definition: Def,
    resolver: Resolver,
    *,
    name: str | None = None,
    self_binding: SelfBinding | None = None,
    defaults: Mapping[str, object] | None = None,
    parameter_types: Mapping[str, Told] | None = None,
    return_type: Told | None = None,
) -> tuple[Graph, FunctionSchema]:
    """Compile a definition to a graph in SSA form, and the schema that it turned out to have.

    ``defaults`` are the values of default arguments; where they are not given, those written in the definition must
    be literals. ``parameter_types`` and ``return_type`` stand in for annotations that the definition lacks.
    ``declare`` is told the schema before the body is compiled, where the definition says all of it.

    Raises:
        CompileError: the definition cannot be compiled.
    """
    diagnostics = Diagnostics()
    signature = read_signature(
        definition,
        resolver,
        diagnostics,
        name=name,
        self_binding=self_binding,
        defaults=defaults,
        parameter_types=parameter_types,
        return_type=return_type,
    )
    return emit_body(definition, signature, resolver, diagnostics, self_binding)


Known = Callable[[SourceRange, Graph], SugaredValue]
"""What a name means to the compiler, made in the graph where it is used."""


def emit_body(
    definition: Def,
    signature: Signature,
    resolver: Resolver,
    diagnostics: Diagnostics,
    self_binding: SelfBinding | None = None,
    announce: Callable[[FunctionSchema], None] | None = None,
    known: Mapping[str, Known] = MappingProxyType({}),
) -> tuple[Graph, FunctionSchema]:
    """As :func:`emit_function`, of what :func:`read_signature` has given. ``announce`` is told the schema as soon as a
    return has shown what the function gives, where it does not declare it. ``known`` is what names mean that are no
    parameters.

    Raises:
        CompileError: there are problems in ``diagnostics``, or the body adds to them.
    """
    binding = self_binding if isinstance(self_binding, InitBinding) else None

    def emit(evidence: Evidence) -> tuple[FunctionEmitter, Type]:
        emitter = FunctionEmitter(resolver, diagnostics, evidence)
        if announce is not None:
            emitter.returns.announce = lambda type: announce(_returning(signature.schema, type))
        for name, make in known.items():
            range = definition.name.range
            emitter.environment.assign(name, range, make(range, emitter.graph))
        with nullcontext() if binding is None else binding.beginning_again():
            result = emitter.emit_definition(definition, signature.schema, self_binding, signature.given_up)
        return emitter, result

    with diagnostics.reporting(), room_to_recurse(definition.name.range):
        emitter, result = with_inference(diagnostics, emit)
    with room_to_recurse(definition.name.range):
        guarded = emitter.environment.guarded
        if guarded or emitter.environment.has_flags:
            settle_guards(emitter.graph, guarded)
        convert_to_ssa(emitter.graph, result, as_printed=isinstance(resolver, ArchiveNames), partial=guarded)
        lift_closures(emitter.graph)
    return emitter.graph, _returning(signature.schema, result)


def _returning(schema: FunctionSchema, result: Type) -> FunctionSchema:
    return FunctionSchema(schema.name, "", schema.arguments, (Argument("", result),))


define_class: Callable[[Resolver, LocalClass, Graph], SugaredValue] | None = None
"""A slot: what a class that a function defines means. :mod:`rekindle.scripting.resolver` fills it."""

_NOT_COMPILED: Final = "builtins.RuntimeError"
"""What is raised where a branch is reached that was not compiled."""


class _AssertionFailure(Expr):
    """What a failed ``assert`` raises: ``(assertion_failure (option message))``. The emitter alone makes it."""

    __slots__ = ()
    KIND = "assertion_failure"

    @classmethod
    def create(cls, range: SourceRange, message: Expr | None) -> _AssertionFailure:
        return cls._build(range, option_tree(range, message))

    @property
    def message(self) -> Expr | None:
        return self._maybe(0, Expr)


def _differs_in_length(type: Type, declared: Type) -> bool:
    """Whether a tuple is declared to have another number of elements than it has."""
    if not isinstance(type, TupleType) or not isinstance(declared, TupleType):
        return False
    return len(type.elements) != len(declared.elements) and type.fields is None and declared.fields is None


def _other_result(given: Type, declared: Type) -> str:
    if number_beside_tensor(given) is None:
        return _no_result(declared)
    return f"the function is declared to return {declared.annotation}, but returns a value of type NoneType"


def _no_result(declared: Type) -> str:
    return f"the function is declared to return {declared.annotation}, but returns None"


_COMPOUND: Final = frozenset({"if", "while", "for", "with", "try", "given_up"})
"""Statements that hold others. What stands in their heads is tried of itself."""


class FunctionEmitter(AttemptEmitter):
    """Emits the statements of one function."""

    self_binding: InitBinding | None = None
    """``self`` of an ``__init__``, which tells the attributes of a class."""

    def __init__(
        self, resolver: Resolver, diagnostics: Diagnostics | None = None, evidence: Evidence | None = None
    ) -> None:
        super().__init__(resolver, diagnostics, evidence)
        if not isinstance(resolver, ArchiveNames):  # what an archive says means what TorchScript means
            self.graph.none_checks = CheckedOptionals(self.graph, self.environment)
            self.environment.checks_assignment = True

    def emit_definition(
        self,
        definition: Def,
        schema: FunctionSchema,
        self_binding: SelfBinding | None,
        given_up: Collection[str] = (),
    ) -> Type:
        """Emit the whole definition; returns the type of its result. ``given_up`` are the parameters of which no more
        is known than their names.

        Raises:
            CompileError: it cannot be compiled; several problems are told together.
        """
        if schema.returns:
            self.returns.declared = schema.returns[0].type
        self.returns.is_uncertain = RESULT in given_up
        self.self_binding = self_binding if isinstance(self_binding, InitBinding) else None
        self.environment.own_names = cache(partial(local_names, definition))
        self.environment.private_names = cache(partial(private_names, definition))
        self._emit_parameters(definition, schema, self_binding)
        for name in given_up:
            self.environment.give_up(name)
        return self._emit_to_end(definition)

    def emit_given(self, definition: Def, declared: Type | None) -> Type:
        """Emit the body of a definition of which the parameters have been assigned, and which is to give a ``declared``
        where that is known; returns the type of its result.

        Raises:
            CompileError: it cannot be compiled.
        """
        self.returns.declared = declared
        return self._emit_to_end(definition)

    def _emit_to_end(self, definition: Def) -> Type:
        is_declared = self.returns.declared is not None
        if self.evidence.result is None and not is_declared:
            self.evidence.result = wanted_result()
        if not is_declared and self.evidence.result is not None:
            self.returns.declared = self.evidence.result
            if self.returns.announce is not None:
                self.returns.announce(self.evidence.result)
        self.emit_statements(definition.body)
        self.attempt(lambda: self._close(definition))
        self.diagnostics.raise_all()
        self._erase_empty_list_literals()
        self.graph.none_checks = None
        declared, given = self.returns.declared, self.returns.given
        if declared is not None and given is not None and not isinstance(self.environment.resolver, ArchiveNames):
            return as_python_has(declared, given)
        result = declared or self.returns.merged or NONE
        if not is_declared:
            infer_result(result)
        return result

    def _emit_parameters(self, definition: Def, schema: FunctionSchema, self_binding: SelfBinding | None) -> None:
        for position, (param, argument) in enumerate(zip(definition.params, schema.arguments, strict=True)):
            name = param.name.name
            value = self.graph.add_input(name if is_meaningful(name) else "", argument.type)
            if position == 0 and self_binding is not None:
                self.environment.assign(name, param.name.range, self_binding.sugared(value))
            else:
                self.environment.assign_value(name, param.name.range, value)
            if argument.assumed:
                self.assumed[name] = param.name.range

    def _close(self, definition: Def) -> None:
        """The end of the body: an implied ``return None`` where it can be reached."""
        if self.has_exited:
            if self.returns.merged is None:
                self.returns.merged = self.returns.declared or NONE
            return
        declared = self.returns.declared
        if self.returns.is_uncertain:
            return
        if declared is not None and not NONE.is_subtype_of(declared):
            raise TypeMismatchError(
                f"the function is declared to return {declared.annotation}, but not every path returns a value",
                definition.name.range,
            )
        nothing = NoneLiteral(Tree(NoneLiteral.KIND, definition.range))
        self._emit_return(Return.create(definition.range, nothing))

    def _erase_empty_list_literals(self) -> None:
        """``[]`` that nothing gave a type is a list of Tensors."""
        for node in self.graph.find_nodes("prim::EmptyListLiteral"):
            if node.has_uses:
                made = self.graph.create("prim::ListConstruct", types=[ListType(TENSOR)], range=node.range)
                made.insert_before(node)
                node.replace_all_uses_with(made)
                made.output.copy_metadata(node.output)
            node.destroy()

    # -------------------------------------------------------------------------------------- statements

    def emit_statements(self, statements: list[Stmt]) -> None:
        for statement in statements:
            place = self.place
            # No function of its own: nested statements would take twice as much of Python's stack.
            try:
                emit = self._STATEMENTS.get(statement.tree.kind)
                if emit is None:
                    raise UnsupportedError(f"'{statement.tree.kind}' statements are not supported", statement.range)
                emit(self, statement.tree)
            except Exception as error:
                self._give_up_statement(statement, error, place)
            if self.has_exited:
                return  # what follows is never reached, and need not even compile

    def _give_up_statement(self, statement: Stmt, error: Exception, place: Place) -> None:
        """Go on after a statement that could not be compiled. What it was to assign is given up, too."""
        if self._raises_as_python(statement, error, place):
            return
        emit = self._STATEMENTS.get(statement.tree.kind)
        if emit is None or statement.tree.kind in _COMPOUND:
            self.recover(error, place)
        else:
            self.recover(error, place, statement.tree, partial(emit, self, statement.tree))
        for name in assigned_names([statement]):
            self.environment.give_up(name)
        if self.self_binding is not None and assigns_attribute(statement.tree):
            self.self_binding.type.is_incomplete = True
        kind = statement.tree.kind
        if kind == Assert.KIND:
            self.give_up_condition(Assert(statement.tree).test)
        if kind in (Return.KIND, Raise.KIND):
            self.mark_exited()
        elif may_leave([statement]):
            self.returns.is_uncertain = True

    def _emit_expression_statement(self, tree: Tree) -> None:
        expr = ExprStmt(tree).expr
        if expr.tree.kind in (StringLiteral.KIND, "dots"):
            return  # a docstring, or a body that is left out
        generator = self.generator_of(expr, ())
        if generator is not None:  # nobody asks for its elements
            self.emit_sugared(generator.generators[0].iterable)
            return
        self.emit_sugared(expr, 0)

    def _emit_pass(self, tree: Tree) -> None:
        pass

    def _emit_nonlocal(self, tree: Tree) -> None:
        for name in Nonlocal(tree).names:
            if self.environment.find_local(name) is None and not self.environment.is_own(name):
                raise UndefinedNameError(f"no function around this one has assigned '{name}'", tree.range)

    def _emit_local_class(self, tree: Tree) -> None:
        statement = LocalClass(tree)
        if define_class is None:
            raise UnsupportedError("classes within functions are not supported here", tree.range)
        found = define_class(self.resolver, statement, self.graph)
        self.environment.assign(statement.name, tree.range, found)

    def _emit_break(self, tree: Tree) -> None:
        self.emit_jump("break", tree.range)

    def _emit_continue(self, tree: Tree) -> None:
        self.emit_jump("continue", tree.range)

    def _emit_delete(self, tree: Tree) -> None:
        for target in Delete(tree).targets:
            if target.tree.kind == Var.KIND:
                name = Var(target.tree).name.name
                self.environment.lookup(name, target.range)
                self._check_deletion(name, target.range)
                self.environment.forget(name, tree.range)
            elif target.tree.kind == Subscript.KIND:
                subscript = Subscript(target.tree)
                if len(subscript.indices) == 1 and subscript.indices[0].tree.kind == "slice":
                    base = self.emit_expression(subscript.value)
                    if isinstance(base.type, ListType):
                        nothing = self.insert_node("prim::ListConstruct", tree.range, [], [base.type]).output
                        self.assign_slice(tree.range, subscript, base, nothing, deleted=True)
                        continue
                base = self.emit_expression(subscript.value)
                indices = self.indices_of(subscript, base)
                if len(indices) != 1 or indices[0].tree.kind == "slice":
                    raise UnsupportedError("only one element can be deleted at a time", target.range)
                index = self.as_position(self.emit_expression(indices[0]), base.type)
                base = self.present(base, target.range, "'NoneType' object does not support item deletion")
                places = (subscript.value.range, indices[0].range)
                arguments = [self.argument(*item) for item in zip((base, index), places, strict=True)]
                if self.forgets_missing(base.type):
                    self.from_library("discard", tree.range, base, index)
                    continue
                delete = MagicMethod("__delitem__", BuiltinFunction("aten::Delete"))
                delete.call(Call(tree.range, self.graph, arguments, targets=0))
            else:
                raise UnsupportedError("this cannot be deleted", target.range)

    def _check_deletion(self, name: str, range: SourceRange) -> None:
        attempt, variable = self.environment.tried, self.environment.frame.variable(name)
        if attempt is None:
            return
        attempt.set_flag(self.graph, variable, self.graph.insert_constant(False, range=range), range)
        if attempt.outer.find_type(variable) is not None or attempt.outer.find_partial(variable) is not None:
            raise UnsupportedError(
                f"'{name}' was assigned outside of this try block, and cannot be deleted in it", range
            )

    def _emit_local_function(self, tree: Tree) -> None:
        definition = Def(tree)
        body = definition.body
        if not isinstance(self.resolver, ArchiveNames):
            self.environment.assign(definition.name.name, definition.name.range, self.local_function(definition))
            return
        if definition.params or body[-1].tree.kind != Return.KIND:
            raise UnsupportedError("a function within a function takes nothing here and ends in a return", tree.range)

        def emit() -> Value:
            self.emit_statements(body[:-1])
            return self.emit_expression(Return(body[-1].tree).value)

        name = definition.name.name
        self.environment.assign(name, tree.range, ForkedFunction(name, emit))

    def run_in_place(
        self, function: LocalFunction, meanings: Mapping[str, SugaredValue], range: SourceRange
    ) -> SugaredValue:
        definition = function.function.definition
        environment = self.environment
        saved = self.resolver
        own = local_names(definition)
        result: SugaredValue
        frame = environment.push_hiding(own, is_function=True)
        frame.hidden.update(function.variables)
        environment.begin_function(own.difference(meanings), range)
        self.resolver = environment.resolver = function.function.resolver
        try:
            for name, meaning in meanings.items():
                environment.assign(name, range, meaning)
            *body, last = definition.body
            if last.tree.kind != Return.KIND:
                self.emit_statements(definition.body)
                result = SimpleValue(self.graph.insert_constant(None, range=range))
            else:
                self.emit_statements(body)
                result = self._result_in_place(Return(last.tree), definition)
        finally:
            outer = environment.frame = frame.parent or frame
            self.resolver = environment.resolver = saved
        environment.keep_nonlocals(frame)
        if not isinstance(result, SimpleValue):
            # It may be a function, which reads the variables of the one that has made it.
            outer.types.update(frame.types)
            outer.sugared.update(frame.sugared)
        return result

    def _result_in_place(self, statement: Return, definition: Def) -> SugaredValue:
        if definition.return_type is None:
            return self.emit_sugared(statement.value)
        declared = parse_type_expression(definition.return_type, self.resolver)
        return SimpleValue(self._as_declared(self.emit_expression(statement.value, declared), declared, statement))

    def _as_declared(self, value: Value, declared: Type, statement: Return) -> Value:
        """What is returned, as the function declares it."""
        if number_beside_tensor(value.type) is not None and without_none(declared) == TENSOR:
            value = self.present(value, statement.range, _other_result(value.type, declared))
        if not (value.type == NONE and declared == TENSOR):
            value = convert_value(self.graph, value, declared, statement.range)
        if not value.type.is_subtype_of(declared) and present(value.type).is_subtype_of(declared):
            value = self.present(value, statement.range, _no_result(declared))
        elif isinstance(declared, TupleType) and value.node.kind == "prim::TupleConstruct":
            value = self.with_present_items(
                value, declared, statement.range, lambda given: _other_result(given, declared)
            )
        if not value.type.is_subtype_of(declared):
            self.learn_type(statement.value, declared)
            raise TypeMismatchError(
                f"the function is declared to return {declared.annotation}, "
                f"but this returns {value.type.annotation}{mismatch_note(value.type, declared)}",
                statement.range,
            )
        lost = lost_class(value.type, declared)
        if lost is not None:
            raise TypeMismatchError(f"the function gives {declared.annotation}, and {lost}", statement.range)
        return value

    # ----------------------------------------------------------------------------------- raise, assert

    def _emit_raise(self, tree: Tree) -> None:
        statement = Raise(tree)
        if statement.value.tree.kind == _AssertionFailure.KIND:
            self._emit_assertion_failure(_AssertionFailure(statement.value.tree), statement.range)
            return
        if statement.value.tree.kind == Caught.KIND:
            self.raise_again(caught_exception(self.caught, statement.range), statement.range)
            return
        found = self.emit_sugared(statement.value)
        if isinstance(found, CaughtException):
            self.raise_again(found.value, statement.range)
            return
        if isinstance(found, ExceptionClass):
            found = found.call(Call(statement.value.range, self.graph))
        if not isinstance(found, ExceptionInstance):
            raise TypeMismatchError(f"only exceptions can be raised, not {found.description}", statement.value.range)
        message = found.message
        if found.is_text:
            self._insert_raise([message, found.class_name], statement.range)
            return
        arguments = message
        if found.count == 1:
            kind = TupleType((message.type,))
            arguments = self.insert_node("prim::TupleConstruct", statement.range, [message], [kind]).output
        text = self.text_of(message, statement.range)
        self._insert_raise([text, found.class_name, arguments], statement.range)

    def _insert_raise(self, inputs: list[Value], range: SourceRange) -> None:
        node = self.graph.create("prim::RaiseException", inputs, outputs=0, range=range)
        self.graph.insert_node(node)
        self.mark_exited()

    def _emit_assert(self, tree: Tree) -> None:
        if not __debug__ and not isinstance(self.resolver, ArchiveNames):
            return  # ``python -O``: Python leaves assertions out, what they compute too
        statement = Assert(tree)
        condition = self.emit_condition(statement.test)
        range = statement.range
        failure = Raise.create(range, _AssertionFailure.create(range, statement.message))
        self._emit_branches(range, condition, [], [failure])

    def _emit_assertion_failure(self, failure: _AssertionFailure, range: SourceRange) -> None:
        """TorchScript marks an assertion by how its message begins; it names no class."""
        message = self.graph.insert_constant("AssertionError: ", range=range)
        if failure.message is not None:
            said = self.emit_expression(failure.message)
            if said.type != STRING:
                said = self.text_of(said, failure.message.range)
            message = self.insert("aten::add", range, message, said)
        self._insert_raise([message, self.graph.insert_constant(None, range=range)], range)

    # ------------------------------------------------------------------------------------------ return

    def _emit_return_statement(self, tree: Tree) -> None:
        self._emit_return(Return(tree))

    def _forget_any(self, type: Type, range: SourceRange) -> None:
        """Have the function return what it is found to return, though it declares ``Any``: the IR knows a
        ``torch.Size`` from a list, and a dtype from an int, by their types alone."""
        if self.returns.merged is not None:
            raise TypeMismatchError(
                f"the function is declared to return Any, and returns {type.annotation} here and something else before",
                range,
                hint="leave the declaration of the result away",
            )
        self.returns.declared = None

    def _emit_return(self, statement: Return) -> None:
        declared = self.returns.declared
        value = self.emit_expression(statement.value, declared)
        if declared is not None and self.returns.merged is None and _differs_in_length(value.type, declared):
            declared = self.returns.declared = None  # ``-> tuple[Tensor]`` of what gives two: Python does not mind
        if declared is not None and self.returns.merged is None and value.type.is_subtype_of(declared):
            if isinstance(declared, (ListType, DictType)) and lost_class(value.type, declared) is not None:
                declared = self.returns.declared = value.type  # ``-> Dict[str, int]`` of what gives a Counter
        if declared == ANY and differs_in_python(value.type) and not isinstance(self.resolver, ArchiveNames):
            self._forget_any(value.type, statement.range)
            declared = None
        if declared is not None:
            if declared is self.evidence.result and not value.type.is_subtype_of(declared):
                self._learn_wanted(statement.value, value.type, declared)
                self.evidence.learn_result(union((declared, value.type)))
            value = self._as_declared(value, declared, statement)
            self.returns.merged = declared
            before = self.returns.given
            self.returns.given = value.type if before is None else unify(before, value.type) or declared
            if value.type != declared and (declared == ANY or declared is self.evidence.result):
                # So that returns on different paths have one type.
                value = self.insert_node("prim::unchecked_cast", statement.range, [value], [declared]).output
        else:
            before = self.returns.merged
            merged = value.type if before is None else unify(before, value.type)
            if merged is None and before is not None and self.graph.none_checks is not None:
                merged = join_numbers(before, value.type)
                if merged is not None and not value.type.is_subtype_of(merged):
                    value = self.as_number(value, statement.range)
            if merged is None:
                assert before is not None
                self.evidence.learn_result(union((unshaped(before), unshaped(value.type))))
            if before is None and self.returns.announce is not None:
                self.returns.announce(unshaped(merged))
            self.returns.merged = merged
        self.leave_with(value, statement.range)

    def _learn_wanted(self, expr: Expr, type: Type, wanted: Type) -> None:
        """A ``type`` is returned, and callers want to put into it what a ``wanted`` holds.

        Raises:
            Reinference: what is returned is to be of that type, or cannot be.
        """
        if wanted != wanted_result():
            return
        origin = self.environment.origin_of(expr)
        if origin is not None:
            self.evidence.learn_contents(origin, unshaped(type), wanted)
        fix_result()
        self.evidence.result = None
        raise Reinference

    def _raises_as_python(self, statement: Stmt, error: Exception, place: Place) -> bool:
        """Whether ``statement`` reads a name that has no value, in a branch into which no attribute of the module
        leads; then it is emitted as what Python raises."""
        missing = error.missing if isinstance(error, UndefinedNameError) else None
        if not self.is_unexpected or missing is None or statement.tree.kind in _COMPOUND:
            return False
        block = place.insert_point.owning_block
        if missing.block is not block or self.graph.insert_point.owning_block is not block:
            return False  # only a part of the statement reads it, which may not run
        said = [self.graph.insert_constant(each, range=statement.range) for each in (missing.text, missing.class_name)]
        self._insert_raise(said, statement.range)
        return True

    # ---------------------------------------------------------------------------------------------- if

    def _emit_if(self, tree: Tree) -> None:
        statement = If(tree)
        condition = self.attempt(lambda: self.emit_condition(statement.condition), statement.condition.tree)
        if condition is None:
            condition = self._unknown_condition(statement)
        if condition is not None:
            self._emit_expected(statement, condition)

    def _emit_expected(self, statement: If, condition: Condition) -> None:
        """The branches; of the one into which the module's attributes do not lead, what can be compiled."""
        branches = [self._branch(statement.range, body) for body in (statement.true_branch, statement.false_branch)]
        if condition.static is None and self.graph.none_checks is not None:
            taken = expected(condition.value)
            if taken is not MISSING:
                other = 1 if taken else 0
                body = (statement.true_branch, statement.false_branch)[other]
                if body:
                    branches[other] = Branch(partial(self._emit_unexpected, body), branches[other].range)
        self.emit_choice(statement.range, condition, *branches)

    def _emit_unexpected(self, statements: list[Stmt]) -> None:
        """Statements that do not run as the module's attributes are. Where they cannot be compiled, they raise."""
        saved, self.diagnostics = self.diagnostics, Diagnostics()
        was_unexpected, self.is_unexpected = self.is_unexpected, True
        before = self.graph.insert_point.prev
        try:
            with self.keeping_if(lambda: not self.diagnostics.has_failed):
                self.attempt(partial(self.emit_statements, statements))
            told = self.diagnostics
        finally:
            self.diagnostics, self.is_unexpected = saved, was_unexpected
        if not told.has_failed:
            return
        while self.graph.insert_point.prev is not before:
            self.graph.insert_point.prev.destroy()
        range = statements[0].range
        why = told.problems[0].message.partition("\n")[0] if told.problems else "it needs what could not be compiled"
        text = f"this branch was not compiled, because no attribute of the module led here: {why}"
        self._insert_raise([self.graph.insert_constant(item, range=range) for item in (text, _NOT_COMPILED)], range)

    def _unknown_condition(self, statement: If) -> Condition | None:
        """A condition to go on with where that of ``statement`` could not be compiled; None if a branch may be one that
        would not be compiled either."""
        branches = [*statement.true_branch, *statement.false_branch]
        if self._may_be_static(statement.condition):
            for name in assigned_names([statement.condition, *branches]):
                self.environment.give_up(name)
            self.returns.is_uncertain |= may_leave(branches)
            return None
        self.give_up_condition(statement.condition)
        return Condition(self.insert_node("prim::Uninitialized", statement.range, [], [BOOL]).output)

    def _may_be_static(self, expr: Expr) -> bool:
        """Whether a part of a condition that could not be compiled may decide it for the compiler."""
        if expr.tree.kind in ("and", "or", "not"):
            return any(self._may_be_static(Expr(part)) for part in expr.tree.subtrees())
        saved, self.diagnostics = self.diagnostics, Diagnostics()
        try:
            found = self.attempt(lambda: self.emit_condition(expr))
        finally:
            self.diagnostics = saved
        return asks_compiler(expr) if found is None else found.static is not None

    def _emit_branches(
        self, range: SourceRange, condition: Condition, if_true: list[Stmt], if_false: list[Stmt]
    ) -> None:
        self.emit_choice(range, condition, self._branch(range, if_true), self._branch(range, if_false))

    def _branch(self, range: SourceRange, statements: list[Stmt]) -> Branch:
        return Branch(partial(self.emit_statements, statements), statements[0].range if statements else range)

    def _emit_given_up(self, tree: Tree) -> None:
        """What is not supported, and has been told: look into the blocks within it. When and whether they run is not
        known, and so nothing of the variables that they assign but in the first."""
        statement = GivenUp(tree)
        names = {*statement.names, *assigned_names([statement])}
        lost = names - {name for block in statement.blocks for name in assigned_names(block)}
        for block in statement.blocks:
            with self.inside(self.insert_node("prim::If", tree.range, [], []).add_block()) as frame:
                frame.is_lenient = True
                for name in lost:
                    self.environment.give_up(name)
                self.emit_statements(block)
            lost = names
        for name in names:
            self.environment.give_up(name)
        self.returns.is_uncertain |= may_leave([statement])

    # -------------------------------------------------------------------------------------------- with

    def _emit_with(self, tree: Tree) -> None:
        statement = With(tree)
        entered: list[tuple[Value, SourceRange]] = []
        for item in statement.items:
            if self.attempt(partial(self._emit_with_item, item, entered)) is None and item.target is not None:
                for name in target_names(item.target):
                    self.environment.give_up(name)
        self.emit_statements(statement.body)
        for context, range in reversed(entered):
            # TorchScript says Tensor, whatever __exit__ gives; nobody reads it.
            self.insert_node("prim::Exit", range, [context], [TENSOR])

    def _emit_with_item(self, item: WithItem, entered: list[tuple[Value, SourceRange]]) -> Value:
        context = self.emit_expression(item.context)
        result = enter(self, context, item.context)
        entered.append((context, item.context.range))
        if item.target is not None:
            self._assign(item.target, SimpleValue(result), item.context.range)
        return result

    _STATEMENTS: Final[dict[str, Callable[[FunctionEmitter, Tree], None]]] = {
        "assign": lambda self, tree: self.emit_assign(Assign(tree)),
        "aug_assign": lambda self, tree: self.emit_aug_assign(AugAssign(tree)),
        "while": lambda self, tree: self.emit_while(While(tree)),
        "for": lambda self, tree: self.emit_for(For(tree)),
        "expression_statement": _emit_expression_statement,
        "pass": _emit_pass,
        "nonlocal": _emit_nonlocal,
        "local_import": AttemptEmitter.emit_import,
        "local_class": _emit_local_class,
        "break": _emit_break,
        "continue": _emit_continue,
        "delete": _emit_delete,
        "raise": _emit_raise,
        "assert": _emit_assert,
        "return": _emit_return_statement,
        "if": _emit_if,
        "with": _emit_with,
        "try": lambda self, tree: self.emit_try(Try(tree)),
        "given_up": _emit_given_up,
        "def": _emit_local_function,
    }
