"""Assignments: to names, tuples, attributes and subscripts; plain, annotated and augmented."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from functools import reduce
from typing import Final

from rekindle.errors import SourceRange, TypeMismatchError, UndefinedNameError, UnsupportedError
from rekindle.frontend.calls.builtin_calls import insert_builtin_call
from rekindle.frontend.containers.set_values import is_set
from rekindle.frontend.containers.sets import augment_set
from rekindle.frontend.containers.variable_length_tuples import is_open_tuple
from rekindle.frontend.emitter import Emitter
from rekindle.frontend.expressions.generators import LAZY
from rekindle.frontend.expressions.operator_kinds import BINARY_KINDS
from rekindle.frontend.expressions.operators import as_one_list, binary, present_operands
from rekindle.frontend.expressions.primaries import call_builtin, from_library
from rekindle.frontend.expressions.subscripts import (
    assign_subscript,
    check_items_can_change,
    for_each_index,
    indices_of,
    slice_and_select,
)
from rekindle.frontend.expressions.tensor_indexing import read_indexed, write_indexed
from rekindle.frontend.expressions.unordered import list_from
from rekindle.frontend.inference.type_inference import (
    ATTRIBUTE,
    DICT,
    LIST,
    NOTHING,
    NUMBERS,
    RESULT,
    SET,
    TUPLE,
    FirstAssignment,
    is_literal_of,
    kind_of_origin,
    makes_other_class,
    origin_of_value,
)
from rekindle.frontend.inference.usage_inference import infer_element, infer_item, is_assumed, learn_numbers
from rekindle.frontend.statements.error_recovery import names_in
from rekindle.frontend.statements.generator_loops import begun_generator
from rekindle.frontend.statements.loops import generator_of
from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.frontend.sugared_values.kept_generators import ITERATORS, ITERTOOLS, KeptCall, KeptGenerator, KeptIterator
from rekindle.frontend.sugared_values.special_forms import MagicMethod, SpecialForm
from rekindle.frontend.sugared_values.values import BuiltinFunction, SimpleValue
from rekindle.frontend.type_expressions import dotted_name, parse_type_expression
from rekindle.ir.graph import Value
from rekindle.ir.graph_function import called_function
from rekindle.ir.types import (
    FLOAT,
    TENSOR,
    ClassType,
    DictType,
    ListType,
    StringType,
    TensorType,
    TupleType,
    Type,
    join_any,
    join_contents,
    number_beside_tensor,
    number_members,
    unify_all,
    unshaped,
    without_none,
)
from rekindle.syntax.desugaring import hidden
from rekindle.syntax.views import (
    Apply,
    Assign,
    Attribute,
    AugAssign,
    BinOp,
    Expr,
    GeneratorExpr,
    Lambda,
    ListLiteral,
    Select,
    SliceExpr,
    Starred,
    StringLiteral,
    Subscript,
    TupleLiteral,
    Var,
)

_IN_PLACE: Final[dict[str, str]] = {
    "+": "aten::add_",
    "-": "aten::sub_",
    "*": "aten::mul_",
    "/": "aten::div_",
    "//": "aten::floor_divide_",
    "%": "aten::remainder_",
    "**": "aten::pow_",
    "&": "aten::__iand__",
    "|": "aten::__ior__",
    "^": "aten::__ixor__",
    "<<": "aten::__ilshift__",
    ">>": "aten::__irshift__",
}
"""Operators that change a tensor for ``x op= y``, and a list for ``+=`` and ``*=``."""


def emit_assign(emitter: Emitter, statement: Assign) -> None:
    value = statement.value
    if value is None:
        _emit_declaration(emitter, statement)
        return
    targets = statement.targets
    declared = None if statement.annotation is None else _declared(emitter, statement.annotation)
    if declared is not None:
        _assign_annotated(emitter, targets[0], value, declared)
    elif len(targets) == 1:
        origin = origin_of_value(statement.tree, value) if _is_variable(targets[0]) else None
        if origin is None:
            _assign_one(emitter, statement, targets[0], value)
            _remember_alias(emitter, targets[0], value)
        else:
            _assign_first(emitter, origin, targets[0], value)
    elif kind_of_origin(value) == NOTHING and all(map(_is_variable, targets)):
        _assign_to_each(emitter, targets, value)
    else:
        found = emitter.emit_sugared(value)
        for target in targets:
            assign(emitter, target, found, value.range)


def _assign_to_each(emitter: Emitter, targets: Sequence[Expr], value: Expr) -> None:
    """Emit ``a = b = None``. Each variable has a first assignment of its own, because later code may use each with
    another type."""
    kind = kind_of_origin(value)
    assert kind is not None
    first = emitter.emit_expression(value)
    for target in targets:
        origin = FirstAssignment(target.tree, kind)
        _assign_as(emitter, target, SimpleValue(first), _first_type(emitter, origin, target, value), value.range)
        _remember(emitter, origin, target)


def _declared(emitter: Emitter, annotation: Expr) -> Type | None:
    """Return the type of a variable's annotation; None if the annotation is known only to Python.

    Raises:
        CompileError: a name in the annotation is not defined, or the annotation is not a type.
    """
    try:
        return parse_type_expression(annotation, emitter.resolver)
    except UndefinedNameError:
        if not all(_is_known(emitter, name, annotation.range) for name in names_in(annotation)):
            raise
        return None


def _is_known(emitter: Emitter, name: str, range: SourceRange) -> bool:
    return emitter.resolver.resolve_value(name, range, emitter.graph) is not None or name in vars(builtins)


def _assign_first(emitter: Emitter, origin: FirstAssignment, target: Expr, value: Expr) -> None:
    """Emit an assignment that may not determine the type of the variable. If later uses have shown the type, in an
    earlier emission, it is converted to that."""
    type = _first_type(emitter, origin, target, value)
    if type is None or origin.kind == NUMBERS or makes_other_class(value):
        assign(emitter, target, emitter.emit_sugared(value, 1, type), value.range)
    else:
        _assign_annotated(emitter, target, value, type)
    _remember(emitter, origin, target)


def _assign_side_by_side(emitter: Emitter, targets: Sequence[Expr], values: Sequence[Expr]) -> None:
    """Emit ``xs, n = [], 0``: the type of each variable is inferred from its uses, as for separate assignments. An
    iterator is assigned as by one, too."""
    found: list[tuple[Expr, Expr, FirstAssignment | None, Type | None, SugaredValue]] = []
    for target, value in zip(targets, values, strict=True):
        origin = origin_of_value(value.tree, value)
        type = None if origin is None else _first_type(emitter, origin, target, value)
        sugared = _kept(emitter, target, value) or emitter.emit_sugared(value, 1, type)
        found.append((target, value, origin, type, sugared))
    for target, value, origin, type, sugared in found:
        _assign_as(emitter, target, sugared, type, value.range)
        if origin is not None:
            _remember(emitter, origin, target)


def _first_type(emitter: Emitter, origin: FirstAssignment, target: Expr, value: Expr) -> Type | None:
    """Return the type of a variable whose assignment does not determine it: that of the variable outside of this block,
    or one that its uses have shown. Return None if neither is known."""
    frame = emitter.environment.frame
    variable = frame.variable(Var(target.tree).name.name)
    around = None if frame.parent is None else frame.parent.find_type(variable)
    if around is not None and _is_emptied(origin, around):
        return around
    type = emitter.evidence.type_of(origin)
    if type is None and origin.kind == NUMBERS and emitter.environment.find_origin(variable) is not None:
        known = frame.find_type(variable)
        # A list of numbers is assigned its first value again.
        return known if known is not None and is_literal_of(value, known) else None
    return type


def _remember(emitter: Emitter, origin: FirstAssignment, target: Expr) -> None:
    frame = emitter.environment.frame
    variable = frame.variable(Var(target.tree).name.name)
    around = None if frame.parent is None else frame.parent.find_type(variable)
    if around is None or not _is_emptied(origin, around):
        frame.origins[variable] = origin


def _remember_alias(emitter: Emitter, target: Expr, value: Expr) -> None:
    """Record that ``b = a`` makes ``b`` an alias of a list, a dict or an attribute, so that evidence from uses of ``b``
    is recorded for ``a``."""
    origin = emitter.environment.origin_of(value)
    if value.tree.kind == Select.KIND and Select(value.tree).value.tree.kind == Var.KIND:
        origin = FirstAssignment(value.tree, ATTRIBUTE, attribute=value)
    if origin is not None and origin.kind in (NUMBERS, ATTRIBUTE, RESULT) and target.tree.kind == Var.KIND:
        frame = emitter.environment.frame
        frame.origins[frame.variable(Var(target.tree).name.name)] = origin


def _emit_declaration(emitter: Emitter, statement: Assign) -> None:
    raise UnsupportedError(
        "a variable is declared here without a value",
        statement.range,
        hint="annotate the variable where it is first assigned",
    )


def _assign_annotated(emitter: Emitter, target: Expr, value: Expr, type: Type) -> None:
    _assign_as(emitter, target, emitter.emit_sugared(value, 1, type), type, value.range)


def _assign_as(emitter: Emitter, target: Expr, found: SugaredValue, type: Type | None, range: SourceRange) -> None:
    """Assign ``found`` to a target, converted to ``type`` if one is given. ``range`` is the location of the value."""
    if isinstance(type, (DictType, ListType)) and isinstance(found, SimpleValue):
        known = found.value.type
        if known.is_subtype_of(type):
            type = known  # what Python has in place of a dict or a list
    if type is None:
        assign(emitter, target, found, range)
    elif target.tree.kind == Var.KIND:
        name = Var(target.tree).name.name
        emitter.environment.assign(name, target.range, found, type)
        emitter.assumed.pop(name, None)
    elif target.tree.kind == Select.KIND:
        select = Select(target.tree)
        owner = emitter.emit_sugared(select.value)
        owner.declare_attribute(target.range, select.selector.name, type)
        owner.set_attribute(target.range, emitter.graph, select.selector.name, found.as_value(range, emitter.graph))
    else:
        assign(emitter, target, found, range)


def _assign_one(emitter: Emitter, statement: Assign, target: Expr, value: Expr) -> None:
    kind = target.tree.kind
    if kind == TupleLiteral.KIND or kind == ListLiteral.KIND:
        items = _items(target)
        starred = _check_targets(items, target.range)
        values = TupleLiteral(value.tree).items if value.tree.kind == TupleLiteral.KIND else []
        is_apart = any(kind_of_origin(item) is not None or _may_be_iterator(item) for item in values)
        if len(values) == len(items) and all(map(_is_variable, items)) and is_apart:
            _assign_side_by_side(emitter, items, values)
            return
        found = emitter.emit_sugared(value, len(items) - starred)
        _unpack(emitter, items, found, value.range)
    elif kind == Subscript.KIND:
        assign_subscript(emitter, statement.range, Subscript(target.tree), emitter.emit_expression(value))
    elif kind == Select.KIND:
        _assign_attribute(emitter, target, value)
    else:
        found = _kept(emitter, target, value) or emitter.emit_sugared(value)
        if _is_variable(target) and _is_new_container(found) and emitter.graph.follows_python:
            _assign_new(emitter, FirstAssignment(statement.tree, NUMBERS), target, found, value.range)
        else:
            assign(emitter, target, found, value.range)


def _assign_new(
    emitter: Emitter, origin: FirstAssignment, target: Expr, made: SugaredValue, range: SourceRange
) -> None:
    """Assign a list or dict of numbers that an operator has just created, such as ``xs = list(range(3))``. It gets the
    number type that later uses have shown for it."""
    value = made.as_value(range, emitter.graph)
    known = emitter.environment.frame.find_type(emitter.environment.frame.variable(Var(target.tree).name.name))
    for type in (emitter.evidence.type_of(origin), known):
        if type is not None and type != value.type and join_contents(unshaped(value.type), type) == type:
            value = emitter.environment.cast(value, type, range)
            break
    assign(emitter, target, SimpleValue(value), range)
    _remember(emitter, origin, target)


def _kept(emitter: Emitter, target: Expr, value: Expr) -> SugaredValue | None:
    """Return a sugared value for a generator or another iterator that is assigned to a variable: its elements are
    computed when they are read. Return None for other values."""
    if target.tree.kind != Var.KIND or not emitter.graph.follows_python:
        return None
    name = Var(target.tree).name.name
    generator = None if value.tree.kind == Var.KIND else generator_of(emitter, value, LAZY)
    if generator is not None:
        return KeptGenerator(emitter, name, begun_generator(emitter, generator))
    call = Apply(value.tree) if value.tree.kind == Apply.KIND else None
    if call is not None and call.callee_name in ITERATORS:
        if emitter.environment.is_builtin(call.callee_name or "", value.range):
            return KeptIterator(emitter, name, emitter.emit_sugared(value))
    return None if call is None else _kept_call(emitter, name, call)


def _may_be_iterator(value: Expr) -> bool:
    """Return whether ``value`` has the form of an expression for which :func:`_kept` has a sugared value."""
    if value.tree.kind != Apply.KIND:
        return value.tree.kind == GeneratorExpr.KIND
    called = dotted_name(Apply(value.tree).callee)
    return called is not None and called.rpartition(".")[2] in _ITERATOR_NAMES


def _kept_call(emitter: Emitter, name: str, call: Apply) -> SugaredValue | None:
    """Return a sugared value for an iterator of ``itertools`` that is assigned to a variable, such as ``pairs =
    itertools.product(xs, ys)``; None for calls of other functions. The arguments are emitted now."""
    called = dotted_name(call.callee)
    if called is None or ("." in called and called.rpartition(".")[2] not in _ITERATOR_NAMES):
        return None
    form = emitter.emit_sugared(call.callee)
    if not isinstance(form, SpecialForm) or form.name not in ITERTOOLS:
        return None
    if any(item.tree.kind == Starred.KIND for item in call.inputs):
        return KeptIterator(emitter, name, emitter.emit_sugared(call))
    inputs = [_evaluated_now(emitter, item) for item in call.inputs]
    attributes = [
        Attribute.create(item.range, item.name, _evaluated_now(emitter, item.value)) for item in call.attributes
    ]
    return KeptCall(emitter, name, Apply(Apply.create(call.range, call.callee, inputs, attributes).tree))


def _evaluated_now(emitter: Emitter, expr: Expr) -> Expr:
    """Evaluate an argument of a call that is made later, and return a reference to the variable that holds it. An
    expression whose value cannot change is returned itself."""
    is_empty = expr.tree.kind == ListLiteral.KIND and not ListLiteral(expr.tree).items
    if is_empty or expr.tree.kind in _SAME_LATER:
        return expr
    variable = hidden(expr.range, "given")
    assign(emitter, variable, _kept(emitter, variable, expr) or emitter.emit_sugared(expr), expr.range)
    return variable


def _assign_attribute(emitter: Emitter, target: Expr, value: Expr) -> None:
    select = Select(target.tree)
    owner = emitter.emit_sugared(select.value)
    wanted = owner.attribute_type(select.selector.name)
    if wanted is not None and number_members(wanted) is not None and emitter.graph.follows_python:
        if wanted == FLOAT or owner.may_widen_attribute(select.selector.name):
            wanted = None  # a number stays what it is in an attribute that nothing declares another one
    found = emitter.emit_expression(value, wanted)
    owner.set_attribute(target.range, emitter.graph, select.selector.name, found)


# -------------------------------------------------------------------------------------- to several


def assign_targets(
    emitter: Emitter, targets: Sequence[Expr], values: Sequence[SugaredValue], range: SourceRange
) -> None:
    for target, value in zip(targets, values, strict=True):
        assign(emitter, target, value, range)


def assign(emitter: Emitter, target: Expr, value: SugaredValue, range: SourceRange) -> None:
    """Assign the sugared value ``value`` to one target; ``range`` is the location of the value.

    Raises:
        UnsupportedError: such an expression cannot be assigned to.
        TypeMismatchError: the number of values differs from that of the targets, or a type does not match.
    """
    kind = target.tree.kind
    if kind == Var.KIND:
        name = Var(target.tree).name.name
        function = called_function(value.value.node) if isinstance(value, SimpleValue) else None
        emitter.environment.assign(name, target.range, value)
        emitter.assumed.pop(name, None)
        if function is not None and function.result is not None:
            _remember(emitter, FirstAssignment(target.tree, RESULT, function=function), target)
    elif kind in (TupleLiteral.KIND, ListLiteral.KIND):
        items = _items(target)
        _check_targets(items, target.range)
        _unpack(emitter, items, value, range)
    elif kind == Subscript.KIND:
        assign_subscript(emitter, range, Subscript(target.tree), value.as_value(range, emitter.graph))
    elif kind == Select.KIND:
        select = Select(target.tree)
        owner = emitter.emit_sugared(select.value)
        owner.set_attribute(target.range, emitter.graph, select.selector.name, value.as_value(range, emitter.graph))
    elif kind == Starred.KIND:
        raise UnsupportedError("a starred target stands alone; write it within a tuple of targets", target.range)
    else:
        raise UnsupportedError("this cannot be assigned to", target.range)


def _unpack(emitter: Emitter, targets: Sequence[Expr], value: SugaredValue, range: SourceRange) -> None:
    star = next((i for i, target in enumerate(targets) if target.tree.kind == Starred.KIND), None)
    count = len(targets)
    if star is not None and isinstance(value, SimpleValue) and isinstance(value.value.type, ListType):
        _unpack_list(emitter, targets, star, value, range)
        return
    elements = value.as_tuple(range, emitter.graph, count if star is None else None)
    if star is None:
        if len(elements) != count:
            few = "not enough" if len(elements) < count else "too many"
            raise TypeMismatchError(f"{few} values to unpack: {count} targets, {len(elements)} values", range)
        assign_targets(emitter, targets, elements, range)
        return
    behind = count - star - 1
    if len(elements) < count - 1:
        raise TypeMismatchError(f"not enough values to unpack: at least {count - 1} needed, got {len(elements)}", range)
    end = len(elements) - behind
    assign_targets(emitter, targets[:star], elements[:star], range)
    rest = [element.as_value(range, emitter.graph) for element in elements[star:end]]
    _assign_rest(emitter, Starred(targets[star].tree), _starred_list(emitter, rest, range), range)
    assign_targets(emitter, targets[star + 1 :], elements[end:], range)


def _unpack_list(emitter: Emitter, targets: Sequence[Expr], star: int, xs: SimpleValue, range: SourceRange) -> None:
    """Emit ``a, *b, c = xs`` of a list: the emitted code checks the length, and collects the elements of the starred
    target in a list."""
    graph, least = emitter.graph, len(targets) - 1
    length = emitter.insert("aten::len", range, xs.value)
    least_value, star_value = emitter.literal(least, range), emitter.literal(star, range)
    from_library(emitter, "check_length", range, length, least_value)
    behind = least - star
    for position, target in enumerate(targets):
        if position == star:
            end = emitter.insert("aten::sub", range, length, behind)
            rest = emitter.insert("aten::slice", range, xs.value, star_value, end, 1)
            _assign_rest(emitter, Starred(target.tree), rest, range)
        else:
            index = emitter.literal(position if position < star else position - len(targets), range)
            assign(emitter, target, xs.item(range, graph, index), range)


def _assign_rest(emitter: Emitter, starred: Starred, rest: Value, range: SourceRange) -> None:
    if _is_variable(starred.value) and emitter.graph.follows_python:
        _assign_new(emitter, FirstAssignment(starred.tree, NUMBERS), starred.value, SimpleValue(rest), range)
    else:
        assign(emitter, starred.value, SimpleValue(rest), range)


def _starred_list(emitter: Emitter, values: Sequence[Value], range: SourceRange) -> Value:
    """Return the value of a starred target: a list, as in Python, which is empty if there are no values. If the types
    differ in a program that does not follow Python, it is a tuple, as in TorchScript."""
    if not values:
        return emitter.insert_node("prim::EmptyListLiteral", range, [], [ListType(TENSOR)]).output
    types = [unshaped(value.type) for value in values]
    common = unify_all(types)
    if common is None and emitter.graph.follows_python:
        common = reduce(join_any, types)
    if common is not None:
        return emitter.insert_node("prim::ListConstruct", range, list(values), [ListType(common)]).output
    type = TupleType(tuple(value.type for value in values))
    return emitter.insert_node("prim::TupleConstruct", range, list(values), [type]).output


# --------------------------------------------------------------------------------------- augmented


def emit_aug_assign(emitter: Emitter, statement: AugAssign) -> None:
    target = statement.target
    kind = target.tree.kind
    if kind == Var.KIND:
        name = Var(target.tree).name.name
        result = _augment_variable(emitter, statement, emitter.emit_expression(target))
        emitter.environment.assign_value(name, target.range, result)
    elif kind == Select.KIND:
        _augment_attribute(emitter, statement, Select(target.tree))
    elif kind == Subscript.KIND:
        subscript = Subscript(target.tree)
        for_each_index(emitter, subscript, lambda: _augment_subscript(emitter, statement, subscript))
    else:
        raise UnsupportedError("this cannot be assigned to", target.range)


def _augment(emitter: Emitter, statement: AugAssign, current: Value) -> Value:
    """Emit an augmented assignment's operation and return the new value of the target: the tensor or list changed in
    place, or else a new value."""
    rhs = _right_side(emitter, statement, current, _wanted(current))
    return _apply(emitter, statement, current, rhs)


def _augment_variable(emitter: Emitter, statement: AugAssign, current: Value) -> Value:
    origin = emitter.environment.origin_of(statement.target)
    if origin is None or origin.kind not in (LIST, NUMBERS):
        return _augment(emitter, statement, current)
    rhs = _right_side(emitter, statement, current, None)
    if isinstance(rhs.type, ListType) and statement.operator == "+":
        infer_element(emitter, statement.target, rhs)
    return _apply(emitter, statement, current, rhs)


def _right_side(emitter: Emitter, statement: AugAssign, current: Value, hint: Type | None) -> Value:
    """Emit the right side of an augmented assignment: for ``xs += …`` of a list any iterable, as a list."""
    value = statement.value
    is_list = isinstance(current.type, ListType) and not current.type.is_tuple
    if not is_list or statement.operator != "+" or not emitter.graph.follows_python or id(value.tree) in emitter.shared:
        return emitter.emit_expression(value, hint)
    found = emitter.emit_sugared(value, 1, hint)
    if isinstance(found, SimpleValue) and not isinstance(found.value.type, (StringType, DictType, TensorType)):
        return emitter.as_scalar(found.value)
    return list_from(emitter, found, value.range)


def _apply(emitter: Emitter, statement: AugAssign, current: Value, rhs: Value) -> Value:
    operator, range = statement.operator, statement.range
    if number_beside_tensor(current.type) is not None:
        return emitter.split(current, range, lambda part: _apply(emitter, statement, part, rhs))
    current, rhs = present_operands(emitter, f"{operator}=", current, rhs, range)
    type = current.type
    if is_set(current):
        return augment_set(emitter, range, operator, current, rhs, emitter.environment.origin_of(statement.target))
    arguments = [emitter.argument(rhs, statement.value.range)]
    itself = emitter.argument(current, statement.target.range)
    is_list = isinstance(type, ListType) and not is_open_tuple(type)
    changed = isinstance(type, TensorType) or (is_list and operator in ("+", "*"))
    if changed and isinstance(type, ListType) and type.python.startswith("deque:"):
        raise UnsupportedError("'+=' of a deque with maxlen is not supported", range, hint="call its extend")
    if is_list and operator == "+" and isinstance(rhs.type, ListType):
        learn_numbers(emitter, statement.target, rhs.type.element)
        _, rhs = as_one_list(emitter, current, rhs, range)
        arguments = [emitter.argument(rhs, statement.value.range)]
    if changed and operator in _IN_PLACE:
        return insert_builtin_call(range, emitter.graph, _IN_PLACE[operator], [itself, *arguments], [])
    if isinstance(type, ClassType):
        method = BINARY_KINDS[operator][1]
        in_place = f"__i{method[2:]}"
        if in_place in type.methods:
            target = MagicMethod(in_place, BuiltinFunction(BINARY_KINDS[operator][0]))
            return target.call(CallSite(range, emitter.graph, [itself, *arguments])).as_value(range, emitter.graph)
    return binary(emitter, operator, current, rhs, BinOp.create(range, operator, statement.target, statement.value))


def _augment_attribute(emitter: Emitter, statement: AugAssign, target: Select) -> None:
    owner = emitter.emit_sugared(target.value)
    name = target.selector.name
    current = owner.attribute(target.range, emitter.graph, name).as_value(target.range, emitter.graph)
    if is_assumed(emitter, target):
        rhs = emitter.emit_expression(statement.value)
        infer_element(emitter, statement.target, rhs)
        result = _apply(emitter, statement, current, rhs)
    else:
        result = _augment(emitter, statement, current)
    owner.set_attribute(statement.range, emitter.graph, name, result)


def _augment_subscript(emitter: Emitter, statement: AugAssign, target: Subscript) -> None:
    base = emitter.emit_expression(target.value)
    base = emitter.present(base, target.range, "'NoneType' object is not subscriptable")
    range = statement.range
    if isinstance(base.type, TensorType):
        indexed = slice_and_select(emitter, target.range, base, indices_of(emitter, target))
        result = _augment(emitter, statement, read_indexed(emitter, indexed, range, is_copied=True))
        if indexed.has_tensors:
            write_indexed(emitter, indexed, result, range)
        return
    check_items_can_change(base, target.range)
    written = indices_of(emitter, target, base)
    if len(written) == 1 and written[0].tree.kind == "slice" and isinstance(base.type, ListType):
        _augment_slice(emitter, statement, SliceExpr(written[0].tree), base)
        return
    if len(written) != 1 or written[0].tree.kind == "slice":
        raise UnsupportedError(f"a slice of a {base.type.annotation} cannot be assigned", target.range)
    index = emitter.emit_expression(written[0])
    if isinstance(base.type, DictType):
        infer_item(emitter, target.value, index)
    current = SimpleValue(base).item(range, emitter.graph, index).as_value(range, emitter.graph)
    result = _apply(emitter, statement, current, emitter.emit_expression(statement.value))
    learn_numbers(emitter, target.value, result.type)
    arguments = [emitter.argument(item, range) for item in (base, index, result)]
    MagicMethod("__setitem__", BuiltinFunction("aten::_set_item")).call(
        CallSite(range, emitter.graph, arguments, targets=0)
    )


def _augment_slice(emitter: Emitter, statement: AugAssign, slice: SliceExpr, base: Value) -> None:
    """Emit ``xs[a:b] += ys`` of a list.

    Raises:
        UnsupportedError: the slice has a step, or the operator is not ``+``.
    """
    range = statement.range
    if slice.step is not None or statement.operator != "+":
        raise UnsupportedError(f"'{statement.operator}=' of such a slice is not supported", range)
    bounds = [
        emitter.graph.insert_constant(None, range=range) if part is None else emitter.emit_expression(part)
        for part in (slice.start, slice.stop)
    ]
    current = call_builtin(emitter, "aten::slice", range, base, *bounds)
    items = call_builtin(emitter, "aten::add", range, current, emitter.emit_expression(statement.value, base.type))
    from_library(emitter, "assign_slice", range, base, *bounds, items)


def _wanted(current: Value) -> Type | None:
    """Return the type for a literal that is added to ``current``, if that is a list; else None."""
    return current.type if isinstance(current.type, ListType) else None


_ITERATOR_NAMES: Final = frozenset({*LAZY, *ITERATORS, *ITERTOOLS, "from_iterable"})
"""Names, without their modules, of functions that return iterators."""

_SAME_LATER: Final = frozenset({"const", "true", "false", "none", StringLiteral.KIND, Lambda.KIND})
"""Kinds of expressions whose value does not depend on when they are evaluated."""


def _is_variable(target: Expr) -> bool:
    return target.tree.kind == Var.KIND


def _is_new_container(found: SugaredValue) -> bool:
    """Return whether the value is a list or dict of numbers that an operator has created, and that no variable holds
    yet."""
    value = found.value if isinstance(found, SimpleValue) else None
    if value is None or any(use.user.kind == "prim::Store" for use in value.uses):
        return False
    type, schema = value.type, value.node.schema
    if not isinstance(type, (ListType, DictType)) or type.python or schema is None:
        return False
    is_made = value.node.kind == "prim::ListConstruct" or (len(schema.returns) == 1 and schema.returns[0].alias is None)
    return is_made and number_members(type.contained[-1]) is not None


def _is_emptied(origin: FirstAssignment, around: Type) -> bool:
    """Return whether the assignment is of an empty list, tuple, dict or set to a variable of that kind from outside the
    block. ``around`` is the variable's type there, which determines the element type."""
    known = without_none(around)
    if isinstance(known, ListType):
        return origin.kind == (TUPLE if known.is_tuple else LIST)
    return _is_dict(origin, known)


def _is_dict(origin: FirstAssignment, type: Type) -> bool:
    return origin.kind in (DICT, SET) and isinstance(type, DictType)


def _items(target: Expr) -> list[Expr]:
    return TupleLiteral(target.tree).items if target.tree.kind == TupleLiteral.KIND else ListLiteral(target.tree).items


def _check_targets(targets: Sequence[Expr], range: SourceRange) -> int:
    """Return the number of starred targets: 0 or 1.

    Raises:
        UnsupportedError: there are more.
    """
    starred = sum(target.tree.kind == Starred.KIND for target in targets)
    if starred > 1:
        raise UnsupportedError("only one target can be starred", range)
    return starred
