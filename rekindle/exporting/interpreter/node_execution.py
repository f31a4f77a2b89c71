"""Symbolic execution of single nodes during an export."""

from __future__ import annotations

import warnings
from typing import Any, Final

import torch
from torch import Tensor
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from rekindle.errors import ExportProblem
from rekindle.exporting import guards
from rekindle.exporting.interpreter import appended_lists, branches, example_fallback, loops, node_handlers
from rekindle.exporting.interpreter.example_fallback import NeedsExample
from rekindle.exporting.interpreter.provenance import CallFrame
from rekindle.exporting.interpreter.symbolic_interpreter import (
    Frame,
    ProgramRaises,
    SymbolicInterpreter,
    callers_of,
    execution_point,
)
from rekindle.exporting.interpreter.values import (
    KNOWN_TEXT,
    SYMBOLS,
    UNKNOWN_TEXT,
    UNSET,
    CompletedFuture,
    SymbolicObject,
    UnbackedScalar,
    UnknownText,
    has_rows,
    holds_unknown,
    holds_unknown_text,
    leaf_key,
    parts,
    with_symbols,
)
from rekindle.exporting.scalars import unbacked_math
from rekindle.exporting.static_checks import static_problem
from rekindle.ir.attributes import is_writable
from rekindle.ir.graph import Node
from rekindle.ir.graph_function import GraphFunction, called_function
from rekindle.ir.operators.registry import Operator
from rekindle.ir.types import ClassType
from rekindle.runtime.interpreter.instructions import copy_constant

_OTHER_CONTEXTS: Final = frozenset({"autocast", "record_function", "inference_mode"})

_TAKE_ANY_TEXT: Final = frozenset({"aten::warn", "prim::Print"})
"""Operators that may take a text of numbers that are not known at export time: what they show is not exported."""


_KNOWN_SOONER: Final = (
    "take it from a shape or an argument instead of the elements of a tensor, or give its range with an assert before"
)
_OTHERWISE: Final = (
    "PyTorch's tracer refuses this operator: see whether the program runs with the example, then compute it in another"
    " way, or give it an operator of your own with a 'register_fake', from torch.library"
)


