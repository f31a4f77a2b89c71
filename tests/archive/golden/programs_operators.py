"""Programs of operators that changed their meaning, their schema or their spelling between releases."""

import math
from typing import List, Optional

import torch
import torch.nn.functional as F
from registry import Made, program
from torch import Tensor

INTS = torch.tensor([7, -7, 9])
FLOATS = torch.tensor([7.0, -7.0, 9.0])
MATRIX = torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.25, -4.0]])


class Division(torch.nn.Module):
    """`div` of ints divided as C does before format version 4."""

    def forward(self, x: Tensor, y: Tensor):
        return x / y

    @torch.jit.export
    def method(self, x: Tensor, y: Tensor):
        return x.div(y)

    @torch.jit.export
    def by_int(self, x: Tensor):
        return x / 2

    @torch.jit.export
    def by_float(self, x: Tensor):
        return x / 2.5

    @torch.jit.export
    def in_place(self, x: Tensor, y: Tensor):
        x.div_(y)
        return x

    @torch.jit.export
    def in_place_by_int(self, x: Tensor):
        x.div_(2)
        return x

    @torch.jit.export
    def out(self, x: Tensor, y: Tensor):
        result = torch.zeros_like(x)
        torch.div(x, y, out=result)
        return result

    @torch.jit.export
    def of_int(self, x: Tensor):
        return 7 / x

    @torch.jit.export
    def numbers(self, a: int, b: int, c: float):
        return a / b, a / c, a // b, a % b, c // a, c % a


@program("1.3 1.4 1.5 1.6 1.8 1.12 2.1 2.13")
def division():
    two = torch.tensor([2, 2, -2])
    calls = []
    for method in ("forward", "method", "in_place", "out"):
        calls += [(method, [x.clone(), y]) for x in (INTS, FLOATS) for y in (two, two.float())]
    for method in ("by_int", "by_float", "in_place_by_int", "of_int"):
        calls += [(method, [INTS.clone()]), (method, [FLOATS.clone()])]
    calls += [("numbers", [7, 2, 2.5]), ("numbers", [-7, 2, -2.5]), ("forward", [INTS.to(torch.uint8), two.byte()])]
    calls += [("forward", [INTS, two.int()]), ("in_place", [FLOATS.clone().view(1, 3), two.view(1, 3)])]
    return Made(torch.jit.script(Division()), calls)


class RoundedDivision(torch.nn.Module):
    def forward(self, x: Tensor, y: Tensor):
        trunc = torch.div(x, y, rounding_mode="trunc")
        return trunc, torch.div(x, y, rounding_mode="floor"), torch.div(x, 2, rounding_mode="trunc")

    @torch.jit.export
    def in_place(self, x: Tensor, mode: Optional[str]):
        x.div_(2, rounding_mode=mode)
        return x

    @torch.jit.export
    def out(self, x: Tensor, y: Tensor):
        result = torch.zeros_like(x)
        torch.div(x, y, rounding_mode="floor", out=result)
        return result


@program("1.9 1.12 2.13")
def division_rounded():
    two = torch.tensor([2, 2, -2])
    calls = [(method, [x, y]) for method in ("forward", "out") for x in (INTS, FLOATS) for y in (two, two.float())]
    calls += [("in_place", [FLOATS.clone(), mode]) for mode in ("floor", "trunc", None)]
    return Made(torch.jit.script(RoundedDivision()), calls)


class FloorDivision(torch.nn.Module):
    """`//` of tensors truncated up to 1.12."""

    def forward(self, x: Tensor, y: Tensor):
        return x // y, torch.floor_divide(x, y)

    @torch.jit.export
    def by_int(self, x: Tensor):
        return x // 2


@program("1.5 1.6 1.8 1.10 1.12 1.13 2.1 2.13")
def division_floor():
    two = torch.tensor([2, 2, -2])
    calls = [("forward", [x, y]) for x in (INTS, FLOATS) for y in (two, two.float())]
    return Made(torch.jit.script(FloorDivision()), calls + [("by_int", [INTS]), ("by_int", [FLOATS])])


class Filling(torch.nn.Module):
    """`full` gave floats for every number before format version 5."""

    def forward(self, n: int):
        return torch.full([n], 3)

    @torch.jit.export
    def of_float(self, n: int):
        return torch.full([n], 2.5)

    @torch.jit.export
    def with_dtype(self, n: int):
        return torch.full([n], 3, dtype=torch.int64)

    @torch.jit.export
    def out(self, n: int):
        result = torch.zeros([n], dtype=torch.int64)
        torch.full([n], 3, out=result)
        return result

    @torch.jit.export
    def like(self, x: Tensor):
        return torch.full_like(x, 2), x.new_full([2], 4), torch.zeros_like(x), torch.ones([2])


