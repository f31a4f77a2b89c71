"""A compiler for PyTorch programs, written in Python: the public names, and nothing else.

Names are loaded when they are first used, so that ``import rekindle`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

__version__ = "0.1.0"

if TYPE_CHECKING:
    from typing import Final as Final

    from rekindle.api.bisect import bisect as bisect
    from rekindle.api.drop_in.install import (
        install as install,
        installed as installed,
        is_installed as is_installed,
        uninstall as uninstall,
    )
    from rekindle.api.environment import collect_env as collect_env
    from rekindle.api.freezing import (
        freeze as freeze,
        optimize_for_inference as optimize_for_inference,
        run_frozen_optimizations as run_frozen_optimizations,
    )
    from rekindle.api.reports.measure import measure as measure
    from rekindle.api.reports.report import report as report
    from rekindle.api.reports.report_data import Report as Report
    from rekindle.api.require_fused import require_fused as require_fused
    from rekindle.api.show import show as show
    from rekindle.api.stages import stages as stages
    from rekindle.archive.inspect import inspect as inspect
    from rekindle.archive.limits import ArchiveLimits as ArchiveLimits
    from rekindle.archive.load import load as load
    from rekindle.archive.save import save as save
    from rekindle.building.library import Build as Build, build as build
    from rekindle.building.lowering.representation import NotBuildable as NotBuildable
    from rekindle.building.native_library import LibraryError as LibraryError, NativeLibrary as NativeLibrary
    from rekindle.errors import RekindleError as RekindleError
    from rekindle.exporting.program import (
        to_exported as to_exported,
        to_exported_methods as to_exported_methods,
    )
    from rekindle.importing.backend import backend as backend
    from rekindle.importing.program import from_exported as from_exported
    from rekindle.ir.graph import Graph as Graph
    from rekindle.ops.python.asynchrony import Await as Await
    from rekindle.ops.tensor.torchbind_objects import add_torchbind_schemas as add_torchbind_schemas
    from rekindle.program.asynchrony import (
        awaitable as awaitable,
        awaitable_nowait as awaitable_nowait,
        awaitable_wait as awaitable_wait,
        fork as fork,
        wait as wait,
    )
    from rekindle.program.function import Function as Function, Method as Method
    from rekindle.program.sources.compilation_unit import CompilationUnit as CompilationUnit
    from rekindle.runtime.executor import (
        last_executed_graph as last_executed_graph,
        optimized_execution as optimized_execution,
        set_execution_strategy as set_execution_strategy,
    )
    from rekindle.runtime.interpreter.futures import Future as Future
    from rekindle.runtime.settings import (
        set_background_compilation as set_background_compilation,
        set_cuda_graphs as set_cuda_graphs,
        set_fusion_strategy as set_fusion_strategy,
    )
    from rekindle.runtime.strategies.profiling import set_profiled_runs as set_profiled_runs
    from rekindle.runtime.user_passes import (
        add_pass as add_pass,
        known_passes as known_passes,
        register_pass as register_pass,
    )
    from rekindle.scripting.callables.modifiers import (
        Attribute as Attribute,
        annotate as annotate,
        export as export,
        ignore as ignore,
        is_scripting as is_scripting,
        is_tracing as is_tracing,
        isinstance_ as isinstance_,
        unused as unused,
    )
    from rekindle.scripting.classes.interfaces import interface as interface
    from rekindle.scripting.modules.module_classes import (
        ScriptModule as ScriptModule,
        script_method as script_method,
    )
    from rekindle.scripting.script import script as script, script_if_tracing as script_if_tracing
    from rekindle.tracing.check import TracingCheckError as TracingCheckError
    from rekindle.tracing.recording.recorder import TracerWarning as TracerWarning
    from rekindle.tracing.trace import trace as trace, trace_module as trace_module
    from rekindle.training.step import TrainingStep as TrainingStep, compile_step as compile_step
    from rekindle.transforms.derivatives.functions import (
        grad as grad,
        hessian as hessian,
        jacrev as jacrev,
        jvp as jvp,
        value_and_grad as value_and_grad,
        vjp as vjp,
    )
    from rekindle.transforms.editing.from_graph import (
        create_function as create_function,
        create_method as create_method,
        create_module as create_module,
    )
    from rekindle.transforms.rewriting.rewrite_rules import apply_rules as apply_rules, rewrite as rewrite
    from rekindle.transforms.vmap.function import vmap as vmap
    from rekindle.viz import to_dot as to_dot, to_mermaid as to_mermaid, to_svg as to_svg

_HOMES: Final[dict[str, str]] = {
    "ArchiveLimits": "rekindle.archive.limits",
    "Attribute": "rekindle.scripting.callables.modifiers",
    "Await": "rekindle.ops.python.asynchrony",
    "Build": "rekindle.building.library",
    "CompilationUnit": "rekindle.program.sources.compilation_unit",
    "Function": "rekindle.program.function",
    "Future": "rekindle.runtime.interpreter.futures",
    "Graph": "rekindle.ir.graph",
    "LibraryError": "rekindle.building.native_library",
    "Method": "rekindle.program.function",
    "NativeLibrary": "rekindle.building.native_library",
    "NotBuildable": "rekindle.building.lowering.representation",
    "RekindleError": "rekindle.errors",
    "Report": "rekindle.api.reports.report_data",
    "ScriptModule": "rekindle.scripting.modules.module_classes",
    "TracerWarning": "rekindle.tracing.recording.recorder",
    "TrainingStep": "rekindle.training.step",
    "TracingCheckError": "rekindle.tracing.check",
    "add_torchbind_schemas": "rekindle.ops.tensor.torchbind_objects",
    "add_pass": "rekindle.runtime.user_passes",
    "annotate": "rekindle.scripting.callables.modifiers",
    "apply_rules": "rekindle.transforms.rewriting.rewrite_rules",
    "awaitable": "rekindle.program.asynchrony",
    "awaitable_nowait": "rekindle.program.asynchrony",
    "awaitable_wait": "rekindle.program.asynchrony",
    "backend": "rekindle.importing.backend",
    "bisect": "rekindle.api.bisect",
    "build": "rekindle.building.library",
    "compile_step": "rekindle.training.step",
    "collect_env": "rekindle.api.environment",
    "create_function": "rekindle.transforms.editing.from_graph",
    "create_method": "rekindle.transforms.editing.from_graph",
    "create_module": "rekindle.transforms.editing.from_graph",
    "export": "rekindle.scripting.callables.modifiers",
    "fork": "rekindle.program.asynchrony",
    "freeze": "rekindle.api.freezing",
    "from_exported": "rekindle.importing.program",
    "ignore": "rekindle.scripting.callables.modifiers",
    "inspect": "rekindle.archive.inspect",
    "install": "rekindle.api.drop_in.install",
    "installed": "rekindle.api.drop_in.install",
    "is_installed": "rekindle.api.drop_in.install",
    "interface": "rekindle.scripting.classes.interfaces",
    "is_scripting": "rekindle.scripting.callables.modifiers",
    "is_tracing": "rekindle.scripting.callables.modifiers",
    "isinstance_": "rekindle.scripting.callables.modifiers",
    "known_passes": "rekindle.runtime.user_passes",
    "last_executed_graph": "rekindle.runtime.executor",
    "measure": "rekindle.api.reports.measure",
    "load": "rekindle.archive.load",
    "optimize_for_inference": "rekindle.api.freezing",
    "optimized_execution": "rekindle.runtime.executor",
    "report": "rekindle.api.reports.report",
    "require_fused": "rekindle.api.require_fused",
    "register_pass": "rekindle.runtime.user_passes",
    "rewrite": "rekindle.transforms.rewriting.rewrite_rules",
    "run_frozen_optimizations": "rekindle.api.freezing",
    "save": "rekindle.archive.save",
    "script": "rekindle.scripting.script",
    "script_method": "rekindle.scripting.modules.module_classes",
    "script_if_tracing": "rekindle.scripting.script",
    "set_background_compilation": "rekindle.runtime.settings",
    "set_cuda_graphs": "rekindle.runtime.settings",
    "set_execution_strategy": "rekindle.runtime.executor",
    "set_fusion_strategy": "rekindle.runtime.settings",
    "set_profiled_runs": "rekindle.runtime.strategies.profiling",
    "show": "rekindle.api.show",
    "stages": "rekindle.api.stages",
    "to_exported": "rekindle.exporting.program",
    "to_exported_methods": "rekindle.exporting.program",
    "uninstall": "rekindle.api.drop_in.install",
    "to_dot": "rekindle.viz",
    "to_mermaid": "rekindle.viz",
    "to_svg": "rekindle.viz",
    "trace": "rekindle.tracing.trace",
    "trace_module": "rekindle.tracing.trace",
    "unused": "rekindle.scripting.callables.modifiers",
    "vmap": "rekindle.transforms.vmap.function",
    "wait": "rekindle.program.asynchrony",
    "grad": "rekindle.transforms.derivatives.functions",
    "hessian": "rekindle.transforms.derivatives.functions",
    "jacrev": "rekindle.transforms.derivatives.functions",
    "jvp": "rekindle.transforms.derivatives.functions",
    "value_and_grad": "rekindle.transforms.derivatives.functions",
    "vjp": "rekindle.transforms.derivatives.functions",
}
"""Where each public name lives."""

_OTHER_NAMES: Final[dict[str, str]] = {
    "Error": "a compiled program raises the exception that Python would raise",
    "RecursiveScriptModule": "it is rekindle.ScriptModule",
    "last_executed_optimized_graph": "it is rekindle.last_executed_graph",
    "strict_fusion": "it is rekindle.require_fused",
}
"""Hints for public names of ``torch.jit`` that are spelled otherwise here."""


def __getattr__(name: str) -> Any:
    if name == "isinstance":
        name = "isinstance_"  # Python's own name cannot be imported without hiding it
    if name == "errors":
        return importlib.import_module("rekindle.errors")
    home = _HOMES.get(name)
    if home is None:
        hint = f"\nHint: {_OTHER_NAMES[name]}" if name in _OTHER_NAMES else ""
        raise AttributeError(f"module 'rekindle' has no attribute '{name}'{hint}")
    with importlib.import_module("rekindle.errors.gc_pause").gc_paused(everything_stays=True):
        # They implement hooks of lower layers: source text refers to names in Python's scope, and graphs are edited
        # with PyTorch's functions.
        importlib.import_module("rekindle.scripting")
        importlib.import_module("rekindle.transforms")
        importlib.import_module("rekindle.program.saving").save_program.provide(_save)
        importlib.import_module("rekindle.program.public_names").public.provide(__getattr__)
        importlib.import_module("rekindle.ir.graph").draw.provide(_draw)
        found = getattr(importlib.import_module(home), name)
    globals()[name] = found
    return found


def _save(program: Any, f: Any, extra_files: Any) -> None:
    """Implement ``rekindle.save`` for programs' own ``save`` methods: most are not called, and archives take time to
    import."""
    importlib.import_module("rekindle.archive.save").save(program, f, extra_files)


def _draw(graph: Any) -> Any:
    """Return a graph as a picture for a notebook: pictures take time to import, and most programs draw none."""
    return importlib.import_module("rekindle.viz.svg").notebook_svg(graph)


def __dir__() -> list[str]:
    return sorted({*_HOMES, "Final", "__version__", "errors", "isinstance"})
