"""``__setstate__`` of a program's classes, which runs while an archive is loaded: node by node, with operators that
reach neither files nor the system, and within a budget of steps and of memory.

This interpreter is slow and simple on purpose: what an archive may do while it is loaded is what is written here.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Final

from rekindle.analysis.effects import CASTS
from rekindle.archive.budget import Budget, TensorCosts, cost_of, refusal, size_of
from rekindle.archive.limits import ArchiveLimits
from rekindle.errors import ArchiveLimitError, RekindleError, UnsafeArchiveError
from rekindle.ir.graph import Block, Node, Value
from rekindle.ir.graph_function import GraphFunction, called_function
from rekindle.ir.operators.registry import Operation
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import AnyType, ClassType, DictType, InterfaceType, ListType, TupleType, Type, UnionBase
from rekindle.ir.types.named import LIBRARY_CLASSES
from rekindle.ops.registration.declare import declared_operators
from rekindle.ops.registration.traits import kinds_with, queries_of
from rekindle.runtime.calls.conversion import class_of

_REFUSED: Final = frozenset(
    {
        *("aten::save", "aten::load", "aten::from_file", "prim::Print", "archive::Print", "aten::manual_seed"),
        *("prim::fork", "prim::awaitable", "prim::awaitable_wait", "aten::wait", "prim::PythonOp"),
        *("prim::Enter", "prim::Exit", "aten::backward", "aten::grad", "aten::set_grad_enabled"),
        *("aten::set_num_threads", "prim::SetNumThreads", "aten::format", "aten::percentFormat"),
    }
)
"""Operators that are rejected: those with effects beyond the object that is being restored, and those that run other
operators unseen. Python's formatting operators are among them, since they read attributes of the objects."""

_ALLOWED_NAMESPACES: Final = frozenset({"aten", "prim", "archive", "quantized", "sparse", "rnn"})
"""Namespaces of PyTorch's own operators: those of libraries may do anything."""

_MAX_DEPTH: Final = 100
"""Maximum depth of nested calls."""

ValueMap = dict[Value, Any]


