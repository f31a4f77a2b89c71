"""``torch.autograd.Function`` in programs: the gradient is the one that its author wrote (their values are in
``tests/scripting/test_autograd_functions.py``)."""

from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor, nn

from rekindle.errors import UnsupportedError
from tests.language.corpus import program, refused

X = torch.tensor([1.2, -2.0, 0.4])
Y = torch.tensor([[0.5], [3.0]])


class Scaled(torch.autograd.Function):
    """Its backward is not the derivative of its forward, so that a test sees which of them was taken."""

    limit = 3

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return gradients[0] * ctx.factor * 100, None


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        return x.round()

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        return gradient


class ProductAndSign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(x, y)
        positive = x > 0
        ctx.mark_non_differentiable(positive)
        return x * y, positive

    @staticmethod
    def backward(ctx, gradient, _):  # type: ignore[no-untyped-def]
        x, y = ctx.saved_tensors
        return (gradient * y if ctx.needs_input_grad[0] else None), (gradient * x if ctx.needs_input_grad[1] else None)


class Power(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor, exponent: int, halved: bool) -> Tensor:
        return x**exponent / 2 if halved else x**exponent

    @staticmethod
    def setup_context(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.exponent = inputs[1]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return gradients[0] * ctx.exponent * x ** (ctx.exponent - 1), None, None


class Applies(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dtype, function=None):  # type: ignore[no-untyped-def]
        y = x.to(dtype)
        return y if function is None else function(y)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        return gradient.float(), None, None


class Counted(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, xs: List[Tensor], at_most: Optional[int]) -> int:
        return len(xs) if at_most is None else min(len(xs), at_most)


class AddsInPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        x.add_(1)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, gradient):  # type: ignore[no-untyped-def]
        return gradient * 3


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        if x.sum() > 1:
            raise ValueError(f"{x.dim()} dimensions are too many")
        return x + 1


round_straight = Rounded.apply


def twice(x: Tensor) -> Tensor:
    return x * 2


@program("function.autograd", (X,), (Y,), torch="refuses")
def scaled(x: Tensor) -> Tensor:
    return Scaled.apply(x, 2.0) + Scaled.limit


@program("function.autograd", (X,), (Y,))
def straight_through(x: Tensor) -> Tensor:
    return round_straight(x * 1.3) + x


@program("function.autograd", (X, X), (Y, X), torch="differs")
def two_results(x: Tensor, y: Tensor) -> Tuple[Tensor, Tensor]:
    product, positive = ProductAndSign.apply(x, y)
    return product + ProductAndSign.apply(y, x)[0], positive


@program("function.autograd", (X, 2), (Y, 3))
def with_a_context_of_its_own(x: Tensor, n: int) -> Tensor:
    return Power.apply(x, n, n > 2)


@program("function.autograd", (X,), (Y,), torch="refuses")
def given_functions_and_dtypes(x: Tensor) -> List[Tensor]:
    return [Applies.apply(x, torch.float64), Applies.apply(x, x.dtype, twice), Applies.apply(x, torch.int64, None)]


@program("function.autograd", (X,), (Y,), torch="refuses")
def lists_and_none(x: Tensor) -> int:
    return Counted.apply([x, x], None) + Counted.apply([x, x, x], 1)


@program("function.autograd list.comprehension builtin.map", (X,), (Y,), torch="refuses")
def one_after_the_other(x: Tensor) -> List[Tensor]:
    return [Rounded.apply(row) for row in [x, x + 0.5]] + list(map(round_straight, [x]))


@program("function.autograd", (X,), (Y,))
def written_in_place(x: Tensor) -> Tuple[Tensor, Tensor]:
    y = x * 2
    z = AddsInPlace.apply(y)
    return y, z


@program("function.autograd", (X,), (Y,))
def forward_that_raises(x: Tensor) -> Tensor:
    return Fails.apply(x)


@program("function.autograd module.function_attribute", (X,), (Y,), torch="refuses")
class HoldsFunctions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor = 2.0
        self.scaled = Scaled.apply
        self.rounding = Rounded

    def forward(self, x: Tensor) -> Tensor:
        return self.scaled(x, self.factor) + self.rounding.apply(x)


@refused("function.autograd", UnsupportedError, "the autograd function 'Scaled' takes no arguments by name")
def arguments_by_name(x: Tensor) -> Tensor:
    return Scaled.apply(x, factor=2.0)


@program("function.autograd", (X,), (Y,), torch="refuses")
def forward_alone(x: Tensor) -> Tensor:
    return Rounded.forward(None, x)
