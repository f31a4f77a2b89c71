"""A definition becomes the graph of a record: emitted, cleaned up, verified."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

import rekindle.frontend.builtins  # noqa: F401  (builtins that are written in TorchScript themselves)
from rekindle.errors import TypeMismatchError
from rekindle.frontend.depth import room_to_recurse
from rekindle.frontend.emission import SelfBinding
from rekindle.frontend.emitter import emit_function
from rekindle.frontend.sugared import Resolver
from rekindle.ir.graph import Graph
from rekindle.ir.records import FunctionRecord
from rekindle.ir.schema import FunctionSchema
from rekindle.ir.types import Type
from rekindle.ir.verifier import verify
from rekindle.passes import CLEANUP_AFTER_EMISSION, run_passes
from rekindle.program.calling import fit_value
from rekindle.syntax.views import Def

VERIFY_SWITCH: Final = "REKINDLE_VERIFY"
"""The variable of the environment that, set to 1, has every graph verified after it is made and after each pass."""


def define_function(
    record: FunctionRecord,
    definition: Def,
    resolver: Resolver,
    *,
    self_binding: SelfBinding | None = None,
    defaults: Mapping[str, object] | None = None,
    parameter_types: Mapping[str, Type] | None = None,
    return_type: Type | None = None,
) -> None:
    """Compile ``definition`` and give ``record`` the graph and the schema.

    ``defaults`` are the values of default arguments, ``parameter_types`` and ``return_type`` count more than what is
    written in the definition.

    Raises:
        CompileError: the definition cannot be compiled; the record is left as it was.
        VerificationError: verification is on, and the emitter or a pass made a graph that is not valid.
    """
    graph, schema = emit_function(
        definition,
        resolver,
        name=record.basename,
        self_binding=self_binding,
        defaults=defaults,
        parameter_types=parameter_types,
        return_type=return_type,
    )
    _check_defaults(schema, definition)
    with room_to_recurse(definition.name.range):
        clean_up(graph)
    record.define(graph, schema)


def _check_defaults(schema: FunctionSchema, definition: Def) -> None:
    """Default arguments must be of the types of their parameters: nobody would notice before they are used."""
    for argument, param in zip(schema.arguments, definition.params, strict=True):
        if not argument.has_default:
            continue
        if argument.size is not None and not isinstance(argument.default, (list, tuple)):
            continue  # one value stands for all
        try:
            fit_value(argument.default, argument.type, f"parameter '{argument.name}'")
        except TypeError as why:
            place = param.range if param.default is None else param.default.range
            raise TypeMismatchError(f"the default does not fit: {why}", place) from None


def clean_up(graph: Graph) -> None:
    """Bring a graph that was just emitted into the form in which programs keep it."""
    verifier = verify if os.environ.get(VERIFY_SWITCH, "0") not in ("", "0") else None
    if verifier is not None:
        verifier(graph)
    for node in graph.find_nodes("prim::fork"):
        clean_up(node.get_graph("Subgraph"))
    run_passes(graph, CLEANUP_AFTER_EMISSION, verifier)
