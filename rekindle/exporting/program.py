"""From a compiled program to a :class:`torch.export.ExportedProgram`.

There are two ways to make one. The graph could be written node by node: then shapes of FakeTensors, symbols and their
ranges, functional forms of what writes to tensors, guards, the signature and the input specifications would all be
ours to compute, and to keep in step with every release of PyTorch. Or the program can be *run* under PyTorch's own
tracer, which does all of that: this is the way taken here. What runs is not Python but our graph, in an interpreter
(:mod:`rekindle.exporting.machine`), which alone can do what a tracer of Python cannot: it knows the blocks of an `if`
or a loop, what goes into them and comes out, and can walk both ways through a branch with copies of the whole state.

1. :mod:`rekindle.exporting.state` makes an ``nn.Module`` of the program's modules: parameters and buffers, no code.
2. Its ``forward`` runs the graph on the FakeTensors that ``torch.export.export`` hands it.
3. ``run_decompositions`` with an empty table makes the graph functional and leaves all operators as they are.
4. :mod:`rekindle.exporting.places` writes the places in the author's source into the nodes.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from torch.fx import traceback as fx_traceback

from rekindle.errors import ExportError, ExportProblem
from rekindle.exporting.execution import Execution, step_of
from rekindle.exporting.guards import check_dtypes, guards_of
from rekindle.exporting.machine import ProgramRaises, Session, forget_uses
from rekindle.exporting.places import Places, write_places
from rekindle.exporting.scan import constants_of, static_problems
from rekindle.exporting.state import NeedsState, State, refused_changes
from rekindle.exporting.structures import copied, is_same, know_named_tuple, know_structures
from rekindle.exporting.values import UNSET, Finished, Late, Object, has_rows, with_items
from rekindle.ir.records import FunctionRecord
from rekindle.program.function import Function, Method, Overloaded, signature_of
from rekindle.program.module import ScriptModule
from rekindle.runtime.arguments import binder_of

ROUNDS: Final = 4
"""So often a program is run to find out which of its numbers change."""


def to_exported(
    program: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    draft: bool = False,
) -> torch.export.ExportedProgram:
    """``program``, a compiled module, method or function, as a ``torch.export.ExportedProgram``.

    ``args`` and ``kwargs`` are the arguments of an example call; ``dynamic_shapes`` says which of their sizes, and
    which ints, differ between calls, in the words of :func:`torch.export.export`. All other ints, floats, bools and
    strings are those of the example: the exported program checks them. What the program changes in its attributes are
    buffers of the exported one, which change with each call.

    With ``draft`` what can be left out is left out, prints for example; the problems are warned of.

    Raises:
        ExportError: the program holds what Export IR cannot express. The error has every reason that was found.
        ArgumentError: the arguments do not fit.
    """
    kwargs = dict(kwargs or {})
    owner, record = _entry(program, args, kwargs)
    hooks = _hooks_of(program) if isinstance(program, ScriptModule) else _NO_HOOKS
    given = tuple(args) if owner is None else (owner, *args)
    binder_of(record).bind(given, kwargs)
    know_structures([*args, kwargs])
    with warnings.catch_warnings():
        for category in (FutureWarning, DeprecationWarning):  # PyTorch tells itself
            warnings.simplefilter("ignore", category)
        return _Exporter(owner, record, draft, {}, hooks).export(tuple(args), kwargs, dynamic_shapes)


def to_exported_methods(
    module: ScriptModule,
    calls: Mapping[str, Sequence[Any]],
    *,
    dynamic_shapes: Mapping[str, Any] | None = None,
    draft: bool = False,
) -> dict[str, torch.export.ExportedProgram]:
    """Several methods of a compiled module, each as an ``ExportedProgram``, which share one ``state_dict``: what one
    changes, the others see.

    ``calls`` has the arguments of an example call for each method, by the name of the method; ``dynamic_shapes`` what
    :func:`to_exported` takes, by the same names.

    Raises:
        ExportError: one of them holds what Export IR cannot express.
        ArgumentError: the arguments of one do not fit.
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
            with warnings.catch_warnings():
                for category in (FutureWarning, DeprecationWarning):
                    warnings.simplefilter("ignore", category)
                exporter = _Exporter(owner, record, draft, numbers)
                programs[name] = exporter.export(tuple(args), {}, shapes.get(name))
    shared: dict[str, Any] = {}
    for program in programs.values():
        for key, tensor in program.state_dict.items():
            shared.setdefault(key, tensor)
        program._state_dict = shared
    return programs


