"""Sets: dicts of bools in what is saved; what is asked of them does not depend on the order of elements."""

from typing import Dict, FrozenSet, List, Optional, Set, Tuple

from rekindle.errors import TypeMismatchError, UndefinedNameError, UnsupportedError
from tests.language.corpus import program, refused

NAMES = (["a", "b", "a"], "b"), ([], "zz")
NUMBERS = ([3, 1, 2, 3], 2), ([], 5)


@program("expression.set_literal", *NUMBERS, torch="refuses")
def among_literals(xs: List[int], n: int) -> List[bool]:
    return [n in {1, 2, 3}, n not in {n + 1, 7}, len({n, n, 2}) == 1]


@program("expression.set_literal list.star", *NUMBERS, torch="refuses")
def literal_with_stars(xs: List[int], n: int) -> List[int]:
    return sorted({*xs, n, *[n, 9]})


@program("expression.set_comprehension", *NUMBERS, torch="refuses")
def comprehension(xs: List[int], n: int) -> List[int]:
    return sorted({x * x for x in xs if x != n})


@program("expression.set_comprehension", *NUMBERS, torch="refuses")
def comprehension_over_a_set(xs: List[int], n: int) -> int:
    halves = {x // 2 for x in set(xs)}
    return len({-h for h in halves if h > 0})


@program("expression.set_comprehension", (["ab", "ac", "b"],), ([],), torch="refuses")
def comprehension_of_characters(words: List[str]) -> List[str]:
    return sorted({c for word in words for c in word})


@program("builtin.set", *NUMBERS, torch="refuses")
def without_repetitions(xs: List[int], n: int) -> int:
    return len(set(xs)) + len(set(range(n))) + len(set("hello"))


@program("builtin.set", (3.0,), (-0.5,), torch="refuses")
def of_a_tuple(x: float) -> List[float]:
    return sorted(set((x, x, 2.5)))


@program("builtin.set", ({"a": 1, "b": 2},), ({},), torch="refuses")
def of_a_dict(d: Dict[str, int]) -> List[str]:
    return sorted(set(d) | set(d.keys()) | {"z"})


@program("builtin.set", *NUMBERS, torch="refuses")
def frozen(xs: List[int], n: int) -> Tuple[bool, int]:
    known = frozenset(xs)
    return n in known, len(known | {n})


@program("set.methods", *NUMBERS, torch="refuses")
def seen_before(xs: List[int], n: int) -> List[int]:
    seen = set()
    firsts = []
    for x in xs:
        if x not in seen:
            seen.add(x)
            firsts.append(x)
    return firsts


@program("set.methods", *NAMES, torch="refuses")
def changed_one_by_one(xs: List[str], name: str) -> List[str]:
    found: Set[str] = set(xs)
    found.add(name)
    found.discard("a")
    found.discard("not there")
    found.add("k")
    found.remove("k")
    return sorted(found)


@program("set.methods exception.of_python", *NAMES, torch="refuses")
def removes_what_is_not_there(xs: List[str], name: str) -> int:
    found = set(xs)
    found.remove(name)
    return len(found)


@program("set.methods", *NAMES, torch="refuses")
def updated(xs: List[str], name: str) -> List[str]:
    found = {"m"}
    found.update(xs, [name], {"k": 1})
    found.update("qr")
    found.difference_update(["m"])
    found.intersection_update(xs + ["q"])
    found.symmetric_difference_update(["q", "r", "r"])
    return sorted(found)


@program("set.methods", *NAMES, torch="refuses")
def made_anew(xs: List[str], name: str) -> List[List[str]]:
    found = set(xs)
    return [
        sorted(found.union([name], ["u"])),
        sorted(found.intersection(["a", "c"])),
        sorted(found.difference([name])),
        sorted(found.symmetric_difference(["a", "z"])),
    ]


@program("set.methods", *NUMBERS, torch="refuses")
def copies_are_apart(xs: List[int], n: int) -> Tuple[int, int]:
    first = set(xs)
    second = first.copy()
    second.add(100)
    same = first
    same.add(200)
    second.clear()
    return len(first), len(second)


@program("set.methods", *NUMBERS, torch="refuses")
def questions(xs: List[int], n: int) -> List[bool]:
    found = set(xs)
    return [found.issubset([1, 2, 3, 4]), found.issuperset([n]), found.isdisjoint({n, 7}), bool(found), not found]


@program("set.operators", *NUMBERS, torch="refuses")
def combined(xs: List[int], n: int) -> List[List[int]]:
    a, b = set(xs), {n, 3, 8}
    return [sorted(a | b), sorted(a & b), sorted(a - b), sorted(b - a), sorted(a ^ b)]


@program("set.operators", *NUMBERS, torch="refuses")
def compared(xs: List[int], n: int) -> List[bool]:
    a, b = set(xs), {n}
    return [a == b, a != b, a <= b, a < b, a >= b, a > b, a == a.copy(), b <= a | b, b < a | b]


@program("set.operators", *NUMBERS, torch="refuses")
def combined_in_place(xs: List[int], n: int) -> List[int]:
    a = set(xs)
    same = a
    a |= {n, 9}
    a -= {1}
    a &= {2, 3, 5, 9}
    a ^= {2, 4}
    return sorted(same) + [len(a)]


@program("set.operators", *NUMBERS, torch="refuses")
def grows_in_a_loop(xs: List[int], n: int) -> List[int]:
    reached = {0}
    for x in xs:
        reached = reached | {r + x for r in reached}
    return sorted(reached)


@program("set.operators", *NUMBERS, torch="refuses")
def one_or_the_other(xs: List[int], n: int) -> int:
    s = set(xs)
    if n > 2:
        s = {n}
    chosen = s if len(s) > 1 else {1, 2, 3, 4}
    return len(chosen)


@program("set.whole", *NUMBERS, torch="refuses")
def eaten_whole(xs: List[int], n: int) -> List[int]:
    s = set(xs) | {n}
    return [min(s), max(s), sum(s), sum(x * x for x in s), int(any(x > 2 for x in s)), int(all(s)), len(s)]


@program("set.whole", *NUMBERS, torch="refuses")
def sorted_in_both_ways(xs: List[int], n: int) -> List[List[int]]:
    s = set(xs)
    return [sorted(s), sorted(s, reverse=True), sorted(x % 3 for x in s), [max(s, default=n)]]


@program("set.whole", *NAMES, torch="refuses")
def least_of_strings(xs: List[str], name: str) -> Tuple[str, str]:
    s = {*xs, name}
    return min(s), max(s)


@program("set.argument", ({1, 2}, 3), (set(), 3), torch="refuses")
def argument_that_changes(s: Set[int], n: int) -> Set[int]:
    s.add(n)
    s.discard(1)
    return s | {n + 1}


@program("set.argument", (frozenset({"a"}),), (frozenset(),), torch="refuses")
def frozen_argument(names: FrozenSet[str]) -> Tuple[bool, FrozenSet[str]]:
    return "a" in names, names


@program("set.argument", *NUMBERS, torch="refuses")
def sets_within(xs: List[int], n: int) -> Tuple[List[Set[int]], Dict[str, Set[int]]]:
    found: Dict[str, Set[int]] = {}
    found["all"] = set(xs)
    found["all"].add(n)
    return [{n}, set()], found


def _mark(seen: Set[int], n: int) -> bool:
    if n in seen:
        return False
    seen.add(n)
    return True


@program("set.argument", *NUMBERS, torch="refuses")
def passed_on(xs: List[int], n: int) -> List[bool]:
    seen: Set[int] = set()
    return [_mark(seen, x) for x in xs] + [_mark(seen, n), _mark(seen, n)]


@program("set.argument", *NUMBERS, torch="refuses")
def may_be_none(xs: List[int], n: int) -> int:
    s: Optional[Set[int]] = None
    if n == 2:
        s = set(xs)
    return -1 if s is None else len(s)


KNOWN = {"a", "b"}
SMALL = frozenset({1, 2})


@program("set.global", *NAMES, torch="refuses")
def set_of_the_file(xs: List[str], name: str) -> List[bool]:
    return [name in KNOWN, name not in KNOWN, len(KNOWN) == 2, set(xs) <= KNOWN]


@program("set.global", *NUMBERS, torch="refuses")
def frozenset_of_the_file(xs: List[int], n: int) -> List[int]:
    return sorted(SMALL | {n}) + [x for x in xs if x in SMALL]


@refused("set.global", UndefinedNameError, "a frozenset has no method 'add'")
def changes_the_set_of_the_file(n: int) -> int:
    KNOWN.add("c")
    return len(KNOWN)


@refused("set.order", UnsupportedError, "the order of a set's elements is known only to Python")
def goes_over_a_set(xs: List[int]) -> List[int]:
    out: List[int] = []
    for x in set(xs):
        out.append(x)
    return out


@refused("set.order", UnsupportedError, "the order of a set's elements is known only to Python")
def lists_a_set(xs: List[int]) -> List[int]:
    return list({1, 2})


@refused("set.order", UnsupportedError, "which element 'pop' takes out of a set is known only to Python")
def takes_any(xs: List[int]) -> int:
    return set(xs).pop()


@refused("set.order", UnsupportedError, "the text of a set depends on the order of its elements")
def shows_a_set(xs: List[int]) -> str:
    return f"{set(xs)}"


@refused("set.order", UnsupportedError, "the sum of the floats in a set depends on their order")
def sums_up_floats(xs: List[float]) -> float:
    return sum(set(xs))


@refused("set.order", UnsupportedError, "the order of a set's elements is known only to Python")
def sorts_by_a_key(xs: List[int]) -> List[int]:
    return sorted(set(xs), key=lambda x: x % 2)


@refused("set.elements", UnsupportedError, "the elements of a set are int, float, bool or str in a program, not Tuple[")
def set_of_tuples(n: int) -> int:
    return len({(n, 1)})


@refused("set.elements", TypeMismatchError, "'|=' of a set takes a set, got List[int]")
def changed_by_a_list(n: int) -> int:
    s = {n}
    s |= [1]
    return len(s)


@refused("set.methods", UndefinedNameError, "a frozenset has no method 'add'")
def changes_a_frozenset(n: int) -> int:
    s = frozenset([n])
    s.add(1)
    return len(s)


class Marks:
    def __init__(self) -> None:
        self.seen = {1}


@refused("set.elements", UnsupportedError, "attribute 'seen' of 'Marks' is a Set[int]; objects hold no sets")
def object_with_a_set(n: int) -> bool:
    return n in Marks().seen
