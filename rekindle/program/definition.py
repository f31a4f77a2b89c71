"""A definition becomes the graph of a record: emitted, cleaned up, verified."""

from __future__ import annotations

import os
import os
from collections.abc import Mapping
from typing import Final

import rekindle.frontend.builtins  # noqa: F401  (builtins that are written in TorchScript themselves)
from rekindle.frontend.depth import room_to_recurse
from rekindle.frontend.emission import SelfBinding
from rekindle.frontend.emitter import emit_function
from rekindle.frontend.sugared import Resolver
from rekindle.ir.graph import Graph
from rekindle.ir.records import FunctionRecord
from rekindle.ir.types import Type
from rekindle.ir.verifier import verify
from rekindle.ir.verifier import verify
from rekindle.passes import CLEANUP_AFTER_EMISSION, run_passes
from rekindle.syntax.views import Def

verify_graphs: bool = os.environ.get("REKINDLE_DEBUG", "0") not in ("", "0")
"""The debug switch: whether every graph is verified after emission and after each pass. ``REKINDLE_DEBUG=1`` sets it."""

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
        VerificationError: under the debug switch, the emitter or a pass made a graph that is not valid.
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
    with room_to_recurse(definition.name.range):
        clean_up(graph)
    record.define(graph, schema)


def clean_up(graph: Graph) -> None:
    """Bring a graph that was just emitted into the form in which programs keep it."""
    if verify_graphs:
        verify(graph)
    run_passes(graph, CLEANUP_AFTER_EMISSION, verify if verify_graphs else None)
