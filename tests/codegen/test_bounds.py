"""Kernels access only the elements of their tensors: after each buffer, and before it, is memory that
may not be read or written."""

from __future__ import annotations

import ctypes
import mmap
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import pytest
import torch
from torch import Tensor

import rekindle.ops
import rekindle.runtime.executor  # noqa: F401 (runs graphs)
from rekindle.codegen import compiled_kernels
from rekindle.codegen.compiled_kernels import KernelLaunch
from rekindle.codegen.fusion_executor import FusionExecutor
from rekindle.codegen.kernel_status import KernelStatus
from rekindle.codegen.layout import Layout
from rekindle.codegen.llvm import engine
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.text.parser import parse_graph
from tests.codegen.test_joins import JOINED
from tests.codegen.test_lookups import COMPUTED, EMBEDDING, INDEX, select
from tests.codegen.test_loops import CHAIN, CHUNKS
from tests.codegen.test_matmul import ADDED, LINEAR, PRODUCT, TRANSPOSED
from tests.codegen.test_normalization import GROUP
from tests.codegen.test_pooling import MAXIMUM, MEAN, text as windows
from tests.codegen.test_reductions import CENTRED, CHAIN as SQUARES, LOSS, WHERE
from tests.codegen.test_rows import MIXED, graph_of
from tests.codegen.test_scans import SCAN

PAGE = mmap.PAGESIZE
_LIBRARY = ctypes.CDLL(None, use_errno=True)
_LIBRARY.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


class Guarded:
    """Memory with a page on each side that cannot be touched; ``at_end`` says to which of the two the bytes that are
    given out are next."""

    def __init__(self, size: int, at_end: bool) -> None:
        pages = -(-max(size, 1) // PAGE)
        self.memory = mmap.mmap(-1, (pages + 2) * PAGE)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        for place in (self.base, self.base + (pages + 1) * PAGE):
            assert _LIBRARY.mprotect(place, PAGE, 0) == 0
        self.start = self.base + PAGE + (pages * PAGE - size if at_end else 0)

    def tensor(self, like: Tensor) -> Tensor:
        """A copy of ``like`` in this memory, laid out in the same way."""
        count = _extent(like.shape, like.stride())
        raw = (ctypes.c_char * max(count * like.element_size(), 1)).from_address(self.start)
        flat = torch.frombuffer(raw, dtype=like.dtype, count=count) if count else torch.empty(0, dtype=like.dtype)
        return flat.as_strided(like.shape, like.stride()).copy_(like)


class GuardedTemporaries:
    """``malloc`` and ``free`` for what a kernel keeps while it runs, in the form of a library that kernels are linked
    with."""

    def __init__(self, at_end: bool) -> None:
        self.given: dict[int, Guarded] = {}
        self.count = 0
        self.is_full = False

        def malloc(size: int) -> int:
            if self.is_full:
                return 0
            guarded = Guarded(size, at_end)
            self.given[guarded.start] = guarded
            self.count += 1
            return guarded.start

        def free(address: int) -> None:
            if address:
                del self.given[address]

        self._functions: list[Callable[..., Any]] = [
            ctypes.PYFUNCTYPE(ctypes.c_size_t, ctypes.c_size_t)(malloc),
            ctypes.PYFUNCTYPE(None, ctypes.c_size_t)(free),
        ]
        places = [ctypes.cast(each, ctypes.c_void_p).value for each in self._functions]
        self.addresses = dict(zip(("malloc", "free"), places, strict=True))


@pytest.fixture
def temporaries(at_end: bool, monkeypatch: pytest.MonkeyPatch) -> GuardedTemporaries:
    """Intermediate buffers of a test's kernels are guarded too; kernels that other tests linked are not included."""
    found, products = GuardedTemporaries(at_end), compiled_kernels._products
    monkeypatch.setattr(compiled_kernels, "_KERNELS", {})
    monkeypatch.setattr(compiled_kernels, "_RECIPES", OrderedDict())
    monkeypatch.setattr(engine, "_known", WeakValueDictionary())
    monkeypatch.setattr(compiled_kernels, "_products", lambda kernel, target: [*products(kernel, target), found])
    return found


def _extent(sizes: Sequence[int], strides: Sequence[int]) -> int:
    """How many elements lie from the first to the last."""
    if 0 in sizes:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))


