"""Programs compiled from their text alone: what tests of the emitter need, without Python functions.

A text defines functions. They know each other, ``torch``, ``math`` and ``F`` in part, and the names that a test gives.
The same text can be run by Python and compiled by torch.jit.
"""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

import rekindle.frontend.calls.torchscript_builtins
import rekindle.ops
import rekindle.program.sources.definition  # noqa: F401 (functions compiled for each of their uses)
from rekindle.errors import Source, SourceRange, UndefinedNameError
from rekindle.frontend import functions, signatures
from rekindle.frontend.sugared_values.base import EmptyResolver, SugaredValue
from rekindle.frontend.sugared_values.special_forms import GLOBALS
from rekindle.frontend.sugared_values.values import BuiltinFunction, FunctionValue, SimpleValue
from rekindle.ir.graph import Graph
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.scalar_types import DTYPE_NUMBERS
from rekindle.ir.types import DTYPE, Type
from rekindle.passes import run_passes
from rekindle.runtime.executor import execute
from rekindle.runtime.pipelines import CLEANUP_AFTER_EMISSION
from rekindle.syntax.parser import parse_module
from rekindle.syntax.views import Def

FILE = "program.py"


class Namespace(SugaredValue):
    """``torch``, ``math``: attributes are dtypes, numbers, special forms and, for all other names, operators."""

    def __init__(self, module: Any) -> None:
        self.module = module

    @property
    def description(self) -> str:
        return f"the module '{self.module.__name__}'"

    def attribute(self, range: SourceRange, graph: Graph, name: str) -> SugaredValue:
        if self.module is torch and name == "jit":
            return Namespace(torch.jit)
        if self.module is torch.jit:
            return GLOBALS[{"_unwrap_optional": "unchecked_cast"}.get(name, name)]
        found = getattr(self.module, name, None)
        if isinstance(found, torch.dtype):
            return SimpleValue(graph.insert_constant(DTYPE_NUMBERS[found], DTYPE, range))
        if isinstance(found, float):
            return SimpleValue(graph.insert_constant(found, range=range))
        if found is None:
            raise UndefinedNameError(f"{self.description} has no attribute '{name}'", range)
        return BuiltinFunction(f"aten::{name}")


@dataclass
class Names(EmptyResolver):
    """A resolver: functions and values by name."""

    functions: dict[str, GraphFunction] = field(default_factory=dict)
    values: Mapping[str, SugaredValue] = field(default_factory=dict)
    types: Mapping[str, Type] = field(default_factory=dict)

    def resolve_value(self, name: str, range: SourceRange, graph: Graph) -> SugaredValue | None:
        if name in self.values:
            return self.values[name]
        if name in self.functions:
            return FunctionValue(self.functions[name])
        return Namespace({"torch": torch, "math": math}[name]) if name in ("torch", "math") else None

    def resolve_type(self, name: str, range: SourceRange) -> Type | None:
        return self.types.get(name)


def declare(
    text: str, values: Mapping[str, SugaredValue] | None = None, types: Mapping[str, Type] | None = None
) -> dict[str, GraphFunction]:
    """The functions that ``text`` defines, each compiled, and cleaned up, when it is asked for its graph."""
    names = Names({}, values or {}, types or {})
    for statement in parse_module(Source(text, FILE)):
        definition = Def(statement.tree)

        def define(record: GraphFunction, definition: Def = definition) -> None:
            graph, schema = functions.emit_function(definition, names)
            run_passes(graph, CLEANUP_AFTER_EMISSION)
            record.define(graph, schema)

        names.functions[definition.name.name] = GraphFunction(definition.name.name, function_creator=define)
    return names.functions


def compiled(text: str, values: Mapping[str, SugaredValue] | None = None, **types: Type) -> GraphFunction:
    """The last function of ``text``, compiled."""
    record = list(declare(text, values, types).values())[-1]
    record.ensure_defined()
    return record


def before_ssa(text: str, values: Mapping[str, SugaredValue] | None = None) -> Graph:
    """The graph of the last function of ``text`` as the emitter makes it, with loads, stores and jumps."""
    *_, last = parse_module(Source(text, FILE))
    definition = Def(last.tree)
    names = Names({**declare(text, values)}, values or {}, {})
    made = functions.new_emitter(names)
    functions.emit_definition(made, definition, signatures.declare_schema(definition, names), None)
    return made.graph


def run(text: str, *arguments: Any) -> Any:
    """What the last function of ``text`` gives."""
    return execute(compiled(text), arguments)


PYTHON_NAMES: dict[str, Any] = {
    "torch": torch,
    "math": math,
    "Tensor": torch.Tensor,
    "number": float,
    "annotate": lambda type, value: value,
    "unchecked_cast": lambda type, value: value,
    "uninitialized": lambda type: None,
    **{name: getattr(typing, name) for name in ("Any", "Dict", "List", "NamedTuple", "Optional", "Tuple", "Union")},
}


def python_function(text: str) -> Any:
    """The last function of ``text``, as Python has it."""
    names: dict[str, Any] = dict(PYTHON_NAMES)
    before = set(names)
    exec(compile(text, FILE, "exec"), names)
    *_, last = (name for name in names if name not in before and name != "__builtins__")
    return names[last]


def torch_graph(text: str) -> str:
    """The graph that torch.jit makes of the last function of ``text``."""
    unit = torch.jit.CompilationUnit(text.rstrip() + "\n")
    *_, last = parse_module(Source(text, FILE))
    return str(getattr(unit, Def(last.tree).name.name).graph)