@dataclass(slots=True, frozen=True)
class _Hooks:
    """What runs before and behind ``forward`` where Python calls a module."""

    before: tuple[FunctionRecord, ...] = ()
    behind: tuple[FunctionRecord, ...] = ()


_NO_HOOKS: Final = _Hooks()


def _hooks_of(module: ScriptModule) -> _Hooks:
    type = module.script_type
    compiled = len(type.pre_hooks) + len(type.hooks)
    if len(module._forward_pre_hooks) + len(module._forward_hooks) > compiled:
        problem = ExportProblem(
            "the module has hooks that were registered after it was compiled, and an exported program calls no Python",
            hint="register them before, so that they are compiled too, or export module.forward, which leaves them out",
        )
        raise ExportError("forward", [problem])
    return _Hooks(tuple(type.pre_hooks), tuple(type.hooks))


def _entry(program: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[ScriptModule | None, FunctionRecord]:
    if isinstance(program, ScriptModule):
        program = program.forward
    if isinstance(program, Overloaded):
        program = program.fitting(args, kwargs)
    if isinstance(program, Method):
        if not isinstance(program.owner, ScriptModule):
            raise TypeError(
                f"'{program.name}' is a method of an object that is no module; export a function that calls it"
            )
        return program.owner, program._record
    if isinstance(program, Function):
        return None, program._record
    raise TypeError(
        f"to_exported takes a compiled module, method or function, not {type(program).__name__}; compile it first, with"
        " rekindle.script or rekindle.trace"
    )


class _Exporter:
    def __init__(
        self,
        owner: ScriptModule | None,
        record: FunctionRecord,
        is_draft: bool,
        numbers: dict[str, Tensor],
        hooks: _Hooks = _NO_HOOKS,
    ) -> None:
        self.hooks = hooks
        self.numbers = numbers
        """The buffers of numbers that the program is known to change, by the names of the numbers."""
        self.owner = owner
        self.record = record
        self.is_draft = is_draft

    @property
    def records(self) -> list[FunctionRecord]:
        """Everything that runs."""
        return [*self.hooks.before, self.record, *self.hooks.behind]

    def static_problems(self) -> list[ExportProblem]:
        """Reasons against the export that do not depend on how the program runs."""
        return [problem for record in self.records for problem in static_problems(record)]

    def export(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
    ) -> torch.export.ExportedProgram:
        changing = frozenset(self.numbers)
        problems = self.static_problems()
        for _ in range(ROUNDS):
            run = _Run(self, State(self.owner, changing, self.numbers), self.is_draft)
            try:
                program = run.traced(args, kwargs, dynamic_shapes)
            except NeedsState as needs:
                changing |= needs.keys
                continue
            finally:
                forget_uses()
            problems = [*problems, *run.session.problems]
            if problems and not self.is_draft:
                raise ExportError(self.record.basename, _distinct(problems))
            for problem in _distinct(problems):
                warnings.warn(f"left out of the exported program: {problem}", UserWarning, stacklevel=4)
            finished = run.finished(program)
            names = [argument.name for argument in self.record.schema.arguments[0 if self.owner is None else 1 :]]
            finished._guards_code = [*finished._guards_code, *guards_of(names, args, kwargs)]
            return finished
        raise ExportError(
            self.record.basename, [ExportProblem("the program changes other attributes each time that it is looked at")]
        )


def _distinct(problems: Sequence[ExportProblem]) -> list[ExportProblem]:
    found: dict[str, ExportProblem] = {}
    for problem in problems:
        found.setdefault(str(problem), problem)
    return list(found.values())


class _Stopped(BaseException):
    """Leaves PyTorch's exporter, which would print the graph so far for an exception of any other kind."""


class _Run:
    """One attempt."""

    def __init__(self, exporter: _Exporter, state: State, is_draft: bool) -> None:
        self.exporter = exporter
        self.state = state
        self.session = Session(Places(), is_draft=is_draft)
        self.failure: Exception | None = None
        found = {id(tensor): tensor for record in exporter.records for tensor in constants_of(record)}
        self.constants = list(found.values())
        for index, tensor in enumerate(self.constants):
            state.shell._buffers[f"constant_{index}"] = tensor
            state.shell._non_persistent_buffers_set.add(f"constant_{index}")

    def traced(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
    ) -> torch.export.ExportedProgram:
        """The program as PyTorch's tracer records it."""
        shell = self.state.shell
        _give_forward(shell, self)
        name = self.exporter.record.basename
        try:
            return torch.export.export(shell, args, kwargs, dynamic_shapes=dynamic_shapes, strict=False)
        except _Stopped:
            failure = self.failure
            if not isinstance(failure, ExportProblem):
                assert isinstance(failure, NeedsState)
                raise failure from None
            raise ExportError(name, _distinct([*self._problems(), failure])) from failure.__cause__
        except Exception as error:
            raise ExportError(name, _distinct([*self._problems(), ExportProblem(_message_of(error))])) from error

    def _problems(self) -> list[ExportProblem]:
        return [*self.exporter.static_problems(), *self.session.problems]

    def finished(self, program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
        """The program in functional form, with the places of its source."""
        functional: torch.export.ExportedProgram = program.run_decompositions({})
        write_places(functional, self.session.places)
        functional.validate()
        return functional

    # --------------------------------------------------------------------------------------------- within the tracer

    def forward(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the tracer runs: the program on FakeTensors."""
        saved = fx_traceback.current_meta
        try:
            with fx_traceback.preserve_node_meta():
                fx_traceback.current_meta = {}
                return self._run_program(args, kwargs)
        except ProgramRaises as raised:
            message = f"the program raises for these arguments: {raised.message}"
            self.failure = ExportProblem(message, raised.node.range)
            raise _Stopped from None
        except (ExportProblem, NeedsState) as problem:
            self.failure = problem
            raise _Stopped from problem
        finally:
            fx_traceback.current_meta = saved

    def _run_program(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        record, session, state = self.exporter.record, self.session, self.state
        root = None if state.root is None else state.load(state.root, {})
        constants = {
            id(tensor): _present(state.shell._buffers[f"constant_{index}"])
            for index, tensor in enumerate(self.constants)
        }
        arguments = self._bound(root, args, kwargs)
        for tensor in _tensors_of([*state.shell.parameters(), *state.shell.buffers(), *args, *kwargs.values()]):
            session.foreign.add(tensor.untyped_storage()._cdata)

        def run(function: FunctionRecord, values: Sequence[Any]) -> Any:
            steps = (step_of(function, root, None),)
            results = Execution.of_graph(session, function.graph, values, steps, constants).run()
            return results[0] if len(results) == 1 else tuple(results)

        before = [copied(value) for value in arguments]
        outputs = self._hooked(run, root, args, kwargs, arguments)
        for value, known, argument in zip(arguments, before, record.schema.arguments, strict=True):
            if not isinstance(value, Object) and not is_same(value, known):
                raise ExportProblem(
                    f"the program changes which elements the argument '{argument.name}' has, which nobody would see: an"
                    " exported program has its arguments for itself",
                    hint="change a copy: list(x), or return the new elements",
                )
        changes = state.changes(root)
        session.problems += refused_changes(changes, session.assigned)
        if changes.numbers:
            raise NeedsState(changes.numbers)
        if session.asks_dtype:
            check_dtypes(args, kwargs)
        written = {buffer.untyped_storage()._cdata for buffer, _ in changes.tensors}
        result = _result(outputs, written)
        news = [new.clone() if new.untyped_storage()._cdata in written else new for _, new in changes.tensors]
        for (buffer, _), new in zip(changes.tensors, news, strict=True):
            buffer.copy_(new)
        return result

    def _hooked(
        self,
        run: Callable[[FunctionRecord, Sequence[Any]], Any],
        root: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        arguments: list[Any],
    ) -> Any:
        """The result of the program, with the hooks that Python's call of the module runs."""
        hooks = self.exporter.hooks
        for hook in hooks.before:
            given = run(hook, [root, args])
            if given is not None:
                args = given if isinstance(given, tuple) else (given,)
                arguments = self._bound(root, args, kwargs)
        result = run(self.exporter.record, arguments)
        for hook in hooks.behind:
            changed = run(hook, [root, args, result])
            result = result if changed is None else changed
        return result

    def _bound(self, root: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        schema = self.exporter.record.schema
        given = list(args) if root is None else [root, *args]
        for argument in schema.arguments[len(given) :]:
            given.append(kwargs.get(argument.name, argument.default))
        return [_as_argument(value, argument.type) for value, argument in zip(given, schema.arguments, strict=True)]


def _present(tensor: Tensor | None) -> Tensor:
    assert tensor is not None
    return tensor


def _as_argument(value: Any, type: Any) -> Any:
    """An argument as the program sees it: an int where a float is expected is one, lists and dicts are its own."""
    kind = type.kind
    if kind == "OptionalType" and value is not None:
        return _as_argument(value, type.element)
    if kind == "FloatType" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind == "ListType" and isinstance(value, (list, tuple)):
        return [_as_argument(item, type.element) for item in value]
    return value


def _tensors_of(values: Sequence[Any]) -> list[Tensor]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(list(values)) if isinstance(leaf, Tensor)]


def _result(value: Any, written: set[int]) -> Any:
    """What the exported program returns: numbers as symbols, futures as what they come to. What is a buffer that
    changes later is copied before."""
    if isinstance(value, Late):
        return value.number
    if isinstance(value, Tensor):
        return value.clone() if value.untyped_storage()._cdata in written else value
    if isinstance(value, Finished):
        return _result(value.value, written)
    if has_rows(value):
        raise ExportProblem(
            "the program returns a list of which only the run tells how many tensors it holds",
            hint="return them as one tensor: torch.stack(list)",
        )
    if isinstance(value, list):
        return [_result(item, written) for item in value]
    if isinstance(value, tuple):
        if hasattr(value, "_fields"):
            know_named_tuple(type(value))
        return with_items(value, [_result(item, written) for item in value])
    if isinstance(value, dict):
        return {key: _result(item, written) for key, item in value.items()}
    if isinstance(value, Object):
        raise ExportProblem(
            f"the program returns an object of the class {value.type.basename}",
            hint="return what it holds: a tuple, a NamedTuple or a dict",
        )
    return None if value is UNSET else value


def _give_forward(shell: torch.nn.Module, run: _Run) -> None:
    """Have calls of ``shell`` run the program, with the parameters that it declares."""
    record = run.exporter.record
    skip = 0 if run.exporter.owner is None else 1

    def forward(*args: Any, **kwargs: Any) -> Any:
        return run.forward(args, kwargs)

    forward.__signature__ = _plain_signature(signature_of(record.schema, skip))  # type: ignore[attr-defined]
    shell.__dict__["forward"] = forward


def _plain_signature(signature: inspect.Signature) -> inspect.Signature:
    parameters = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    return inspect.Signature(parameters)


def _message_of(error: Exception) -> str:
    text = str(error).strip()
    return f"PyTorch's exporter says: {text or type(error).__name__}"
