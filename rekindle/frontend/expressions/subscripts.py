"""Emit subscripts, read and written: ``x[i]``, ``x[1:n, None, mask]``, ``xs[0] = y``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import torch

from rekindle.errors import Cause, SourceRange, TypeMismatchError, UnsupportedError
from rekindle.frontend.calls.enum_members import plain_value
from rekindle.frontend.calls.insertion import constant_int
from rekindle.frontend.emitter import Emitter
from rekindle.frontend.expressions.conditions import constant_bool
from rekindle.frontend.expressions.primaries import from_library
from rekindle.frontend.expressions.tensor_indexing import IndexedTensor, read_indexed, write_indexed
from rekindle.frontend.inference.usage_inference import infer_item, is_empty_literal, learn_numbers
from rekindle.frontend.python.library import library_function
from rekindle.frontend.statements.error_recovery import names_in
from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.frontend.sugared_values.iterables import IterableValue, RangeValue
from rekindle.frontend.sugared_values.slices import PARTS, SliceValue
from rekindle.frontend.sugared_values.special_forms import MagicMethod
from rekindle.frontend.sugared_values.values import BuiltinFunction, SimpleValue, SugaredTuple
from rekindle.ir.graph import Value
from rekindle.ir.operators.schema_matching import unpack_tuple
from rekindle.ir.scalar_types import DTYPE_NUMBERS
from rekindle.ir.types import (
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    TENSOR,
    ClassType,
    DictType,
    ListType,
    NoneType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    is_open_number,
    number_beside_tensor,
    optional,
    unify_all,
    without_none,
)
from rekindle.syntax.tree import Tree
from rekindle.syntax.views import Apply, Const, Expr, Ident, Select, SliceExpr, Starred, Subscript, TupleLiteral, Var

_SCALARS = (INT, FLOAT, COMPLEX, BOOL, NUMBER)


@dataclass(slots=True)
class _Index:
    """One index of a tensor's subscript and the dimension that it applies to; a slice has no value."""

    expr: Expr
    dim: int
    value: Value | None


def emit_subscript(emitter: Emitter, expr: Expr, targets: int, hint: Type | None) -> SugaredValue:
    subscript = Subscript(expr.tree)
    base = emitter.emit_sugared(subscript.value)
    value = base.value if isinstance(base, SimpleValue) else None
    indices = indices_of(emitter, subscript, value)
    if _may_be_mixed(emitter, indices):
        with _evaluated(emitter, indices, is_complete=True) as trees:

            def item() -> Value:
                return _item_of(emitter, expr, subscript, base, indices, hint).as_value(expr.range, emitter.graph)

            return SimpleValue(_with_each_index(emitter, trees, expr.range, item))
    if value is not None and value.type.is_optional:
        with _evaluated(emitter, indices):
            value = emitter.present(value, expr.range, "'NoneType' object is not subscriptable")
            return _item_of(emitter, expr, subscript, SimpleValue(value), indices, hint)
    return _item_of(emitter, expr, subscript, base, indices, hint)


def _may_be_mixed(emitter: Emitter, indices: Sequence[Expr]) -> bool:
    """Return whether the indices contain a variable that is a Tensor or a number, depending on the run. False
    in a program from an archive."""
    frame = emitter.environment.frame
    if not emitter.graph.follows_python:
        return False
    types = [frame.find_type(frame.variable(name)) for index in indices for name in names_in(index)]
    return any(type is not None and number_beside_tensor(type) is not None for type in types)


def for_each_index(emitter: Emitter, target: Subscript, emit: Callable[[], None]) -> None:
    """Emit a write to a subscript. If an index is a Tensor or a number, ``emit`` is called once for each type, in an
    ``if``."""
    if not _may_be_mixed(emitter, target.indices):
        emit()
        return

    def emit_none() -> Value:
        emit()
        return emitter.graph.insert_constant(None, range=target.range)

    with _evaluated(emitter, target.indices, is_complete=True) as trees:
        _with_each_index(emitter, trees, target.range, emit_none)


