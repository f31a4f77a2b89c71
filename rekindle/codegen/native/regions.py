"""Outline loops over numbers and characters, and adjacent nodes, into ``prim::NativeRegion`` nodes.

.. code-block:: text

    %y : int = prim::Loop(%n, %true, %zero)               %z : int = prim::NativeRegion_0(%n)
      block0(%i : int, %a : int):                         return (%z)
        %b : int = aten::add(%a, %i)             becomes  with prim::NativeRegion_0 = graph(%n.1 : int):
        -> (%true, %b)                                      %y : int = prim::Loop(%n.1, %true, %zero)
    %z : int = aten::mul(%y, %two)                            …
                                                            %z : int = aten::mul(%y, %two)
                                                            return (%z)

A region is a sequence of adjacent nodes of a block that can all be compiled, and contains a loop: without one, the call
costs more than it saves. If a loop as a whole cannot be compiled, its inner loops are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import rekindle.codegen.native.strings  # noqa: F401 (adds to what is native)
from rekindle.codegen.native.lists import is_native
from rekindle.codegen.native.native_types import NativeType, native_type_of
from rekindle.codegen.native.writer import raises
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.rewriting.changes import may_change

REGION: Final = "prim::NativeRegion"


@dataclass(slots=True)
class FormNativeRegions:
    """Outline loops and arithmetic on numbers, lists and strings into native regions (``prim::NativeRegion``)."""

    name: ClassVar[str] = "form_native_regions"

    def run(self, graph: Graph) -> bool:
        return _form(graph, graph.block)


def _form(graph: Graph, block: Block) -> bool:
    changed = False
    run: list[Node] = []
    for node in [*block.nodes, None]:
        if node is not None and _is_supported(node):
            run.append(node)
            continue
        changed |= _close(graph, run)
        run = []
        for inner in () if node is None else node.blocks:
            changed |= _form(graph, inner)
    return changed


def _is_supported(node: Node) -> bool:
    """Return whether native code supports a node and all nodes in its blocks."""
    if node.kind == "prim::Constant":
        return _is_plain_constant(node.output)
    if node.kind in ("prim::If", "prim::Loop"):
        if any(native_type_of(value.type) is None for value in (*node.inputs, *node.outputs)):
            return False
        return all(_fits(value, target) for value, target in _flows(node)) and all(map(_is_covered_block, node.blocks))
    return not node.blocks and is_native(node) and all(map(_is_readable, node.inputs))


def _flows(node: Node) -> Iterator[tuple[Value, Value]]:
    """Yield pairs of values: one that enters or leaves a block, and the loop input, loop output or branch output that
    it becomes."""
    if node.kind == "prim::If":
        for block in node.blocks:
            if not raises(block):
                yield from zip(block.outputs, node.outputs, strict=True)
        return
    for variable in LoopView(node).carried:
        yield variable.initial, variable.parameter
        yield variable.following, variable.parameter
        yield variable.parameter, variable.result
        yield variable.result, variable.parameter  # in both directions: the two must have one type


def _fits(value: Value, target: Value) -> bool:
    given, wanted = native_type_of(value.type), native_type_of(target.type)
    return given is not None and wanted is not None and given.fits(wanted)


def _is_covered_block(block: Block) -> bool:
    """Return whether a block is supported. One that raises is left to the plan, if code can pass it the values that it
    uses."""
    owner = block.owning_node
    assert owner is not None
    if raises(block) and owner.kind == "prim::If":
        used = (value for node in block.nodes for value in node.used_values())
        return all(block.contains(value.node) or _is_known(value) for value in used)
    return all(_is_readable(value) for value in block.outputs) and all(map(_is_supported, block.nodes))


def _is_known(value: Value) -> bool:
    return value.node.kind == "prim::Constant" or native_type_of(value.type) is not None


def _is_plain_constant(value: Value) -> bool:
    """Return whether native code can contain a constant: a number of 64 bits, or a character."""
    if value.type.kind == "StringType":
        text = value.to_python()
        return isinstance(text, str) and len(text) == 1
    if value.type.kind not in ("IntType", "FloatType", "BoolType"):
        return False
    number = value.to_python()
    return not isinstance(number, int) or -(2**63) <= number < 2**63


def _is_readable(value: Value) -> bool:
    """Return whether native code can read a value. It cannot read a constant number that is not plain, such as an int
    of more than 64 bits."""
    is_number = value.type.kind in ("IntType", "FloatType", "BoolType")
    return value.node.kind != "prim::Constant" or not is_number or _is_plain_constant(value)


def _close(graph: Graph, run: list[Node]) -> bool:
    """Outline ``run`` into a region if that pays; return whether it was outlined."""
    if not any(has_loop(node) for node in run):
        return False
    nodes = [node for node in run if node.kind != "prim::Constant"]
    if _only_appends(nodes):
        return False
    first = next(node for node in nodes if has_loop(node))
    if not may_change(f"compile {len(nodes)} nodes to machine code, among them", first):
        return False
    _outline(graph, nodes)
    return True


def _only_appends(nodes: Sequence[Node]) -> bool:
    """Return whether a region within a loop would append to a list from outside that loop: each entry of the region
    would convert the whole list. A region that contains nested loops computes enough to be worth that."""
    outer = next((each for each in nodes[0].ancestors()[1:] if each.kind == "prim::Loop"), None)
    everything = [each for node in nodes for each in (node, *node.inner_nodes())]
    if outer is None or any(
        each.kind == "prim::Loop" and any(map(has_loop, each.inner_nodes())) for each in everything
    ):
        return False
    lists = [each.inputs[0] for each in everything if each.kind == "aten::append"]
    return any(outer not in value.node.ancestors() for value in lists)


def has_loop(node: Node) -> bool:
    """Return whether the node is a loop, or one is in it."""
    return any(each.kind == "prim::Loop" for each in (node, *node.inner_nodes()))


def _outline(graph: Graph, nodes: Sequence[Node]) -> None:
    """Move ``nodes``, which are adjacent except for constants, into the subgraph of a new node that replaces them."""
    inside = set(nodes)
    subgraph = Graph()
    region = graph.create(REGION, outputs=0, range=nodes[0].range)
    region.insert_before(nodes[0])
    known: dict[Value, Value] = {}

    def outside(value: Value) -> Value:
        if value not in known:
            node = value.node
            if _can_be_copied(value):
                copy = subgraph.create_clone(node, outside)
                subgraph.block.prepend(copy)
                known[value] = copy.output
            else:
                region.add_input(value)
                known[value] = subgraph.add_input(value.base_name, value.type)
        return known[value]

    for node in nodes:
        subgraph.insert_clone(node, known, outside)
    for node in nodes:
        for output in node.outputs:
            if any(inside.isdisjoint(use.user.ancestors()) for use in output.uses):
                subgraph.add_output(known[output])
                result = region.add_output(output.type).copy_metadata(output)
                output.replace_all_uses_with(result)
    region.set_attribute("Subgraph", subgraph)
    for node in reversed(nodes):
        node.destroy()


def _can_be_copied(value: Value) -> bool:
    """Return whether a value may be duplicated: an immutable constant, or a value that no path defines."""
    if value.node.kind == "prim::Uninitialized":
        return native_type_of(value.type) is not None
    kind = native_type_of(value.type)
    if value.node.kind != "prim::Constant" or (kind is not None and kind.is_list):
        return False
    return kind is not NativeType.STRING or _is_plain_constant(value)
