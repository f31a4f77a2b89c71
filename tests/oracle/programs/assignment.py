"""Assignment in all its forms."""

from typing import Dict, List, Tuple

import torch

from tests.oracle.corpus import program, ramp


@program((1,))
def chained(n: int) -> int:
    a = b = n + 1
    return a * b


@program((ramp(3), 2))
def augmented_tensor(x, n: int):
    x += 1
    x -= n
    x *= 2.0
    x /= n
    return x


@program((5,))
def augmented_int(n: int) -> int:
    n += 3
    n -= 1
    n *= 4
    n = n // 3
    n <<= 2
    n |= 1
    n &= 13
    n ^= 6
    n >>= 1
    return n


@program((2.0,))
def augmented_float(f: float) -> float:
    f += 1
    f *= 3.5
    f -= 0.5
    f /= 2
    f **= 2
    return f


@program((ramp(2, start=1.0),))
def augmented_tensor_power(x):
    y = x
    y **= 2
    return x, y


@program((ramp(2, start=1.0).long(),))
def augmented_tensor_remainder(x):
    x %= 3
    return x


@program((ramp(2, start=1.0).long(),))
def augmented_tensor_bits(x):
    y = x
    y |= 1
    y &= 3
    return x, y


@program((ramp(2, start=1.0).long(),))
def augmented_tensor_shifts(x):
    x <<= 2
    x >>= 1
    return x


@program(("a",))
def augmented_string(s: str) -> str:
    s += "b"
    s += s
    return s


@program(([1],))
def augmented_list(v: List[int]) -> List[int]:
    w = v
    w += [2, 3]
    v[0] += 10
    return v


@program((1, 2))
def unpack_nested(a: int, b: int) -> int:
    (x, y), z = (a, b), 3
    return x * 100 + y * 10 + z


@program((ramp(4, 2),))
def unpack_chunk(x):
    a, b = x.chunk(2)
    return a - b


@program((ramp(4, 2),))
def unpack_chunk_reassigned(x):
    a, b, c, d = x.chunk(4, 0)
    a = torch.sigmoid(a)
    b = torch.tanh(b)
    return a * b + c, d


@program((ramp(3),))
def unpack_result(x):
    values, indices = torch.max(x, 0)
    return values, indices


@program((ramp(3),))
def named_results(x):
    r = x.max(dim=0)
    return r.values, r.indices


@program((ramp(3, 2),))
def throw_away(x) -> int:
    _, n = x.shape
    return n


@program(([1, 2, 3, 4],))
def star_of_list(v: List[int]) -> Tuple[int, int, int]:
    a, b, c, _ = v
    return a, b, c


@program((1,))
def into_subscripts(n: int) -> Tuple[List[int], Dict[str, int]]:
    v = [0, 0]
    d = {"k": 0}
    v[0], d["k"] = n, n + 1
    return v, d


@program((ramp(2),))
def rebinding(x):
    y = x
    x = x + 1
    x = x * 2
    return x, y


@program((ramp(2),))
def in_place_aliases(x):
    y = x
    y += 1
    z = x.view(2, 1)
    z.mul_(3)
    return x, y, z


@program((1,))
def annotated(n: int) -> float:
    a: int = n
    b: float = 2.5
    c: List[int] = [a]
    return b * c[0]


@program((ramp(3),))
def out_argument(x):
    y = torch.empty(3)
    torch.add(x, x, out=y)
    return y
