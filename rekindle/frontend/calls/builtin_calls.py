"""Emit calls of builtins: operators of the registry, and functions that are themselves written in TorchScript."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

from rekindle.errors import SourceRange, UndefinedNameError
from rekindle.frontend.calls.iterated_arguments import with_items
from rekindle.frontend.expressions.number_dispatch import Arguments, dispatch_on_number
from rekindle.ir.graph import Graph, Value
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.lazy_sequence import LazySequence
from rekindle.ir.operators.operator_nodes import insert_operator_node, pack_outputs
from rekindle.ir.operators.registry import REGISTRY, Operator
from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.operators.schema_matching import NamedValue, match_schemas
from rekindle.ir.types import FunctionType

find_builtin_functions: Callable[[str], Sequence[GraphFunction]] = lambda kind: ()  # noqa: E731
"""Hook: return the functions written in TorchScript that extend an operator. It is set by
:mod:`rekindle.frontend.calls.torchscript_builtins`.

It breaks a cycle of imports: a call of a builtin may call such a function, whose body calls builtins.
"""


def insert_builtin_call(
    range: SourceRange,
    graph: Graph,
    kind: str,
    args: Sequence[NamedValue],
    kwargs: Sequence[NamedValue],
    self_value: NamedValue | None = None,
    preferred: Sequence[Operator | GraphFunction] = (),
) -> Value:
    """Insert a call of the builtin ``kind`` with the first overload that fits the arguments; return its result, a tuple
    if there are several.

    The overloads in ``preferred`` are tried before the operators of the kind, and functions written in TorchScript
    last. A number argument whose type is known only at run time is dispatched on its type.

    Raises:
        SchemaError: no overload fits.
        TypeMismatchError: ``str.join`` is called with a number.
        UndefinedNameError: there is no such builtin.
    """
    if kind == "aten::join" and self_value is not None and len(args) == 1:
        args = with_items(range, graph, args)
    operators = REGISTRY.overloads(kind)
    functions = find_builtin_functions(kind)
    if not operators and not functions and not preferred:
        raise UndefinedNameError(f"there is no operator '{kind}'", range, hint=_similar(kind))
    parts: tuple[Sequence[Operator | GraphFunction], ...] = (preferred, operators, functions)
    candidates = LazySequence.chained(parts)
    schemas = LazySequence.mapped(_schema_of, candidates)

    def emit(arguments: Arguments) -> Value:
        return insert_builtin_call(
            range, graph, kind, arguments.args, arguments.kwargs, arguments.self_value, preferred
        )

    dispatched = dispatch_on_number(schemas, range, graph, Arguments(tuple(args), tuple(kwargs), self_value), emit)
    if dispatched is not None:
        return dispatched
    index, plan = match_schemas(kind, schemas, range, args, kwargs, self_value)
    function = candidates[index]
    if isinstance(function, Operator):
        return pack_outputs(graph, insert_operator_node(graph, function, plan, range), plan.schema)
    inputs = plan.inputs(graph, range)
    if function.graph.find_nodes("prim::Loop"):
        # The graph that is being emitted is not in SSA form yet: its loops look otherwise than those of a finished one.
        attributes = {"name": function.basename}
        constant = graph.create("prim::Constant", types=[FunctionType(function)], attributes=attributes, range=range)
        callee = graph.insert_node(constant).output
        call = graph.create("prim::CallFunction", [callee, *inputs], types=plan.return_types, range=range)
        return graph.insert_node(call).output
    # Others are thin wrappers: inlining them keeps graphs readable.
    return graph.insert_graph(function.graph, inputs)[0]


def _schema_of(candidate: Operator | GraphFunction) -> FunctionSchema:
    return candidate.schema


def _similar(kind: str) -> str | None:
    close = difflib.get_close_matches(kind, REGISTRY.registered_kinds(), n=3, cutoff=0.8)
    return f"did you mean {' or '.join(repr(name) for name in close)}?" if close else None
