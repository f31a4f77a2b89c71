"""What runs a fused group: a kernel where one can be made, its operators where not, the same answer in any case."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

import rekindle
import rekindle.ops
import rekindle.runtime.executor
from rekindle.codegen import fusion_executor
from rekindle.codegen.compiled_kernels import KernelLaunch, KernelStatus
from rekindle.codegen.fusion import FuseGraph
from rekindle.codegen.fusion_executor import MAX_LAUNCHES, FusionExecutor, group_of
from rekindle.codegen.llvm import call_sites
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.text.parser import parse_graph
from tests.codegen.test_loops import CHAIN, CHUNKS, TYPES

FUSED = """
graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::mm(%x, %y)
  %c : Tensor = aten::relu(%a)
  return (%b, %c)
"""


def turned(x: Tensor) -> Tensor:
    return (x * 2j + 1).exp()


def chain() -> FusionExecutor:
    return FusionExecutor(parse_graph(CHAIN.lstrip()))


def expected(x: Tensor, y: Tensor) -> Tensor:
    return (x * y * 0.5).relu()


def test_in_a_plan() -> None:
    graph = parse_graph(FUSED.lstrip())
    FuseGraph().run(graph)
    run = callable_of(graph, "program")
    x, y = torch.randn(5, 5), torch.randn(5, 5)
    for _ in range(3):
        product, activated = run(x, y)
        assert torch.equal(product, x.mm(y))
        assert torch.equal(activated, (x * y).relu())
    group = group_of(graph.find_nodes("prim::FusionGroup")[0].get_graph("Subgraph"))
    assert group is not None
    assert len(group.launches) == 1


def test_numbers_that_kernels_do_not_know_stay_outside() -> None:
    scripted = rekindle.script(turned)
    x = torch.randn(3, 2)
    for _ in range(4):  # the types of the results are not known to the fusion
        assert torch.equal(scripted(x), turned(x))


def test_an_input_that_is_none() -> None:
    group = FusionExecutor(
        parse_graph(
            """graph(%x : Tensor, %w : Tensor, %bias : Tensor?):
  %y : Tensor = aten::linear(%x, %w, %bias)
  %z : Tensor = aten::relu(%y)
  return (%z)