def _with_each_index(emitter: Emitter, trees: Sequence[Tree], range: SourceRange, emit: Callable[[], Value]) -> Value:
    """Emit an operation on indices, and return its result. For each index in ``trees`` that is a Tensor or a number,
    there is an ``if`` on its type, with ``emit`` called for each."""
    for tree in trees:
        value = emitter.shared[id(tree)]
        if value is not None and number_beside_tensor(value.type) is not None:

            def emit_with(part: Value, tree: Tree = tree, whole: Value = value) -> Value:
                emitter.shared[id(tree)] = part
                try:
                    return _with_each_index(emitter, trees, range, emit)
                finally:
                    emitter.shared[id(tree)] = whole

            return emitter.split(value, range, emit_with)
    return emit()


@contextmanager
def _evaluated(emitter: Emitter, indices: Sequence[Expr], *, is_complete: bool = False) -> Iterator[list[Tree]]:
    """Emit the indices before the ``with`` block, and yield their trees; emitting them within the block returns the
    same values. Variables and literals are left out; variables are included if ``is_complete``."""
    left_out = _EFFECTLESS - {Var.KIND} if is_complete else _EFFECTLESS
    trees = [part.tree for part in _parts(indices) if part.tree.kind not in left_out]
    trees = [tree for tree in trees if id(tree) not in emitter.shared]
    try:
        for tree in trees:
            emitter.shared[id(tree)] = None
            emitter.emit_expression(Expr(tree))
        yield trees
    finally:
        for tree in trees:
            emitter.shared.pop(id(tree), None)


def _parts(indices: Sequence[Expr]) -> list[Expr]:
    """Return the expressions in indices: the bounds of slices, and other indices themselves."""
    parts: list[Expr | None] = []
    for index in _flattened(indices):
        if index.tree.kind == SliceExpr.KIND:
            slice = SliceExpr(index.tree)
            parts += [slice.start, slice.stop, slice.step]
        else:
            parts.append(index)
    return [part for part in parts if part is not None]


def _flattened(indices: Sequence[Expr]) -> Sequence[Expr]:
    """Return the indices of a tensor, with the literal of a tuple of one item, as in ``x[i,]``, replaced with it."""
    return TupleLiteral(indices[0].tree).items if _is_tuple(indices) else indices


def _is_tuple(indices: Sequence[Expr]) -> bool:
    """Return whether the indices are the literal of a tuple of one item, as in ``x[i,]``."""
    return len(indices) == 1 and indices[0].tree.kind == TupleLiteral.KIND and bool(TupleLiteral(indices[0].tree).items)


def _item_of(
    emitter: Emitter, expr: Expr, subscript: Subscript, base: SugaredValue, indices: list[Expr], hint: Type | None
) -> SugaredValue:
    value = base.value if isinstance(base, SimpleValue) else None
    checks = emitter.graph.none_checks
    if value is not None and checks is not None:
        container = checks.container_in(value, expr.range, "'{}' object is not subscriptable")
        if container is not None:
            value, base = container, SimpleValue(container)
    if value is not None and isinstance(value.type, TensorType):
        return SimpleValue(_index_tensor(emitter, expr.range, value, indices))
    if any(index.tree.kind == Starred.KIND for index in subscript.indices):
        raise TypeMismatchError("a star within a subscript makes a tuple, which indexes tensors alone", expr.range)
    is_key = value is not None and isinstance(value.type, (DictType, ClassType))
    if len(indices) != 1 or (_is_tuple(indices) and not is_key):
        if value is None:
            value = base.as_value(subscript.value.range, emitter.graph)
        if isinstance(value.type, ClassType):
            return SimpleValue(value).item(expr.range, emitter.graph, _tuple_of(emitter, indices, expr.range))
        raise TypeMismatchError(
            f"a value of type {value.type.annotation} takes one index, got {_count(indices)}", expr.range
        )
    if indices[0].tree.kind == SliceExpr.KIND:
        return _slice(emitter, expr.range, base, subscript.value.range, SliceExpr(indices[0].tree))
    found = _emit_index(emitter, indices[0])
    if isinstance(found, SliceExpr):
        return _slice(emitter, expr.range, base, subscript.value.range, found)
    index = as_position(emitter, found, None if value is None else value.type)
    if value is not None and isinstance(value.type, DictType):
        infer_item(emitter, subscript.value, index)
    if value is not None and isinstance(value.type, TupleType):
        return SimpleValue(_index_tuple(emitter, expr.range, value, index))
    if isinstance(base, RangeValue):
        bounds = (base.start, base.stop, base.step)
        return SimpleValue(from_library(emitter, "range_item", expr.range, index, *bounds))
    if isinstance(base, IterableValue):
        raise TypeMismatchError(f"{base.description} cannot be indexed", expr.range, hint="make a list of it")
    return base.item(expr.range, emitter.graph, index, hint)


