"""Call facts: assumptions about calls that a graph is evaluated with, and the test of whether a call satisfies them.

Before anything else is done with a graph, :class:`~rekindle.passes.PartialEvaluation` evaluates it for the first call:
for inputs that are None or a bool, for the Tensors among those of a Union, and for the bools, numbers and strings among
the attributes of modules::

    def forward(self, x, mask: Optional[Tensor]):        lambda r0, r1, r2: (
        if mask is not None: …                      →        r2 is None
        return self.dropout(x)                               and r0._modules["dropout"].training is False)

Each later call is tested (:class:`CallFacts`), so that a call after ``module.train()`` runs another graph. Attributes
to which the program writes, or of which one with another value was seen, are not assumed; none are where the program
calls functions of Python, which may write to any.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import torch

from rekindle.analysis.attribute_writes import AttributeKey, nodes_within, slot_of
from rekindle.analysis.effects import CALLS
from rekindle.ir.graph import Graph, Node
from rekindle.ir.graph_function import GraphFunction, called_function
from rekindle.ir.operators.registry import is_foreign
from rekindle.ir.types import BOOL, TENSOR, OptionalType, TensorType, Type, UnionType
from rekindle.passes import PartialEvaluation
from rekindle.passes.simplification.partial_evaluation import (
    PRESENT,
    UNKNOWN,
    AttributeRead,
    ModulePath,
    keeps_types,
    same_constant,
)
from rekindle.runtime.executable import graphs_of
from rekindle.runtime.strategies.attribute_checks import AttributeRows

_TENSORS: Final = (torch.nn.Parameter, torch.Tensor)
_TABLES: Final = ("_parameters", "_buffers")
_ASSUMED: Final = (bool, int, float, str, type(None))
"""The classes of attribute values that are assumed to be constant."""

_IN_CPP: Final = frozenset({"quantized", "_quantized", "mkldnn", "onednn"})
"""Namespaces of PyTorch's own operators beside ``aten``. They are written in C++ and know no modules of Python."""

InputKind = Literal["bool", "optional", "union"]
"""A bool, a value that may be None, or a member of a Union of Tensor and other types."""


@dataclass(slots=True)
class CallFacts:
    """The assumptions about a call: ``inputs`` by index that are constants, ``PRESENT`` (not None) or of the type
    Tensor, and ``attributes`` with their values. ``hold``, called with the arguments, tests whether the assumptions are
    met; it is None if there are none."""

    inputs: Mapping[int, object]
    attributes: Mapping[AttributeRead, object]
    hold: Callable[..., bool] | None = field(init=False)
    _decide: Callable[..., bool] | None = field(init=False)
    """The test in Python."""

    def __post_init__(self) -> None:
        count = 1 + max((*self.inputs, *(read.module.input for read in self.attributes)), default=-1)
        self.hold = self._decide = _test(self, count) if count else None

    def use_machine_code(self) -> None:
        """Evaluate the test in machine code from now on, if that has been loaded and can express it: it takes a tenth
        of the time."""
        if self._decide is None or self.hold is not self._decide:
            return
        rows = AttributeRows()
        for index, fact in self.inputs.items():
            if fact == TENSOR:
                rows.argument_is_tensor(index)
            else:
                rows.argument_is(index, None if fact is PRESENT else fact, negated=fact is PRESENT)
        for read, value in self.attributes.items():
            if not isinstance(value, TensorType):
                rows.attribute_is(read.module, read.name, value)
            elif not rows.tensor_is(read.module, read.name, value):
                return
        self.hold = rows.test(self._decide) or self._decide

    def changed(self, arguments: Sequence[object]) -> set[AttributeRead]:
        """Return the assumed attributes whose current values, for a call with ``arguments``, are different."""
        return {read for read, value in self.attributes.items() if not same_constant(_value_of(arguments, read), value)}


