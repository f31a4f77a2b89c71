"""Functions within functions, and lambdas, which read the variables of the enclosing function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rekindle.errors import SourceRange, UnsupportedError
from rekindle.frontend.calls.generic import GenericFunction
from rekindle.frontend.statements.error_recovery import names_given_by, walk_scope
from rekindle.frontend.statements.results import as_declared
from rekindle.frontend.sugared_values.base import FlattenedValue, Keywords, SugaredValue
from rekindle.frontend.sugared_values.functions import SugaredFunction
from rekindle.frontend.sugared_values.values import SimpleValue, parts_of_all
from rekindle.frontend.type_expressions import parse_type_expression
from rekindle.ir.graph import Graph
from rekindle.syntax.tree import Tree
from rekindle.syntax.views import Def, Ident, Lambda, Nonlocal, Return, Stmt, Var

if TYPE_CHECKING:
    from rekindle.frontend.emitter import Emitter


def definition_of_lambda(expr: Lambda) -> Def:
    """Return the definition of a function that does what the lambda does."""
    range = expr.range
    body: list[Stmt] = [Return.create(expr.body.range, expr.body)]
    return Def.create(range, Ident.create(range, "_lambda"), expr.params, None, body)


def local_names(definition: Def) -> set[str]:
    """Return the local variables of the function."""
    trees = _trees_of(definition)
    names = {param.name.name for param in definition.params} | names_given_by(trees)
    return names.difference(_nonlocal_names(trees))


def nonlocal_names(definition: Def) -> set[str]:
    """Return the variables that the function declares ``nonlocal``."""
    return _nonlocal_names(_trees_of(definition))


def _nonlocal_names(trees: list[Tree]) -> set[str]:
    return {name for tree in trees if tree.kind == Nonlocal.KIND for name in Nonlocal(tree).names}


def _trees_of(definition: Def) -> list[Tree]:
    """Return the trees of the function's body, without those of inner functions."""
    return [tree for statement in definition.body for tree in walk_scope(statement.tree)]


def free_names(definition: Def) -> set[str]:
    """Return the free variables of the function: the names that it reads and does not assign, and its nonlocal
    variables."""
    return set(_free(definition.tree))


def _free(tree: Tree) -> Iterator[str]:
    """Yield the free variables of a nested definition or lambda, each as often as it is read."""
    definition = definition_of_lambda(Lambda(tree)) if tree.kind == Lambda.KIND else Def(tree)
    own = local_names(definition)
    yield from nonlocal_names(definition)
    for statement in definition.body:
        for part in walk_scope(statement.tree):
            if part.kind == Var.KIND:
                names: Iterator[str] = iter((Var(part).name.name,))
            elif part.kind in (Def.KIND, Lambda.KIND):
                names = _free(part)
            else:
                continue
            yield from (name for name in names if name not in own)


def runs_in_place(definition: Def) -> bool:
    """Return whether the body can be inlined into the caller: its only return, if it has one, is its last statement."""
    returns = [tree for statement in definition.body for tree in walk_scope(statement.tree) if tree.kind == Return.KIND]
    last = definition.body[-1].tree
    return not returns or (len(returns) == 1 and returns[0] is last)


def default_of(name: str) -> str:
    """Return the name of the variable in a recursive function that holds the default of the parameter ``name``."""
    return f"${name}"


def itself_within(function: GenericFunction, emitter: Emitter) -> LocalFunction | None:
    """Return the sugared value of a local function within its own body, where it can call itself; None if it does not
    read its own name."""
    definition = function.definition
    free = free_names(definition)
    if definition.name.name not in free:
        return None
    defaults: dict[str, SugaredValue] = {}
    for param in definition.params:
        name = param.name.name
        found = emitter.environment.find_variable(default_of(name), name)
        if found is not None:
            defaults[name] = found
    return LocalFunction(function, emitter, {name: name for name in free}, defaults)