def _launch(launch: KernelLaunch, inputs: list[Tensor], at_end: bool) -> list[Tensor]:
    kept = [Guarded(_extent(each.shape, each.stride()) * each.element_size(), at_end) for each in inputs]
    given = [guard.tensor(each) for guard, each in zip(kept, inputs, strict=True)]
    written = []
    for each in launch.outputs:
        sizes, strides, dtype = each.sizes, each.strides, each.dtype
        like = torch.zeros(1, dtype=dtype).as_strided([0], [1]).new_zeros(_extent(sizes, strides))
        kept.append(Guarded(like.numel() * like.element_size(), at_end))
        written.append(kept[-1].tensor(like).as_strided(sizes, strides))
    launch.run(given, written)
    return [each.clone() for each in written]


SIZES = (1, 3, 15, 16, 17, 31, 64, 65, 1000)


def _folding(dims: list[int]) -> str:
    return SQUARES.replace("DIMS", str(dims)).replace("KEEP", "0")


def _joining(dim: int) -> str:
    return JOINED.replace("DIM", str(dim)).replace("KIND", "cat")


def _whole(*sizes: int) -> Tensor:
    """Random whole numbers, small enough that float32 sums up their products exactly, in whatever order."""
    return torch.randint(-8, 9, sizes).float()


def cases(size: int) -> dict[str, tuple[str, list[Tensor]]]:
    """Graphs and inputs whose rows have ``size`` elements, more or less."""
    x = torch.randn(3, 2 * size)
    return {
        "flat": (CHAIN, [torch.randn(size), torch.randn(size)]),
        "a row for all": (CHAIN, [torch.randn(3, size), torch.randn(size)]),
        "a number for each row": (CHAIN, [torch.randn(3, size), torch.randn(3, 1)]),
        "one number": (CHAIN, [torch.randn(3, size), torch.randn(())]),
        "gaps": (CHAIN, [x[:, :size], x[:, size:]]),
        "every other": (CHAIN, [x[:, ::2], x[:, 1::2]]),
        "transposed": (CHAIN, [torch.randn(3, size), torch.randn(size, 3).t()]),
        "bytes": (CHAIN, [torch.randint(9, (size,)).to(torch.int8), torch.randint(9, (size,)).to(torch.int8)]),
        "short floats": (CHAIN, [torch.randn(3, size).bfloat16(), torch.randn(size).bfloat16()]),
        "several widths": (CHAIN, [torch.randn(size).bfloat16(), torch.randn(size, dtype=torch.float64)]),
        "chunks": (CHUNKS, [x, x[0]]),
        "rows": (MIXED, [torch.randn(3, size), torch.randn(size)]),
        "sums": (str(graph_of("sum", size)), [torch.randn(3, size)]),
        "sums of columns": (_folding([0]), [torch.randn(5, size), torch.randn(size)]),
        "sums of short rows": (_folding([1]), [torch.randn(size, 3), torch.randn(3)]),
        "sums of blocks": (_folding([0, 2]), [torch.randn(3, size, 4), torch.randn(4)]),
        "one sum": (_folding([0, 1]), [torch.randn(size, 6)[:, ::2], torch.randn(3)]),
        "along columns": (CENTRED.replace("DIMS", "[0]"), [torch.randn(size, 5)]),
        "along columns with gaps": (CENTRED.replace("DIMS", "[1]"), [torch.randn(3, size, 2)[:, :, ::2]]),
        "the largest": (WHERE.replace("DIM", "0"), [torch.randn(4, size)]),
        "the largest of a row": (WHERE.replace("DIM", "-1"), [torch.randn(4, size)]),
        "joined rows": (_joining(1), [torch.randn(3, size), torch.randn(3, 2), torch.randn(3, size)]),
        "joined columns": (_joining(0), [torch.randn(size, 3), torch.randn(2, 3), torch.randn(1, 6)[:, ::2]]),
        "sums up to each element": (SCAN.replace("DIM", "-1").replace("KIND", "cumsum"), [torch.randn(3, size)]),
        "sums down columns": (SCAN.replace("DIM", "0").replace("KIND", "cumsum"), [torch.randn(3, size)]),
        "groups of channels": (GROUP.replace("GROUPS", "2"), [torch.randn(2, 4, size), *torch.rand(2, 4)]),
        "intermediate buffers": (LOSS, [torch.randn(3, size)]),
        "rows of a table": (EMBEDDING, [torch.randn(4, size), torch.tensor([3, 0, 1]), torch.randn(size)]),
        "elements of rows": (select("gather", 1), [torch.randn(2, 5), torch.randint(5, (2, size)), torch.ones(2, 1)]),
        "columns of a table": (
            select("index_select", 1),
            [torch.randn(2, 5), torch.randint(5, (size,)), torch.ones(2, 1)],
        ),
        "indices from the end": (INDEX, [torch.randn(4, size).t(), torch.tensor([-1, 0, -size]), torch.ones(4)]),
        "rows of what is computed": (COMPUTED, [torch.randn(6, size), torch.tensor([3, -1, 1])]),
        "windows": (windows(MAXIMUM, [2], [1], [1]), [torch.randn(1, 3, size + 1)]),
        "windows over the edge": (windows(MAXIMUM, [3], [2], [1], [1]), [torch.randn(1, 2, 4, size + 1)]),
        "means of windows": (windows(MEAN, [1, 3], [1, 2], [1]), [torch.randn(2, 4, size + 2)]),
        "a row by a matrix": (TRANSPOSED, [_whole(1, size), _whole(19, size)]),
        "matrices by rows": (TRANSPOSED, [_whole(5, size), _whole(6, size)]),
        "matrices by columns": (PRODUCT.replace("NAME", "mm"), [torch.randn(5, 3), torch.randn(3, size)]),
        "matrices of doubles": (TRANSPOSED, [torch.randn(5, size).double(), torch.randn(6, size).double()]),
        "many matrices": (PRODUCT.replace("NAME", "bmm"), [torch.randn(2, 3, 5), torch.randn(2, 5, size)]),
        "a linear map of what is computed": (LINEAR, [torch.randn(2, size), torch.randn(7, size), torch.randn(7)]),
        "something added to a product": (ADDED, [torch.randn(size), torch.randn(3, 4), torch.randn(4, size)]),
    }


