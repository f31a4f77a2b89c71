"""Loops that compute the elements of a generator when they need them: for ``any``, ``next``, ``in``, ``zip`` and
``enumerate``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Final

from rekindle.errors import SourceRange, UnsupportedError
from rekindle.frontend.emitter import Emitter
from rekindle.frontend.expressions.conditions import emit_condition
from rekindle.frontend.expressions.generators import LAZY, flattened
from rekindle.frontend.scopes.refinement import RefinementSet
from rekindle.frontend.ssa.assignedness import join
from rekindle.frontend.statements.error_recovery import target_names
from rekindle.frontend.statements.loops import generator_of, nest
from rekindle.frontend.sugared_values.base import SugaredValue
from rekindle.frontend.sugared_values.iterables import DerivedIterable
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.graph_function import called_function
from rekindle.ir.types import BOOL, Type, unshaped
from rekindle.syntax.desugaring import hidden
from rekindle.syntax.views import BinOp, Comprehension, Const, Expr, GeneratorExpr, Ident, Var

_CONSTANT: Final = frozenset({Const.KIND, "true", "false", "none", "string_literal"})


class GeneratedValue(DerivedIterable):
    """``(element for target in iterable)``: each element is computed when a loop reaches it."""

    description = "a generator"

    def __init__(self, emitter: Emitter, element: Expr, generator: Comprehension, source: SugaredValue) -> None:
        self.emitter = emitter
        self.element = element
        self.generator = generator
        self.source = source

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None = None) -> SugaredValue:
        item = self.source.item(range, graph, index)
        return element_of(self.emitter, self.element, self.generator.target, item)


def begun(emitter: Emitter, expr: Expr, later: Expr) -> Expr:
    """Evaluate those parts of the iterable ``expr`` that Python evaluates before ``later``: the first iterable of a
    generator, or all of another iterable. Return ``expr`` with variables instead of these parts; unchanged if ``later``
    is a constant."""
    if later.tree.kind in _CONSTANT:
        return expr
    generator = generator_of(emitter, expr, LAZY)
    return _kept_source(emitter, expr) if generator is None else begun_generator(emitter, generator)


def begun_generator(emitter: Emitter, generator: GeneratorExpr) -> GeneratorExpr:
    """Evaluate the first iterable of a generator, and return the generator with a variable instead."""
    first, *others = generator.generators
    begun = Comprehension.create(first.range, first.target, _kept_source(emitter, first.iterable), first.conditions)
    return GeneratorExpr(GeneratorExpr.create(generator.range, generator.element, [begun, *others]).tree)


def _kept_source(emitter: Emitter, iterable: Expr) -> Expr:
    source = hidden(iterable.range, "source")
    emitter.language.assign(emitter, [source], [emitter.emit_sugared(iterable)], iterable.range)
    return source


def elements_of(emitter: Emitter, expr: Expr) -> SugaredValue:
    """Return the iterable ``expr`` for a loop over several iterables. The elements of a generator are computed one by
    one if it has one loop without conditions, and else beforehand.

    Raises:
        UnsupportedError: computing the elements beforehand would have effects too early.
    """
    generator = generator_of(emitter, expr)
    if generator is None:
        return emitter.emit_sugared(expr).iterator(expr.range, emitter.graph)
    generators = flattened(generator.generators, partial(generator_of, emitter))
    if len(generators) == 1 and not generators[0].conditions:
        source = emitter.emit_sugared(generators[0].iterable).iterator(generators[0].iterable.range, emitter.graph)
        return GeneratedValue(emitter, generator.element, generators[0], source)
    before = emitter.graph.insert_point.prev
    listed = emitter.emit_expression(generator)
    node = before.next
    while node is not emitter.graph.insert_point:
        if has_effects(node, listed):
            raise UnsupportedError(
                "the elements of this generator do more than give values, and would be computed too early here",
                expr.range,
                hint="make a list of it first: [… for …]; or loop over it alone",
            )
        node = node.next
    return SimpleValue(listed).iterator(expr.range, emitter.graph)


def element_of(emitter: Emitter, element: Expr, target: Expr, item: SugaredValue) -> SugaredValue:
    hidden = emitter.environment.push_hiding(target_names(target), is_function=True)
    try:
        emitter.language.assign(emitter, [target], [item], target.range)
        return SimpleValue(emitter.emit_expression(element))
    finally:
        assert emitter.environment.pop() is hidden


def until_true(emitter: Emitter, expr: GeneratorExpr, condition: Callable[[], Value]) -> Value:
    """Emit a loop over the generator ``expr`` that ends with the first element for which ``condition`` returns true.
    Return whether there was one, as a bool value."""
    range = expr.range
    found = emitter.environment.hidden_variable("found")
    emitter.environment.store(found, range, emitter.graph.insert_constant(False, range=range), BOOL)

    def body() -> None:
        # It runs as long as none was found.
        emitter.environment.store(found, range, condition(), BOOL)

    nest(emitter, expr.generators, body, is_function=True, until=found)
    return emitter.environment.load(found, BOOL, found)


def first_of(emitter: Emitter, expr: GeneratorExpr, other: Value | None) -> Value:
    """Emit the first element of a generator, and return it. If the generator has none, the value is ``other``, or the
    emitted code raises StopIteration if ``other`` is None."""
    range, environment = expr.range, emitter.environment
    found, first = environment.hidden_variable("found"), environment.hidden_variable("first")
    environment.store(found, range, emitter.graph.insert_constant(False, range=range), BOOL)
    types: list[Type] = []

    def body() -> None:
        value = emitter.emit_expression(expr.element)
        types.append(unshaped(value.type))
        environment.store(first, range, value, value.type)
        environment.store(found, range, emitter.graph.insert_constant(True, range=range), BOOL)

    def missing() -> Value:
        if other is not None:
            return other
        said = [emitter.graph.insert_constant(text, range=range) for text in ("", "builtins.StopIteration")]
        emitter.graph.insert_node(emitter.graph.create("prim::RaiseException", said, outputs=0, range=range))
        return emitter.insert_node("prim::Uninitialized", range, [], [result]).output

    nest(emitter, expr.generators, body, is_function=True, until=found)
    if not types:  # over no modules, or an empty tuple
        return missing()
    environment.guarded.add(first)
    result = reduce(join, types)
    is_found = environment.load(found, BOOL, found)
    node, taken, default = emitter.branch(
        range, is_found, RefinementSet(), lambda: environment.load(first, result, first), missing
    )
    return node.add_output(join(taken.type, unshaped(default.type)))


def among_generated(emitter: Emitter, expr: BinOp, generator: GeneratorExpr) -> Value:
    """Emit ``x in (f(v) for v in xs)`` as a loop that ends with the first element that equals x."""
    sought = emitter.environment.hidden_variable("sought")
    value = emitter.emit_expression(expr.lhs)
    emitter.environment.store(sought, expr.range, value, value.type)
    name = Var.create(expr.lhs.range, Ident.create(expr.lhs.range, sought))
    equal = BinOp.create(expr.range, "==", generator.element, name)
    return until_true(emitter, generator, lambda: emit_condition(emitter, equal).value)


def has_effects(node: Node, result: Value) -> bool:
    """Return whether a node may have effects other than computing its results. Changes to ``result`` and warnings are
    excluded."""
    operator = node.operator
    if node.kind == "prim::CallMethod" or (operator and operator.has_side_effects and node.kind != "aten::warn"):
        return True
    if node.kind == "prim::CallFunction":
        callee = called_function(node)
        return callee is None or not callee.is_defined or _block_has_effects(callee.graph.block, result)
    if operator is not None and operator.schema.is_mutable:
        for value, argument in zip(node.inputs, operator.schema.arguments, strict=False):
            if argument.alias is not None and argument.alias.is_write and value is not result:
                return True
    return any(_block_has_effects(block, result) for block in node.blocks)


def _block_has_effects(block: Block, result: Value) -> bool:
    return any(has_effects(node, result) for node in block.nodes)