class LocalFunction(SugaredFunction):
    """A function defined within the one that is being compiled, or passed to that as an argument. ``variables`` maps
    the names that it captures to the emitter's variables."""

    def __init__(
        self,
        function: GenericFunction,
        emitter: Emitter,
        variables: Mapping[str, str],
        defaults: Mapping[str, SugaredValue],
    ) -> None:
        self.function = function
        self.emitter = emitter
        self.variables = variables
        self.defaults = defaults

    @property
    def description(self) -> str:
        return f"the function '{self.function.name}'"

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        bound = self.function.bind(range, graph, args, kwargs, self.defaults)
        definition = self.function.definition
        if not self.calls_itself and runs_in_place(definition):
            return run_in_place(self.emitter, self, bound, range)
        changed = sorted(nonlocal_names(definition))
        if changed:
            raise UnsupportedError(
                f"{self.description} assigns the nonlocal variable '{changed[0]}', so that it must return at its end "
                "only, and must not call itself",
                range,
                hint="return the new value, and assign it where the function is called",
            )
        defaults = {default_of(name): value for name, value in self.defaults.items()} if self.calls_itself else {}
        return self.function.call_compiled(range, graph, {**self.captured(range), **defaults, **bound})

    @property
    def calls_itself(self) -> bool:
        return self.function.definition.name.name in self.variables

    def captured(self, range: SourceRange) -> dict[str, SugaredValue]:
        """Return the current sugared values of the captured variables, and read them. Names that are not variables, and
        the function itself, are omitted.

        Raises:
            UnsupportedError: a variable may be unassigned.
        """
        found: dict[str, SugaredValue] = {}
        environment = self.emitter.environment
        for name, variable in self.variables.items():
            sugared = environment.find_variable(variable, name)
            if sugared is None and environment.may_be_unassigned(name, variable):
                raise UnsupportedError(
                    f"{self.description} reads '{name}', which may not have been assigned here",
                    range,
                    hint="assign it before, or let the function return at its end only and call it by its name",
                )
            if sugared is not None and not (isinstance(sugared, LocalFunction) and sugared.function is self.function):
                found[name] = sugared  # itself it knows in any case
        return found

    def flatten(self, range: SourceRange, graph: Graph) -> FlattenedValue:
        changed = sorted(nonlocal_names(self.function.definition))
        if changed:
            raise UnsupportedError(
                f"{self.description} assigns the nonlocal variable '{changed[0]}', and cannot be passed to a function: "
                "that would assign a variable of its own",
                range,
                hint="return the new value, and assign it where the function is called",
            )
        captured, defaults = self.captured(range), self.defaults
        names = tuple(captured)

        def join(values: list[SugaredValue]) -> SugaredValue:
            around = dict(zip(names, values, strict=False))
            given = dict(zip(defaults, values[len(names) :], strict=True))
            return PassedFunction(self.function, around, given)

        items = [*captured.values(), *defaults.values()]
        inner = parts_of_all(LocalFunction, range, graph, items, join, (self.function, names))

        def rebuild(values: Sequence[object], emitter: Emitter) -> SugaredValue:
            passed = inner.unflatten(values, emitter)  # type: ignore[arg-type]
            assert isinstance(passed, PassedFunction)
            return passed.within(emitter)

        return FlattenedValue(inner.key, inner.values, rebuild)


class PassedFunction(SugaredValue):
    """A local function that is passed to another function as an argument. Its captured variables are sugared values
    there."""

    def __init__(
        self, function: GenericFunction, around: Mapping[str, SugaredValue], defaults: Mapping[str, SugaredValue]
    ) -> None:
        self.function = function
        self.around = around
        self.defaults = defaults

    def within(self, emitter: Emitter) -> LocalFunction:
        """Return the function as a local function of ``emitter``, and assign its captured variables to new variables
        there."""
        variables = {name: emitter.environment.hidden_variable(name) for name in self.around}
        range = self.function.definition.name.range
        for name, sugared in self.around.items():
            emitter.environment.assign(variables[name], range, sugared)
        return LocalFunction(self.function, emitter, variables, self.defaults)


def run_in_place(
    emitter: Emitter, function: LocalFunction, parameters: Mapping[str, SugaredValue], range: SourceRange
) -> SugaredValue:
    """Inline a call of a local function: emit its body, and return its result. ``parameters`` are the sugared values of
    its parameters."""
    definition = function.function.definition
    environment = emitter.environment
    saved = emitter.resolver
    own = local_names(definition)
    result: SugaredValue
    frame = environment.push_hiding(own, is_function=True)
    frame.hidden.update(function.variables)
    environment.begin_function(own.difference(parameters), range)
    emitter.resolver = environment.resolver = function.function.resolver
    try:
        for name, sugared in parameters.items():
            environment.assign(name, range, sugared)
        *body, last = definition.body
        if last.tree.kind != Return.KIND:
            emitter.emit_statements(definition.body)
            result = SimpleValue(emitter.graph.insert_constant(None, range=range))
        else:
            emitter.emit_statements(body)
            result = _result_in_place(emitter, Return(last.tree), definition)
    finally:
        outer = environment.frame = frame.parent or frame
        emitter.resolver = environment.resolver = saved
    environment.keep_nonlocals(frame)
    if not isinstance(result, SimpleValue):
        # It may be a function, which reads the variables of the one that has made it.
        outer.types.update(frame.types)
        outer.sugared.update(frame.sugared)
    return result


def _result_in_place(emitter: Emitter, statement: Return, definition: Def) -> SugaredValue:
    if definition.return_type is None:
        return emitter.emit_sugared(statement.value)
    declared = parse_type_expression(definition.return_type, emitter.resolver)
    return SimpleValue(as_declared(emitter, emitter.emit_expression(statement.value, declared), declared, statement))
