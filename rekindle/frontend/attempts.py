"""``try``: what is tried runs in a graph of its own, and says how it was left.

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

What the body assigns to a variable from around it goes to a list of one element as well, so that the handlers know what
was assigned before the exception. ``prim::Try`` gives 0 where control came to the end of the body, a number for each
other way to leave it, and -1 with the exception where one came out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import Final

from rekindle.errors import CompileError, SourceRange, UndefinedNameError, UnsupportedError
from rekindle.frontend.assignedness import FLAG, Partial, stored_types
from rekindle.frontend.branches import Branch, BranchEmitter
from rekindle.frontend.emission import LoopKind
from rekindle.frontend.environment import Frame
from rekindle.frontend.recovery import assigned_names
from rekindle.frontend.refinement import Condition
from rekindle.frontend.special_forms import CaughtException
from rekindle.frontend.sugared import GIVEN_UP, Resolver, SugaredValue
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import ANY, BOOL, INT, ListType, Type, unify
from rekindle.syntax.tree import Tree
from rekindle.syntax.views import Handler, LocalImport, Stmt, Try

import_object: Callable[[Resolver, LocalImport, Graph], SugaredValue] | None = None
"""A slot: what an import within a function means. :mod:`rekindle.scripting.resolver` fills it."""

_RETURN: Final = 1
_JUMPS: Final = {"break": 2, "continue": 3}
"""How the body was left, where neither at its end nor by an exception."""


@dataclass(slots=True)
class Cell:
    """A list of one element: what a variable is, wherever control leaves the body of a ``try``."""

    made: Node
    type: Type
    writes: list[Node]

    def write(self, graph: Graph, value: Value, type: Type, range: SourceRange) -> None:
        zero = graph.insert_constant(0, range=range)
        node = graph.create("aten::_set_item", [self.made.output, zero, value], types=[ListType(type)], range=range)
        self.writes.append(graph.insert_node(node))
        joined = unify(self.type, type, default_to_union=True)
        assert joined is not None
        self.type = joined

    def finish(self) -> None:
        """Settle the type, which every write may have widened."""
        self.made.output.type = ListType(self.type)
        self.writes = [each for each in self.writes if not each.is_destroyed]  # those of branches that are left out
        for node, offset in ((self.made, 0), *((write, 2) for write in self.writes)):
            value = node.inputs[offset]
            if value.type != self.type:
                cast = node.graph.create("prim::unchecked_cast", [value], types=[self.type], range=node.range)
                node.replace_input(offset, cast.insert_before(node).output)
        for write in self.writes:
            write.output.type = ListType(self.type)

    def read(self, graph: Graph, range: SourceRange) -> Value:
        zero = graph.insert_constant(0, range=range)
        node = graph.create("aten::__getitem__", [self.made.output, zero], types=[self.type], range=range)
        return graph.insert_node(node).output


@dataclass(slots=True)
class Attempt:
    """The body of a ``try`` that is being compiled, or has been."""

    node: Node
    outer: Frame
    """What is known around it."""
    loop: LoopKind
    """The loop around it, which its jumps leave or go on with."""
    cells: dict[str, Cell] = field(default_factory=dict)
    """Those of variables from around it, and of others that are there at its end."""
    returned: Cell | None = None
    jumps: list[str] = field(default_factory=list)
    new: dict[str, Type] = field(default_factory=dict)
    """The types that variables have at the end of the body, where control gets there."""
    ends: bool = True
    """Whether control may get to the end of the body."""
    tree: int = 0
    """The statement, by the identity of its tree."""
    watched: Set[str] = frozenset()
    """Variables of the body of which it matters whether it has assigned them before it raised."""
    flags: dict[str, Cell] = field(default_factory=dict)
    """Whether it has, for each of them."""
    assigned: dict[str, Type] = field(default_factory=dict)
    """What the variables are that the body may assign and that are not known around it."""

    def note(
        self,
        graph: Graph,
        name: str,
        value: Value,
        type: Type,
        range: SourceRange,
        assigned: Value | None = None,
    ) -> None:
        """``value`` is assigned to the variable ``name``, which may be one from around the body. ``assigned`` says at
        run time whether it really is; None: it is."""
        known = self.outer.find_type(name)
        if known is None:
            if name in self.watched:
                self._note_watched(graph, name, value, type, range, assigned)
            return
        cell = self.cells.get(name)
        if cell is None:
            with graph.inserting_before(self.node):
                load = graph.create("prim::Load", types=[known], attributes={"name": name}, range=range)
                cell = self.cells[name] = self.make_cell(graph, graph.insert_node(load).output, range)
        cell.write(graph, value, type, range)

    def _note_watched(
        self, graph: Graph, name: str, value: Value, type: Type, range: SourceRange, assigned: Value | None
    ) -> None:
        if name not in self.flags:
            before = self.outer.find_partial(name)
            with graph.inserting_before(self.node):
                if before is None:
                    self.cells[name] = self.empty_cell(graph, type, range)
                    flag = graph.insert_constant(False, range=range)
                else:
                    self.cells[name] = self.make_cell(graph, _load(graph, name, before.type, range), range)
                    flag = _load(graph, FLAG + name, BOOL, range)
                self.flags[name] = self.make_cell(graph, flag, range)
        self.cells[name].write(graph, value, type, range)
        self.set_flag(graph, name, graph.insert_constant(True, range=range) if assigned is None else assigned, range)

    def set_flag(self, graph: Graph, name: str, assigned: Value, range: SourceRange) -> None:
        """From here on the variable is ``assigned``, or not."""
        if name in self.flags:
            self.flags[name].write(graph, assigned, BOOL, range)

    def make_cell(self, graph: Graph, value: Value, range: SourceRange) -> Cell:
        made = graph.create("prim::ListConstruct", [value], types=[ListType(value.type)], range=range)
        return Cell(made.insert_before(self.node), value.type, [])

    def empty_cell(self, graph: Graph, type: Type, range: SourceRange) -> Cell:
        nothing = graph.create("prim::Uninitialized", types=[type], range=range).insert_before(self.node)
        return self.make_cell(graph, nothing.output, range)


def _load(graph: Graph, name: str, type: Type, range: SourceRange) -> Value:
    return graph.insert_node(graph.create("prim::Load", types=[type], attributes={"name": name}, range=range)).output


def caught_exception(caught: Sequence[Value], range: SourceRange) -> Value:
    """The exception that ``raise`` alone raises again.

    Raises:
        UnsupportedError: none is being handled.
    """
    if not caught:
        raise UnsupportedError(
            "'raise' without an exception stands outside of a handler",
            range,
            hint='say what is raised: raise RuntimeError("…")',
        )
    return caught[-1]


class AttemptEmitter(BranchEmitter):
    """Emits ``try``, and what leaves its body."""

    caught: tuple[Value, ...] = ()
    """The exceptions that are being handled, the innermost last."""

    # ------------------------------------------------------------------------------------------ leaving

    def leave_with(self, value: Value, range: SourceRange) -> None:
        """Return ``value`` from the function."""
        attempt = self.environment.tried
        if attempt is None:
            self.graph.insert_node(self.graph.create("prim::ReturnStmt", [value], outputs=0, range=range))
            self.mark_exited()
            return
        if attempt.returned is None:
            attempt.returned = attempt.empty_cell(self.graph, value.type, range)
        attempt.returned.write(self.graph, value, value.type, range)
        self._leave_attempt(_RETURN, range)

    def emit_jump(self, word: str, range: SourceRange) -> None:
        """``break`` and ``continue``"""
        attempt = self.environment.tried
        if self.loop is LoopKind.NONE and attempt is not None:
            with self.in_loop(attempt.loop):
                self.check_jump(word, range)
            if word not in attempt.jumps:
                attempt.jumps.append(word)
            self._leave_attempt(_JUMPS[word], range)
            return
        self.check_jump(word, range)
        self.insert_node(f"prim::{word.capitalize()}Stmt", range, [], [])
        self.mark_exited()

    def _leave_attempt(self, how: int, range: SourceRange) -> None:
        code = self.graph.insert_constant(how, range=range)
        self.graph.insert_node(self.graph.create("prim::ReturnStmt", [code], outputs=0, range=range))
        self.mark_exited()

    def raise_again(self, error: Value, range: SourceRange) -> None:
        self.graph.insert_node(self.graph.create("prim::RaiseException", [error], outputs=0, range=range))
        self.mark_exited()

    # --------------------------------------------------------------------------------------- statements

    def emit_import(self, tree: Tree) -> None:
        """An import within the function, which is made when the function is compiled."""
        statement = LocalImport(tree)
        if import_object is None:
            raise UnsupportedError("imports within functions are not supported here", tree.range)
        found = import_object(self.resolver, statement, self.graph)
        self.environment.assign(statement.name, tree.range, found)

    def emit_try(self, statement: Try) -> None:
        decided = self._without_imports(statement)
        if decided is not None:
            self.emit_statements(decided)
        elif statement.final:
            self._emit_final(statement)
        else:
            self._emit_handled(statement)

    def _without_imports(self, statement: Try) -> list[Stmt] | None:
        """What is left to do of a ``try`` that begins with imports: the compiler makes them, and knows whether a
        handler runs. None where it begins otherwise."""
        imports = list(takewhile(lambda each: each.tree.kind == LocalImport.KIND, statement.body))
        if not imports:
            return None
        try:
            for each in imports:
                self.emit_import(each.tree)
        except UndefinedNameError as error:
            handler = self._handler_of(error.__cause__, statement.handlers)
            if handler is None or handler.name:
                raise
            return [*handler.body, *statement.final]
        rest = statement.body[len(imports) :]
        if not rest:
            return [*statement.otherwise, *statement.final]
        return [Try.create(statement.range, rest, statement.handlers, statement.otherwise, statement.final)]

    def _handler_of(self, error: BaseException | None, handlers: Sequence[Handler]) -> Handler | None:
        """The handler that takes an import's error."""
        if not isinstance(error, ImportError):
            return None
        raised = {f"builtins.{cls.__name__}" for cls in type(error).__mro__}
        for handler in handlers:
            if handler.type is None:
                return handler
            if raised.intersection(self._exception_classes(self.emit_sugared(handler.type), handler.type.range)):
                return handler
        return None

    def _emit_handled(self, statement: Try) -> None:
        """``try``, ``except``, ``else``"""
        range = statement.range
        attempt = self._try(statement, partial(self.emit_statements, statement.body))
        error = attempt.node.outputs[1]

        def handle() -> None:
            self._restore(attempt, range)
            self._restore_partial(attempt, range)
            self._emit_handlers(statement.handlers, error, range)

        def go_on() -> None:
            self._restore_partial(attempt, range)
            if attempt.jumps or attempt.returned is not None:
                self._restore(attempt, range)
                self._leave_as(attempt, range)
            if not self.has_exited:
                self._define(attempt, range)
                self.emit_statements(statement.otherwise)

        if not attempt.ends and not attempt.jumps and attempt.returned is None:
            handle()  # the body always raises
            return
        failed = Condition(self.insert("aten::lt", range, attempt.node.outputs[0], 0))
        self.emit_choice(range, failed, Branch(handle, range), Branch(go_on, range))

    def _emit_final(self, statement: Try) -> None:
        """``finally``, which stands once and runs however what is before it was left."""
        range = statement.range

        def tried() -> None:
            if statement.handlers:
                self._emit_handled(statement)
            else:
                self.emit_statements(statement.body)

        attempt = self._try(statement, tried)
        how, error = attempt.node.outputs
        self._restore(attempt, range)
        self._restore_partial(attempt, range)
        self.emit_statements(statement.final)
        if self.has_exited:
            return
        if not attempt.ends and not attempt.jumps and attempt.returned is None:
            self.raise_again(error, range)
            return
        failed = Condition(self.insert("aten::lt", range, how, 0))
        raising = Branch(partial(self.raise_again, error, range), range)
        self.emit_choice(range, failed, raising, self._nothing(range))
        self._leave_as(attempt, range)
        if not self.has_exited:
            self._define(attempt, range, assigned_names(statement.final))

    def _emit_handlers(self, handlers: Sequence[Handler], error: Value, range: SourceRange) -> None:
        """The first handler that takes the exception; where none does, it is raised again."""
        if not handlers:
            self.raise_again(error, range)
            return
        first, *others = handlers
        run = partial(self._emit_handler, first, error)
        if first.type is None:
            run()
            return
        named = first.type
        condition = self.attempt(lambda: Condition(self.is_exception(error, named)), named.tree)
        if condition is None:
            condition = Condition(self.insert_node("prim::Uninitialized", range, [], [BOOL]).output)
        otherwise = Branch(partial(self._emit_handlers, others, error, range), range)
        self.emit_choice(first.range, condition, Branch(run, first.range), otherwise)

    def _emit_handler(self, handler: Handler, error: Value) -> None:
        saved, self.caught = self.caught, (*self.caught, error)
        try:
            if handler.name:
                self._lose_outer(handler)
                self.environment.define_static(handler.name, CaughtException(error))
            self.emit_statements(handler.body)
        finally:
            self.caught = saved
        if handler.name and isinstance(self.environment.find_static(handler.name), CaughtException):
            self.environment.forget(handler.name, handler.range)

    def _lose_outer(self, handler: Handler) -> None:
        """At its end a handler deletes the name of its exception, also where a handler around it has given it."""
        frame = self.environment.frame.find(handler.name)
        if frame is not None and isinstance(frame.sugared.get(handler.name), CaughtException):
            del frame.sugared[handler.name]
            frame.undefined_because[handler.name] = "a handler within this one has the same name, and deletes it"

    # ------------------------------------------------------------------------------------------ the body

    def _try(self, statement: Try, emit: Callable[[], None]) -> Attempt:
        """What ``emit`` emits, tried: a part of the statement."""
        environment, range = self.environment, statement.range
        node = self.insert_node("prim::Try", range, [], [INT, ANY])
        block = node.add_block()
        saved, loop = environment.tried, self.loop
        left = saved.loop if loop is LoopKind.NONE and saved is not None else loop
        watched = {name for tree, name in self.evidence.watched if tree == id(statement.tree)}
        if saved is not None:
            watched |= saved.watched  # the body around learns of assignments here from the cells of this one
        attempt = Attempt(node, environment.frame, left, tree=id(statement.tree), watched=watched)
        environment.tried, self.loop = attempt, LoopKind.NONE
        try:
            with self.inside(block) as frame:
                emit()
                attempt.ends = not self.has_exited
                if attempt.ends:
                    self._keep_new(attempt, frame, range)
                block.add_output(self.graph.insert_constant(0, range=range))
        except CompileError:
            node.destroy()
            raise
        finally:
            environment.tried, self.loop = saved, loop
        environment.keep_origins([frame])
        for name, value in frame.sugared.items():
            if value is GIVEN_UP:
                environment.give_up(name)
            else:
                environment.frame.undefined_because[name] = (
                    f"{value.description} exists only while compiling, so that no try block can give it"
                )
        if environment.checks_assignment:
            self._note_assigned(attempt, statement, block)
        for cell in (*attempt.cells.values(), *attempt.flags.values()):
            cell.finish()
        if attempt.returned is not None:
            attempt.returned.finish()
        return attempt

    def _keep_new(self, attempt: Attempt, frame: Frame, range: SourceRange) -> None:
        """At the end of the body: what it has assigned for the first time, and anew, also in loops within it."""
        assigned = {name: type for name in attempt.cells if (type := attempt.outer.find_type(name)) is not None}
        for name, type in (assigned | frame.types).items():
            if name in attempt.cells:
                attempt.new[name] = type
            elif attempt.outer.find_type(name) is None:
                attempt.new[name] = type
                attempt.cells[name] = attempt.empty_cell(self.graph, type, range)
                value = self.environment.load(name, type, name)
                attempt.cells[name].write(self.graph, value, type, range)

    def _note_assigned(self, attempt: Attempt, statement: Try, block: Block) -> None:
        """What the body has assigned that may not be known around it."""
        stored = stored_types(block)
        for name in sorted(assigned_names([statement])):
            variable = self.environment.frame.variable(name)
            if variable in stored and attempt.outer.find(variable) is None:
                attempt.assigned[variable] = stored[variable]

    # ------------------------------------------------------------------------------------- and behind it

    def _restore(self, attempt: Attempt, range: SourceRange) -> None:
        """Variables from around the body hold what it has assigned to them, wherever it was left."""
        for name, cell in attempt.cells.items():
            if attempt.outer.find_type(name) is not None:
                self._store(name, cell.read(self.graph, range), cell.type, range)

    def _restore_partial(self, attempt: Attempt, range: SourceRange) -> None:
        """Other variables may have been assigned, wherever the body was left."""
        environment = self.environment
        for name, type in attempt.assigned.items():
            partial = Partial(type, frozenset({attempt.tree}))
            before = environment.frame.find_partial(name)
            flag = attempt.flags.get(name)
            if flag is not None:
                value = attempt.cells[name].read(self.graph, range)
                assigned = flag.read(self.graph, range)
                environment.store(name, range, value, value.type)
                environment.set_flag(name, assigned, range)
                if environment.tried is not None:
                    environment.tried.note(self.graph, name, value, value.type, range, assigned)
            environment.frame.set_partial(name, partial if before is None else partial.joined(before))

    def _define(self, attempt: Attempt, range: SourceRange, but: set[str] | None = None) -> None:
        """Control came to the end of the body: all variables hold what they did there, ``but`` those."""
        for name, type in attempt.new.items():
            if but is not None and name in but:
                continue
            value = attempt.cells[name].read(self.graph, range)
            if value.type != type:
                value = self.insert_node("prim::unchecked_cast", range, [value], [type]).output
            self._store(name, value, type, range)

    def _store(self, name: str, value: Value, type: Type, range: SourceRange) -> None:
        self.environment.store(name, range, value, type)
        if self.environment.tried is not None:
            self.environment.tried.note(self.graph, name, value, type, range)

    def _leave_as(self, attempt: Attempt, range: SourceRange) -> None:
        """Leave as the body was left, where neither at its end nor by an exception."""
        how = attempt.node.outputs[0]
        ways: list[tuple[int, Callable[[], None]]] = []
        returned = attempt.returned
        if returned is not None:
            ways.append((_RETURN, lambda: self.leave_with(returned.read(self.graph, range), range)))
        ways += [(_JUMPS[word], partial(self.emit_jump, word, range)) for word in attempt.jumps]
        for index, (code, leave) in enumerate(ways):
            if not attempt.ends and index == len(ways) - 1:
                leave()
                return
            condition = Condition(self.insert("aten::eq", range, how, code))
            self.emit_choice(range, condition, Branch(leave, range), self._nothing(range))

    def _nothing(self, range: SourceRange) -> Branch:
        return Branch(lambda: None, range)
