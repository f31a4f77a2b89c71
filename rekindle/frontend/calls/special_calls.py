"""Emit calls whose arguments are not simply evaluated: ``range``, ``enumerate``, ``getattr``, ``annotate`` …"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rekindle.errors import Cause, CompileError, SchemaError, SourceRange, TypeMismatchError, UnsupportedError
from rekindle.frontend.calls.arguments import emit_arguments, emit_keywords, emit_sugared_args
from rekindle.frontend.calls.enum_members import plain_value
from rekindle.frontend.calls.insertion import constant_int
from rekindle.frontend.emitter import Emitter, FormHandler
from rekindle.frontend.expressions.conditions import emit_question
from rekindle.frontend.expressions.primaries import call_builtin, join_types
from rekindle.frontend.inference.error_diagnosis import emit_for_errors
from rekindle.frontend.inference.usage_inference import learn_from_method, learn_from_parameters
from rekindle.frontend.python.builtin_functions import as_function
from rekindle.frontend.python.library import library_function
from rekindle.frontend.python.method_calls import call_method, emit_method
from rekindle.frontend.scopes.refinement import RefinementSet
from rekindle.frontend.statements.generator_loops import elements_of
from rekindle.frontend.statements.loops import dict_of, list_of
from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.frontend.sugared_values.classes import NewObject
from rekindle.frontend.sugared_values.iterables import IterableTree, RangeValue
from rekindle.frontend.sugared_values.special_forms import SpecialForm, ToList
from rekindle.frontend.sugared_values.values import BuiltinFunction, SimpleValue, SugaredTuple
from rekindle.frontend.type_expressions import parse_type_expression
from rekindle.ir.control_flow import MAX_TRIP_COUNT
from rekindle.ir.graph import Value
from rekindle.ir.operators.container_literals import TOLIST_ELEMENTS, TOLIST_OF_ROW
from rekindle.ir.operators.named_value import NamedValue
from rekindle.ir.operators.schema_matching import convert_value
from rekindle.ir.types import (
    INT,
    NONE,
    STRING,
    TENSOR,
    AwaitType,
    DictType,
    FutureType,
    ListType,
    StringType,
    TupleType,
    Type,
    is_open_number,
    mismatch_note,
    without_none,
)
from rekindle.syntax.keyword_dicts import literal_of_dict
from rekindle.syntax.views import Apply, Expr, StringLiteral

_TAKE_KEYWORDS: Final = frozenset(
    {
        "dict",
        "enumerate",
        "fork",
        "awaitable",
        "_awaitable",
        "defaultdict",
        "OrderedDict",
        "deque",
        "zip",
        "partial",
        "accumulate",
        "product",
        "insort_left",
    }
    | {"insort_right", "bisect_left", "bisect_right", "nlargest", "nsmallest", "merge"}
    | {"combinations", "permutations", "combinations_with_replacement", "count", "repeat", "compress", "zip_longest"}
    | {"groupby", "tee", "methodcaller", "Counter", "prod"}
)
"""The special forms that take keyword arguments."""


def emit_special_form(emitter: Emitter, form: SpecialForm, call: Apply, hint: Type | None) -> SugaredValue:
    emit = emitter.language.special_forms.get(form.name)
    if emit is None:
        raise UnsupportedError(f"'{form.name}' is not supported", call.range)
    keywords = [item.name.name for item in call.attributes]
    if keywords and form.name not in _TAKE_KEYWORDS:
        raise UnsupportedError(f"{form.name} takes no keyword argument '{keywords[0]}' here", call.range)
    return emit(emitter, call, hint)


def expect_arguments(emitter: Emitter, call: Apply, low: int, high: int) -> list[Expr]:
    """Return the positional arguments of ``call``.

    Raises:
        TypeMismatchError: there are fewer than ``low`` or more than ``high``.
    """
    count = len(call.inputs)
    if not low <= count <= high:
        wanted = str(low) if low == high else f"{low} to {high}"
        noun = "argument" if wanted == "1" else "arguments"
        raise TypeMismatchError(f"{call.callee.range.text} takes {wanted} {noun}, got {count}", call.range)
    return call.inputs


# --------------------------------------------------------------------------------------- iterables


def _range(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    message = "'NoneType' object cannot be interpreted as an integer"
    given = emit_arguments(emitter, call.inputs)
    values = [emitter.present(item.materialize(emitter.graph), item.range, message) for item in given]
    checks = emitter.graph.none_checks
    if checks is not None:
        pairs = zip(values, given, strict=True)
        values = [
            checks.number_as(value, INT, item.range) if is_open_number(value.type) else value for value, item in pairs
        ]
    values = [plain_value(emitter.graph, value, item.range) for value, item in zip(values, given, strict=True)]
    made = RangeValue(call.range, emitter.graph, values)
    if len(values) == 3 and emitter.graph.follows_python:
        _check_step(emitter, values[2], call.range)
    return made


def _check_step(emitter: Emitter, step: Value, range: SourceRange) -> None:
    """Insert the check of a range at its construction: it raises ValueError if the step is 0, even if the range is not
    iterated. Insert nothing if the step is a constant other than 0."""
    known = constant_int(step)
    if known is not None and known != 0:
        return
    _raise_if(
        emitter,
        emitter.insert("aten::eq", range, step, 0),
        "range() arg 3 must not be zero",
        "builtins.ValueError",
        range,
    )


def _raise_if(emitter: Emitter, condition: Value, message: str, error: str, range: SourceRange) -> None:
    node = emitter.insert_node("prim::If", range, [condition], [])
    with emitter.inside(node.add_block()):
        said = [emitter.graph.insert_constant(text, range=range) for text in (message, error)]
        emitter.graph.insert_node(emitter.graph.create("prim::RaiseException", said, outputs=0, range=range))
    node.add_block()


def emit_zip(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    if not call.inputs:
        raise TypeMismatchError("zip takes at least one iterable", call.range)
    strict = False
    for item in call.attributes:
        if item.name.name != "strict" or item.value.tree.kind not in ("true", "false"):
            raise UnsupportedError(f"zip takes no keyword argument '{item.name.name}' here", item.range)
        strict = item.value.tree.kind == "true"
    children = [elements_of(emitter, item) for item in call.inputs]
    if strict:
        _check_lengths(emitter, call.range, children)
    return IterableTree(call.range, emitter.graph, children)


def _check_lengths(emitter: Emitter, range: SourceRange, children: list[SugaredValue]) -> None:
    """Insert the check of ``zip(…, strict=True)``, which raises a ValueError if the lengths differ."""
    first, *others = [child.length(range, emitter.graph) for child in children]
    for other in others:
        node = emitter.insert_node("prim::If", range, [emitter.insert("aten::eq", range, first, other)], [])
        node.add_block()
        with emitter.inside(node.add_block()):
            message = emitter.graph.insert_constant("zip() was given iterables of different lengths", range=range)
            name = emitter.graph.insert_constant("ValueError", range=range)
            emitter.insert_node("prim::RaiseException", range, [message, name], [])


def _enumerate(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    inputs = expect_arguments(emitter, call, 1, 2)
    start = inputs[1] if len(inputs) == 2 else None
    for item in call.attributes:
        if item.name.name != "start" or start is not None:
            raise UnsupportedError(f"enumerate takes no keyword argument '{item.name.name}' here", item.range)
        start = item.value
    end = emitter.literal(MAX_TRIP_COUNT, call.range)
    iterator = elements_of(emitter, inputs[0])
    bounds = [end] if start is None else [emitter.emit_expression(start), end]
    counter = RangeValue(call.range, emitter.graph, bounds, iterator.static_length if iterator.must_unroll else None)
    return IterableTree(call.range, emitter.graph, [counter, iterator])


def _reversed(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    (item,) = expect_arguments(emitter, call, 1, 1)
    source = emitter.emit_sugared(item)
    if isinstance(source, RangeValue):
        return source.reversed(call.range, emitter.graph)
    if source.static_length is not None and not isinstance(source, SimpleValue):
        return SugaredTuple(list(reversed(source.as_tuple(item.range, emitter.graph))))
    value = source.as_value(item.range, emitter.graph)
    if isinstance(value.type, TupleType):
        return SugaredTuple(list(reversed(SimpleValue(value).as_tuple(item.range, emitter.graph))))
    if emitter.graph.follows_python and isinstance(value.type, StringType):
        value = emitter.insert("aten::list", item.range, value)
    if not isinstance(value.type, ListType):
        raise TypeMismatchError(f"reversed takes a list or a tuple, got {value.type.annotation}", item.range)
    return SimpleValue(emitter.insert("aten::slice", call.range, value, None, None, -1))


# -------------------------------------------------------------------------------------- containers


def _list(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    inputs = expect_arguments(emitter, call, 0, 1)
    if not inputs:
        wanted = None if hint is None else without_none(hint)
        if isinstance(wanted, ListType):
            return SimpleValue(emitter.insert_node("prim::ListConstruct", call.range, [], [wanted]).output)
        return SimpleValue(emitter.insert_node("prim::EmptyListLiteral", call.range, [], [ListType(TENSOR)]).output)
    return SimpleValue(list_of(emitter, call.range, emitter.emit_sugared(inputs[0]), hint))


def emit_tuple_call(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    inputs = expect_arguments(emitter, call, 0, 1)
    elements = emitter.emit_sugared(inputs[0]).as_tuple(inputs[0].range, emitter.graph) if inputs else []
    return SimpleValue(SugaredTuple(elements).as_value(call.range, emitter.graph))


def emit_dict_call(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    inputs = expect_arguments(emitter, call, 0, 1)
    expanded = [item for item in call.attributes if item.is_expansion]
    if expanded and len(call.attributes) > 1:
        raise UnsupportedError(
            "dict(…) with '**' beside other keyword arguments raises in Python where a key is given twice, which "
            "is not looked for here",
            expanded[0].range,
            hint="write {'name': value, **others}, where the last of several items with one key counts",
        )
    if inputs:
        source = emitter.emit_sugared(inputs[0])
        if isinstance(source, SimpleValue) and source.value.node.kind == "prim::EmptyListLiteral":
            wanted = without_none(hint) if hint is not None else DictType(STRING, TENSOR)
            made = emitter.insert_node("prim::DictConstruct", call.range, [], [wanted]).output
        elif isinstance(source, SimpleValue) and isinstance(source.value.type, DictType):
            made = call_builtin(emitter, "aten::dict", call.range, source.value)
        else:
            made = dict_of(emitter, call.range, source, hint)
        for item in call.attributes:
            added = emitter.emit_expression(item.value)
            if item.is_expansion:
                call_builtin(emitter, "aten::update", item.range, made, added)
            else:
                key = emitter.graph.insert_constant(item.name.name, range=item.range)
                call_builtin(emitter, "aten::_set_item", item.range, made, key, added)
        return SimpleValue(made)
    return emitter.emit_sugared(literal_of_dict(call), hint=hint)


# ------------------------------------------------------------------------------------------- tasks


def _fork(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    """Emit ``fork(function, arguments…)``."""
    return _deferred(emitter, call, "fork", FutureType)


def _awaitable(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    """Emit ``awaitable(function, arguments…)``."""
    return _deferred(emitter, call, "awaitable", AwaitType)


def _torchs_awaitable(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    """Emit ``torch.jit._awaitable(function, arguments…)``.

    Raises:
        UnsupportedError: there are keyword arguments, which this function drops in Python.
    """
    if call.attributes:
        name = call.attributes[0].name.name
        raise UnsupportedError(
            f"torch.jit._awaitable forgets the keyword argument '{name}' where Python calls it",
            call.attributes[0].range,
            hint="pass it by its position, or use rekindle.awaitable",
        )
    return _deferred(emitter, call, "awaitable", AwaitType)


def _deferred(emitter: Emitter, call: Apply, form: str, type: Callable[[Type], Type]) -> SugaredValue:
    """Emit a call in the block of a node of kind ``prim::<form>`` (``fork`` or ``awaitable``), and return its output, a
    Future or an Await. Arguments are evaluated before the node. The block later becomes a graph of its own.

    Raises:
        TypeMismatchError: the call has no function.
    """
    if not call.inputs:
        raise TypeMismatchError(f"{form} takes a function and its arguments", call.range)
    function, *arguments = call.inputs
    callee = emitter.emit_sugared(function)
    args = emit_arguments(emitter, arguments)
    kwargs = emit_keywords(emitter, call.attributes)
    node = emitter.insert_node(f"prim::{form}", call.range, [], [])
    block = node.add_block()
    with emitter.inside(block):
        result = callee.call(CallSite(call.range, emitter.graph, args, kwargs)).as_value(call.range, emitter.graph)
        block.add_output(result)
    return SimpleValue(node.add_output(type(result.type)))


# ---------------------------------------------------------------------------- attributes and types


def _getattr(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    inputs = expect_arguments(emitter, call, 2, 3)
    name = _literal_name(emitter, inputs[1], "getattr")
    base = emitter.emit_sugared(inputs[0])
    if len(inputs) == 3:
        has_it = base.ask_attribute(call.range, emitter.graph, name)
        if has_it is not None:
            return SimpleValue(_attribute_or(emitter, call, has_it, base, name, inputs[2]))
        if not base.has_attribute(call.range, emitter.graph, name):
            return emitter.emit_sugared(inputs[2])
    return base.attribute(call.range, emitter.graph, name)


def _attribute_or(emitter: Emitter, call: Apply, has_it: Value, base: SugaredValue, name: str, default: Expr) -> Value:
    """Emit ``getattr(base, name, default)`` for an attribute whose existence is known only at run time."""
    range = call.range
    node, true, false = emitter.branch(
        range,
        has_it,
        RefinementSet(),
        lambda: base.attribute(range, emitter.graph, name).as_value(range, emitter.graph),
        lambda: emitter.emit_expression(default, base.attribute_type(name)),
    )
    return node.add_output(join_types(emitter, range, true, false))


def _setattr(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    """Emit ``setattr(base, "name", value)``."""
    inputs = expect_arguments(emitter, call, 3, 3)
    name = _literal_name(emitter, inputs[1], "setattr")
    base = emitter.emit_sugared(inputs[0])
    value = emitter.emit_expression(inputs[2], base.attribute_type(name))
    base.set_attribute(call.range, emitter.graph, name, value)
    return SimpleValue(emitter.graph.insert_constant(None, range=call.range))


def _literal_name(emitter: Emitter, expr: Expr, form: str) -> str:
    if expr.tree.kind != StringLiteral.KIND:
        raise UnsupportedError(f"{form} needs the name as a string literal", expr.range, cause=Cause.DYNAMIC_BEHAVIOUR)
    return StringLiteral(expr.tree).text


def _question(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    form = emitter.emit_sugared(call.callee)
    assert isinstance(form, SpecialForm)
    wanted = 1 if form.name == "callable" else 2
    expect_arguments(emitter, call, wanted, wanted)
    return SimpleValue(emit_question(emitter, form.name, call).value)


def _annotate(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    inputs = expect_arguments(emitter, call, 2, 2)
    type = parse_type_expression(inputs[0], emitter.resolver)
    value = convert_value(emitter.graph, emitter.emit_expression(inputs[1], type), type, call.range)
    if not value.type.is_subtype_of(type):
        raise TypeMismatchError(
            f"annotate declares {type.annotation}, but the value is {value.type.annotation}"
            + mismatch_note(value.type, type),
            call.range,
        )
    if type.is_optional and value.type == NONE:
        # None alone would lose the type that was asked for.
        value = emitter.graph.insert_constant(None, type, call.range)
    return SimpleValue(value)


def _new(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    form = emitter.emit_sugared(call.callee)
    assert isinstance(form, NewObject)
    return SimpleValue(emitter.insert_node("prim::CreateObject", call.range, [], [form.type]).output)


def _uninitialized(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    (item,) = expect_arguments(emitter, call, 1, 1)
    type = parse_type_expression(item, emitter.resolver)
    return SimpleValue(emitter.insert_node("prim::Uninitialized", call.range, [], [type]).output)


def _unchecked_cast(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    inputs = expect_arguments(emitter, call, 2, 2)
    type = parse_type_expression(inputs[0], emitter.resolver)
    value = emitter.emit_expression(inputs[1])
    return SimpleValue(emitter.insert_node("prim::unchecked_cast", call.range, [value], [type]).output)


FORMS: Final[dict[str, FormHandler]] = {
    "range": _range,
    "zip": emit_zip,
    "enumerate": _enumerate,
    "reversed": _reversed,
    "list": _list,
    "tuple": emit_tuple_call,
    "dict": emit_dict_call,
    "getattr": _getattr,
    "setattr": _setattr,
    "hasattr": _question,
    "isinstance": _question,
    "callable": _question,
    "annotate": _annotate,
    "fork": _fork,
    "awaitable": _awaitable,
    "_awaitable": _torchs_awaitable,
    "uninitialized": _uninitialized,
    "__new__": _new,
    "unchecked_cast": _unchecked_cast,
}


def emit_call(emitter: Emitter, call: Apply, targets: int, hint: Type | None) -> SugaredValue:
    callee = emitter.emit_sugared(call.callee)
    function = as_function(callee, emitter.graph)
    if function is not callee:
        name = call.callee_name
        if name is None or not emitter.environment.is_builtin(name, call.callee.range):
            callee = function
    if isinstance(callee, ToList):
        if hint is None and emitter.graph.follows_python:
            tensor = NamedValue(callee.tensor, range=call.range)
            return library_function(TOLIST_OF_ROW).call(CallSite(call.range, emitter.graph, [tensor]))
        return SimpleValue(_emit_tolist(emitter, call, callee.tensor, hint))
    if isinstance(callee, SpecialForm):
        return emit_special_form(emitter, callee, call, hint)
    range = call.callee.range
    if callee.accepts_sugared_args:
        return callee.call_with(range, emitter.graph, *emit_sugared_args(emitter, call), targets)
    if isinstance(callee, BuiltinFunction):
        made = emit_method(emitter, call, callee)
        if made is not None:
            return made if isinstance(made, SugaredValue) else call_method(emitter, call, callee, made, targets)
    try:
        args = emit_arguments(emitter, call.inputs, joins=isinstance(callee, BuiltinFunction))
    except CompileError as error:
        emit_for_errors(emitter, [item.value for item in call.attributes], error, call)
    kwargs = emit_keywords(emitter, call.attributes)
    if isinstance(callee, BuiltinFunction) and callee.self_value is not None:
        learn_from_method(emitter, call, callee.kind, args)
    try:
        return callee.call(CallSite(range, emitter.graph, args, kwargs, targets))
    except SchemaError:
        learn_from_parameters(emitter, call, callee, args)
        raise


def _emit_tolist(emitter: Emitter, call: Apply, tensor: Value, hint: Type | None) -> Value:
    """Emit ``x.tolist()``; the expected type ``hint`` specifies the nesting depth of the lists and their element type.

    Raises:
        UnsupportedError: no type is expected, or not one of nested lists of numbers.
    """
    depth, element = 0, hint
    while isinstance(element, ListType):
        depth, element = depth + 1, element.element
    if hint is None or element not in TOLIST_ELEMENTS:
        raise UnsupportedError(
            "the type of what tolist gives must be declared",
            call.range,
            hint="assign it to an annotated variable, for example: values: List[float] = x.tolist()",
        )
    inputs = [
        tensor,
        emitter.graph.insert_constant(depth, range=call.range),
        emitter.graph.insert_constant(TOLIST_ELEMENTS.index(element), range=call.range),
    ]
    return emitter.insert_node("prim::tolist", call.range, inputs, [hint]).output
