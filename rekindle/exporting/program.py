"""Export of a compiled program to a :class:`torch.export.ExportedProgram`.

The program *runs* under PyTorch's own exporter, which computes shapes of FakeTensors, symbols and their ranges,
functional forms of writes, guards, the signature and the input specifications. Writing the graph node by node would
repeat all that for every release of PyTorch. Not Python code runs but the program's graph, in an interpreter
(:mod:`rekindle.exporting.interpreter.symbolic_interpreter`). It can do what a tracer of Python cannot: it knows the
blocks of an ``if`` or a loop with their inputs and outputs, and can follow both branches with copies of the whole
state.

1. :mod:`rekindle.exporting.module_state` makes an ``nn.Module`` of the program's modules: parameters and buffers, no
   code.
2. Its ``forward`` runs the graph on the FakeTensors that ``torch.export.export`` passes.
3. ``run_decompositions`` with an empty table makes the graph functional and leaves all operators as they are.
4. :mod:`rekindle.exporting.interpreter.provenance` writes source locations into the nodes.
"""

from __future__ import annotations

import enum
import inspect
import logging
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import Tensor
from torch.fx import traceback as fx_traceback

from rekindle.errors import UNKNOWN_RANGE, DraftWarning, ExportError, ExportProblem
from rekindle.exporting.guards import check_dtypes, guards_of, leaves_with_sources
from rekindle.exporting.interpreter.calls import EntryCall, Hooks, hooks_of, problems_of_parts
from rekindle.exporting.interpreter.example_fallback import NeedsExample
from rekindle.exporting.interpreter.example_run import run_example
from rekindle.exporting.interpreter.node_execution import ExportInterpreter, step_of
from rekindle.exporting.interpreter.provenance import ProvenanceTable, write_provenance
from rekindle.exporting.interpreter.symbolic_interpreter import (
    Example,
    ExecutionPoint,
    ExportSession,
    ProgramRaises,
    callers_of,
    forget_uses,
)
from rekindle.exporting.interpreter.values import SymbolicObject, parts
from rekindle.exporting.module_state import NeedsState, ProgramState, refused_changes
from rekindle.exporting.outputs import Results
from rekindle.exporting.pytree_registry import copied, is_same, register_pytrees
from rekindle.exporting.static_checks import constants_of, static_problems
from rekindle.ir.graph_function import GraphFunction
from rekindle.program.function import Function, Method, Overloaded, signature_of
from rekindle.program.modules.module import ScriptModule
from rekindle.runtime.calls.arguments import binder_of

ROUNDS: Final = 16
"""Maximum number of attempts at an export. An attempt may find numbers that change, or a branch or loop that has to
follow the example; then another one starts."""


def to_exported(
    program: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    draft: bool = False,
) -> torch.export.ExportedProgram:
    """Convert a compiled program to a ``torch.export.ExportedProgram``.

    Ints, floats, bools and strings are those of the example, unless ``dynamic_shapes`` names them; the exported program
    checks them. Attributes that the program changes become buffers that change with each call.

    If Export IR cannot express a part of the program, the program is run once on the example to find all such parts.

    Args:
        program: a compiled module, method or function.
        args: a tuple of the positional arguments of one example call: ``(x,)`` for one argument.
        kwargs: a dict of its arguments by name.
        dynamic_shapes: which sizes and ints vary between calls, in the form of :func:`torch.export.export`.
        draft: export the program even if Export IR cannot express all of it. Then it takes the branches and contains
            the numbers of the example, and checks them; prints and similar effects are left out. A
            :class:`rekindle.errors.DraftWarning` lists all that is left out or fixed.

    Raises:
        ExportError: the program holds what Export IR cannot express; the error has every reason. With ``draft``, there
            is a reason that a draft cannot leave out either.
        ArgumentError: the arguments do not match the signature.
        TypeError: ``program`` is not compiled, or ``args`` is neither a tuple nor a list.

    Example:
        >>> program = rekindle.script(lambda x: torch.relu(x) + 1)
        >>> exported = rekindle.to_exported(program, (torch.ones(3),))
        >>> exported.module()(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([1., 1., 2.])
    """
    kwargs = dict(kwargs or {})
    owner, record = _entry(program, args, kwargs)
    if isinstance(program, ScriptModule):
        hooks = hooks_of(program)
    else:
        hooks = _without_hooks(owner)
    given = tuple(args) if owner is None else (owner, *args)
    binder_of(record).bind(given, kwargs)
    register_pytrees([*args, kwargs])
    with _quiet():
        return _Exporter(EntryCall(owner, record, hooks), draft, {}).export(tuple(args), kwargs, dynamic_shapes)