@program("1.3 1.4 1.5 1.6 1.7 1.8 1.12 2.13")
def filling():
    calls = [(method, [2]) for method in ("forward", "of_float", "with_dtype", "out")]
    return Made(torch.jit.script(Filling()), calls + [("like", [INTS]), ("like", [FLOATS])])


class Spacing(torch.nn.Module):
    """`linspace` and `logspace` had 100 steps where none were given, up to 1.10."""

    def forward(self, a: float, b: float):
        return torch.linspace(a, b)

    @torch.jit.export
    def logarithmic(self, a: float, b: float):
        return torch.logspace(a, b)

    @torch.jit.export
    def out(self, a: float, b: float):
        result = torch.zeros([0], dtype=torch.float64)
        torch.linspace(a, b, out=result)
        return result


@program("1.3 1.5 1.8 1.10")
def spacing_without_steps():
    return Made(torch.jit.script(Spacing()), [(name, [0.0, 2.0]) for name in ("forward", "logarithmic", "out")])


class SteppedSpacing(torch.nn.Module):
    def forward(self, a: float, b: float, steps: int):
        return torch.linspace(a, b, steps), torch.linspace(a, b, steps=steps, dtype=torch.float64)

    @torch.jit.export
    def ranges(self, n: int):
        return torch.arange(n), torch.arange(1, n, 2), torch.arange(0.5, float(n), 1.5), torch.arange(float(n))


@program("1.3 1.8 1.11 1.12 2.13")
def spacing_linear():
    return Made(torch.jit.script(SteppedSpacing()), [("forward", [0.0, 1.0, 5]), ("ranges", [6])])


class LogarithmicSpacing(torch.nn.Module):
    def forward(self, a: float, b: float, steps: int):
        return torch.logspace(a, b, steps), torch.logspace(a, b, steps, 2.0)


@program("1.4 1.8 1.11 1.12 2.13")
def spacing_logarithmic():
    return Made(torch.jit.script(LogarithmicSpacing()), [("forward", [0.0, 3.0, 4])])


class Activations(torch.nn.Module):
    def forward(self, x: Tensor):
        return F.gelu(x)

    @torch.jit.export
    def others(self, x: Tensor):
        return F.leaky_relu(x), F.elu(x), F.hardtanh(x), F.softplus(x), F.log_softmax(x, dim=1), F.glu(x[:, :2])

    @torch.jit.export
    def more(self, x: Tensor):
        return torch.sigmoid(x), torch.tanh(x), F.selu(x), F.prelu(x, torch.tensor([0.1])), F.softmin(x, dim=0)


@program("1.3 1.4 1.8 1.11 1.12 2.13")
def activations():
    calls = [(name, [MATRIX]) for name in ("forward", "others", "more")]
    return Made(torch.jit.script(Activations().eval()), calls)


class ApproximateGelu(torch.nn.Module):
    def forward(self, x: Tensor):
        return F.gelu(x, approximate="tanh"), F.gelu(x, approximate="none")


@program("1.12 2.1")
def activations_approximate():
    return Made(torch.jit.script(ApproximateGelu()), [("forward", [MATRIX])])


class Resizing(torch.nn.Module):
    """The schemas of the upsample operators grew over the releases."""

    def forward(self, x: Tensor):
        nearest = F.interpolate(x, scale_factor=2.0)
        return (
            nearest,
            F.interpolate(x, size=[3, 3]),
            F.interpolate(x, size=[3, 3], mode="bilinear", align_corners=True),
        )

    @torch.jit.export
    def scaled(self, x: Tensor):
        linear = F.interpolate(x, scale_factor=1.5, mode="bilinear", align_corners=False)
        return linear, F.interpolate(x, scale_factor=2.0, mode="bicubic", align_corners=False)

    @torch.jit.export
    def padded(self, x: Tensor):
        return F.pad(x, [1, 1]), F.pad(x, [1, 0, 0, 1], mode="reflect"), F.avg_pool2d(x, 2), F.adaptive_avg_pool2d(x, 1)


