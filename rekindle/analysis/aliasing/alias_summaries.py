"""Alias summaries: the aliasing that an operator's schema declares, read once for each operator.

An access path is the index of an argument or a result, and the keys that lead to a part of it: the elements of argument
0 are ``(0, ("item",))``.
From ``aten::split(Tensor(a -> *) self, …) -> Tensor(a)[]`` it follows that the items of the result may be argument 0;
from ``aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)`` that the result is argument 0, that it is written to, and
that its items may be argument 1, since that is the only other thing of type ``t``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Final

from rekindle.analysis.mutability import Key, is_immutable, parts_of
from rekindle.ir.operators.registry import Operator
from rekindle.ir.operators.schema import WILDCARD, AliasInfo, Argument
from rekindle.ir.operators.traits import Trait
from rekindle.ir.types import OptionalType, Type, VarType, has_free_variables

AccessPath = tuple[int, tuple[Key, ...]]


@dataclass(slots=True)
class AliasSummary:
    """The memory effects of one operator.

    ``sources`` maps an access path of a result to what it may alias; a result without sources is new. ``stores`` are
    pairs of an access path of an argument that is written to, and what may be stored there. ``writes`` are the access
    paths of what is written to. With ``may_alias_inputs``, a result without sources may also be any argument, or
    something in one. ``from_wildcard`` are access paths of results that may alias the wildcard set; ``escapes`` are
    those of arguments that escape. ``reads_contents`` is False for operators that only copy references: they do not
    read the contents of a list.
    """

    sources: dict[AccessPath, list[AccessPath]] = field(default_factory=dict)
    stores: list[tuple[AccessPath, AccessPath]] = field(default_factory=list)
    writes: list[AccessPath] = field(default_factory=list)
    writes_if: list[tuple[int, int]] = field(default_factory=list)
    """Pairs of argument indices: the first is written to unless the second, a bool, is a constant False."""
    from_wildcard: list[AccessPath] = field(default_factory=list)
    escapes: list[AccessPath] = field(default_factory=list)
    merges_storages: bool = False
    """Whether all tensors among the arguments share their memory afterwards."""
    may_alias_inputs: bool = False
    reads_contents: bool = True
    is_plain: bool = False
    """Whether all that it does is to make new results."""


@dataclass(slots=True)
class _AnnotatedPath:
    """A path into a type of a schema, with its alias annotation."""

    place: AccessPath
    type: Type
    info: AliasInfo

    @property
    def sets(self) -> frozenset[str]:
        return self.info.before | self.info.after

    @property
    def is_write(self) -> bool:
        return self.info.is_write


_JOINING: Final = frozenset({"aten::set_", "aten::set_data"})
"""Kinds that make tensors share memory that did not share it before."""

_RETURN_FIRST: Final = frozenset({"aten::add_.t"})
"""Operators that return their first argument, although their schemas have no annotation."""

_NEW_LISTS: Final = frozenset({"aten::keys", "aten::values", "aten::items"})
"""Kinds whose results are new lists, although their schemas declare the wildcard set."""


@cache
def alias_summary_of(operator: Operator) -> AliasSummary:
    """Return the summary of ``operator``, from its schema and from the properties that the schema lacks."""
    schema = operator.schema
    arguments = [part for index, argument in enumerate(schema.arguments) for part in _parts(argument, index)]
    results = [part for index, result in enumerate(schema.returns) for part in _parts(result, index)]
    is_generic = any(has_free_variables(argument.type) for argument in schema.arguments)
    plan = AliasSummary(may_alias_inputs=operator.may_alias_inputs, merges_storages=operator.name in _JOINING)
    plan.reads_contents = not is_generic or Trait.INSPECTS_ELEMENTS in operator.traits
    plan.writes = [part.place for part in arguments if part.is_write]
    index_of = {argument.name: index for index, argument in enumerate(schema.arguments)}
    plan.writes_if = [(index_of[name], index_of[flag]) for name, flag in operator.hidden_writes if name in index_of]
    if schema.qualified_name in _RETURN_FIRST:
        plan.sources[0, ()] = [(0, ())]
    for result in results:
        if not any(_is_within(result.place, known) for known in plan.sources):
            _trace_result(plan, operator.name, is_generic, result, arguments)
    _trace_stores(plan, arguments, {name for result in results for name in result.sets})
    plan.is_plain = not plan.merges_storages and not plan.may_alias_inputs and plan.reads_contents
    plan.is_plain &= not (plan.sources or plan.stores or plan.writes or plan.writes_if)
    plan.is_plain &= not (plan.from_wildcard or plan.escapes)
    return plan


def _parts(argument: Argument, index: int) -> list[_AnnotatedPath]:
    """Return the paths to ``argument``, which has index ``index``, and to all its parts (see :func:`parts_of`)."""
    found: list[_AnnotatedPath] = []

    def visit(type: Type, alias: AliasInfo | None, way: tuple[Key, ...]) -> None:
        if isinstance(type, OptionalType):
            visit(type.element, alias, way)
            return
        info = alias or AliasInfo()
        found.append(_AnnotatedPath((index, way), type, info))
        parts = parts_of(type)
        for number, (key, part) in enumerate(parts):
            visit(part, info.contained[number] if len(info.contained) == len(parts) else None, (*way, key))

    visit(argument.type, argument.alias, ())
    return found


def _trace_result(
    plan: AliasSummary, kind: str, is_generic: bool, result: _AnnotatedPath, arguments: list[_AnnotatedPath]
) -> None:
    """Record the possible aliases of a part of a result."""
    way = result.place[1]
    if result.sets - {WILDCARD}:
        sources = [part.place for part in arguments if part.sets & result.sets - {WILDCARD}]
    elif isinstance(result.type, VarType):
        sources = [part.place for part in arguments if part.type == result.type]
    elif WILDCARD in result.sets and kind not in _NEW_LISTS:
        plan.from_wildcard.append(result.place)
        return
    elif is_generic and way and not is_immutable(result.type):
        # The keys of a dict that are Tensors have a type of their own in a schema that is generic in the values.
        sources = [part.place for part in arguments if part.type == result.type and part.place[1]]
    else:
        return
    if sources:
        plan.sources[result.place] = sources


def _trace_stores(plan: AliasSummary, arguments: list[_AnnotatedPath], result_sets: set[str]) -> None:
    """Record which arguments are stored in which containers, and which escape."""
    for part in arguments:
        if WILDCARD not in part.info.after and not isinstance(part.type, VarType):
            continue
        homes = [place for place in plan.writes if place[0] != part.place[0]]
        slots = [
            other.place
            for other in arguments
            for home in homes
            if other.type == part.type and _is_within(other.place, home)
        ]
        plan.stores += [(slot, part.place) for slot in slots]
        if not slots and WILDCARD in part.sets and not part.sets & result_sets - {WILDCARD}:
            plan.escapes.append(part.place)


def _is_within(place: AccessPath, home: AccessPath) -> bool:
    return place[0] == home[0] and len(place[1]) > len(home[1]) and place[1][: len(home[1])] == home[1]
