"""Shims: the replacements of ``torch.jit``'s names while the drop-in is installed.

Most are this package's own functions and classes as they are. A few differ in form from ``torch.jit``'s, and here are
the forms that code written for ``torch.jit`` expects.
"""

from __future__ import annotations

import enum
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch

from rekindle.api import freezing
from rekindle.api.drop_in.compiled_classes import (
    CompilationUnitShim,
    ScriptFunctionShim,
    ScriptModuleShim,
    check_no_callback,
    through_drop_in,
)
from rekindle.api.drop_in.functional_traces import make_functional, remove_writes
from rekindle.api.drop_in.graph_views.tracer_operators import as_tracer_spells
from rekindle.api.drop_in.graph_views.views import GraphView, hide_source_ranges
from rekindle.api.drop_in.usage import count
from rekindle.archive.load import load as read_archive
from rekindle.archive.pickles.tensors import MapLocation
from rekindle.archive.save import save
from rekindle.archive.zip_files.container import FileLike
from rekindle.ops.python.asynchrony import Await
from rekindle.program import asynchrony, torch_jit
from rekindle.program.calling import inlined
from rekindle.program.function import Function, Method, Overloaded
from rekindle.program.modules.module import ScriptModule
from rekindle.runtime.executor import last_executed_graph, optimized_execution
from rekindle.runtime.interpreter.futures import Future
from rekindle.runtime.settings import set_fusion_strategy
from rekindle.scripting.annotations import is_named_tuple
from rekindle.scripting.callables import modifiers
from rekindle.scripting.classes.interfaces import interface
from rekindle.scripting.modules.module_classes import script_method
from rekindle.scripting.script import script as compile_program, script_if_tracing
from rekindle.tracing.check import TracingCheckError
from rekindle.tracing.recording.recorder import TracerWarning
from rekindle.tracing.trace import trace as record_program, trace_module as record_methods
from rekindle.tracing.trace_graph import trace_graph

# ------------------------------------------------------------------------------------------------------------ functions


def script(
    obj: Any,
    optimize: None = None,
    _frames_up: int = 0,
    _rcb: Callable[[str], Any] | None = None,
    example_inputs: list[tuple[Any, ...]] | Mapping[Any, list[tuple[Any, ...]]] | None = None,
) -> Any:
    """Stand in for ``torch.jit.script``: call :func:`rekindle.script`, with the parameters that ``torch.jit`` has.

    ``optimize``, ``_frames_up`` and ``example_inputs`` have no effect; a warning is issued for the last one. Objects
    that ``torch.jit`` compiled are returned unchanged.

    Raises:
        NotScriptableError: ``obj`` is of a kind that cannot be compiled, or ``_rcb`` is given.
        CompileError: ``obj`` cannot be compiled, for the reason in the message.
    """
    if isinstance(obj, (*torch_jit.SCRIPT_MODULE, *torch_jit.SCRIPT_FUNCTION)):
        return obj
    check_no_callback(_rcb)
    if example_inputs:
        warnings.warn("example_inputs are not looked at; annotate the parameters instead", stacklevel=2)
    compiled = compile_program(obj)
    if compiled is not obj or _is_class(obj):
        count(_kind(compiled), _name(obj))
    return compiled if compiled is obj else through_drop_in(compiled)


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: None = None,
    check_trace: bool = True,
    check_inputs: Sequence[Any] | None = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    *,
    example_kwarg_inputs: Mapping[str, Any] | None = None,
    _force_outplace: bool = False,
    _store_inputs: bool = True,
) -> Any:
    """Stand in for ``torch.jit.trace``: call :func:`rekindle.trace`. Objects that ``torch.jit`` compiled are returned
    unchanged. ``_force_outplace`` replaces in-place operators of the trace with functional ones; ``optimize`` and
    ``_store_inputs`` have no effect.

    Raises:
        TracingError: the run cannot be recorded.
    """
    if isinstance(func, (*torch_jit.SCRIPT_MODULE, *torch_jit.SCRIPT_FUNCTION)):
        return func
    made = record_program(
        func,
        example_inputs,
        check_trace=check_trace,
        check_inputs=check_inputs,
        check_tolerance=check_tolerance,
        strict=strict,
        example_kwarg_inputs=example_kwarg_inputs,
    )
    if made is func:
        return made
    count(_kind(made), _name(func))
    if _force_outplace:
        make_functional(made)
    return through_drop_in(made)