def _count(indices: Sequence[Expr]) -> str:
    return "a tuple" if _is_tuple(indices) else str(len(indices))


def as_position(emitter: Emitter, index: Value, base: Type | None) -> Value:
    """Return the index of a container of type ``base``, with a bool converted to an int, as Python does. A bool stays
    if it is the key of a dict whose keys are not ints, or the index of an object."""
    if index.type != BOOL or (isinstance(base, DictType) and base.key != INT) or isinstance(base, ClassType):
        return index
    known = constant_bool(index)
    if known is not None:
        return emitter.literal(int(known), index.node.range)
    return emitter.insert("aten::Int", index.node.range, index)


def indices_of(emitter: Emitter, subscript: Subscript, base: Value | None = None) -> list[Expr]:
    """Return the indices of a subscript, with ``slice(start, stop)``, which torch.fx generates, rewritten as
    ``start:stop``. For ``base`` a dict or an object they are one key, possibly a tuple.

    Raises:
        UnsupportedError: ``t`` of an index ``*t`` is neither a name nor an attribute.
    """
    indices = subscript.indices
    if base is not None and isinstance(without_none(base.type), (DictType, ClassType)) and len(indices) > 1:
        return [TupleLiteral.create(subscript.range, indices)]
    if any(index.tree.kind == Starred.KIND for index in indices):
        indices = [part for index in indices for part in _unstarred(emitter, index)]
    if _is_tuple(indices):
        items = [_plain_slice(emitter, item) for item in _flattened(indices)]
        return [TupleLiteral.create(indices[0].range, items)]
    return [_plain_slice(emitter, index) for index in indices]


def _unstarred(emitter: Emitter, index: Expr) -> list[Expr]:
    """Return the indices to which ``*t`` within a subscript expands: the elements of the tuple. Return another index as
    it is.

    Raises:
        UnsupportedError: the tuple is neither a name nor an attribute.
    """
    if index.tree.kind != Starred.KIND:
        return [index]
    elements = Starred(index.tree).value
    if elements.tree.kind not in (Var.KIND, Select.KIND):
        raise UnsupportedError(
            "what is starred within a subscript must be a name here", index.range, hint="give it a name before"
        )
    count = len(emitter.emit_sugared(elements).as_tuple(index.range, emitter.graph))
    numbers = [Const.create(index.range, str(position)) for position in _positions(count)]
    return [Subscript.create(index.range, elements, [number]) for number in numbers]


def _plain_slice(emitter: Emitter, index: Expr) -> Expr:
    if index.tree.kind != Apply.KIND:
        return index
    call = Apply(index.tree)
    if call.callee.tree.kind != Var.KIND or call.attributes or not 1 <= len(call.inputs) <= 3:
        return index
    name = Var(call.callee.tree).name
    if name.name != "slice" or not emitter.environment.is_builtin(name.name, name.range):
        return index
    given = [None if part.tree.kind == "none" else part for part in call.inputs]
    start, stop, step = [None, *given, None] if len(given) == 1 else [*given, None][:3]
    return SliceExpr.create(index.range, start, stop, step)


def _emit_index(emitter: Emitter, index: Expr) -> Value | SliceExpr:
    """Emit an index, and return its value. For the name of a slice object ``s``, return ``s.start : s.stop :
    s.step``."""
    if index.tree.kind not in (Var.KIND, Select.KIND) or id(index.tree) in emitter.shared:
        return emitter.emit_expression(index)
    found = emitter.emit_sugared(index)
    if not isinstance(found, SliceValue):
        return emitter.as_scalar(found.as_value(index.range, emitter.graph))
    parts = [
        Select.create(index.range, index, Ident.create(index.range, part)) if part in found.bounds else None
        for part in PARTS
    ]
    return SliceExpr.create(index.range, *parts)


def _tuple_of(emitter: Emitter, indices: Sequence[Expr], range: SourceRange) -> Value:
    values = [emitter.emit_expression(index) for index in indices]
    type = TupleType(tuple(value.type for value in values))
    return emitter.insert_node("prim::TupleConstruct", range, values, [type]).output