class SetStateSandbox:
    """Interpreter of the methods ``__setstate__`` of one archive. All calls share one budget of steps and memory, which
    grows with ``size``, the bytes of the archive. With ``allowed=False``, :meth:`run` rejects every method."""

    def __init__(self, limits: ArchiveLimits, allowed: bool, size: int) -> None:
        self._allowed = allowed
        self._budget = Budget(limits.steps + size // 500, limits.setstate_bytes + 4 * size)
        self._depth = 0
        self._running = ""
        self._operations: dict[Node, Operation] = {}

    def run(self, method: GraphFunction, target: object, state: object) -> None:
        """Call the ``__setstate__`` method ``method`` with the object ``target``, whose attributes it sets, and
        ``state``.

        Raises:
            UnsafeArchiveError: methods are not allowed, the method fails, or it calls a rejected operator.
            ArchiveLimitError: the budget is used up, or calls are nested too deeply.
            CompileError: the method is not a valid program.
        """
        if not self._allowed:
            raise UnsafeArchiveError(
                f"The archive holds an object that '{method.name}' would have to make.",
                hint="Load with allow_setstate=True if you trust this file: it runs in rekindle's interpreter, without "
                "access to files or the system.",
            )
        self.call(method, [target, state])

    def call(self, method: GraphFunction, arguments: Sequence[object]) -> Any:
        """Call ``method``, any method of an untrusted archive, and return its result.

        Raises:
            UnsafeArchiveError: the method fails, or calls a rejected operator.
            ArchiveLimitError: the budget is used up, or calls are nested too deeply.
            CompileError: the method is not a valid program.
        """
        self._running = method.name
        try:
            with TensorCosts(self._budget, method.name):
                return self._call(method, arguments)
        except (RekindleError, MemoryError):
            raise
        except RecursionError:
            raise _too_deep() from None
        except Exception as error:
            problem = str(error).partition("\n")[0]
            raise UnsafeArchiveError(f"'{method.name}' of the archive failed: {problem}") from error

    # ---------------------------------------------------------------------------------------------------- the program

    def _call(self, record: GraphFunction, arguments: Sequence[object]) -> Any:
        if self._depth >= _MAX_DEPTH:
            raise _too_deep()
        self._depth += 1
        try:
            graph = record.graph
            scope: ValueMap = dict(zip(graph.inputs, arguments, strict=True))
            results = self._block(graph.block, scope)
        finally:
            self._depth -= 1
        return results[0] if len(results) == 1 else tuple(results) if results else None

    def _block(self, block: Block, scope: ValueMap) -> list[Any]:
        """Run a block, whose inputs have values in ``scope``; return its outputs. Values of its nodes are added to
        ``scope``."""
        for node in block.nodes:
            self._budget.step()
            match node.kind:
                case "prim::Constant":
                    constant = node.output.to_python()
                    scope[node.output] = copy.deepcopy(constant) if isinstance(constant, (list, dict)) else constant
                case "prim::If":
                    chosen = node.blocks[0 if scope[node.input] else 1]
                    _define(scope, node.outputs, self._block(chosen, scope))
                case "prim::Loop":
                    _define(scope, node.outputs, self._loop(node, scope))
                case "prim::CallFunction" | "prim::CallMethod":
                    self._node_call(node, scope)
                case _:
                    self._operation(node, scope)
        return [scope[value] for value in block.outputs]

    def _loop(self, node: Node, scope: ValueMap) -> list[Any]:
        most, goes_on, *carried = (scope[value] for value in node.inputs)
        body = node.blocks[0]
        iteration = 0
        while goes_on and iteration < most:
            self._budget.step()
            _define(scope, body.inputs, [iteration, *carried])
            goes_on, *carried = self._block(body, scope)
            iteration += 1
        return carried

    def _node_call(self, node: Node, scope: ValueMap) -> None:
        record = called_function(node)
        inputs = node.inputs if node.kind == "prim::CallMethod" else node.inputs[1:]
        arguments = [scope[value] for value in inputs]
        if record is None and node.kind == "prim::CallMethod":
            owner = class_of(arguments[0])
            record = owner.methods.get(node.get_string("name")) if isinstance(owner, ClassType) else None
        if record is None:
            raise refusal(self._running, node.kind)
        result = self._call(record, arguments)
        _define(scope, node.outputs, [result] if len(node.outputs) == 1 else list(result or ()))

    def _operation(self, node: Node, scope: ValueMap) -> None:
        operation = self._operations.get(node)
        if operation is None:
            operator = node.operator
            if operator is None or not _is_allowed(node):
                raise refusal(self._running, node.kind)
            operation = self._operations[node] = operator.operation_of(node)
        arguments = [scope[value] for value in node.inputs]
        self._budget.spend(*cost_of(node.kind, arguments))
        result: Any = operation(*arguments)
        self._budget.spend(0, size_of(result))
        outputs = node.outputs
        if len(outputs) == 1:
            scope[outputs[0]] = result
        elif outputs:
            _define(scope, outputs, result)


def _define(scope: ValueMap, values: Sequence[Value], results: Sequence[Any]) -> None:
    for value, result in zip(values, results, strict=True):
        scope[value] = result


def _is_allowed(node: Node) -> bool:
    """Return whether the operator of ``node`` may run.

    Internal operators of PyTorch, whose names begin with an underscore, do not check memory accesses: only those that
    this package implements may run. Operators that inspect objects would call methods outside of this interpreter.
    """
    kind = node.kind
    namespace, _, name = kind.partition("::")
    if kind in _REFUSED or namespace not in _ALLOWED_NAMESPACES:
        return False
    if namespace != "prim" and kind not in _CARRIES and any(_may_hold_objects(value.type) for value in node.inputs):
        return False
    return not name.startswith("_") or bool(declared_operators(kind))


_CARRIES: Final = kinds_with(Trait.CARRIES_ELEMENTS) | queries_of(Trait.READS_IDENTITY) | CASTS
"""Operators that forward the contents of containers without reading them; the keys of dicts are not objects."""


def _may_hold_objects(type: Type) -> bool:
    if isinstance(type, (ListType, TupleType, DictType, UnionBase)):
        return any(_may_hold_objects(part) for part in type.contained)
    if isinstance(type, ClassType):
        return not type.name.startswith(LIBRARY_CLASSES)
    return isinstance(type, (InterfaceType, AnyType))


def _too_deep() -> ArchiveLimitError:
    return ArchiveLimitError(f"'__setstate__' calls functions more than {_MAX_DEPTH} deep within one another.")
