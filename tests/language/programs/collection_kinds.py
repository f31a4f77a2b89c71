"""``collections``: dicts that make values, dicts with an order, lists that grow at both ends."""

from collections import Counter, OrderedDict, defaultdict, deque
from typing import DefaultDict, Deque, Dict, List, Optional, Tuple

import torch
from torch import Tensor

from rekindle.errors import SchemaError, TypeMismatchError, UnsupportedError
from tests.language.corpus import program, refused

WORDS = (["a", "b", "a"],), ([],)
NUMBERS = ([3, 1, 2],), ([],)
X = torch.tensor([1.0, -2.0])


@program("library.defaultdict", *WORDS, torch="refuses")
def counted(words: List[str]) -> Dict[str, int]:
    found = defaultdict(int)
    for word in words:
        found[word] += 1
    return found


@program("library.defaultdict", *WORDS, torch="refuses")
def grouped(words: List[str]) -> Dict[str, List[int]]:
    places = defaultdict(list)
    for i, word in enumerate(words):
        places[word].append(i)
    return places


@program("library.defaultdict", *NUMBERS, torch="refuses")
def grouped_by_a_number(xs: List[int]) -> List[int]:
    found: DefaultDict[int, List[int]] = defaultdict(list)
    for x in xs:
        found[x % 2].append(x)
    return [len(found[0]), len(found[1]), len(found[7]), len(found)]


@program("library.defaultdict", *WORDS, torch="refuses")
def reading_makes_an_item(words: List[str]) -> Tuple[float, int, bool]:
    sums = defaultdict(float)
    for word in words:
        sums[word] += 0.5
    read = sums["new"]
    return read, len(sums), "other" in sums


@program("library.defaultdict", *WORDS, torch="refuses")
def begins_with_items(words: List[str]) -> DefaultDict[str, int]:
    found = defaultdict(int, {"a": 10})
    for word in words:
        found[word] -= 1
    return found


@program("library.defaultdict", (X, 3), (X * 2, 0), torch="refuses")
def lists_of_tensors(x: Tensor, n: int) -> List[Tensor]:
    parts: Dict[int, List[Tensor]] = defaultdict(list)
    for i in range(n):
        parts[i % 2].append(x * i)
    return parts[0] + parts[1]


@program("library.defaultdict exception.of_python", *WORDS, torch="refuses")
def get_makes_nothing(words: List[str]) -> int:
    found: DefaultDict[str, int] = defaultdict(int)
    before = found.get("a", -1)
    for word in words:
        found[word] = before
    return len(found) + found.pop("a")


@program("library.ordered_dict", *WORDS, torch="refuses")
def moved_to_the_end(words: List[str]) -> List[str]:
    d: OrderedDict[str, int] = OrderedDict()
    d["a"] = 0
    for i, word in enumerate(words):
        d[word] = i
    d.move_to_end("a")
    d["z"] = 1
    d.move_to_end("z", last=False)
    return list(d.keys())


@program("library.ordered_dict", *WORDS, torch="refuses")
def taken_from_both_ends(words: List[str]) -> Tuple[Tuple[str, int], Tuple[str, int], int]:
    d = OrderedDict({"x": 1, "y": 2, "w": 3})
    for word in words:
        d[word] = len(d)
    return d.popitem(), d.popitem(last=False), len(d)


@program("library.ordered_dict", (3,), (1,), torch="refuses")
def order_counts(n: int) -> List[bool]:
    a = OrderedDict({1: n, 2: n})
    b = OrderedDict({2: n, 1: n})
    c = OrderedDict({1: n, 2: n})
    return [a == b, a == c, a != b]


@program("library.ordered_dict", (3,), (0,), torch="refuses")
def is_given_back(n: int) -> "OrderedDict[int, int]":
    d: OrderedDict[int, int] = OrderedDict()
    for i in range(n):
        d[n - i] = i
    return d


