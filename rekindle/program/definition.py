"""A definition becomes the graph of a record: emitted, cleaned up, verified."""

from __future__ import annotations

from collections.abc import Mapping

import rekindle.frontend.builtins  # noqa: F401  (builtins that are written in TorchScript themselves)
from rekindle.frontend.emission import SelfBinding
from rekindle.frontend.emitter import emit_function
from rekindle.frontend.sugared import Resolver
from rekindle.ir.records import FunctionRecord
from rekindle.ir.types import Type
from rekindle.syntax.views import Def


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

    ``defaults`` are the values of default arguments, ``parameter_types`` and ``return_type`` stand in for annotations
    that are missing.

    Raises:
        CompileError: the definition cannot be compiled; the record is left as it was.
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
    record.define(graph, schema)
