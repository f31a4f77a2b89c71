"""Functions that run without Python between their operators."""

from __future__ import annotations

import gc
import math
import os
import signal
import subprocess
import sys
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, List, Optional

import pytest
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import rekindle
from rekindle.codegen.fusion_executor import FusionExecutor
from rekindle.ir.subgraph_execution import consuming_callable_of
from rekindle.ir.text.parser import parse_graph
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.state import InterpreterState
from rekindle.runtime.native_plans import availability, self_test, written_plan as written
from rekindle.runtime.native_plans.native_plan import NativePlan, native_plan_of
from rekindle.runtime.native_plans.writer import PlanWriter, Unsuitable
from rekindle.runtime.native_plans.written_plan import written_plan
from rekindle.runtime.settings import SETTINGS
from rekindle.runtime.version import PythonFunction, Version, runs_as
from tests.support.equality import assert_same
from tests.support.golden import GoldenTexts

AVAILABLE = availability._library() is not None
pytestmark = pytest.mark.skipif(not AVAILABLE, reason="native plans are not written for this platform")


def version_of(function: Any) -> Version:
    """The graph of a function as it was compiled, run by a native plan."""
    version = Version.of(rekindle.script(function).inlined_graph, function.__name__)
    assert version.runs_as == "native plan"
    return version


def plan_of(version: Version) -> NativePlan:
    plan = native_plan_of(version.function)
    assert plan is not None
    return plan


