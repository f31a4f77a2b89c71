"""Emit calls of methods whose arguments Python takes in more forms than the operators.

An operator takes a list where Python takes any iterable, and one value where Python takes several::

    xs.extend(range(n))            becomes      xs.extend(list(range(n)))
    d.update(pairs, k=1)           becomes      d.update(dict(pairs)), d.update({"k": 1})
    s.startswith(("a", "b"))       becomes      a loop over the prefixes, in the prelude
    xs.index(x, 1)                 becomes      a loop over the items from the second, in the prelude
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rekindle.frontend.calls.arguments import emit_arguments
from rekindle.frontend.emitter import Emitter
from rekindle.frontend.expressions.unordered import list_from
from rekindle.frontend.inference.usage_inference import learn_from_method
from rekindle.frontend.python.library import library_function
from rekindle.frontend.statements.loops import dict_of
from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.frontend.sugared_values.values import BuiltinFunction, SimpleValue
from rekindle.ir.graph import Value
from rekindle.ir.operators.schema_matching import NamedValue
from rekindle.ir.types import DictType, ListType, StringType, TupleType
from rekindle.syntax.keyword_dicts import literal_of_dict
from rekindle.syntax.views import Apply, DictLiteral, Select, Starred


def emit_method(emitter: Emitter, call: Apply, method: BuiltinFunction) -> list[NamedValue] | SugaredValue | None:
    """Emit the arguments of a call of a method of a container or a string, in a program from Python.

    Returns:
        The arguments for the operator; the result, if the call has been emitted; None, without emitting anything, for
        calls whose arguments are emitted as usual.
    """
    emit = _METHODS.get(method.kind)
    if emit is None or method.self_value is None or not emitter.graph.follows_python:
        return None
    if any(item.tree.kind == Starred.KIND for item in call.inputs):
        return None
    return emit(emitter, call, method, method.self_value)


def _extend(
    emitter: Emitter, call: Apply, method: BuiltinFunction, owner: NamedValue
) -> list[NamedValue] | SugaredValue | None:
    """Emit the argument of ``xs.extend(…)``, any iterable, as a list; return None for other calls."""
    if call.attributes or len(call.inputs) != 1:
        return None
    (item,) = call.inputs
    found = emitter.emit_sugared(item)
    if not isinstance(found, SimpleValue) or not isinstance(found.value.type, (ListType, TupleType)):
        found = SimpleValue(list_from(emitter, found, item.range))
    return [emitter.argument(found.value, item.range)]


def _update(
    emitter: Emitter, call: Apply, method: BuiltinFunction, owner: NamedValue
) -> list[NamedValue] | SugaredValue | None:
    """Emit ``d.update(pairs, key=value)``: one update of a dict with another for each of the two; return None
    for other calls."""
    type = owner.type
    if not isinstance(type, DictType) or len(call.inputs) > 1 or any(item.is_expansion for item in call.attributes):
        return None
    is_known = emitter.environment.origin_of(Select(call.callee.tree).value) is None
    wanted = DictType(type.key, type.value) if is_known else None
    added: list[Value] = []
    for item in call.inputs:
        found = emitter.emit_sugared(item)
        if not isinstance(found, SimpleValue) or not isinstance(found.value.type, DictType):
            if isinstance(found, SimpleValue) and found.value.node.kind == "prim::EmptyListLiteral":
                continue
            found = SimpleValue(dict_of(emitter, item.range, found, wanted))
        added.append(found.value)
    if call.attributes:
        literal = literal_of_dict(Apply.create(call.range, call.callee, [], call.attributes))
        added.append(emitter.emit_expression(literal, wanted))
    for value in added[:-1]:
        call_method(emitter, call, method, [emitter.argument(value, call.range)], 0)
    if not added:
        return SimpleValue(emitter.graph.insert_constant(None, range=call.range))
    return [emitter.argument(added[-1], call.inputs[0].range if len(added) == 1 and call.inputs else call.range)]


def _setdefault(
    emitter: Emitter, call: Apply, method: BuiltinFunction, owner: NamedValue
) -> list[NamedValue] | SugaredValue | None:
    """Emit the arguments of ``d.setdefault(key, {})``, where the dict gets the type of the values of ``d``; return None
    for other calls."""
    if call.attributes or len(call.inputs) != 2 or not isinstance(owner.type, DictType):
        return None
    key, default = call.inputs
    if default.tree.kind != DictLiteral.KIND:
        return None
    value = owner.type.value if isinstance(owner.type.value, DictType) else None
    given = emitter.emit_expression(key), emitter.emit_expression(default, value)
    return [emitter.argument(item, expr.range) for item, expr in zip(given, call.inputs, strict=True)]


def _affix(
    emitter: Emitter, call: Apply, method: BuiltinFunction, owner: NamedValue
) -> list[NamedValue] | SugaredValue | None:
    """Emit ``s.startswith(prefixes)`` or ``endswith`` for a tuple of strings; return None for calls with keyword
    arguments."""
    if call.attributes or not call.inputs:
        return None
    given = emit_arguments(emitter, call.inputs)
    type = given[0].type
    if not isinstance(type, TupleType) and not (isinstance(type, ListType) and type.is_tuple):
        return given
    return _in_library(emitter, call, f"{method.kind.partition('::')[2]}_any", owner, given)


def _index(
    emitter: Emitter, call: Apply, method: BuiltinFunction, owner: NamedValue
) -> list[NamedValue] | SugaredValue | None:
    """Emit ``xs.index(x, start, stop)`` of a list or a tuple; return None for other calls."""
    if isinstance(owner.type, StringType) or call.attributes or not 2 <= len(call.inputs) <= 3:
        return None
    is_tuple = isinstance(owner.type, ListType) and owner.type.is_tuple
    return _in_library(
        emitter, call, "tuple_index" if is_tuple else "list_index", owner, emit_arguments(emitter, call.inputs)
    )


def _in_library(emitter: Emitter, call: Apply, name: str, owner: NamedValue, given: list[NamedValue]) -> SugaredValue:
    values = [SimpleValue(item.materialize(emitter.graph)) for item in (owner, *given)]
    return library_function(name).call_with(call.range, emitter.graph, values, {})


def call_method(
    emitter: Emitter, call: Apply, method: BuiltinFunction, args: list[NamedValue], targets: int
) -> SugaredValue:
    """Emit a call of a method with these arguments, from which the type of its owner may be inferred."""
    learn_from_method(emitter, call, method.kind, args)
    return method.call(CallSite(call.callee.range, emitter.graph, args, (), targets))


_Handler = Callable[[Emitter, Apply, BuiltinFunction, NamedValue], "list[NamedValue] | SugaredValue | None"]

_METHODS: Final[dict[str, _Handler]] = {
    "aten::extend": _extend,
    "aten::update": _update,
    "aten::setdefault": _setdefault,
    "aten::startswith": _affix,
    "aten::endswith": _affix,
    "aten::index": _index,
}
"""Emitters of arguments, by the operator of the method."""
