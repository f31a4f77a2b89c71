"""Transforms a graph for one example into a graph for a batch.

.. code-block:: text

    graph(%x : Tensor, %w : Tensor):              graph(%x : Tensor, %w : Tensor):
      %0 : int = prim::Constant[value=0]()          %0 : int = prim::Constant[value=1]()
      %1 : Tensor = aten::select(%x, %0, %0)  →     %1 : Tensor = aten::select(%x, %0, %zero)
      %2 : Tensor = aten::sigmoid(%w)               %2 : Tensor = aten::sigmoid(%w)
      %3 : Tensor = aten::mul(%1, %2)               %3 : Tensor = aten::mul(%1, %2)
      return (%3)                                   return (%3)

A tensor that differs between the examples has them as its first dimension; one that does not stays as it is, and what
is computed of such alone is computed once. A number that differs is a tensor with one number for each example; a list,
a tuple or a dict has tensors that all differ.

An operator is computed by its rule (:mod:`rekindle.transforms.vmap.rules`), and without one by a loop over the
examples. Where examples take different branches, or leave loops at different times, each is computed with the examples
that take it and no others, so that nothing is computed, and no error raised, that an example alone would not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import torch

from rekindle.analysis.effects import is_nondeterministic, may_write
from rekindle.analysis.mutability import may_contain_tensor
from rekindle.analysis.type_propagation import propagate_types
from rekindle.autodiff.reverse_mode.tape import draws_nothing
from rekindle.errors import BatchingError, SourceRange
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import INT, NONE, STRING, TENSOR, DictType, ListType, OptionalType, TensorType, Type
from rekindle.ops.registration.traits import queried_properties
from rekindle.transforms.vmap.batched_scalars import is_number, word_of
from rekindle.transforms.vmap.batchedness import (
    BatchednessAnalysis,
    is_for_each,
    is_structural,
    may_be_uninitialized,
    written_by,
)
from rekindle.transforms.vmap.batching_rule import BatchingRule, helper, rule_of
from rekindle.transforms.vmap.loop_fallbacks import EXAMPLES_OF, REASON, LoopFallback
from rekindle.transforms.vmap.rules.metadata import UNCHANGED

Randomness = Literal["error", "same", "different"]

_LIST: Final = ListType(TENSOR)
_OPTIONAL: Final = OptionalType(TENSOR)
_DICT: Final = DictType(STRING, TENSOR)
_GRADIENTS: Final = ListType(ListType(_OPTIONAL))
"""Type of the gradients that PyTorch's autograd returns for the arguments of an operator."""


class NeedsLoopFallback(Exception):
    """Raised if a part of the program can only be computed by a loop over the examples around the whole program; states
    the part and its location."""

    def __init__(self, reason: str, range: SourceRange) -> None:
        super().__init__(reason)
        self.reason = reason
        self.range = range


@dataclass(slots=True)
class Batch:
    """The batched values at a point of the program. ``size`` is the number of examples; ``values`` maps values of the
    original program to their batched values. ``outer`` is the batch of the enclosing region of the new graph, None
    for the outermost one."""

    size: Value
    values: dict[Value, Value]
    outer: Batch | None = None
    choose: Callable[[Value, Value], Value] | None = None
    """Maps a value of the program and its counterpart in ``outer`` to its counterpart in this graph."""


