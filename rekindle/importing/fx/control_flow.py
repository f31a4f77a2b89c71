"""Importers of higher-order operators: branches, loops, and calls of subgraphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import torch
from torch import fx
from torch._higher_order_ops.effects import with_effects
from torch._higher_order_ops.map import map_impl
from torch._higher_order_ops.scan import scan_op
from torch._higher_order_ops.wrap import wrap_with_set_grad_enabled

from rekindle.errors import CaptureError
from rekindle.importing.fx.fx_importer import CALLS, FxImporter, ImportedValue, as_list, reads
from rekindle.ir.control_flow import MAX_TRIP_COUNT
from rekindle.ir.graph import Block, Node, Value
from rekindle.ir.types import BOOL, INT, NONE, TENSOR, ListType, Type, optional, unify
from rekindle.tracing.recording.grad_mode import enter_mode, exit_mode

_HIGHER: Final = torch.ops.higher_order


@reads(_HIGHER.cond)
def _cond(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    """Import ``torch.cond`` as ``prim::If``, or the branch alone if the predicate is constant. A result that is None in
    one branch gets an Optional type."""
    predicate, *graphs = args[:3]
    operands = args[3] if len(args) > 3 else ()
    if not isinstance(predicate, Value):
        return tuple(as_list(reader.read(graphs[0 if predicate else 1], operands)))
    graph = reader.graph
    condition = predicate if predicate.type == BOOL else reader.insert("aten::Bool", predicate)
    branch = graph.insert_node(graph.create("prim::If", [condition], outputs=0, range=reader.range))
    blocks = [branch.add_block(), branch.add_block()]
    results = [reader.within(block, module, operands) for block, module in zip(blocks, graphs, strict=True)]
    return tuple(_joined(reader, branch, blocks, pair) for pair in zip(*results, strict=True))


def _joined(reader: FxImporter, branch: Node, blocks: Sequence[Block], pair: Sequence[ImportedValue]) -> ImportedValue:
    """Add an output to ``branch``, a ``prim::If``, for a pair of results of its ``blocks``; return the output. Return
    None if both results are None.

    Raises:
        CaptureError: the results have types without a common supertype.
    """
    if all(not isinstance(item, Value) for item in pair) and pair[0] is None and pair[1] is None:
        return None
    types: list[Type] = []
    for block, item in zip(blocks, pair, strict=True):
        with reader.graph.inserting_at_end(block):
            value = reader.value(item)
        block.add_output(value)
        types.append(value.type)
    type = unify(*types)
    if type is None and NONE in types:
        type = optional(types[0] if types[1] == NONE else types[1])
    if type is None:
        raise CaptureError(
            f"the branches of a torch.cond give a {types[0].annotation} and a {types[1].annotation}", reader.range
        )
    return branch.add_output(type)


@reads(_HIGHER.while_loop)
def _while_loop(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    """Import ``while_loop`` as a ``prim::Loop`` without a limit of the trip count, which its condition ends."""
    condition, body, carried, additional = args
    start = as_list(reader.read(condition, [*carried, *additional]))[0]
    values = [reader.value(item) for item in carried]
    loop, block, inner = _loop(reader, reader.value(MAX_TRIP_COUNT), _as_bool(reader, start), values)
    with reader.graph.inserting_at_end(block):
        results = as_list(reader.read(body, [*inner[1:], *additional]))
        made = [_of_type(reader, item, value.type) for item, value in zip(results, values, strict=True)]
        again = _as_bool(reader, as_list(reader.read(condition, [*made, *additional]))[0])
        for value in (again, *made):
            block.add_output(value)
    return tuple(loop.outputs)


def _loop(
    reader: FxImporter, count: Value, condition: Value, carried: Sequence[Value]
) -> tuple[Node, Block, list[Value]]:
    """Insert a loop; return it, its block, and the inputs of the block: the iteration number and the loop-carried
    values."""
    graph = reader.graph
    types = [value.type for value in carried]
    node = graph.create("prim::Loop", [count, condition, *carried], types=types, range=reader.range)
    block = graph.insert_node(node).add_block()
    inner = [block.add_input("", INT), *(block.add_input("", type) for type in types)]
    return node, block, inner


def _as_bool(reader: FxImporter, item: ImportedValue) -> Value:
    if isinstance(item, Value):
        return item if item.type == BOOL else reader.insert("aten::Bool", item)
    return reader.value(bool(item))


def _of_type(reader: FxImporter, item: ImportedValue, type: Type) -> Value:
    value = reader.value(item)
    if not value.type.is_subtype_of(type):
        raise CaptureError(
            f"a loop begins with a {type.annotation} and continues with a {value.type.annotation}", reader.range
        )
    return value


@reads(scan_op)
def _scan(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    """Import ``scan`` as a loop over the first dimension of ``xs``: return the carried values, and the results of the
    iterations stacked."""
    combine, init, xs, additional = args
    return _over_rows(reader, combine, list(init), xs, additional)


@reads(map_impl)
def _map(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    """Import ``map`` as a scan without carried values."""
    function, xs, additional = args
    return _over_rows(reader, function, [], xs, additional)


def _over_rows(
    reader: FxImporter,
    function: fx.GraphModule,
    init: Sequence[ImportedValue],
    xs: Sequence[Value],
    additional: Sequence[ImportedValue],
) -> ImportedValue:
    graph = reader.graph
    place = reader.range
    count = reader.insert("aten::size", xs[0], 0)
    carried = [reader.value(item) for item in init]
    stacked = len(_results_of(function)) - len(carried)
    lists = [
        graph.insert_node(graph.create("prim::ListConstruct", types=[ListType(TENSOR)], range=place)).output
        for _ in range(stacked)
    ]
    loop, block, inner = _loop(reader, count, reader.value(True), carried)
    with graph.inserting_at_end(block):
        rows = [reader.insert("aten::select", x, 0, inner[0]) for x in xs]
        results = as_list(reader.read(function, [*inner[1:], *rows, *additional]))
        reader.range = place
        block.add_output(reader.value(True))
        for item, value in zip(results[: len(carried)], carried, strict=True):
            block.add_output(_of_type(reader, item, value.type))
        for item, made in zip(results[len(carried) :], lists, strict=True):
            if item is not None:
                reader.insert("aten::append", made, _of_type(reader, item, TENSOR))
    gone = [item is None for item in results[len(carried) :]]
    stacks = [None if none else reader.insert("aten::stack", made, 0) for made, none in zip(lists, gone, strict=True)]
    return (*loop.outputs, *stacks)


def _results_of(module: fx.GraphModule) -> list[object]:
    output = next(iter(module.graph.find_nodes(op="output")))
    return as_list(output.args[0])


def _invoke(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    """Import a call of a subgraph by inlining it."""
    module, _, *operands = args
    return reader.read(module, operands)


@reads(wrap_with_set_grad_enabled)
def _grad_mode(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    """Import a subgraph in which gradients are enabled or disabled, as a region of the program."""
    enabled, module, *operands = args
    place = reader.range
    manager = enter_mode(reader.graph, bool(enabled), place)
    result = reader.read(module, operands)
    exit_mode(reader.graph, manager, place)
    return result


@reads(torch._C._set_grad_enabled)
def _set_grad_enabled(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    """Import a switch of the gradient mode: end the region that the last switch began, if this one restores its outer
    mode, or begin another. A switch to the current mode inserts nothing. The first region begins in the mode of the
    capture, which Dynamo guards."""
    enabled = bool(args[0])
    now = reader.modes[-1][1] if reader.modes else torch.is_grad_enabled()
    if enabled == now:
        return None
    if reader.modes and reader.modes[-1][0] == enabled:
        exit_mode(reader.graph, reader.modes.pop()[2], reader.range)
    else:
        reader.modes.append((now, enabled, enter_mode(reader.graph, enabled, reader.range)))
    return None


def leave_modes(reader: FxImporter) -> None:
    """Insert the exits of the gradient-mode regions that are still open at the end of a graph, and
    remove them from ``reader.modes``."""
    while reader.modes:
        exit_mode(reader.graph, reader.modes.pop()[2], reader.range)


@reads(with_effects)
def _with_effects(
    reader: FxImporter, node: fx.Node, args: Sequence[ImportedValue], kwargs: Mapping[str, ImportedValue]
) -> ImportedValue:
    """Import a call that AOTAutograd orders by a token. Nodes of the IR with effects are ordered, so the token is
    None."""
    _, target, *operands = args
    call = fx.Graph().create_node("call_function", target)
    known = node.meta.get("val") or (None, None)
    call.meta = {**node.meta, "val": known[1] if len(known) == 2 else known[1:]}
    result = reader.call(call, operands, kwargs)
    return (None, *result) if isinstance(result, tuple) else (None, result)


for _name in ("invoke_subgraph",):
    if hasattr(_HIGHER, _name):
        CALLS[getattr(_HIGHER, _name)] = _invoke
