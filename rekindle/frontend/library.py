"""Functions of Python's library, written as programs: each is compiled for what its calls give it.

They are what Python's are but for the classes of their errors where the operators that they use raise others.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Final

from rekindle.errors import Source, SourceRange
from rekindle.frontend.generic import GenericFunction
from rekindle.frontend.signatures import literal_value
from rekindle.frontend.sugared import Call, EmptyResolver, Keywords, StaticValue, SugaredValue
from rekindle.frontend.values import BuiltinFunction, SimpleValue
from rekindle.ir.graph import Graph
from rekindle.syntax.parser import parse_module
from rekindle.syntax.views import Def

SORTING: Final = """
def sorted_by(xs, keys, reverse):
    order = list(range(len(xs)))
    width = 1
    while width < len(order):
        merged: List[int] = []
        start = 0
        while start < len(order):
            middle = min(start + width, len(order))
            end = min(start + 2 * width, len(order))
            left = start
            right = middle
            while left < middle and right < end:
                a = keys[order[left]]
                b = keys[order[right]]
                if (a < b) if reverse else (b < a):
                    merged.append(order[right])
                    right += 1
                else:
                    merged.append(order[left])
                    left += 1
            merged.extend(order[left:middle])
            merged.extend(order[right:end])
            start = end
        order = merged
        width = 2 * width
    return [xs[i] for i in order]

def first_by(xs, keys, largest, what):
    if len(xs) == 0:
        raise ValueError(what)
    best = 0
    for i in range(1, len(xs)):
        if (keys[best] < keys[i]) if largest else (keys[i] < keys[best]):
            best = i
    return xs[best]
"""

FUNCTOOLS: Final = """
def reduce_from(f, xs, initial):
    result = initial
    for x in xs:
        result = f(result, x)
    return result

def reduce(f, xs):
    if len(xs) == 0:
        raise TypeError("reduce() of empty iterable with no initial value")
    result = xs[0]
    for i in range(1, len(xs)):
        result = f(result, xs[i])
    return result
"""

HEAPQ: Final = """
def _rise(heap, top: int, at: int):
    item = heap[at]
    place = at
    above = (place - 1) // 2
    while place > top and item < heap[above]:
        heap[place] = heap[above]
        place = above
        above = (place - 1) // 2
    heap[place] = item

def _sink(heap, at: int):
    item = heap[at]
    place = at
    while 2 * place + 1 < len(heap):
        below = 2 * place + 1
        if below + 1 < len(heap) and not (heap[below] < heap[below + 1]):
            below += 1
        heap[place] = heap[below]
        place = below
    heap[place] = item
    _rise(heap, at, place)

def heappush(heap, item):
    heap.append(item)
    _rise(heap, 0, len(heap) - 1)

def heappop(heap):
    if len(heap) == 0:
        raise IndexError("index out of range")
    result = heap.pop()
    if len(heap) > 0:
        last = result
        result = heap[0]
        heap[0] = last
        _sink(heap, 0)
    return result

