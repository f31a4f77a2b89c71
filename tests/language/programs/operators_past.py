"""Operators as Python calls them, beyond their schemas."""

from collections.abc import Sequence
from typing import List, Tuple

import torch
from torch import Tensor

from tests.language.corpus import program

X = torch.tensor([[1.0, -2.0]])
Y = torch.tensor([[0.5, 3.0], [1.0, 1.0]])
BITS = torch.tensor([5, 0, 3])
CPU = torch.device("cpu")


@program("operator.reflected", (X,), (Y,), torch="refuses")
def reflected_arithmetic(x: Tensor) -> List[Tensor]:
    return [x.__radd__(1), x.__rsub__(2.5), x.__rmul__(3), x.__rtruediv__(2.0), x.__rpow__(2), x.__rmod__(3)]


@program("operator.reflected", (BITS,), (BITS + 1,), torch="refuses")
def reflected_bits(x: Tensor) -> List[Tensor]:
    return [x.__rand__(4), x.__ror__(8), x.__rxor__(1)]


@program("operator.reflected", (Y,), (Y + 1,), torch="refuses")
def reflected_product(x: Tensor) -> Tensor:
    return x.__rmatmul__(x + 1)


@program("operator.ints_as_floats", (X,), (Y,), torch="refuses")
def ints_as_floats(x: Tensor) -> Tensor:
    y = torch.empty_like(x).uniform_(0, 1)
    return torch.nn.functional.leaky_relu(x, 2) + y.clamp_(0, 1) + torch.zeros_like(x).normal_(0, 2)


@program("operator.ints_as_floats", (X, 2), (Y, 0), torch="refuses")
def ints_as_floats_from_variables(x: Tensor, n: int) -> Tensor:
    return x.clone().uniform_(n, n + 1)


@program("operator.requires_grad", (3,), (0,), torch="refuses")
def made_to_require_gradients(n: int) -> Tuple[bool, bool, Tensor]:
    x = torch.ones(n, requires_grad=True)
    y = torch.zeros(n, requires_grad=False)
    return x.requires_grad, y.requires_grad, (x * 2 + y).detach()


@program("operator.requires_grad", (True,), (False,), torch="refuses")
def made_to_require_gradients_or_not(wanted: bool) -> List[bool]:
    return [torch.eye(2, requires_grad=wanted).requires_grad, torch.full((2,), 1.0, requires_grad=wanted).requires_grad]


@program("operator.empty_size", (2.5,), (-1.0,))
def empty_sizes(value: float) -> Tuple[Tensor, int]:
    return torch.full((), value), torch.empty(()).dim()


@program("operator.as_tuple", (Y,), (BITS,), torch="refuses")
def places_of_what_is_not_zero(x: Tensor) -> List[Tensor]:
    places = torch.nonzero(x > 1, as_tuple=True)
    return [x[places[0]], torch.nonzero(x, as_tuple=False), x.nonzero()]


@program("operator.default_dtype", (3,), (1,), torch="refuses")
def in_the_default_dtype(n: int) -> Tensor:
    return torch.arange(n, dtype=torch.get_default_dtype())


@program("operator.windows", (5,), (8,), torch="refuses")
def windows(n: int) -> List[Tensor]:
    found = torch.signal.windows
    return [found.hann(n), found.gaussian(n, std=2.0), found.kaiser(n, sym=False), found.nuttall(n), found.cosine(n)]


@program("operator.masked", (Y,), (X,), torch="refuses")
def masked(x: Tensor) -> List[Tensor]:
    mask = x > 0
    total = torch.masked.sum(x, dim=1, mask=mask)
    return [total, torch.masked.mean(x, mask=mask), torch.masked.softmax(x, 1, mask=mask), torch.masked.amax(x, 0)]


@program("operator.masked", (Y,), (BITS,), torch="refuses")
def masked_in_a_dtype(x: Tensor) -> Tensor:
    return torch.masked.cumsum(x, 0, dtype=torch.float64, mask=x > 0)


@program("isinstance.abstract", ([1, 2],), ([],), torch="refuses")
def is_a_sequence(xs: List[int]) -> List[bool]:
    return [isinstance(xs, Sequence), isinstance(len(xs), Sequence), isinstance("text", Sequence)]


@program("operator.unravel_index", (5,), (0,), torch="refuses")
def unravelled(n: int) -> List[Tensor]:
    places = torch.unravel_index(torch.tensor(n), (2, 3))
    return [places[0], places[1]]


@program("operator.out", (X,), (Y,), torch="refuses")
def several_results_written(x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    values, places = torch.empty(0), torch.empty(0, dtype=torch.long)
    torch.max(x, 1, out=(values, places))
    first = values.clone()
    written = (torch.empty(0), torch.empty(0, dtype=torch.long))
    found = torch.sort(x, dim=1, descending=True, out=written)
    return first, found.values, places + written[1]


@program("operator.out", (Y @ Y.T,), (torch.eye(2),), torch="refuses")
def factors_written(x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    q, r = torch.empty(0), torch.empty(0)
    torch.linalg.qr(x, out=(q, r))
    return q, r, torch.add(x, x, out=None)


@program("operator.reflected", (BITS,), (BITS + 1,), torch="refuses")
def reflected_shifts(x: Tensor) -> List[Tensor]:
    return [x.__rlshift__(2), x.__rrshift__(64)]


@program("operator.dunder", (X,), (Y,), torch="refuses")
def operators_by_their_methods(x: Tensor) -> List[Tensor]:
    sums = [x.__add__(1), x.__sub__(x), x.__mul__(2), x.__truediv__(2), x.__pow__(2), x.__mod__(2), x.__floordiv__(2)]
    return sums + [x.__neg__(), x.__abs__(), x.__lt__(1), x.__eq__(x), x.__getitem__(0), x.__matmul__(x.T)]


@program("operator.dunder", (X,), (Y,), torch="refuses")
def written_by_their_methods(x: Tensor) -> Tuple[Tensor, int, bool]:
    x.__iadd__(1)
    x.__imul__(2)
    x.__setitem__(0, 5.0)
    return x, x.__len__(), x.__contains__(5.0)


@program("operator.dunder convert.tensor", (torch.tensor(2),), (torch.tensor(-3),), torch="refuses")
def conversions_by_their_methods(x: Tensor) -> Tuple[int, float, bool, int]:
    return x.__int__(), x.__float__(), x.__bool__(), x.__index__()


@program("operator.dtype_default", (X,), (Y,))
def dtypes_as_defaults(x: Tensor) -> List[Tensor]:
    return [_converted(x), _converted(x, torch.int32), _converted(x, dtype=torch.bool)]


def _converted(x: Tensor, dtype: torch.dtype = torch.float64, device: torch.device = CPU) -> Tensor:
    return x.to(dtype).to(device)


@program("tensor.contains", (torch.tensor([1.0, 3.0]),), (torch.tensor([[2.0]]),), torch="refuses")
def elements_of_tensors(x: Tensor) -> Tuple[bool, bool, bool]:
    return 3.0 in x, 2 in x, 7 not in x
