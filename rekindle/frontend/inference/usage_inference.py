"""Usage-based inference: types of variables, whose first assignment does not determine them, from later uses."""

from __future__ import annotations

from collections.abc import Sequence

from rekindle.frontend.emitter import Emitter
from rekindle.frontend.inference.type_inference import ATTRIBUTE, DICT, LIST, NUMBERS, RESULT, SET
from rekindle.frontend.sugared_values.base import SugaredValue
from rekindle.frontend.sugared_values.values import FunctionValue
from rekindle.ir.graph import Value
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.redefinition import rely_on, widen_attribute
from rekindle.ir.types import NONE, STRING, TENSOR, ClassType, DictType, ListType, Type, unshaped
from rekindle.syntax.views import Apply, Expr, Select, Subscript, Var


def infer_element(emitter: Emitter, expr: Expr, added: Value) -> None:
    """Record the element type of the list ``expr``, a variable or an attribute, from the list ``added`` to it.

    Raises:
        RestartEmission: the variable needs another type than the one assumed so far.
    """
    origin = emitter.environment.origin_of(expr)
    if origin is None and expr.tree.kind == Select.KIND and added.node.kind != "prim::EmptyListLiteral":
        _learn_assumed(emitter, Select(expr.tree), added.type)
    if origin is not None and origin.kind == LIST and isinstance(added.type, ListType):
        if added.node.kind != "prim::EmptyListLiteral":
            emitter.evidence.record(origin, element=added.type.element)


def learn_numbers(emitter: Emitter, expr: Expr, given: Type) -> None:
    """Record a number type from an element of the type ``given`` that is added to the list or dict ``expr``: a
    variable, an attribute, or an item of one, such as ``m[i]``.

    Raises:
        RestartEmission: the variable needs another type than the one assumed so far.
    """
    if not emitter.graph.follows_python:
        return
    depth, base = 1, expr
    while base.tree.kind == Subscript.KIND:
        depth, base = depth + 1, Subscript(base.tree).value
    if base.tree.kind == Var.KIND:
        variable = emitter.environment.frame.variable(Var(base.tree).name.name)
        origin, container = emitter.environment.find_origin(variable), emitter.environment.frame.find_type(variable)
        if origin is not None and origin.attribute is not None:
            _learn_attribute(emitter, Select(origin.attribute.tree), depth, unshaped(given))
            return
        wanted = None if container is None else _with_element(container, depth, unshaped(given))
        if origin is not None and container is not None and wanted is not None:
            emitter.evidence.learn_contents(origin, container, wanted)
    elif base.tree.kind == Select.KIND and Select(base.tree).value.tree.kind == Var.KIND:
        _learn_attribute(emitter, Select(base.tree), depth, unshaped(given))


def _learn_attribute(emitter: Emitter, select: Select, depth: int, given: Type) -> None:
    """Widen the element type of an attribute to hold an element that is added to it, ``depth`` lists or dicts deep."""
    value, name = getattr(emitter.emit_sugared(select.value), "value", None), select.selector.name
    if not isinstance(value, Value) or not isinstance(value.type, ClassType):
        return
    container = value.type.attribute_type(name)
    if isinstance(container, DictType) and value.type.attributes[name].is_assumed:
        return  # its key is not known
    wanted = None if container is None else _with_element(container, depth, given)
    if wanted is not None:
        rely_on(value.type, name)
        widen_attribute(value.type, name, wanted)


def _learn_assumed(emitter: Emitter, select: Select, given: Type) -> None:
    """Set the type of an attribute that was initialized as an empty list or dict, from that of a container ``given`` to
    it."""
    owner = _owner_of_assumed(emitter, select)
    if owner is not None and owner.attributes[select.selector.name].type.kind == given.kind:
        rely_on(owner, select.selector.name)
        widen_attribute(owner, select.selector.name, given)


def is_assumed(emitter: Emitter, select: Select) -> bool:
    """Return whether ``select`` is an attribute that was initialized as an empty container, and has no inferred element
    type."""
    return _owner_of_assumed(emitter, select) is not None


def _owner_of_assumed(emitter: Emitter, select: Select) -> ClassType | None:
    if not emitter.graph.follows_python or select.value.tree.kind != Var.KIND:
        return None  # no other expression may be emitted twice
    value = getattr(emitter.emit_sugared(select.value), "value", None)
    if not isinstance(value, Value) or not isinstance(value.type, ClassType):
        return None
    slot = value.type.attributes.get(select.selector.name)
    return value.type if slot is not None and slot.is_assumed else None


def infer_item(emitter: Emitter, expr: Expr, key: Value, item: Value | None = None) -> None:
    """Record the key and value types of the dict ``expr`` from a key and its value.

    Raises:
        RestartEmission: the variable needs another type than the one assumed so far.
    """
    origin = emitter.environment.origin_of(expr)
    if origin is None and expr.tree.kind == Select.KIND and item is not None:
        if item.node.kind != "prim::EmptyListLiteral":
            _learn_assumed(emitter, Select(expr.tree), DictType(key.type, item.type))
    if origin is not None and origin.kind == SET:
        emitter.evidence.record(origin, key=key.type)
    elif origin is not None and origin.kind == DICT:
        if item is None or is_empty_literal(item):
            emitter.evidence.record(origin, key=key.type)
            if item is not None:
                emitter.evidence.record_empty(origin, "value", item.type)
        else:
            emitter.evidence.record(origin, key=key.type, value=item.type)
    elif origin is None and item is not None and not is_empty_literal(item):
        learn_nested(emitter, expr, DictType(key.type, unshaped(item.type)))


