"""Calls that Python's functions accept and the schemas of their operators do not. They are tried if no overload fits:

- ``requires_grad=True`` of functions that create tensors;
- ints where floats are declared: ``x.uniform_(0, 1)``;
- ``()`` for a list of ints, and a list of tensors where some may be None;
- ``torch.nonzero(x, as_tuple=True)``;
- ``out=(values, indices)``, and ``out=None``;
- ``d.get(key, default)`` and ``d.pop(key, default)`` with a default of another type than the values;
- ``text.split(maxsplit=1)``, ``sorted(d)`` of a dict;
- a member of an ``IntEnum`` for an int, or of ``class Mode(str, Enum)`` for a str.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rekindle.errors import SchemaError, SourceRange
from rekindle.frontend.calls.builtin_calls import insert_builtin_call
from rekindle.frontend.calls.enum_members import plain_type, plain_value
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.registry import REGISTRY
from rekindle.ir.operators.schema import Argument
from rekindle.ir.operators.schema_matching import NamedValue, unpack_tuple
from rekindle.ir.types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    STRING,
    TENSOR,
    DictType,
    ListType,
    TupleType,
    Type,
    is_python_key,
    join_any,
    number_members,
    optional,
    unshaped,
    without_none,
)

_OTHERWISE: Final = {"aten::nonzero": ("as_tuple", "aten::nonzero_numpy")}
"""By operator: a keyword argument that selects another operator if it is True, and that operator."""

_RENAMED: Final = {
    "aten::device": {"type": "a"},
    "aten::split": {"sep": "separator", "maxsplit": "max"},
    "aten::rsplit": {"sep": "separator", "maxsplit": "max"},
}
"""By operator: its parameter names for the names of Python's arguments, where they differ."""

_FEATURES: Final = ListType(optional(TENSOR))


def call_as_python_does(
    range: SourceRange,
    graph: Graph,
    kind: str,
    args: Sequence[NamedValue],
    kwargs: Sequence[NamedValue],
    self_value: NamedValue | None,
) -> Value | None:
    """Emit a call that fits no overload of ``kind``, with arguments converted as Python's functions accept them; return
    the result. Return None if no conversion makes it fit; nodes of the conversions that were tried remain.

    Raises:
        SchemaError: the call is of a dict with keys that only Python can hash, and fits no operator for it.
    """
    is_python = graph.follows_python and not kwargs
    if kind in ("aten::get", "aten::pop") and is_python and self_value is not None and len(args) == 2:
        found = _or_default(range, graph, kind, self_value, *args)
        if found is not None:
            return found
    owner = self_value or (args[0] if args else None)
    if owner is not None and isinstance(owner.type, DictType) and is_python_key(owner.type.key):
        return insert_builtin_call(range, graph, f"python::{kind.partition('::')[2]}", args, kwargs, self_value)
    named = {item.name: item for item in kwargs}
    keyword, other = _OTHERWISE.get(kind, ("", ""))
    if keyword in named:
        chosen = _constant(named.pop(keyword))
        if not isinstance(chosen, bool):
            return None
        kind = other if chosen else kind
    renamed = _RENAMED.get(kind)
    if renamed is not None:
        items = [replace(item, name=renamed.get(name or "", name)) for name, item in named.items()]
        named = {item.name: item for item in items}
    out = named.pop("out", None)
    if out is not None and isinstance(out.type, TupleType):
        return _into(range, graph, kind, args, list(named.values()), self_value, out)
    if out is not None and out.type != NONE:
        named["out"] = out
    if kind == "aten::sorted" and len(args) == 1 and isinstance(args[0].type, DictType) and not args[0].type.is_set:
        args = [replace(args[0], value=graph.insert("aten::keys", [args[0].materialize(graph)], range=range))]
    wanted = named.pop("requires_grad", None)
    if wanted is not None and wanted.type != BOOL:
        return None
    rest = list(named.values())
    for own, positional, keywords in _fitted(graph, kind, args, rest, self_value):
        try:
            made = insert_builtin_call(range, graph, kind, positional, keywords, own)
        except SchemaError:
            continue
        if wanted is None or _constant(wanted) is False or made.type != TENSOR:
            return made
        return graph.insert("aten::requires_grad_", [made, wanted.materialize(graph)], range=range)
    return None


def takes_other_default(
    range: SourceRange, graph: Graph, kind: str, args: Sequence[NamedValue], self_value: NamedValue | None
) -> Value | None:
    """Emit ``d.get(key, default)``, or ``pop``, with a default of another number type than the values, to which the
    operator would convert it; return None for other calls."""
    if kind.partition("::")[2] not in ("get", "pop") or self_value is None or len(args) != 2:
        return None
    owner, default = self_value.type, args[1].type
    if not isinstance(owner, DictType) or number_members(default) is None or default.is_subtype_of(owner.value):
        return None
    return _or_default(range, graph, kind, self_value, *args)