def _test(facts: CallFacts, count: int) -> Callable[..., bool]:
    """Return the test of assumptions as a Python function written for them, since it runs at every call."""
    names: dict[str, Any] = {"classes": _TENSORS}
    modules: dict[ModulePath, str] = {}
    lines = [f"def hold({', '.join(f'r{index}' for index in range(count))}, *others):", " try:"]
    for index, fact in facts.inputs.items():
        if fact == TENSOR:
            lines.append(f"  if type(r{index}) not in classes: return False")
        else:
            lines.append(f"  if r{index} is {'None' if fact is PRESENT else f'not {fact}'}: return False")
    for number, (read, value) in enumerate(facts.attributes.items()):
        owner = _module_name(read.module, modules, lines)
        if isinstance(value, TensorType):
            names.update({f"d{number}": value.dtype, f"v{number}": value.device})
            lines.append(f"  value = {owner}._parameters.get({read.name!r})")
            lines.append(f"  if value is None: value = {owner}._buffers[{read.name!r}]")
            lines.append(f"  if value.dtype is not d{number} or value.device != v{number}: return False")
            lines.append(f"  if value.dim() != {value.rank} or type(value) not in classes: return False")
            continue
        lines.append(f"  value = {owner}.{read.name}")
        if value is None or isinstance(value, bool):
            lines.append(f"  if value is not {value}: return False")
        else:
            names[f"v{number}"] = value
            differs = f"value != v{number}" if value != 0 else f"repr(value) != {repr(value)!r}"  # -0.0 == 0.0
            other = f"type(value) is not {type(value).__name__} or {differs}"  # 1 == 1.0
            lines.append(f"  if value is not v{number} and ({other}): return False")
    lines += ["  return True", " except (AttributeError, KeyError):", "  return False"]
    exec("\n".join(lines), names)  # noqa: S102 (the text is generated here; attribute names are identifiers)
    test: Callable[..., bool] = names["hold"]
    return test


def _module_name(path: ModulePath, known: dict[ModulePath, str], lines: list[str]) -> str:
    """Return the variable that holds a module; adds the line that reads it the first time."""
    if not path.names:
        return f"r{path.input}"
    if path not in known:
        owner = _module_name(ModulePath(path.input, path.names[:-1]), known, lines)
        known[path] = f"m{len(known)}"
        lines.append(f"  {known[path]} = {owner}._modules[{path.names[-1]!r}]")
    return known[path]


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    """Facts about a function with all that it calls, which hold for every call. ``inputs`` are the used inputs whose
    class or value may decide branches, by index, and what they are."""

    inputs: tuple[tuple[int, InputKind], ...]
    runs_unknown_code: bool
    """Whether the program calls code that may write to any attribute."""
    keeps_types: bool
    """See :func:`rekindle.passes.simplification.partial_evaluation.keeps_types`."""

    def known_inputs(self, arguments: Sequence[object]) -> dict[int, object]:
        """Return by index the inputs that are None, True or False, known not to be None, or Tensors of a Union."""
        found: dict[int, object] = {}
        for index, kind in self.inputs:
            argument = arguments[index]
            if kind == "optional":
                found[index] = None if argument is None else PRESENT
            elif kind == "bool" and isinstance(argument, bool):
                found[index] = argument
            elif kind == "union" and type(argument) in _TENSORS:
                found[index] = TENSOR
        return found


def _kind_of(type: Type) -> InputKind | None:
    """Return what an input of a type is if its class or value may decide branches; otherwise None."""
    if type == BOOL:
        return "bool"
    if isinstance(type, OptionalType):
        return "optional"
    return "union" if isinstance(type, UnionType) and TENSOR in type.members else None


@dataclass(slots=True)
class CallFactsFinder:
    """A search for assumptions about the calls of a function that a version may depend on. ``volatile`` are the
    attributes for which several values other than bools and tensors have been seen."""

    record: GraphFunction
    volatile: set[AttributeRead] = field(default_factory=set)
    stored_facts: Callable[[Callable[[], ProgramFacts]], ProgramFacts] | None = None
    """Returns the facts about the program that an earlier process found, or else those that its argument finds."""
    _facts: ProgramFacts | None = field(init=False, default=None)
    _written: list[AbstractSet[AttributeKey] | None] = field(init=False, default_factory=list)

    @property
    def written(self) -> AbstractSet[AttributeKey] | None:
        """The attributes that the program writes to; None if it calls code that may write to any."""
        if not self._written:
            self._written.append(_written_attributes(graphs_of(self.record)))
        return self._written[0]

    @written.setter
    def written(self, attributes: AbstractSet[AttributeKey] | None) -> None:
        self._written = [attributes]

    @property
    def facts(self) -> ProgramFacts:
        """The facts about the program that do not depend on calls."""
        if self._facts is None:
            known = self.stored_facts
            self._facts = self._find_facts() if known is None else known(self._find_facts)
        return self._facts

    @property
    def keeps_types(self) -> bool:
        """See :func:`rekindle.passes.simplification.partial_evaluation.keeps_types`."""
        return self.facts.keeps_types

    def _find_facts(self) -> ProgramFacts:
        inputs = [
            (index, kind)
            for index, value in enumerate(self.record.graph.inputs)
            if value.has_uses and (kind := _kind_of(value.type)) is not None
        ]
        return ProgramFacts(tuple(inputs), self.written is None, keeps_types(graphs_of(self.record)))

    def evaluation(self, arguments: Sequence[object]) -> PartialEvaluation:
        """Return the pass that evaluates the graph of the function for calls like one with ``arguments``."""
        facts = self.facts
        attributes = None if facts.runs_unknown_code else _LiveAttributes(arguments, self)
        return PartialEvaluation(facts.known_inputs(arguments), attributes=attributes, with_types=facts.keeps_types)

    def forget(self, reads: AbstractSet[AttributeRead], arguments: Sequence[object]) -> None:
        """Exclude from later assumptions those attributes in ``reads`` whose current value is neither a bool nor a
        tensor."""
        self.volatile |= {read for read in reads if not isinstance(_value_of(arguments, read), (bool, torch.Tensor))}