@program("library.deque", *NUMBERS, torch="refuses")
def both_ends(xs: List[int]) -> Tuple[int, int, int, List[int]]:
    q = deque(xs)
    q.append(4)
    q.appendleft(0)
    first, last = q.popleft(), q.pop()
    q.extend([7, 8])
    q.extendleft([5, 6])
    return first, last, len(q), list(q)


@program("library.deque", (7,), (1,), torch="refuses")
def breadth_first(n: int) -> List[int]:
    queue = deque([1])
    order: List[int] = []
    while queue:
        x = queue.popleft()
        order.append(x)
        for child in [2 * x, 2 * x + 1]:
            if child <= n:
                queue.append(child)
    return order


@program("library.deque", *NUMBERS, torch="refuses")
def rotated(xs: List[int]) -> List[int]:
    q: Deque[int] = deque()
    for x in xs:
        q.append(x)
    q.rotate(1)
    q.rotate()
    q.rotate(-4)
    return [x * 2 for x in q]


@program("library.deque exception.of_python", (2,), (1,), torch="refuses")
def empty_at_last(n: int) -> int:
    q = deque([n])
    total = 0
    for _ in range(n):
        total += q.popleft()
    return total


@program("library.deque", (3,), (0,), torch="refuses")
def deque_as_a_result(n: int) -> Deque[int]:
    return deque(range(n))


@program("library.deque", (5,), (0,), torch="refuses")
def the_last_three(n: int) -> List[int]:
    q: Deque[int] = deque(maxlen=3)
    sums: List[int] = []
    for i in range(n):
        q.append(i)
        sums.append(sum(q))
    return sums


@program("library.deque", *NUMBERS, torch="refuses")
def at_most_so_many(xs: List[int]) -> Tuple[List[int], Optional[int], int]:
    q = deque(xs, maxlen=2)
    q.extend([7, 8, 9])
    q.appendleft(0)
    q.extendleft([5])
    q.append(4)
    return list(q), q.maxlen, len(q)


@program("library.deque", *NUMBERS, torch="refuses")
def copied_and_limited(xs: List[int]) -> "Deque[int]":
    q = deque(xs, 3)
    q.append(1)
    return q.copy()


@refused("library.deque", UnsupportedError, "how many elements a deque holds at most must be a constant here")
def of_at_most(n: int) -> int:
    return len(deque([1, 2], maxlen=n))


@refused("library.deque", UnsupportedError, "a deque has no text in a program")
def text_of_a_deque(n: int) -> str:
    return str(deque([n]))


def _five() -> int:
    return 5


@program("library.defaultdict", *WORDS, torch="refuses")
def made_by_a_lambda(words: List[str]) -> Dict[str, int]:
    found = defaultdict(lambda: 5)
    for word in words:
        found[word] += 1
    return {"new": found["new"], **found}


@program("library.defaultdict", *WORDS, torch="refuses")
def made_by_a_function(words: List[str]) -> Dict[str, int]:
    found: DefaultDict[str, int] = defaultdict(_five)
    for word in words:
        found[word] *= 2
    return dict(found)


@program("library.defaultdict", *WORDS, torch="refuses")
def lists_that_begin_with_something(words: List[str]) -> Dict[str, List[int]]:
    found = defaultdict(lambda: [-1])
    for i, word in enumerate(words):
        found[word].append(i)
    return dict(found)


@program("library.defaultdict", *WORDS, torch="refuses")
def dicts_of_dicts(words: List[str]) -> Dict[str, Dict[str, int]]:
    found: DefaultDict[str, DefaultDict[str, int]] = defaultdict(lambda: defaultdict(int))
    for word in words:
        found[word][word + word] += 1
    return {word: dict(counts) for word, counts in found.items()}


@refused("library.defaultdict", UnsupportedError, "what makes the values of a defaultdict reads 'n', a variable around")
def made_of_a_variable(n: int) -> int:
    found = defaultdict(lambda: n * 2)
    return found["a"]


@program("library.counter", *WORDS, torch="refuses")
def counts(words: List[str]) -> Tuple[int, int, int, bool]:
    found = Counter(words)
    return found["a"], found["other"], len(found), "other" in found


