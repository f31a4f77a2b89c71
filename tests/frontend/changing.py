"""Functions with loops over what they change."""

from collections import OrderedDict, deque
from typing import Dict, List, NamedTuple


def new_keys(d: Dict[int, int]):
    for k in d:
        d[k + 100] = 1
    return d


def new_values(d: Dict[int, int]):
    for k, v in d.items():
        d[k] = v + 1
    return d


def deleted_key(d: Dict[int, int]):
    for k in d.keys():
        if k == 2:
            del d[k]
    return d


def left_at_once(d: Dict[int, int]):
    for i, v in enumerate(d.values()):
        if v == 2:
            d[50] = 1
            break
    return d


def list_of_the_keys(d: Dict[int, int]):
    for k in list(d):
        del d[k]
    return d


def grow(d: Dict[int, int]):
    d[1000] = 1


def changed_by_a_function(d: Dict[int, int]):
    for k in d:
        grow(d)
    return d


def comprehension_of_a_dict(d: Dict[int, int]):
    return [d.setdefault(k + 7, 1) for k in d]


def list_under_another_name(d: Dict[int, int]):
    xs = list(d.keys())
    ys = xs
    r = 0
    for x in xs:
        r += x
        if len(ys) < 6:
            ys.append(x)
    return r, xs


def list_beside_others(d: Dict[int, int]):
    xs = list(d.keys())
    r = 0
    for i, x in enumerate(xs):
        r += x * i
        if len(xs) < 6:
            xs.append(x)
    for x, y in zip(xs, xs):
        if r > 5 and len(xs) > 2:
            xs.pop()
        r += x + y
    return r, xs


def deque_grows(d: Dict[int, int]):
    q = deque(list(d.keys()))
    for x in q:
        if x == 2:
            q.append(3)
    return q


def list_shrinks(d: Dict[int, int]):
    xs = list(d.keys())
    for x in xs:
        xs.remove(x)
    return xs


def other_lists(d: Dict[int, int]):
    xs = list(d.keys())
    out: List[int] = []
    for x in xs:
        out.append(x)
    for x in out[:]:
        out.append(x)
    return [out.pop() for x in out]


def ordered_dict(d: Dict[int, int]):
    c = OrderedDict([(1, 2), (3, 4)])
    for k in c:
        if 2 in d:
            c[k + 10] = 1
    return c


def continues(d: Dict[int, int]):
    for k in d:
        if k == 1:
            continue
        d[k + 100] = 1
    return d


def list_of_lists(d: Dict[int, int]):
    xs = [[1], [2]]
    for x in xs[0]:
        if len(xs[0]) < 4:
            xs[0].append(x)
    return xs


def caught(d: Dict[int, int]):
    try:
        for k in d:
            d[k + 100] = 1
    except RuntimeError as e:
        return str(e)
    return "no"


def comprehension_of_a_list(d: Dict[int, int]):
    xs = list(d.keys())
    return [x for x in xs if len(xs) > 5 or xs.append(x) is None]


def generator_of_a_list(d: Dict[int, int]):
    xs = list(d.keys())
    return any(len(xs) > 8 or xs.append(x) is not None for x in xs), xs


def as_many_keys(d: Dict[int, int]):
    m = 0
    for k in d:
        d[k + 1] = d.pop(k)
        m += 1
        if m > 10:
            break
    return d


def values_to_come(d: Dict[int, int]):
    seen = []
    for k, v in d.items():
        d[max(d.keys())] = 100
        seen.append(v)
    for v in d.values():
        d[min(d.keys())] += 1
        d[max(d.keys())] += 1
        seen.append(v)
    for i, (k, v) in enumerate(d.items()):
        d[max(d.keys())] = v + i
        seen.append(v)
    return seen


def written_by_a_function(d: Dict[int, int]):
    seen = []
    for v in d.values():
        raise_last(d)
        seen.append(v)
    return seen


class Row(NamedTuple):
    values: List[int]
    name: str


def list_in_a_named_tuple(d: Dict[int, int]):
    row = Row(list(d), "a")
    same = row.values
    for _, key in enumerate(row.values):
        same.remove(key)
    return row


def list_in_a_tuple(d: Dict[int, int]):
    pair = (list(d), 1)
    for key in pair[0]:
        pair[0].remove(key)
    return pair


def list_put_into_a_tuple(d: Dict[int, int]):
    keys = list(d)
    for key in keys:
        pair = (keys, 1)
        pair[0].remove(key)
    return keys


def lists_of_a_tuple_taken_apart(d: Dict[int, int]):
    pair = (list(d), list(d))
    first, second = pair
    total = 0
    for key, other in zip(first, second):
        pair[0].pop()
        total += key * other
    return pair, total


def list_in_a_tuple_in_a_tuple(d: Dict[int, int]):
    outer = ((list(d), 1), 2)
    inner, _ = outer
    for key in inner[0]:
        outer[0][0].remove(key)
    return outer


def raise_last(d: Dict[int, int]):
    d[max(d.keys())] += 10
