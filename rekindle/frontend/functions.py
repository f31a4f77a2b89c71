"""Compile a definition to a graph: the entry points of the emitter.

The emitter walks over a definition, resolves names to sugared values, checks types and emits nodes; variables become
loads and stores. Then the graph is converted to SSA (:mod:`rekindle.frontend.ssa.conversion`).

An :class:`~rekindle.frontend.emitter.Emitter` holds the state of one function: graph, names, control state. The
handlers are functions that take it, in modules by subject: ``statements``, ``assignments``, ``loops``, ``conditions``,
``literals``, ``subscripts``, ``calls`` … :mod:`rekindle.frontend.language` lists which of them emits which tree.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from functools import cache, partial
from types import MappingProxyType

from rekindle.errors import Diagnostics, SourceRange, TypeMismatchError
from rekindle.frontend.archive_resolver import ArchiveResolver
from rekindle.frontend.dialect import DIALECT
from rekindle.frontend.emitter import Emitter, SelfBinding
from rekindle.frontend.inference.error_diagnosis import try_to_emit
from rekindle.frontend.inference.none_check_insertion import NoneCheckInserter
from rekindle.frontend.inference.type_inference import TypeEvidence, with_inference
from rekindle.frontend.language import LANGUAGE
from rekindle.frontend.recursion_limit import room_to_recurse
from rekindle.frontend.scopes.private_names import private_names
from rekindle.frontend.signatures import RESULT, Signature, TypeOrError, read_signature
from rekindle.frontend.ssa.assignedness import settle_guards
from rekindle.frontend.ssa.closures import lift_closures
from rekindle.frontend.ssa.conversion import convert_to_ssa, is_meaningful_name
from rekindle.frontend.statements.simple_statements import emit_return
from rekindle.frontend.sugared_values.base import Resolver, SugaredValue
from rekindle.frontend.sugared_values.classes import InitBinding
from rekindle.frontend.sugared_values.local_functions import local_names
from rekindle.frontend.sugared_values.values import unknown_library_class
from rekindle.ir.graph import Graph
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.redefinition import infer_result, wanted_result
from rekindle.ir.types import (
    ANY,
    NONE,
    TENSOR,
    ClassType,
    ListType,
    Type,
    as_python_has,
)
from rekindle.syntax.tree import Tree
from rekindle.syntax.views import (
    Def,
    NoneLiteral,
    Return,
)


def emit_function(
    definition: Def,
    resolver: Resolver,
    *,
    name: str | None = None,
    self_binding: SelfBinding | None = None,
    defaults: Mapping[str, object] | None = None,
    parameter_types: Mapping[str, TypeOrError] | None = None,
    return_type: TypeOrError | None = None,
) -> tuple[Graph, FunctionSchema]:
    """Compile a definition to a graph in SSA form; return it with its schema, whose result type may be inferred.

    ``defaults`` are the values of default arguments. If it is None, the defaults in the definition must be literals.
    ``parameter_types`` and ``return_type`` override the annotations of the definition.

    Raises:
        CompileError: the definition cannot be compiled.
    """
    diagnostics = Diagnostics()
    signature = read_signature(
        definition,
        resolver,
        diagnostics,
        name=name,
        self_binding=self_binding,
        defaults=defaults,
        parameter_types=parameter_types,
        return_type=return_type,
    )
    return emit_body(definition, signature, resolver, diagnostics, self_binding)


Known = Callable[[SourceRange, Graph], SugaredValue]
"""Function that makes the sugared value of a name in the graph that uses it."""


def emit_body(
    definition: Def,
    signature: Signature,
    resolver: Resolver,
    diagnostics: Diagnostics,
    self_binding: SelfBinding | None = None,
    announce: Callable[[FunctionSchema], None] | None = None,
    known: Mapping[str, Known] = MappingProxyType({}),
) -> tuple[Graph, FunctionSchema]:
    """Emit a body as :func:`emit_function` does, for the result of :func:`read_signature`. ``announce`` is called with
    the schema as soon as a return determines an undeclared result type. ``known`` maps names other than parameters to
    their sugared values.

    Raises:
        CompileError: there are problems in ``diagnostics``, or the body adds to them.
    """
    binding = self_binding if isinstance(self_binding, InitBinding) else None

    def emit(evidence: TypeEvidence) -> tuple[Emitter, Type]:
        emitter = new_emitter(resolver, diagnostics, evidence)
        if announce is not None:
            emitter.returns.announce = lambda type: announce(_returning(signature.schema, type))
        for name, make in known.items():
            range = definition.name.range
            emitter.environment.assign(name, range, make(range, emitter.graph))
        with nullcontext() if binding is None else binding.beginning_again():
            result = emit_definition(emitter, definition, signature.schema, self_binding, signature.unresolved)
        return emitter, result

    with diagnostics.reporting(), room_to_recurse(definition.name.range):
        emitter, result = with_inference(diagnostics, emit)
    with room_to_recurse(definition.name.range):
        complete(emitter, result)
    return emitter.graph, _returning(signature.schema, result)


def complete(emitter: Emitter, result: Type) -> None:
    """Convert the emitted graph, in which variables are loads and stores, to SSA form in place. ``result`` is the
    return type of the function."""
    graph, guarded = emitter.graph, emitter.environment.guarded
    as_printed, graph.none_checks, graph.tensors_as_numbers = not graph.follows_python, None, False
    if guarded or emitter.environment.has_flags:
        settle_guards(graph, guarded)
    convert_to_ssa(graph, result, as_printed=as_printed, partial=guarded)
    lift_closures(graph)


def _returning(schema: FunctionSchema, result: Type) -> FunctionSchema:
    return FunctionSchema(schema.name, "", schema.arguments, (Argument("", result),))


def new_emitter(
    resolver: Resolver, diagnostics: Diagnostics | None = None, evidence: TypeEvidence | None = None
) -> Emitter:
    """Return an emitter for one function. An archive has TorchScript's semantics; other programs have Python's."""
    emitter = Emitter(LANGUAGE, resolver, diagnostics, evidence)
    if not isinstance(resolver, ArchiveResolver):
        emitter.graph.none_checks = NoneCheckInserter(emitter.graph, emitter.environment)
        emitter.graph.tensors_as_numbers = DIALECT.tensors_as_numbers
    return emitter


def emit_definition(
    emitter: Emitter,
    definition: Def,
    schema: FunctionSchema,
    self_binding: SelfBinding | None,
    given_up: Collection[str] = (),
) -> Type:
    """Emit a whole definition, and return its result type. ``given_up`` are the parameters of unknown type, and
    ``RESULT`` if the result type is unknown.

    Raises:
        CompileError: the definition cannot be compiled; several problems are reported together.
    """
    if schema.returns:
        emitter.returns.declared = schema.returns[0].type
    emitter.returns.is_uncertain = RESULT in given_up
    emitter.self_binding = self_binding if isinstance(self_binding, InitBinding) else None
    emitter.environment.own_names = cache(partial(local_names, definition))
    emitter.environment.private_names = cache(partial(private_names, definition))
    _emit_parameters(emitter, definition, schema, self_binding)
    for name in given_up:
        emitter.environment.give_up(name)
    return _emit_to_end(emitter, definition)


def emit_given(emitter: Emitter, definition: Def, declared: Type | None) -> Type:
    """Emit the body of a definition whose parameters have been assigned, and return the type of its result.
    ``declared`` is the declared result type; None if there is none.

    Raises:
        CompileError: the body cannot be compiled.
    """
    emitter.returns.declared = declared
    return _emit_to_end(emitter, definition)


def _emit_to_end(emitter: Emitter, definition: Def) -> Type:
    is_declared = emitter.returns.declared is not None
    if emitter.evidence.result is None and not is_declared:
        emitter.evidence.result = wanted_result()
    if not is_declared and emitter.evidence.result is not None:
        emitter.returns.declared = emitter.evidence.result
        if emitter.returns.announce is not None:
            emitter.returns.announce(emitter.evidence.result)
    emitter.emit_statements(definition.body)
    try_to_emit(emitter, lambda: _close(emitter, definition))
    if emitter.diagnostics.problems:
        _blame_unknown_classes(emitter)
    emitter.diagnostics.raise_all()
    _erase_empty_list_literals(emitter)
    declared, given = emitter.returns.declared, emitter.returns.given
    if declared is not None and given is not None and emitter.graph.follows_python:
        return as_python_has(declared, given)
    result = declared or emitter.returns.merged or NONE
    if not is_declared:
        infer_result(result)
    return result


def _blame_unknown_classes(emitter: Emitter) -> None:
    """Replace the recorded errors by one for each call of a method of a C++ class with unknown methods, if there are
    such calls: the results were assumed to be Tensors, and the errors follow from that."""
    calls = emitter.graph.find_nodes("prim::CallMethod")
    owners = [(call.inputs[0].type, call.range) for call in calls]
    unknown = [
        unknown_library_class(owner, range)
        for owner, range in owners
        if isinstance(owner, ClassType) and owner.is_torchbind_class and owner.library_methods is None
    ]
    if unknown:
        emitter.diagnostics.forget_since([])
        for error in unknown:
            emitter.diagnostics.add(error)


def _emit_parameters(
    emitter: Emitter, definition: Def, schema: FunctionSchema, self_binding: SelfBinding | None
) -> None:
    for position, (param, argument) in enumerate(zip(definition.params, schema.arguments, strict=True)):
        name = param.name.name
        value = emitter.graph.add_input(name if is_meaningful_name(name) else "", argument.type)
        if position == 0 and self_binding is not None:
            emitter.environment.assign(name, param.name.range, self_binding.sugared(value))
        else:
            emitter.environment.assign_value(name, param.name.range, value)
            if argument.type == ANY and not argument.assumed:
                emitter.environment.frame.annotated[name] = ANY
        if argument.assumed:
            emitter.assumed[name] = param.name.range


def _close(emitter: Emitter, definition: Def) -> None:
    """Emit ``return None`` at the end of the body, if that is reachable and the result type is not unknown after an
    error.

    Raises:
        TypeMismatchError: the function declares a result type that does not include None.
    """
    if emitter.has_exited:
        if emitter.returns.merged is None:
            emitter.returns.merged = emitter.returns.declared or NONE
        return
    declared = emitter.returns.declared
    if emitter.returns.is_uncertain:
        return
    if declared is not None and not NONE.is_subtype_of(declared):
        raise TypeMismatchError(
            f"the function is declared to return {declared.annotation}, but not every path returns a value",
            definition.name.range,
        )
    nothing = NoneLiteral(Tree(NoneLiteral.KIND, definition.range))
    emit_return(emitter, Return.create(definition.range, nothing))


def _erase_empty_list_literals(emitter: Emitter) -> None:
    """Replace each ``[]`` without an inferred type by a list of Tensors."""
    for node in emitter.graph.find_nodes("prim::EmptyListLiteral"):
        if node.has_uses:
            made = emitter.graph.create("prim::ListConstruct", types=[ListType(TENSOR)], range=node.range)
            made.insert_before(node)
            node.replace_all_uses_with(made)
            made.output.copy_metadata(node.output)
        node.destroy()
