"""``trace`` and ``trace_module``: run a program once, and compile its tensor operations."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch

import rekindle.tracing.recording.compiled_calls  # noqa: F401  (implements hooks of lower layers)
from rekindle.errors import TracingError
from rekindle.ir.graph_function import GraphFunction
from rekindle.program.function import Function, Method, Overloaded
from rekindle.program.modules.module import ScriptModule
from rekindle.program.names import qualified_name, unique_name
from rekindle.tracing.check import check_graphs, check_paths, check_results, copy_of
from rekindle.tracing.example_run import Examples, examples_of, record_run
from rekindle.tracing.fixup_trace_scopes import lower_to_function, lower_to_methods
from rekindle.tracing.module_state import ModuleState, state_kept
from rekindle.tracing.modules import module_for_trace, places_of_modules, places_of_tensors
from rekindle.tracing.recording.active import active_recorder
from rekindle.tracing.recording.compiled_calls import record_compiled_call
from rekindle.tracing.recording.recorder import Recorder, TracerWarning
from rekindle.tracing.report import TraceReport

_T = TypeVar("_T")


class TracedFunction(Function):
    """A compiled function that was traced. ``report`` lists its assumptions."""

    def __init__(self, record: GraphFunction, python: Any, report: TraceReport) -> None:
        super().__init__(record, python)
        self.report = report

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the page of :func:`rekindle.show`, and the assumptions of the trace."""
        return super()._repr_html_() + self.report._repr_html_()


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: object = None,
    check_trace: bool = True,
    check_inputs: Sequence[Any] | None = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    *,
    example_kwarg_inputs: Mapping[str, Any] | None = None,
) -> Any:
    """Run ``func`` on example inputs, and compile the operators that it applied to tensors.

    Sizes of tensors, and what is computed from them, stay computations. Other values that Python code takes from
    tensors are constants of the trace: ``report`` of the result lists them, and a :class:`TracerWarning` reports most
    of them.

    Args:
        func: a function, a method, or a module.
        example_inputs: a tuple of arguments; a tensor means a tuple of one.
        optimize: has no effect.
        check_trace: record a second time, and compare both recordings; compare the results of the trace with those of
            ``func``, on the examples.
        check_inputs: tuples of arguments on which results are compared in place of the examples, if ``check_trace`` is
            set.
        check_tolerance: the largest difference of results, relative and absolute.
        strict: whether a list among the results causes a warning and a dict an error, since lengths and keys are
            constants.
        example_kwarg_inputs: arguments by name.

    Returns:
        A compiled function or a compiled module, with the attribute ``report``. What is compiled already is returned as
        it is, with a warning.

    Raises:
        TracingError: the run cannot be recorded, ``func`` cannot be called, there are no examples, or another trace is
            being recorded.
        TracingCheckError: a second recording differs.
        Exception: whatever ``func`` raises.

    Example:
        >>> traced = rekindle.trace(lambda x: x.reshape(-1, x.size(-1)).sum(0), torch.ones(2, 3))
        >>> traced(torch.ones(4, 5, 6))
        tensor([20., 20., 20., 20., 20., 20.])
        >>> print(traced.report)
        the trace assumes nothing but what its operators do
    """
    if isinstance(func, (Function, Overloaded, ScriptModule, Method)):
        warnings.warn("what is compiled already is not traced but returned as it is", TracerWarning, stacklevel=2)
        return func
    _check_not_nested()
    options = _Options(strict, check_trace, check_tolerance)
    examples = examples_of(example_inputs, example_kwarg_inputs)
    checked = [examples_of(inputs, None) for inputs in check_inputs or ()]
    owner = getattr(func, "__self__", None)
    if isinstance(owner, torch.nn.Module) and getattr(func, "__name__", "") == "forward":
        func = owner
    if isinstance(func, torch.nn.Module):
        return _trace_methods(func, {"forward": examples}, [{"forward": inputs} for inputs in checked], options)
    if not callable(func):
        raise TracingError(f"a value of class '{type(func).__name__}' cannot be traced", hint="trace a function")
    return _trace_function(func, examples, checked, options)


def trace_module(
    mod: torch.nn.Module,
    inputs: Mapping[str, Any],
    optimize: object = None,
    check_trace: bool = True,
    check_inputs: Sequence[Mapping[str, Any]] | None = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    *,
    example_inputs_is_kwarg: bool = False,
) -> ScriptModule:
    """Trace several methods of a module. See :func:`trace` for the arguments that both have.

    Args:
        mod: the module.
        inputs: example arguments for each method, by its name.
        check_inputs: dicts like ``inputs``, on which results are compared in place of ``inputs``.
        example_inputs_is_kwarg: whether the example arguments of each method are a dict by parameter name.

    Returns:
        A compiled module with these methods.

    Raises:
        TracingError: a run cannot be recorded, ``mod`` is not a module, or ``inputs`` is not a dict.
        TracingCheckError: a second recording differs.

    Example:
        >>> class Scale(torch.nn.Module):
        ...     def forward(self, x):
        ...         return x * 2
        ...     def inverse(self, x):
        ...         return x / 2
        >>> traced = rekindle.trace_module(Scale(), {"forward": torch.ones(2), "inverse": torch.ones(2)})
        >>> traced.inverse(traced(torch.ones(3)))
        tensor([1., 1., 1.])
    """
    if not isinstance(mod, torch.nn.Module):
        raise TracingError(f"trace_module takes a module, got a value of class '{type(mod).__name__}'")
    if not isinstance(inputs, Mapping):
        raise TracingError("trace_module takes a dict: for each method by its name, its arguments")
    _check_not_nested()

    def by_name(given: Mapping[str, Any]) -> dict[str, Examples]:
        return {
            name: examples_of(None, value) if example_inputs_is_kwarg else examples_of(value, None)
            for name, value in given.items()
        }

    options = _Options(strict, check_trace, check_tolerance)
    return _trace_methods(mod, by_name(inputs), [by_name(given) for given in check_inputs or ()], options)


