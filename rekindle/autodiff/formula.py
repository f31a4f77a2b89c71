"""Derivative formulas of operators, compiled from the texts in :mod:`rekindle.autodiff.formulas`.

Texts are indexed when the first formula is requested; each formula is compiled when it is used. The functions of a
formula declare what they use as parameters:

* an argument of the operator, by the name in its schema;
* ``result``, or the results by the names in the schema, or ``result0``, ``result1`` …;
* additional values that ``forward`` returns, by their names there;
* ``grad``, the gradient of the only result; ``grads``, where that is a list: the gradients of its elements, each of
  which may be None; ``grad0``, ``grad1`` … where there are several results, each of which may be None;
* ``needs_ARGUMENT``, a bool: whether the gradient of that argument is required.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final, Protocol

from rekindle.analysis.constants import constant_key, is_constant, value_of
from rekindle.analysis.effects import is_immutable
from rekindle.analysis.mutability import may_contain_tensor
from rekindle.autodiff.formula_parser import Definition, read_definitions
from rekindle.autodiff.formulas import TEXTS
from rekindle.errors import InternalError
from rekindle.errors.layer_hooks import LayerHook
from rekindle.frontend.operator_sources import OperatorSourceCompiler
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.registry import Operator
from rekindle.ir.operators.schema import FunctionSchema
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import BOOL, NONE, TENSOR, ListType, OptionalType, Type
from rekindle.ops.registration.aliasing import is_composite
from rekindle.ops.registration.traits import queries_of
from rekindle.passes import (
    CanonicalizeOps,
    ConstantPropagation,
    DeadCodeElimination,
    Inlining,
    LowerSimpleTuples,
    PartialEvaluation,
    Pass,
    run_passes,
)
from rekindle.passes.simplification.partial_evaluation import PRESENT

_CLEANUP: Final[tuple[Pass, ...]] = (
    Inlining(),
    LowerSimpleTuples(),
    ConstantPropagation(),
    CanonicalizeOps(),
    DeadCodeElimination(),
)

_OF_PROPERTIES: Final = queries_of(Trait.READS_RANK, Trait.READS_SIZES, Trait.READS_DTYPE, Trait.READS_DEVICE)
"""Kinds that read no elements of a tensor."""


class CompiledFormulas(Protocol):
    """Interface of a cache of compiled formulas that processes share."""

    def find(self, text: str, build: Callable[[], Graph]) -> Graph:
        """Return the cached graph of the formula ``text``; if there is none, call ``build`` and cache its result."""

    def write(self) -> None:
        """Store the graphs that were built since the last call."""


class _NotKept:
    def find(self, text: str, build: Callable[[], Graph]) -> Graph:
        return build()

    def write(self) -> None:
        pass


compiled_formulas: Final = LayerHook[CompiledFormulas]("rekindle.runtime.strategies.formula_cache", _NotKept())
"""Hook: the cache of compiled formulas."""


@dataclass(slots=True, eq=False)
class FormulaFunction:
    """A compiled function of a formula: ``graph`` takes ``parameters``, and returns one value for each of ``returns``
    (a tuple, where it has a single output and several names)."""

    graph: Graph
    parameters: tuple[str, ...]
    returns: tuple[str, ...]

    _evaluated: dict[Hashable, Graph] = field(default_factory=dict, init=False, repr=False)

    def graph_for(self, arguments: Sequence[Value]) -> Graph:
        """Return the graph with those branches that ``arguments`` select: by constants, and by whether they are None.
        It is shared: do not change it."""
        if not any(node.blocks for node in self.graph.nodes):
            return self.graph
        known: dict[int, object] = {}
        keys: dict[int, Hashable] = {}
        for index, (value, parameter) in enumerate(zip(arguments, self.graph.inputs, strict=True)):
            if value.type == NONE:
                known[index], keys[index] = None, "None"
            elif is_constant(value) and is_immutable(value.type):
                known[index], keys[index] = value_of(value.node), constant_key(value.node)
            elif isinstance(parameter.type, OptionalType) and not isinstance(value.type, OptionalType):
                known[index], keys[index] = PRESENT, "present"
        key = tuple(keys.items())
        found = self._evaluated.get(key)
        if found is None:
            found = self._evaluated[key] = self.graph.copy()
            PartialEvaluation(known).run(found)
        return found


@dataclass(slots=True, eq=False)
class Formula:
    """The gradient of one operator: formulas and properties.

    ``targets`` are the arguments that it has gradients of. Of a composite, there is ``composite`` alone.
    """

    schema: FunctionSchema
    _definitions: dict[str, Definition] = field(repr=False)
    _parts: dict[str, FormulaFunction | None] = field(default_factory=dict, repr=False)

    @property
    def targets(self) -> tuple[str, ...]:
        backward = self._definitions.get("backward")
        return () if backward is None else backward.targets

    @property
    def uses(self) -> tuple[str, ...]:
        """The parameters of the backward formula: forward values, gradients of results, and ``needs_ARGUMENT``."""
        backward = self._definitions.get("backward")
        return () if backward is None else backward.parameters

    @property
    def composite(self) -> FormulaFunction | None:
        return self._part("composite")

    @property
    def forward(self) -> FormulaFunction | None:
        return self._part("forward")

    @property
    def backward(self) -> FormulaFunction:
        found = self._part("backward")
        if found is None:
            raise InternalError(f"there is no backward for {self.schema.qualified_name}")
        return found

    @property
    def saves_tensors(self) -> bool:
        """Whether the gradient depends on elements of forward values. That of a composite may."""
        if self.composite is not None:
            return True
        graph = self.backward.graph
        forward = [value for name, value in zip(self.uses, graph.inputs, strict=True) if not name.startswith("grad")]
        users = [use.user for value in forward if may_contain_tensor(value.type) for use in value.uses]
        return any(user.kind not in _OF_PROPERTIES for user in users)

    @property
    def result_names(self) -> tuple[str, ...]:
        """The names of the operator's results."""
        results = self.schema.returns
        if len(results) == 1:
            return ("result",)
        return tuple(result.name or f"result{index}" for index, result in enumerate(results))

    def _part(self, word: str) -> FormulaFunction | None:
        if word not in self._parts:
            definition = self._definitions.get(word)
            self._parts[word] = None if definition is None else self._compile(definition)
        return self._parts[word]

    def _compile(self, definition: Definition) -> FormulaFunction:
        types = self._types()
        if definition.word == "backward" and self.forward is not None:
            types.update(_types_of_returns(self.forward))
        unknown = [name for name in definition.parameters if name not in types]
        if unknown:
            raise InternalError(f"the formula of {self.schema.qualified_name} uses {unknown}, which it does not have")
        names = [_PARAMETER.get(name, name) for name in definition.parameters]
        parameters = ", ".join(
            f"{name}: {types[key].annotation}" for name, key in zip(names, definition.parameters, strict=True)
        )
        text = f"def {definition.word}({parameters}):\n{definition.body}"

        def build() -> Graph:
            graph = _TEXTS.emit(text, f"{definition.word} of {self.schema.qualified_name}")
            run_passes(graph, _CLEANUP)
            return graph

        graph = compiled_formulas.get().find(text, build)
        returns = self.result_names
        if definition.word != "composite":
            returns = definition.targets if definition.word == "backward" else _returned_names(definition)
        return FormulaFunction(graph, definition.parameters, returns)

    def _types(self) -> dict[str, Type]:
        """Return the types of all that a function of this formula may name."""
        types: dict[str, Type] = {}
        for argument in self.schema.arguments:
            types[argument.name] = argument.type
            types[f"needs_{argument.name}"] = BOOL
        results = self.schema.returns
        for index, (name, result) in enumerate(zip(self.result_names, results, strict=True)):
            types[name] = types[f"result{index}"] = result.type
            types[f"grad{index}"] = OptionalType(TENSOR)
        if len(results) == 1:
            types["grad"] = TENSOR
            types["grads"] = ListType(OptionalType(TENSOR))
        return types