# -------------------------------------------------------------------------------- tuples and lists


def _index_tuple(emitter: Emitter, range: SourceRange, value: Value, index: Value) -> Value:
    type = value.type
    assert isinstance(type, TupleType)
    if isinstance(index.type, TensorType):
        index = emitter.insert("aten::IntImplicit", range, index)
    if index.type != INT:
        raise TypeMismatchError(f"the index of a tuple must be an int, got {index.type.annotation}", range)
    position = constant_int(index)
    element: Type | None
    if position is None:
        element = unify_all(type.elements)
        if element is None:
            raise TypeMismatchError(
                f"the index must be a constant: the elements of {type.annotation} are of different types",
                range,
                cause=Cause.DYNAMIC_BEHAVIOUR,
            )
    elif -len(type.elements) <= position < len(type.elements):
        element = type.elements[position]
    else:
        raise TypeMismatchError(f"index {position} is out of range for {type.annotation}", range)
    return emitter.insert_node("prim::TupleIndex", range, [value, index], [element]).output


def _slice(
    emitter: Emitter, range: SourceRange, base: SugaredValue, base_range: SourceRange, slice: SliceExpr
) -> SugaredValue:
    static = base.static_length
    if static is not None and not isinstance(base, SimpleValue):
        parts = base.as_tuple(base_range, emitter.graph)[_constant_slice(emitter, slice)]
        return base.sliced(parts) or SugaredTuple(parts)
    value = base.as_value(base_range, emitter.graph)
    if isinstance(value.type, TupleType):
        positions = _positions(len(value.type.elements))[_constant_slice(emitter, slice)]
        items = [_index_tuple(emitter, range, value, emitter.literal(position, range)) for position in positions]
        type = TupleType(tuple(item.type for item in items))
        return SimpleValue(emitter.insert_node("prim::TupleConstruct", range, items, [type]).output)
    taken = emitter.insert("aten::slice", range, value, *_bounds(emitter, slice))
    if isinstance(value.type, ListType) and value.type.is_tuple:
        taken.set_type(value.type)
    return SimpleValue(taken)


def _bounds(emitter: Emitter, slice: SliceExpr) -> list[object]:
    """Emit start, stop and step of a slice, and return them as arguments for operators: None for a missing bound, 1 for
    a missing step."""
    bounds: list[object] = [
        None if part is None else emitter.emit_expression(part) for part in (slice.start, slice.stop)
    ]
    bounds.append(emitter.literal(1, slice.range) if slice.step is None else emitter.emit_expression(slice.step))
    return bounds


def _bounds_of_tensor(emitter: Emitter, slice: SliceExpr) -> list[object]:
    """Emit start, stop and step of a slice of a Tensor. A step that is not known to be positive is checked, because
    Python raises a ValueError, and the operator a RuntimeError."""
    start, stop, step = _bounds(emitter, slice)
    if isinstance(step, Value) and step.type == INT and emitter.graph.follows_python:
        number = constant_int(step)
        if number is None or number <= 0:
            step = from_library(emitter, "positive_step", slice.range, step)
    return [start, stop, step]


def _constant_slice(emitter: Emitter, expr: SliceExpr) -> slice:
    parts: list[int | None] = []
    for part in (expr.start, expr.stop, expr.step):
        number = None if part is None else constant_int(emitter.emit_expression(part))
        if part is not None and number is None:
            raise UnsupportedError(
                "the bounds of this slice must be constants: the elements have different types",
                part.range,
                cause=Cause.DYNAMIC_BEHAVIOUR,
            )
        parts.append(number)
    if parts[-1] == 0:
        raise TypeMismatchError("slice step cannot be zero", expr.range)
    return slice(*parts)


# ----------------------------------------------------------------------------------------- tensors


def _index_tensor(emitter: Emitter, range: SourceRange, value: Value, indices: Sequence[Expr]) -> Value:
    found = slice_and_select(emitter, range, value, indices)
    result = read_indexed(emitter, found, range)
    if result is value and emitter.graph.follows_python:
        return emitter.insert("aten::alias", range, value)  # x[...] is a view of x, not x itself
    return result


