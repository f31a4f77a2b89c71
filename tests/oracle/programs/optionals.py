"""Optional and Union: refinement, isinstance, annotate."""
# The programs are spelled as people spell them.
# ruff: noqa: E714

from typing import Dict, List, Optional, Tuple, Union

import torch
from torch import Tensor

from tests.oracle.corpus import program, ramp


@program((ramp(2), None), (ramp(2), ramp(2)))
def is_none(x: Tensor, y: Optional[Tensor]) -> Tensor:
    if y is None:
        return x
    return x + y


@program((ramp(2), None), (ramp(2), ramp(2)))
def is_not_none(x: Tensor, y: Optional[Tensor] = None) -> Tensor:
    if y is not None:
        x = x * y
    return x


@program((None, 2), (3, 2), (3, None))
def and_refinement(a: Optional[int], b: Optional[int]) -> int:
    if a is not None and b is not None:
        return a + b
    return 0


@program((None, 2), (3, 2), (3, None))
def or_refinement(a: Optional[int], b: Optional[int]) -> int:
    if a is None or b is None:
        return 0
    return a * b


@program((None,), (4,))
def not_refinement(a: Optional[int]) -> int:
    if not (a is None):
        return a
    return -1


@program((None,), (4,))
def assert_refinement(a: Optional[int]) -> int:
    assert a is not None
    return a + 1


@program((None,), (4,))
def ternary_refinement(a: Optional[int]) -> int:
    return a if a is not None else 7


@program((None,), (4,))
def reassigned(a: Optional[int]) -> int:
    if a is None:
        a = 5
    return a + 1


@program((3,))
def annotated_none(n: int) -> Optional[int]:
    x = torch.jit.annotate(Optional[int], None)
    if n > 2:
        x = n
    return x


@program((5,))
def grows_optional(n: int) -> int:
    best: Optional[int] = None
    for i in range(n):
        if best is None:
            best = i
        elif i > best:
            best = i
    if best is None:
        return -1
    return best


@program(([1, 2], None), ([1, 2], [3]))
def optional_list(a: List[int], b: Optional[List[int]]) -> List[int]:
    if b is not None:
        a = a + b
    return a


@program(([None, 1, None, 3],))
def list_of_optionals(v: List[Optional[int]]) -> int:
    s = 0
    for x in v:
        if x is not None:
            s += x
    return s


@program((1,), ("a",))
def union_isinstance(x: Union[int, str]) -> str:
    if isinstance(x, int):
        return "int"
    return x


@program((1,), (2.5,), ([1, 2],))
def union_of_three(x: Union[int, float, List[int]]) -> float:
    if isinstance(x, int):
        return x * 2.0
    elif isinstance(x, float):
        return x
    else:
        return float(len(x))


@program((1,))
def static_isinstance(n: int) -> int:
    if isinstance(n, int):
        return n
    else:
        return n + 1


@program((ramp(2),))
def tensor_isinstance(x: Tensor) -> int:
    if isinstance(x, Tensor):
        return 1
    return 0


@program((None,), (2,))
def isinstance_of_optional(x: Optional[int]) -> int:
    if isinstance(x, int):
        return x
    return 0


@program((2, 3), (None, 3))
def equality_with_optional(a: Optional[int], b: int) -> bool:
    return a is not None and a == b


@program((ramp(2),))
def none_arguments(x: Tensor) -> Tensor:
    return torch.clamp(x, None, 0.3) + torch.clamp(x, 0.2, None) + x.sum(dim=None)


@program(({"a": 1},))
def optional_from_dict(d: Dict[str, int]) -> int:
    v = d.get("b")
    if v is None:
        return -1
    return v


@program((None,), ((1, 2),))
def optional_tuple(t: Optional[Tuple[int, int]]) -> int:
    if t is None:
        return 0
    a, b = t
    return a + b


@program((ramp(2), None), (ramp(2), 0.5))
def unwrapped(x: Tensor, f: Optional[float]) -> Tensor:
    if f is None:
        return x
    return x * torch.jit._unwrap_optional(f)


@program((None,), (3,))
def refinement_in_while(n: Optional[int]) -> int:
    steps = 0
    while steps < 3:
        if n is None:
            n = 0
        n = n + steps
        steps += 1
    return steps if n is None else n


@program((3, None), (3, 2))
def continue_with_none(k: int, start: Optional[int]) -> int:
    s = 0
    for i in range(k):
        if start is None:
            s += 1
            continue
        else:
            s += start + i
    return s