def trace_module(
    mod: torch.nn.Module,
    inputs: Mapping[str, Any],
    optimize: None = None,
    check_trace: bool = True,
    check_inputs: Sequence[Mapping[str, Any]] | None = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    *,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> ScriptModule:
    """Stand in for ``torch.jit.trace_module``: call :func:`rekindle.trace_module`.

    ``_force_outplace`` replaces in-place operators of the trace with functional ones; ``optimize`` and
    ``_store_inputs`` have no effect.

    Raises:
        TracingError: a run cannot be recorded.
    """
    made = record_methods(
        mod,
        inputs,
        check_trace=check_trace,
        check_inputs=check_inputs,
        check_tolerance=check_tolerance,
        strict=strict,
        example_inputs_is_kwarg=example_inputs_is_kwarg,
    )
    count("module", _name(mod))
    if _force_outplace:
        make_functional(made)
    through_drop_in(made)
    return made


def load(
    f: FileLike,
    map_location: MapLocation = None,
    _extra_files: dict[str, Any] | None = None,
    _restore_shapes: bool = False,
) -> ScriptModule:
    """Stand in for ``torch.jit.load``: call :func:`rekindle.load`. ``_restore_shapes`` is ignored.

    Raises:
        OSError: the file cannot be read.
        ArchiveError: it is not an archive of a program, is broken, unsafe, or exceeds the limits.
        CompileError: its sources are invalid.
    """
    module = read_archive(f, map_location, _extra_files)
    count("archive", os.path.basename(os.fsdecode(f)) if isinstance(f, (str, os.PathLike)) else module.original_name)
    through_drop_in(module)
    return module


def freeze(mod: Any, preserved_attrs: Sequence[str] | None = None, optimize_numerics: bool = True) -> Any:
    """Stand in for ``torch.jit.freeze``: call :func:`rekindle.freeze`. A module that ``torch.jit`` compiled is returned
    unchanged, with a warning.

    Raises:
        NotScriptableError: ``mod`` is not a compiled module, is in training mode, or lacks a preserved name.
    """
    if isinstance(mod, torch_jit.SCRIPT_MODULE):
        return _as_it_is("freeze", mod)
    return through_drop_in(freezing.freeze(mod, preserved_attrs, optimize_numerics))


def run_frozen_optimizations(
    mod: Any, optimize_numerics: bool = True, preserved_methods: Sequence[str] | None = None
) -> None:
    """Stand in for ``torch.jit.run_frozen_optimizations``: call :func:`rekindle.run_frozen_optimizations`. A module
    that ``torch.jit`` compiled is not changed, and a warning says so.

    Raises:
        NotScriptableError: ``mod`` is not a compiled module, or lacks a preserved method.
    """
    if isinstance(mod, torch_jit.SCRIPT_MODULE):
        _as_it_is("run_frozen_optimizations", mod)
    else:
        freezing.run_frozen_optimizations(mod, optimize_numerics, preserved_methods)


def optimize_for_inference(mod: Any, other_methods: Sequence[str] | None = None) -> Any:
    """Stand in for ``torch.jit.optimize_for_inference``: call :func:`rekindle.optimize_for_inference`. A module that
    ``torch.jit`` compiled is returned unchanged, with a warning.

    Raises:
        NotScriptableError: ``mod`` is not a compiled module, or lacks one of ``other_methods``.
    """
    if isinstance(mod, torch_jit.SCRIPT_MODULE):
        return _as_it_is("optimize_for_inference", mod)
    return through_drop_in(freezing.optimize_for_inference(mod, other_methods))


def last_executed_optimized_graph() -> GraphView | None:
    """Stand in for ``torch.jit.last_executed_optimized_graph``: return a view of :func:`rekindle.last_executed_graph`,
    or None if nothing has run."""
    graph = last_executed_graph()
    return None if graph is None else GraphView(graph)


def get_trace_graph(
    f: Any,
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    strict: bool = True,
    _force_outplace: bool = False,
    return_inputs: bool = False,
    _return_inputs_states: bool = False,
) -> tuple[Any, ...]:
    """Stand in for ``torch.jit._get_trace_graph``: return a view of the graph of a run, and the result of the run.

    Inputs of the graph are the arguments, then the parameters and buffers of a module. With ``return_inputs``, the
    tuple of arguments is returned as a third item; with ``_return_inputs_states``, that tuple twice, as a pair.

    Raises:
        TracingError: the run cannot be recorded.
    """
    graph, result = trace_graph(f, args, kwargs, strict)
    as_tracer_spells(graph)
    if _force_outplace:
        remove_writes(graph)
    count("graph", _name(f))
    inputs = args if isinstance(args, tuple) else (args,)
    given = (inputs,) if return_inputs else ((inputs, inputs),) if _return_inputs_states else ()
    return GraphView(graph), result, *given


def export_opnames(m: ScriptModule) -> list[str]:
    """Stand in for ``torch.jit.export_opnames``: return the operators that a compiled module and its submodules call,
    by their names with overloads (``aten::add.Tensor``), in alphabetical order, without those of ``prim``."""
    found: set[str] = set()
    for part in m.modules():
        for record in part.script_type.methods.values() if isinstance(part, ScriptModule) else ():
            operators = (node.operator for node in inlined(record).all_nodes())
            found.update(each.schema.qualified_name for each in operators if each is not None)
    return sorted(name for name in found if not name.startswith("prim::"))


def _as_it_is(name: str, mod: Any) -> Any:
    warnings.warn(f"'{name}': torch.jit compiled the module, not rekindle: it is returned as it is", stacklevel=3)
    return mod


def _name(obj: object) -> str:
    return str(getattr(obj, "__qualname__", type(obj).__qualname__))


def _kind(compiled: object) -> str:
    if isinstance(compiled, ScriptModule):
        return "module"
    return "function" if isinstance(compiled, (Function, Method, Overloaded)) else "class"


def _is_class(obj: object) -> bool:
    """Return whether ``obj`` is a class other than a NamedTuple or an enum, which have no compiled methods."""
    return isinstance(obj, type) and not issubclass(obj, enum.Enum) and not is_named_tuple(obj)


SHIMS: Final[dict[str, Any]] = {
    "Attribute": modifiers.Attribute,
    "CompilationUnit": CompilationUnitShim,
    # A program raises what Python would: nothing is wrapped.
    "Error": Exception,
    "Future": Future,
    "RecursiveScriptModule": ScriptModuleShim,
    "ScriptFunction": ScriptFunctionShim,
    "ScriptModule": ScriptModuleShim,
    "TracerWarning": TracerWarning,
    "TracingCheckError": TracingCheckError,
    "_Await": Await,
    "_get_trace_graph": get_trace_graph,
    "_awaitable": asynchrony.awaitable,
    "_awaitable_nowait": asynchrony.awaitable_nowait,
    "_awaitable_wait": asynchrony.awaitable_wait,
    "_fork": asynchrony.fork,
    "_hide_source_ranges": hide_source_ranges,
    "_script_if_tracing": script_if_tracing,
    "_wait": asynchrony.wait,
    "export": modifiers.export,
    "export_opnames": export_opnames,
    "fork": asynchrony.fork,
    "freeze": freeze,
    "ignore": modifiers.ignore,
    "interface": interface,
    "isinstance": modifiers.isinstance_,
    "last_executed_optimized_graph": last_executed_optimized_graph,
    "load": load,
    "optimize_for_inference": optimize_for_inference,
    "optimized_execution": optimized_execution,
    "run_frozen_optimizations": run_frozen_optimizations,
    "save": save,
    "set_fusion_strategy": set_fusion_strategy,
    "script": script,
    "script_if_tracing": script_if_tracing,
    "script_method": script_method,
    "trace": trace,
    "trace_module": trace_module,
    "unused": modifiers.unused,
    "wait": asynchrony.wait,
}
"""The replaced names of ``torch.jit``, with their replacements.

``annotate``, ``is_scripting``, ``is_tracing``, ``_unwrap_optional`` and the declarations of overloads are not among
them: they mean the same to either compiler, and PyTorch's own eager code calls the first three often.
"""