def slice_and_select(emitter: Emitter, range: SourceRange, value: Value, indices: Sequence[Expr]) -> IndexedTensor:
    """Emit the indices as :func:`_slice_and_select` does. If several contain calls, all are evaluated before, from left
    to right, since the calls may have effects."""
    if sum(_contains_call(part) for part in _parts(indices)) < 2:
        return _slice_and_select(emitter, range, value, indices)
    with _evaluated(emitter, indices):
        return _slice_and_select(emitter, range, value, indices)


def _contains_call(expr: Expr) -> bool:
    return any(tree.kind == Apply.KIND for tree in expr.tree.walk())


def _slice_and_select(emitter: Emitter, range: SourceRange, value: Value, indices: Sequence[Expr]) -> IndexedTensor:
    """Emit the indices that create views: ints, slices and None. Return the view, and the Tensors that index it.

    Raises:
        UnsupportedError: there are several ``...``, or a bool after ``...``, or a Tensor after it in a program from an
            archive.
        TypeMismatchError: an index has a type that cannot index a tensor.
    """
    given = _dimensions(emitter, indices)
    found = IndexedTensor(value, is_alone=len(indices) == len(given) == 1 and not _is_tuple(indices))
    for index in given:
        dim = emitter.graph.insert_constant(index.dim, range=range) if _needs_dim(index) else None
        item: Value | None = None
        if index.value is None:
            found.view = emitter.insert(
                "aten::slice", range, found.view, dim, *_bounds_of_tensor(emitter, SliceExpr(index.expr.tree))
            )
        elif isinstance(index.value.type, NoneType):
            found.view = emitter.insert("aten::unsqueeze", range, found.view, dim)
        elif index.value.type == INT:
            found.view = emitter.insert("aten::select", range, found.view, dim, index.value)
            continue
        elif isinstance(index.value.type, ListType):
            found.view = from_library(emitter, "item_at_each", range, found.view, index.value)
            continue
        elif index.value.type == BOOL:
            found.view = emitter.insert("aten::unsqueeze", range, found.view, dim)
            item = _chosen_row(emitter, index.value, found.view, range)
        else:
            item = emitter.present(index.value, index.expr.range, "an index that may be None is None")
        found.add(index.dim, item)
    return found


def _chosen_row(emitter: Emitter, keep: Value, value: Value, range: SourceRange) -> Value:
    """Emit and return the index for a bool ``keep`` in ``x[keep]``: it selects all of a new dimension of size 1, or
    nothing of it."""
    count = emitter.insert_node(
        "prim::ListConstruct", range, [as_position(emitter, keep, None)], [ListType(INT)]
    ).output
    long = emitter.graph.insert_constant(DTYPE_NUMBERS[torch.int64], range=range)
    device = emitter.insert("prim::device", range, value)
    return emitter.insert("aten::zeros", range, count, dtype=long, device=device)


def _dimensions(emitter: Emitter, indices: Sequence[Expr]) -> list[_Index]:
    is_tuple = _is_tuple(indices)
    indices = _flattened(indices)
    dots = [i for i, index in enumerate(indices) if index.tree.kind == "dots"]
    if len(dots) > 1:
        raise UnsupportedError("a subscript can have one '...' only", indices[dots[1]].range)
    middle = dots[0] if dots else len(indices)
    found: list[_Index] = []
    dim = 0
    for expr in indices[:middle]:
        given = expr if expr.tree.kind == SliceExpr.KIND else _emit_index(emitter, expr)
        is_alone = len(indices) == 1 and not is_tuple and emitter.graph.follows_python
        for part in _elements(emitter, given, expr.range) if is_alone else [given]:
            index = _index_of(emitter, expr, dim, part, is_alone=is_alone)
            dim += 0 if index.value is not None and index.value.type == INT else 1
            found.append(index)
    behind: list[_Index] = []
    dim = -1
    for expr in reversed(indices[middle + 1 :]):
        given = expr if expr.tree.kind == SliceExpr.KIND else _emit_index(emitter, expr)
        index = _index_of(emitter, expr, dim, given)
        is_tensor = index.value is not None and isinstance(index.value.type, (TensorType, OptionalType))
        if (is_tensor and not emitter.graph.follows_python) or (index.value is not None and index.value.type == BOOL):
            what = "a tensor" if is_tensor else "a bool"
            raise UnsupportedError(f"{what} after '...' in a subscript is not supported", expr.range, hint=_DOTS_HINT)
        dim -= 0 if index.value is not None and isinstance(index.value.type, NoneType) else 1
        behind.append(index)
    return found + list(reversed(behind))