_PARAMETER: Final[dict[str, str]] = {"from": "from_"}
"""Replacements for argument names that are keywords of the language."""


def _types_of_returns(part: FormulaFunction) -> dict[str, Type]:
    output = part.graph.outputs[0]
    if len(part.returns) == 1:
        return {part.returns[0]: output.type}
    return dict(zip(part.returns, output.type.contained, strict=True))


def _returned_names(definition: Definition) -> tuple[str, ...]:
    """Return the names after the last ``return`` of a forward.

    Raises:
        InternalError: it returns something other than names.
    """
    text = definition.body.rpartition("return ")[2]
    if not re.fullmatch(r"\w+(, \w+)*\s*", text):
        raise InternalError(f"the forward of {definition.operators} returns something that has no name: {text}")
    return tuple(name.strip() for name in text.split(","))


# ------------------------------------------------------------------------------------------------------------ compiling


def _helpers() -> Mapping[str, GraphFunction]:
    return _index().helpers


_TEXTS: Final = OperatorSourceCompiler(_helpers, {"own": "autodiff"})


# -------------------------------------------------------------------------------------------------------------- finding


@dataclass(slots=True)
class _Index:
    definitions: dict[str, dict[str, Definition]] = field(default_factory=dict)
    """By operator and by word."""
    constants: set[str] = field(default_factory=set)
    helpers: dict[str, GraphFunction] = field(default_factory=dict)
    families: dict[str, str] = field(default_factory=dict)
    """The text that contains each operator."""


