"""Functions that go over generators, whose elements log when they are computed."""

from typing import List


def computed(n: int, log: List[int]) -> int:
    log.append(n)
    if n == 7:
        raise ValueError("seven")
    return n


def decided_early(a: List[int], log: List[int]):
    return any(computed(v, log) > 2 for v in a), all(computed(v, log) < 3 for v in a)


def first_that_fits(a: List[int], log: List[int]):
    return next(computed(v, log) * 2 for v in a if v > 1)


def first_or_none(a: List[int], log: List[int]):
    return next((computed(v, log) * 2 for v in a if v > 1), None)


def interleaved(a: List[int], log: List[int]):
    for z in (computed(v, log) for v in a):
        log.append(z * 100)
        if z == 3:
            break
    else:
        log.append(-1)
    return z


def several_generators(a: List[int], log: List[int]):
    for z in (computed(v + w, log) for v in a if v > 0 for w in a if w != 2):
        if z == 4:
            continue
        log.append(z * 100)
        if z == 6:
            break
    else:
        log.append(-1)


def among(a: List[int], log: List[int]):
    return 2 in (computed(v, log) for v in a), 5 not in (computed(v, log) for v in a)


def comprehension_over_one(a: List[int], log: List[int]):
    return [computed(z * 10, log) for z in (computed(v, log) for v in a if v != 1) if z > 1]


def names_of_its_own(a: List[int], log: List[int]):
    v = 5
    for z in (v * 2 for v in a):
        log.append(v + z)
        v = z
    return v


def nested_any(a: List[int], log: List[int]):
    return any(computed(v, log) > computed(w, log) for v in a for w in a)


def first_of_several_types(a: List[int], log: List[int]):
    return next((i for i, v in enumerate(a) if computed(v, log) == 3), -1), next((v for v in a if v > 100), 0.5)


def over_tuples(a: List[int], log: List[int]):
    return (
        any(computed(v, log) > 1 for v in (1, 2, 3)),
        all(computed(v, log) > 1 for v in (3, 1, 2)),
        next(computed(v, log) for v in (1, 2)),
    )


def unpacked(a: List[int], log: List[int]):
    r = 0
    for x, y in ((v, computed(v, log)) for v in a):
        r += x * y
        for q in (k for k in range(x)):
            r += q
    return r


def conditions(a: List[int], log: List[int]):
    if any(v > 2 for v in a) and not all(v > 0 for v in a):
        return 1
    while any(v > 2 for v in a):
        a.pop()
    return 2


def over_another(a: List[int], log: List[int]):
    for z in (computed(v, log) for v in (w + 1 for w in a) if v > 2):
        log.append(z)
    return sum(computed(v, log) for v in (w + 1 for w in a))


def left_within_a_try(a: List[int], log: List[int]):
    for z in (computed(v, log) for v in a):
        try:
            if z == 3:
                break
        finally:
            log.append(77)
    return log


def mapped(a: List[int], log: List[int]):
    for z in map(lambda v: computed(v, log), a):
        log.append(z * 100)
    return any(map(lambda v: computed(v, log) > 2, a)), next(map(lambda v: computed(v, log), a), 5)


def filtered(a: List[int], log: List[int]):
    for z in filter(lambda v: computed(v, log) > 1, a):
        log.append(z * 100)
        if z == 2:
            break
    return next(filter(lambda v: computed(v, log) > 2, a), None), [z for z in filter(None, a)]


def beside_others(a: List[int], log: List[int]):
    for i, z in enumerate(computed(v, log) for v in a):
        log.append(z * 100 + i)
    for x, y in zip((computed(v, log) for v in a), (computed(-v, log) for v in a)):
        log.append(x - y)
    for z in map(lambda v: computed(v, log), (computed(-v, log) for v in a)):
        log.append(z * 100)


def kept(a: List[int], log: List[int]):
    g = (computed(v, log) for v in a)
    log.append(99)
    for z in g:
        log.append(z * 10)


def kept_and_read_later(a: List[int], log: List[int]):
    n = 2
    g = (v * n for v in a)
    n = 5
    return list(g), n


def kept_pairs(a: List[int], log: List[int]):
    pairs = zip(a, log)
    log.append(7)
    return [x + y for x, y in pairs]


def kept_map(a: List[int], log: List[int]):
    m = map(lambda v: computed(v, log), a)
    log.append(50)
    return list(m)


def kept_and_asked(a: List[int], log: List[int]):
    g = (computed(v, log) for v in a if v > 1)
    return any(z > 2 for z in g)


def kept_for_a_branch(a: List[int], log: List[int]):
    g = (v for v in a)
    if len(a) > 2:
        return sorted(g)
    return [0]


def kept_backwards(a: List[int], log: List[int]):
    it = reversed(a)
    return [x for x in it]


def never_asked(a: List[int], log: List[int]):
    (computed(v, log) for v in a)
    return log


def names_of_the_function(a: List[int], log: List[int]):
    x = 3
    return [x for x in (x + v for v in a)], [v for v in (computed(v, log) * 2 for v in a) if v > 2]
