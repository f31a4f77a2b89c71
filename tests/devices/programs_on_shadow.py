"""Compiled programs on a device that has no kernels: they do what eager does there. test_other_devices.py runs this."""

from __future__ import annotations

import copy
import ctypes
import io
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import rekindle
from rekindle.codegen.fusion_executor import FusionExecutor, group_of
from tests.support import shadow_device as shadow

CALLS = 6


def here(*sizes: int) -> Tensor:
    return torch.randn(*sizes).to("shadow")


@pytest.fixture(autouse=True)
def no_kernel_touches_the_device() -> Any:
    torch.manual_seed(0)
    shadow.calls.clear()
    yield
    assert shadow.touched_decoys() == 0


def same(found: Any, expected: Any) -> None:
    """Check that two results have the same values, devices, strides and versions."""
    if isinstance(expected, Tensor):
        assert (found.device, found.stride(), found.dtype) == (expected.device, expected.stride(), expected.dtype)
        assert found.requires_grad == expected.requires_grad
        torch.testing.assert_close(found.detach().cpu(), expected.detach().cpu())
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for mine, theirs in zip(found, expected, strict=True):
            same(mine, theirs)
    elif isinstance(expected, dict):
        same(list(found.items()), list(expected.items()))
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-5)
    else:
        assert found == expected


# ------------------------------------------------------------------------------------------------------------ programs


def chain(x: Tensor, y: Tensor) -> Tensor:
    return torch.tanh(x * y + 1.0) - y


def rows(x: Tensor, y: Tensor) -> Tensor:
    return torch.softmax(x * 2.0, -1) + F.layer_norm(y, [4])


def sums(x: Tensor, y: Tensor) -> list[Tensor]:
    return [(x * y).sum(), (x - y).square().mean(0), (x * y).amax(-1), x.argmax(), x.cumsum(0)]


def product(x: Tensor, y: Tensor) -> Tensor:
    return F.gelu(x @ y.t() + 1.0)