def _elements(emitter: Emitter, index: Value | Expr, range: SourceRange) -> Sequence[Value | Expr]:
    """Return the indices that the only index in a subscript stands for: the elements of a tuple."""
    is_tuple = isinstance(index, Value) and isinstance(index.type, TupleType)
    return unpack_tuple(emitter.graph, index, range) if isinstance(index, Value) and is_tuple else [index]


def _index_of(emitter: Emitter, expr: Expr, dim: int, value: Value | Expr, *, is_alone: bool = False) -> _Index:
    """Return an index with its value, converted to one of the types that index tensors. A tuple of variable length that
    ``is_alone`` in the subscript has an index for each dimension, and is not converted.

    Raises:
        UnsupportedError: the elements of such a tuple are not ints.
        TypeMismatchError: the index has a type that cannot index a tensor.
    """
    if not isinstance(value, Value):
        return _Index(value, dim, None)
    value = plain_value(emitter.graph, value, expr.range)
    if isinstance(value.type, TupleType) and set(value.type.elements) in ({INT}, {BOOL}):
        items = unpack_tuple(emitter.graph, value, expr.range)
        value = emitter.insert_node("prim::ListConstruct", expr.range, items, [ListType(items[0].type)]).output
    if is_alone and isinstance(value.type, ListType) and value.type.is_tuple and emitter.graph.follows_python:
        if value.type.element != INT:
            raise UnsupportedError(
                f"a tensor cannot be indexed with a value of type {value.type.annotation} here",
                expr.range,
                hint="write the indices one by one",
            )
        return _Index(expr, dim, value)
    if isinstance(value.type, ListType):
        # Eager indexes with a list as with the tensor of its elements; bools are a mask.
        dtype = torch.bool if value.type.element == BOOL else torch.int64
        number = emitter.graph.insert_constant(DTYPE_NUMBERS[dtype], range=expr.range)
        value = emitter.insert("aten::tensor", expr.range, value, dtype=number)
    if is_open_number(value.type) and emitter.graph.follows_python:
        given = [SimpleValue(emitter.as_number(value, expr.range))]
        index = library_function("number_as_index").call_with(expr.range, emitter.graph, given, {})
        value = index.as_value(expr.range, emitter.graph)
    allowed = value.type in (INT, BOOL, NONE) or value.type.is_subtype_of(optional(TENSOR))
    if not allowed:
        raise TypeMismatchError(
            f"a tensor cannot be indexed with a value of type {value.type.annotation}; "
            "ints, bools, slices, None, lists and tensors can",
            expr.range,
        )
    return _Index(expr, dim, value)


# ----------------------------------------------------------------------------------------- writing


def assign_subscript(emitter: Emitter, range: SourceRange, target: Subscript, value: Value) -> None:
    """Emit ``target.value[target.indices] = value``.

    Raises:
        TypeMismatchError: the items of ``target.value`` cannot be assigned.
        UnsupportedError: it is a slice of something other than a list or tensor.
    """
    base = emitter.emit_expression(target.value)
    base = emitter.present(base, target.range, "'NoneType' object does not support item assignment")
    for_each_index(emitter, target, lambda: _assign_to(emitter, range, target, base, value))


def _assign_to(emitter: Emitter, range: SourceRange, target: Subscript, base: Value, value: Value) -> None:
    if isinstance(base.type, TensorType):
        _assign_tensor_or_number(emitter, range, target, base, value)
        return
    check_items_can_change(base, target.range)
    indices = indices_of(emitter, target, base)
    if len(indices) == 1 and indices[0].tree.kind == SliceExpr.KIND and isinstance(base.type, ListType):
        assign_slice(emitter, range, Subscript.create(target.range, target.value, indices), base, value)
        return
    if len(indices) != 1 or indices[0].tree.kind == SliceExpr.KIND:
        raise UnsupportedError(
            f"a slice of a {base.type.annotation} cannot be assigned",
            target.range,
            hint="assign the elements in a loop",
        )
    found = _emit_index(emitter, indices[0])
    if isinstance(found, SliceExpr):
        sliced = Subscript.create(target.range, target.value, [Expr(found.tree)])
        _assign_to(emitter, range, sliced, base, value)
        return
    index = as_position(emitter, found, base.type)
    if isinstance(base.type, DictType):
        infer_item(emitter, target.value, index, value)
    element = base.type.contained[-1] if isinstance(base.type, (DictType, ListType)) else None
    if isinstance(element, DictType) and is_empty_literal(value) and not value.has_uses:
        value.set_type(element)
    learn_numbers(emitter, target.value, value.type)
    arguments = [
        emitter.argument(base, target.value.range),
        emitter.argument(index, indices[0].range),
        emitter.argument(value, range),
    ]
    MagicMethod("__setitem__", BuiltinFunction("aten::_set_item")).call(
        CallSite(range, emitter.graph, arguments, targets=0)
    )