@program("library.counter", *WORDS, torch="refuses")
def counted_one_by_one(words: List[str]) -> Dict[str, int]:
    found = Counter()
    for word in words:
        found[word] += 1
    return dict(found)


@program("library.counter", ("hello",), ("",), torch="refuses")
def most_common_letters(text: str) -> Tuple[List[Tuple[str, int]], List[Tuple[str, int]]]:
    return Counter(text).most_common(), Counter(letter for letter in text if letter != "h").most_common(1)


@program("library.counter", *WORDS, torch="refuses")
def counters_that_change(words: List[str]) -> Tuple[List[Tuple[str, int]], int, List[str]]:
    found = Counter(words)
    found.update(["a", "q"])
    found.update({"b": 3})
    found.subtract(["a", "z"])
    del found["q"], found["never"]
    return sorted(found.items()), found.total(), list(found.elements())


@program("library.counter", (["a", "b", "a"], ["a", "c"]), ([], ["x"]), torch="refuses")
def counters_together(a: List[str], b: List[str]) -> List[Dict[str, int]]:
    first, second = Counter(a), Counter(b)
    return [dict(first + second), dict(first - second), dict(first & second), dict(first | second)]


@program("library.counter", ([1, 2, 1], [2, 1, 1]), ([], [0]), torch="refuses")
def counters_compared(a: List[int], b: List[int]) -> Tuple[bool, bool, bool]:
    return Counter(a) == Counter(b), Counter(a) != Counter(b), Counter(a) == Counter({1: 2, 2: 1, 3: 0})


@program("library.counter", *NUMBERS, torch="refuses")
def given_back(xs: List[int]) -> "Counter[int]":
    found: Counter[int] = Counter(xs)
    found[7] += 2
    return found.copy()


@refused("library.counter", UnsupportedError, "a Counter has no text in a program")
def text_of_a_counter(words: List[str]) -> str:
    return str(Counter(words))


def appends_nine(xs):
    xs.append(9)
    return len(xs)


def asks_for_new(found: Dict[str, int]) -> int:
    return found["new"]


def the_last_two(n: int) -> "Deque[int]":
    return deque(range(n), maxlen=2)


class Recent:
    def __init__(self) -> None:
        self.last: Deque[int] = deque(maxlen=2)
        self.counts: DefaultDict[str, int] = defaultdict(int)

    def add(self, x: int) -> Tuple[int, int]:
        self.last.append(x)
        self.counts["all"] += 1
        return len(self.last), self.counts["all"]


@program("library.deque", (3,), (0,), torch="refuses")
def limits_are_kept(n: int) -> Tuple[int, List[int], List[int]]:
    q: Deque[int] = deque(range(n), maxlen=2)
    same = (q, 1)
    return appends_nine(same[0]), list(q), list(the_last_two(n))


@program("library.deque library.defaultdict", (3,), (0,), torch="refuses")
def attributes_of_classes_keep_them(n: int) -> Tuple[int, int]:
    recent = Recent()
    for i in range(n):
        recent.add(i)
    return recent.add(9)


class RemembersTwo(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last: Deque[int] = deque(maxlen=2)

    def forward(self, n: int) -> int:
        for i in range(n):
            self.last.append(i)
        return len(self.last)


program("library.deque", (3,), (1,), torch="refuses")(RemembersTwo)


@program("library.counter library.defaultdict", ("aab",), ("",), torch="refuses")
def declared_as_a_dict(text: str) -> Dict[str, int]:
    found: Dict[str, int] = Counter(text)
    return found


@refused("library.defaultdict", SchemaError, "would not make values any more as a Dict[str, int]")
def passed_as_a_dict(n: int) -> int:
    found: DefaultDict[str, int] = defaultdict(int)
    return asks_for_new(found) + n


@refused("library.deque", TypeMismatchError, "a Deque[int] is not a Deque[int] of 2 at most")
def another_limit(n: int) -> int:
    q: Deque[int] = deque(range(n), maxlen=2)
    if n > 1:
        q = deque([1, 2, 3])
    return len(q)