@cache
def _index() -> _Index:
    index = _Index()
    for family, text in TEXTS.items():
        for definition in read_definitions(text):
            _add(index, family, definition)
    return index


def _add(index: _Index, family: str, definition: Definition) -> None:
    if definition.word == "def":
        index.helpers[definition.operators[0]] = _TEXTS.helper(definition.body)
        return
    for operator in definition.operators:
        index.families[operator] = family
        if definition.word == "constant":
            index.constants.add(operator)
            continue
        known = index.definitions.setdefault(operator, {})
        if definition.word in known:
            raise InternalError(f"there are two definitions of '{definition.word} {operator}'")
        known[definition.word] = definition


def operators_with_formulas() -> Sequence[str]:
    """Return every operator that has a formula, as ``add.Tensor``, in the order of the formula files."""
    return list(_index().definitions)


def family_of(operator: str) -> str | None:
    """Return the family of operators (a file of formulas) that contains ``operator``, such as ``add.Tensor``: that
    has a formula for it, or declares that it has no gradient. Return None if no file does."""
    return _index().families.get(operator)


@cache
def _key(operator: Operator) -> str | None:
    """Return the name of an operator in the texts, as ``add.Tensor`` or ``own.attention``; None for operators of other
    namespaces than ``aten`` and ``autodiff``."""
    namespace, _, name = operator.schema.qualified_name.partition("::")
    return {"aten": name, "autodiff": f"own.{name}"}.get(namespace)


@cache
def _formula(key: str, schema: FunctionSchema) -> Formula | None:
    definitions = _index().definitions.get(key)
    return None if definitions is None else Formula(schema, definitions)


@cache
def _formula_of_operator(operator: Operator) -> Formula | None:
    key = _key(operator)
    return None if key is None or key not in _index().definitions else _formula(key, operator.schema)


def formula_of(node: Node) -> Formula | None:
    """Return the formula of the operator that ``node`` calls; None if it has none."""
    operator = node.operator
    return None if operator is None else _formula_of_operator(operator)


def operators_recorded(node: Node) -> list[Node]:
    """Return the operators that PyTorch's autograd records where ``node`` runs: those with formulas among the parts of
    a composite operator, such as a recurrent cell, else ``node`` itself, with or without a formula."""
    formula, operator = formula_of(node), node.operator
    is_dispatched = operator is not None and operator.is_dispatched
    if formula is None or not is_dispatched or not is_composite(formula.schema.qualified_name):
        return [node]
    composite = formula.composite
    if composite is None:
        return [node]
    arguments = dict(zip((argument.name for argument in formula.schema.arguments), node.inputs, strict=True))
    graph = composite.graph_for([arguments[name] for name in composite.parameters])
    return [each for each in graph.all_nodes() if formula_of(each)]


def is_constant_operator(node: Node) -> bool:
    """Return whether the results of ``node`` are declared to have no gradient."""
    operator = node.operator
    return operator is not None and _key(operator) in _index().constants
