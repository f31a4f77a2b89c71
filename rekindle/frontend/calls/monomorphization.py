"""Monomorphization: compile a generic function for the arguments of a call (:mod:`rekindle.frontend.calls.generic`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rekindle.errors import Diagnostics, TypeMismatchError
from rekindle.errors.layer_hooks import LayerHook
from rekindle.frontend.calls import generic
from rekindle.frontend.calls.generic import FlattenedArguments, GenericFunction
from rekindle.frontend.emitter import Emitter
from rekindle.frontend.functions import complete, emit_given, new_emitter
from rekindle.frontend.inference.type_inference import TypeEvidence, with_inference
from rekindle.frontend.recursion_limit import room_to_recurse
from rekindle.frontend.ssa.conversion import is_meaningful_name
from rekindle.frontend.sugared_values.base import SugaredValue
from rekindle.frontend.sugared_values.local_functions import itself_within
from rekindle.ir.graph import Graph, Value
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.types import Type

finish: Final = LayerHook[Callable[[Graph], None]]("rekindle.program.sources.definition", lambda graph: None)
"""Hook: clean up a graph that was just emitted, in place."""

free_name: Final = LayerHook[Callable[[str], str]]("rekindle.program.sources.definition", lambda name: name)
"""Hook: return an unused qualified name for a function with the given name."""


@dataclass(slots=True)
class _Parameter:
    """The sugared value of a name within the specialized function: ``rebuild`` constructs it from parameters of these
    types."""

    name: str
    types: list[Type]
    rebuild: Callable[[Sequence[Value], Emitter], SugaredValue]

    def names(self) -> list[str]:
        if len(self.types) == 1:
            return [self.name]
        return [f"{self.name}_{index}" for index in range(len(self.types))]


def make_record(function: GenericFunction, given: FlattenedArguments) -> GraphFunction:
    parameters = [_Parameter(name, [value.type for value in parts.values], parts.unflatten) for name, parts in given]

    def define(record: GraphFunction) -> None:
        diagnostics = Diagnostics()
        definition = function.definition

        def emit(evidence: TypeEvidence) -> tuple[Emitter, FunctionSchema, Type]:
            emitter = new_emitter(function.resolver, diagnostics, evidence)
            declared = function.declared_result()
            schema = FunctionSchema(record.basename, "", tuple(_declare(emitter, parameters)))
            if declared is not None:
                record.declare(_returning(schema, declared))
            emitter.returns.announce = lambda type: record.declare(_returning(schema, type))
            for parameter, values in zip(parameters, _values(emitter.graph, parameters), strict=True):
                sugared = parameter.rebuild(values, emitter)
                emitter.environment.assign(parameter.name, definition.name.range, sugared)
            if function.is_local:
                itself = itself_within(function, emitter)
                if itself is not None:
                    emitter.environment.assign(definition.name.name, definition.name.range, itself)
            return emitter, schema, emit_given(emitter, definition, declared)

        try:
            with diagnostics.reporting(), room_to_recurse(definition.name.range):
                emitter, schema, result = with_inference(diagnostics, emit)
        except BaseException:
            record.declare(None)
            raise
        with room_to_recurse(definition.name.range):
            complete(emitter, result)
            finish.get()(emitter.graph)
        check_recursion(record, result)
        record.define(emitter.graph, _returning(schema, result))

    return GraphFunction(free_name.get()(function.qualified_name or function.name), function_creator=define)


def check_recursion(record: GraphFunction, result: Type) -> None:
    """Check that the result type that recursive calls have assumed is the actual one.

    Raises:
        TypeMismatchError: the types differ.
    """
    if record.is_recursive and record.schema.returns[0].type != result:
        raise TypeMismatchError(
            f"'{record.basename}' calls itself where it is known to return "
            f"{record.schema.returns[0].type.annotation}, but returns {result.annotation}",
            hint="declare the type of its result",
        )


def _declare(emitter: Emitter, parameters: Sequence[_Parameter]) -> list[Argument]:
    taken: set[str] = set()
    arguments: list[Argument] = []
    for parameter in parameters:
        for name, type in zip(parameter.names(), parameter.types, strict=True):
            while name in taken:
                name += "_"
            taken.add(name)
            arguments.append(Argument(name, type))
            emitter.graph.add_input(name if is_meaningful_name(name) else "", type)
    return arguments


def _values(graph: Graph, parameters: Sequence[_Parameter]) -> list[list[Value]]:
    found: list[list[Value]] = []
    at = 0
    for parameter in parameters:
        found.append(list(graph.inputs[at : at + len(parameter.types)]))
        at += len(parameter.types)
    return found


def _returning(schema: FunctionSchema, result: Type) -> FunctionSchema:
    return FunctionSchema(schema.name, "", schema.arguments, (Argument("", result),))


generic.instantiate_generic = make_record