class Ways:
    """A function in its three ways of running; ``left`` counts how often the interpreter took over."""

    def __init__(self, function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        version = version_of(function)
        self.native = version.function
        self.plan = PythonFunction(version.code)
        self.interpreter = lambda *arguments: InterpreterState(version.code).run(arguments)
        self.left = 0
        start_at = InterpreterState.start_at

        def counted(state: InterpreterState, *rest: Any) -> None:
            self.left += 1
            start_at(state, *rest)

        monkeypatch.setattr(InterpreterState, "start_at", counted)


Run = Callable[[Any], Ways]


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Run:
    return lambda function: Ways(function, monkeypatch)


# ------------------------------------------------------------------------------------------------------------- results


def layer(x: Tensor, weight: Tensor, bias: Optional[Tensor], times: int) -> Tensor:
    y = torch.nn.functional.linear(x, weight, bias)
    for i in range(times):
        y = torch.relu(y) * (i + 0.5)
    parts = torch.cat([y, y.t()], 1).view(y.size(0), -1)
    return parts.softmax(-1)


def several(x: Tensor, n: int):
    values, indices = x.max(0)
    first, second = x.chunk(2, 1)
    return values, indices, [first, second], (n // 2, n % 3, n > 2, x.dim(), x.numel())


def test_what_instructions_become(golden: GoldenTexts) -> None:
    golden("runtime/native_plan_layer", str(plan_of(version_of(layer))))
    golden("runtime/native_plan_several", str(plan_of(version_of(several))))


@pytest.mark.parametrize("bias", [None, torch.tensor([1.0, -2.0, 3.0])])
def test_results_are_those_of_eager(bias: Tensor | None, ways: Run) -> None:
    run = ways(layer)
    x, weight = torch.linspace(-1, 1, 9).reshape(3, 3), torch.linspace(2, -1, 9).reshape(3, 3)
    torch.testing.assert_close(run.native(x, weight, bias, 3), layer(x, weight, bias, 3))
    assert run.left == 0


def test_several_results(ways: Run) -> None:
    run, x = ways(several), torch.arange(8.0).reshape(2, 4)
    torch.testing.assert_close(run.native(x, 7), several(x, 7))
    assert run.left == 0


def around(x: Tensor, y: Tensor, n: int, share: float):
    """Two kernels among operators of PyTorch, and an output of each that is used twice."""
    a = torch.flip(x, [0])
    b = torch.tanh(a) * n
    c = torch.kron(b, y)
    d = c * share + 1.0
    return torch.flip(d, [0]), b, d


def test_kernels_are_launched_without_python(monkeypatch: pytest.MonkeyPatch) -> None:
    f = rekindle.script(around)
    groups = []
    call = FusionExecutor.__call__
    monkeypatch.setattr(FusionExecutor, "__call__", lambda self, *inputs: groups.append(self) or call(self, *inputs))
    x, y = torch.randn(3, 4), torch.randn(2, 2)
    with torch.no_grad():
        for _ in range(4):
            assert_same(f(x, y, 2, 0.5), around(x, y, 2, 0.5))
        assert {each.runs_as for each in rekindle.report(f).parts} == {"native plan"}
        known = len(groups)
        assert known > 0
        for values in ((x, y, 3, 0.25), (x.double(), y, 2, 0.5), (torch.randn(5, 1), y[:1], 2, 0.5)):
            for _ in range(3):
                assert_same(f(*values), around(*values))
        assert len(groups) > known  # the other dtype had no kernel
        known = len(groups)
        for _ in range(3):
            f(x, y, 2, 0.5)
            f(x.double(), y, 2, 0.5)
            f(torch.randn(5, 1), y[:1], 2, 0.5)
        assert len(groups) == known


def test_what_kernels_refuse_is_run_by_python() -> None:
    f = rekindle.script(around)
    y = torch.ones(2, 2)
    with torch.no_grad():
        for _ in range(4):
            f(torch.ones(3, 4), y, 2, 0.5)
        for x in (torch.ones(3, 4, dtype=torch.complex64).conj(), torch.ones(2, 2)._neg_view(), torch.ones(0, 3)):
            assert_same(f(x, y, 2, 0.5), around(x, y, 2, 0.5))
    weight = torch.ones(3, 4, requires_grad=True)
    result = f(weight, y, 2, 0.5)[0]
    expected = around(weight, y, 2, 0.5)[0]
    assert_same(torch.autograd.grad(result.sum(), weight), torch.autograd.grad(expected.sum(), weight))


def test_gradients_flow_through_what_eager_records(ways: Run) -> None:
    run = ways(layer)
    x, weight = torch.rand(3, 3, requires_grad=True), nn.Parameter(torch.rand(3, 3))
    found = torch.autograd.grad(run.native(x, weight, None, 2).square().sum(), (x, weight))
    torch.testing.assert_close(found, torch.autograd.grad(layer(x, weight, None, 2).square().sum(), (x, weight)))


PRODUCTS: dict[str, Callable[[Tensor, int], Tensor]] = {
    "x * 0.5": lambda x, n: x * 0.5,
    "x / 3": lambda x, n: x / 3,
    "x.mul_(2)": lambda x, n: x.mul_(2),
    "x.div_(True)": lambda x, n: x.div_(True),
    "torch.div(x, 2.0, rounding_mode=None)": lambda x, n: torch.div(x, 2.0, rounding_mode=None),
    "x * n": lambda x, n: x * n,
    "x / n": lambda x, n: x / n,
}


@pytest.mark.parametrize("expression", PRODUCTS)
def test_autograd_saves_what_it_saves_in_eager(expression: str) -> None:
    """A second backward pass through a product fails, though it would not need the number again."""
    text = f"def f(x: Tensor, n: int):\n  x = x.relu().clone()\n  return {expression}\n"
    version = Version.of(rekindle.CompilationUnit(text).f.graph, "f")
    assert version.runs_as == "native plan"
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        x = torch.linspace(1, 4, 4, dtype=dtype, requires_grad=True)
        found, expected = version.function(x, 3), PRODUCTS[expression](x.relu().clone(), 3)
        assert found.dtype == expected.dtype
        assert torch.equal(found, expected)
        assert type(found.grad_fn) is type(expected.grad_fn)
        torch.autograd.grad(found.sum(), x)
        with pytest.raises(RuntimeError, match="second time"):
            torch.autograd.grad(found.sum(), x)


def test_sums_have_the_gradients_of_eager() -> None:
    text = "def f(x: Tensor):\n  return x + 1, x - 2.5, torch.sub(x, 2, alpha=3), x.clone().add_(1)\n"
    version = Version.of(rekindle.CompilationUnit(text).f.graph, "f")
    assert version.runs_as == "native plan"
    x = torch.linspace(1, 4, 4, requires_grad=True)
    expected = x + 1, x - 2.5, torch.sub(x, 2, alpha=3), x.clone().add_(1)
    for one, other in zip(version.function(x), expected, strict=True):
        assert torch.equal(one, other)
        assert type(one.grad_fn) is type(other.grad_fn)


def test_numbers_and_dtypes() -> None:
    """Numbers do not take part in the promotion of dtypes as Tensors do."""
    text = "def f(x: Tensor):\n  return x * 2, x * 2.0, x * True, x / 2, x.abs() * -0.0, x + 1.5, x - 1\n"
    version = Version.of(rekindle.CompilationUnit(text).f.graph, "f")
    assert version.runs_as == "native plan"
    for dtype in (torch.float16, torch.float32, torch.int8, torch.int64, torch.complex64):
        x = torch.arange(3).to(dtype)
        expected = x * 2, x * 2.0, x * True, x / 2, x.abs() * -0.0, x + 1.5, x - 1
        for one, other in zip(version.function(x), expected, strict=True):
            assert one.dtype == other.dtype
            assert repr(one) == repr(other)


def test_an_argument_that_is_returned_is_the_same_object() -> None:
    def written(x: Tensor, p: Tensor):
        x.add_(1)
        return x, p, x.mul_(2)

    x, p = torch.ones(2), nn.Parameter(torch.ones(2))
    first, second, third = version_of(written).function(x, p)
    assert first is x
    assert second is p
    assert third is x
    assert x.tolist() == [4, 4]


# ---------------------------------------------------------------------------------------------- what others have to run


class Loud(torch.Tensor):
    """A Tensor that others may override."""


def doubled(x: Tensor) -> Tensor:
    return torch.relu(x) * 2


def test_a_subclass_is_run_by_python(ways: Run) -> None:
    run = ways(doubled)
    assert type(run.native(torch.ones(2).as_subclass(Loud))) is Loud


def test_modes_see_each_operator(ways: Run) -> None:
    class Functions(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, arguments: Any = (), names: Any = None) -> Any:
            seen.append(function.__name__)
            return function(*arguments, **(names or {}))

    class Operators(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), names: Any = None) -> Any:
            seen.append(function.__name__)
            return function(*arguments, **(names or {}))

    run, seen, x = ways(doubled), list[str](), torch.ones(2)
    with Functions():
        run.native(x)
    with Operators():
        run.native(x)
    assert seen == ["relu", "mul", "relu.default", "mul.Tensor"]


def test_autocast_and_transforms_hold(ways: Run) -> None:
    run, x = ways(layer), torch.rand(3, 3)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(run.native(x, x, None, 1), layer(x, x, None, 1))
    batch = torch.rand(4, 3)
    torch.testing.assert_close(torch.func.vmap(ways(doubled).native)(batch), doubled(batch))


def product(x: Tensor, n: int):
    n = n * n
    return x + 1, n * n, n - 1


def test_ints_of_more_than_64_bits(ways: Run) -> None:
    run = ways(product)
    assert run.native(torch.ones(1), 2**20)[1:] == (2**80, 2**40 - 1)
    assert run.left == 1
    assert run.native(torch.ones(1), 2**70)[1:] == (2**280, 2**140 - 1)  # Python runs it from the start


class Holder(nn.Module):
    def __init__(self, weight: Any) -> None:
        super().__init__()
        self.weight = weight
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        y = x + 1
        return y * self.weight


def test_a_subclass_in_an_attribute(ways: Run) -> None:
    """It is met in the middle of a call, when part of the program has run."""
    model = Holder(nn.Parameter(torch.ones(2)))
    compiled = rekindle.script(model)
    run = Version.of(compiled.forward.graph, "forward")
    assert run.runs_as == "native plan"
    model.weight = nn.Parameter(torch.ones(2).as_subclass(Loud))
    for _ in range(2):
        assert type(run.function(model, torch.ones(2))) is Loud
    assert model.calls == 2


def test_lists_that_are_too_long_for_a_frame(ways: Run) -> None:
    def joined(xs: List[Tensor], sizes: List[int]) -> Tensor:
        return torch.cat(xs).view(sizes)

    run = ways(joined)
    for count in (1, 64, 65, 200):
        xs = [torch.full((1,), float(number)) for number in range(count)]
        assert torch.equal(run.native(xs, [count, 1]), torch.cat(xs).view(count, 1))
    assert run.left == 2


def two_backwards(g: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, wanted: bool):
    mask = [wanted, False, False]
    first, _, _ = torch.ops.aten.native_layer_norm_backward(g, x, [x.size(1)], mean, rstd, None, None, mask)
    second, _, _ = torch.ops.aten.native_layer_norm_backward(first, x, [x.size(1)], mean, rstd, None, None, mask)
    return torch.neg(torch.abs(first)), torch.neg(torch.abs(second))


def test_all_lists_that_must_be_python_lists_are_found_in_one_pass(monkeypatch: pytest.MonkeyPatch, ways: Run) -> None:
    made: list[PlanWriter] = []
    monkeypatch.setattr(written, "PlanWriter", lambda *parts: made.append(PlanWriter(*parts)) or made[-1])
    run = ways(two_backwards)
    first, last = made
    assert len(first.layout.arrays) - len(last.layout.arrays) == 2
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    _, mean, rstd = torch.native_layer_norm(x, [4], None, None, 1e-5)
    arguments = torch.randn(3, 4), x, mean, rstd, True
    assert_same(run.native(*arguments), run.interpreter(*arguments))
    assert_same(run.native(*arguments), two_backwards(*arguments))
    assert run.left == 0


def shapes(x: Tensor, y: Tensor, i: int):
    sizes = x.size()
    if x.shape != y.shape:
        raise ValueError("different")
    a, b = x.size()
    root = math.sqrt(float(a * b)) - -a
    return x.relu().view(sizes[i], -1), len(sizes), a - b, -b, root, x.dtype == y.dtype


@pytest.mark.parametrize(
    ("x", "y", "index"),
    [
        ((2, 3), (2, 3), 0),
        ((2, 3), (2, 3), -1),
        ((2, 3), (2, 3), 2),
        ((2, 3), (2, 3), -3),
        ((2, 3), (3, 2), 0),
        ((2, 3), (2,), 0),
        ((2, 3, 4), (2, 3, 4), 0),
        ((4,), (4,), 0),
    ],
)
def test_sizes_are_arrays(x: tuple[int, ...], y: tuple[int, ...], index: int, ways: Run) -> None:
    run, arguments = ways(shapes), (torch.ones(x), torch.ones(y), index)
    handlers = {handler for _, handler in plan_of(version_of(shapes)).handlers}
    assert {"sizes", "array_item", "arrays_equal", "array_length", "check_array_length"} <= handlers
    assert outcome(run.native, *arguments) == outcome(run.interpreter, *arguments)


def pieces(x: Tensor, n: int, i: int):
    rows = x.unbind(0)
    parts = x.split(n, 1)
    a, b = parts[0], parts[i]
    return rows[i] * rows[-1], torch.cat(parts, 1) + a.sum() + b.mean(), len(rows), torch.stack(rows).relu()


@pytest.mark.parametrize(
    ("rows", "size", "index"), [(3, 2, 1), (3, 2, -1), (3, 2, 7), (1, 4, 0), (65, 1, 2), (64, 3, 1)]
)
def test_pieces_are_arrays(rows: int, size: int, index: int, ways: Run) -> None:
    run = ways(pieces)
    handlers = {handler for _, handler in plan_of(version_of(pieces)).handlers}
    assert {"tensors_of_vector", "tensor_array_item", "array_length"} <= handlers
    x = torch.arange(rows * 4.0).reshape(rows, 4)
    assert outcome(run.native, x, size, index) == outcome(run.interpreter, x, size, index)


def test_unpacked_pieces(ways: Run) -> None:
    def halves(x: Tensor) -> Tensor:
        a, b = x.chunk(2, 1)
        c, d, e = x.unbind(0)
        return a * b + c[0] * d[1] - e.sum()

    run, x = ways(halves), torch.rand(3, 6)
    assert torch.equal(run.native(x), halves(x))
    assert outcome(run.native, x[:2]) == outcome(run.interpreter, x[:2])


def outcome(way: Callable[..., Any], *arguments: Any) -> str:
    """What a call returns, or raises."""
    try:
        return repr(way(*arguments))
    except (ValueError, IndexError, RuntimeError) as error:
        return repr(error)


# -------------------------------------------------------------------------------------------------------------- errors


def divides(x: Tensor, n: int) -> Tensor:
    y = x + 1
    return y * (12 // n)


def mismatched(x: Tensor, n: int) -> Tensor:
    y = x.view(n, -1)
    return y @ y


def unpacked(x: Tensor, n: int) -> Tensor:
    a, b = x.chunk(n)
    return a * b


def outside(x: Tensor, n: int) -> Tensor:
    return x.select(0, n) + x.size(n)


def of_python(x: Tensor, n: int) -> Tensor:
    y = x * 2
    assert n > 5, f"not {n}"
    return y


def error_of(function: Callable[..., Any], *arguments: Any) -> Exception:
    """What a call raises."""
    try:
        result = function(*arguments)
    except Exception as error:
        return error
    pytest.fail(f"nothing was raised, but {result} returned")


@pytest.mark.parametrize(
    ("function", "number"),
    [(divides, 0), (mismatched, 3), (mismatched, 4), (unpacked, 3), (unpacked, 1), (outside, 7), (of_python, 2)],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_errors_are_the_same_in_all_ways(function: Any, number: int, ways: Run) -> None:
    run = ways(function)
    compiled = rekindle.script(function)
    found = []
    for strategy in (run.native, run.plan, run.interpreter, compiled):
        error = error_of(strategy, torch.arange(6.0), number)
        found.append((type(error), str(error)))
    assert len(set(found)) == 1, found
    lines = []
    for native in (True, False):
        SETTINGS.native_plans = native
        error = error_of(rekindle.script(function), torch.arange(6.0), number)
        lines.append([(each.name, each.line) for each in traceback.extract_tb(error.__traceback__)[-1:]])
    assert lines[0] == lines[1]


@pytest.fixture(autouse=True)
def _native_plans() -> Iterator[None]:
    before = SETTINGS.native_plans
    yield
    SETTINGS.native_plans = before


def test_nothing_is_kept_after_an_error(ways: Run) -> None:
    run, x = ways(mismatched), torch.arange(6.0)
    with pytest.raises(RuntimeError):
        run.native(x, 3)
    count = sys.getrefcount(x)
    for _ in range(100):
        with pytest.raises(RuntimeError):
            run.native(x, 3)
    assert sys.getrefcount(x) == count


def test_warnings_of_operators(ways: Run) -> None:
    def one(x: Tensor) -> Tensor:
        return torch.var(x) + 1

    run = ways(one)
    with pytest.warns(UserWarning, match="degrees of freedom"):
        run.native(torch.ones(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="degrees of freedom"):
            run.native(torch.ones(1))


@pytest.mark.parametrize(("number", "by_python"), [(6, 0), (1000, 1), (-1, 1), (255, 1)])
def test_numbers_that_name_no_dtype_are_left_to_python(number: int, by_python: int) -> None:
    """A C++ function would take the last byte of each for a dtype."""
    text = f"def f(x: Tensor):\n  return torch.ops.aten.to(x.relu().sin(), {number}, False, False)\n"
    version = Version.of(rekindle.CompilationUnit(text).f.graph, "f")
    assert [handler for _, handler in plan_of(version).handlers].count("call_python") == by_python


# -------------------------------------------------------------------------------------------------- memory and threads


def test_what_no_path_defines_is_none() -> None:
    """Transforms may ask whether a value that no path defines is None; in plans of Python it is."""
    text = """graph(%x : Tensor):
  %none : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %u : Tensor? = prim::Uninitialized()
  %is : bool = aten::__is__(%u, %none)
  %y : Tensor = prim::If(%is)
    block0():
      %a : Tensor = aten::add(%x, %one, %one)
      -> (%a)
    block1():
      %v : Tensor = prim::unchecked_cast(%u)
      %b : Tensor = aten::neg(%v)
      -> (%b)
  return (%y)
"""
    version = Version.of(parse_graph(text), "undefined")
    assert version.runs_as == "native plan"
    assert version.function(torch.zeros(1)).item() == 1.0


def test_a_value_dies_after_its_last_use(ways: Run) -> None:
    @torch.jit.ignore
    def note(x: Tensor) -> Tensor:
        gc.collect()
        alive.append([reference() is not None for reference in references])
        references.append(weakref.ref(x))
        return x + 1

    def steps(x: Tensor) -> Tensor:
        y = note(x * 2)
        z = note(y * 2)
        return note(z * 2)

    references, alive = list[Any](), list[list[bool]]()
    ways(steps).native(torch.ones(2))
    assert alive == [[], [False], [False, False]]


@pytest.mark.parametrize("is_native", [True, False])
def test_arguments_from_a_list_die_after_their_last_use(is_native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    @torch.jit.ignore
    def note(x: Tensor) -> Tensor:
        alive.append([reference() is not None for reference in references])
        return x + 1

    def steps(x: Tensor, y: Tensor, n: int) -> Tensor:
        return note(note(note(x * n) * y) * y)

    monkeypatch.setattr(SETTINGS, "native_plans", is_native)
    run = consuming_callable_of(rekindle.script(steps).inlined_graph, "steps")
    assert runs_as(run) == ("native plan" if is_native else "plan")
    alive = list[list[bool]]()
    given: list[Any] = [torch.ones(2), torch.full((2,), 3.0), 2]
    references = [weakref.ref(each) for each in given[:2]]
    result = run(given)
    assert given == []
    assert alive == [[False, True], [False, True], [False, False]]
    torch.testing.assert_close(result, torch.full((2,), 31.0))


def test_arguments_from_a_list_that_a_plan_does_not_take() -> None:
    """The list is not emptied before that is known."""

    class Own(Tensor):
        pass

    run = consuming_callable_of(rekindle.script(lambda x, n: x * n + 1).inlined_graph, "f")
    assert runs_as(run) == "native plan"
    torch.testing.assert_close(run([torch.ones(2).as_subclass(Own), 2]).as_subclass(Tensor), torch.full((2,), 3.0))
    with pytest.raises(TypeError):
        run([torch.ones(2)])
    with pytest.raises(SystemError):
        run((torch.ones(2), 2))  # type: ignore[arg-type]


def test_a_plan_may_call_itself_by_way_of_python() -> None:
    """As often as Python allows: frames are not all on the stack of the thread."""
    lines = "\n".join("  x = torch.cat(xs, 0).sum() + x" for _ in range(100))
    head = "def f(x: Tensor, n: int):\n  xs = [x]\n  xs.append(x)\n"
    text = f"{head}{lines}\n  return torch.ops.rekindle_test.again(x, n)\n"
    library = torch.library.Library("rekindle_test", "FRAGMENT")
    library.define("again(Tensor x, int n) -> Tensor")
    library.impl("again", lambda x, n: version.function(x, n - 1) if n else x.clone(), "CompositeExplicitAutograd")
    version = Version.of(rekindle.CompilationUnit(text).f.graph, "f")
    assert version.runs_as == "native plan"
    assert version.function(torch.zeros(1), 150).tolist() == [0]


class Constant(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.c = torch.ones(2)

    def forward(self, x: Tensor, flag: bool) -> Tensor:
        y = x
        if flag:
            y = self.c
        z = y.cos()
        return y.sin() + x.exp() + z


def test_a_constant_of_a_subclass(ways: Run) -> None:
    """It joins a register of Tensors, whose class is not checked again."""
    graph = rekindle.freeze(rekindle.script(Constant()).eval()).forward.graph.copy()
    for node in graph.all_nodes():
        if node.kind == "prim::Constant" and isinstance(node.output.to_python(), Tensor):
            node.set_attribute("value", torch.ones(2).as_subclass(Loud))
    version = Version.of(graph, "forward")
    arguments = [None] * (len(graph.inputs) - 2) + [torch.zeros(2), True]
    assert type(version.function(*arguments)) is Loud
    assert type(InterpreterState(version.code).run(arguments)) is Loud


def test_a_number_is_itself(ways: Run) -> None:
    def same(x: Tensor, n: int, r: float) -> tuple[Tensor, bool, bool, bool]:
        m, s = n + 1000, r * 2
        return x.relu().sin(), m is m, s is not s, n is n

    assert ways(same).native(torch.ones(1), 1000, 0.5)[1:] == (True, False, True)


def test_plans_die_with_their_functions() -> None:
    version = version_of(layer)
    held = weakref.ref(plan_of(version)), weakref.ref(version.code)
    del version
    gc.collect()
    assert [reference() for reference in held] == [None, None]


def many(x: Tensor, n: int) -> Tensor:
    for _ in range(n):
        x = torch.relu(x)
    return x


def test_other_threads_run_during_a_loop(ways: Run) -> None:
    run, woken, done = ways(many), 0, threading.Event()

    def work() -> None:
        nonlocal woken
        while not done.is_set():
            woken += 1
            done.wait(1e-4)

    thread = threading.Thread(target=work)
    thread.start()
    run.native(torch.ones(2), 100_000)
    done.set()
    thread.join()
    assert woken > 10


def test_threads_share_a_plan(ways: Run) -> None:
    run, wrong = ways(layer), list[str]()

    def work(seed: int) -> None:
        x = torch.rand(3, 3, generator=torch.Generator().manual_seed(seed))
        expected = layer(x, x, None, 3)
        for _ in range(200):
            if not torch.equal(run.native(x, x, None, 3), expected):
                wrong.append(f"seed {seed}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupt_ends_a_loop(ways: Run) -> None:
    run = ways(many)
    # A shell lets what it starts in the background ignore this signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer = threading.Timer(1.0, signal.raise_signal, (signal.SIGINT,))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            run.native(torch.ones(2), 1 << 40)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_frame_that_is_too_large_for_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    code = Code(rekindle.script(doubled).graph, "doubled")
    assert written_plan(code, 16).pays
    monkeypatch.setattr(written, "_MAX_WORDS", 8)
    with pytest.raises(Unsuitable):
        written_plan(code, 16)


# -------------------------------------------------------------------------------------------------------- availability


def test_the_self_test_passes_every_type() -> None:
    code = Code(parse_graph(self_test.PROGRAM), "self test")
    library = availability._library()
    assert library is not None
    function = availability.compiled_plan(code, library, self_test._refused)
    plan = native_plan_of(function)
    assert plan is not None
    by_python = [code.instructions[index].name for index, handler in plan.handlers if handler == "call_python"]
    assert by_python == []
    assert self_test.passes_self_test(library)


def test_a_failed_self_test_turns_native_plans_off(monkeypatch: pytest.MonkeyPatch) -> None:
    library = availability._library()
    assert library is not None
    monkeypatch.setenv("REKINDLE_CACHE", "0")
    monkeypatch.setattr(self_test, "_is_same", lambda one, other: False)
    assert not self_test.passes_self_test(library)


def test_other_releases_of_pytorch_do_without(monkeypatch: pytest.MonkeyPatch) -> None:
    library = availability._library()
    assert library is not None
    monkeypatch.setattr(self_test, "TESTED", ("1.13.",))
    assert not self_test.passes_self_test(library)


def test_a_variable_of_the_environment_turns_them_off() -> None:
    program = """if True:
        import torch, rekindle
        f = rekindle.CompilationUnit("def f(x: Tensor): return x.relu().view(-1)").f
        f(torch.ones(2)), f(torch.ones(2))
        print([version.runs_as for version in rekindle.report(f).versions])
    """
    environment = {**os.environ, "REKINDLE_NATIVE_PLANS": "0"}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['plan']"


def test_a_function_that_throws_leaves_no_result() -> None:
    """at::istft destroys the Tensor that it has begun to return, and leaves a pointer to it."""
    program = """if True:
        import torch, rekindle
        f = rekindle.CompilationUnit(
            "def f(x: Tensor, w: Tensor): return torch.istft(x, 6, None, None, w, True, False, False, None, False)"
        ).f
        arguments = torch.randn(6, 3, dtype=torch.complex64, device="meta"), torch.ones(6, device="meta")
        for _ in range(100):
            try:
                f(*arguments)
            except NotImplementedError:
                others = [torch.randn(size) for size in range(1, 20)]
        print([version.runs_as for version in rekindle.report(f).versions])
    """
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['native plan']"


@pytest.mark.parametrize(
    "mode",
    [
        "torch.autocast('cpu')",
        "torch.device('cpu')",
        "torch.inference_mode()",
        "torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True)",
        "torch.autograd.forward_ad.dual_level()",
    ],
)
def test_the_first_call_in_a_mode(mode: str, tmp_path: Path) -> None:
    """Nothing is on disk, so that native plans are tested while the mode is on."""
    program = f"""if True:
        import torch, rekindle
        import torch.autograd.forward_ad
        f = rekindle.CompilationUnit("def f(x: Tensor): return x.relu().view(-1)").f
        with {mode}:
            f(torch.ones(2))
        f(torch.ones(2))
        print([version.runs_as for version in rekindle.report(f).versions])
    """
    environment = {**os.environ, "REKINDLE_CACHE_DIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert (ran.stdout.strip(), ran.stderr) == ("['native plan']", "")
