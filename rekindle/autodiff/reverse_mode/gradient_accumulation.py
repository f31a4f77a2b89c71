"""Batch gradient accumulation: compute gradients of weights for many iterations of a loop with one large operator.

.. code-block:: text

    %gw : Tensor? = prim::Loop(…, %none)                  %gs : Tensor[] = prim::ListConstruct()
      block0(%j : int, %sum : Tensor?):                   %xs : Tensor[] = prim::ListConstruct()
        %1 : Tensor = autodiff::linear_weight(            %2 : Tensor? = prim::Loop(…, %none)
            %g, %x, %n)                                     block0(%j : int, %sum : Tensor?):
        %2 : Tensor = autodiff::plus(%1, %sum)                aten::append(%gs, %g)
        -> (…, %2)                             becomes        aten::append(%xs, %x)
                                                              %3 : bool = …  # enough has been collected
                                                              %4 : Tensor? = prim::If(%3)
                                                                block0():
                                                                  … autodiff::accumulate(%gs, [%xs], [%sum], [%n])
                                                                block1():
                                                                  -> (%sum)
                                                              -> (…, %4)
                                                          … autodiff::accumulate(%gs, [%xs], [%2], [%n])

So are gradients of biases, of a tensor of which each iteration selects a part (``aten::select_backward`` fills a tensor
of the size of the whole with zeros), and of embeddings. Those that are computed from one gradient share its list. What
is collected is bounded, so that it takes little memory beside what the loop saves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rekindle.analysis.constants import constant_bool, constant_int
from rekindle.autodiff.reverse_mode.gradient_regions import constant
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import INT, NONE, TENSOR, ListType, OptionalType, TensorType, Type

_WEIGHT: Final = "autodiff::linear_weight"
_SUMS: Final = frozenset({"autodiff::sum_to", "aten::_grad_sum_to_size"})
_SELECTED: Final = "aten::select_backward"
_EMBEDDED: Final = "aten::embedding_backward"
_INVARIANT: Final = {
    _WEIGHT: (2,),
    **dict.fromkeys(_SUMS, (1,)),
    _SELECTED: (1, 2),
    _EMBEDDED: (2, 3, 4, 5),
}
"""The kinds of the summands of iterations, with the arguments that must be the same in all iterations."""
MIN_ELEMENTS: Final = 1 << 16
"""Number of elements of gradients that are collected at least, before they are used: products of so many rows are
efficient."""
MAX_ELEMENTS: Final = 1 << 19
"""Number of elements of gradients that are collected at most."""
PARTS: Final = 4
"""Within these limits, the gradients of a quarter of the iterations are collected. Each iteration frees its residuals,
which take as much memory."""


@dataclass(slots=True, frozen=True, eq=False)
class _Term:
    """The term that iterations add to the sum in carried value ``index``: the result of a node of this ``kind`` for
    ``arguments``. It is computed from ``gradient``; for a part of a tensor from the product of ``gradient`` and
    ``weight``, if there is one."""

    index: int
    kind: str
    arguments: tuple[Value, ...]
    gradient: Value
    weight: Value | None = None

    @property
    def collected(self) -> Value | None:
        """The value that iterations collect in addition to the gradient; None for kinds that collect gradients
        alone."""
        place = {_WEIGHT: 1, _EMBEDDED: 1, _SELECTED: 3}.get(self.kind)
        return None if place is None else self.arguments[place]


def batch_gradient_accumulation(graph: Graph) -> None:
    """Rewrite loops that sum weight gradients: collect the gradients of several iterations, and compute each sum with
    one large operator."""
    for loop in graph.find_nodes("prim::Loop"):
        for product in [node for node in loop.blocks[0].nodes if node.kind == "aten::mm"]:
            _name_gradient_of_weight(product)
        groups: dict[Value, list[_Term]] = {}
        for index in range(len(loop.outputs)):
            term = _accumulated_term(loop, index)
            if term is not None:
                groups.setdefault(term.gradient, []).append(term)
        for gradient, terms in groups.items():
            _Batch(loop, gradient, terms).run()


def _name_gradient_of_weight(product: Node) -> None:
    """Replace ``mm(t(grad), input)``, the gradient of the second factor of a product, by the operator for the gradient
    of a weight, if it is only added to others."""
    transposed, input = product.inputs
    users = [use.user.kind for use in product.output.uses]
    if transposed.node.kind != "aten::t" or users != ["autodiff::plus"]:
        return
    graph = product.graph
    size = constant(graph, [0, 0], ListType(INT))  # of which the length alone is read
    inputs = [transposed.node.input, input, size]
    named = graph.create(_WEIGHT, inputs, types=[TENSOR], range=product.range).insert_before(product)
    product.output.replace_all_uses_with(named.output)
    product.destroy()


def _accumulated_term(loop: Node, index: int) -> _Term | None:
    """Return the term that an iteration adds to the sum in carried value ``index``; None if the gradients of the
    iterations cannot be collected."""
    view = LoopView(loop)
    block, (_, before, after, _) = view.body, view.carried[index]
    added = _added_to(before, after)
    if added is None or after.node.owning_block is not block:
        return None
    node = added.node
    if node.kind not in _INVARIANT or node.owning_block is not block:
        return None
    if any(len(value.uses) != 1 for value in (before, after, added)):
        return None
    if any(loop.contains(node.inputs[place].node) for place in _INVARIANT[node.kind]):
        return None
    if node.kind == _EMBEDDED and any(constant_bool(value) is not False for value in node.inputs[4:]):
        return None
    gradient = node.inputs[0]
    if node.kind == _SELECTED:
        product = gradient.node
        if product.kind == "aten::matmul" and product.owning_block is block and len(gradient.uses) == 1:
            factor, weight = product.inputs
            if isinstance(weight.type, TensorType) and weight.type.rank == 2 and not loop.contains(weight.node):
                return _Term(index, node.kind, tuple(node.inputs), factor, weight)
    return _Term(index, node.kind, tuple(node.inputs), gradient)


def _added_to(before: Value, after: Value) -> Value | None:
    """Return the other operand, if ``after`` is the sum of ``before`` and a value; else None."""
    adding = after.node
    if adding.kind == "autodiff::plus":
        added, total = adding.inputs
        return added if total is before else None
    if adding.kind == "aten::add" and len(adding.inputs) == 3 and constant_int(adding.inputs[2]) == 1:
        first, second, _ = adding.inputs
        return second if first is before else first if second is before else None
    return None


@dataclass(slots=True)
class _Batch:
    """Sums of a loop whose terms are all computed from one ``gradient``."""

    loop: Node
    gradient: Value
    terms: list[_Term]
    lists: dict[Value, Value] = field(default_factory=dict)
    """The lists that collect values of iterations, by the collected value."""

    def run(self) -> None:
        graph, block = self.loop.graph, self.loop.blocks[0]
        for value in (self.gradient, *(term.collected for term in self.terms)):
            if value is not None and value not in self.lists:
                made = graph.create("prim::ListConstruct", types=[ListType(_plain(value.type))], range=self.loop.range)
                self.lists[value] = made.insert_before(self.loop).output
        before = [block.inputs[term.index + 1] for term in self.terms]
        for term, total in zip(self.terms, before, strict=True):
            adding = block.outputs[term.index + 1].node
            added = next(value for value in adding.inputs[:2] if value is not total)
            block.replace_output(term.index + 1, total)
            adding.destroy()
            added.node.destroy()
            if term.weight is not None:
                term.arguments[0].node.destroy()
        with graph.inserting_at_end(block, like=self.loop):
            for value, values in self.lists.items():
                graph.insert_node(graph.create("aten::append", [values, value], types=[values.type]))
            is_enough = self._is_enough(graph)
            choice = graph.insert_node(graph.create("prim::If", [is_enough], types=[each.type for each in before]))
        then, otherwise = choice.add_block(), choice.add_block()
        with graph.inserting_at_end(then, like=self.loop):
            totals = self._totals(graph, before)
            for values in self.lists.values():
                graph.insert_node(graph.create("aten::clear", [values], outputs=0))
        for now, earlier in zip(totals, before, strict=True):
            then.add_output(now)
            otherwise.add_output(earlier)
        for term, total in zip(self.terms, choice.outputs, strict=True):
            block.replace_output(term.index + 1, total)
        results = [self.loop.outputs[term.index] for term in self.terms]
        uses = [list(result.uses) for result in results]
        with graph.inserting_after(self.loop):
            totals = self._totals(graph, results)
        for total, each in zip(totals, uses, strict=True):
            for use in each:
                use.user.replace_input(use.offset, total)

    def _is_enough(self, graph: Graph) -> Value:
        """Insert a test whether enough gradients have been collected to process them."""
        count = graph.insert("aten::len", [self.lists[self.gradient]])
        elements = graph.insert("aten::mul", [graph.insert("aten::numel", [self.gradient]), count])
        are_many = graph.insert("aten::ge", [elements, MAX_ELEMENTS])
        is_part = graph.insert("aten::ge", [graph.insert("aten::mul", [count, PARTS]), LoopView(self.loop).trip_count])
        are_sufficient = graph.insert("aten::ge", [elements, MIN_ELEMENTS])
        return graph.insert("aten::__or__", [are_many, graph.insert("aten::__and__", [are_sufficient, is_part])])

    def _totals(self, graph: Graph, sums: Sequence[Value]) -> list[Value]:
        """Insert the updated ``sums``: the terms of the collected values are added to each."""
        found: dict[_Term, Value] = {}
        added: list[tuple[_Term, Value]] = []
        for term, total in zip(self.terms, sums, strict=True):
            if term.kind == _SELECTED:
                found[term] = self._placed(graph, term, total)
            elif term.kind == _EMBEDDED:
                found[term] = self._embedded(graph, term, total)
            else:
                added.append((term, total))
        if added:
            added.sort(key=lambda each: each[0].collected is None)  # weights before sums
            found.update(self._accumulated(graph, added))
        return [found[term] for term in self.terms]

    def _placed(self, graph: Graph, term: _Term, total: Value) -> Value:
        _, size, dim, index = term.arguments
        weight = graph.insert_constant(None, NONE) if term.weight is None else term.weight
        values = [self.lists[self.gradient], self.lists[index], total, size, dim, weight]
        return _defined(graph, graph.insert("autodiff::placed", values), total.type)

    def _embedded(self, graph: Graph, term: _Term, total: Value) -> Value:
        _, indices, count, padding, *_ = term.arguments
        values = [self.lists[self.gradient], self.lists[indices], total, count, padding]
        return _defined(graph, graph.insert("autodiff::embedded", values), total.type)

    def _accumulated(self, graph: Graph, added: Sequence[tuple[_Term, Value]]) -> dict[_Term, Value]:
        inputs = [self.lists[term.collected] for term, _ in added if term.collected is not None]
        values = [
            self.lists[self.gradient],
            _listed(graph, inputs, ListType(TENSOR)),
            _listed(graph, [total for _, total in added], OptionalType(TENSOR)),
            _listed(graph, [term.arguments[-1] for term, _ in added], OptionalType(ListType(INT))),
        ]
        totals = graph.insert("autodiff::accumulate", values)
        unpack = graph.create("prim::ListUnpack", [totals], types=[OptionalType(TENSOR)] * len(added))
        outputs = graph.insert_node(unpack).outputs
        return {term: _defined(graph, output, total.type) for (term, total), output in zip(added, outputs, strict=True)}


def _plain(type: Type) -> Type:
    return TENSOR if isinstance(type, TensorType) else type


def _listed(graph: Graph, values: Sequence[Value], type: Type) -> Value:
    return graph.insert_node(graph.create("prim::ListConstruct", values, types=[ListType(type)])).output


def _defined(graph: Graph, value: Value, type: Type) -> Value:
    """Return ``value``, unwrapped from Optional unless ``type`` is an Optional."""
    if isinstance(type, OptionalType):
        return value
    return graph.insert_node(graph.create("prim::unchecked_unwrap_optional", [value], types=[type])).output