@dataclass(slots=True)
class Batcher:
    """A writer of the batched form of ``source`` at the insertion point of ``graph``."""

    source: Graph
    graph: Graph
    randomness: Randomness
    spread: BatchednessAnalysis
    looped: list[LoopFallback] = field(default_factory=list)
    by_rule: list[str] = field(default_factory=list)
    _types: dict[Value, Type] | None = None

    # ---------------------------------------------------------------------------------------------------- what is known

    def is_batched(self, value: Value) -> bool:
        return value in self.spread.batched

    def as_computed(self, batch: Batch, value: Value) -> Value:
        """Return the batched value of ``value``, with a leading batch dimension only if it differs between examples.
        For a value of an outer batch, nodes may be inserted that choose the examples of ``batch``."""
        found = batch.values.get(value)
        if found is None:
            found = batch.values[value] = self._from_outside(batch, value)
        return found

    def _from_outside(self, batch: Batch, value: Value) -> Value:
        """Return ``value`` of the outer batch as a value of ``batch``. The result is not cached in the outer batch,
        since the nodes inserted here are not visible everywhere in it."""
        assert batch.outer is not None, f"%{value.name} is not known"
        found = batch.outer.values.get(value)
        if found is None:
            found = self._from_outside(batch.outer, value)
        return batch.choose(value, found) if self.is_batched(value) and batch.choose is not None else found

    def as_batched(self, batch: Batch, value: Value) -> Value:
        """Return the batched value of ``value``, with a leading batch dimension, for which nodes may be inserted. None
        and values that hold neither tensors nor numbers have none.

        Raises:
            NeedsLoopFallback: the variable may not have been assigned, or values of its type cannot be expanded.
        """
        found = self.as_computed(batch, value)
        if self.is_batched(value):
            return found
        if value.node.kind == "prim::Uninitialized":
            return self._insert("prim::Uninitialized", [], TENSOR if is_number(value.type) else _general(value.type))
        if may_be_uninitialized(value):
            raise NeedsLoopFallback(
                "a variable that is the same for all examples may not have been assigned", value.node.range
            )
        return self.expanded(batch, value.type, found)

    def expanded(self, batch: Batch, type: Type, value: Value, *, own: bool = False) -> Value:
        """Return ``value``, which is the same for all examples, with a batch dimension in front. Numbers become
        tensors; None and values that hold no tensor are returned unchanged. With ``own``, each example has memory of
        its own in tensors, and lists and dicts of them, which may be written to.

        Raises:
            NeedsLoopFallback: values of its type cannot be expanded.
        """
        if value.type == NONE or not (may_contain_tensor(type) or is_number(type)):
            return value
        if is_number(type):
            dtype = {"int": 4, "float": 7, "bool": 11}[str(type)]
            sizes = self._insert("prim::ListConstruct", [batch.size], ListType(INT))
            return self.graph.insert("aten::full", [sizes, value], {"dtype": dtype})
        if isinstance(type, TensorType):
            return self.call("own_for_each" if own else "same_for_all", value, batch.size)
        if isinstance(type, ListType) and isinstance(type.element, TensorType):
            return self.call("own_list_for_each" if own else "same_list_for_all", value, batch.size)
        if _DICT.accepts(type):
            return self.call("own_dict_for_each" if own else "same_dict_for_all", value, batch.size)
        if isinstance(type, OptionalType) and isinstance(type.element, TensorType):
            return self.call("same_optional_for_all", value, batch.size)
        if ListType(_OPTIONAL).accepts(type):
            return self.call("same_optional_list_for_all", value, batch.size)
        raise NeedsLoopFallback(
            f"a {type.annotation} that is the same for all examples is needed for each", value.node.range
        )

    def call(self, name: str, *values: Value) -> Value:
        """Insert a call of the helper function ``name``, and return its result."""
        (result,) = self.graph.insert_graph(helper(name), values)
        return result

    def run(self, name: str, *values: Value) -> None:
        """Insert a call of the helper function ``name``, which only checks something and may raise."""
        self.graph.insert_graph(helper(name), values)

    def _insert(self, kind: str, inputs: Sequence[Value], *types: Type) -> Value:
        node = self.graph.insert_node(self.graph.create(kind, inputs, types=list(types)))
        return node.outputs[0]

    # ------------------------------------------------------------------------------------------------------------ nodes

    def block(self, block: Block, batch: Batch) -> None:
        """Write the batched form of the nodes in ``block``."""
        for node in block.nodes:
            self.node(node, batch)

    def node(self, node: Node, batch: Batch) -> None:
        before = self.graph.insert_point.prev
        self._node(node, batch)
        each = before.next
        while each is not self.graph.insert_point:
            if not each.range.is_known:
                each.range, each.callstack, each.scope = node.range, node.callstack, node.scope
            each = each.next
        for output in node.outputs:
            made = batch.values[output]
            if output.has_name and not made.has_name and made.node.owning_block is not None:
                made.set_name(output.base_name)

    def _node(self, node: Node, batch: Batch) -> None:
        if self.randomness == "error" and self._is_random(node) and not draws_nothing(node):
            raise BatchingError(
                f"{node.kind} draws random numbers",
                node.range,
                hint="say randomness='different' for numbers of its own for each example, or randomness='same'",
            )
        if node.kind == "prim::If":
            self._if(node, batch)
        elif node.kind == "prim::Loop":
            self._loop(node, batch)
        elif not any(self.is_batched(value) for value in (*node.used_values(), *node.outputs)):
            self._clone(node, batch, self.as_computed)
        elif self._is_random(node):
            self._random(node, batch)
        elif not any(self.is_batched(value) for value in node.used_values()):
            self._clone(node, batch, self.as_computed)
            for output in node.outputs:
                if self.is_batched(output):
                    batch.values[output] = self.expanded(
                        batch, output.type, batch.values[output], own=output in self.spread.written
                    )
        elif node.blocks or node.kind == "prim::fork":
            raise NeedsLoopFallback(f"{node.kind} has no rule", node.range)
        elif node.kind in UNCHANGED:
            self._clone(node, batch, self.as_computed)
        elif is_structural(node):
            self._pass_on(node, batch)
        else:
            self._by_rule_or_loop(node, batch)

    def _clone(self, node: Node, batch: Batch, value_of: Callable[[Batch, Value], Value]) -> Node:
        return self.graph.insert_clone(node, batch.values, lambda value: value_of(batch, value))

    def _pass_on(self, node: Node, batch: Batch) -> None:
        if any(is_number(value.type) and self.is_batched(value) for value in (*node.inputs, *node.outputs)):
            raise NeedsLoopFallback("a list of numbers differs between the examples", node.range)
        self._clone(node, batch, self._in_container)

    def _in_container(self, batch: Batch, value: Value) -> Value:
        return self.as_batched(batch, value) if may_contain_tensor(value.type) else self.as_computed(batch, value)

    def _by_rule_or_loop(self, node: Node, batch: Batch) -> None:
        rule = rule_of(node)
        if node.has_trait(Trait.ADDRESSES_STORAGE) and not queried_properties(node.kind):
            raise BatchingError(
                f"{node.kind} reads memory by strides, which are others in a batch",
                node.range,
                hint="select, slice or unfold the tensor instead",
            )
        if rule is None:
            deciding = _DECIDES_SIZES.get(node.kind)
            schema = node.schema
            index = None if schema is None or deciding is None else schema.argument_index(deciding)
            if index is not None and self.is_batched(node.inputs[index]):
                raise NeedsLoopFallback(f"results of {node.kind} differ in size between the examples", node.range)
            self._loop_fallback(node, batch, "there is no rule for it")
        elif not rule.takes_numbers and any(is_number(v.type) and self.is_batched(v) for v in node.inputs):
            self._loop_fallback(node, batch, "a number among its arguments differs between the examples")
        elif node.kind == "aten::index" and self._takes_a_mask(node):
            raise NeedsLoopFallback("results of a mask differ in size between the examples", node.range)
        elif may_write(node) and not all(self.is_batched(value) for value in written_by(node)):
            raise NeedsLoopFallback(f"{node.kind} writes to what is the same for all examples", node.range)
        else:
            self._by_rule(node, rule, batch)

    def _takes_a_mask(self, node: Node) -> bool:
        """Return whether an index is known to be a tensor of bools that differs between the examples."""
        _, indices, *_ = node.inputs
        if not self.is_batched(indices) or indices.node.kind != "prim::ListConstruct":
            return False
        if self._types is None:
            self._types = propagate_types(self.source, [None] * len(self.source.inputs), any_modes=True)
        found = [self._types.get(each) for each in indices.node.inputs if self.is_batched(each)]
        return any(isinstance(type, TensorType) and type.dtype == torch.bool for type in found)

    def _by_rule(self, node: Node, rule: BatchingRule, batch: Batch) -> None:
        named = dict(zip((argument.name for argument in rule.schema.arguments), node.inputs, strict=True))
        batched = {name for name, value in named.items() if self.is_batched(value)}
        arguments: list[Value] = []
        for name in rule.arguments:
            value = named[name]
            if name in batched or not may_contain_tensor(value.type) or not rule.expands(name):
                arguments.append(self.as_computed(batch, value))
            else:
                arguments.append(self.as_batched(batch, value))
                batched.add(name)
        graph = rule.graph(frozenset(batched), same=self.randomness == "same")
        (result,) = self.graph.insert_graph(graph, [*arguments, batch.size])
        results = [result] if len(node.outputs) == 1 else self._unpacked(result)
        for output, made in zip(node.outputs, results, strict=True):
            batch.values[output] = made
        self.by_rule.append(node.kind)

    def _unpacked(self, value: Value) -> list[Value]:
        if value.node.kind == "prim::TupleConstruct":
            return list(value.node.inputs)
        unpack = self.graph.create("prim::TupleUnpack", [value], types=list(value.type.contained))
        return list(self.graph.insert_node(unpack).outputs)

    # ----------------------------------------------------------------------------------------------------------- chance

    def _is_random(self, node: Node) -> bool:
        return not node.blocks and node.operator is not None and is_nondeterministic(node)

    def _random(self, node: Node, batch: Batch) -> None:
        rule = rule_of(node)
        if rule is None:
            if self.randomness == "same" and not draws_nothing(node):
                raise BatchingError(
                    f"{node.kind} has no rule that draws the same numbers for all examples",
                    node.range,
                    hint="draw them before, and pass them with in_dims of None",
                )
            self._loop_fallback(node, batch, "there is no rule for it")
        else:
            self._by_rule(node, rule, batch)

    # ------------------------------------------------------------------------------------------------------- one by one

    def _loop_fallback(self, node: Node, batch: Batch, reason: str) -> None:
        """Compute ``node`` in a loop over the examples.

        Raises:
            NeedsLoopFallback: a result may be None, or is a view of what is written to.
        """
        if any(isinstance(output.type, OptionalType) for output in node.outputs):
            raise NeedsLoopFallback(f"{node.kind} may return None", node.range)
        if self.spread.is_written_view(node):
            raise NeedsLoopFallback(f"{node.kind} returns a view of what is written to", node.range)
        self.looped.append(LoopFallback(node.kind, node.range, reason))
        lists = [self._insert("prim::ListConstruct", [], ListType(output.type)) for output in node.outputs]
        for value in node.inputs:
            self.as_computed(batch, value)  # before the loop: once for all of its iterations
        inner = Batch(batch.size, {}, batch)
        with self.counted(batch.size, node.kind, reason) as index:
            inner.choose = lambda value, found: self.example(value, found, index.value)
            copy = self._clone(node, inner, self.as_computed)
            for gathered, output in zip(lists, copy.outputs, strict=True):
                self._insert("aten::append", [gathered, output], gathered.type)
        for output, gathered in zip(node.outputs, lists, strict=True):
            batch.values[output] = self.stacked(output, gathered)

    def counted(self, size: Value, kind: str, reason: str) -> _Counted:
        """Insert a loop over ``size`` examples, needed for nodes of ``kind`` for the given ``reason``. While the result
        is used in ``with``, new nodes are inserted in the body."""
        return _Counted(self.graph, size, kind, reason)

    def example(self, value: Value, found: Value, index: Value) -> Value:
        """Return the value of one example from the batched value ``found`` of ``value``.

        Raises:
            NeedsLoopFallback: values of its type have no batched form.
        """
        type = value.type
        if is_number(type):
            return self.call(f"example_of_{word_of(type)}", found, index)
        if isinstance(type, TensorType):
            return self.call("example", found, index)
        if _LIST.accepts(type):
            return self.call("example_of_list", found, index)
        if _DICT.accepts(type):
            return self.call("example_of_dict", found, index)
        if type == _OPTIONAL:
            return found if found.type == NONE else self.call("example_of_optional", found, index)
        if ListType(_OPTIONAL).accepts(type):
            return self.call("example_of_optional_list", found, index)
        raise NeedsLoopFallback(f"a {type.annotation} differs between the examples", value.node.range)

    def stacked(self, output: Value, gathered: Value) -> Value:
        """Return the list of results of all examples as one batched value.

        Raises:
            NeedsLoopFallback: results of that type have no batched form.
        """
        type = output.type
        if not self.is_batched(output):
            raise NeedsLoopFallback(f"{output.node.kind} returns a {type.annotation}", output.node.range)
        if is_number(type):
            return self.call(f"stacked_{word_of(type)}", gathered)
        if isinstance(type, TensorType):
            return self.call("stacked", gathered)
        if _LIST.accepts(type):
            return self.call("stacked_lists", gathered)
        if _DICT.accepts(type):
            return self.call("stacked_dicts", gathered)
        if _GRADIENTS.accepts(type):
            return self.call("stacked_gradients", gathered)
        raise NeedsLoopFallback(f"{output.node.kind} returns a {type.annotation}", output.node.range)

    # ----------------------------------------------------------------------------------------------------- control flow

    def _if(self, node: Node, batch: Batch) -> None:
        if self.is_batched(node.input):
            self._if_for_each(node, batch)
            return
        new = self.graph.create("prim::If", [self.as_computed(batch, node.input)], outputs=0)
        self.graph.insert_node(new)
        types: list[list[Type]] = []
        for block in node.blocks:
            inside = new.add_block()
            within = Batch(batch.size, {}, batch)
            self._copy_branch(block, node, within, inside)
            types.append([value.type for value in inside.outputs])
        for output, *sources in zip(node.outputs, *(block.outputs for block in node.blocks), strict=True):
            self._check_type(output, sources)
            batch.values[output] = new.add_output(self._type_of(output)).copy_metadata(output)
            batch.values[output].type = self._type_of(output)

    def _type_of(self, value: Value) -> Type:
        return TENSOR if self.is_batched(value) and is_number(value.type) else _general(value.type)

    def _check_type(self, value: Value, sources: Sequence[Value]) -> None:
        """Check that ``value`` can be batched if one of ``sources``, which may be the same object, differs between
        examples.

        Raises:
            NeedsLoopFallback: ``value`` is of another type, such as an optional number.
        """
        if not self.is_batched(value) and any(map(self.is_batched, sources)):
            raise NeedsLoopFallback(f"a {value.type.annotation} differs between the examples", value.node.range)

    def _check_no_writes(self, node: Node, batch: Batch) -> None:
        if self.spread.is_written_view(node):
            raise NeedsLoopFallback("a view of what is written to is chosen for each example", node.range)
        for block in node.blocks:
            for inner in block.all_nodes():
                if may_write(inner) and not all(_is_made_in(value, block) for value in written_by(inner)):
                    raise NeedsLoopFallback(
                        f"{inner.kind} writes to something where only some examples are", inner.range
                    )

    def _if_for_each(self, node: Node, batch: Batch) -> None:
        """Write an ``if`` whose condition differs between examples: each branch runs for the examples that take it, if
        there are any.

        Raises:
            NeedsLoopFallback: a variable may not have been assigned for some examples.
        """
        self._check_no_writes(node, batch)
        condition = self.as_computed(batch, node.input)
        zero = self.graph.insert_constant(0)
        chosen: list[Value] = []
        results: list[list[Value]] = []
        sizes: list[Value] = []
        for number, block in enumerate(node.blocks):
            wanted = condition if number == 0 else self.graph.insert("aten::logical_not", [condition])
            indices = self.call("where_true", wanted)
            size = self.graph.insert("aten::size", [indices, zero])
            chosen.append(indices)
            sizes.append(size)
            results.append(self._branch(node, block, batch, indices, size))
        for index, output in enumerate(node.outputs):
            if output.has_uses and any(may_be_uninitialized(block.outputs[index]) for block in node.blocks):
                raise NeedsLoopFallback("a variable may not have been assigned for some examples", node.range)
            batch.values[output] = self._merged(node, index, batch, chosen, sizes, results)

    def _copy_branch(self, block: Block, node: Node, within: Batch, target: Block) -> None:
        """Batch ``block``, a branch of ``node``, into ``target``."""
        with self.graph.inserting_at_end(target):
            self.block(block, within)
            found = [
                self.as_batched(within, value) if self.is_batched(output) else self.as_computed(within, value)
                for value, output in zip(block.outputs, node.outputs, strict=True)
            ]
        for value in found:
            target.add_output(value)

    def _branch(self, node: Node, block: Block, batch: Batch, indices: Value, size: Value) -> list[Value]:
        new = self.graph.create("prim::If", [self.graph.insert("aten::gt", [size, 0])], outputs=0)
        self.graph.insert_node(new)
        some, none = new.add_block(), new.add_block()
        within = self.choosing(batch, indices, size)
        self._copy_branch(block, node, within, some)
        with self.graph.inserting_at_end(none):
            for output in node.outputs:
                if isinstance(output.type, OptionalType):
                    none.add_output(self.graph.insert_constant(None, output.type))
                else:
                    none.add_output(self._insert("prim::Uninitialized", [], self._type_of(output)))
        return [new.add_output(self._type_of(output)) for output in node.outputs]

    def choosing(self, batch: Batch, indices: Value, size: Value) -> Batch:
        """Return the batch of the examples with these ``indices``."""
        return Batch(size, {}, batch, lambda value, found: self.chosen(value, found, indices))

    def chosen(self, value: Value, found: Value, indices: Value) -> Value:
        type = value.type
        if isinstance(type, TensorType) or is_number(type):
            return self.call("chosen", found, indices)
        if _LIST.accepts(type):
            return self.call("chosen_list", found, indices)
        if _DICT.accepts(type):
            return self.call("chosen_dict", found, indices)
        if type == _OPTIONAL:
            return found if found.type == NONE else self.call("chosen_optional", found, indices)
        raise NeedsLoopFallback(f"a {type.annotation} differs between the examples", value.node.range)

    def _merged(
        self,
        node: Node,
        index: int,
        batch: Batch,
        chosen: list[Value],
        sizes: list[Value],
        results: Sequence[Sequence[Value]],
    ) -> Value:
        """Return a result of ``node``, an ``if``, for all examples: the results of the two branches, each at its
        example's index.

        Raises:
            NeedsLoopFallback: the branches return values of a type that cannot be merged.
        """
        output = node.outputs[index]
        first, second = results[0][index], results[1][index]
        if isinstance(output.type, TensorType) or is_number(output.type):
            return self._either(
                sizes[1],
                lambda: first,
                lambda: self._either(
                    sizes[0], lambda: second, lambda: self.call("back_in_place", chosen[0], first, chosen[1], second)
                ),
            )
        only = _only_branch(node, index)
        if only is None:
            raise NeedsLoopFallback(
                f"the branches return a {output.type.annotation} for some examples", output.node.range
            )
        found = results[only][index]
        if not self.is_batched(output):
            return found
        if output.type != _OPTIONAL:
            raise NeedsLoopFallback(f"a branch returns a {output.type.annotation} for some examples", output.node.range)
        return self.call("in_place_if_any", found, chosen[only], batch.size)

    def _either(self, size: Value, if_none: Callable[[], Value], otherwise: Callable[[], Value]) -> Value:
        new = self.graph.create("prim::If", [self.graph.insert("aten::eq", [size, 0])], outputs=0)
        self.graph.insert_node(new)
        for make in (if_none, otherwise):
            block = new.add_block()
            with self.graph.inserting_at_end(block):
                value = make()
            block.add_output(value)
        return new.add_output(TENSOR)

    def _loop(self, node: Node, batch: Batch) -> None:
        if is_for_each(node, self.spread.batched):
            self._loop_for_each(node, batch)
            return
        view = LoopView(node)
        block = view.body
        for start, _, following, output in view.carried:
            self._check_type(output, (start, following))
        starts = [
            self.as_batched(batch, start) if self.is_batched(inside) else self.as_computed(batch, start)
            for start, inside, _, _ in view.carried
        ]
        counts = [self.as_computed(batch, value) for value in (view.trip_count, view.condition)]
        new = self.graph.create("prim::Loop", [*counts, *starts], outputs=0, attributes=node.attributes)
        self.graph.insert_node(new)
        inside = new.add_block()
        within = Batch(batch.size, {}, batch)
        within.values[view.iteration] = inside.add_input(type=INT).copy_metadata(view.iteration)
        for value in view.parameters:
            within.values[value] = inside.add_input(type=self._type_of(value))
        with self.graph.inserting_at_end(inside):
            self.block(block, within)
            found = [self.as_computed(within, view.next_condition)]
            for _, carried, value, _ in view.carried:
                found.append(
                    self.as_batched(within, value) if self.is_batched(carried) else self.as_computed(within, value)
                )
        for value in found:
            inside.add_output(value)
        for output in node.outputs:
            batch.values[output] = new.add_output(self._type_of(output))

    def _loop_for_each(self, node: Node, batch: Batch) -> None:
        """Lower a loop whose trip count or condition differs between examples. Each iteration gathers the examples
        whose loop has not ended, computes its body for them, and scatters the results. The loop ends when no example is
        left.

        Raises:
            NeedsLoopFallback: a loop-carried value is neither a tensor nor a number, or may not have been assigned.
        """
        self._check_no_writes(node, batch)
        view = LoopView(node)
        block = view.body
        for value in view.parameters:
            if not (isinstance(value.type, TensorType) or is_number(value.type)):
                raise NeedsLoopFallback(
                    f"a loop that examples leave at different times keeps a {value.type.annotation}", node.range
                )
        if any(map(may_be_uninitialized, view.initial)):
            raise NeedsLoopFallback(
                "a loop that examples leave at different times sets something as it is left", node.range
            )
        graph = self.graph
        limit, go_on = (self.as_batched(batch, value) for value in (view.trip_count, view.condition))
        starts = [self.as_batched(batch, value) for value in view.initial]
        going = self.call(
            "where_true", graph.insert("aten::logical_and", [graph.insert("aten::gt", [limit, 0]), go_on])
        )
        zero, most = graph.insert_constant(0), graph.insert_constant(2**63 - 1)
        some = graph.insert("aten::gt", [graph.insert("aten::size", [going, zero]), 0])
        new = graph.insert_node(graph.create("prim::Loop", [most, some, going, *starts], outputs=0))
        inside = new.add_block()
        number = inside.add_input(type=INT)
        active = inside.add_input(type=TENSOR)
        wholes = [inside.add_input(type=TENSOR) for _ in starts]
        with graph.inserting_at_end(inside):
            size = graph.insert("aten::size", [active, zero])
            within = self.choosing(batch, active, size)
            within.values[view.iteration] = number
            for value, whole in zip(block.inputs[1:], wholes, strict=True):
                within.values[value] = self.call("chosen", whole, active)
            self.block(block, within)
            results = [self.as_batched(within, value) for value in block.outputs[1:]]
            following = [
                graph.insert("aten::index_copy", [whole, zero, active, result])
                for whole, result in zip(wholes, results, strict=True)
            ]
            left = graph.insert(
                "aten::gt", [self.call("chosen", limit, active), graph.insert("aten::add", [number, 1])]
            )
            more = graph.insert("aten::logical_and", [left, self.as_batched(within, block.outputs[0])])
            still = self.call("chosen", active, self.call("where_true", more))
            again = graph.insert("aten::gt", [graph.insert("aten::size", [still, zero]), 0])
        for value in (again, still, *following):
            inside.add_output(value)
        new.add_output(TENSOR)
        for output in node.outputs:
            batch.values[output] = new.add_output(TENSOR)