@dataclass(slots=True, frozen=True)
class _Options:
    strict: bool
    check: bool
    tolerance: float


def _check_not_nested() -> None:
    if active_recorder() is not None:
        raise TracingError(
            "a trace cannot be made while another is recorded",
            hint="trace the inner function first, and call what that gave",
        )


# -------------------------------------------------------------------------------------------------------------- running


def _trace_function(
    func: Callable[..., Any], examples: Examples, checked: Sequence[Examples], options: _Options
) -> TracedFunction:
    is_function = inspect.isfunction(func)
    name = unique_name(qualified_name(func) if is_function else "__torch__.traced")

    def recorded(inputs: Examples) -> tuple[GraphFunction, TraceReport]:
        recorder = Recorder({}, {}, call_compiled=record_compiled_call)
        try:
            names, outputs = record_run(recorder, func, func, inputs, options.strict)
            return lower_to_function(recorder, outputs, name, names), recorder.report
        finally:
            recorder.close()

    def check_recording(inputs: Examples) -> None:
        with state_kept():
            check_paths(record.graph, _quietly(lambda: recorded(inputs))[0].graph, record.basename)

    record, report = recorded(examples)
    traced = TracedFunction(record, func if is_function else None, report)
    if options.check:
        with state_kept():
            check_graphs(record.graph, _quietly(lambda: recorded(examples))[0].graph, record.basename)
        for inputs in checked or [examples]:
            what = "the example" if not checked else "a check input"
            _check(func, traced, inputs, options.tolerance, (), what, partial(check_recording, inputs))
    return traced


def _trace_methods(
    module: torch.nn.Module,
    examples: Mapping[str, Examples],
    checked: Sequence[Mapping[str, Examples]],
    options: _Options,
) -> ScriptModule:
    result, report = _record_methods(module, examples, options)
    result.__dict__["report"] = report
    if options.check:
        with state_kept(module):
            second, _ = _quietly(lambda: _record_methods(module, examples, options, result))
        for name in examples:
            check_graphs(getattr(result, name).inlined_graph, getattr(second, name).inlined_graph, name)
        for given in checked or [examples]:
            for name, inputs in given.items():
                what = f"the example of '{name}'" if not checked else f"a check input of '{name}'"
                owners = module, result
                again = partial(_check_paths_of_method, module, result, name, inputs, options)
                _check(_callee(module, name), getattr(result, name), inputs, options.tolerance, owners, what, again)
    return result


def _check_paths_of_method(
    module: torch.nn.Module, result: ScriptModule, name: str, inputs: Examples, options: _Options
) -> None:
    with state_kept(module):
        second, _ = _quietly(lambda: _record_methods(module, {name: inputs}, options, result))
    check_paths(getattr(result, name).inlined_graph, getattr(second, name).inlined_graph, name)


def _record_methods(
    module: torch.nn.Module,
    examples: Mapping[str, Examples],
    options: _Options,
    first: ScriptModule | None = None,
) -> tuple[ScriptModule, TraceReport]:
    modules = places_of_modules(module)
    result = module_for_trace(module)
    report = TraceReport()
    for name, inputs in examples.items():
        recorder = Recorder(modules, places_of_tensors(module), report, record_compiled_call)
        state = ModuleState(module, result, first)
        recorder.leave_module = partial(state.record, recorder)
        try:
            try:
                names, outputs = record_run(
                    recorder, _callee(module, name), getattr(module, name), inputs, options.strict, state
                )
            finally:
                state.finish()
            lower_to_methods(recorder, outputs, result, name, names)
        finally:
            recorder.close()
    return result, report


def _callee(module: torch.nn.Module, name: str) -> Callable[..., Any]:
    """Return the callable to run for the method ``name``: for ``forward``, the module itself, so that its hooks run."""
    found: Callable[..., Any] = module if name == "forward" else getattr(module, name)
    return found


def _quietly(record: Callable[[], _T]) -> _T:
    """Return the result of calling ``record``, with warnings of the class TracerWarning suppressed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TracerWarning)
        return record()


def _check(
    original: Callable[..., Any],
    traced: Callable[..., Any],
    inputs: Examples,
    tolerance: float,
    owners: Sequence[torch.nn.Module],
    what: str,
    check_recording: Callable[[], None],
) -> None:
    args, kwargs = inputs

    def from_here(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*own: Any, **keywords: Any) -> Any:
            with state_kept(*owners):
                return copy_of(call(*own, **keywords))

        return run

    check_results(from_here(original), from_here(traced), args, kwargs, tolerance, what, check_recording)
