"""Types in every spelling."""
# The programs are spelled as people spell them.
# ruff: noqa: UP037

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import torch

from tests.oracle.corpus import program, ramp


@program((ramp(2), 3, [1, 2]))
def comment_on_signature(x, n, v):
    # type: (Tensor, int, List[int]) -> Tensor
    return x + n + v[0]


@program((1, 2.0))
def comment_on_each_line(
    a,  # type: int
    b,  # type: float
):
    # type: (...) -> float
    return a + b


@program((3,))
def comment_on_assignment(n):
    # type: (int) -> List[int]
    out: List[int] = []
    out.append(n)
    return out


@program((1, [2, 3], {"a": 1}))
def builtin_generics(a: int, b: list[int], c: dict[str, int]) -> tuple[int, int]:
    return a + b[0], c["a"]


@program((None,), (2,))
def pipe_union(a: int | None) -> int:
    return 0 if a is None else a


@program((ramp(2),))
def torch_tensor(x: torch.Tensor) -> torch.Tensor:
    return x + 1


@program((ramp(2),))
def string_annotations(x: "torch.Tensor", n: "int" = 2) -> "torch.Tensor":
    return x * n


@program(([[1, 2], [3]], {"a": [1.0]}))
def deep(a: List[List[int]], b: Dict[str, List[float]]) -> Tuple[int, Optional[float]]:
    return a[1][0], b["a"][0]


@program((2,))
def annotate_call(n: int) -> List[Tuple[int, int]]:
    out = torch.jit.annotate(List[Tuple[int, int]], [])
    out.append((n, n))
    return out


@program((ramp(2), "cpu"))
def device_argument(x: torch.Tensor, name: str) -> torch.Tensor:
    d: torch.device = torch.device(name)
    return x.to(d)


@program((ramp(2), torch.float64))
def dtype_argument(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return x.to(dtype)


@program((ramp(2),))
def no_annotations(x):
    y = x
    return y + y


@program((5,))
def any_argument(x: Any) -> bool:
    return isinstance(x, int)
