"""Calls of ``itertools``, ``heapq``, ``bisect``, ``functools`` and ``operator`` whose arguments the compiler looks at.

What they make lists of is a list here at once; what has no end is gone over where a loop stops it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from rekindle.errors import SourceRange, TypeMismatchError, UnsupportedError
from rekindle.frontend.endless import CountValue, CycleValue, Endless, RepeatValue, TakenValue
from rekindle.frontend.getters import ComparedBy, Getter, MethodCaller
from rekindle.frontend.higher_order import HigherOrderEmitter, MappedValue
from rekindle.frontend.insertion import constant_int
from rekindle.frontend.iterables import IterableTree, RangeValue
from rekindle.frontend.library import library_function
from rekindle.frontend.special_forms import SpecialForm
from rekindle.frontend.sugared import Keywords, SugaredValue
from rekindle.frontend.values import SimpleValue, SugaredTuple
from rekindle.ir.attributes import constant_value
from rekindle.ir.graph import Value
from rekindle.ir.types import NoneType, Type
from rekindle.syntax.views import Apply

_WITH_A_KEY: Final = {
    **{name: f"{name}_by" for name in ("nlargest", "nsmallest")},
    **{name: f"{name}_by" for name in ("bisect_left", "bisect_right", "insort_left", "insort_right")},
}
"""Functions that take a key, and those that look at it."""

_LAZY: Final = (MappedValue, IterableTree, RangeValue, Endless, TakenValue)


class IterationEmitter(HigherOrderEmitter):
    """Emits calls of functions that go over what they are given."""

    def _form_of(self, call: Apply) -> str:
        form = self.emit_sugared(call.callee)
        assert isinstance(form, SpecialForm)
        return form.name

    def _call_library(
        self, call: Apply, name: str, *args: SugaredValue, kwargs: Keywords | None = None
    ) -> SugaredValue:
        return library_function(name).call_with(call.range, self.graph, args, kwargs or {})

    def _as_list(self, item: SugaredValue, range: SourceRange) -> SimpleValue:
        return SimpleValue(self.list_from(item, range))

    def _bound(self, call: Apply, *names: str) -> dict[str, SugaredValue]:
        """What a call of Python's function with these parameters is given, by their names."""
        args, kwargs = self.emit_meanings(call)
        if len(args) > len(names):
            raise TypeMismatchError(
                f"{call.callee.range.text} takes at most {len(names)} arguments, got {len(args)}", call.range
            )
        found = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            if name not in names or name in found:
                raise UnsupportedError(f"{call.callee.range.text} takes no keyword argument '{name}' here", call.range)
            found[name] = value
        return found

    def _number(self, call: Apply, value: SugaredValue | None, what: str) -> int:
        """The constant that an argument is."""
        number = None if value is None else constant_int(value.as_value(call.range, self.graph))
        if number is None:
            raise UnsupportedError(
                f"{what} of {call.callee.range.text} must be a constant: it is the length of the tuples", call.range
            )
        return number

    def _if_iterable(self, item: SugaredValue, range: SourceRange) -> SugaredValue:
        """What the compiler alone can iterate over, as a list; anything else as it is."""
        return SimpleValue(self.list_of(range, item, None)) if isinstance(item, _LAZY) else item

    def _library(self, call: Apply, hint: Type | None) -> SugaredValue:
        """A function of the library whose arguments may be any iterables."""
        name = self._form_of(call)
        args, kwargs = self.emit_meanings(call)
        lists = [self._if_iterable(item, call.range) for item in args]
        key = kwargs.pop("key", None)
        if key is not None and not _is_none(key):
            if name.startswith(("bisect", "insort")):
                defaults = (self.literal(0, call.range), self.graph.insert_constant(None, range=call.range))
                for option, value in zip(("lo", "hi"), defaults, strict=True):
                    if len(lists) < 4:
                        lists.append(kwargs.pop(option, SimpleValue(value)))
            return self._call_library(call, _WITH_A_KEY[name], *lists, key, kwargs=kwargs)
        return self._call_library(call, name, *lists, kwargs=kwargs)

    # ------------------------------------------------------------------------------------------------------- itertools

    def _accumulate(self, call: Apply, hint: Type | None) -> SugaredValue:
        given = self._bound(call, "iterable", "func", "initial")
        xs = self._as_list(given["iterable"], call.range)
        function = given.get("func")
        if function is None or _is_none(function):
            function = library_function("plus")
        initial = given.get("initial")
        if initial is None or _is_none(initial):
            return self._call_library(call, "accumulate", xs, function)
        return self._call_library(call, "accumulate_from", xs, function, initial)

    def _chain(self, call: Apply, hint: Type | None) -> SugaredValue:
        if not call.inputs:
            raise TypeMismatchError("chain takes at least one iterable", call.range)
        args, _ = self.emit_meanings(call)
        first, *rest = [self.list_from(item, call.range) for item in args]
        for other in rest:
            first = self.call_builtin("aten::add", call.range, first, other)
        return SimpleValue(first)

    def _product(self, call: Apply, hint: Type | None) -> SugaredValue:
        args, kwargs = self.emit_meanings(call)
        repeat = kwargs.pop("repeat", None)
        times = 1 if repeat is None else self._number(call, repeat, "'repeat'")
        if kwargs or not args or times < 1:
            raise UnsupportedError("product takes one iterable or more, and 'repeat'", call.range)
        lists = [self._as_list(item, call.range) for item in args] * times
        return self._call_library(call, f"product{len(lists)}", *lists)

    def _combinations(self, call: Apply, hint: Type | None) -> SugaredValue:
        """``combinations(xs, 2)``, ``permutations(xs, 3)`` and the like"""
        given = self._bound(call, "iterable", "r")
        if "iterable" not in given:
            raise TypeMismatchError(f"{call.callee.range.text} takes an iterable", call.range)
        count = self._number(call, given.get("r"), "the second argument")
        if count < 1:
            raise UnsupportedError(f"{call.callee.range.text} takes at least one at a time here", call.range)
        return self._call_library(call, f"{self._form_of(call)}{count}", self._as_list(given["iterable"], call.range))

    def _count(self, call: Apply, hint: Type | None) -> SugaredValue:
        given = self._bound(call, "start", "step")
        start, step = (
            given[name].as_value(call.range, self.graph) if name in given else self.literal(default, call.range)
            for name, default in (("start", 0), ("step", 1))
        )
        return CountValue(start, step)

    def _cycle(self, call: Apply, hint: Type | None) -> SugaredValue:
        (source,) = self._expect(call, 1, 1)
        return CycleValue(self.list_from(self.emit_sugared(source), call.range))

    def _repeat(self, call: Apply, hint: Type | None) -> SugaredValue:
        given = self._bound(call, "object", "times")
        if "times" in given:
            return self._call_library(call, "repeat", given["object"], given["times"])
        return RepeatValue(given["object"])

    def _islice(self, call: Apply, hint: Type | None) -> SugaredValue:
        source, *bounds = self.emit_meanings(call)[0]
        nothing = SimpleValue(self.graph.insert_constant(None, range=call.range))
        if not 1 <= len(bounds) <= 3:
            raise TypeMismatchError("islice takes an iterable, and where to stop", call.range)
        start, stop = (nothing, bounds[0]) if len(bounds) == 1 else bounds[:2]
        step: SugaredValue = bounds[2] if len(bounds) == 3 else nothing
        if _is_none(step):
            step = SimpleValue(self.literal(1, call.range))
        if not isinstance(source, _LAZY) or source.must_unroll:
            return self._call_library(call, "islice", self._as_list(source, call.range), start, stop, step)
        if _is_none(start):
            start = SimpleValue(self.literal(0, call.range))
        if _is_none(stop):
            stop = SimpleValue(source.length(call.range, self.graph))
        return TakenValue(source, [item.as_value(call.range, self.graph) for item in (start, stop, step)])

    def _starmap(self, call: Apply, hint: Type | None) -> SugaredValue:
        function, source = self._expect(call, 2, 2)
        items = self.emit_sugared(source).iterator(source.range, self.graph)
        return MappedValue(self, self.emit_sugared(function), items, spread=True)

    def _filterfalse(self, call: Apply, hint: Type | None) -> SugaredValue:
        function, source = self._expect(call, 2, 2)
        predicate: SugaredValue = library_function("operator_truth")
        if function.tree.kind != "none":
            predicate = self.emit_sugared(function)
        return self._call_library(call, "filterfalse", predicate, self._as_list(self.emit_sugared(source), call.range))

    def _compress(self, call: Apply, hint: Type | None) -> SugaredValue:
        given = self._bound(call, "data", "selectors")
        return self._call_library(call, "compress", *(self._as_list(item, call.range) for item in given.values()))

    def _zip_longest(self, call: Apply, hint: Type | None) -> SugaredValue:
        args, kwargs = self.emit_meanings(call)
        fill = kwargs.pop("fillvalue", SimpleValue(self.graph.insert_constant(None, range=call.range)))
        if kwargs or not 2 <= len(args) <= 3:
            raise UnsupportedError("zip_longest takes two or three iterables, and 'fillvalue'", call.range)
        lists = [self._as_list(item, call.range) for item in args]
        return self._call_library(call, f"zip_longest{len(lists)}", *lists, fill)

    def _groupby(self, call: Apply, hint: Type | None) -> SugaredValue:
        """A list of keys, each with the list of its elements."""
        given = self._bound(call, "iterable", "key")
        xs = self.list_from(given["iterable"], call.range)
        key = given.get("key")
        keys = self.keys_of(xs, None if key is None or _is_none(key) else key, call.range)
        return self._call_library(call, "groupby", SimpleValue(xs), SimpleValue(keys))

    def _tee(self, call: Apply, hint: Type | None) -> SugaredValue:
        given = self._bound(call, "iterable", "n")
        times = self._number(call, given["n"], "'n'") if "n" in given else 2
        return SugaredTuple([self._as_list(given["iterable"], call.range)] * times)

    def _prod(self, call: Apply, hint: Type | None) -> SugaredValue:
        """``math.prod(xs, start=…)``"""
        given = self._bound(call, "iterable", "start")
        xs = self._as_list(given["iterable"], call.range)
        if "start" in given:
            return self._call_library(call, "prod_from", xs, given["start"])
        return self._call_library(call, "prod", xs)

    def _from_keys(self, call: Apply, hint: Type | None) -> SugaredValue:
        """``dict.fromkeys(keys, value)``"""
        keys, value = self._expect(call, 2, 2)
        xs = self._as_list(self.emit_sugared(keys), keys.range)
        return self._call_library(call, "dict_from_keys", xs, SimpleValue(self.emit_expression(value)))

    # ------------------------------------------------------------------------------------------------ heapq, functools

    def _merge(self, call: Apply, hint: Type | None) -> SugaredValue:
        args, kwargs = self.emit_meanings(call)
        reverse = kwargs.pop("reverse", SimpleValue(self.graph.insert_constant(False, range=call.range)))
        key = kwargs.pop("key", None)
        if kwargs or not args or (key is not None and not _is_none(key)):
            raise UnsupportedError("merge takes one iterable or more, and 'reverse'", call.range)
        first: SugaredValue
        first, *others = [self._as_list(item, call.range) for item in args]
        for other in others:
            first = self._call_library(call, "merge_two", first, other, reverse)
        return first

    def _cmp_to_key(self, call: Apply, hint: Type | None) -> SugaredValue:
        (function,) = self._expect(call, 1, 1)
        return ComparedBy(self.emit_sugared(function))

    # -------------------------------------------------------------------------------------------------------- operator

    def _getter(self, call: Apply, hint: Type | None) -> SugaredValue:
        """``itemgetter(0, 1)``, ``attrgetter("name")``"""
        name = self._form_of(call)
        keys = [self._constant(item.as_value(call.range, self.graph), call) for item in self.emit_meanings(call)[0]]
        if not keys:
            raise TypeMismatchError(f"{name} takes at least one argument", call.range)
        return Getter(name, keys)

    def _method_caller(self, call: Apply, hint: Type | None) -> SugaredValue:
        args, kwargs = self.emit_meanings(call)
        if not args:
            raise TypeMismatchError("methodcaller takes the name of a method", call.range)
        name = self._constant(args[0].as_value(call.range, self.graph), call)
        return MethodCaller(str(name), args[1:], kwargs)

    def _constant(self, value: Value, call: Apply) -> object:
        if value.node.kind != "prim::Constant":
            raise UnsupportedError(f"what {call.callee.range.text} is given must be constants", call.range)
        return constant_value(value.node.attributes.get("value"), value.type)

    _FORMS: ClassVar[dict[str, Callable[[Any, Apply, Type | None], SugaredValue]]] = {
        **HigherOrderEmitter._FORMS,
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
