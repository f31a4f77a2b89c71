"""Importers of Python's own functions in ``torch.fx`` graphs: computations with sizes and other symbols."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from typing import Final

import torch
from torch import fx

from rekindle.errors import CaptureError
from rekindle.importing.fx.fx_importer import CALLS, FxImporter, ImportedValue, name_of, reads
from rekindle.ir.graph import Value
from rekindle.ir.operators.operator_nodes import insert_operator_node
from rekindle.ir.operators.registry import REGISTRY
from rekindle.ir.operators.schema_matching import argument, try_match_schema
from rekindle.ir.types import BOOL, FLOAT, INT, TENSOR

_KINDS: Final[dict[object, str]] = {
    operator.add: "aten::add",
    operator.sub: "aten::sub",
    operator.mul: "aten::mul",
    operator.truediv: "aten::div",
    operator.floordiv: "aten::floordiv",
    operator.mod: "aten::remainder",
    operator.neg: "aten::neg",
    operator.eq: "aten::eq",
    operator.ne: "aten::ne",
    operator.lt: "aten::lt",
    operator.le: "aten::le",
    operator.gt: "aten::gt",
    operator.ge: "aten::ge",
    operator.and_: "aten::__and__",
    operator.or_: "aten::__or__",
    operator.xor: "aten::__xor__",
    operator.lshift: "aten::__lshift__",
    operator.rshift: "aten::__rshift__",
    operator.not_: "aten::__not__",
    operator.abs: "prim::abs",
    abs: "prim::abs",
    max: "prim::max",
    min: "prim::min",
    math.ceil: "aten::ceil",
    math.floor: "aten::floor",
    math.sqrt: "aten::sqrt",
    math.trunc: "aten::Int",
    torch.sym_max: "prim::max",
    torch.sym_min: "prim::min",
    torch.sym_not: "aten::__not__",
    torch.sym_float: "aten::Float",
    torch.sym_int: "aten::Int",
    torch._sym_sqrt: "aten::sqrt",  # type: ignore[attr-defined]
    bool: "aten::Bool",
    int: "aten::Int",
    float: "aten::Float",
}
"""Operators for functions of numbers."""


def _scalar(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    if not any(isinstance(item, Value) for item in args):
        assert callable(node.target)
        return node.target(*args)
    kind = _KINDS[node.target]
    if any(isinstance(item, Value) and item.type == TENSOR for item in args):
        raise CaptureError(f"'{name_of(node.target)}' is called with a tensor rather than by an operator", reader.range)
    if kind in ("aten::Bool", "aten::Int", "aten::Float") and isinstance(args[0], Value):
        if args[0].type == {"aten::Bool": BOOL, "aten::Int": INT, "aten::Float": FLOAT}[kind]:
            return args[0]
    return reader.insert(kind, *args)


CALLS.update(dict.fromkeys(_KINDS, _scalar))


@reads(operator.pow)
def _pow(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    """Import a power. For ints the result is an int, since exponents in sizes are not negative."""
    if not all((item.type == INT) if isinstance(item, Value) else isinstance(item, int) for item in args):
        return reader.insert("aten::pow", *args)
    operator = REGISTRY.find("aten::pow.int_to_int")
    assert operator is not None
    plan = try_match_schema(operator.schema, [argument(item, reader.range) for item in args], ())
    return insert_operator_node(reader.graph, operator, plan, reader.range).output


@reads(torch.sym_sum)
def _sum(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    first, *others = args[0]
    for item in others:
        first = reader.insert("aten::add", first, item) if _is_computed(first, item) else first + item
    return first


@reads(torch.sym_ite)
def _ite(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    condition, yes, no = args
    if not isinstance(condition, Value):
        return yes if condition else no
    graph = reader.graph
    first = reader.value(yes)
    branch = graph.insert_node(graph.create("prim::If", [condition], types=[first.type], range=reader.range))
    for item in (first, no):
        block = branch.add_block()
        with graph.inserting_at_end(block):
            block.add_output(reader.value(item))
    return branch.output


@reads(operator.getitem)
def _getitem(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    held, index = args
    if isinstance(held, Value):
        return reader.insert("aten::__getitem__", held, index)
    return None if held is None else held[index]


def _is_computed(*items: ImportedValue) -> bool:
    return any(isinstance(item, Value) for item in items)
