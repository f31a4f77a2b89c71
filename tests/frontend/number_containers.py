"""Programs whose lists, dicts and tuples hold numbers of several types, as Python's do."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import Dict, List, Optional, Union

import torch
from torch import Tensor


def counter(x: Tensor):
    c = Counter()
    for v in x:
        c[v.item()] += 1
    return c


def counter_of_list(x: Tensor):
    return Counter([v.item() for v in x])


def dd_int(x: Tensor):
    d = defaultdict(int)
    for i, v in enumerate(x):
        d[i % 2] += v.item()
    return dict(d)


def dd_float(x: Tensor):
    d = defaultdict(float)
    for i, v in enumerate(x):
        d[str(i % 2)] += v.item()
    return dict(d)


def plain_get(x: Tensor):
    d = {}
    for i, v in enumerate(x):
        d[i % 2] = d.get(i % 2, 0) + v.item()
    return d


def plain_get_key(x: Tensor):
    d = {}
    for v in x:
        k = v.item()
        d[k] = d.get(k, 0) + 1
    return d


def plain_in(x: Tensor):
    d = {}
    for v in x:
        k = v.item()
        if k in d:
            d[k] += 1
        else:
            d[k] = 1
    return d, len(d)


def plain_str(x: Tensor):
    d = {}
    d["loss"] = x[0].item()
    d["n"] = 1
    return d


def metrics(x: Tensor):
    return {"loss": x[0].item(), "n": len(x), "acc": 0.5}


def metrics2(x: Tensor):
    m = {"loss": 0, "n": 0}
    for v in x:
        m["loss"] += v.item()
        m["n"] += 1
    m["avg"] = m["loss"] / m["n"]
    return m


def get_default(x: Tensor):
    d = {"a": 1}
    for v in x:
        d["a"] = d.get("a", 0) + v.item()
        d["b"] = d.get("b", 0) + 0.5
    return d


def dict_comp(x: Tensor):
    return {v.item(): i for i, v in enumerate(x)}


def dict_comp2(x: Tensor):
    return {i: v.item() for i, v in enumerate(x)}


def inverse(x: Tensor):
    d = {i: v.item() for i, v in enumerate(x)}
    return {v: k for k, v in d.items()}


def most(x: Tensor):
    d = {}
    for v in x:
        k = v.item()
        d[k] = d.get(k, 0) + 1
    best = max(d.values())
    return [k for k, c in d.items() if c == best]


def dict_sum(x: Tensor):
    d = {i: v.item() for i, v in enumerate(x)}
    return sum(d.values()), max(d.values()), min(d.values()), sorted(d.values())


def sort_items(x: Tensor):
    d = {}
    for i, v in enumerate(x):
        d[str(i)] = v.item()
    return sorted(d.items(), key=lambda kv: kv[1])


def nested_dict(x: Tensor):
    d = {"train": {"loss": 0, "n": 0}}
    for v in x:
        d["train"]["loss"] += v.item()
        d["train"]["n"] += 1
    return d


def dict_of_lists(x: Tensor):
    d = {"a": [0, 0], "b": [1]}
    d["a"][0] += x[0].item()
    d["b"].append(x[1].item())
    return d


def remap(x: Tensor):
    ids = {}
    out = []
    for v in x:
        k = v.item()
        if k not in ids:
            ids[k] = len(ids)
        out.append(ids[k])
    return out, ids


def pop(x: Tensor):
    d = {"a": x[0].item(), "b": 1}
    a = d.pop("a")
    c = d.pop("z", 0)
    return a, c, d


def counter_sub(x: Tensor):
    c = Counter()
    c["a"] += x[0].item()
    c["b"] += 1
    return c


def int_keys(x: Tensor):
    d = {}
    for i, v in enumerate(x):
        d[int(v.item()) if v == v else 0] = i
    return d


def item_lookup(x: Tensor):
    names = {0: "a", 1: "b", 2: "c", 3: "d"}
    return [names.get(v.item(), "?") for v in x]


def item_lookup2(x: Tensor):
    names = {0: 10, 1: 20, 2: 30, 3: 40}
    k = x[1].item()
    return names[k] if k in names else None


def concat(x: Tensor):
    cs = [0, 1]
    cs = cs + [0.5]
    return cs


def scaled(x: Tensor):
    cs = [0, 1]
    cs = [c * 0.5 for c in cs]
    return cs, sum(cs)


def concat_loop(x: Tensor):
    cs = [0, 1]
    for v in x:
        cs = cs + [v.item()]
    return cs


def concat_aug(x: Tensor):
    cs = [0, 1]
    for v in x:
        cs += [v.item()]
    return cs


def scaled_loop(x: Tensor):
    cs = [4, 1]
    for v in x:
        cs = [c * v.item() for c in cs]
    return cs


def normalized(x: Tensor):
    cs = [1, 2, 1]
    total = sum(cs)
    cs = [c / total for c in cs]
    return cs


def beam(x: Tensor):
    beams = [([0], 0.0)]
    for v in x:
        new = []
        for seq, score in beams:
            for tok in range(2):
                new.append((seq + [tok], score + v.item() * tok))
        beams = sorted(new, key=lambda b: b[1], reverse=True)[:2]
    return beams


def beam_int(x: Tensor):
    beams = [([0], 0)]
    for v in x:
        new = []
        for seq, score in beams:
            new.append((seq + [1], score + v.item()))
            new.append((seq + [2], score - v.item()))
        new.sort(key=lambda b: b[1])
        beams = new[:2]
    return beams


def beam_append(x: Tensor):
    beams = [([0], 0.0)]
    beams.append(([1], 0.0 + x[0].item()))
    return beams


def beam_topk(x: Tensor):
    lp = torch.log_softmax(x.float(), 0)
    beams = [([0], 0.0)]
    for step in range(2):
        cand = []
        for seq, score in beams:
            vals, ids = lp.topk(2)
            for k in range(2):
                cand.append((seq + [ids[k].item()], score + vals[k].item()))
        cand.sort(key=lambda c: c[1], reverse=True)
        beams = cand[:2]
    return beams[0][0]


def rows(x: Tensor):
    m = [[0, 0], [0, 0]]
    for i, v in enumerate(x):
        m[i % 2][1] += v.item()
    return m


def rows2(x: Tensor):
    m = [[0] * 3 for _ in range(3)]
    for i, v in enumerate(x):
        m[i][i] = 0.5 * i
        m[i][0] += v.item()
    return m


def rows_append(x: Tensor):
    m = [[0], [1]]
    m.append([x[0].item()])
    m[0].append(0.5)
    return m


def tuples(x: Tensor):
    best = (0, 0)
    for i, v in enumerate(x):
        if v.item() > best[1]:
            best = (i, v.item())
    return best


def tuples2(x: Tensor):
    best = (-1, 0.0)
    for i, v in enumerate(x):
        if v.item() > best[1]:
            best = (i, v.item())
    return best


def tuples3(x: Tensor):
    best = (-1, -math.inf)
    for i, v in enumerate(x):
        best = max(best, (i, v.item()), key=lambda b: b[1])
    return best


def tuple_state(x: Tensor):
    state = (0, 0, 0)
    for v in x:
        n, mean, m2 = state
        n += 1
        d = v.item() - mean
        mean += d / n
        m2 += d * (v.item() - mean)
        state = (n, mean, m2)
    return state


def list_methods(x: Tensor):
    l = [v.item() for v in x]
    return (
        l.count(1),
        l.count(True),
        l.index(l[0]) if l[0] == l[0] else -1,
        1 in l,
        0.5 in l,
        sorted(l),
        min(l),
        max(l),
        sum(l),
        l[::-1],
        len(l),
    )


def list_methods2(x: Tensor):
    l = [0, 1, 2]
    return l.count(x[0].item()), x[1].item() in l, x[2].item() in l


def list_remove(x: Tensor):
    l = [v.item() for v in x]
    l.remove(l[1])
    l.insert(0, 7)
    l.extend([1, 2])
    a = l.pop()
    l.reverse()
    return l, a


def list_sort(x: Tensor):
    l = [v.item() for v in x]
    l.sort()
    m = [v.item() for v in x]
    m.sort(reverse=True)
    return l, m, sorted(l, reverse=True), sorted(range(len(l)), key=lambda i: l[i])


def list_eq(x: Tensor):
    l = [v.item() for v in x]
    return l == [3, 1, 2], l != [0.5], l == l[:], l + [1] == l, [0.5, 1.25] < l[:2] if l[0] == l[0] else None


def argmax(x: Tensor):
    l = [v.item() for v in x]
    return l.index(max(l)), max(range(len(l)), key=lambda i: l[i]), max(enumerate(l), key=lambda p: p[1])


def zipped(x: Tensor):
    l = [v.item() for v in x]
    return [a * b for a, b in zip(l, [1, 2, 3])], [(i, v) for i, v in enumerate(l)], list(zip(l, l))


def cumsum(x: Tensor):
    out = [0]
    for v in x:
        out.append(out[-1] + v.item())
    return out


def prefix(x: Tensor):
    out = [0] * (len(x) + 1)
    for i, v in enumerate(x):
        out[i + 1] = out[i] + v.item()
    return out, out[-1] - out[0]


def window(x: Tensor):
    l = [v.item() for v in x]
    return [sum(l[max(0, i - 1) : i + 1]) / len(l[max(0, i - 1) : i + 1]) for i in range(len(l))]


def all_any(x: Tensor):
    l = [v.item() for v in x]
    return all(l), any(l), all(v > 0 for v in l), any(v > 1 for v in l)


def median(x: Tensor):
    l = sorted([v.item() for v in x])
    n = len(l)
    return l[n // 2] if n % 2 else (l[n // 2 - 1] + l[n // 2]) / 2


def two_lists(x: Tensor):
    a = [0, 0]
    b = a
    b[0] = x[0].item()
    return a, b


def swap(x: Tensor):
    l = [0, 1]
    l[0], l[1] = x[0].item(), l[0]
    return l


def lists_of_mixed(x: Tensor):
    return [1, 0.5, x[0].item(), True, len(x)]


def optional_item(x: Tensor):
    best = None
    for v in x:
        if best is None or v.item() < best:
            best = v.item()
    return best


def optional_tuple(x: Tensor):
    best = None
    for i, v in enumerate(x):
        if best is None or v.item() < best[1]:
            best = (i, v.item())
    return best


def unpack(x: Tensor):
    a, b, c = x.tolist() if False else [v.item() for v in x]
    a += 1
    return a, b, c


def stack(x: Tensor):
    s = [(0, 1)]
    for v in x:
        d, w = s.pop()
        s.append((d + 1, w * v.item()))
    return s


def heap(x: Tensor):
    q = [(0.0, 0)]
    for i, v in enumerate(x):
        q.append((v.item(), i))
        q = sorted(q)
    return q


def while_list(x: Tensor):
    l = [10]
    while l[-1] > 1:
        l.append(l[-1] / 2)
    return l


def tolist_of_a_row(x: Tensor):
    xs, best = x.tolist(), 0
    xs.append(3)
    for i, v in enumerate(x.tolist()):
        best = max(best, v * i)
    xs[0] = best
    first, *rest = x.tolist()
    parts = x.split(torch.tensor([1, len(rest)]).tolist())
    return (
        xs,
        sorted(xs),
        sum(x.tolist()),
        f"{x.tolist()}",
        first,
        rest,
        [a + b for a, b in zip(xs, x.tolist())],
        parts[0],
    )


def tolist(x: Tensor):
    l: List[float] = x.double().tolist()
    l2 = [0] + l
    return l2


def hu(a: Union[int, float]):
    return a * 2


def union_param(x: Tensor):
    return hu(x[0].item()), hu(1), hu(0.5)


def ho(a: Union[int, float], b: Optional[Union[int, float]] = None):
    if b is None:
        return a
    return a + b


def union_param2(x: Tensor):
    return ho(x[0].item()), ho(1, x[1].item()), ho(0.5, None), ho(1, 2)


def direct(a: Union[int, float], x: Tensor):
    return a + 1, a / 2


def union_result(x: Tensor) -> Union[int, float]:
    return x[0].item()


def union_var(x: Tensor):
    a: Union[int, float] = 0
    for v in x:
        a = a + v.item()
    return a


def union_list(x: Tensor):
    l: List[Union[int, float]] = []
    for v in x:
        l.append(v.item())
    return l


def union_dict(x: Tensor):
    d: Dict[str, Union[int, float]] = {}
    d["a"] = x[0].item()
    d["b"] = 1
    d["c"] = 0.5
    return d


def union_opt(x: Tensor):
    a: Optional[Union[int, float]] = None
    for v in x:
        if a is None or v.item() > a:
            a = v.item()
    return a


def merged(x: Tensor):
    d = {**{7: 0.25}, 3: 1.0}
    d[len(x)] = len(x)
    e = {1: 0.5, **d, 2: 0.25}
    e[len(x)] = x[0].item()
    return d, e


def starred(x: Tensor):
    a = [0.5, 0.25]
    b = [*a, 1.0, *a]
    b.append(len(x))
    b[0] = x[0].item()
    c = [*b, *[1, 2], *a]
    return a, b, c


def taken(values: List[Union[int, float]], table: Dict[str, List[Optional[int]]]):
    values.append(0.5)
    table["b"] = [None]
    return values, table


def literals_given(x: Tensor):
    return taken([1, len(x)], {"a": [1, 2]}), taken(table={"c": [3]}, values=[2])


Anything = Union[bool, int, float, complex]


class Held:
    def __init__(self, value: Anything):
        self.value: Anything = value


def added_in_place(x: Tensor):
    values: List[Anything] = [True, 1, 0.5]
    held = Held(True)
    for i in range(3):
        values[i] += x[0].item()
        values[i] *= len(x)
        held.value += x[0].item()
    return values, held.value


def in_lists_of_ints(x: Tensor):
    items = [2, 1, 2]
    number = 2 if len(x) > 1 else 0.5
    found = [items.count(number), items.index(2 if len(x) else 0.5)]
    if number in items:
        items.remove(number)
    return items, found, number in [0.5, 1.0], [number, 1].index(1)


def made_by_operators(x):
    v = [3, 1, 2]
    made = list(v)
    made[0] = x[0].item()
    part = v[:2]
    part.append(x[0].item())
    turned = v[::-1]
    turned += [x[0].item()]
    ordered = sorted(v)
    ordered[-1] = 0.5
    counted = list(range(3))
    counted[1] = x[0].item()
    both = v + [4]
    both[0] = 2.5
    twice = v * 2
    twice[5] = x[0].item()
    copied = v.copy()
    copied.insert(0, x[0].item())
    return v, made, part, turned, ordered, counted, both, twice, copied


def dicts_made_by_operators(x):
    d = {"a": 1}
    made = dict(d)
    made["b"] = x[0].item()
    copied = d.copy()
    copied["a"] = 0.5
    values = list(d.values())
    values[0] = x[0].item()
    return d, made, copied, values


def rests(x):
    v = [3, 1, 2]
    (*copied,) = v
    copied[0] = x[0].item()
    first, *rest = v
    rest.append(x[0].item())
    one, *others = 1, 0.5, 2
    others[0] = x[0].item()
    return v, copied, first, rest, one, others


def aliases_of_what_is_made(x):
    v = [3, 1, 2]
    made = list(v)
    same = made
    same[0] = x[0].item()
    for i in range(2):
        made = sorted(made)
        made[i] = 0.5
    return v, made, same


def mixed_rests(x):
    one, *others = 1, 0.5, "s", x[0].item()
    *most, last = 2, x[0].item(), "t"
    return one, others, most, last


class Shared:
    def __init__(self):
        self.history = [0]
        self.table = {"a": [1]}


def other_names_of_attributes(x):
    shared = Shared()
    history = shared.history
    again = history
    again.append(x[0].item())
    history[0] += 0.5
    table = shared.table
    table["a"].append(x[0].item())
    return shared.history, again, shared.table


PROGRAMS = [
    counter,
    counter_of_list,
    dd_int,
    dd_float,
    plain_get,
    plain_get_key,
    plain_in,
    plain_str,
    metrics,
    metrics2,
    get_default,
    dict_comp,
    dict_comp2,
    inverse,
    most,
    dict_sum,
    sort_items,
    nested_dict,
    dict_of_lists,
    remap,
    pop,
    counter_sub,
    int_keys,
    item_lookup,
    item_lookup2,
    concat,
    scaled,
    concat_loop,
    concat_aug,
    scaled_loop,
    normalized,
    beam,
    beam_int,
    beam_append,
    beam_topk,
    rows,
    rows2,
    rows_append,
    tuples,
    tuples2,
    tuples3,
    tuple_state,
    list_methods,
    list_methods2,
    list_remove,
    list_sort,
    list_eq,
    argmax,
    zipped,
    cumsum,
    prefix,
    window,
    all_any,
    median,
    two_lists,
    swap,
    lists_of_mixed,
    optional_item,
    optional_tuple,
    unpack,
    stack,
    heap,
    while_list,
    tolist_of_a_row,
    tolist,
    union_param,
    union_param2,
    union_result,
    union_var,
    union_list,
    union_dict,
    union_opt,
    merged,
    starred,
    literals_given,
    added_in_place,
    in_lists_of_ints,
    made_by_operators,
    dicts_made_by_operators,
    rests,
    aliases_of_what_is_made,
    mixed_rests,
    other_names_of_attributes,
]
