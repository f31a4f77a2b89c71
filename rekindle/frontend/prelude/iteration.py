"""``itertools``, ``functools`` and what takes a key."""

from typing import List, Optional


def sorted_by_values(xs, keys, reverse):
    # Python's own sort, of pairs: the numbers in them are unique, and in the order of the list that Python sorts, so
    # that each comparison of two pairs has the result of the comparison of their keys, also where they are NaN.
    last = len(xs) - 1
    pairs = [(keys[last - i], i) for i in range(len(xs))] if reverse else [(keys[i], i) for i in range(len(xs))]
    ordered = [xs[last - i] if reverse else xs[i] for _, i in sorted(pairs)]
    if reverse:
        ordered.reverse()
    return ordered


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


def sorted_by_order(xs, order, reverse):
    found = xs[:]
    for i in range(1, len(found)):
        item = found[i]
        at = i
        while at > 0 and (order(found[at - 1], item) < 0 if reverse else order(item, found[at - 1]) < 0):
            found[at] = found[at - 1]
            at -= 1
        found[at] = item
    return found


def first_by(xs, keys, largest, what):
    if len(xs) == 0:
        raise ValueError(what)
    best = 0
    for i in range(1, len(xs)):
        if (keys[best] < keys[i]) if largest else (keys[i] < keys[best]):
            best = i
    return xs[best]


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


def repeat(x, times: int):
    return [x for _ in range(times)]


def check_islice(start: Optional[int], stop: Optional[int], step: int, only_stop: bool) -> None:
    if (start is not None and start < 0) or (stop is not None and stop < 0):
        if only_stop:
            raise ValueError("Stop argument for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
        raise ValueError("Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
    if step < 1:
        raise ValueError("Step for islice() must be a positive integer or None.")


def islice(xs, start: Optional[int], stop: Optional[int], step: int):
    return xs[start:stop:step]


def counted(start, step, index: int):
    number = start
    for _ in range(index):
        number = number + step
    return number


def transposed(rows):
    lists = [list(row) for row in rows]
    shortest = 0 if len(lists) == 0 else min([len(row) for row in lists])
    return [[row[i] for row in lists] for i in range(shortest)]


def pairwise(xs):
    return [(xs[i], xs[i + 1]) for i in range(len(xs) - 1)]


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


def filterfalse(predicate, xs):
    return [x for x in xs if not predicate(x)]


def compress(data, selectors):
    return [data[i] for i in range(min(len(data), len(selectors))) if selectors[i]]


def zip_longest2(a, b, fill):
    longest = max(len(a), len(b))
    return [(a[i] if i < len(a) else fill, b[i] if i < len(b) else fill) for i in range(longest)]


def zip_longest3(a, b, c, fill):
    longest = max([len(a), len(b), len(c)])
    return [
        (a[i] if i < len(a) else fill, b[i] if i < len(b) else fill, c[i] if i < len(c) else fill)
        for i in range(longest)
    ]


def groupby(xs, keys):
    starts = [i for i in range(len(xs)) if i == 0 or keys[i] != keys[i - 1]]
    ends = starts[1:] + [len(xs)]
    return [(keys[starts[i]], xs[starts[i] : ends[i]]) for i in range(len(starts))]
