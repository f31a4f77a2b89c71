"""What computes the elements of a generator one by one: ``any``, ``next``, ``in``, ``zip`` and ``enumerate`` of one."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Final

from rekindle.errors import SourceRange, UnsupportedError
from rekindle.frontend.assignedness import join
from rekindle.frontend.generators import LAZY, flattened
from rekindle.frontend.loops import LoopEmitter
from rekindle.frontend.recovery import target_names
from rekindle.frontend.refinement import Refinements
from rekindle.frontend.sugared import SugaredValue
from rekindle.frontend.values import SimpleValue
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import BOOL, FunctionType, Type, unshaped
from rekindle.syntax.desugaring import hidden
from rekindle.syntax.views import BinOp, Comprehension, Const, Expr, GeneratorExpr, Ident, Var

_CONSTANT: Final = frozenset({Const.KIND, "true", "false", "none", "string_literal"})


class GeneratedValue(SugaredValue):
    """``(element for target in iterable)``: each element is computed where a loop comes to it."""

    def __init__(
        self, emitter: GeneratorEmitter, element: Expr, generator: Comprehension, source: SugaredValue
    ) -> None:
        self.emitter = emitter
        self.element = element
        self.generator = generator
        self.source = source

    @property
    def description(self) -> str:
        return "a generator"

    @property
    def gone_over(self) -> list[Value]:
        return self.source.gone_over

    def iterator(self, range: SourceRange, graph: Graph) -> SugaredValue:
        return self

    @property
    def static_length(self) -> int | None:
        return self.source.static_length

    @property
    def must_unroll(self) -> bool:
        return self.source.must_unroll

    def length(self, range: SourceRange, graph: Graph) -> Value:
        return self.source.length(range, graph)

    def item(self, range: SourceRange, graph: Graph, index: Value, type_hint: Type | None = None) -> SugaredValue:
        item = self.source.item(range, graph, index)
        return self.emitter.element_of(self.element, self.generator.target, item)


class GeneratorEmitter(LoopEmitter):
    """Emits what goes over generators."""

    def begun(self, expr: Expr, later: Expr) -> Expr:
        """Evaluate what Python evaluates of an iterable before ``later``: all, or the first iterable of a generator.
        The iterable that is returned reads that part from a variable."""
        if later.tree.kind in _CONSTANT:
            return expr
        generator = self.generator_of(expr, LAZY)
        return self._kept_source(expr) if generator is None else self.begun_generator(generator)

    def begun_generator(self, generator: GeneratorExpr) -> GeneratorExpr:
        """The generator with its first iterable evaluated."""
        first, *others = generator.generators
        begun = Comprehension.create(first.range, first.target, self._kept_source(first.iterable), first.conditions)
        return GeneratorExpr(GeneratorExpr.create(generator.range, generator.element, [begun, *others]).tree)

    def _kept_source(self, iterable: Expr) -> Expr:
        source = hidden(iterable.range, "source")
        self.assign_targets([source], [self.emit_sugared(iterable)], iterable.range)
        return source

    def elements_of(self, expr: Expr) -> SugaredValue:
        """What ``expr`` iterates over, beside others. Elements of generators are computed where their turn comes.

        Raises:
            UnsupportedError: they have effects, and could only be computed beforehand.
        """
        generator = self.generator_of(expr)
        if generator is None:
            return self.emit_sugared(expr).iterator(expr.range, self.graph)
        generators = flattened(generator.generators, self.generator_of)
        if len(generators) == 1 and not generators[0].conditions:
            source = self.emit_sugared(generators[0].iterable).iterator(generators[0].iterable.range, self.graph)
            return GeneratedValue(self, generator.element, generators[0], source)
        before = self.graph.insert_point.prev
        listed = self.emit_expression(generator)
        node = before.next
        while node is not self.graph.insert_point:
            if has_effects(node, listed):
                raise UnsupportedError(
                    "the elements of this generator do more than give values, and would be computed too early here",
                    expr.range,
                    hint="make a list of it first: [… for …]; or loop over it alone",
                )
            node = node.next
        return SimpleValue(listed).iterator(expr.range, self.graph)

    def element_of(self, element: Expr, target: Expr, item: SugaredValue) -> SugaredValue:
        hidden = self.environment.push_hiding(target_names(target), is_function=True)
        try:
            self.assign_targets([target], [item], target.range)
            return SimpleValue(self.emit_expression(element))
        finally:
            assert self.environment.pop() is hidden

    def until_true(self, expr: GeneratorExpr, condition: Callable[[], Value]) -> Value:
        """Whether ``condition``, which is emitted for each element, holds for one. The first one ends it."""
        range = expr.range
        found = self.environment.hidden_variable("found")
        self.environment.store(found, range, self.graph.insert_constant(False, range=range), BOOL)

        def body() -> None:
            # It runs as long as none was found.
            self.environment.store(found, range, condition(), BOOL)

        self.nest(expr.generators, body, is_function=True, until=found)
        return self.environment.load(found, BOOL, found)

    def first_of(self, expr: GeneratorExpr, other: Value | None) -> Value:
        """The first element. Where there is none, ``other``; it raises where that is None."""
        range, environment = expr.range, self.environment
        found, first = environment.hidden_variable("found"), environment.hidden_variable("first")
        environment.store(found, range, self.graph.insert_constant(False, range=range), BOOL)
        types: list[Type] = []

        def body() -> None:
            value = self.emit_expression(expr.element)
            types.append(unshaped(value.type))
            environment.store(first, range, value, value.type)
            environment.store(found, range, self.graph.insert_constant(True, range=range), BOOL)

        def missing() -> Value:
            if other is not None:
                return other
            said = [self.graph.insert_constant(text, range=range) for text in ("", "builtins.StopIteration")]
            self.graph.insert_node(self.graph.create("prim::RaiseException", said, outputs=0, range=range))
            return self.insert_node("prim::Uninitialized", range, [], [result]).output

        self.nest(expr.generators, body, is_function=True, until=found)
        if not types:  # over no modules, or an empty tuple
            return missing()
        environment.guarded.add(first)
        result = reduce(join, types)
        is_found = environment.load(found, BOOL, found)
        node, taken, default = self.branch(
            range, is_found, Refinements(), lambda: environment.load(first, result, first), missing
        )
        return node.add_output(join(taken.type, unshaped(default.type)))

    def among_generated(self, expr: BinOp, generator: GeneratorExpr) -> Value:
        """``x in (f(v) for v in xs)``, which ends with the first element that equals x."""
        sought = self.environment.hidden_variable("sought")
        value = self.emit_expression(expr.lhs)
        self.environment.store(sought, expr.range, value, value.type)
        name = Var.create(expr.lhs.range, Ident.create(expr.lhs.range, sought))
        equal = BinOp.create(expr.range, "==", generator.element, name)
        return self.until_true(generator, lambda: self.emit_condition(equal).value)


_DEEDS: Final = frozenset(
    {"prim::Print", "prim::SetAttr", "prim::RaiseException", "prim::CallMethod", "prim::PythonOp"}
)


def has_effects(node: Node, result: Value) -> bool:
    """Whether a node does more than compute values, as far as is known. Writing to ``result`` does not count."""
    if node.kind in _DEEDS:
        return True
    if node.kind == "prim::CallFunction":
        callee = node.inputs[0].type
        if not isinstance(callee, FunctionType) or not callee.function.is_defined:
            return True
        return _block_has_effects(callee.function.graph.block, result)
    schema = node.schema
    if schema is not None and schema.is_mutable:
        for value, argument in zip(node.inputs, schema.arguments, strict=False):
            if argument.alias is not None and argument.alias.is_write and value is not result:
                return True
    return any(_block_has_effects(block, result) for block in node.blocks)


def _block_has_effects(block: Block, result: Value) -> bool:
    return any(has_effects(node, result) for node in block.nodes)
