"""`rekindle.report` lists the operators that became machine code, and those that did not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import rekindle
from rekindle.codegen import fusion_executor

HERE = Path(__file__).name


@pytest.fixture(params=["native"])
def strategy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(fusion_executor, "COMPILE_THRESHOLD_US", 0.0)  # kernels from the first call on
    before = rekindle.set_execution_strategy(request.param)
    yield request.param
    rekindle.set_execution_strategy(before)


def gate(x, w):
    y = x @ w
    return torch.tanh(y) * torch.sigmoid(y)


def running_total(x):
    return torch.cat((torch.logcumsumexp(x, 0), x))


def collatz(n: int):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def masked(report: rekindle.Report) -> str:
    """The text, without what differs from run to run and from platform to platform."""
    text = re.sub(r"\d+\.\d ms", "T ms", str(report)).replace("as a native plan", "as a plan")
    text = re.sub(r"(compiled|read from disk|there already) in", "made in", text)
    text = re.sub(r"\d+ (compiled|read from disk|there already)(, \d+ (read from disk|there already))*", "N", text)
    return re.sub(rf"{HERE}:\d+", f"{HERE}:L", text)


def test_kernels_with_the_lines_that_they_cover(strategy: str) -> None:
    f = rekindle.script(gate)
    with torch.no_grad():
        f(torch.randn(2, 3), torch.randn(3, 4))
    report = rekindle.report(f)
    assert masked(report) == (
        "gate: the strategy is 'native', with 1 version\n"
        "1 kernel: N, in T ms\n"
        "\n"
        "version 1, as a plan, made in T ms\n"
        "  for %x.1 : Tensor, %w.1 : Tensor\n"
        "  kernel 1, made in T ms\n"
        "    for f32[2, 3], f32[3, 4] -> f32[2, 4]\n"
        f"    {HERE}:L: y = x @ w\n"
        "      aten::matmul\n"
        f"    {HERE}:L: return torch.tanh(y) * torch.sigmoid(y)\n"
        "      aten::tanh, aten::sigmoid, aten::mul"
    )
    [kernel] = report.kernels
    kinds = [operator.kind for operator in kernel.operators]
    assert kinds == ["aten::matmul", "aten::tanh", "aten::sigmoid", "aten::mul"]
    assert {operator.source for operator in kernel.operators[1:]} == {"return torch.tanh(y) * torch.sigmoid(y)"}
    assert {operator.line for operator in kernel.operators[1:]} == {gate.__code__.co_firstlineno + 2}
    assert report.unfused == ()


def rarely(x: torch.Tensor) -> torch.Tensor:
    for _ in range(x.size(0)):
        if x.sum() > 1000:
            x = torch.tanh(x) * torch.sigmoid(x)
    return x


def test_groups_that_have_not_run(strategy: str) -> None:
    f = rekindle.script(rarely)
    with torch.no_grad():
        f(torch.ones(2, 2))
    assert (
        "  a group that has not run\n"
        f"    {HERE}:L: x = torch.tanh(x) * torch.sigmoid(x)\n"
        "      aten::tanh, aten::sigmoid, aten::mul"
    ) in masked(rekindle.report(f))


@pytest.mark.usefixtures("blas_is_faster")
def test_products_that_blas_computes(strategy: str) -> None:
    """The rest of their group has a kernel of its own."""
    f = rekindle.script(gate)
    with torch.no_grad():
        f(torch.randn(40, 400), torch.randn(400, 40))
    assert masked(rekindle.report(f)) == (
        "gate: the strategy is 'native', with 1 version\n"
        "1 kernel: N, in T ms\n"
        "\n"
        "version 1, as a plan, made in T ms\n"
        "  for %x.1 : Tensor, %w.1 : Tensor\n"
        "  a group that no kernel was made for\n"
        f"    {HERE}:L: y = x @ w\n"
        "      aten::matmul\n"
        f"    {HERE}:L: return torch.tanh(y) * torch.sigmoid(y)\n"
        "      aten::tanh, aten::sigmoid, aten::mul\n"
        "    ran one by one 1 time: no kernel can be made for such inputs\n"
        "    no kernel: a product of matrices so large that BLAS is faster\n"
        "  kernel 1, made in T ms\n"
        "    for f32[40, 40] -> f32[40, 40]\n"
        f"    {HERE}:L: return torch.tanh(y) * torch.sigmoid(y)\n"
        "      aten::tanh, aten::sigmoid, aten::mul"
    )


def test_the_texts_of_a_kernel(strategy: str) -> None:
    f = rekindle.script(gate)
    with torch.no_grad():
        f(torch.randn(2, 3), torch.randn(3, 4))
    [kernel] = rekindle.report(f).kernels
    assert kernel.text == (
        "kernel(in0: f32, in1: f32) -> (out0: f32) with (temp0: f32)\n"
        "  store temp0[m, n] = sum of in0[m, k] * in1[k, n] for all k, along n\n"
        "  for 1 loop:\n"
        "    %0 = load temp0[1]\n"
        "    %1 : f32 = tanh(%0)\n"
        "    %2 : f32 = neg(%0)\n"
        "    %3 : f32 = exp(%2)\n"
        "    %4 : f32 = add(f32(1.0), %3)\n"
        "    %5 : f32 = div(f32(1.0), %4)\n"
        "    %6 : f32 = mul(%1, %5)\n"
        "    store out0[1] = %6\n"
    )
    assert "define" in kernel.llvm
    assert "define" in kernel.machine.optimized_llvm
    assert ".text" in kernel.assembly


def test_where_kernels_come_from(strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel of its own for these dtypes: nothing else in the process has it."""
    monkeypatch.setenv("REKINDLE_CACHE_DIR", str(tmp_path))

    def new(x):
        return torch.tanh(torch.tanh(x) * 0.8125) + 0.4375

    def equal(x):
        return torch.tanh(torch.tanh(x) * 0.8125) + 0.4375

    first, second = rekindle.script(new), rekindle.script(equal)
    first(torch.ones(3, dtype=torch.float64))
    second(torch.ones(4, dtype=torch.float64))
    assert rekindle.report(first).origins == {"compiled": 1, "disk": 0, "memory": 0}
    assert rekindle.report(second).origins == {"compiled": 0, "disk": 0, "memory": 1}
    assert len(list(tmp_path.rglob("*"))) > 0