def heapify(x):
    for i in range(len(x) // 2):
        _sink(x, len(x) // 2 - 1 - i)

def heapreplace(heap, item):
    if len(heap) == 0:
        raise IndexError("index out of range")
    result = heap[0]
    heap[0] = item
    _sink(heap, 0)
    return result

def heappushpop(heap, item):
    result = item
    if len(heap) > 0 and heap[0] < item:
        result = heap[0]
        heap[0] = item
        _sink(heap, 0)
    return result

def nlargest(n: int, iterable):
    return sorted(iterable, reverse=True)[:max(n, 0)]

def nsmallest(n: int, iterable):
    return sorted(iterable)[:max(n, 0)]
"""

BISECT: Final = """
def bisect_right(a, x, lo: int = 0, hi: Optional[int] = None):
    if lo < 0:
        raise ValueError("lo must be non-negative")
    low = lo
    high = len(a) if hi is None else hi
    while low < high:
        mid = (low + high) // 2
        if x < a[mid]:
            high = mid
        else:
            low = mid + 1
    return low

def bisect_left(a, x, lo: int = 0, hi: Optional[int] = None):
    if lo < 0:
        raise ValueError("lo must be non-negative")
    low = lo
    high = len(a) if hi is None else hi
    while low < high:
        mid = (low + high) // 2
        if a[mid] < x:
            low = mid + 1
        else:
            high = mid
    return low

def insort_right(a, x, lo: int = 0, hi: Optional[int] = None):
    a.insert(bisect_right(a, x, lo, hi), x)

def insort_left(a, x, lo: int = 0, hi: Optional[int] = None):
    a.insert(bisect_left(a, x, lo, hi), x)
"""

ITERTOOLS: Final = """
def plus(a, b):
    return a + b

def accumulate(xs, function):
    found = xs[:0]
    for x in xs:
        found.append(x if len(found) == 0 else function(found[-1], x))
    return found

def accumulate_from(xs, function, initial):
    found = [initial]
    for x in xs:
        found.append(function(found[-1], x))
    return found

def chain_from_iterable(lists):
    return [x for xs in lists for x in xs]

def product(a, b):
    return [(x, y) for x in a for y in b]

def product3(a, b, c):
    return [(x, y, z) for x in a for y in b for z in c]

def repeat(x, times: int):
    return [x for _ in range(times)]

def islice_stop(xs, stop: int):
    return xs[:stop]

def islice(xs, start: int, stop: int, step: int = 1):
    return xs[start:stop:step]

def pairwise(xs):
    return [(xs[i], xs[i + 1]) for i in range(len(xs) - 1)]

def combinations(xs):
    return [(xs[i], xs[j]) for i in range(len(xs)) for j in range(i + 1, len(xs))]

def permutations(xs):
    return [(xs[i], xs[j]) for i in range(len(xs)) for j in range(len(xs)) if i != j]

def takewhile(predicate, xs):
    found = xs[:0]
    for x in xs:
        if not predicate(x):
            break
        found.append(x)
    return found

def dropwhile(predicate, xs):
    at = 0
    while at < len(xs) and predicate(xs[at]):
        at += 1
    return xs[at:]
"""

CONTAINERS: Final = """
def assign_slice(xs, start: Optional[int], stop: Optional[int], items):
    head = xs[:0] if start is None else xs[:start]
    tail = xs[:0] if stop is None else xs[stop:]
    if len(head) + len(tail) > len(xs):
        tail = xs[len(head):]
    xs.clear()
    xs.extend(head)
    xs.extend(items)
    xs.extend(tail)

def equal_dicts(a, b):
    if len(a) != len(b):
        return False
    for key in a:
        if key not in b:
            return False
        if not (a[key] == b[key]):
            return False
    return True

def less_lists(a, b, if_equal: bool):
    for i in range(min(len(a), len(b))):
        if not (a[i] == b[i]):
            return a[i] < b[i]
    if len(a) == len(b):
        return if_equal
    return len(a) < len(b)

def int_power(base: int, exponent: int) -> int:
    result = 1
    factor = base
    left = exponent
    while left > 0:
        if left % 2 == 1:
            result *= factor
        left //= 2
        if left > 0:
            factor *= factor
    return result

def check_length(length: int, least: int):
    if length < least:
        raise ValueError(f"not enough values to unpack (expected at least {least}, got {length})")

def repeated_text(text: str, times: int):
    out = ""
    for _ in range(times):
        out += text
    return out
"""

COLLECTIONS: Final = """
def appendleft_(q, x):
    q.insert(0, x)

def popleft_(q):
    if len(q) == 0:
        raise IndexError("pop from an empty deque")
    return removed(q, 0)

def pop_(q):
    if len(q) == 0:
        raise IndexError("pop from an empty deque")
    return removed(q, -1)

def extendleft_(q, xs):
    for x in xs:
        q.insert(0, x)

def rotate_(q, n: int = 1):
    if len(q) > 0:
        for _ in range(n % len(q)):
            q.insert(0, removed(q, -1))

def move_to_end_(d, key, last: bool = True):
    if key not in d:
        raise KeyError(key)
    value = d.pop(key)
    if last:
        d[key] = value
    else:
        rest = list(d.items())
        d.clear()
        d[key] = value
        for k, v in rest:
            d[k] = v

def popitem_(d, last: bool = True):
    if len(d) == 0:
        raise KeyError("dictionary is empty")
    keys = list(d.keys())
    key = keys[-1] if last else keys[0]
    return key, d.pop(key)
"""

SETS: Final = """
def put_all(found, xs):
    for x in xs:
        put(found, x, True)

def keep_all(found, xs):
    for x in members(found):
        if x not in xs:
            drop(found, x)

def drop_all(found, xs):
    for x in xs:
        if x in found:
            drop(found, x)

def swap_all(found, xs):
    for x in xs:
        if x in found:
            drop(found, x)
        else:
            put(found, x, True)

def discard(found, x):
    if x in found:
        drop(found, x)

def has_all(found, xs):
    for x in xs:
        if x not in found:
            return False
    return True

def has_none(found, xs):
    for x in xs:
        if x in found:
            return False
    return True

def has_more(found, xs):
    return len(found) > len(xs) and has_all(found, xs)

def same_set(found, xs):
    return len(found) == len(xs) and has_all(found, xs)
"""

_OPERATORS: Final = {"put": "aten::_set_item", "drop": "aten::Delete", "members": "aten::keys", "removed": "aten::pop"}
"""What the texts call operators of dicts that sets do not have."""

_TEXTS: Final = (CONTAINERS, SETS, COLLECTIONS, SORTING, FUNCTOOLS, HEAPQ, BISECT, ITERTOOLS)


@lru_cache(maxsize=1)
def _functions() -> dict[str, GenericFunction]:
    resolver = _LibraryResolver()
    definitions = [Def(statement.tree) for text in _TEXTS for statement in parse_module(Source(text))]
    return {each.name.name: GenericFunction(each.name.name, each, resolver) for each in definitions}


def library_function(name: str) -> LibraryFunction:
    return LibraryFunction(_functions()[name])


class LibraryFunction(StaticValue):
    """A function of the texts above."""

    def __init__(self, function: GenericFunction) -> None:
        self.function = function

    @property
    def description(self) -> str:
        return f"the function '{self.function.name}'"

    @property
    def identity(self) -> Hashable:
        return self.function

    @property
    def takes_meanings(self) -> bool:
        return True

    def call_with(
        self, range: SourceRange, graph: Graph, args: Sequence[SugaredValue], kwargs: Keywords, targets: int = 1
    ) -> SugaredValue:
        defaults: dict[str, SugaredValue] = {}
        for param in self.function.definition.params:
            if param.default is not None:
                constant = graph.insert_constant(literal_value(param.default), range=range)
                defaults[param.name.name] = SimpleValue(constant)
        bound = self.function.bind(range, graph, args, kwargs, defaults)
        return self.function.call_compiled(range, graph, bound)

    def call(self, call: Call) -> SugaredValue:
        values = [SimpleValue(item.materialise(call.graph)) for item in call.args]
        named = {item.name or "": SimpleValue(item.materialise(call.graph)) for item in call.kwargs}
        return self.call_with(call.range, call.graph, values, named, call.targets)


class _LibraryResolver(EmptyResolver):
    """The functions of the texts know each other."""

    def resolve_value(self, name: str, range: SourceRange, graph: Graph) -> SugaredValue | None:
        if name in _OPERATORS:
            return BuiltinFunction(_OPERATORS[name])
        return library_function(name) if name in _functions() else None
