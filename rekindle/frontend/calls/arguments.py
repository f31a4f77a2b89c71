"""Emit the arguments of calls."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from rekindle.errors import Cause, CompileError, SourceRange, TypeMismatchError, UnsupportedError
from rekindle.frontend.emitter import Emitter
from rekindle.frontend.expressions.literals import emit_item, is_open_ended, joined_list
from rekindle.frontend.expressions.primaries import _holds_ints
from rekindle.frontend.inference.error_diagnosis import emit_for_errors
from rekindle.frontend.sugared_values.base import Keywords, SugaredValue
from rekindle.frontend.sugared_values.keyword_arguments import KeywordArguments
from rekindle.frontend.sugared_values.special_forms import GLOBALS
from rekindle.frontend.sugared_values.values import SimpleValue
from rekindle.ir.node import Value
from rekindle.ir.operators.named_value import NamedValue
from rekindle.syntax.keyword_dicts import literal_of_dict
from rekindle.syntax.views import Apply, Attribute, DictLiteral, Expr, ListLiteral, Starred, StringLiteral


def emit_arguments(emitter: Emitter, inputs: Sequence[Expr], *, joins: bool = False) -> list[NamedValue]:
    """Emit positional arguments, and return their values. If ``joins``, and one of them expands a list of ints of
    unknown length, return a single list of all of them, as for an operator that takes sizes.

    Raises:
        CompileError: an argument cannot be compiled. Errors in the arguments after it are recorded too.
    """
    joined = _joined_sizes(emitter, inputs) if joins else None
    if joined is not None:
        return [emitter.argument(joined, inputs[0].range)]
    arguments: list[NamedValue] = []
    for index, item in enumerate(inputs):
        try:
            known = emitter.starred.pop(id(item.tree), None)
            if item.tree.kind == Starred.KIND:
                elements = (known or emitter.emit_sugared(Starred(item.tree).value)).as_tuple(item.range, emitter.graph)
                arguments += [
                    emitter.argument(element.as_value(item.range, emitter.graph), item.range) for element in elements
                ]
            else:
                value = emitter.emit_expression(item) if known is None else known.as_value(item.range, emitter.graph)
                arguments.append(emitter.argument(value, item.range))
        except CompileError as error:
            emit_for_errors(emitter, inputs[index + 1 :], error, item)
    return arguments


def _joined_sizes(emitter: Emitter, inputs: Sequence[Expr]) -> Value | None:
    """Return one list of all arguments, if lists of ints whose lengths are known only at run time are among them; None
    otherwise."""
    expanded = [item for item in inputs if item.tree.kind == Starred.KIND]
    if not expanded:
        return None
    try:
        for item in inputs:
            emit_item(emitter, item, None)
    except CompileError:
        return None  # reported when the arguments are emitted one by one
    lists = [emitter.starred[id(item.tree)] for item in expanded if is_open_ended(emitter, item)]
    if not lists or not all(isinstance(x, SimpleValue) and _holds_ints(x.value.type) for x in lists):
        return None
    return joined_list(emitter, ListLiteral.create(inputs[0].range, list(inputs)), inputs, None)


def emit_sugared_args(emitter: Emitter, call: Apply) -> tuple[list[SugaredValue], dict[str, SugaredValue]]:
    """Emit the arguments of a call; return the positional ones, and those by name, as sugared values.

    Raises:
        TypeMismatchError: an argument is passed twice by name.
        UnsupportedError: the keys of a ``**`` argument are not known at compile time.
    """
    args: list[SugaredValue] = []
    named: dict[str, SugaredValue] = {}
    for item in call.inputs:
        if item.tree.kind == Starred.KIND:
            args += emitter.emit_sugared(Starred(item.tree).value).as_tuple(item.range, emitter.graph)
        else:
            args.append(emitter.emit_sugared(item))
    for attribute in call.attributes:
        if attribute.is_expansion:
            found = _expanded(emitter, attribute.value)
        else:
            found = {attribute.name.name: emitter.emit_sugared(attribute.value)}
        _check_once(found, named, attribute.range)
        named.update(found)
    return args, named


def _check_once(names: Iterable[str], known: Container[str | None], range: SourceRange) -> None:
    twice = next((name for name in names if name in known), None)
    if twice is not None:
        raise TypeMismatchError(f"the keyword argument '{twice}' is given twice", range)


def _expanded(emitter: Emitter, expr: Expr) -> Keywords:
    """Return the keyword arguments that ``**expr`` of a call passes.

    Raises:
        UnsupportedError: its keys are not known at compile time.
    """
    call = Apply(expr.tree) if expr.tree.kind == Apply.KIND else None
    if call is not None and call.callee_name == "dict" and not call.inputs:
        if emitter.emit_sugared(call.callee) is GLOBALS["dict"]:
            expr = literal_of_dict(call)
    if expr.tree.kind == DictLiteral.KIND:
        literal = DictLiteral(expr.tree)
        if all(key.tree.kind == StringLiteral.KIND for key in literal.keys):
            pairs = zip(literal.keys, literal.values, strict=True)
            return {StringLiteral(key.tree).text: emitter.emit_sugared(value) for key, value in pairs}
    found = emitter.emit_sugared(expr)
    if isinstance(found, KeywordArguments):
        return found.items
    raise UnsupportedError(
        f"{found.description} cannot be expanded to keyword arguments: its keys are known only when the program runs",
        expr.range,
        hint="name each keyword argument",
        cause=Cause.DYNAMIC_BEHAVIOUR,
    )


def emit_keywords(emitter: Emitter, attributes: Sequence[Attribute]) -> list[NamedValue]:
    """Emit keyword arguments, and return their values.

    Raises:
        TypeMismatchError: an argument is passed twice by name.
        CompileError: an argument cannot be compiled. Errors in the arguments after it are recorded too.
    """
    arguments: list[NamedValue] = []
    for index, item in enumerate(attributes):
        known = [argument.name for argument in arguments]
        if item.is_expansion:
            expanded = _expanded(emitter, item.value)
            _check_once(expanded, known, item.range)
            arguments += [
                NamedValue(value.as_value(item.range, emitter.graph), range=item.range, name=name)
                for name, value in expanded.items()
            ]
            continue
        _check_once([item.name.name], known, item.range)
        try:
            value = emitter.emit_expression(item.value)
        except CompileError as error:
            emit_for_errors(emitter, [other.value for other in attributes[index + 1 :]], error, item.value)
        arguments.append(NamedValue(value, range=item.range, name=item.name.name))
    return arguments