@dataclass(slots=True)
class _LiveAttributes:
    """The current attributes of the modules among ``arguments``."""

    arguments: Sequence[object]
    finder: CallFactsFinder

    def value_of(self, read: AttributeRead) -> object:
        """Return the current value of an attribute, of a tensor its type; ``UNKNOWN`` if the attribute does not exist
        or may not be assumed."""
        if read in self.finder.volatile:
            return UNKNOWN
        value = _value_of(self.arguments, read)
        if isinstance(value, torch.Tensor):
            return _type_of(value) if type(value) in _TENSORS else UNKNOWN
        return value if type(value) in _ASSUMED and value == value else UNKNOWN

    def is_written(self, key: AttributeKey) -> bool:
        """Return whether the program may write to the attribute."""
        written = self.finder.written
        return written is None or key in written


@dataclass(slots=True)
class AssumedAttributes:
    """Attributes with the values that were assumed earlier."""

    values: Mapping[AttributeRead, object]

    def value_of(self, read: AttributeRead) -> object:
        """Return the assumed value of an attribute; ``UNKNOWN`` if nothing is assumed."""
        return self.values.get(read, UNKNOWN)

    def is_written(self, key: AttributeKey) -> bool:
        """Return False: an attribute to which the program may write is not assumed."""
        return False


def _type_of(tensor: torch.Tensor) -> TensorType:
    """Return the tensor type with those properties of a tensor attribute that a version may assume: its dtype, device
    and rank."""
    return TensorType(tensor.dtype, tensor.device, (None,) * tensor.dim())


def _value_of(arguments: Sequence[object], read: AttributeRead) -> object:
    """Return the current value of an attribute of a module: an argument, or a part of one. Return ``UNKNOWN`` if the
    attribute does not exist, if the class of the module defines the name, or if Python cannot read it with a dot."""
    module: Any = arguments[read.module.input]
    for name in read.module.names:
        parts = module._modules if isinstance(module, torch.nn.Module) else {}
        module = parts.get(name)
    if not isinstance(module, torch.nn.Module) or hasattr(type(module), read.name) or not _is_plain(read.name):
        return UNKNOWN
    for table in _TABLES:
        if read.name in module.__dict__[table]:
            return module.__dict__[table][read.name]
    return module.__dict__.get(read.name, UNKNOWN)


def _is_plain(name: str) -> bool:
    """Return whether Python can read an attribute of this name with a dot."""
    return name.isascii() and name.isidentifier() and not keyword.iskeyword(name)


def _written_attributes(graphs: Iterable[Graph]) -> set[AttributeKey] | None:
    """Return the attributes that a program writes to; None if it runs code that may write to any attribute."""
    found: set[AttributeKey] = set()
    for graph in graphs:
        for node in nodes_within(graph):
            if node.kind == "prim::SetAttr":
                found.add(slot_of(node))
            elif _is_unknown_code(node):
                return None
    return found


def _is_unknown_code(node: Node) -> bool:
    """Return whether ``node`` runs code that is not part of the program, or that is determined only at run time."""
    if node.kind in CALLS:
        return called_function(node) is None
    return is_foreign(node.kind) and node.kind.partition("::")[0] not in _IN_CPP
