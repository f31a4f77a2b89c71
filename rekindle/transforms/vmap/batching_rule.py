"""The rule of an operator, compiled for the arguments that differ between examples."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from rekindle.autodiff.formula_parser import Definition, read_definitions
from rekindle.errors import InternalError
from rekindle.frontend.operator_sources import OperatorSourceCompiler
from rekindle.ir.graph import Graph, Node
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.registry import REGISTRY
from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import FLOAT, INT, TENSOR, Type
from rekindle.passes import run_passes
from rekindle.runtime.pipelines import BATCHING_RULE_CLEANUP
from rekindle.transforms.vmap.batched_scalars import is_number
from rekindle.transforms.vmap.rules import TEXTS
from rekindle.transforms.vmap.rules.families import FAMILIES, RENAMED, pointwise
from rekindle.transforms.vmap.rules.metadata import SCALARS
from rekindle.transforms.vmap.rules.ranks import checks


@dataclass(slots=True, eq=False)
class BatchingRule:
    """The batched computation of one operator, written as source. ``uses`` are the names in its head, in order."""

    schema: FunctionSchema
    uses: tuple[str, ...]
    body: str = field(repr=False)
    takes_numbers: bool = False
    """Whether numbers may differ between examples too."""
    _compiled: dict[tuple[frozenset[str], bool], Graph] = field(default_factory=dict, repr=False)

    @property
    def arguments(self) -> list[str]:
        """The arguments of the operator that the rule uses, in the order of its graph's inputs."""
        return [name for name in self.uses if not name.startswith("batched_")]

    def expands(self, name: str) -> bool:
        """Return whether the tensor argument ``name`` is expanded if it is the same for all examples."""
        return f"batched_{name}" not in self.uses

    def graph(self, batched: frozenset[str], *, same: bool) -> Graph:
        """Return the compiled rule for arguments of which those in ``batched`` differ between examples; expanded ones
        count as batched. With ``same``, random numbers are the same for all examples. The inputs of the graph are
        :attr:`arguments`, followed by the size of the batch."""
        key = (batched, same)
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = self._compile(batched, same)
        return found

    def _compile(self, batched: frozenset[str], same: bool) -> Graph:
        types = {argument.name: argument.type for argument in self.schema.arguments}
        unknown = [name for name in self.arguments if name not in types]
        if unknown:
            raise InternalError(f"the rule of {self.schema.qualified_name} uses {unknown}, which it does not have")
        parameters = [
            f"{RENAMED.get(name, name)}: {_type_of(types[name], name in batched).annotation}" for name in self.arguments
        ]
        lines = [
            f"    {name} = {name.removeprefix('batched_') in batched}\n" for name in self.uses if name not in types
        ]
        if self.takes_numbers and FLOAT in types.values():  # PyTorch would make a float32 of an int64 and a float
            lines += [f"    {name} = torch.to({name}, 7)\n" for name in sorted(batched) if types[name] == INT]
        lines += checks(self.schema.qualified_name.removeprefix("aten::"), batched)
        lines += [f"    same = {same}\n"] if re.search(r"\bsame\b", self.body) else []
        body = self.body.replace("torch.SAME", f"torch.{self.schema.name.removeprefix('aten::')}")
        text = f"def batch({', '.join([*parameters, 'batch_size: int'])}):\n{''.join(lines)}{body}"
        graph = _COMPILER.emit(text, f"batch of {self.schema.qualified_name}")
        run_passes(graph, BATCHING_RULE_CLEANUP)
        return graph


def _type_of(type: Type, batched: bool) -> Type:
    return TENSOR if batched and is_number(type) else type


# -------------------------------------------------------------------------------------------------------------- finding


@dataclass(slots=True)
class _Index:
    definitions: dict[str, Definition] = field(default_factory=dict)
    helpers: dict[str, GraphFunction] = field(default_factory=dict)


@cache
def _index() -> _Index:
    index = _Index()
    for text in TEXTS.values():
        for definition in read_definitions(text, ("batch",)):
            if definition.word == "def":
                index.helpers[definition.operators[0]] = _COMPILER.helper(definition.body)
                continue
            for operator in definition.operators:
                if operator in index.definitions:
                    raise InternalError(f"there are two rules of batching for {operator}")
                index.definitions[operator] = definition
    return index


_COMPILER: Final = OperatorSourceCompiler(lambda: _index().helpers, {"own": "autodiff"})


def helper(name: str) -> Graph:
    """Return the graph of a helper function of batching rules, with its calls inlined."""
    return _helper(name)


@cache
def _helper(name: str) -> Graph:
    graph = _index().helpers[name].graph.copy()
    run_passes(graph, BATCHING_RULE_CLEANUP)
    return graph


def helpers() -> Sequence[str]:
    """Return the names of the helper functions of batching rules."""
    return list(_index().helpers)


def operators_with_rules() -> Sequence[str]:
    """Return the names of all operators that have a batching rule, such as ``sum.dim_IntList``."""
    return [*_index().definitions, *_families()]


@cache
def _families() -> Mapping[str, int]:
    found: dict[str, int] = {}
    for index, (_, names) in enumerate(FAMILIES):
        for name in names.split():
            found.setdefault(name, index)
    return found


def rule_of(node: Node) -> BatchingRule | None:
    """Return the rule of the operator that ``node`` calls, if there is one; None if there is none."""
    schema = node.schema
    return None if schema is None else rule_for(schema)


def rule_for(schema: FunctionSchema) -> BatchingRule | None:
    """Return the rule of the operator with this schema, if there is one; None if there is none."""
    return _rule(schema.qualified_name, schema)


@cache
def _rule(name: str, schema: FunctionSchema) -> BatchingRule | None:
    scalar = SCALARS.get(name)
    if scalar is not None:
        return _scalar_rule(schema, scalar)
    namespace, _, key = name.partition("::")
    if namespace not in ("aten", "autodiff"):
        return None
    key = key if namespace == "aten" else f"own.{key}"
    definition = _index().definitions.get(key)
    if definition is not None:
        return BatchingRule(schema, definition.parameters, definition.body)
    index = _families().get(key)
    write = pointwise if index is None and _is_pointwise(schema) else None if index is None else FAMILIES[index][0]
    body = None if write is None else write(schema)
    if body is None:
        return None
    names = [argument.name for argument in schema.arguments]
    flags = [f"batched_{name}" for name in names if re.search(rf"\bbatched_{name}\b", body)]
    return BatchingRule(schema, (*names, *flags), body)


def _scalar_rule(schema: FunctionSchema, expression: str) -> BatchingRule:
    names = [argument.name for argument in schema.arguments]
    return BatchingRule(schema, tuple(names), f"    return {expression.format(*names)}\n", takes_numbers=True)


def _is_pointwise(schema: FunctionSchema) -> bool:
    operator = REGISTRY.find(schema.qualified_name)
    return operator is not None and Trait.POINTWISE in operator.traits