_DECIDES_SIZES: Final = {
    **dict.fromkeys(("aten::nonzero", "aten::nonzero_numpy", "aten::argwhere", "aten::unique_consecutive"), "self"),
    **dict.fromkeys(("aten::_unique", "aten::_unique2", "aten::unique_dim"), "self"),
    "aten::masked_select": "mask",
    "aten::where": "condition",
    "aten::repeat_interleave": "repeats",
}
"""Operators without rules whose results have sizes that depend on the numbers in an argument, and in which."""


class _Counted:
    """The loop that :meth:`Batcher.counted` inserts, as a context manager."""

    def __init__(self, graph: Graph, size: Value, kind: str, reason: str) -> None:
        self.graph = graph
        true = graph.insert_constant(True)
        attributes = {EXAMPLES_OF: kind, REASON: reason}
        self.node = graph.insert_node(graph.create("prim::Loop", [size, true], outputs=0, attributes=attributes))
        self.body = self.node.add_block()
        self.value = self.body.add_input(type=INT)
        self._inserting = graph.inserting_at_end(self.body)

    def __enter__(self) -> _Counted:
        self._inserting.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self.body.add_output(self.graph.insert_constant(True))
        self._inserting.__exit__(None, None, None)


def _general(type: Type) -> Type:
    return TENSOR if isinstance(type, TensorType) else type


