"""Move guards to definitions, and remove those that others imply.

.. code-block:: text

    %1 : Float(2) = prim::Guard(%x)                       %1 : Float(2) = prim::Guard(%x)
    %y : Tensor = aten::relu(%1)                          %y : Tensor = aten::relu(%1)
    %2 : Float(2) = prim::Guard(%x)          becomes      %z : Tensor = aten::mul(%y, %1)
    %3 : Float(2) = prim::Guard(%y)
    %z : Tensor = aten::mul(%3, %2)

1. A guard moves directly after the definition of its value, or after a guard that is there already; to the start of the
   block if that is a branch; before a loop that captures the value. The guarded property cannot change in between, by
   construction of guards.
2. Adjacent guards of a value are merged. Later uses refer to the result of the guard.
3. A guard is removed if the remaining guards imply its type: the types of all tensors are propagated from them,
   operator by operator. Each removed guard is implied by remaining ones, or by removed ones that would run earlier.
4. With ``keep_only_queried`` a guard is also removed if no query of the program depends on it: of a size, a rank, a
   dtype, or whether something is None. The remaining guards do not check ``requires_grad`` unless the program queries
   it. If there are still more guards than queries, where those in loops count several times, all are removed: they
   would cost more than the folded queries save.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final, TypeVar

from rekindle.analysis.mutability import may_contain_tensor
from rekindle.analysis.type_propagation import propagate_types
from rekindle.ir.control_flow import incoming_values
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import TensorType, Type
from rekindle.passes.simplification.peephole import FOLDED_BY_TYPE
from rekindle.passes.speculation.insert_guards import GUARD, put_in_place
from rekindle.rewriting.changes import may_change


@dataclass(slots=True)
class EliminateGuards:
    '''Move guards to definitions, and remove those that others imply. The docstring of the module shows the IR before
    and after.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.passes import EliminateGuards, run_passes
        >>> graph = parse_graph("""
        ... graph(%x : Tensor):
        ...   %1 : Float(2) = prim::Guard(%x)
        ...   %y : Tensor = aten::relu(%1)
        ...   %2 : Float(2) = prim::Guard(%x)
        ...   %z : Tensor = aten::mul(%y, %2)
        ...   return (%z)
        ... """)
        >>> run_passes(graph, [EliminateGuards()])
        True
        >>> print(graph)
        graph(%x : Tensor):
          %1 : Float(2) = prim::Guard(%x)
          %y : Tensor = aten::relu(%1)
          %z : Tensor = aten::mul(%y, %1)
          return (%z)
    '''

    name: ClassVar[str] = "eliminate_guards"
    keep_only_queried: bool = False

    def run(self, graph: Graph) -> bool:
        changed = self.keep_only_queried and (_eliminate_unasked(graph, and_after=True) | _weaken(graph))
        changed |= _move_to_definitions(graph)
        changed |= _coalesce(graph)
        changed |= _eliminate_implied(graph)
        if self.keep_only_queried:
            changed |= _eliminate_unasked(graph)
            changed |= _eliminate_costly(graph)
        return changed


# --------------------------------------------------------------------------------------------------------------- moving


def _move_to_definitions(graph: Graph) -> bool:
    changed = False
    settled: set[Node] = set()
    """Guards at their final position, in an unbroken sequence."""
    last: dict[Node, Node] = {}
    """By the node that they follow, the last guard of such a sequence."""
    for guard in graph.find_nodes(GUARD):
        place = _place_of(guard)
        if place not in last:
            last[place] = _settle(place, settled)
        if guard in settled:
            continue
        if last[place] is not guard.prev and not may_change("move", guard):
            continue
        changed |= last[place] is not guard.prev
        if last[place] is not guard.prev:
            guard.move_after(last[place])
        settled.add(guard)
        last[place] = guard
    return changed


def _place_of(guard: Node) -> Node:
    """Return the node that the guard, and others of its value, are moved after: the definition of the value, or the
    return node of a block for its start."""
    home = guard.input.node
    block = guard.owning_block
    assert block is not None
    while home.owning_block is not block:
        owner = block.owning_node
        if owner is None or owner.kind != "prim::Loop":
            return block.return_node
        assert owner.owning_block is not None
        block = owner.owning_block
    return block.return_node if home is block.param_node else home


def _settle(place: Node, settled: set[Node]) -> Node:
    """Add the guards that directly follow ``place`` and belong there to ``settled``. Return the last of them; ``place``
    itself, if there is none."""
    at = place
    while at.next.kind == GUARD and _place_of(at.next) is place:
        at = at.next
        settled.add(at)
    return at


# ----------------------------------------------------------------------------------------------------------- coalescing


def _coalesce(graph: Graph) -> bool:
    changed = False
    first: dict[Value, Node] = {}
    """By value, the first guard of it in this sequence of adjacent guards."""
    before: Node | None = None
    for guard in graph.find_nodes(GUARD):
        if guard.prev is not before:
            first.clear()
        other = first.setdefault(guard.input, guard)
        before = guard
        if other is not guard and may_change("join", guard):
            other.output.type = _meet(other.output.type, guard.output.type)
            before = guard.prev
            put_in_place(guard, other.output)
            changed = True
    for guard in graph.find_nodes(GUARD):
        users = [use for use in guard.input.uses if use.user is not guard and _is_after(guard, use.user)]
        if users and may_change("use what is given by", guard):
            for user, offset in users:
                user.replace_input(offset, guard.output)
            changed = True
    return changed


def _is_after(guard: Node, user: Node) -> bool:
    """Return whether ``user`` runs only where ``guard`` has run before."""
    block = guard.owning_block
    at = None if block is None else block.ancestor_of(user)
    return at is not None and guard.is_before(at)


def _meet(first: Type, second: Type) -> Type:
    """Return a type with the properties that at least one of the two types states, without strides. A property in which
    they contradict each other held on no call of one of them, and is omitted."""
    if not isinstance(first, TensorType) or not isinstance(second, TensorType):
        return first
    sizes = second.sizes if first.sizes is None else first.sizes
    if first.sizes is not None and second.sizes is not None:
        is_same_rank = len(first.sizes) == len(second.sizes)
        sizes = tuple(map(_either, first.sizes, second.sizes)) if is_same_rank else None
    return TensorType(
        _either(first.dtype, second.dtype),
        _either(first.device, second.device),
        sizes,
        None,
        _either(first.requires_grad, second.requires_grad),
    )


_T = TypeVar("_T")


def _either(first: _T | None, second: _T | None) -> _T | None:
    if first is None or second is None:
        return second if first is None else first
    return first if first == second else None


# ---------------------------------------------------------------------------------------------------------- elimination


def _eliminate_implied(graph: Graph) -> bool:
    guards = graph.find_nodes(GUARD)
    if not guards:
        return False
    types = propagate_types(graph, [None] * len(graph.inputs))
    changed = False
    for guard in guards:
        known = types.get(guard.input)
        if known is not None and known.is_subtype_of(guard.output.type) and may_change("eliminate", guard):
            put_in_place(guard, guard.input)
            changed = True
    return changed


def _weaken(graph: Graph) -> bool:
    """Remove ``requires_grad`` from guards unless the program queries it: one version then serves calls with and
    without gradients. Return whether anything changed."""
    changed = False
    is_queried = any(node.kind == "prim::requires_grad" for node in graph.all_nodes())
    for guard in () if is_queried else graph.find_nodes(GUARD):
        type = guard.output.type
        if isinstance(type, TensorType) and type.requires_grad is not None and may_change("weaken", guard):
            guard.output.set_type(replace(type, requires_grad=None))
            changed = True
    return changed


def _eliminate_unasked(graph: Graph, and_after: bool = False) -> bool:
    """Remove guards that no query depends on. With ``and_after``, keep guards that may imply a queried one. Return
    whether anything changed."""
    guards = graph.find_nodes(GUARD)
    needed = _queried_guards(graph, and_after) if guards else set()
    changed = False
    for guard in guards:
        if guard not in needed and may_change("eliminate", guard):
            put_in_place(guard, guard.input)
            changed = True
    return changed


_ASSUMED_TRIP_COUNT: Final = 8
"""Assumed trip count of a loop."""


def _eliminate_costly(graph: Graph) -> bool:
    """Remove all guards if they cost more than the queries that they replace. Return whether anything changed."""
    costs = sum(_ASSUMED_TRIP_COUNT ** _loops_around(guard) for guard in graph.find_nodes(GUARD))
    saves = sum(_ASSUMED_TRIP_COUNT ** _loops_around(node) for node in graph.all_nodes() if node.kind in FOLDED_BY_TYPE)
    if costs <= saves or not may_change("eliminate all guards of", graph.return_node):
        return False
    for guard in graph.find_nodes(GUARD):
        put_in_place(guard, guard.input)
    return True


def _loops_around(node: Node) -> int:
    return sum(each.kind == "prim::Loop" for each in node.ancestors())


def _queried_guards(graph: Graph, and_after: bool) -> set[Node]:
    """Return the guards on which queries of tensors by the program may depend."""
    needed: set[Node] = set()
    seen: set[Value] = set()
    pending: list[Value] = []
    for node in graph.all_nodes():
        if node.kind in FOLDED_BY_TYPE:
            pending += [value for value in node.inputs if may_contain_tensor(value.type)]
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if value.node.kind == GUARD:
            needed.add(value.node)
        if value.node.kind != GUARD or and_after:
            pending += _sources(value)
    return needed


def _sources(value: Value) -> list[Value]:
    """Return the values that the type of ``value`` may follow from."""
    incoming = incoming_values(value)
    return list(value.node.inputs) if incoming is None else incoming
