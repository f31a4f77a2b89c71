"""Lists, sets and dicts that are empty items of dicts and lists at first: uses of the items show their types."""

from collections import defaultdict, deque
from typing import Any, List, Tuple

import pytest

from tests.frontend.outcomes import agrees


def setdefault_of_lists_by_int(ks: List[int]):
    d = {}
    for k in ks:
        d.setdefault(k, []).append(k)
    return d


def setdefault_of_lists_by_text(ks: List[str]):
    d = {}
    for k in ks:
        d.setdefault(k, []).append(len(k))
    return d


def lists_by_length(ks: List[str]):
    d = defaultdict(list)
    for k in ks:
        d[len(k)].append(k)
    return dict(d)


def lists_by_text(ks: List[str]):
    d = defaultdict(list)
    for k in ks:
        d[k].append(k)
    return dict(d)


def sets_by_length(ks: List[str]):
    d = defaultdict(set)
    for k in ks:
        d[len(k)].add(k)
    return {k: sorted(v) for k, v in d.items()}


def lists_where_missing(ks: List[str]):
    d = {}
    for k in ks:
        if len(k) not in d:
            d[len(k)] = []
        d[len(k)].append(k)
    return d


def lists_or_append(ks: List[str]):
    d = {}
    for k in ks:
        if len(k) in d:
            d[len(k)].append(k)
        else:
            d[len(k)] = [k]
    return d


def dicts_by_length(ks: List[str]):
    d = defaultdict(dict)
    for k in ks:
        d[len(k)][k] = 1
    return {k: len(v) for k, v in d.items()}


def factories_of_numbers(ks: List[str]):
    d = defaultdict(lambda: 0)
    e = defaultdict(float)
    for i, k in enumerate(ks):
        d[i] += len(k)
        e[k] += 0.5
        e[longer(k)] += 1
    return dict(d), dict(e)


def longer(k: str):
    return k + "x"


def counted(ks: List[int]):
    d = {}
    for k in ks:
        d[k] = d.get(k, 0) + 1
    return d, sorted(d.items(), key=lambda kv: (-kv[1], kv[0]))


def limited_deque(ks: List[int]):
    q = deque(maxlen=2)
    for k in ks:
        q.append(k)
    return list(q), len(q), q[0] if q else None


def deques_from_both_ends(ks: List[int]):
    q = deque([0])
    r = deque()
    for k in ks:
        q.append(k)
        r.appendleft(k)
    return list(q), list(r)


def setdefault_of_dicts(ks: List[int]):
    groups = {}
    for k in ks:
        groups.setdefault(k % 2, {})[k] = 1
    return groups


def rows_of_rows(n: int):
    rows = []
    for i in range(n):
        rows.append([])
        for j in range(i):
            rows[-1].append(j * 0.5)
    return rows


def dicts_of_counts(xs: List[float]):
    d = {"a": [], "b": []}
    e = {}
    for x in xs:
        d["a" if x > 0 else "b"].append(x)
        if x not in e:
            e[x] = {}
        e[x]["n"] = e[x].get("n", 0) + 1
    return d, e


def lists_extended(xs: List[str]):
    seen = {}
    out = []
    for x in xs:
        if x in seen:
            continue
        seen[x] = True
        out.append((x, len(out)))
    tree = {}
    for name, i in out:
        tree[name] = []
        tree[name].extend([i, i + 1])
    return out, tree


def always_empty(xs: List[int]):
    d = {}
    for x in xs:
        d[x] = []
    return len(d), [len(v) for v in d.values()]


def graph_of_pairs(xs: List[Tuple[int, int]]):
    adj = defaultdict(list)
    deg = defaultdict(int)
    for a, b in xs:
        adj[a].append(b)
        adj[b].append(a)
        deg[a] += 1
        deg[b] += 1
    order, stack, seen = [], [0], set()
    while stack:
        v = stack.pop()
        if v in seen:
            continue
        seen.add(v)
        order.append(v)
        for w in sorted(adj[v]):
            stack.append(w)
    return order, dict(deg), sorted(seen)


CASES: List[Tuple[Any, Tuple[Tuple[Any, ...], ...]]] = [
    (
        setdefault_of_lists_by_int,
        (
            ([1, 2],),
            ([],),
        ),
    ),
    (
        setdefault_of_lists_by_text,
        (
            (["1"],),
            ([],),
        ),
    ),
    (
        lists_by_length,
        (
            (["1", "a", "bb"],),
            ([],),
        ),
    ),
    (
        lists_by_text,
        (
            (["1", "a", "bb"],),
            ([],),
        ),
    ),
    (
        sets_by_length,
        (
            (["1", "a", "bb"],),
            ([],),
        ),
    ),
    (
        lists_where_missing,
        (
            (["1", "a", "bb"],),
            ([],),
        ),
    ),
    (
        lists_or_append,
        (
            (["1", "a", "bb"],),
            ([],),
        ),
    ),
    (
        dicts_by_length,
        (
            (["1", "a", "bb"],),
            ([],),
        ),
    ),
    (
        factories_of_numbers,
        (
            (["1", "a", "bb"],),
            ([],),
        ),
    ),
    (
        counted,
        (
            ([1, 2, 1],),
            ([],),
        ),
    ),
    (
        limited_deque,
        (
            ([1, 2, 1],),
            ([],),
        ),
    ),
    (
        deques_from_both_ends,
        (
            ([1, 2, 1],),
            ([],),
        ),
    ),
    (
        setdefault_of_dicts,
        (
            ([1, 2, 1],),
            ([],),
        ),
    ),
    (
        rows_of_rows,
        (
            (0,),
            (3,),
        ),
    ),
    (
        dicts_of_counts,
        (
            ([],),
            ([1.5, -2.0, 1.5],),
        ),
    ),
    (
        lists_extended,
        (
            ([],),
            (["a", "b", "a"],),
        ),
    ),
    (
        always_empty,
        (
            ([],),
            ([1, 2],),
        ),
    ),
    (
        graph_of_pairs,
        (
            ([],),
            ([(0, 1), (1, 2), (0, 3)],),
        ),
    ),
]


@pytest.mark.parametrize(("function", "calls"), CASES, ids=[function.__name__ for function, _ in CASES])
def test_items_that_are_empty_at_first(function: Any, calls: Tuple[Tuple[Any, ...], ...]) -> None:
    agrees(function, *calls)