def _only_branch(node: Node, index: int) -> int | None:
    """Return the index of the branch of ``node``, an ``if``, that alone computes the result ``index``: the other branch
    returns None or an undefined value, and all uses are under the same condition. Values that derivatives save have
    this form."""
    for branch in (0, 1):
        other = node.blocks[1 - branch].outputs[index]
        is_none = other.type == NONE or (other.node.kind == "prim::Constant" and other.to_python() is None)
        if (is_none or other.node.kind == "prim::Uninitialized") and all(
            _is_under(use.user, node.input, branch) for use in node.outputs[index].uses
        ):
            return branch
    return None


def _is_under(node: Node, condition: Value, branch: int) -> bool:
    """Return whether ``node`` is in branch ``branch`` of an ``if`` on ``condition``."""
    block = node.owning_block
    while block is not None and block.owning_node is not None:
        owner = block.owning_node
        if owner.kind == "prim::If" and owner.input is condition and owner.blocks[branch] is block:
            return True
        block = owner.owning_block
    return False


def _is_made_in(value: Value, block: Block) -> bool:
    """Return whether ``value`` has memory that was newly allocated in ``block``."""
    node = value.node
    schema = node.schema
    if not block.contains(node):
        return False
    if node.kind in ("prim::ListConstruct", "prim::DictConstruct"):
        return True
    return schema is not None and all(result.alias is None for result in schema.returns) and not is_structural(node)
