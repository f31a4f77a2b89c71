"""Lists: literals, methods, slices, comprehensions."""

from typing import List, Tuple

import torch
from torch import Tensor

from tests.oracle.corpus import program, ramp


@program((3,))
def literal(n: int) -> List[int]:
    return [n, n + 1, 2 * n]


@program(())
def empty_and_append() -> List[Tensor]:
    out = []
    out.append(torch.ones(2))
    return out


@program((2.5,))
def floats(f: float) -> List[float]:
    out: List[float] = []
    out.append(f)
    out.append(1.0)
    return out


@program(([3, 1, 2],))
def methods(values: List[int]) -> Tuple[List[int], int, int]:
    values.append(4)
    values.extend([5, 6])
    values.insert(0, 7)
    last = values.pop()
    first = values.pop(0)
    values.reverse()
    values.sort()
    values.remove(3)
    return values, first, last


@program(([3, 1, 2, 1],))
def queries(values: List[int]) -> Tuple[int, int, int, bool, bool]:
    return len(values), values.index(2), values.count(1), 3 in values, 9 in values


@program(([3, 1, 2],))
def clear_and_copy(values: List[int]) -> Tuple[List[int], List[int]]:
    other = values.copy()
    values.clear()
    return values, other


@program(([1, 2, 3, 4, 5],))
def slices(v: List[int]) -> Tuple[List[int], List[int], List[int], List[int], List[int]]:
    return v[1:3], v[:2], v[3:], v[::2], v[-2:]


@program(([1, 2, 3, 4, 5],))
def item_writes(v: List[int]) -> List[int]:
    v[0] = 10
    v[-1] = 50
    v[1], v[2] = v[2], v[1]
    return v


@program(([1, 2], [3]))
def concatenation(a: List[int], b: List[int]) -> List[int]:
    c = a + b
    c += [9]
    return c * 2


@program(([1, 2], [1, 2]), ([1], [2]))
def comparison(a: List[int], b: List[int]) -> Tuple[bool, bool]:
    return a == b, a != b


@program((4,))
def comprehension(n: int) -> List[int]:
    return [i * i for i in range(n)]


@program(([1, 2, 3],))
def comprehension_over_list(v: List[int]) -> List[float]:
    return [float(x) + 0.5 for x in v]


@program(([ramp(2), ramp(3)],))
def comprehension_of_tensors(xs: List[Tensor]) -> List[Tensor]:
    return [x * 2 for x in xs]


@program(([[1, 2], [3]],))
def nested_lists(v: List[List[int]]) -> int:
    s = 0
    for row in v:
        for x in row:
            s = s * 10 + x
    v[0].append(9)
    return s + v[0][-1]


@program(([ramp(2), ramp(2, start=1.0)],))
def tensor_list_to_ops(xs: List[Tensor]) -> Tuple[Tensor, Tensor]:
    return torch.cat(xs), torch.stack(xs, dim=1)


@program((ramp(4, 3),))
def list_from_tensor_split(x: Tensor) -> Tensor:
    parts = x.split(2)
    return parts[0] + parts[1]


@program(([1, 2, 3],))
def delete_items(v: List[int]) -> List[int]:
    del v[0]
    del v[-1]
    return v


@program(([4, 2, 8],))
def min_max_sum(v: List[int]) -> Tuple[int, int, int]:
    return min(v), max(v), sum(v)


@program(([True, False],), ([True],))
def any_all(v: List[bool]) -> Tuple[bool, bool]:
    return any(v), all(v)


@program(([4, 2, 8],))
def sorted_copy(v: List[int]) -> Tuple[List[int], List[int]]:
    w = sorted(v)
    return v, w


@program(([1, 2],))
def aliases(v: List[int]) -> Tuple[List[int], List[int]]:
    w = v
    w.append(3)
    return v, w


@program((3,))
def list_of_range(n: int) -> List[int]:
    return list(range(n))


@program((2,))
def list_multiplied(n: int) -> List[int]:
    return [0] * n


@program((["b", "a"],))
def strings_in_list(v: List[str]) -> str:
    v.sort()
    return ",".join(v)


@program(([(1, "a"), (2, "b")],))
def list_of_tuples(v: List[Tuple[int, str]]) -> str:
    v.append((3, "c"))
    return v[2][1] + v[0][1]


@program((ramp(2, 3),))
def sizes_as_list(x: Tensor) -> List[int]:
    size = x.size()
    shape = x.shape
    return [size[0], size[-1], len(shape), shape[1]]


@program(([1, 2, 3],))
def unpack_list(v: List[int]) -> int:
    a, b, c = v
    return a * 100 + b * 10 + c
