"""Schedules the phases of a row: reductions in the order of their dependences, then stores."""

from __future__ import annotations

from collections.abc import Sequence

from rekindle.codegen.loop_ir.builder import Builder, substituted
from rekindle.codegen.loop_ir.nodes import Access, Expression, Phase, Reduction, Store

CHEAP = frozenset(
    {
        *("load", "constant", "argument", "reduced", "length", "cast", "add", "sub", "mul", "div", "fma", "neg", "abs"),
        *("select", "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "xor", "not", "floor", "ceil", "trunc", "round"),
        *("sqrt", "copysign", "given", "lookup", "checked"),
    }
)
"""Kinds that cost less than a memory access; the others are functions."""


SCANS = frozenset({"scan_sum", "scan_product"})
"""Kinds that depend on the elements before."""


class Dependence:
    """Dependence of expressions: whether they vary along the reduction loops (along the innermost loop, if there are
    none), and the first phase in which they can be computed."""

    def __init__(self, accesses: Sequence[Access], depths: dict[Expression, int]) -> None:
        self.accesses = accesses
        self.depths = depths
        """Phase in which the result of each reduction is known."""
        self._varies: dict[Expression, bool] = {}

    def varies(self, expression: Expression) -> bool:
        """Return whether an expression varies along the reduction loops (along the innermost loop, if there are
        none)."""
        found = self._varies.get(expression)
        if found is None:
            if expression.kind in ("load", "lookup"):
                assert isinstance(expression.payload, int)
                moves = not self.accesses[expression.payload].is_invariant
                found = moves or any(map(self.varies, expression.operands))
            else:
                found = expression.kind in SCANS or any(map(self.varies, expression.operands))
            self._varies[expression] = found
        return found

    def depth(self, expression: Expression) -> int:
        """Return the index of the first phase in which an expression can be computed."""
        found = self.depths.get(expression)
        if found is None:
            found = max((self.depth(operand) for operand in expression.operands), default=0)
            self.depths[expression] = found
        return found


def schedule_phases(
    b: Builder, accesses: Sequence[Access], reductions: Sequence[Reduction], stores: Sequence[Store]
) -> tuple[tuple[Phase, ...], tuple[Store, ...]]:
    """Divide the reductions and stores of a row into phases. Return the phases, and the stores after the last one."""
    dependence = Dependence(accesses, {})
    for reduction in reductions:  # in topological order
        dependence.depths[reduction.result] = dependence.depth(reduction.value) + 1
    last = tuple(store for store in stores if accesses[store.access].is_invariant)
    along = [store for store in stores if not accesses[store.access].is_invariant]
    count = max(
        [dependence.depths[each.result] for each in reductions] + [dependence.depth(s.value) + 1 for s in along]
    )
    folded: list[list[Reduction]] = [[] for _ in range(count)]
    written: list[list[Store]] = [[] for _ in range(count)]
    for reduction in reductions:
        folded[dependence.depths[reduction.result] - 1].append(reduction)
    for store in along:
        depth = dependence.depth(store.value)
        kept = _worth_materializing(store, dependence, reductions) if b.arithmetic.keeps_rows else None
        if kept is not None:
            written[dependence.depth(kept)].append(Store(store.access, kept))
            again = b.load(store.access, kept.scalar)
            store = Store(store.access, substituted(store.value, kept, again, b))
        written[depth].append(store)
    phases = [Phase(tuple(s), tuple(r)) for s, r in zip(written, folded, strict=True) if s or r]
    return tuple(phases), last


def _worth_materializing(store: Store, dependence: Dependence, reductions: Sequence[Reduction]) -> Expression | None:
    """Return an expensive expression of an earlier phase that ``store`` needs again, and that fits into its buffer
    between phases; None if there is none."""
    earlier = {each for reduction in reductions for each in subexpressions(reduction.value)}
    depth = dependence.depth(store.value)
    for part in reversed(subexpressions(store.value)):
        is_there = part in earlier and dependence.depth(part) < depth and part.scalar is store.value.scalar
        if is_there and dependence.varies(part) and any(each.kind not in CHEAP for each in subexpressions(part)):
            return part
    return None


def subexpressions(expression: Expression) -> list[Expression]:
    """Return an expression and all its subexpressions, operands first."""
    seen: dict[Expression, None] = {}

    def visit(each: Expression) -> None:
        if each not in seen:
            for operand in each.operands:
                visit(operand)
            seen[each] = None

    visit(expression)
    return list(seen)