def is_empty_literal(value: Value) -> bool:
    """Return whether ``value`` is ``[]`` or ``{}``, whose type is unknown."""
    node = value.node
    return node.kind == "prim::EmptyListLiteral" or (
        node.kind == "prim::DictConstruct" and not node.inputs and value.type == DictType(STRING, TENSOR)
    )


def learn_nested(emitter: Emitter, expr: Expr, content: Type) -> None:
    """Record the type of the lists or dicts in a list or dict ``d``, from a use of ``expr``, one of them: ``d[k]`` or
    ``d.setdefault(k, [])``.

    Raises:
        RestartEmission: the variable needs another type than the one assumed so far.
    """
    owner: Expr | None = None
    if expr.tree.kind == Subscript.KIND:
        owner = Subscript(expr.tree).value
    elif expr.tree.kind == Apply.KIND and Apply(expr.tree).callee.tree.kind == Select.KIND:
        method = Select(Apply(expr.tree).callee.tree)
        owner = method.value if method.selector.name == "setdefault" else None
    origin = None if owner is None else emitter.environment.origin_of(owner)
    if origin is not None and origin.kind == DICT and origin.maker is None:
        emitter.evidence.record(origin, value=content)
    elif origin is not None and origin.kind == LIST:
        emitter.evidence.record(origin, element=content)


def learn_from_method(emitter: Emitter, call: Apply, kind: str, args: Sequence[NamedValue]) -> None:
    if call.callee.tree.kind != "." or not args:
        return
    owner = Select(call.callee.tree).value
    if owner.tree.kind in (Subscript.KIND, Apply.KIND):
        _learn_from_item(emitter, owner, kind, args)
    origin = emitter.environment.origin_of(owner)
    if origin is None or origin.kind in (NUMBERS, ATTRIBUTE, RESULT):
        _learn_from_numbers(emitter, owner, kind.rpartition("::")[2], args)
        return
    values = [item.materialize(emitter.graph) for item in args]
    method = kind.rpartition("::")[2]
    if origin.kind == LIST:
        if method in ("append", "insert") and is_empty_literal(values[-1]):
            emitter.evidence.record_empty(origin, "element", values[-1].type)
        elif method in ("append", "insert"):
            emitter.evidence.record(origin, element=values[-1].type)
        elif method == "extend":
            infer_element(emitter, owner, values[0])
    elif origin.kind == DICT:
        if method in ("get", "setdefault", "pop"):
            has_item = len(values) > 1 and values[1].type != NONE
            infer_item(emitter, owner, values[0], values[1] if has_item else None)
        elif method == "update" and isinstance(values[0].type, DictType):
            emitter.evidence.record(origin, key=values[0].type.key, value=values[0].type.value)


def _learn_from_numbers(emitter: Emitter, owner: Expr, method: str, args: Sequence[NamedValue]) -> None:
    added = args[-1].type
    if method == "extend" and isinstance(added, ListType):
        learn_numbers(emitter, owner, added.element)
    elif method in ("append", "insert", "setdefault"):
        learn_numbers(emitter, owner, added)


def _learn_from_item(emitter: Emitter, owner: Expr, kind: str, args: Sequence[NamedValue]) -> None:
    """Record the type of the lists or dicts in ``d`` from a call ``d[k].append(x)`` or ``d[k].get(x, 0)``, of which
    ``owner`` is ``d[k]``."""
    if kind in ("aten::get", "aten::setdefault", "aten::pop") and len(args) == 2:
        key, default = (item.materialize(emitter.graph) for item in args)
        if default.type != NONE and not is_empty_literal(default):
            learn_nested(emitter, owner, DictType(key.type, unshaped(default.type)))
    if kind not in ("aten::append", "aten::extend"):
        return
    added = args[0].materialize(emitter.graph)
    if is_empty_literal(added):
        return
    if kind == "aten::append":
        learn_nested(emitter, owner, ListType(unshaped(added.type)))
    elif isinstance(added.type, ListType):
        learn_nested(emitter, owner, ListType(unshaped(added.type.element)))


def learn_from_parameters(emitter: Emitter, call: Apply, callee: SugaredValue, args: Sequence[NamedValue]) -> None:
    """Record types from a call that fits no signature: an empty list or dict among the arguments may have the type of a
    parameter.

    Raises:
        RestartEmission: an argument needs another type than the one assumed so far.
    """
    if not isinstance(callee, FunctionValue) or len(callee.functions) != 1:
        return
    formals = callee.functions[0].schema.arguments
    for expr, formal in zip(call.inputs, formals, strict=False):
        learn_type(emitter, expr, formal.type)


def learn_type(emitter: Emitter, expr: Expr, type: Type) -> None:
    """Record that the list or dict ``expr`` has this type.

    Raises:
        RestartEmission: it needs another type than the one assumed so far.
    """
    origin = emitter.environment.origin_of(expr)
    if origin is None:
        return
    if origin.kind == LIST and isinstance(type, ListType):
        emitter.evidence.record(origin, element=type.element)
    elif origin.kind == DICT and isinstance(type, DictType):
        emitter.evidence.record(origin, key=type.key, value=type.value)
    elif origin.kind == SET and isinstance(type, DictType):
        emitter.evidence.record(origin, key=type.key)


def _with_element(container: Type, depth: int, given: Type) -> Type | None:
    """Return the container type with ``given`` as the type of elements, ``depth`` lists or dicts deep; None if it is
    not so deep."""
    if depth == 0:
        return given
    if not isinstance(container, (ListType, DictType)):
        return None
    element = _with_element(container.contained[-1], depth - 1, given)
    return None if element is None else container.with_contained([*container.contained[:-1], element])
