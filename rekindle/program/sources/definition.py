"""Define functions: emit the graph of a parsed definition, clean it up, verify it, and store it in a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import rekindle.frontend.calls.torchscript_builtins
import rekindle.frontend.python.methods  # noqa: F401  (methods of Python's values that are not operators)
from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.errors import (
    CascadingError,
    Cause,
    CompileError,
    Diagnostics,
    Edit,
    TypeMismatchError,
    UnsupportedError,
)
from rekindle.frontend.archive_resolver import ArchiveResolver
from rekindle.frontend.calls import monomorphization
from rekindle.frontend.dialect import DIALECT
from rekindle.frontend.emitter import SelfBinding
from rekindle.frontend.functions import Known, emit_body
from rekindle.frontend.recursion_limit import room_to_recurse
from rekindle.frontend.signatures import Signature, TypeOrError, read_signature
from rekindle.frontend.ssa.closures import CLOSURES
from rekindle.frontend.sugared_values.base import Resolver
from rekindle.ir.attributes import infer_type, is_writable
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.types import TENSOR, optional
from rekindle.passes import Pass, UnwrapScalarOperands, run_passes
from rekindle.passes.canonicalization.inlining import inline
from rekindle.passes.pass_manager import chosen_verifier
from rekindle.program.calling import fit_value
from rekindle.program.names import unique_name
from rekindle.program.sources.outside_lists import check_outside_lists
from rekindle.runtime.pipelines import CLEANUP_AFTER_EMISSION, CLEANUP_OF_TRIED
from rekindle.syntax.views import Def, Param


def define_function(
    record: GraphFunction,
    definition: Def,
    resolver: Resolver,
    *,
    self_binding: SelfBinding | None = None,
    defaults: Mapping[str, object] | None = None,
    parameter_types: Mapping[str, TypeOrError] | None = None,
    return_type: TypeOrError | None = None,
    known: Mapping[str, Known] | None = None,
    diagnostics: Diagnostics | None = None,
) -> None:
    """Compile ``definition`` and store the graph and the schema in ``record``.

    ``defaults`` are the values of default arguments; ``parameter_types`` and ``return_type`` override the annotations
    of the definition. ``known`` maps names other than parameters to their values at the start of the body.
    ``diagnostics`` contains errors found earlier, which are raised with those of the definition.

    Raises:
        CompileError: the definition cannot be compiled; the record gets no graph. Several problems are reported
            together.
        VerificationError: verification is on, and the emitter or a pass made a graph that is not valid.
    """
    diagnostics = Diagnostics() if diagnostics is None else diagnostics
    record.is_from_archive = isinstance(resolver, ArchiveResolver)
    record.takes_tensors_as_numbers = DIALECT.tensors_as_numbers
    state = _type_of_state(record, definition, self_binding)
    signature = read_signature(
        definition,
        resolver,
        diagnostics,
        name=record.basename,
        self_binding=self_binding,
        defaults=defaults,
        parameter_types={**state, **(parameter_types or {})},
        return_type=return_type,
    )
    _check_defaults(signature, definition, diagnostics)
    if signature.schema.returns and not signature.unresolved:
        record.declare(signature.schema)
    try:
        graph, schema = emit_body(
            definition, signature, resolver, diagnostics, self_binding, record.declare, known or {}
        )
        monomorphization.check_recursion(record, schema.returns[0].type)
    except BaseException:
        record.declare(None)
        raise
    with room_to_recurse(definition.name.range):
        if record.is_from_archive:
            run_passes(graph, (UnwrapScalarOperands(),))
        clean_up(graph)
    if not record.is_from_archive:
        _check_shared_defaults(graph, schema, definition)
    record.define(graph, schema)


def _check_shared_defaults(graph: Graph, schema: FunctionSchema, definition: Def) -> None:
    """Raise for a function that writes to a list or dict in the default of a parameter. In Python all calls share the
    object, and see earlier writes; in compiled code it is a constant.

    Raises:
        UnsupportedError: it writes to one.
    """
    shared = [i for i, item in enumerate(schema.arguments) if item.has_default and _is_mutable(item.default)]
    if not shared:
        return
    inlined = graph.copy()
    inline(inlined)
    written = AliasDb(inlined)
    for index in shared:
        if written.has_writers(inlined.inputs[index]):
            param = definition.params[index]
            kind = schema.arguments[index].type.annotation
            raise UnsupportedError(
                f"the default of '{param.name.name}' is one object, which all calls share in Python, and the function "
                "writes to it",
                param.range,
                hint=f"write {param.name.name}: Optional[{kind}] = None, and make the object in the function",
            )


def _is_mutable(default: object) -> bool:
    return isinstance(default, set) or is_writable(default)


def _type_of_state(record: GraphFunction, definition: Def, self_binding: SelfBinding | None) -> dict[str, TypeOrError]:
    """Return the type of the parameter of ``__setstate__`` by its name, if it has no annotation: the result type of
    ``__getstate__``. Return an empty dict for other functions, and a CascadingError if ``__getstate__`` cannot be
    compiled."""
    if record.basename != "__setstate__" or self_binding is None or len(definition.params) != 2:
        return {}
    state = definition.params[1]
    getter = self_binding.type.find_method("__getstate__")
    if getter is None or state.annotation is not None:
        return {}
    try:
        returns = getter.schema.returns
    except CompileError:
        return {state.name.name: CascadingError("what '__getstate__' gives is not known")}
    return {state.name.name: returns[0].type} if returns else {}


def _check_defaults(signature: Signature, definition: Def, diagnostics: Diagnostics) -> None:
    """Record a TypeMismatchError in ``diagnostics`` for each default argument that does not have the known type
    of its parameter: the error would otherwise appear at the first use. If the type of such a parameter was assumed, it
    is added to ``signature.unresolved``."""
    for argument, param in zip(signature.schema.arguments, definition.params, strict=True):
        why = None if argument.name in signature.unresolved else _misfit(argument)
        if why is None:
            continue
        place = param.range if param.default is None else param.default.range
        error = TypeMismatchError(f"the default does not fit: {why}", place)
        if argument.assumed:
            signature.unresolved.add(argument.name)  # it is meant to be something else
            _blame_assumption(error, argument, param)
        diagnostics.add(error)


def _blame_assumption(error: TypeMismatchError, argument: Argument, param: Param) -> None:
    type = optional(TENSOR) if argument.default is None else infer_type(argument.default)
    example = "…" if type is None else type.annotation
    error.cause = Cause.DEFAULT_TYPE_ASSUMED
    name = argument.name
    error.hint = (
        f"'{name}' was assumed to be a Tensor because it has no annotation; write, for example, {name}: {example}"
    )
    if type is not None:
        error.edit = Edit(param.name.range, f"{name}: {example}")


def _misfit(argument: Argument) -> str | None:
    """Return the reason why the default of a parameter does not fit its type; None if it fits, or there is none."""
    if not argument.has_default:
        return None
    if argument.size is not None and not isinstance(argument.default, (list, tuple)):
        return None  # one value stands for all
    try:
        fit_value(argument.default, argument.type, f"parameter '{argument.name}'")
    except TypeError as why:
        return str(why)
    return None


def clean_up(graph: Graph, passes: Sequence[Pass] = CLEANUP_AFTER_EMISSION) -> None:
    """Run ``passes`` in place on a graph that was just emitted, and cleanup passes on the subgraphs of its closures.
    Check before that it does not write to lists from outside: each mention of one makes a list, so that a pass would
    take the write for dead code.

    Raises:
        UnsupportedError: it may write to one (:func:`check_outside_lists`).
        VerificationError: verification is on, and the graph is not valid before or after a pass.
    """
    check_outside_lists(graph)
    verifier = chosen_verifier()
    if verifier is not None:
        verifier(graph)
    for kind in CLOSURES:
        for node in graph.find_nodes(kind):
            inner = CLEANUP_OF_TRIED if kind == "prim::Try" else CLEANUP_AFTER_EMISSION
            clean_up(node.get_graph("Subgraph"), inner)
    run_passes(graph, passes, verifier)


def _free_name(name: str) -> str:
    return unique_name(f"__torch__.{name}")


monomorphization.finish.provide(clean_up)
monomorphization.free_name.provide(_free_name)