def to_exported_methods(
    module: ScriptModule,
    calls: Mapping[str, Sequence[Any]],
    *,
    dynamic_shapes: Mapping[str, Any] | None = None,
    draft: bool = False,
) -> dict[str, torch.export.ExportedProgram]:
    """Convert several methods of a compiled module to ``ExportedProgram`` objects, which share one ``state_dict``.

    Args:
        module: a compiled module.
        calls: a dict from the name of each method to a tuple of the positional arguments of one example call.
        dynamic_shapes: what :func:`to_exported` takes, by the same names.
        draft: as in :func:`to_exported`.

    Raises:
        ExportError: a method holds what Export IR cannot express.
        ArgumentError: the arguments of a method do not match its signature.
        AttributeError: the module has no such method.
        TypeError: an example is neither a tuple nor a list.

    Example:
        >>> net = rekindle.script(torch.nn.Linear(3, 2))
        >>> programs = rekindle.to_exported_methods(net, {"forward": (torch.ones(1, 3),)})
        >>> list(programs)
        ['forward']
    """
    shapes = dynamic_shapes or {}
    numbers: dict[str, Tensor] = {}
    known = -1
    programs: dict[str, torch.export.ExportedProgram] = {}
    # What one method changes is a buffer of all of them: so they are run until no other number is found to change.
    while known != len(numbers):
        known = len(numbers)
        for name, args in calls.items():
            owner, record = _entry(getattr(module, name), args, {})
            binder_of(record).bind((owner, *args), {})
            with _quiet():
                exporter = _Exporter(EntryCall(owner, record, _without_hooks(owner)), draft, numbers)
                programs[name] = exporter.export(tuple(args), {}, shapes.get(name))
    shared: dict[str, Any] = {}
    for program in programs.values():
        for key, tensor in program.state_dict.items():
            shared.setdefault(key, tensor)
        program._state_dict = shared
    return programs


