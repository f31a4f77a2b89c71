"""Emit literals: numbers, strings, lists, tuples and dicts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import groupby
from operator import itemgetter

from rekindle.errors import SourceRange, TypeMismatchError, UnsupportedError
from rekindle.frontend.containers.number_containers import join_known, made_as
from rekindle.frontend.emitter import Emitter
from rekindle.frontend.expressions.primaries import call_builtin, emit_sugared_values_of, values_of
from rekindle.frontend.statements.loops import list_of
from rekindle.frontend.sugared_values.base import SugaredValue
from rekindle.frontend.sugared_values.keyword_arguments import table_of_functions
from rekindle.frontend.sugared_values.values import SimpleValue, SugaredTuple
from rekindle.ir.node import Value
from rekindle.ir.operators.schema_matching import convert_value
from rekindle.ir.types import (
    STRING,
    TENSOR,
    DictType,
    IntType,
    ListType,
    TupleType,
    Type,
    UnionType,
    lost_class,
    mismatch_note,
    unify_all,
    union_members,
    unshaped,
    without_none,
)
from rekindle.syntax.views import (
    Const,
    DictLiteral,
    Expansion,
    Expr,
    ListLiteral,
    Select,
    Starred,
    StringLiteral,
    TupleLiteral,
)


def emit_const(emitter: Emitter, expr: Expr, hint: Type | None) -> Value:
    return emitter.literal(Const(expr.tree).value, expr.range)


def emit_true(emitter: Emitter, expr: Expr, hint: Type | None) -> Value:
    return emitter.graph.insert_constant(True, range=expr.range)


def emit_false(emitter: Emitter, expr: Expr, hint: Type | None) -> Value:
    return emitter.graph.insert_constant(False, range=expr.range)


def emit_none(emitter: Emitter, expr: Expr, hint: Type | None) -> Value:
    return emitter.graph.insert_constant(None, range=expr.range)


def emit_string(emitter: Emitter, expr: Expr, hint: Type | None) -> Value:
    return emitter.graph.insert_constant(StringLiteral(expr.tree).text, range=expr.range)


def emit_list(emitter: Emitter, expr: Expr, targets: int, hint: Type | None) -> SugaredValue:
    items = ListLiteral(expr.tree).items
    if any(item.tree.kind == Starred.KIND for item in items):
        joined = joined_list(emitter, expr, items, hint)
        if joined is not None:
            return SimpleValue(joined)
    wanted = _member_of_kind(hint, ListType)
    element_hint = wanted.element if isinstance(wanted, ListType) else None
    found = emit_sugared_values_of(emitter, items, [element_hint] * len(items))
    if wanted is None and any(item.is_passed_sugared for _, item in found):
        return SugaredTuple([item for _, item in found])  # functions or modules, to loop over
    return SimpleValue(_list_of_items(emitter, expr, items, values_of(emitter, found), wanted))


def joined_list(emitter: Emitter, expr: Expr, items: Sequence[Expr], hint: Type | None) -> Value | None:
    """Emit ``[*xs, 0, *ys]`` with lists whose lengths are known only at run time, and return the list. If all
    lengths are known, return None: the items have been emitted, and their sugared values are in
    ``emitter.starred``."""
    wanted = _member_of_kind(hint, ListType)
    for item in items:  # each in its turn, as Python evaluates them
        if id(item.tree) not in emitter.starred:
            emit_item(emitter, item, wanted.element if isinstance(wanted, ListType) else None)
    open_ended = [is_open_ended(emitter, item) for item in items]
    if not any(open_ended):
        return None
    parts: list[SugaredValue] = []
    for is_open, group in groupby(zip(open_ended, items, strict=True), key=itemgetter(0)):
        if is_open:
            parts += [emitter.starred.pop(id(item.tree)) for _, item in group]
        else:
            parts.append(emit_list(emitter, ListLiteral.create(expr.range, [item for _, item in group]), 1, hint))
    lists = [list_of(emitter, expr.range, part, None) for part in parts]
    joined = reduce(join_known, (item.type for item in lists), wanted)
    lists = [made_as(item, joined, emitter.graph, expr.range) for item in lists]
    return reduce(lambda a, b: call_builtin(emitter, "aten::add", expr.range, a, b), lists)


def emit_item(emitter: Emitter, item: Expr, hint: Type | None) -> None:
    """Emit an item of a literal with starred items before the literal itself, and store its sugared value in
    ``emitter.starred``."""
    if item.tree.kind == Starred.KIND:
        emitter.starred[id(item.tree)] = emitter.emit_sugared(Starred(item.tree).value)
    else:
        emitter.starred[id(item.tree)] = emitter.emit_sugared(item, 1, hint)


def is_open_ended(emitter: Emitter, item: Expr) -> bool:
    """Return whether an item of a literal, such as ``*xs``, expands to a data-dependent number of elements. It must
    have been emitted by :func:`emit_item`."""
    found = emitter.starred.get(id(item.tree))
    if found is None or item.tree.kind != Starred.KIND:
        return False
    if isinstance(found, SimpleValue):
        return not isinstance(found.value.type, TupleType)
    return found.static_length is None


def _list_of_items(
    emitter: Emitter, expr: Expr, items: Sequence[Expr], values: list[Value], wanted: Type | None
) -> Value:
    element_hint = wanted.element if isinstance(wanted, ListType) else None
    if not values and wanted is None:
        return emitter.insert_node("prim::EmptyListLiteral", expr.range, [], [ListType(TENSOR)]).output
    element = element_hint
    if element is None:
        element = _joined_elements(values, expr.range)
    else:
        values = [convert_value(emitter.graph, value, element, expr.range) for value in values]
        _check_elements(values, items, element, expr.range)
    assert element is not None
    return emitter.insert_node("prim::ListConstruct", expr.range, values, [ListType(element)]).output


def emit_tuple(emitter: Emitter, expr: Expr, hint: Type | None) -> SugaredValue:
    items = TupleLiteral(expr.tree).items
    if any(item.tree.kind == Starred.KIND for item in items):
        joined = joined_list(emitter, expr, items, None)
        if joined is not None:
            return SimpleValue(joined)  # (*sizes, 1) is of the type of sizes
    wanted = _member_of_kind(hint, TupleType)
    hints: list[Type | None] = [None] * len(items)
    if isinstance(wanted, TupleType) and len(wanted.elements) == len(items):
        hints = list(wanted.elements)
    found = emit_sugared_values_of(emitter, items, hints)
    if wanted is None and any(item.is_passed_sugared for _, item in found):
        return SugaredTuple([item for _, item in found])
    values = values_of(emitter, found)
    type = TupleType(tuple(value.type for value in values))
    return SimpleValue(emitter.insert_node("prim::TupleConstruct", expr.range, values, [type]).output)


def emit_dict(emitter: Emitter, expr: Expr, targets: int, hint: Type | None) -> SugaredValue:
    """Emit a dict literal: a table of functions, or a value. The table emits the first value to see which of the two it
    is; it is emitted once."""
    literal = DictLiteral(expr.tree)
    emitted: dict[int, SugaredValue] = {}

    def emit(item: Expr) -> SugaredValue:
        found = emitted[id(item.tree)] = emitter.emit_sugared(item)
        return found

    table = table_of_functions(literal, emit)
    if table is not None:
        return table
    first = literal.values[0] if emitted else None
    if first is None or first.tree.kind != Select.KIND or id(first.tree) in emitter.shared:
        return SimpleValue(_dict_of_values(emitter, expr, hint))
    value = emitted[id(first.tree)].as_value(first.range, emitter.graph)
    emitter.shared[id(first.tree)] = emitter.as_scalar(value)
    try:
        return SimpleValue(_dict_of_values(emitter, expr, hint))
    finally:
        del emitter.shared[id(first.tree)]


def _dict_of_values(emitter: Emitter, expr: Expr, hint: Type | None) -> Value:
    literal = DictLiteral(expr.tree)
    wanted = _member_of_kind(hint, DictType)
    key_hint, value_hint = (wanted.key, wanted.value) if isinstance(wanted, DictType) else (None, None)
    keys: list[Value] = []
    values: list[Value] = []
    for index, key in enumerate(literal.keys):
        if key.tree.kind == Expansion.KIND:
            return _emit_merged_dict(emitter, expr, index, hint)
    for key, value in zip(literal.keys, literal.values, strict=True):
        keys.append(emitter.emit_expression(key, key_hint))
        values.append(emitter.emit_expression(value, value_hint))
    if isinstance(wanted, DictType):
        type: Type = wanted
        values = [convert_value(emitter.graph, value, wanted.value, expr.range) for value in values]
        _check_elements(keys, literal.keys, wanted.key, expr.range)
        _check_elements(values, literal.values, wanted.value, expr.range)
    elif not keys:
        type = DictType(STRING, TENSOR)
    else:
        key_type = unify_all(key.type for key in keys)
        value_type = _joined_elements(values, expr.range)
        if key_type is None:
            found = ", ".join(key.type.annotation for key in keys)
            raise TypeMismatchError(f"the keys of a dict must be of one type, got {found}", expr.range)
        assert value_type is not None
        type = DictType(key_type, value_type)
    inputs = [item for pair in zip(keys, values, strict=True) for item in pair]
    return emitter.insert_node("prim::DictConstruct", expr.range, inputs, [type]).output


def _emit_merged_dict(emitter: Emitter, expr: Expr, first: int, hint: Type | None) -> Value:
    """Emit ``{k: v, **d, …}`` as a dict of the items before the first ``**``, to which the others are added in their
    order. ``first`` is the index of that ``**``."""
    literal = DictLiteral(expr.tree)
    keys, values = literal.keys, literal.values
    if first == 0:
        found = emitter.emit_sugared(values[0])
        made = call_builtin(emitter, "aten::dict", expr.range, found.as_value(values[0].range, emitter.graph))
        made = made_as(made, _member_of_kind(hint, DictType), emitter.graph, expr.range)
        first = 1
    else:
        start = DictLiteral.create(expr.range, keys[:first], values[:first])
        made = _dict_of_values(emitter, start, hint)
    for key, value in zip(keys[first:], values[first:], strict=True):
        if key.tree.kind == Expansion.KIND:
            added = emitter.emit_expression(value)
            made = made_as(made, join_known(made.type, added.type), emitter.graph, expr.range)
            call_builtin(
                emitter, "aten::update", value.range, made, made_as(added, made.type, emitter.graph, value.range)
            )
        else:
            item = emitter.emit_expression(key), emitter.emit_expression(value)
            joined = join_known(made.type, DictType(item[0].type, unshaped(item[1].type)))
            made = made_as(made, joined, emitter.graph, expr.range)
            call_builtin(emitter, "aten::_set_item", value.range, made, *item)
    return made


def _check_elements(values: Sequence[Value], items: Sequence[Expr], wanted: Type, range: SourceRange) -> None:
    for index, value in enumerate(values):
        place = items[index].range if len(items) == len(values) else range
        if not value.type.is_subtype_of(wanted):
            note = mismatch_note(value.type, wanted)
            raise TypeMismatchError(f"expected {wanted.annotation} here, got {value.type.annotation}{note}", place)
        lost = lost_class(value.type, wanted)
        if lost is not None:
            raise TypeMismatchError(f"expected {wanted.annotation} here, and {lost}", place)


def _joined_elements(values: Sequence[Value], range: SourceRange) -> Type | None:
    """Return the common type of ``values``, the elements of a list or dict, a Union if need be; None if there are none.

    Raises:
        UnsupportedError: some are dtypes, layouts or memory formats, and others have another of these types.
    """
    types = [unshaped(value.type) for value in values]
    kinds = sorted(
        {type for type in types if isinstance(type, IntType)}, key=lambda type: type.python_name, reverse=True
    )
    if len(kinds) > 1:
        name = kinds[0].python_name.removeprefix("torch.").replace("_", " ")
        raise UnsupportedError(
            f"a container of {name}s and {kinds[1].annotation.removeprefix('torch.').replace('_', ' ')}s would be one "
            f"of ints to Python: a {name} is an int in a program",
            range,
            hint="put them into a tuple, or into containers of their own",
        )
    return unify_all(types, default_to_union=True)


def _member_of_kind(hint: Type | None, kind: type[Type]) -> Type | None:
    """Return the member of an expected type that a literal of this kind can have: for ``Optional[List[int]]`` and a
    list, ``List[int]``; None if there is none, or several."""
    if hint is None:
        return None
    hint = without_none(hint)
    if isinstance(hint, kind):
        return hint
    if isinstance(hint, UnionType):
        found = [member for member in union_members(hint) if isinstance(member, kind)]
        return found[0] if len(found) == 1 else None
    return None
