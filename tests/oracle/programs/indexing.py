"""Indexing tensors, read and written."""

from typing import List, Optional, Tuple

import torch
from torch import Tensor

from tests.oracle.corpus import program, ramp


@program((ramp(3, 4),))
def integers(x):
    return x[0], x[-1], x[1, 2], x[0][1]


@program((ramp(3, 4),))
def slices(x):
    return x[1:], x[:2], x[::2], x[0:2, 1:3], x[:, 1], x[..., 0], x[:, -1:]


@program((ramp(4, 4), 1, 3))
def variable_bounds(x, a: int, b: int):
    return x[a:b], x[a], x[:, a:b], x[a:b, a:b], x[-b:-a]


@program((ramp(3, 4),))
def with_none(x):
    return x[None], x[:, None], x[None, 0, None], x[..., None]


@program((ramp(3, 4), torch.tensor([0, 2])))
def with_tensor(x, i):
    return x[i], x[:, i], x[i, i], x[i, 1], x[0, i]


@program((ramp(3, 4),))
def with_mask(x):
    return x[x > 2.0], x[x[:, 0] > 1.0]


@program((ramp(3, 4),))
def with_list(x):
    return x[[0, 2]], x[:, [1, 1]]


@program((ramp(3, 4),))
def write_number(x):
    x[0] = 1.0
    x[1, 2] = 5
    x[:, 0] = -1.0
    return x


@program((ramp(3, 4), ramp(4, start=9.0)))
def write_tensor(x, y):
    x[0] = y
    x[1:] = y + 1
    x[..., 1] = torch.zeros(3)
    return x


@program((ramp(3, 4), torch.tensor([0, 2])))
def write_at_tensor(x, i):
    x[i] = 0.0
    x[i, i] = torch.ones(2)
    x[:, i] = 3.0
    return x


@program((ramp(3, 4),))
def write_mask(x):
    x[x > 2.0] = 0.0
    return x


@program((ramp(3, 4),))
def augmented(x):
    x[0] += 1
    x[:, 1] *= 2.0
    x[1:, 2] -= x[1:, 3]
    x[0, 0] /= 2
    return x


@program((ramp(3, 4), torch.tensor([0, 1])))
def augmented_at_tensor(x, i):
    x[i] += 1.0
    return x


@program((ramp(2, 3, 4),))
def ellipsis_in_the_middle(x):
    return x[0, ..., 1], x[..., 1, :], x[1, ...]


@program((ramp(5), 2))
def loop_of_writes(x, n: int):
    for i in range(n):
        x[i] = x[i + 1] * 2
    return x


@program((ramp(4, 4), [0, 1]))
def index_by_list_argument(x: Tensor, i: List[int]) -> Tensor:
    return x[i]


@program((ramp(3, 3), torch.tensor([True, False, True])))
def mask_argument(x, m):
    return x[m], x[:, m]


@program((ramp(6), None), (ramp(6), 2))
def optional_bounds(x: Tensor, stop: Optional[int]) -> Tensor:
    return x[:stop]


@program((ramp(3, 4),))
def tuple_of_views(x) -> Tuple[Tensor, Tensor]:
    a, b = x[0], x[1]
    a += 1
    return a, b
