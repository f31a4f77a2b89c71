"""What Python has a tuple, a ``torch.Size`` or a ``torch.dtype`` for, and TorchScript a list or an int."""

from typing import List, Optional, Tuple, Union

import torch
from torch import Tensor, nn

from tests.language.corpus import program

X = torch.arange(6.0).view(2, 3)
Y = torch.ones(4, 1, 2)


@program("size.text", (X, 3), (Y, 4), torch="refuses")
def error_that_tells_shapes(x: Tensor, width: int):
    if x.shape[-1] != width:
        raise ValueError(f"expected width {width}, got {x.shape} ({tuple(x.shape)}, {x.dtype}, {x.device})")
    return x


@program("size.text", (X,), (Y.long(),), torch="refuses")
def texts_of_sizes(x: Tensor):
    print(x.shape, x.shape[:1], (x.shape, 1), x.dtype)  # noqa: T201
    return (
        str(x.shape),
        f"{x.shape!r} {x.size()}",
        "{} {}".format(x.shape[1:], x.dtype),
        "%s" % (x.shape,),
        repr(x.dtype),
    )


@program("size.result", (X,), (Y,), torch="refuses")
def sizes_as_results(x: Tensor):
    rest = x.shape[1:]
    return x.shape, rest, x.stride(), x.shape + (1,), (*x.shape, -1), {"shape": x.shape}, list(x.shape), x.shape.numel()


@program("size.result", (X,), (Y,), torch="differs")
def compared_sizes(x: Tensor):
    shape = x.shape
    return shape == (2, 3), shape != (2, 3), isinstance(shape, tuple), isinstance(shape, list), shape == x.size()


@program("size.result", (X,), (Y,), torch="differs")
def parts_are_tuples(x: Tensor):
    return x.unbind(), x.chunk(2), x.split(1), torch.meshgrid(x[0, 0], x[0, 0], indexing="ij")


@program("dtype.result", (X, None), (Y.long(), torch.float64), torch="differs")
def dtypes_as_results(x: Tensor, dtype: Optional[torch.dtype] = None):
    said = f"{dtype}"
    if dtype is None:
        dtype = x.dtype
    y = x.to(dtype)
    return dtype, y.dtype, [x.dtype, torch.bool], {"dtype": dtype}, said, torch.promote_types(x.dtype, torch.float16)


@program("dtype.result", (X.to(torch.complex64),), (Y.long(),), torch="refuses")
def attributes_of_dtypes(x: Tensor):
    dtype = x.dtype
    if dtype in (torch.int32, torch.int64):
        dtype = torch.float32
    wide = {torch.float32: torch.float64, torch.int64: torch.int64}.get(dtype)
    return dtype.is_floating_point, x.dtype.is_complex, x.dtype.itemsize, x.dtype.is_signed, wide, dtype == x.dtype


@program("tuple.open", (X, 3), (Y, 0), torch="refuses")
def tuples_that_grow(x: Tensor, n: int):
    outs = ()
    sizes = ()
    for i in range(n):
        outs = outs + (x * i,)
        sizes += (i, i + 1)
    return outs, sizes, len(sizes)


@program("tuple.open", (X, True), (Y, False), torch="refuses")
class AllHiddenStates(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.ReLU(), nn.Tanh()])

    def forward(self, x: Tensor, wanted: bool = False):
        states = () if wanted else None
        for layer in self.layers:
            if wanted:
                states = states + (x,)
            x = layer(x)
        if wanted:
            states += (x,)
        return x, states


@program("tuple.open", (X, [1, 2]), (Y, []), torch="refuses")
def tuples_of_lists(x: Tensor, xs: List[int]):
    pair = tuple([x, x + 1])
    doubled = tuple(2 * n for n in xs)
    return tuple(xs), doubled, tuple(x.shape), pair[1], doubled + tuple(xs), f"{doubled} {tuple(xs)}"


@program("tuple.open", (5, (1, 2)), ((3, 4, 5), (7,)), torch="refuses")
def declared_without_length(size: Union[int, Tuple[int, ...]], more: Tuple[int, ...]) -> Tuple[int, ...]:
    if isinstance(size, int):
        size = (size, size)
    return size + more


@program("infer.list tuple.open", (2, True), (0, False), torch="refuses")
def lists_that_may_be_none(n: int, wanted: bool):
    seen = [] if wanted else None
    kept = None if not wanted else ()
    for i in range(n):
        if seen is not None:
            seen.append(i)
        if wanted:
            kept += (float(i),)
    return seen, kept