class ExportInterpreter(SymbolicInterpreter):
    """The interpreter that exports: it executes every kind of node symbolically."""

    def execute(self, frame: Frame, node: Node) -> None:
        """Run ``node``; if it is unsupported, record that, and continue by
        :mod:`rekindle.exporting.interpreter.example_fallback`."""
        depth = len(self.frames)
        try:
            self.step(frame, node)
        except (ProgramRaises, NeedsExample):
            raise
        except Exception as error:
            del self.frames[depth:]
            problem = self.to_export_problem(frame, node, error)
            if node.kind == "prim::If":
                example_fallback.follow_example_branch(self, frame, node, problem)
            else:
                example_fallback.substitute_example_results(self, frame, node, problem)

    def step(self, frame: Frame, node: Node) -> None:
        env = frame.activation.env
        match node.kind:
            case "prim::Constant":
                env[node.output] = self.constant(node)
            case "prim::If":
                self.check_not_forced(frame, node)
                branches.branch(self, frame, node)
            case "prim::Loop":
                loops.start(self, frame, node)
            case "prim::CallFunction" | "prim::CallMethod":
                self.call_function(frame, node)
            case "prim::Enter" | "prim::Exit":
                self.context(frame, node)
            case "prim::fork" | "prim::awaitable" | "prim::Try":
                if node.kind == "prim::Try":
                    self.refuse(frame, node)
                self.call(frame, node, node.get_graph("Subgraph"), [env[value] for value in node.inputs], None)
            case "prim::RaiseException":
                raise ProgramRaises(str(env[node.named_input("msg")]), frame, node)
            case _:
                results = self.operation(frame, node, [env[value] for value in node.inputs])
                self.bind(frame.activation, node, results)

    def check_not_forced(self, frame: Frame, node: Node) -> None:
        """Check that a branch or loop is not one that has to follow the example.

        Raises:
            ExportProblem: the branch or loop has to follow the example; the reason for that.
        """
        moment = execution_point(frame, node)
        known = None if moment is None else self.session.forced_by_example.get(moment)
        if known is not None:
            raise known

    def refuse(self, frame: Frame, node: Node) -> None:
        """Raise the problem of a node that cannot be exported; if a draft has a replacement for it, record the problem
        and continue.

        Raises:
            ExportProblem: a draft has no replacement for the node.
        """
        problem = static_problem(node, callers_of(frame))
        assert problem is not None
        if problem.in_draft is None:
            raise problem
        self.session.note(problem)

    def to_export_problem(self, frame: Frame, node: Node, error: Exception) -> ExportProblem:
        """Convert an error of a node to a reason why the program cannot be exported."""
        if isinstance(error, ExportProblem):
            return error
        if isinstance(error, GuardOnDataDependentSymNode):
            name = node.kind.rpartition("::")[2]
            message = f"'{name}' needs to know a data-dependent number"
            problem = self.problem(frame, node, message, hint=_KNOWN_SOONER)
        elif isinstance(error, torch._dynamo.exc.UserError):
            problem = self.problem(frame, node, _first_line(error), hint=_KNOWN_SOONER)
        else:
            message = f"{type(error).__name__}: {_first_line(error)}"
            problem = self.problem(frame, node, message, hint=_OTHERWISE)
        problem.__cause__ = error
        return problem

    def iterate(self, frame: Frame, node: Node, iteration: int, condition: Any, carried: list[Any]) -> None:
        depth = len(self.frames)
        try:
            self.check_not_forced(frame, node)
            loops.iterate(self, frame, node, iteration, condition, carried)
        except (ProgramRaises, NeedsExample):
            raise
        except Exception as error:
            del self.frames[depth:]
            problem = self.to_export_problem(frame, node, error)
            example_fallback.follow_example_loop(self, frame, node, iteration, condition, carried, problem)

    def returned(self, frame: Frame, owner: Node, values: list[Any]) -> None:
        assert frame.caller is not None
        if owner.kind in ("prim::fork", "prim::awaitable"):
            values = [CompletedFuture(values[0] if len(values) == 1 else tuple(values))]
        elif owner.kind == "prim::Try":
            values = [*values, None]  # nothing was caught
        self.bind(frame.caller, owner, values)

    # ---------------------------------------------------------------------------------------------------------- nodes

    def constant(self, node: Node) -> Any:
        """Return the value of a constant. A list or dict is copied, since the program may write to it; a tensor is the
        one that stands for it in the exported program, if there is one."""
        value = node.output.to_python()
        if isinstance(value, Tensor):
            return self.constants.get(id(value), value)
        return copy_constant(value) if is_writable(value) else value

    def call_function(self, frame: Frame, node: Node) -> None:
        """Push a frame for the function or method that ``node`` calls.

        Raises:
            ExportProblem: the method is written in C++.
        """
        env = frame.activation.env
        callee, *inputs = node.inputs
        arguments = [env[value] for value in inputs]
        if node.kind == "prim::CallFunction":
            record, owner = called_function(node), None
        else:
            owner = env[callee]
            arguments = [owner, *arguments]
            class_type = owner.type if isinstance(owner, SymbolicObject) else callee.type
            record = class_type.find_method(node.get_string("name")) if isinstance(class_type, ClassType) else None
        if record is None:
            raise self.problem(
                frame,
                node,
                "this calls a method that is written in C++, which Export IR cannot hold",
                hint="call it outside of the program, and pass in what it gives",
            )
        step = step_of(record, owner, node)
        self.call(frame, node, record.graph, arguments, step)

    def context(self, frame: Frame, node: Node) -> None:
        """Enter or leave a ``with`` statement: push a frame for a method of the context manager. If Export IR has no
        form of the statement, record the problem on entering, and bind None to the outputs."""
        manager = frame.activation.env[node.input]
        record = None
        if isinstance(manager, SymbolicObject) and manager.type.name.rpartition(".")[2] not in _OTHER_CONTEXTS:
            record = manager.type.find_method("__enter__" if node.kind == "prim::Enter" else "__exit__")
        if record is None:
            problem = self.problem(
                frame,
                node,
                "this with statement changes how what is in it runs, in a way that Export IR cannot hold",
                hint="torch.no_grad, torch.enable_grad, torch.set_grad_enabled and classes of the program are"
                " supported there",
            )
            if node.kind == "prim::Enter":
                self.session.note(problem.with_draft("what is in it runs as if the statement were not there"))
            self.bind(frame.activation, node, [None] * len(node.outputs))
            return
        arguments = [manager] if node.kind == "prim::Enter" else [manager, None, None, None]
        self.call(frame, node, record.graph, arguments, step_of(record, manager, node))

    def operation(self, frame: Frame, node: Node, args: list[Any]) -> Any:
        """Run a node that is neither a constant, control flow nor a call; return its outputs.

        ``args`` are the values of its inputs. ``prim::SetAttr`` changes an attribute, and ``aten::warn`` issues a
        Python warning.

        Raises:
            ExportProblem: the node cannot be exported, its operator is not registered, or it rejects a symbol.
        """
        kind = node.kind
        if kind == "prim::GetAttr":
            return (self.attribute(frame, node, args[0]),)
        if kind == "prim::SetAttr":
            self.set_attribute(frame, node, args[0], args[1])
            return ()
        if kind == "prim::Uninitialized":
            return (UNSET,)
        if kind == "prim::CreateObject":
            if static_problem(node) is not None:
                self.refuse(frame, node)
            return (node_handlers.new_of_class(node),)
        if kind == "prim::isinstance":
            return (node_handlers.is_of_types(node, args[0]),)
        if kind == "aten::warn":
            if not self.session.dry_run_depth:
                warnings.warn(str(args[0]), UserWarning, stacklevel=2)
            return ()
        if static_problem(node) is not None:
            self.refuse(frame, node)
            return ()
        operator = node.operator
        if operator is None:
            raise self.problem(
                frame,
                node,
                f"the operator '{kind}' is not known here",
                hint="import the library that defines it, or register it with torch.library",
            )
        return self.call_operator(frame, node, operator, args)

    def call_operator(self, frame: Frame, node: Node, operator: Operator, args: list[Any]) -> Any:
        """Run a node that calls a registered operator, record what it reads and writes, and return its outputs.

        Raises:
            ExportProblem: the operator needs a number that is data-dependent, or writes to memory that another tensor
                may share.
            NeedsExample: as in :meth:`note_writes`.
        """
        self.note_reads(args)
        is_text = [output.type.kind for output in node.outputs] == ["StringType"]
        if is_text and any(map(holds_unknown, args)):
            (text,) = self._result_of(frame, node, operator, args)
            return (UnknownText(text) if isinstance(text, str) else text,)
        if any(map(holds_unknown_text, args)) and node.kind not in _TAKE_ANY_TEXT:
            raise self.problem(frame, node, UNKNOWN_TEXT, hint=KNOWN_TEXT)
        return self._result_of(frame, node, operator, args)

    def _result_of(self, frame: Frame, node: Node, operator: Operator, args: list[Any]) -> Any:
        if node.kind in guards.ASKS_DTYPE:
            self.session.asks_dtype = True
        if any(has_rows(value) for value in args):
            return self.of_rows(frame, node, args)
        for value in node_handlers.written_containers(operator, args):
            self.session.mutated_containers[id(value)] = (value, self.problem(frame, node, "", hint=""))
        written = node_handlers.written_arguments(operator, args)
        if written:
            self.note_writes(frame, node, written)
        if node.kind == "aten::set_grad_enabled" and self.session.dry_run_depth:
            with torch._C.DisableTorchFunction():  # or the tracer would record it
                torch._C._set_grad_enabled(args[0])
            return (None,) * len(node.outputs)
        name = operator.schema.qualified_name
        handler = unbacked_math.form_of(name, args) or node_handlers.HANDLERS.get(name)
        if handler is not None:
            result = handler(args)
        elif (overload := node_handlers.as_written(operator)) is not None:
            result = node_handlers.call_overload(overload, args)
        elif node.kind in node_handlers.ACCEPTS_UNBACKED:
            formals = operator.schema.arguments
            converted = [
                with_symbols(value) if index < len(formals) and formals[index].type.kind == "IntType" else value
                for index, value in enumerate(args)
            ]
            result = operator.operation_of(node)(*converted)
        else:
            result = self.run_now(frame, node, operator, [with_symbols(value) for value in args])
        if len(node.outputs) == 1:
            return (result,)
        return result if node.outputs else ()

    def of_rows(self, frame: Frame, node: Node, args: list[Any]) -> Any:
        """Return the outputs of a node that uses a list of data-dependent length.

        Raises:
            ExportProblem: the operator has no form for such lists, or the loop that fills the list reads it.
        """
        handler = appended_lists.OF_ROWS.get(node.kind)
        if handler is None or (node.kind != "aten::append" and any(appended_lists.is_growing(value) for value in args)):
            name = node.kind.rpartition("::")[2]
            raise self.problem(
                frame,
                node,
                f"'{name}' of a list whose length is data-dependent",
                hint="such a list can be appended to, and after the loop that fills it be stacked, concatenated,"
                " indexed and walked over",
            )
        result = handler(args)
        return (result,) if len(node.outputs) == 1 else ()

    def run_now(self, frame: Frame, node: Node, operator: Operator, args: list[Any]) -> Any:
        """Run an operator on numbers, strings and containers whose values are known, and return its result.

        Raises:
            ExportProblem: the operator does not accept a symbol among its arguments.
        """
        try:
            return operator.operation_of(node)(*args)
        except (TypeError, NotImplementedError) as error:
            if not any(isinstance(part, SYMBOLS) for value in args for part in (value, *parts(value))):
                raise
            name = node.kind.rpartition("::")[2]
            raise self.problem(
                frame, node, f"'{name}' needs to know a data-dependent number", hint=_KNOWN_SOONER
            ) from error

    # ------------------------------------------------------------------------------------------------------- attributes

    def attribute(self, frame: Frame, node: Node, owner: Any) -> Any:
        """Return the value of ``owner.name``, where ``name`` is the attribute of the node.

        Raises:
            ExportProblem: the object is written in C++, or the attribute has no value.
        """
        name = node.get_string("name")
        if not isinstance(owner, SymbolicObject):
            raise self.problem(
                frame,
                node,
                f"the attribute '{name}' of an object that is written in C++",
                hint="pass in what it holds as an argument",
            )
        if name not in owner.slots:
            raise self.problem(
                frame, node, f"the attribute '{name}' has no value yet", hint="give it a value in __init__"
            )
        return owner.slots[name]

    def set_attribute(self, frame: Frame, node: Node, owner: Any, value: Any) -> None:
        """Assign ``owner.name = value``, where ``name`` is the attribute of the node.

        Raises:
            ExportProblem: the object is written in C++.
        """
        name = node.get_string("name")
        if not isinstance(owner, SymbolicObject):
            raise self.problem(
                frame,
                node,
                f"the attribute '{name}' of an object that is written in C++",
                hint="pass in what it holds as an argument",
            )
        owner.slots[name] = value
        if owner.path is not None:
            self.session.assigned.setdefault((owner.path, name), self.problem(frame, node, "", hint=""))

    # ---------------------------------------------------------------------------------------------------- reads, writes

    def note_reads(self, args: list[Any]) -> None:
        """Record which leaves are read, during a dry run. Do nothing at other times."""
        if not self.session.dry_run_depth:
            return
        for value in args:
            for leaf in (value, *parts(value)):
                if isinstance(leaf, UnbackedScalar):
                    leaf = leaf.tensor
                key = leaf_key(leaf)
                if key is not None:
                    self.session.read_leaves.add(key)

    def note_writes(self, frame: Frame, node: Node, written: list[Tensor]) -> None:
        """Record which memory is written to.

        Raises:
            ExportProblem: whether another tensor shares the memory is data-dependent.
            NeedsExample: the same, and the branch or loop from which that comes can follow the example.
        """
        for tensor in written:
            memory = tensor.untyped_storage()._cdata
            if memory in self.session.maybe_aliased:
                problem = self.problem(
                    frame,
                    node,
                    "this writes to a tensor that may share memory with another one, which is data-dependent",
                    hint="write to a copy: x = x.clone()",
                )
                moment = self.session.maybe_aliased[memory][1]
                if moment is None or moment in self.session.forced_by_example:
                    raise problem
                raise NeedsExample(problem, moment)
            self.session.written.add(memory)


def step_of(record: GraphFunction, owner: Any, node: Node | None) -> CallFrame:
    """Return the frame of a call of ``record`` for stack traces."""
    called_from = None if node is None else node.range
    if isinstance(owner, SymbolicObject) and owner.path is not None:
        return CallFrame(record.basename, record.name, called_from, owner.path, class_name_of(owner))
    return CallFrame(record.basename, record.name, called_from)


def class_name_of(module: SymbolicObject) -> str:
    """Return the qualified name of the Python class of a module; that of its type where the class is not known."""
    python_class = module.python_class
    if python_class is not None:
        return f"{python_class.__module__}.{python_class.__qualname__}"
    return module.type.name.removeprefix("__torch__.")


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.split("\n", 1)[0] if text else type(error).__name__
