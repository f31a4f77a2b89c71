"""Emit calls of ``itertools``, ``heapq``, ``bisect``, ``functools`` and ``operator`` whose arguments the compiler
inspects.

Finite iterators are lists here, which are computed at the call, except for ``starmap``, and ``islice`` of a lazy
iterable. These and infinite ones are computed by the loop that iterates over them.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from rekindle.errors import SourceRange, TypeMismatchError, UnsupportedError
from rekindle.frontend.calls.arguments import emit_sugared_args
from rekindle.frontend.calls.insertion import constant_int
from rekindle.frontend.calls.special_calls import expect_arguments
from rekindle.frontend.emitter import Emitter, FormHandler
from rekindle.frontend.expressions.primaries import call_builtin
from rekindle.frontend.expressions.unordered import list_from
from rekindle.frontend.python.getters import ComparedBy, Getter, MethodCaller
from rekindle.frontend.python.higher_order import MappedValue, keys_of
from rekindle.frontend.python.library import library_function
from rekindle.frontend.statements.loops import list_of
from rekindle.frontend.sugared_values.base import Keywords, SugaredValue
from rekindle.frontend.sugared_values.infinite_iterators import (
    CountValue,
    CycleValue,
    InfiniteIterator,
    IsliceValue,
    RepeatValue,
)
from rekindle.frontend.sugared_values.iterables import IterableTree, RangeValue
from rekindle.frontend.sugared_values.special_forms import SpecialForm
from rekindle.frontend.sugared_values.values import SimpleValue, SugaredTuple
from rekindle.ir.graph import Value
from rekindle.ir.types import NoneType, Type
from rekindle.syntax.views import Apply

_WITH_A_KEY: Final = {
    **{name: f"{name}_by" for name in ("nlargest", "nsmallest")},
    **{name: f"{name}_by" for name in ("bisect_left", "bisect_right", "insort_left", "insort_right")},
}
"""Prelude functions that implement calls with a ``key``, by the name of the function."""

_LAZY: Final = (MappedValue, IterableTree, RangeValue, InfiniteIterator, IsliceValue)


def _form_of(emitter: Emitter, call: Apply) -> str:
    form = emitter.emit_sugared(call.callee)
    assert isinstance(form, SpecialForm)
    return form.name


def _call_library(
    emitter: Emitter, call: Apply, name: str, *args: SugaredValue, kwargs: Keywords | None = None
) -> SugaredValue:
    return library_function(name).call_with(call.range, emitter.graph, args, kwargs or {})


def _as_list(emitter: Emitter, item: SugaredValue, range: SourceRange) -> SimpleValue:
    return SimpleValue(list_from(emitter, item, range))


def _bound(emitter: Emitter, call: Apply, *names: str, required: int = 0) -> dict[str, SugaredValue]:
    """Emit the arguments of a call, and return them by name, for a Python function with the parameters ``names``, of
    which the first ``required`` have no default.

    Raises:
        TypeMismatchError: there are more positional arguments than parameters, or a required one is missing.
        UnsupportedError: a keyword argument has another name, or that of a positional one.
    """
    args, kwargs = emit_sugared_args(emitter, call)
    if len(args) > len(names):
        raise TypeMismatchError(
            f"{call.callee.range.text} takes at most {len(names)} arguments, got {len(args)}", call.range
        )
    found = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name not in names or name in found:
            raise UnsupportedError(f"{call.callee.range.text} takes no keyword argument '{name}' here", call.range)
        found[name] = value
    missing = next((name for name in names[:required] if name not in found), None)
    if missing is not None:
        raise TypeMismatchError(f"{call.callee.range.text} needs an argument for '{missing}'", call.range)
    return found


def _number(emitter: Emitter, call: Apply, value: SugaredValue | None, what: str) -> int:
    """Return the constant int in an argument; ``what`` names the argument in errors.

    Raises:
        UnsupportedError: the argument is missing or not a constant int.
    """
    number = None if value is None else constant_int(value.as_value(call.range, emitter.graph))
    if number is None:
        raise UnsupportedError(
            f"{what} of {call.callee.range.text} must be a constant: it is the length of the tuples", call.range
        )
    return number


def _if_iterable(emitter: Emitter, item: SugaredValue, range: SourceRange) -> SugaredValue:
    """Emit the conversion of a lazy iterable, such as a range or ``map``, to a list, and return it; return other values
    unchanged."""
    return SimpleValue(list_of(emitter, range, item, None)) if isinstance(item, _LAZY) else item


def _library(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    """Emit a call of a prelude function whose arguments may be any iterables."""
    name = _form_of(emitter, call)
    args, kwargs = emit_sugared_args(emitter, call)
    lists = [_if_iterable(emitter, item, call.range) for item in args]
    key = kwargs.pop("key", None)
    if key is not None and not _is_none(key):
        if name.startswith(("bisect", "insort")):
            defaults = (emitter.literal(0, call.range), emitter.graph.insert_constant(None, range=call.range))
            for option, value in zip(("lo", "hi"), defaults, strict=True):
                if len(lists) < 4:
                    lists.append(kwargs.pop(option, SimpleValue(value)))
        return _call_library(emitter, call, _WITH_A_KEY[name], *lists, key, kwargs=kwargs)
    return _call_library(emitter, call, name, *lists, kwargs=kwargs)


# ------------------------------------------------------------------------------------------------------- itertools


def _accumulate(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    given = _bound(emitter, call, "iterable", "func", "initial", required=1)
    xs = _as_list(emitter, given["iterable"], call.range)
    function = given.get("func")
    if function is None or _is_none(function):
        function = library_function("plus")
    initial = given.get("initial")
    if initial is None or _is_none(initial):
        return _call_library(emitter, call, "accumulate", xs, function)
    return _call_library(emitter, call, "accumulate_from", xs, function, initial)


def _chain(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    if not call.inputs:
        raise TypeMismatchError("chain takes at least one iterable", call.range)
    args, _ = emit_sugared_args(emitter, call)
    first, *rest = [list_from(emitter, item, call.range) for item in args]
    for other in rest:
        first = call_builtin(emitter, "aten::add", call.range, first, other)
    return SimpleValue(first)


def _product(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    args, kwargs = emit_sugared_args(emitter, call)
    repeat = kwargs.pop("repeat", None)
    times = 1 if repeat is None else _number(emitter, call, repeat, "'repeat'")
    if kwargs or not args or times < 1:
        raise UnsupportedError("product takes one iterable or more, and 'repeat'", call.range)
    lists = [_as_list(emitter, item, call.range) for item in args] * times
    return _call_library(emitter, call, f"product{len(lists)}", *lists)


def _combinations(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    """Emit ``combinations(xs, 2)``, ``permutations(xs, 3)`` and similar functions of itertools.

    Raises:
        TypeMismatchError: the iterable is missing.
        UnsupportedError: the length is less than 1, or not a constant.
    """
    given = _bound(emitter, call, "iterable", "r", required=1)
    count = _number(emitter, call, given.get("r"), "the second argument")
    if count < 1:
        raise UnsupportedError(f"{call.callee.range.text} takes at least one at a time here", call.range)
    return _call_library(
        emitter, call, f"{_form_of(emitter, call)}{count}", _as_list(emitter, given["iterable"], call.range)
    )


def _count(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    given = _bound(emitter, call, "start", "step")
    start, step = (
        given[name].as_value(call.range, emitter.graph) if name in given else emitter.literal(default, call.range)
        for name, default in (("start", 0), ("step", 1))
    )
    return CountValue(start, step, partial(_call_library, emitter, call, "counted"))


def _cycle(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    (source,) = expect_arguments(emitter, call, 1, 1)
    return CycleValue(list_from(emitter, emitter.emit_sugared(source), call.range))


def _repeat(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    given = _bound(emitter, call, "object", "times", required=1)
    if "times" in given:
        return _call_library(emitter, call, "repeat", given["object"], given["times"])
    return RepeatValue(given["object"])


def _islice(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    source, *bounds = emit_sugared_args(emitter, call)[0]
    nothing = SimpleValue(emitter.graph.insert_constant(None, range=call.range))
    if not 1 <= len(bounds) <= 3:
        raise TypeMismatchError("islice takes an iterable, and where to stop", call.range)
    start, stop = (nothing, bounds[0]) if len(bounds) == 1 else bounds[:2]
    step: SugaredValue = bounds[2] if len(bounds) == 3 else nothing
    if _is_none(step):
        step = SimpleValue(emitter.literal(1, call.range))
    only_stop = SimpleValue(emitter.graph.insert_constant(len(bounds) == 1, range=call.range))
    _call_library(emitter, call, "check_islice", start, stop, step, only_stop)
    if not isinstance(source, _LAZY) or source.must_unroll:
        return _call_library(emitter, call, "islice", _as_list(emitter, source, call.range), start, stop, step)
    if _is_none(start):
        start = SimpleValue(emitter.literal(0, call.range))
    if _is_none(stop):
        stop = SimpleValue(source.length(call.range, emitter.graph))
    return IsliceValue(source, [item.as_value(call.range, emitter.graph) for item in (start, stop, step)])


def _starmap(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    function, source = expect_arguments(emitter, call, 2, 2)
    items = emitter.emit_sugared(source).iterator(source.range, emitter.graph)
    return MappedValue(emitter, emitter.emit_sugared(function), items, spread=True)


def _filterfalse(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    function, source = expect_arguments(emitter, call, 2, 2)
    predicate: SugaredValue = library_function("operator_truth")
    if function.tree.kind != "none":
        predicate = emitter.emit_sugared(function)
    return _call_library(
        emitter, call, "filterfalse", predicate, _as_list(emitter, emitter.emit_sugared(source), call.range)
    )


def _compress(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    given = _bound(emitter, call, "data", "selectors", required=2)
    lists = {name: _as_list(emitter, item, call.range) for name, item in given.items()}
    return _call_library(emitter, call, "compress", lists["data"], lists["selectors"])


def _zip_longest(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    args, kwargs = emit_sugared_args(emitter, call)
    fill = kwargs.pop("fillvalue", SimpleValue(emitter.graph.insert_constant(None, range=call.range)))
    if kwargs or not 2 <= len(args) <= 3:
        raise UnsupportedError("zip_longest takes two or three iterables, and 'fillvalue'", call.range)
    lists = [_as_list(emitter, item, call.range) for item in args]
    return _call_library(emitter, call, f"zip_longest{len(lists)}", *lists, fill)


def _groupby(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    """Emit ``itertools.groupby`` as a list of pairs of a key and the list of its elements."""
    given = _bound(emitter, call, "iterable", "key", required=1)
    xs = list_from(emitter, given["iterable"], call.range)
    key = given.get("key")
    keys = keys_of(emitter, xs, None if key is None or _is_none(key) else key, call.range)
    return _call_library(emitter, call, "groupby", SimpleValue(xs), SimpleValue(keys))


def _tee(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    given = _bound(emitter, call, "iterable", "n", required=1)
    times = _number(emitter, call, given["n"], "'n'") if "n" in given else 2
    return SugaredTuple([_as_list(emitter, given["iterable"], call.range)] * times)


def _prod(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    """Emit ``math.prod(xs, start=…)``."""
    given = _bound(emitter, call, "iterable", "start", required=1)
    xs = _as_list(emitter, given["iterable"], call.range)
    if "start" in given:
        return _call_library(emitter, call, "prod_from", xs, given["start"])
    return _call_library(emitter, call, "prod", xs)


def _from_keys(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    """Emit ``dict.fromkeys(keys, value)``."""
    keys, *value = expect_arguments(emitter, call, 1, 2)
    xs = _as_list(emitter, emitter.emit_sugared(keys), keys.range)
    values = [SimpleValue(emitter.emit_expression(item)) for item in value]
    return _call_library(emitter, call, "dict_from_keys", xs, *values)


# ------------------------------------------------------------------------------------------------ heapq, functools


def _merge(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    args, kwargs = emit_sugared_args(emitter, call)
    reverse = kwargs.pop("reverse", SimpleValue(emitter.graph.insert_constant(False, range=call.range)))
    key = kwargs.pop("key", None)
    if kwargs or not args or (key is not None and not _is_none(key)):
        raise UnsupportedError("merge takes one iterable or more, and 'reverse'", call.range)
    first: SugaredValue
    first, *others = [_as_list(emitter, item, call.range) for item in args]
    for other in others:
        first = _call_library(emitter, call, "merge_two", first, other, reverse)
    return first


def _cmp_to_key(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    (function,) = expect_arguments(emitter, call, 1, 1)
    return ComparedBy(emitter.emit_sugared(function))


# -------------------------------------------------------------------------------------------------------- operator


def _getter(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    """Emit ``itemgetter(0, 1)`` or ``attrgetter("name")``.

    Raises:
        TypeMismatchError: the call has no argument.
        UnsupportedError: an argument is not a constant.
    """
    name = _form_of(emitter, call)
    keys = [
        _constant(emitter, item.as_value(call.range, emitter.graph), call)
        for item in emit_sugared_args(emitter, call)[0]
    ]
    if not keys:
        raise TypeMismatchError(f"{name} takes at least one argument", call.range)
    return Getter(name, keys)


def _method_caller(emitter: Emitter, call: Apply, hint: Type | None) -> SugaredValue:
    args, kwargs = emit_sugared_args(emitter, call)
    if not args:
        raise TypeMismatchError("methodcaller takes the name of a method", call.range)
    name = _constant(emitter, args[0].as_value(call.range, emitter.graph), call)
    return MethodCaller(str(name), args[1:], kwargs)


def _constant(emitter: Emitter, value: Value, call: Apply) -> object:
    if value.node.kind != "prim::Constant":
        raise UnsupportedError(f"what {call.callee.range.text} is given must be constants", call.range)
    return value.to_python()


FORMS: Final[dict[str, FormHandler]] = {
    "accumulate": _accumulate,
    "chain": _chain,
    "product": _product,
    **dict.fromkeys(("combinations", "permutations", "combinations_with_replacement"), _combinations),
    "count": _count,
    "cycle": _cycle,
    "repeat": _repeat,
    "islice": _islice,
    "starmap": _starmap,
    "filterfalse": _filterfalse,
    "compress": _compress,
    "zip_longest": _zip_longest,
    "groupby": _groupby,
    "tee": _tee,
    "fromkeys": _from_keys,
    "merge": _merge,
    "cmp_to_key": _cmp_to_key,
    "itemgetter": _getter,
    "attrgetter": _getter,
    "methodcaller": _method_caller,
    **dict.fromkeys(("pairwise", "takewhile", "dropwhile", "chain_from_iterable"), _library),
    **dict.fromkeys(("heappush", "heappop", "heapify", "heapreplace", "heappushpop"), _library),
    **dict.fromkeys(("nlargest", "nsmallest", "dist", "fsum"), _library),
    "prod": _prod,
    **dict.fromkeys(("bisect_left", "bisect_right", "insort_left", "insort_right"), _library),
}


def _is_none(value: SugaredValue) -> bool:
    return isinstance(value, SimpleValue) and isinstance(value.value.type, NoneType)
