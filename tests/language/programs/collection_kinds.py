"""``collections``: dicts that make values, dicts with an order, lists that grow at both ends."""

from collections import OrderedDict, defaultdict, deque
from typing import DefaultDict, Deque, Dict, List, Tuple

import torch
from torch import Tensor

from rekindle.errors import UnsupportedError
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


@refused("library.deque", UnsupportedError, "a deque of a program has no maxlen")
def of_at_most(n: int) -> int:
    return len(deque([1, 2], maxlen=n))


@refused("library.deque", UnsupportedError, "a deque has no text in a program")
def text_of_a_deque(n: int) -> str:
    return str(deque([n]))


@refused("library.defaultdict", UnsupportedError, "what makes the values of a defaultdict is int, float, bool, str")
def made_by_a_lambda(n: int) -> int:
    d = defaultdict(lambda: 5)
    return d["a"] + n