@pytest.mark.parametrize("at_end", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_nothing_else_is_touched(size: int, at_end: bool, temporaries: GuardedTemporaries) -> None:
    for title, (text, inputs) in cases(size).items():
        if title == "bytes":
            text = text.replace("float = prim::Constant[value=0.5]", "int = prim::Constant[value=2]")
        graph = parse_graph(text.lstrip())
        layouts = [Layout(tuple(each.shape), each.stride(), each.dtype) for each in inputs]
        launch = FusionExecutor(graph).prepare(layouts)
        found = _launch(launch, inputs, at_end)
        expected = callable_of(graph, "eager")(*inputs)
        for mine, theirs in zip(found, [expected] if isinstance(expected, Tensor) else expected, strict=True):
            torch.testing.assert_close(mine, theirs, equal_nan=True)
    assert temporaries.count >= 5
    assert not temporaries.given


@pytest.mark.parametrize("at_end", [False])
def test_temporaries_without_memory(temporaries: GuardedTemporaries, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel ends with a status of its own, and writes nothing."""
    text, inputs = cases(16)["a linear map of what is computed"]
    group = FusionExecutor(parse_graph(text.lstrip()))
    launch = group.prepare([Layout(tuple(each.shape), each.stride(), each.dtype) for each in inputs])
    results = [torch.full(each.sizes, 7.0) for each in launch.outputs]
    assert launch.run(inputs, results) is KernelStatus.DONE
    used = temporaries.count
    assert used > 0
    temporaries.is_full = True
    results = [torch.full(each.sizes, 7.0) for each in launch.outputs]
    assert launch.run(inputs, results) is KernelStatus.NO_MEMORY
    assert all(bool((each == 7.0).all()) for each in results)
    assert not temporaries.given


def test_the_guards_hold() -> None:
    """A pair of pages that cannot be read, and memory between them that can."""
    with open("/proc/self/maps", encoding="ascii") as file:
        before = file.read()
    guarded = Guarded(10, at_end=True)
    with open("/proc/self/maps", encoding="ascii") as file:
        after = file.read()
    lines = [line for line in after.splitlines() if line not in before.splitlines() and " ---" in line]
    starts = {int(line.split("-")[0], 16) for line in lines}
    assert {guarded.base, guarded.base + 2 * PAGE} <= starts