def test_what_is_in_no_kernel_and_why(strategy: str) -> None:
    f = rekindle.script(running_total)
    with torch.no_grad():
        f(torch.randn(3))
    assert masked(rekindle.report(f)) == (
        "running_total: the strategy is 'native', with 1 version\n"
        "\n"
        "version 1, as a plan, made in T ms\n"
        "  for %x.1 : Tensor\n"
        "  in no kernel\n"
        "    kernels do not know this operator:\n"
        f"      {HERE}:L: return torch.cat((torch.logcumsumexp(x, 0), x))\n"
        "        aten::logcumsumexp\n"
        "    no operator beside it fuses with it:\n"
        f"      {HERE}:L: return torch.cat((torch.logcumsumexp(x, 0), x))\n"
        "        aten::cat"
    )


def test_calls_that_a_group_ran_operator_by_operator(strategy: str) -> None:
    def f(x, y):
        return torch.tanh(x) * y

    f = rekindle.script(f)
    with torch.no_grad():
        f(torch.ones(3), torch.ones(3))
        f(torch.ones(3, dtype=torch.complex64), torch.ones(3))
        with pytest.raises(RuntimeError, match="must match the size"):
            f(torch.ones(2), torch.ones(3))
    groups = [group for part in rekindle.report(f).parts for group in part.groups]
    assert [len(group.kernels) for group in groups] == [1]
    assert [group.fallbacks for group in groups] == [{"no kernel can be made for such inputs": 2}]
    assert "    ran one by one 2 times: no kernel can be made for such inputs" in str(rekindle.report(f))


def test_loops_over_numbers(strategy: str) -> None:
    f = rekindle.script(collatz)
    assert f(27) == 111
    assert masked(rekindle.report(f)) == (
        "collatz: the strategy is 'native', with 1 version\n"
        "1 native region: N, in T ms\n"
        "\n"
        "version 1, as a plan, made in T ms\n"
        "  for %n.1 : int\n"
        "  native region, machine code, made in T ms\n"
        f"    {HERE}:L: while n != 1:\n"
        "      aten::ne × 2, prim::Loop\n"
        f"    {HERE}:L: n = n // 2 if n % 2 == 0 else 3 * n + 1\n"
        "      aten::remainder, aten::eq, prim::If, aten::floordiv, aten::mul, aten::add\n"
        f"    {HERE}:L: steps += 1\n"
        "      aten::add"
    )
    [region] = rekindle.report(f).regions
    assert region.machine is not None
    assert ".text" in region.machine.assembly


