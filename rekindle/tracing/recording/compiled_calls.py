"""Calls of compiled functions and modules while a trace is recorded: they stay calls, control flow and all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from rekindle.errors import TracingError
from rekindle.ir.graph import Value
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema_matching import NamedValue, match_schemas
from rekindle.ir.types import FunctionType
from rekindle.program.calling import runner_of
from rekindle.program.modules.module import ScriptModule
from rekindle.scripting.callables import modifiers
from rekindle.tracing.recording import autocasting
from rekindle.tracing.recording.active import active_recorder, recording
from rekindle.tracing.recording.numbers import all_plain
from rekindle.tracing.recording.recorder import Recorder
from rekindle.tracing.report import Baked
from rekindle.tracing.source_locations import current_place, users_place


def record_compiled_call(record: GraphFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Run a compiled function without recording its operators, add its call to the trace of this thread, and return its
    result bound to the result of the call.

    Raises:
        TracingError: ``record`` is a method of a module that is not part of the traced module.
    """
    recorder = active_recorder()
    assert recorder is not None
    owner = args[0] if args and isinstance(args[0], ScriptModule) else None
    place = current_place()
    callee = _callee(recorder, record) if owner is None else _owner(recorder, owner)
    given = [recorder.argument(item) for item in (args if owner is None else args[1:])]
    if owner is not None:
        given.insert(0, NamedValue(callee, range=place))
    keywords = [recorder.argument(item, name) for name, item in kwargs.items()]
    if autocasting.is_on():
        recorder.bake_setting(f"autocasting in the compiled '{record.basename}'", "on", "the trace calls it without")
    with recording(None):
        plain = {name: all_plain(item) for name, item in kwargs.items()}
        result = runner_of(record)(record, [all_plain(item) for item in args], plain)
    _, plan = match_schemas(record.basename, [record.schema], place, given, keywords)
    recorder.grad_mode.sync(recorder.graph)
    inputs = plan.inputs(recorder.graph, place)
    graph = recorder.graph
    if owner is None:
        node = graph.create("prim::CallFunction", [callee, *inputs], types=plan.return_types, range=place)
    else:
        name = {"name": record.basename}
        node = graph.create("prim::CallMethod", inputs, types=plan.return_types, attributes=name, range=place)
    bound = recorder.bind_result(result, graph.insert_node(node).output)
    for item in _fixed(recorder, bound):
        kind = Baked.BRANCH if isinstance(item, bool) else Baked.NUMBER
        recorder.bake_tensor(f"the result of the compiled '{record.basename}'", item, kind)
    return bound


def _fixed(recorder: Recorder, result: Any) -> Iterator[Any]:
    """Yield the parts of a result that are not computed in the trace: values other than tensors and traced numbers."""
    if isinstance(result, (list, tuple)):
        for item in result:
            yield from _fixed(recorder, item)
    elif isinstance(result, dict):
        yield from _fixed(recorder, list(result.values()))
    elif result is not None and not isinstance(result, torch.Tensor) and not recorder.is_traced_number(result):
        yield result


def _callee(recorder: Recorder, record: GraphFunction) -> Value:
    constant = recorder.graph.create(
        "prim::Constant",
        types=[FunctionType(record)],
        attributes={"name": record.basename},
        range=current_place(),
    )
    return recorder.graph.insert_node(constant).output


def _owner(recorder: Recorder, module: ScriptModule) -> Value:
    path = recorder.place_of_module(module)
    if path is None:
        raise TracingError(
            f"the compiled module '{module.original_name}' is called and is not part of the traced module",
            users_place(),
            hint="make it a sub-module of what is traced",
        )
    return recorder.attribute(path, module.script_type)


modifiers.trace_is_recorded.provide(lambda: active_recorder() is not None)