def _without_hooks(owner: ScriptModule | None) -> Hooks:
    """Return the hooks of a function or method, which has none: those of the parts of ``owner`` are problems."""
    return Hooks() if owner is None else Hooks(problems=tuple(problems_of_parts(owner)))


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress PyTorch's own deprecation warnings in the ``with`` block, and its log of operators that raise: errors
    report these."""

    def keep(record: logging.LogRecord) -> bool:
        return not str(record.msg).startswith("failed while attempting to run meta")

    logger = logging.getLogger("torch._subclasses.fake_tensor")
    logger.addFilter(keep)
    try:
        with warnings.catch_warnings():
            for category in (FutureWarning, DeprecationWarning):
                warnings.simplefilter("ignore", category)
            yield
    finally:
        logger.removeFilter(keep)


def _entry(program: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[ScriptModule | None, GraphFunction]:
    if not isinstance(args, (tuple, list)):
        raise TypeError(
            "the positional arguments of the example call are a tuple, for one argument (x,), not a value of class"
            f" '{type(args).__name__}'"
        )
    if isinstance(program, ScriptModule):
        program = program.forward
    if isinstance(program, Overloaded):
        program = program.fitting(args, kwargs)
    if isinstance(program, Method):
        if not isinstance(program.owner, ScriptModule):
            raise TypeError(
                f"'{program.name}' is a method of an object that is not a module; export a function that calls it"
            )
        return program.owner, program._record
    if isinstance(program, Function):
        return None, program._record
    raise TypeError(
        f"to_exported takes a compiled module, method or function, not {type(program).__name__}; compile it first, with"
        " rekindle.script or rekindle.trace"
    )


class _Exporter:
    def __init__(self, call: EntryCall, is_draft: bool, numbers: dict[str, Tensor]) -> None:
        self.call = call
        self.is_draft = is_draft
        self.numbers = numbers
        """The buffers of numbers that the program is known to change, by the names of the numbers."""

    def export(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
    ) -> torch.export.ExportedProgram:
        changing = frozenset(self.numbers)
        example: Example | None = None
        decided: dict[ExecutionPoint, ExportProblem] = {}
        for _ in range(ROUNDS):
            run = _Run(self, ProgramState(self.call.owner, changing, self.numbers))
            run.session.example, run.session.forced_by_example = example, dict(decided)
            try:
                program = run.traced(args, kwargs, dynamic_shapes)
            except NeedsState as needs:
                changing |= needs.keys
                continue
            except NeedsExample as needs:
                example = example or run_example(self.call, args, kwargs)
                if needs.decided is not None:
                    decided[needs.decided] = needs.problem
                continue
            finally:
                forget_uses()
            self.judge(run.session.problems)
            finished = run.finished(program)
            guards = guards_of(self.call.argument_names, args, kwargs)
            finished._guards_code = [*finished._guards_code, *guards]
            return finished
        raise self.refusal(
            [
                ExportProblem(
                    "the program changes other attributes each time that it is looked at",
                    hint="give the attributes that it changes their values in __init__",
                )
            ]
        )

    def judge(self, problems: Sequence[ExportProblem]) -> None:
        """Raise the error for ``problems``; for a draft that can omit all of them, warn instead.

        Raises:
            ExportError: there are problems and no draft was requested, or a draft cannot omit one of them.
        """
        if not problems:
            return
        if not self.is_draft or any(problem.in_draft is None for problem in problems):
            raise self.refusal(problems)
        warnings.warn(DraftWarning(self.call.record.basename, problems), stacklevel=4)

    def refusal(self, problems: Iterable[ExportProblem]) -> ExportError:
        """Return the error that reports ``problems``, each once; of a draft, only those that a draft cannot omit."""
        reported = _distinct(problems)
        if self.is_draft:
            reported = [problem for problem in reported if problem.in_draft is None]
        return ExportError(self.call.record.basename, reported, is_draft=self.is_draft)


_UNTRACKED: Final = "is not tracked with proxy"
"""Message of the tracer about numbers of the example, which it encounters after an unsupported construct."""


def _distinct(problems: Iterable[ExportProblem]) -> list[ExportProblem]:
    found: dict[object, ExportProblem] = {}
    for problem in problems:
        found.setdefault(problem.key, problem)
    reported = list(found.values())
    return [problem for problem in reported if _UNTRACKED not in problem.message] or reported


class _Stopped(BaseException):
    """Unwinds PyTorch's exporter, which would print the graph for an exception of any other class."""


