"""Loops that look for something, as users write them: None until it is found, a ``break`` where it is."""

from typing import Dict, List, Optional, Tuple, Union

import torch
from torch import Tensor

from tests.language.corpus import program


@program("infer.none statement.nested_control", ([3, 5, 8],), ([1],), torch="refuses")
def first_even(xs: List[int]) -> int:
    found = None
    for x in xs:
        if x % 2 == 0:
            found = x
            break
    if found is None:
        return -1
    return found


@program("infer.none statement.nested_control", (5, 4), (3, 1), torch="refuses")
def found_in_a_loop_within(n: int, m: int) -> int:
    k = 0
    is_bad = False
    while k < n:
        found = None
        i = 0
        while i < m:
            if i == 2:
                found = i
                break
            i += 1
        if found is None:
            is_bad = True
            break
        k += found
    return -1 if is_bad else k


@program(
    "infer.none infer.list",
    ("unaffable", {"un": 0, "##aff": 1, "##able": 2}),
    ("xyz", {"x": 1}),
    torch="refuses",
)
def pieces_of_a_word(word: str, vocabulary: Dict[str, int]) -> List[str]:
    start, found, is_bad = 0, [], False
    while start < len(word):
        end = len(word)
        piece = None
        while start < end:
            part = word[start:end]
            if start > 0:
                part = "##" + part
            if part in vocabulary:
                piece = part
                break
            end -= 1
        if piece is None:
            is_bad = True
            break
        found.append(piece)
        start = end
    return ["[UNK]"] if is_bad else found


@program("infer.none statement.chained_assignment", ([3, 5, 8],), ([],), torch="refuses")
def first_and_second(xs: List[int]) -> Tuple[Optional[int], Optional[int]]:
    first = second = None
    for x in xs:
        if x > 2:
            if first is None:
                first = x
                continue
            second = x
            break
    return first, second


@program("infer.none statement.nested_control", ([[1, 2], [3, 4]], 4), ([[1, 2]], 9), torch="refuses")
def place_in_rows(rows: List[List[int]], target: int) -> Optional[Tuple[int, int]]:
    place = None
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            if value == target:
                place = (i, j)
                break
        if place is not None:
            break
    return place


@program("infer.none", ([0.5, 0.4, 0.45, 0.44, 0.3], 2), ([1.0], 1), torch="refuses")
def stops_early(losses: List[float], patience: int) -> Tuple[Optional[float], int, Optional[int]]:
    best = None
    bad = 0
    stopped = None
    for epoch, loss in enumerate(losses):
        if best is None or loss < best - 1e-3:
            best = loss
            bad = 0
            continue
        bad += 1
        if bad >= patience:
            stopped = epoch
            break
    return best, bad, stopped


@program("refine.while", (4, 1), (4, None), torch="refuses")
def goes_on_while_known(x: Optional[int], y: Optional[int]) -> Tuple[Optional[int], int]:
    fuel = 6
    while x is not None and fuel > 0:
        fuel -= 1
        if y is None:
            continue
        if fuel % 2 == 1:
            break
        x = y + x if fuel > 3 else None
    return x, fuel


@program("infer.none", (3,), (0,), torch="refuses")
def emptied_again(n: int) -> Optional[int]:
    last = None
    for i in range(n):
        if i == 0:
            last = None
        if i > 1:
            last = i
    return last


@program("infer.list infer.dict infer.number", (["a", "b"], 2), ([], 0), torch="refuses")
def several_at_once(words: List[str], n: int) -> Tuple[List[str], Dict[int, str], int, float]:
    seen, text = [], ""
    for word in words:
        seen.append(word)
        text += word
    count, named, total = 0, {}, 0.0
    for i in range(n):
        named[i] = text
        count, total = count + 1, total + 0.5
    return seen, named, count, total


@program("infer.list", (torch.tensor([0.5, 0.2, 0.9]), 2), (torch.tensor([0.5]), 1), torch="refuses")
def beams_anew_in_each_step(scores: Tensor, width: int) -> List[Tuple[List[int], float]]:
    beams: List[Tuple[List[int], float]] = [([], 0.0)]
    for _ in range(2):
        candidates = []
        for tokens, score in beams:
            for token in range(scores.size(0)):
                candidates.append((tokens + [token], score + float(scores[token])))
        candidates.sort(key=lambda candidate: candidate[1], reverse=True)
        beams = []
        for tokens, score in candidates:
            beams.append((tokens, score))
            if len(beams) == width:
                break
    return beams


@program("logic.values", ([1, 2], 3, "a"), ([], 0, ""), torch="differs")
def and_gives_an_operand(
    xs: List[int], n: int, s: str
) -> Tuple[Union[int, bool], Union[str, bool], Union[str, bool, int], Union[float, bool], str, bool, int]:
    first = len(xs) > 0 and xs[0]
    text = n > 1 and s
    last = n > 1 and s and n
    scaled = n > 0 and n < 5 and n * 1.5
    said = "yes" if n > 0 and s else "no"
    return first, text, last, scaled, said, bool(n > 1 and s), 1 if text else 2


@program("logic.values", (3, None), (5, 7), torch="refuses")
def and_of_an_optional(n: int, m: Optional[int]) -> Tuple[Union[int, bool], bool, Union[bool, int, None]]:
    return m is not None and m + 1, m is None or m > 6, n > 4 and m


@program("list.sort list.append_extend", ([3, 1],), ([],), torch="refuses")
def methods_that_give_nothing(xs: List[int]) -> Tuple[None, None, None]:
    return xs.append(2), xs.sort(), xs.extend([0])