"""
        )
    )
    x, w, bias = torch.randn(2, 3), torch.randn(4, 3), torch.randn(4)
    for given in (bias, None, None, bias, None):
        torch.testing.assert_close(group(x, w, given), torch.relu(torch.nn.functional.linear(x, w, given)))
    assert set(group.failures) <= {"an input that is a NoneType, where a tensor or a number may be"}


def test_known_layouts_do_without_python(monkeypatch: pytest.MonkeyPatch) -> None:
    if not call_sites.is_available():
        pytest.skip("this build of torch is not known well enough for calls without Python")
    group = chain()
    function = group.function()
    x, y = torch.randn(3, 4), torch.randn(4)
    assert torch.equal(function(x, y), expected(x, y))

    def fails(self: FusionExecutor, *inputs: object) -> None:
        raise AssertionError("asked Python")

    monkeypatch.setattr(FusionExecutor, "_launch_for", fails)
    monkeypatch.setattr(fusion_executor.KernelLaunch, "__call__", fails)
    assert torch.equal(function(x, y), expected(x, y))


@pytest.mark.parametrize("as_function", [False, True])
def test_gradients_are_recorded(as_function: bool) -> None:
    group = chain()
    call = group.function() if as_function else group
    x, y = torch.randn(4), torch.randn(4)
    call(x, y)
    x.requires_grad_()
    found = call(x, y)
    assert found.requires_grad
    (gradient,) = torch.autograd.grad(found.sum(), x)
    assert torch.equal(gradient, torch.autograd.grad(expected(x, y).sum(), x)[0])
    with torch.no_grad():
        assert not call(x, y).requires_grad
    assert len(group.launches) == 1


class _Subclass(Tensor):
    pass


class _Counting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("as_function", [False, True])
def test_others_see_each_operator(as_function: bool) -> None:
    group = chain()
    call = group.function() if as_function else group
    x, y = torch.randn(4), torch.randn(4)
    call(x, y)
    with _Counting() as counting:
        call(x, y)
    assert counting.seen == ["aten.mul.Tensor", "aten.mul.Tensor", "aten.relu.default"]
    assert type(call(x.as_subclass(_Subclass), y)) is _Subclass
    assert torch.equal(
        torch.func.vmap(call)(torch.stack([x, y]), torch.stack([y, x])),
        expected(torch.stack([x, y]), torch.stack([y, x])),
    )
    with forward_ad.dual_level():
        found = call(forward_ad.make_dual(x, torch.ones(4)), y)
        assert forward_ad.unpack_dual(found).tangent is not None
    assert call(x.to("meta"), y.to("meta")).device.type == "meta"
    assert len(group.launches) == 1


def scaled(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    return torch.exp(x) * y + z


def test_zeros_without_memory() -> None:
    """Autograd passes them to derivatives of second order; their address is 0."""
    scripted = rekindle.script(scaled)
    x, y = torch.randn(2, 5, 7)
    zeros = torch._efficientzerotensor((5, 7))
    for inputs in ((x, y, x), (x, zeros, y), (x, y, zeros), (zeros, x, y)) * 3:
        torch.testing.assert_close(scripted(*inputs), scaled(*inputs))


def largest(x: Tensor) -> Tensor:
    return torch.linalg.vector_norm(x.exp() * x, float("inf")).tanh() * 2


def test_second_derivatives_with_zeros_without_memory() -> None:
    scripted = rekindle.script(largest)
    for call in range(4):
        x = torch.randn(5, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(call), requires_grad=True)
        found = []
        for function in (scripted, largest):
            (first,) = torch.autograd.grad(function(x) ** 2, x, create_graph=True)
            found.append((first, *torch.autograd.grad((first * first).sum(), x)))
        torch.testing.assert_close(*found)


def test_inference_mode() -> None:
    function = chain().function()
    x, y = torch.randn(4), torch.randn(4)
    with torch.inference_mode():
        assert function(x, y).is_inference()
        assert function(x, y).is_inference()
    assert not function(x, y).is_inference()


def test_errors_are_those_of_the_operators() -> None:
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(2\) must match the size of tensor b \(3\)"):
        chain()(torch.randn(2), torch.randn(3))


def test_numbers() -> None:
    group = FusionExecutor(parse_graph(TYPES.lstrip()))
    function, eager = group.function(), callable_of(group.graph, "eager")
    for x in (torch.randn(3, 7), torch.arange(21).view(3, 7)):
        for s, n in ((2, 3), (0.5, 3), (-1, 2**40), (True, 1)):
            if isinstance(s, float) and not x.is_floating_point():
                continue
            for _ in range(2):
                for found, wanted in zip(function(x, x > 0, s, n), eager(x, x > 0, s, n), strict=True):
                    assert found.dtype == wanted.dtype
                    assert torch.equal(found, wanted)


def test_aliased_and_overlapping_inputs() -> None:
    function = chain().function()
    x = torch.randn(8)
    for a, b in ((x, x), (x[:-1], x[1:]), (x.expand(3, 8), x), (x.as_strided((5, 4), (1, 1)), x[:4]), (x.flip(0), x)):
        for _ in range(2):
            assert torch.equal(function(a, b), expected(a, b))


def test_the_default_dtype_may_change() -> None:
    graph = parse_graph("graph(%x : Tensor):\n  %y : Tensor = aten::sigmoid(%x)\n  return (%y)\n")
    function = FusionExecutor(graph).function()
    x = torch.arange(4)
    try:
        for dtype in (torch.float32, torch.float64, torch.float32):
            torch.set_default_dtype(dtype)
            for _ in range(2):
                assert function(x).dtype == dtype
    finally:
        torch.set_default_dtype(torch.float32)


def test_many_layouts() -> None:
    group = chain()
    for size in range(2 * MAX_LAUNCHES):
        x, y = torch.randn(size), torch.randn(size)
        assert torch.equal(group(x, y), expected(x, y))
    assert len(group.launches) == MAX_LAUNCHES


def test_kernels_for_other_dtypes_do_not_evict_the_first_from_the_native_call_site() -> None:
    group = chain()
    function = group.function()
    dtypes = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
    layouts = [torch.randn(4, 3, 2), torch.randn(2, 3, 4).transpose(0, 2), torch.randn(4, 1, 2).expand(4, 3, 2)]
    arguments = [x.to(dtype) for dtype in dtypes for x in layouts]
    for _ in range(2):
        for x in arguments:
            assert torch.allclose(function(x, x), expected(x, x))
    assert len(group.recipes) > 8
    group.launches.clear()
    for x in arguments:
        function(x, x)
    assert group.launches == {}, "a call was dispatched by Python"


def test_groups_die() -> None:
    group = FusionExecutor(parse_graph(CHUNKS.lstrip()))
    function = group.function()
    function(torch.randn(2, 4), torch.randn(4))
    died = weakref.ref(group)
    gc.disable()
    try:
        del group
        assert died() is not None
        del function
        assert died() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_threads(threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for shape in ((1_000_003,), (1003, 1001), (3, 400_001)):
            x, y = torch.randn(shape), torch.randn(shape[-1])
            assert torch.equal(chain()(x, y), expected(x, y))
    finally:
        torch.set_num_threads(before)


def test_large_activations_that_onednn_computes_faster() -> None:
    f = rekindle.script(exact_gelu)
    small, large = torch.randn(64), torch.randn(1 << 15)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(f(small), exact_gelu(small))
            torch.testing.assert_close(f(large), exact_gelu(large))
        (group,) = (group for part in rekindle.report(f).parts for group in part.groups)
        assert len(group.kernels) == 1
        assert group.fallbacks["no kernel can be made for such inputs"] == 3


def test_a_launch_that_declines_says_so_in_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """As launches on a GPU of rows that are too few."""
    monkeypatch.setattr(KernelLaunch, "__call__", lambda _self, _inputs: KernelStatus.DECLINED)
    group, x = chain(), torch.randn(5)
    for _ in range(3):
        assert torch.equal(group(x, x), expected(x, x))
    assert group.fallbacks == {fusion_executor.DECLINED: 3}


def exact_gelu(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x)


@pytest.mark.parametrize(
    ("source", "make"),
    [
        ("torch.lerp(x, y, 0.25)", lambda x: (x, x.double())),
        ("torch.layer_norm(x, [4], y)", lambda x: (x, x[0, :1])),
        ("torch.layer_norm(x, [4], y)", lambda x: (x, x[:1])),
        ("torch.rms_norm(x, [4], y)", lambda x: (x, x[:1])),
        ("torch.ops.aten.soft_margin_loss(x, y, 0)", lambda x: (x[0], x)),
    ],
)
def test_single_operators_refuse_what_pytorch_refuses(source: str, make: Any) -> None:
    source = f"def f(x: Tensor, y: Tensor) -> Tensor:\n    return {source}\n"
    names: dict[str, Any] = {"torch": torch, "Tensor": Tensor}
    exec(source, names)
    compiled, inputs = rekindle.CompilationUnit(source).f, make(torch.linspace(-1, 1, 12).view(3, 4))
    with torch.no_grad():
        with pytest.raises(RuntimeError) as expected:
            names["f"](*inputs)
        for _ in range(4):
            with pytest.raises(RuntimeError) as found:
                compiled(*inputs)
            assert str(expected.value).splitlines()[0] in str(found.value)


def test_a_filled_tensor_is_contiguous() -> None:
    f = rekindle.script(filled)
    x = torch.randn(4, 3).t()
    with torch.no_grad():
        for _ in range(4):
            assert f(x).stride() == filled(x).stride() == (4, 1)


def filled(x: torch.Tensor) -> torch.Tensor:
    return x.masked_fill(x > 0, 2.0)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool], ids=str)
@pytest.mark.parametrize(
    "call",
    ["torch.frac(x)", "torch.hypot(x, x)", "x.floor()", "torch.where(x, x, x)", "x.to(torch.uint8).clamp(-1, 300)"],
)
def test_dtypes_that_pytorch_refuses_or_takes(call: str, dtype: torch.dtype) -> None:
    source = f"def f(x: Tensor) -> Tensor:\n    return {call}\n"
    names: dict[str, Any] = {"torch": torch, "Tensor": Tensor}
    exec(source, names)
    compiled, x = rekindle.CompilationUnit(source).f, torch.tensor([3, 0, 1]).to(dtype)
    with torch.no_grad():
        for _ in range(4):
            assert _outcome(compiled, x) == _outcome(names["f"], x)


def _outcome(function: Any, x: torch.Tensor) -> tuple[Any, ...]:
    try:
        found = function(x)
    except RuntimeError as error:
        return type(error), str(error).splitlines()[0]
    return found.dtype, found.tolist()


@pytest.mark.parametrize("call", ["torch.nn.functional.logsigmoid(x)", "2**x", "x.masked_fill(x > 0, 1.0)", "x.exp()"])
@pytest.mark.parametrize("form", [torch.contiguous_format, torch.channels_last], ids=str)
def test_results_lie_in_memory_as_pytorchs_do(call: str, form: torch.memory_format) -> None:
    source = f"def f(x: Tensor) -> Tensor:\n    return {call}\n"
    names: dict[str, Any] = {"torch": torch, "Tensor": Tensor}
    exec(source, names)
    compiled, x = rekindle.CompilationUnit(source).f, torch.randn(2, 3, 4, 5).to(memory_format=form)
    with torch.no_grad():
        for each in (x, x.transpose(1, 2)):
            for _ in range(4):
                torch.testing.assert_close(compiled(each), names["f"](each), check_stride=True)


def test_other_threads_run_during_a_large_kernel() -> None:
    f = rekindle.script(tangent)
    x = torch.randn(1500, 1500)
    done, ticks = threading.Event(), 0
    with torch.no_grad():
        for _ in range(3):
            f(x)

        def tick() -> None:
            nonlocal ticks
            while not done.is_set():
                time.sleep(0.0001)
                ticks += 1

        thread = threading.Thread(target=tick)
        thread.start()
        before = ticks
        for _ in range(20):
            f(x)
        ran = ticks - before
        done.set()
        thread.join()
    assert ran > 20  # while the GIL is held, one at most between two calls


def tangent(x: torch.Tensor) -> torch.Tensor:
    return torch.tan(x)
