"""Operators that ``torch.library`` defines, by their names and by the Python functions that define them."""

from typing import List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from rekindle.errors import SchemaError, UndefinedNameError
from tests.language.corpus import program, refused

X = torch.tensor([1.0, -2.0, 3.0])
Y = torch.tensor([[0.5], [3.0]])


@torch.library.custom_op("tests_language::scaled", mutates_args=())
def scaled(x: Tensor, factor: float) -> Tensor:
    return x * factor


@scaled.register_fake
def _scaled_as_fake(x: Tensor, factor: float) -> Tensor:
    return torch.empty_like(x)


def _keep_factor(ctx: torch.autograd.function.FunctionCtx, inputs: Tuple[Tensor, float], output: Tensor) -> None:
    ctx.factor = inputs[1]  # type: ignore[attr-defined]


def _scaled_backward(ctx: torch.autograd.function.FunctionCtx, gradient: Tensor) -> Tuple[Tensor, None]:
    return gradient * ctx.factor * 100, None  # type: ignore[attr-defined] # a test sees that it was asked


scaled.register_autograd(_scaled_backward, setup_context=_keep_factor)


@torch.library.custom_op("tests_language::bumped", mutates_args=("x",))
def bumped(x: Tensor, by: int = 1) -> None:
    x.add_(by)


@torch.library.custom_op("tests_language::ends", mutates_args=())
def ends(xs: Sequence[Tensor], times: Optional[int] = None, *, name: str = "a") -> Tuple[Tensor, Tensor]:
    return xs[0] + len(name), xs[-1] * (2 if times is None else times)


_LIBRARY = torch.library.Library("tests_language", "FRAGMENT")
_LIBRARY.define("plus(Tensor x, Scalar by=1) -> Tensor")
_LIBRARY.impl("plus", lambda x, by=1: x + by, "CompositeImplicitAutograd")
_LIBRARY.define("counted(Tensor x, int[] more) -> int")
_LIBRARY.impl("counted", lambda x, more: x.numel() + sum(more), "CPU")
_LIBRARY.define("both.first(Tensor x) -> Tensor")
_LIBRARY.define("both.second(Tensor x, int by) -> Tensor")
_LIBRARY.impl("both.first", lambda x: x - 1, "CPU")
_LIBRARY.impl("both.second", lambda x, by: x + by, "CPU")


@program("operator.custom", (X,), (Y,), torch="refuses")
def by_its_name(x: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.ops.tests_language.scaled(x, 2.0), torch.ops.tests_language.scaled.default(x, factor=0.5)


@program("operator.custom", (X,), (Y,), torch="refuses")
def by_its_function(x: Tensor) -> Tuple[Tensor, Tensor]:
    return scaled(x, 2.0), scaled(x, factor=0.5)


@program("operator.custom", (X,), (Y,))
def that_writes(x: Tensor) -> Tensor:
    torch.ops.tests_language.bumped(x)
    torch.ops.tests_language.bumped(x, 3)
    return x


@program("operator.custom", (X,), (Y,))
def with_lists_and_results(x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    first, last = torch.ops.tests_language.ends([x, x + 1], 3, name="abc")
    return first, last, torch.ops.tests_language.ends([x])[1]


@program("operator.custom", (X,), (Y,))
def of_a_library(x: Tensor) -> Tuple[Tensor, Tensor, Tensor, int]:
    ops = torch.ops.tests_language
    return ops.plus(x), ops.plus(x, 2.5), ops.plus(x, by=2), ops.counted(x, [1, 2])


@program("operator.custom operator.by_overload", (X,), (Y,))
def overloads_of_a_library(x: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.ops.tests_language.both(x), torch.ops.tests_language.both(x, 2)


@program("operator.custom operator.by_overload", (X,), (Y,), torch="refuses")
def overloads_of_a_library_by_name(x: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.ops.tests_language.both.first(x), torch.ops.tests_language.both.second(x, 2)


@program("operator.by_overload", (X,), (Y,), torch="refuses")
def overloads_by_name(x: Tensor) -> List[Tensor]:
    add = torch.ops.aten.add
    y = torch.empty_like(x)
    torch.ops.aten.mul.out(x, x, out=y)
    both = torch.ops.aten.add.Tensor(x, x, alpha=2)
    return [both, torch.ops.aten.add.Scalar(x, 1), add(x, 1), torch.ops.aten.relu.default(x), y]


@refused("operator.custom operator.by_overload", SchemaError, "'tests_language::both.first' cannot be called with")
def overload_that_does_not_fit(x: Tensor) -> Tensor:
    return torch.ops.tests_language.both.first(x, 2)


@refused("operator.by_overload", UndefinedNameError, "the operator 'aten::add' has no overload 'Tensors'")
def overload_that_does_not_exist(x: Tensor) -> Tensor:
    return torch.ops.aten.add.Tensors(x, x)
