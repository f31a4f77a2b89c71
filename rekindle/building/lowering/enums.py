"""Lowering of enums: a value is the index of the member, in the order of definition."""

from __future__ import annotations

from rekindle.building.lowering.emitters import emits
from rekindle.building.lowering.representation import NotBuildable
from rekindle.building.lowering.writer import ProgramWriter
from rekindle.building.runtime.lists import list_get, place_in
from rekindle.ir.graph import Node
from rekindle.ir.types import STRING, EnumType, ListType


@emits("prim::EnumName", "prim::EnumValue.int", "prim::EnumValue.float", "prim::EnumValue.str")
def read_member(w: ProgramWriter, node: Node) -> None:
    type = node.input.type
    if not isinstance(type, EnumType):
        raise NotBuildable("a member of an enum that is known only at run time", node.range)
    is_name = node.kind == "prim::EnumName"
    element = STRING if is_name else type.value_type
    column = w.parts.constants.object(list(type.members) if is_name else list(type.members.values()), ListType(element))
    at = w.call_or_fail_below_zero(place_in, "%context", column, w.name(node.input))
    w.define(node.output, w.of_word(w.call(list_get, column, at), element))


@emits("aten::eq.enum", "aten::ne.enum")
def compare_members(w: ProgramWriter, node: Node) -> None:
    a, b = node.inputs
    if a.type != b.type or not isinstance(a.type, EnumType):
        raise NotBuildable("a comparison of members of different enums", node.range)
    predicate = "eq" if node.kind == "aten::eq" else "ne"
    w.define(node.output, w.emit(f"icmp {predicate} i64 {w.name(a)}, {w.name(b)}"))
