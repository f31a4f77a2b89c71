"""Calls of functions and methods that are not inlined: recursion, and what a ``try`` runs."""

from __future__ import annotations

from collections.abc import Sequence

from rekindle.building.lowering.emitters import emits
from rekindle.building.lowering.parts import ModuleValue
from rekindle.building.lowering.representation import NotBuildable
from rekindle.building.lowering.writer import ProgramWriter
from rekindle.building.runtime.memory import release
from rekindle.building.runtime.objects import enter_call, leave_call
from rekindle.ir.graph import Node, Value
from rekindle.ir.graph_function import called_function
from rekindle.passes.canonicalization.inlining import call_arguments


@emits("prim::CallFunction", "prim::CallMethod")
def call(w: ProgramWriter, node: Node) -> None:
    record = called_function(node)
    if record is None:
        raise NotBuildable(f"a call of what is known only at run time ('{node.kind}')", node.range)
    given = list(call_arguments(node))
    modules = [w.modules.get(value) for value in given]
    key = (id(record), w.is_tried, *(None if each is None else id(each.module) for each in modules))
    name = w.parts.functions.get(key)
    graph = record.graph
    if name is None:
        name = w.parts.functions[key] = f"function.{len(w.parts.functions)}"
        inner = ProgramWriter(w.parts, w.emitters)
        inner.is_tried = w.is_tried
        inner.modules.update(_module_parameters(graph.inputs, modules))
        inner.write(graph, name)
    boxes: list[str] = []
    words = [
        w.argument_word(value, parameter.type, boxes)
        for value, parameter, module in zip(given, graph.inputs, modules, strict=True)
        if module is None
    ]
    results = w.alloca("i64")
    w.line(f"store i64 0, ptr {results}")
    w.call_or_fail(enter_call, "%context")
    code = w.emit(f"call i32 @{name}(ptr %context, ptr {w.words(words)}, ptr {results})")
    w.call(leave_call, "%context")
    for box in boxes:
        w.call(release, w.take(box))
    w.unwind_if(w.emit(f"icmp ne i32 {code}, 0"), has_place=True)
    if node.outputs:
        result = graph.outputs[0].type
        register = w.of_word(w.emit(f"load i64, ptr {results}"), result)
        w.define(node.output, w.converted(register, result, node.output.type))


def _module_parameters(parameters: Sequence[Value], modules: Sequence[ModuleValue | None]) -> dict[Value, ModuleValue]:
    return {parameter: module for parameter, module in zip(parameters, modules, strict=True) if module is not None}