def _assign_tensor_or_number(
    emitter: Emitter, range: SourceRange, target: Subscript, base: Value, value: Value
) -> None:
    if number_beside_tensor(value.type) is None:
        value = emitter.present(value, range, "can't assign a NoneType to a Tensor")
        _assign_tensor(emitter, range, target, base, value)
        return

    def assign(part: Value) -> Value:
        _assign_tensor(emitter, range, target, base, part)
        return emitter.graph.insert_constant(None, range=range)

    emitter.split(value, range, assign)


def _assign_tensor(emitter: Emitter, range: SourceRange, target: Subscript, base: Value, value: Value) -> None:
    indexed = slice_and_select(emitter, target.range, base, indices_of(emitter, target))
    if value.type in _SCALARS or is_open_number(value.type):
        value = _scalar_like(emitter, value, indexed.view, range)
    write_indexed(emitter, indexed, value, range)


def _scalar_like(emitter: Emitter, value: Value, tensor: Value, range: SourceRange) -> Value:
    """Emit the conversion of a number to a tensor of the dtype and device of ``tensor``."""
    dtype = emitter.insert("prim::dtype", range, tensor)
    device = emitter.insert("prim::device", range, tensor)
    if is_open_number(value.type):
        return emitter.insert("aten::scalar_tensor", range, value, dtype=dtype, device=device)
    made = emitter.insert("aten::tensor", range, value, dtype=dtype, device=device)
    if emitter.graph.follows_python:
        made.node.set_attribute("assigned", 1)  # its errors are others than those of ``torch.tensor``
    return made


_EFFECTLESS: Final = frozenset({Var.KIND, Const.KIND, "true", "false", "none", "string_literal", "dots", Starred.KIND})
"""Kinds of indices whose evaluation has no effect, so that they can be evaluated later."""

_positions = range

_DOTS_HINT = "take the elements of one dimension with x.index_select(dim, index)"


def check_items_can_change(base: Value, range: SourceRange) -> None:
    """Reject a write to an item of a tuple.

    Raises:
        TypeMismatchError: ``base`` is a tuple.
    """
    if isinstance(base.type, TupleType):
        raise TypeMismatchError(
            f"the items of a {base.type.annotation} cannot be assigned", range, hint="make a new tuple, or use a list"
        )


def _needs_dim(index: _Index) -> bool:
    """Return whether the operator for an index takes the dimension as an argument."""
    return index.value is None or isinstance(index.value.type, NoneType) or index.value.type in (INT, BOOL)


def assign_slice(
    emitter: Emitter, range: SourceRange, target: Subscript, base: Value, items: Value, deleted: bool = False
) -> None:
    """Emit ``xs[a:b:c] = items`` for the list ``base``; with ``deleted``, for which ``items`` must be empty, ``del
    xs[a:b:c]``."""
    assert isinstance(base.type, ListType)
    if items.node.kind == "prim::EmptyListLiteral" and not items.has_uses:
        items.set_type(base.type)
    slice = SliceExpr(target.indices[0].tree)
    bounds = [
        emitter.graph.insert_constant(None, range=range) if part is None else emitter.emit_expression(part)
        for part in (slice.start, slice.stop)
    ]
    if slice.step is None:
        from_library(emitter, "assign_slice", range, base, *bounds, items)
    elif deleted:
        from_library(emitter, "delete_places", range, base, *bounds, emitter.emit_expression(slice.step))
    else:
        from_library(emitter, "assign_places", range, base, *bounds, emitter.emit_expression(slice.step), items)