def test_graphs_with_a_backward_of_their_own(strategy: str) -> None:
    f = rekindle.script(gate)
    for _ in range(2):  # the second call knows the sizes
        f(torch.randn(2, 3), torch.randn(3, 4, requires_grad=True)).sum().backward()
    report = rekindle.report(f)
    [version] = report.versions
    [differentiable] = version.differentiable
    kinds = ["aten::matmul", "aten::tanh", "aten::sigmoid", "aten::mul"]
    assert [operator.kind for operator in differentiable.operators] == kinds
    assert [part.title for part in differentiable.parts] == [
        "forward, gradients by 1 of 2 inputs, any sizes",
        "backward, gradients by 1 of 2 inputs, any sizes",
        "forward, gradients by 1 of 2 inputs, sizes that were met",
        "backward, gradients by 1 of 2 inputs, sizes that were met",
    ]
    assert report.parts == (version, *differentiable.parts)
    assert {each.reason for each in differentiable.parts[0].unfused} == {
        "this graph runs once for new sizes, before there is one for these sizes",
        "BLAS or oneDNN runs it",
    }
    assert len(differentiable.parts[2].groups[0].kernels) == 1


@pytest.mark.parametrize("strategy", ["simple"], indirect=True)
def test_a_strategy_without_kernels(strategy: str) -> None:
    f = rekindle.script(gate)
    f(torch.randn(2, 3), torch.randn(3, 4))
    report = rekindle.report(f)
    assert (report.strategy, report.kernels) == ("simple", ())
    assert {each.reason for each in report.unfused} == {"the strategy of execution makes no kernels"}


@pytest.mark.parametrize("strategy", ["profiling"], indirect=True)
def test_guards_and_bailouts(strategy: str) -> None:
    def f(x):
        y = x.relu()
        if y.size(0) == 3:
            y = y + 1
        return y

    f = rekindle.script(f)
    for size in (3, 3, 4, 4):
        f(torch.ones(size))
    report = rekindle.report(f)
    assert report.strategy == "profiling"
    assert report.profile is not None
    assert report.profile.guards == sum(len(version.guards) for version in report.versions) > 0
    assert report.profile.entry_failures == 1
    assert report.versions[-1].guards[0].taken == 1
    assert "    %x.1 is Float(3, device=cpu): failed 1 time\n" in str(report)


def test_a_function_that_was_not_called(strategy: str) -> None:
    report = rekindle.report(rekindle.script(gate))
    assert str(report) == "gate: the strategy is 'native', and no call has optimized it yet"
    assert report.versions == ()


def test_modules_and_methods(strategy: str) -> None:
    module = rekindle.trace(torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.GELU(), torch.nn.Tanh()), torch.ones(3))
    with torch.no_grad():
        module(torch.ones(3))
    assert rekindle.report(module).name == "forward"
    assert rekindle.report(module) == rekindle.report(module.forward)
    assert [operator.kind for operator in rekindle.report(module).kernels[0].operators] == [
        "aten::linear",
        "aten::gelu",
        "aten::tanh",
    ]


def test_as_json(strategy: str) -> None:
    f = rekindle.script(gate)
    with torch.no_grad():
        f(torch.randn(2, 3), torch.randn(3, 4))
    told = json.loads(json.dumps(rekindle.report(f).to_dict()))
    kernel = told["versions"][0]["groups"][0]["kernels"][0]
    assert kernel["text"] == rekindle.report(f).kernels[0].text
    assert sorted(kernel["machine"]) == ["origin", "seconds", "target"]
    assert told["versions"][0]["graph"].startswith("graph(%x.1 : Tensor,\n")


def test_what_is_not_compiled(strategy: str) -> None:
    with pytest.raises(TypeError) as caught:
        rekindle.report(len)
    assert str(caught.value) == (
        "rekindle.report takes a function, a method or a module that rekindle has compiled, but got <built-in function "
        "len>: script, trace or load it, and call it first"
    )