def _or_default(
    range: SourceRange,
    graph: Graph,
    kind: str,
    owner: NamedValue,
    key: NamedValue,
    default: NamedValue,
) -> Value | None:
    """Emit a lookup in a dict that returns the default unchanged if the key is missing; return None if ``owner`` is not
    a dict, or the key does not have its key type."""
    if not isinstance(owner.type, DictType) or owner.type.is_set or not key.type.is_subtype_of(owner.type.key):
        return None
    library = "python" if is_python_key(owner.type.key) else "aten"
    taken = f"{library}::{'pop' if kind.endswith('::pop') else '__getitem__'}"
    values = [each.materialize(graph) for each in (owner, key, default)]
    is_there = graph.insert(f"{library}::__contains__", values[:2], range=range)
    node = graph.insert_node(graph.create("prim::If", [is_there], outputs=0, range=range))
    with graph.inserting_at_end(node.add_block()):
        node.blocks[0].add_output(graph.insert(taken, values[:2], range=range))
    node.add_block().add_output(values[2])
    return node.add_output(join_any(*(unshaped(block.outputs[0].type) for block in node.blocks)))


def _into(
    range: SourceRange,
    graph: Graph,
    kind: str,
    args: Sequence[NamedValue],
    kwargs: Sequence[NamedValue],
    self_value: NamedValue | None,
    out: NamedValue,
) -> Value | None:
    """Emit a call of an operator with ``out=`` as a tuple of tensors, by the overload with as many ``out`` arguments;
    return None if no overload accepts the arguments."""
    parts = unpack_tuple(graph, out.materialize(graph), range)
    for operator in REGISTRY.overloads(kind):
        names = [item.name for item in operator.schema.arguments if item.is_out]
        if len(names) != len(parts):
            continue
        written = [NamedValue(part, range=out.range, name=name) for name, part in zip(names, parts, strict=True)]
        try:
            return insert_builtin_call(range, graph, kind, args, [*kwargs, *written], self_value)
        except SchemaError:
            continue
    return None


_Given = tuple["NamedValue | None", list[NamedValue], list[NamedValue]]


def _fitted(
    graph: Graph,
    kind: str,
    args: Sequence[NamedValue],
    kwargs: Sequence[NamedValue],
    self_value: NamedValue | None,
) -> Iterator[_Given]:
    """Yield the ``self`` value, the positional and the keyword arguments of a call: first unchanged, then converted for
    each overload that conversions may fit."""
    yield self_value, list(args), list(kwargs)
    for operator in REGISTRY.overloads(kind):
        declared = list(operator.schema.arguments)
        if self_value is not None:
            declared = [item for item in declared if item.name != "self"]
        positional, keywords = fitted_to(graph, declared, args, kwargs)
        if positional != list(args) or keywords != list(kwargs):
            yield self_value, positional, keywords


def fitted_to(
    graph: Graph, declared: Sequence[Argument], args: Sequence[NamedValue], kwargs: Sequence[NamedValue]
) -> tuple[list[NamedValue], list[NamedValue]]:
    """Return the positional and the keyword arguments of a call, converted to the types of ``declared`` where Python's
    functions accept more types. Conversions are emitted."""
    places = [item for item in declared if not item.kwarg_only]
    by_name = {item.name: item for item in declared}
    positional = [_fit(graph, item, place) for item, place in zip(args, places, strict=False)]
    positional += args[len(places) :]
    return positional, [_fit(graph, item, by_name.get(item.name or "")) for item in kwargs]


def _fit(graph: Graph, given: NamedValue, declared: Argument | None) -> NamedValue:
    if declared is None:
        return given
    type = without_none(declared.type)
    value = given.value
    if type == FLOAT and given.type == INT:
        known = _constant(given)
        if isinstance(known, int):
            return replace(given, value=None, constant=float(known))
        return replace(given, value=graph.insert("aten::Float", [given.materialize(graph)], range=given.range))
    if plain_type(given.type) is not None and type in (FLOAT, INT, STRING, NUMBER, ListType(INT)):
        return _fit(graph, replace(given, value=plain_value(graph, given.materialize(graph), given.range)), declared)
    if type == ListType(INT) and isinstance(given.type, TupleType) and not given.type.elements:
        return replace(given, value=_list(graph, [], type, given.range))
    is_list = value is not None and value.node.kind in ("prim::ListConstruct", "prim::EmptyListLiteral")
    if type == _FEATURES and is_list and value is not None and value.type == ListType(TENSOR):
        return replace(given, value=_list(graph, list(value.node.inputs), type, given.range))
    return given


def _list(graph: Graph, items: Sequence[Value], type: Type, range: SourceRange) -> Value:
    return graph.insert_node(graph.create("prim::ListConstruct", items, types=[type], range=range)).output


def _constant(given: NamedValue) -> object:
    """Return the Python value of an argument that is a constant; None for other arguments."""
    return given.constant if given.value is None else given.value.to_python()