def writes(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    z = x.clone()
    z[1:].mul_(2.0)
    z.t()[0].add_(1.0)
    y.sigmoid_()
    return z, z[0]


def loop(x: Tensor, y: Tensor) -> Tensor:
    for i in range(5):
        x = torch.sigmoid(x * 1.5) + y * float(i)
    return x


def depends_on_values(x: Tensor, y: Tensor) -> tuple[Tensor, float]:
    if bool((x.sum() > 0).item()):
        x = x * y
    else:
        x = x - y
    return x, float(x.mean())


def makes_tensors(x: Tensor, y: Tensor) -> list[Tensor]:
    zeros = torch.zeros(3, 4, device=x.device)
    return [
        zeros + x,
        torch.arange(4, device=x.device) * y,
        torch.ones_like(x) + y,
        x.new_full((2,), 3.0),
        x.cpu() * 2.0,
    ]


def asks(x: Tensor, y: Tensor) -> tuple[str, int, bool, bool, bool, bool]:
    return x.device.type, x.get_device(), x.device == y.device, x.is_cpu, x.is_cuda, x.device.index is None


def branches_on_the_device(x: Tensor, y: Tensor) -> Tensor:
    if x.device.type == "cpu":
        return torch.tanh(x * y + 1.0)
    return torch.sigmoid(x * y - 1.0)


def structures(x: Tensor, y: Tensor) -> dict[str, list[Tensor]]:
    found: dict[str, list[Tensor]] = {}
    for name in ("a", "b"):
        found[name] = [x * 2.0 + y, (x + y).t()]
    return found


PROGRAMS = (
    chain,
    rows,
    sums,
    product,
    writes,
    loop,
    depends_on_values,
    makes_tensors,
    asks,
    branches_on_the_device,
    structures,
)


def fresh(program: Callable[..., Any]) -> Any:
    """Compile a copy of a program, which no other test has called."""
    return rekindle.script(types.FunctionType(program.__code__, globals(), program.__name__))


@pytest.fixture(params=["native", "profiling", "simple"])
def strategy(request: pytest.FixtureRequest) -> Any:
    before = rekindle.set_execution_strategy(request.param)
    yield request.param
    rekindle.set_execution_strategy(before)


def groups_of(function: Any, *arguments: Any) -> list[FusionExecutor]:
    nodes = function.graph_for(*arguments).find_nodes("prim::FusionGroup")
    return [each for each in (group_of(node.get_graph("Subgraph")) for node in nodes) if each is not None]


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_results_are_eagers(program: Callable[..., Any], grad: bool, strategy: str) -> None:
    compiled = fresh(program)
    with torch.set_grad_enabled(grad):
        for _ in range(CALLS):
            x, y = here(3, 4), here(3, 4)
            mine, theirs = (x, y.clone()), (x, y.clone())
            before = [each._version for each in mine]
            same(compiled(*mine), program(*theirs))
            same(mine, theirs)
            assert [each._version for each in mine] == [0, theirs[1]._version]
            assert before == [0, 0]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("first", ["cpu", "shadow"])
def test_a_program_profiled_on_one_device_runs_on_another(
    program: Callable[..., Any], first: str, strategy: str
) -> None:
    compiled = fresh(program)
    second = "shadow" if first == "cpu" else "cpu"
    with torch.no_grad():
        for device in (*(first,) * CALLS, *(second, first) * 3, *(second,) * CALLS):
            x, y = torch.randn(3, 4).to(device), torch.randn(3, 4).to(device)
            mine, theirs = (x, y.clone()), (x, y.clone())
            same(compiled(*mine), program(*theirs))
            same(mine, theirs)


@pytest.mark.parametrize("program", [chain, rows, loop, product])
def test_gradients(program: Callable[..., Any], strategy: str) -> None:
    compiled = fresh(program)
    for device in (*("shadow",) * CALLS, *("cpu", "shadow") * 3):
        x, y = (torch.randn(3, 4).to(device).requires_grad_() for _ in range(2))
        expected = torch.autograd.grad(program(x, y).square().sum(), [x, y])
        same(torch.autograd.grad(compiled(x, y).square().sum(), [x, y]), expected)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        return F.log_softmax(self.last(F.gelu(self.norm(self.first(x)))), -1)


def test_training() -> None:
    net = Net()
    compiled = rekindle.script(copy.deepcopy(net)).to("shadow")
    net = net.to("shadow")
    for step in range(CALLS):
        x = here(5, 4)
        for each in (net, compiled):
            each.zero_grad()
            each(x).square().mean().backward()
            with torch.no_grad():
                for parameter in each.parameters():
                    parameter -= 0.1 * parameter.grad
        same(dict(compiled.state_dict()), dict(net.state_dict()))
    for each in (net, compiled):
        each.eval()
    x = here(5, 4)
    same(compiled(x), net(x))


def test_traces() -> None:
    net = Net().to("shadow").eval()
    x = here(5, 4)
    with torch.no_grad():
        traced = rekindle.trace(net, (x,))
        for _ in range(CALLS):
            x = here(5, 4)
            same(traced(x), net(x))
        for _ in range(CALLS):
            x = torch.randn(5, 4)
            same(traced.to("cpu")(x), net.to("cpu")(x))


class Moving(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.linear(x.to("shadow", non_blocking=True)) + torch.zeros(4, device="shadow:0")
        z = torch.tanh(y * 2.0) + 1.0
        return z, z.to(torch.device("cpu")) * 2.0


def test_devices_that_traces_name_are_constants() -> None:
    module = Moving().to("shadow")
    with torch.no_grad():
        traced = rekindle.trace(module, (torch.randn(3, 4),))
        file = io.BytesIO()
        rekindle.save(traced, file)
        file.seek(0)
        for each in (traced, rekindle.load(file)):
            for x in (torch.randn(3, 4), here(3, 4)) * CALLS:
                same(each(x), module(x))


def test_frozen_modules() -> None:
    net = Net().to("shadow").eval()
    frozen = rekindle.freeze(rekindle.script(net))
    with torch.no_grad():
        for _ in range(CALLS):
            x = here(5, 4)
            same(frozen(x), net(x))


def test_modules_optimized_for_inference() -> None:
    net = Net().to("shadow").eval()
    optimized = rekindle.optimize_for_inference(rekindle.script(net))
    with torch.no_grad():
        for _ in range(CALLS):
            x = here(5, 4)
            same(optimized(x), net(x))


# ------------------------------------------------------------------------------------------------------- mixed devices


def test_tensors_of_two_devices_are_rejected_as_in_eager() -> None:
    compiled = rekindle.script(chain)
    x, far = here(3, 4), torch.randn(3, 4)
    with torch.no_grad():
        for x_first in (True, False) * 3:
            arguments = (x, far) if x_first else (far, x)
            with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
                chain(*arguments)
            with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
                compiled(*arguments)
            same(compiled(x, x), chain(x, x))
            same(compiled(far, far), chain(far, far))


def test_numbers_in_tensors_of_the_host_mix() -> None:
    compiled = rekindle.script(chain)
    number = torch.tensor(2.0)
    with torch.no_grad():
        for _ in range(CALLS):
            for each in (here(3, 4), torch.randn(3, 4)):
                same(compiled(each, number), chain(each, number))
                same(compiled(number, each), chain(number, each))


def moves(x: Tensor, device: torch.device) -> tuple[Tensor, Tensor]:
    y = torch.tanh(x * 2.0) + 1.0
    z = y.to(device)
    return torch.sigmoid(z * 3.0) - 1.0, y.mul_(2.0)


def test_programs_move_tensors() -> None:
    compiled = rekindle.script(moves)
    with torch.no_grad():
        for source, target in (("cpu", "shadow"), ("shadow", "cpu"), ("shadow", "shadow"), ("cpu", "cpu")) * 4:
            x = torch.randn(3, 4).to(source)
            same(compiled(x, torch.device(target)), moves(x, torch.device(target)))


# ------------------------------------------------------------------------------------------------- what ran, and where


def test_groups_run_their_operators_on_the_device() -> None:
    compiled = rekindle.script(chain)
    with torch.no_grad():
        for _ in range(CALLS):  # kernels for the CPU are there
            far = torch.randn(3, 4)
            compiled(far, far)
        assert groups_of(compiled, far, far)
        x = here(3, 4)
        shadow.calls.clear()
        chain(x, x)
        expected = list(shadow.calls)
        assert len(expected) >= 4
        for _ in range(CALLS):
            shadow.calls.clear()
            compiled(x, x)
            assert shadow.calls == expected


def only_here(x: Tensor) -> Tensor:
    return torch.tanh(x * 2.0 + 1.0)


def first_on_the_host(x: Tensor) -> Tensor:
    return torch.tanh(x * 3.0 + 1.0)


def test_facts_of_the_profile_are_guarded() -> None:
    before = rekindle.set_execution_strategy("profiling")
    try:
        compiled = fresh(branches_on_the_device)
        with torch.no_grad():
            for _ in range(CALLS):
                compiled(torch.randn(3, 4), torch.randn(3, 4))
            graph = str(compiled.graph_for(torch.randn(3, 4), torch.randn(3, 4))).partition("\nwith ")[0]
            assert "Float(3, 4, device=cpu) = prim::BailOut" in graph
            assert "prim::If" not in graph, "the branch is taken for granted"
            x = here(3, 4)
            for _ in range(CALLS):
                same(compiled(x, x), branches_on_the_device(x, x))
    finally:
        rekindle.set_execution_strategy(before)


def test_writes_to_memory_of_the_device_are_noticed() -> None:
    x = here(2)
    ctypes.memset(x.data_ptr(), 0, 4)
    assert shadow.touched_decoys() == 1
    assert not x.isnan().any(), "its values are elsewhere"
    ctypes.memset(x.data_ptr(), 0xFF, 4)


def test_the_report_says_why() -> None:
    compiled = rekindle.script(only_here)
    with torch.no_grad():
        for _ in range(CALLS):
            compiled(here(3, 4))
        text = str(rekindle.report(compiled))
    assert "kernels are made for CPUs and CUDA, and an input is on shadow:0" in text, text
    assert "aten::tanh" in text
    compiled = rekindle.script(first_on_the_host)
    with torch.no_grad():
        for _ in range(CALLS):
            compiled(torch.randn(3, 4))
        for _ in range(CALLS):
            compiled(here(3, 4))
        text = str(rekindle.report(compiled))
    assert "kernels are made for CPUs and CUDA, and an input is on shadow:0" in text, text


# ------------------------------------------------------------------------------------------------------------ archives


def test_archives_of_modules_on_the_device() -> None:
    net = Net().to("shadow").eval()
    file = io.BytesIO()
    rekindle.save(rekindle.script(net), file)
    for where in (None, "cpu", "shadow", torch.device("shadow:0"), {"shadow:0": "cpu"}, lambda storage, place: storage):
        file.seek(0)
        loaded = rekindle.load(file, map_location=where)
        device = next(iter(loaded.parameters())).device
        host = where == "cpu" or isinstance(where, dict) or callable(where)
        assert device == (torch.device("cpu") if host else torch.device("shadow:0")), where
        with torch.no_grad():
            for _ in range(CALLS):
                x = torch.randn(5, 4)
                torch.testing.assert_close(loaded(x.to(device)).cpu(), net(x.to("shadow")).cpu())
