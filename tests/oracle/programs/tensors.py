"""Tensors: methods, attributes, constructors, dtypes and devices."""

from typing import List, Tuple

import torch
from torch import Tensor

from tests.oracle.corpus import program, ramp


@program((ramp(2, 3),))
def methods(x):
    return x.t().contiguous().view(-1).sum() + x.mean(dim=0).max() + x.abs().sqrt().exp().sum()


@program((ramp(2, 3),))
def attributes(x) -> Tuple[List[int], int, torch.dtype, torch.device, bool, int]:
    return x.shape, x.ndim, x.dtype, x.device, x.requires_grad, x.dim()


@program((ramp(2, 3),))
def transposed(x):
    return x.T, x.mT


@program((ramp(2, 3),))
def reductions(x):
    return x.sum(0), x.sum(dim=1, keepdim=True), x.mean(-1), x.argmax(1), x.max(), x.var(dim=[0, 1])


@program((3,))
def constructors(n: int):
    return torch.zeros(n), torch.ones(n, 2), torch.full((2, n), 1.5), torch.arange(n), torch.eye(n), torch.empty(0)


@program((3,))
def constructors_with_options(n: int):
    a = torch.zeros(n, dtype=torch.int64)
    b = torch.ones([n], dtype=torch.float64, device="cpu")
    c = torch.arange(0, n, 2, dtype=torch.float32)
    return a, b, c


@program((ramp(2),))
def like(x):
    return torch.zeros_like(x), torch.ones_like(x, dtype=torch.int32), torch.full_like(x, 2.0), x.new_zeros([3])


@program((ramp(2),))
def tensor_from_numbers(x):
    return torch.tensor(3), torch.tensor([1.0, 2.0]), torch.tensor([[1, 2], [3, 4]]), torch.tensor(True)


@program((2, 0.5))
def tensor_from_variables(n: int, f: float):
    return torch.tensor(n), torch.tensor([f, 2 * f], dtype=torch.float64), torch.as_tensor(n)


@program((ramp(2),))
def to_dtype(x):
    return x.to(torch.float64), x.long(), x.int().float(), x.to(dtype=torch.float16), x.double(), x.half(), x.type_as(x)


@program((ramp(2),))
def to_device(x):
    return x.to("cpu"), x.to(x.device), x.to(torch.device("cpu")), x.cpu()


@program((ramp(2), ramp(2).double()))
def to_other(x, y):
    return x.to(y), x.to(y.dtype)


@program((ramp(2, 3),))
def shapes(x):
    a = x.view(3, 2)
    b = x.reshape([6])
    c = x.permute(1, 0)
    d = x.unsqueeze(0).squeeze(0).flatten()
    e = x.expand(2, 3).repeat(2, 1)
    return a, b, c, d, e


@program((ramp(2, 3),))
def view_of_sizes(x):
    return x.view(x.size(0), -1), x.view(x.size()), x.reshape(x.shape[1], x.shape[0])


@program((ramp(2, 3), ramp(3, 2)))
def matrices(a, b):
    return a.mm(b), torch.matmul(a, b), a @ b, torch.einsum("ij,jk->ik", a, b), torch.addmm(torch.zeros(2, 2), a, b)


@program((ramp(2, 3),))
def in_place(x):
    x.add_(1).mul_(2)
    x.zero_()
    x.fill_(3.0)
    x[0].sub_(1)
    return x


@program((ramp(6),))
def sorts(x):
    values, order = x.sort(descending=True)
    top, where = torch.topk(x, 2)
    return values, order, top, where


@program((ramp(3),))
def item(x) -> Tuple[float, int]:
    return x[1].item() + 0.0, int(x.sum().item())


@program((ramp(3),))
def to_list(x: Tensor) -> List[float]:
    result: List[float] = x.tolist()
    return result


@program((ramp(2), ramp(2, start=1.0)))
def where(a, b):
    return torch.where(a > b, a, b), torch.where(a > 0.2, a, torch.zeros_like(a))


@program((ramp(2),))
def alpha(x):
    return torch.add(x, x, alpha=2), x.add(x, alpha=3), torch.sub(x, 1, alpha=2)


@program((ramp(2, 2),))
def joins(x):
    return torch.cat([x, x], 1), torch.cat((x, x)), torch.stack([x, x + 1, x + 2]), torch.hstack([x, x])


@program((ramp(4, 2),))
def splits(x):
    a, b = torch.split(x, [1, 3])
    c = torch.chunk(x, 2, dim=1)
    d = x.unbind(1)
    return a, b, c[0], d[1]


@program((ramp(2),))
def gradient_flags(x) -> Tuple[bool, bool]:
    y = x.detach()
    return y.requires_grad, x.is_floating_point()


@program((ramp(3),))
def random_with_seed(x):
    torch.manual_seed(3)
    return torch.rand(3), torch.randn_like(x), torch.randint(0, 10, [2])


@program((ramp(2),), (torch.ones(2, dtype=torch.int64),))
def dtype_conditions(x: Tensor) -> Tensor:
    if x.dtype == torch.float32:
        return x * 2
    elif x.is_floating_point():
        return x
    return x.to(torch.float32)


@program((ramp(2, 3),))
def numbers_of_a_shape(x):
    b, n = x.shape
    rows, columns = x.size()
    return x.view(b * n), rows - columns


@program((ramp(2, 2),))
def norms(x):
    return torch.norm(x), x.norm(2, dim=[1]), torch.linalg.norm(x), torch.linalg.norm(x, dim=[1])