class _Run:
    """One attempt at an export. Another follows if it finds that numbers change or the example must be followed."""

    def __init__(self, exporter: _Exporter, state: ProgramState) -> None:
        self.exporter = exporter
        self.state = state
        self.session = ExportSession(ProvenanceTable(), problems=[*exporter.call.hooks.problems])
        self.failure: Exception | None = None
        state.hold_constants(constants_of(exporter.call.records))

    def traced(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
    ) -> torch.export.ExportedProgram:
        """Run PyTorch's exporter on the program, and return the result.

        Raises:
            ExportError: a part of the program cannot be expressed, or PyTorch's exporter raises.
            NeedsState: numbers that were constants change.
            NeedsExample: the export has to follow the example.
        """
        shell = self.state.shell
        _give_forward(shell, self)
        session = self.session
        args, kwargs = _each_by_itself(shell, args, kwargs)
        try:
            return torch.export.export(shell, args, kwargs, dynamic_shapes=dynamic_shapes, strict=False)
        except _Stopped:
            failure = self.failure
            if not isinstance(failure, ExportProblem):
                assert failure is not None
                raise failure from None
            nodes = [node for record in self.exporter.call.records for node in record.graph.block.nodes]
            raise self.exporter.refusal([*session.problems, failure, *static_problems(nodes)]) from failure.__cause__
        except Exception as error:
            if any(problem.in_draft is None for problem in session.problems):
                raise self.exporter.refusal(session.problems) from error  # substituted values were not results
            # After an unsupported construct the tracer sees the example's numbers, and complains of these alone.
            reported = session.problems or _unknown_arguments(self.exporter.call, args, kwargs) or [_of_exporter(error)]
            raise self.exporter.refusal(reported) from error

    def finished(self, program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
        """Return the program in functional form, with source locations.

        Raises:
            ExportError: ``run_decompositions`` raises.
        """
        try:
            functional: torch.export.ExportedProgram = program.run_decompositions({})
        except Exception as error:
            raise self.exporter.refusal([*self.session.problems, _of_exporter(error)]) from error
        write_provenance(functional, self.session.places)
        functional.validate()
        return functional

    # --------------------------------------------------------------------------------------------- within the tracer

    def forward(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the program symbolically on FakeTensors. PyTorch's exporter calls this method.

        Raises:
            _Stopped: the run failed; the reason is in ``failure``.
        """
        saved = fx_traceback.current_meta
        try:
            with fx_traceback.preserve_node_meta():
                fx_traceback.current_meta = {}
                return self._run_program(args, kwargs)
        except ProgramRaises as raised:
            self.failure = ExportProblem(
                f"the program raises for these arguments: {raised.message}",
                raised.node.range,
                hint="give an example for which it does not",
                callers=callers_of(raised.frame),
            )
            raise _Stopped from None
        except (ExportProblem, NeedsState, NeedsExample) as problem:
            self.failure = problem
            raise _Stopped from problem
        finally:
            fx_traceback.current_meta = saved

    def _run_program(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call, session, state = self.exporter.call, self.session, self.state
        root = None if state.root is None else state.load(state.root, {})
        constants = state.constants()
        arguments = call.bound(root, args, kwargs)
        for tensor in _tensors_of([*state.shell.parameters(), *state.shell.buffers(), *args, *kwargs.values()]):
            session.external_storages.add(tensor.untyped_storage()._cdata)

        def run(function: GraphFunction, values: Sequence[Any]) -> Any:
            steps = (step_of(function, root, None),)
            results = ExportInterpreter.of_graph(session, function.graph, values, steps, constants).run()
            return results[0] if len(results) == 1 else tuple(results)

        before = [copied(value) for value in arguments]
        outputs = call.result(run, root, args, kwargs, arguments)
        for value, known, argument in zip(arguments, before, call.record.schema.arguments, strict=True):
            if not isinstance(value, SymbolicObject) and not is_same(value, known):
                session.note(_changed_argument(argument.name, _refilled_in(value, session)))
        changes = state.changes(root)
        for problem in refused_changes(changes, session.assigned):
            session.note(problem)
        if changes.numbers:
            raise NeedsState(changes.numbers)
        if session.asks_dtype:
            check_dtypes(args, kwargs)
        written = {buffer.untyped_storage()._cdata for buffer, _ in changes.tensors}
        result = Results(session, call.record, written).taken(outputs)
        news = [new.clone() if new.untyped_storage()._cdata in written else new for _, new in changes.tensors]
        for (buffer, _), new in zip(changes.tensors, news, strict=True):
            buffer.copy_(new)
        return result


def _each_by_itself(
    shell: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the example, in which a tensor is replaced by a copy if it occurs before, or is a parameter or buffer of
    ``shell``. PyTorch's exporter would treat both as one input."""
    seen = {id(tensor) for tensor in (*shell.parameters(), *shell.buffers())}

    def distinct(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        if id(leaf) in seen:
            return leaf.detach().clone().requires_grad_(leaf.requires_grad)
        seen.add(id(leaf))
        return leaf

    found: tuple[tuple[Any, ...], dict[str, Any]] = torch.utils._pytree.tree_map(distinct, (args, kwargs))
    return found


def _tensors_of(values: Sequence[Any]) -> list[Tensor]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(list(values)) if isinstance(leaf, Tensor)]


def _give_forward(shell: torch.nn.Module, run: _Run) -> None:
    """Define ``shell.forward`` with the parameters of the program; it calls ``run``."""
    call = run.exporter.call
    skip = 0 if call.owner is None else 1

    def forward(*args: Any, **kwargs: Any) -> Any:
        return run.forward(args, kwargs)

    forward.__signature__ = _plain_signature(signature_of(call.record.schema, skip))  # type: ignore[attr-defined]
    shell.__dict__["forward"] = forward


def _plain_signature(signature: inspect.Signature) -> inspect.Signature:
    parameters = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    return inspect.Signature(parameters)


def _refilled_in(value: Any, session: ExportSession) -> ExportProblem | None:
    """Return the problem of a container in an argument whose elements the program has changed; None if there is
    none."""
    found = session.mutated_containers.get(id(value))
    if found is not None:
        return found[1]
    return next((place for part in parts(value) if (place := _refilled_in(part, session)) is not None), None)


def _changed_argument(name: str, place: ExportProblem | None) -> ExportProblem:
    return ExportProblem(
        f"the program changes which elements the argument '{name}' has, which would have no effect: an exported"
        " program has its arguments for itself",
        UNKNOWN_RANGE if place is None else place.range,
        hint="change a copy: list(x), or return the new elements",
        callers=() if place is None else place.callers,
        in_draft="the argument of the caller stays as it was",
    )


_TAKEN: Final = (Tensor, bool, int, float, str, type(None), enum.Enum, torch.device)


def _unknown_arguments(call: EntryCall, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[ExportProblem]:
    """Return a problem for each argument of a type that exported programs cannot take."""
    found = []
    for source, leaf in leaves_with_sources(call.argument_names, args, dict(kwargs)):
        if not isinstance(leaf, _TAKEN):
            name = re.sub(r"^L\['(\w+)'\]", r"\1", source)
            message = f"the argument '{name}' is a {type(leaf).__name__}, which no exported program takes"
            hint = "pass in the tensors and numbers that it holds, or keep it in an attribute of the module"
            found.append(ExportProblem(message, hint=hint))
    return found


_OF_SIZES: Final = (
    "give each of these sizes a range in which all conditions above hold, with Dim(name, min=…, max=…), or with"
    " --range NAME=LOW..HIGH on the command line; or leave it out of dynamic_shapes, which makes it fixed. The"
    " conditions depend on the example: sizes as in practice may have fewer"
)
_OF_ARGUMENTS: Final = (
    "see whether dynamic_shapes names what the program takes as fixed, and whether torch.export.export takes such"
    " arguments"
)

_ADVICE: Final = ("For more information", "For more debugging help", "The error above occurred", "Use tlparse", "If ")
"""Prefixes of lines in which PyTorch explains how to debug its own code."""


def _of_exporter(error: Exception) -> ExportProblem:
    lines = [line for line in str(error).split("\n\nWhile executing", 1)[0].split("\n") if line.strip()]
    text = "\n".join(
        line.split(" For more information, run with", 1)[0] for line in lines if not line.startswith(_ADVICE)
    )
    return ExportProblem(
        f"PyTorch's exporter says: {text or type(error).__name__}",
        hint=_OF_SIZES if "Constraints violated" in text else _OF_ARGUMENTS,
    )