@program("1.4 2.1")
def resizing():
    x = torch.arange(4.0).view(1, 1, 2, 2)
    return Made(torch.jit.script(Resizing()), [(name, [x]) for name in ("forward", "scaled", "padded")])


class Indexing(torch.nn.Module):
    def forward(self, x: Tensor):
        return x[0], x[-1, 1:], x[:, None, ::2], x[..., 0], x[:, :2], x[1, 2]

    @torch.jit.export
    def gathered(self, x: Tensor, index: Tensor):
        return x[index], x[:, index], x[index, index], x[x > 0]

    @torch.jit.export
    def written(self, x: Tensor, index: Tensor):
        x = x.clone()
        x[0] = 5.0
        x[1, 1:] = x[0, :2]
        x[index, 0] = torch.tensor(-1.0)
        x[x < 0] = torch.tensor(0.5)
        return x

    @torch.jit.export
    def lists(self, values: List[int], n: int):
        return values[1:], values[:-1], values[-1], values[n:], values[::2]


@program()
def indexing():
    index = torch.tensor([1, 0])
    calls = [("forward", [MATRIX]), ("gathered", [MATRIX, index]), ("written", [MATRIX, index])]
    return Made(torch.jit.script(Indexing()), calls + [("lists", [[1, 2, 3, 4], 2])])


class Reductions(torch.nn.Module):
    def forward(self, x: Tensor):
        return x.sum(), x.sum(dim=1), x.mean(dim=[0, 1]), x.std(), x.var(dim=1), torch.norm(x), x.prod(1)

    @torch.jit.export
    def ordered(self, x: Tensor):
        values, indices = torch.max(x, dim=1)
        return values, indices, x.topk(2, dim=1), x.sort(dim=1, descending=True), x.argmax(1), x.min(), x.kthvalue(1)

    @torch.jit.export
    def joined(self, x: Tensor):
        a, b = torch.chunk(x, 2, dim=0)
        return torch.cat([a, b], 1), torch.stack([a, b]), torch.split(x, 2, dim=1), torch.unbind(x, 0)

    @torch.jit.export
    def compared(self, x: Tensor, y: Tensor):
        return torch.where(x > y, x, y), x == y, (x != y).all(), torch.any(x > 1), x.ge(y), torch.logical_not(x > y)

    @torch.jit.export
    def whole(self, x: Tensor):
        return x.sum(), x.cumsum(0), x.max(), x.abs(), x.pow(2), x % 4, x.clamp(-1, 8), x.bitwise_not()


@program("1.3 1.7 1.11 2.4")
def reductions():
    calls = [(name, [MATRIX]) for name in ("forward", "ordered", "joined")]
    calls += [("compared", [MATRIX, torch.ones(2, 3)]), ("whole", [INTS])]
    return Made(torch.jit.script(Reductions()), calls)


class Conversions(torch.nn.Module):
    def forward(self, x: Tensor):
        return (
            x.to(torch.float64),
            x.float(),
            x.long(),
            x.to(torch.int32),
            x.type_as(torch.zeros(1)),
            x.half(),
            x.byte(),
        )

    @torch.jit.export
    def numbers(self, x: Tensor):
        return int(x), float(x), bool(x), x.item()

    @torch.jit.export
    def made(self, n: int, f: float):
        return torch.tensor(n), torch.tensor([f, 1.0]), torch.tensor([[n, 2]], dtype=torch.float32), torch.tensor(True)

    @torch.jit.export
    def facts(self, x: Tensor):
        return x.dtype == torch.float32, x.is_cuda, x.requires_grad, x.numel(), x.shape, x.is_floating_point()


@program()
def conversions():
    calls = [("forward", [FLOATS]), ("numbers", [torch.tensor(3)]), ("numbers", [torch.tensor(2.5)])]
    return Made(torch.jit.script(Conversions()), calls + [("made", [4, 0.5]), ("facts", [FLOATS])])


class Numbers(torch.nn.Module):
    def forward(self, a: int, b: float):
        return abs(-a), a**2, float(a), int(b), a < b, a == 3, min(a, 2), max(b, 1.5), not a == 3

    @torch.jit.export
    def bits(self, a: int, b: int):
        return a & b, a | b, a ^ b, a // b, a % b

    @torch.jit.export
    def functions(self, b: float):
        return math.sqrt(b), math.floor(b), math.ceil(b), math.log(b), math.pow(b, 2)

    @torch.jit.export
    def rounded(self, b: float):
        return round(b)


