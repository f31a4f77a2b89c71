"""Calls of functions and methods that are not inlined: recursion, bodies of ``try``, and context managers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rekindle.analysis.constants import is_constant
from rekindle.building.lowering.emitters import emits
from rekindle.building.lowering.parts import ModuleValue
from rekindle.building.lowering.representation import NotBuildable
from rekindle.building.lowering.writer import ProgramWriter
from rekindle.building.runtime.memory import release
from rekindle.building.runtime.objects import enter_call, leave_call
from rekindle.ir.graph import Node, Value
from rekindle.ir.graph_function import GraphFunction, called_function
from rekindle.ir.types import NONE, ClassType
from rekindle.passes.canonicalization.inlining import call_arguments


@emits("prim::CallFunction", "prim::CallMethod")
def call(w: ProgramWriter, node: Node) -> None:
    record = called_function(node)
    if record is None:
        raise NotBuildable(f"a call of what is known only at run time ('{node.kind}')", node.range)
    given = list(call_arguments(node))
    modules = [w.modules.get(value) for value in given]
    boxes: list[str] = []
    words = [
        w.argument_word(value, parameter.type, boxes)
        for value, parameter, module in zip(given, record.graph.inputs, modules, strict=True)
        if module is None
    ]
    results = _call(w, _function_of(w, record, modules), words, boxes)
    if node.outputs:
        _define_result(w, node.output, record, results)


def _function_of(w: ProgramWriter, record: GraphFunction, modules: Sequence[ModuleValue | None]) -> str:
    """Return the symbol of the lowered function ``record``, specialized to the modules among its arguments. The
    function is lowered at the first request."""
    key = (id(record), w.is_tried, *(None if each is None else id(each.module) for each in modules))
    name = w.parts.functions.get(key)
    if name is None:
        name = w.parts.functions[key] = f"function.{len(w.parts.functions)}"
        inner = ProgramWriter(w.parts, w.emitters)
        inner.is_tried = w.is_tried
        inner.modules.update(_module_parameters(record.graph.inputs, modules))
        inner.write(record.graph, name)
    return name


def _call(w: ProgramWriter, name: str, words: Sequence[str], boxes: Sequence[str] = ()) -> str:
    """Emit a call of a lowered function with arguments as 64-bit words, and an exit for its errors; return the address
    of its results."""
    results = w.alloca("i64")
    w.line(f"store i64 0, ptr {results}")
    w.call_or_fail(enter_call, "%context")
    code = w.emit(f"call i32 @{name}(ptr %context, ptr {w.words(words)}, ptr {results})")
    w.call(leave_call, "%context")
    for box in boxes:
        w.call(release, w.take(box))
    w.unwind_if(w.emit(f"icmp ne i32 {code}, 0"), has_place=True)
    return results


def _define_result(w: ProgramWriter, value: Value, record: GraphFunction, results: str) -> None:
    result = record.graph.outputs[0].type
    register = w.of_word(w.emit(f"load i64, ptr {results}"), result)
    w.define(value, w.converted(register, result, value.type))


def _module_parameters(parameters: Sequence[Value], modules: Sequence[ModuleValue | None]) -> dict[Value, ModuleValue]:
    return {parameter: module for parameter, module in zip(parameters, modules, strict=True) if module is not None}


# ----------------------------------------------------------------------------------------------------- with statements

_MODES: Final = ("no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "record_function")
"""Context managers of PyTorch that have no effect: a library records no gradients and no profile."""


def _has_no_effect(w: ProgramWriter, manager: Value, node: Node) -> bool:
    """Return whether a context manager of PyTorch has no effect in a library. Record the ones that may enable
    gradients.

    Raises:
        NotBuildable: it enables autocasting on the CPU, or it may enable gradients and the program depends on the
            gradient mode.
    """
    name = str(manager.type)
    if not name.startswith("__torch__.torch."):
        return False
    kind = name.rpartition(".")[2]
    if kind == "autocast":
        if _attribute(manager, "_enabled", True) and _attribute(manager, "device", "cpu") == "cpu":
            raise NotBuildable("native libraries do not convert tensors within 'torch.autocast'", node.range)
        return True
    if kind in ("enable_grad", "set_grad_enabled"):
        w.parts.gradient_modes.changes_it(node)
    return kind in _MODES


@emits("prim::Enter")
def enter_context(w: ProgramWriter, node: Node) -> None:
    """Emit a call of ``__enter__``. On an error before the matching ``prim::Exit``, ``__exit__`` is called with None in
    place of the exception.

    Raises:
        NotBuildable: ``__exit__`` uses the exception or returns a value, or the ``with`` statement is left in several
            places.
    """
    if _has_no_effect(w, node.input, node):
        w.define(node.output, "null")
        return
    if not _is_left_in_its_block(node):
        raise NotBuildable("a 'with' statement that is left in several places", node.range)
    enter, leave = (_method_of(node, name) for name in ("__enter__", "__exit__"))
    if any(value.has_uses for value in leave.graph.inputs[1:]):
        raise NotBuildable("a context manager whose '__exit__' uses the exception that it gets", node.range)
    if leave.graph.outputs and leave.graph.outputs[0].type != NONE:
        raise NotBuildable("a context manager whose '__exit__' returns whether an exception is suppressed", node.range)
    manager = w.word_of(w.name(node.input), node.input.type)
    _define_result(w, node.output, enter, _call(w, _function_of(w, enter, [None]), [manager]))
    w.call_on_errors(_function_of(w, leave, [None] * len(leave.graph.inputs)), [manager, *_NO_ERROR])


def _attribute(manager: Value, name: str, otherwise: object) -> object:
    """Return the constant that is assigned to an attribute of a new context manager; ``otherwise`` if it is not one
    constant."""
    writes = [
        use.user
        for use in manager.uses
        if use.user.kind == "prim::SetAttr" and use.user.get_string("name") == name and use.offset == 0
    ]
    if len(writes) != 1 or not is_constant(writes[0].inputs[1]):
        return otherwise
    return writes[0].inputs[1].to_python()


def _is_left_in_its_block(enter: Node) -> bool:
    block, depth = enter.owning_block, 0
    assert block is not None
    for node in block.nodes:
        if node is enter or depth:
            depth += (node.kind == "prim::Enter") - (node.kind == "prim::Exit")
            if not depth:
                return True
    return False


@emits("prim::Exit")
def leave_context(w: ProgramWriter, node: Node) -> None:
    if _has_no_effect(w, node.input, node):
        w.define(node.output, "null")
        return
    leave = _method_of(node, "__exit__")
    w.end_of_call_on_errors()
    name = _function_of(w, leave, [None] * len(leave.graph.inputs))
    _call(w, name, [w.word_of(w.name(node.input), node.input.type), *_NO_ERROR])
    w.define(node.output, "null")


_NO_ERROR: Final = ("0", "0", "0")
"""The arguments of ``__exit__``, which are None."""


def _method_of(node: Node, name: str) -> GraphFunction:
    """Return the method ``name`` of the context manager that is the input of ``node``.

    Raises:
        NotBuildable: the context manager is not an object of a compiled class, or has no such method.
    """
    type = node.input.type
    method = type.methods.get(name) if isinstance(type, ClassType) and not type.is_module else None
    if method is None:
        raise NotBuildable(f"a 'with' statement of a {type}", node.range)
    return method
