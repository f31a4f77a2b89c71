"""Graphs of random operators on tensors of random layouts: fused, they give what they give operator by operator."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from hypothesis import HealthCheck, given, settings, strategies as st
from torch import Tensor

import rekindle.ops
import rekindle.runtime.executor  # noqa: F401 (runs graphs)
from rekindle.codegen.fusion import FuseGraph
from rekindle.codegen.fusion_executor import group_of
from rekindle.ir.graph import Graph, Value
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.types import TENSOR, ListType, OptionalType
from rekindle.ir.verifier import verify
from rekindle.passes.pass_manager import run_passes
from tests.support.shares import portion

DTYPES = (
    torch.float32,
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
)
UNARY = ("relu", "abs", "neg", "sign", "floor", "logical_not", "isnan")
BINARY = ("add", "sub", "mul", "maximum", "lt", "ge", "eq")


@dataclass
class Program:
    """A graph that grows with its values, and what they are for the inputs at hand."""

    graph: Graph = field(default_factory=Graph)
    inputs: list[Tensor] = field(default_factory=list)
    values: list[tuple[Value, Tensor]] = field(default_factory=list)

    def input(self, tensor: Tensor) -> None:
        self.inputs.append(tensor)
        self.values.append((self.graph.add_input(), tensor))

    def apply(self, kind: str, arguments: list[object]) -> bool:
        """Add a call; False where PyTorch refuses it. Values are given by their index in ``values``, as a string."""
        tensors = [self.values[int(each)][1] if isinstance(each, str) else each for each in arguments]
        try:
            result = getattr(torch.ops.aten, kind)(*tensors)
        except (RuntimeError, TypeError, IndexError):
            return False
        given_ = [self.values[int(each)][0] if isinstance(each, str) else each for each in arguments]
        value = self.graph.insert(f"aten::{kind}", given_)
        self.values.append((value, result))
        return True

    def look_up(self, of: str, dim: int, index: Tensor) -> None:
        """Add the elements at the indices ``index``, a new input, along dimension ``dim``: by ``x[index]`` where that
        is the first, by ``gather`` where it has as many dimensions as the tensor, else by ``index_select``."""
        self.input(index)
        at, rank = str(len(self.values) - 1), self.values[int(of)][1].dim()
        if index.dim() == rank and dim != 0:
            self.apply("gather", [of, dim, at])
        elif dim == 0:
            made = self.graph.create(
                "prim::ListConstruct", [self.values[-1][0]], types=[ListType(OptionalType(TENSOR))]
            )
            indices = self.graph.insert_node(made).output
            whole, tensor = self.values[int(of)]
            self.values.append((self.graph.insert("aten::index", [whole, indices]), tensor[index]))
        else:
            self.apply("index_select", [of, dim, at])

    def join(self, parts: list[str], dim: int) -> None:
        """Add the concatenation of the parts, if PyTorch can compute it."""
        try:
            result = torch.cat([self.values[int(each)][1] for each in parts], dim)
        except (RuntimeError, IndexError):
            return
        items = [self.values[int(each)][0] for each in parts]
        made = self.graph.create("prim::ListConstruct", items, types=[ListType(TENSOR)])
        self.values.append((self.graph.insert("aten::cat", [self.graph.insert_node(made).output, dim]), result))


@st.composite
def tensors(draw: st.DrawFn, sizes: list[int]) -> Tensor:
    own = [1 if draw(st.integers(0, 4)) == 0 else size for size in sizes][draw(st.integers(0, 1)) :]
    dtype = draw(st.sampled_from(DTYPES))
    order = draw(st.permutations(range(len(own))))
    count = torch.Size(own).numel()
    numbers = torch.randint(-6, 7, (2 * count,)) / (2 if dtype.is_floating_point else 1)
    step = draw(st.sampled_from([1, 1, 2]))
    flat = numbers[: count * step : step] if count else numbers
    laid_out = flat.reshape([own[dim] for dim in order]).permute([order.index(dim) for dim in range(len(own))])
    kept = torch.empty_strided(laid_out.shape, laid_out.stride(), dtype=dtype)
    return kept.copy_(laid_out)


def _multiply(draw: st.DrawFn, program: Program, a: str, b: str) -> None:
    """A product of two values, or of one with its transpose, which fits more often."""
    rank = program.values[int(a)][1].dim()
    if rank > 1 and draw(st.booleans()) and program.apply("transpose", [a, -1, -2]):
        b = str(len(program.values) - 1)
    program.apply(
        draw(st.sampled_from({2: ["mm", "matmul", "linear"], 3: ["bmm", "matmul"]}.get(rank, ["matmul"]))), [a, b]
    )


def _look_up(draw: st.DrawFn, program: Program, of: str) -> None:
    tensor = program.values[int(of)][1]
    dim = draw(st.integers(0, tensor.dim() - 1))
    size = tensor.shape[dim]
    if size:
        sizes = draw(st.sampled_from([[4], [1], [], [2, 3], list(tensor.shape)]))
        program.look_up(of, dim, torch.randint(-size if dim == 0 else 0, size, sizes))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    torch.manual_seed(draw(st.integers(0, 1000)))
    program = Program()
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 7, 16, 20, 0]), max_size=3))
    for _ in range(draw(st.integers(1, 3))):
        program.input(draw(tensors(sizes)))
    for _ in range(draw(st.integers(2, 9))):
        a, b = (str(draw(st.integers(0, len(program.values) - 1))) for _ in range(2))
        choice = draw(st.integers(0, 15))
        if choice == 13:
            _multiply(draw, program, a, b)
        elif choice == 14 and program.values[int(a)][1].dim():
            _look_up(draw, program, a)
        elif choice == 15 and program.values[int(a)][1].dim() == 3:
            kernel, stride = draw(st.sampled_from([1, 2, 3])), draw(st.sampled_from([1, 2]))
            kind, *options = draw(st.sampled_from([("max_pool2d", [1], False), ("avg_pool2d", False, True, None)]))
            program.apply(kind, [a, [kernel], [stride], [draw(st.integers(0, kernel // 2))], *options])
        elif choice < 3:
            program.apply(draw(st.sampled_from(UNARY)), [a])
        elif choice < 7:
            program.apply(draw(st.sampled_from(BINARY)), [a, b])
        elif choice == 7:
            program.apply("mul", [a, draw(st.sampled_from([2, 0.5, -1, True]))])
        elif choice == 8 and program.values[int(a)][1].dim():
            dim = draw(st.integers(0, program.values[int(a)][1].dim() - 1))
            view = draw(st.sampled_from(["slice", "transpose", "unsqueeze"]))
            program.apply(
                view, [a, dim, 1, 3, 2] if view == "slice" else [a, dim, -1] if view == "transpose" else [a, dim]
            )
        elif choice == 12 and program.values[int(a)][1].dim():
            program.join([a, b], draw(st.integers(0, program.values[int(a)][1].dim() - 1)))
        elif choice > 9 and program.values[int(a)][1].dim():
            dim = draw(st.integers(0, program.values[int(a)][1].dim() - 1))
            kind = draw(st.sampled_from(["sum", "amax", "mean", "argmin", "any"]))
            keep = draw(st.booleans())
            program.apply(kind, [a, [dim] if kind in ("sum", "amax", "mean") else dim, keep])
        elif program.values[int(a)][1].dtype.is_floating_point and program.values[int(a)][1].dim():
            program.apply("softmax", [a, draw(st.sampled_from([0, -1]))])
    for value, _ in [program.values[0], *program.values[-2:]]:
        program.graph.add_output(value)
    return program


INEXACT = ("softmax", "sum", "mean", "mm", "bmm", "matmul", "linear", "avg_pool2d")
"""Operators whose terms are added up in another order."""

REFUSED = (
    *("rows of a tensor without", "rows of integers", "empty rows", "joining tensors", "parts that are none"),
    *("a product of", "factors of several dtypes", "sums of no elements", "sizes do not fit together"),
    *("indices of such a dtype, or no elements", "pooling of such an image", "pooling of an image with gaps"),
)
"""How the reasons begin for which a group has no kernel."""


@settings(max_examples=portion(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_fused_is_unfused(program: Program) -> None:
    plain = program.graph.copy()
    run_passes(program.graph, [FuseGraph(least=1)], verify)
    fused = callable_of(program.graph, "fused")
    expected = callable_of(plain, "plain")(*program.inputs)
    for _ in range(2):
        for found, wanted in zip(fused(*program.inputs), expected, strict=True):
            assert found.dtype == wanted.dtype
            assert found.stride() == wanted.stride()
            exact = not wanted.dtype.is_floating_point or not any(f"aten::{name}(" in str(plain) for name in INEXACT)
            torch.testing.assert_close(
                found, wanted, equal_nan=True, **({"rtol": 0, "atol": 0} if exact else {"rtol": 1e-2, "atol": 1e-2})
            )
    for node in program.graph.find_nodes("prim::FusionGroup"):
        group = group_of(node.get_graph("Subgraph"))
        assert group is not None
        assert all(reason.startswith(REFUSED) or "truth" in reason for reason in group.failures), group.failures