@program()
def numbers():
    calls = [
        ("forward", [3, 2.5]),
        ("forward", [-3, -0.5]),
        ("bits", [12, 5]),
        ("bits", [-7, 2]),
        ("functions", [6.25]),
    ]
    return Made(torch.jit.script(Numbers()), calls + [("rounded", [number]) for number in (0.5, 1.5, 2.5, -2.6)])


SQUARE = torch.tensor([[4.0, 1.0, 0.5], [1.5, 3.0, -1.0], [0.25, -0.5, 2.0]])
TURNING = torch.tensor([[0.0, -2.0, 0.0], [2.0, 0.5, 0.0], [0.0, 1.0, 3.0]])
TALL = torch.tensor([[1.0, 2.0], [3.0, -4.0], [0.5, 1.5]])


class Factorizations(torch.nn.Module):
    """Operators of linear algebra that PyTorch has removed. Vectors are recorded without their signs."""

    def forward(self, x: Tensor, y: Tensor):
        solution, lu = torch.solve(y, x)
        batched, lus = torch.solve(y, torch.stack([x, x + 1.0]))
        return solution, lu, batched, lus, torch.matrix_rank(x), torch.matrix_rank(x, 2.0), x.matrix_rank(True)

    @torch.jit.export
    def symmetric(self, x: Tensor):
        values, vectors = torch.symeig(x, True)
        lower, empty = x.symeig(False, False)
        return values, vectors.abs(), lower, empty

    @torch.jit.export
    def general(self, x: Tensor):
        values, vectors = torch.eig(x, True)
        alone, empty = torch.eig(x)
        return values, vectors.abs(), alone, empty

    @torch.jit.export
    def least_squares(self, x: Tensor, y: Tensor):
        solution, qr = torch.lstsq(y, x)
        return solution[:2], solution[2:].abs(), qr.abs()

    @torch.jit.export
    def orthogonal(self, x: Tensor):
        q, r = torch.qr(x)
        whole, triangle = x.qr(False)
        return q.abs(), r.abs(), torch.matmul(q, r), whole.abs(), triangle.abs()

    @torch.jit.export
    def positive(self, x: Tensor):
        result = torch.zeros_like(x)
        torch.cholesky(x, out=result)
        return torch.cholesky(x), x.cholesky(True), result


@program("1.6 1.8")
def factorizations():
    calls = [("forward", [SQUARE, TALL])]
    calls += [("symmetric", [SQUARE]), ("general", [SQUARE]), ("general", [TURNING])]
    calls += [("least_squares", [TALL, SQUARE]), ("orthogonal", [TALL]), ("orthogonal", [SQUARE])]
    calls += [("positive", [SQUARE]), ("positive", [-SQUARE])]
    return Made(torch.jit.script(Factorizations()), calls)


@program("2.13")
def last_factorizations():
    """Operators that are there still, and were removed in 2.14."""

    class Last(torch.nn.Module):
        def forward(self, x: Tensor):
            q, r = torch.qr(x)
            whole, triangle = x.qr(False)
            return q.abs(), r.abs(), torch.matmul(q, r), whole.abs(), triangle.abs()

        @torch.jit.export
        def positive(self, x: Tensor):
            result = torch.zeros_like(x)
            torch.cholesky(x, out=result)
            return torch.cholesky(x), x.cholesky(True), result

    calls = [("forward", [TALL]), ("forward", [SQUARE]), ("positive", [SQUARE]), ("positive", [-SQUARE])]
    return Made(torch.jit.script(Last()), calls)


class Fourier(torch.nn.Module):
    """Transforms of which complex numbers were pairs."""

    def forward(self, x: Tensor):
        half, whole = torch.rfft(x, 1), torch.rfft(x, 2, True, False)
        back = torch.irfft(half, 1, False, True, [x.size(1)])
        return half, whole, back, torch.irfft(whole, 2, True, False), torch.irfft(half, 1), x.rfft(2, True)

    @torch.jit.export
    def pairs(self, x: Tensor):
        return torch.fft(x, 1), torch.ifft(x, 1), torch.fft(x, 2, True), x.ifft(2, True)


@program("1.6")
def fourier():
    pairs = torch.tensor([[[1.0, -2.0], [0.5, 0.25]], [[3.0, 1.0], [-1.0, 2.0]], [[0.0, 4.0], [2.5, 1.5]]])
    return Made(torch.jit.script(Fourier()), [("forward", [MATRIX]), ("forward", [SQUARE]), ("pairs", [pairs])])
