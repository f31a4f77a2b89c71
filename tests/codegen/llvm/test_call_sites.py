"""Kernels are called with Tensors: where a launch fits, natively; everywhere else, Python is asked."""

import gc
import threading
import weakref

import pytest
import torch
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from rekindle.codegen.llvm import call_sites
from rekindle.codegen.llvm.call_sites import CachedLaunch, Fixed, TensorCallSite
from rekindle.codegen.llvm.engine import compile_module
from rekindle.codegen.symbolic_sizes import ShapeEnv

pytestmark = pytest.mark.skipif(not call_sites.is_available(), reason="this build of torch is not known")

# Writes to each output the sum of the first elements of all inputs, times a parameter, plus a scalar.
TEXT = """
define i64 @sum(ptr %pointers, ptr %parameters, ptr %scalars) {
  %second = getelementptr ptr, ptr %pointers, i64 1
  %third = getelementptr ptr, ptr %pointers, i64 2
  %a = load ptr, ptr %pointers
  %b = load ptr, ptr %second
  %c = load ptr, ptr %third
  %x = load float, ptr %a
  %y = load float, ptr %b
  %n = load i64, ptr %parameters
  %f = sitofp i64 %n to float
  %z = fadd float %x, %y
  %w = fmul float %z, %f
  store float %w, ptr %c
  ret i64 0
}
define i64 @numbers(ptr %pointers, ptr %parameters, ptr %scalars) {
  %float_at = getelementptr i64, ptr %scalars, i64 1
  %bool_at = getelementptr i64, ptr %scalars, i64 2
  %int = load i64, ptr %scalars
  %float = load double, ptr %float_at
  %bool = load i64, ptr %bool_at
  %second = getelementptr ptr, ptr %pointers, i64 1
  %a = load ptr, ptr %pointers
  %b = load ptr, ptr %second
  store i64 %int, ptr %a
  %next = getelementptr i64, ptr %a, i64 1
  store i64 %bool, ptr %next
  store double %float, ptr %b
  ret i64 0
}
define i64 @nothing(ptr %pointers, ptr %parameters, ptr %scalars) {
  ret i64 0
}
"""
ONE = (torch.float32, (1,), (1,))


@pytest.fixture(scope="module")
def code():
    return compile_module(TEXT)


@pytest.fixture
def add(code):
    """Adds two Tensors of one element natively; says ``python`` where it cannot."""
    calls = TensorCallSite(["tensor", "tensor"], lambda *arguments: "python")
    calls.add(CachedLaunch(code.address("sum"), [ONE, ONE], [ONE], (1,), code))
    return calls.function


def tensor(value):
    return torch.tensor([value])


def test_a_launch_that_fits(add):
    result = add(tensor(1.0), tensor(2.0))
    assert type(result) is torch.Tensor
    assert torch.equal(result, tensor(3.0))
    assert not result.requires_grad
    assert result.is_leaf


def test_parameters_are_tensors(add):
    frozen = torch.nn.Parameter(tensor(1.0), requires_grad=False)
    assert torch.equal(add(frozen, tensor(2.0)), tensor(3.0))


def test_a_view_begins_where_it_begins(add):
    numbers = torch.arange(10.0)
    assert torch.equal(add(numbers[3:4], numbers[7:8]), tensor(10.0))


class Subclass(torch.Tensor):
    pass


@pytest.mark.parametrize(
    "other",
    [
        torch.tensor([1.0], dtype=torch.float64),
        torch.tensor([1]),
        torch.tensor(1.0),
        torch.tensor([1.0, 2.0]),
        torch.empty(0),
        torch.tensor([[1.0]]),
        torch.tensor([1.0]).as_subclass(Subclass),
        torch.tensor([1.0], device="meta"),
        torch.tensor([1.0], requires_grad=True),
        torch.nn.Parameter(torch.tensor([1.0])),
        torch.tensor([1.0]).to_sparse(),
        torch.tensor([1j]).conj().imag,
        1.0,
        None,
        [1.0],
    ],
    ids=str,
)
def test_a_launch_that_does_not_fit(add, other):
    assert add(tensor(1.0), other) == "python"
    assert add(other, tensor(1.0)) == "python"


def test_strides_have_to_fit(code):
    calls = TensorCallSite(["tensor", "tensor"], lambda *arguments: "python")
    layout = (torch.float32, (2, 3), (3, 1))
    calls.add(CachedLaunch(code.address("sum"), [layout, layout], [ONE], (1,), code))
    straight, crooked = torch.ones(2, 3), torch.ones(3, 2).t()
    assert torch.equal(calls.function(straight, straight), tensor(2.0))
    assert calls.function(straight, crooked) == "python"


def test_no_derivative_is_lost(add):
    wanted = torch.nn.Parameter(tensor(1.0))
    assert add(wanted, tensor(2.0)) == "python"
    with torch.no_grad():
        assert torch.equal(add(wanted, tensor(2.0)), tensor(3.0))
    assert torch.equal(add(wanted.detach(), tensor(2.0)), tensor(3.0))
    assert add(wanted * 2, tensor(2.0)) == "python"


def test_no_forward_derivative_is_lost(add):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(tensor(1.0), tensor(1.0))
        assert add(dual, tensor(2.0)) == "python"
        with torch.no_grad():
            assert add(dual, tensor(2.0)) == "python"


def test_inference_mode(add):
    with torch.inference_mode():
        made = tensor(1.0)
        result = add(made, tensor(2.0))
        assert torch.equal(result, tensor(3.0))
        assert result.is_inference()
    assert not add(tensor(1.0), made.clone()).is_inference()


class Watching(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        return function(*arguments, **(keywords or {}))


class Listening(TorchFunctionMode):
    def __torch_function__(self, function, types, arguments=(), keywords=None):
        return function(*arguments, **(keywords or {}))


@pytest.mark.parametrize(
    "mode", [Watching, Listening, lambda: torch.autocast("cpu")], ids=["dispatch", "function", "autocast"]
)
def test_nothing_is_hidden_from_modes(add, mode):
    with mode():
        assert add(tensor(1.0), tensor(2.0)) == "python"
    assert add(tensor(1.0), tensor(2.0)) != "python"


@pytest.mark.parametrize("transform", [torch.vmap, torch.func.grad, lambda f: lambda x: torch.func.jvp(f, (x,), (x,))])
def test_nothing_is_hidden_from_transforms(add, transform):
    answers = []

    def f(x):
        answers.append(add(tensor(1.0), tensor(2.0)))
        answers.append(add(x, tensor(2.0)))
        return x.sum()

    transform(f)(torch.ones(1))
    assert answers == ["python", "python"]


# -------------------------------------------------------------------------------------------------------------- numbers


@pytest.fixture
def take(code):
    calls = TensorCallSite(["scalar", "scalar", "scalar"], lambda *arguments: "python")
    outputs = [(torch.int64, (2,), (1,)), (torch.float64, (), ())]
    calls.add(CachedLaunch(code.address("numbers"), [int, float, bool], outputs, keep=code))
    return calls.function


@pytest.mark.parametrize("number", [0, -1, 2**63 - 1, -(2**63)])
def test_numbers_come_as_they_are(take, number):
    ints, floating = take(number, -2.5, True)
    assert (ints.tolist(), floating.item()) == ([number, 1], -2.5)


@pytest.mark.parametrize(
    "arguments", [(2**63, 1.0, True), (True, 1.0, True), (1, 1, True), (1, 1.0, 1), (1.0, 1.0, True), ("1", 1.0, True)]
)
def test_numbers_of_another_class(take, arguments):
    assert take(*arguments) == "python"


# ------------------------------------------------------------------------------------------------------------- launches


def test_python_prepares_what_fits_the_next_time(code):
    asked = []

    def prepare(x, y):
        asked.append(x.shape)
        layout = (x.dtype, tuple(x.shape), x.stride())
        calls.add(CachedLaunch(code.address("sum"), [layout, layout], [ONE], (len(asked),), code))
        return calls.function(x, y)

    calls = TensorCallSite(["tensor", "tensor"], prepare)
    for size in (1, 2, 3, 2, 1):
        x = torch.ones(size)
        assert torch.equal(calls.function(x, x), tensor(2.0 * size))
    assert asked == [(1,), (2,), (3,)]


def test_the_oldest_launches_are_forgotten(code):
    calls = TensorCallSite(["tensor", "tensor"], lambda *arguments: "python")
    for size in range(1, call_sites.MAX_LAUNCHES + 3):
        layout = (torch.float32, (size,), (1,))
        calls.add(CachedLaunch(code.address("sum"), [layout, layout], [ONE], (size,), code))
    for size in range(1, call_sites.MAX_LAUNCHES + 3):
        x = torch.ones(size)
        answer = calls.function(x, x)
        assert answer == "python" if size <= 2 else torch.equal(answer, tensor(2.0 * size))


def twice_as_long(code, size):
    """A launch for two vectors of ``size`` elements: the parameter is ten times that, the result twice as long."""
    record = ShapeEnv()
    n, step, m, other_step = (record.size(each) for each in (size, 1, size, 1))
    assert n == m
    assert n > 2
    assert step == other_step == 1
    vector = (torch.float32, (size,), (1,))
    result = (torch.float32, (2 * size,), (1,))
    return CachedLaunch(
        code.address("sum"), [vector, vector], [result], (10 * size,), code, record.formula([10 * n, 2 * n, step])
    )


def test_a_formula_serves_other_sizes(code):
    calls = TensorCallSite(["tensor", "tensor"], lambda *arguments: "python")
    calls.add(twice_as_long(code, 5))
    for size in (5, 5, 7, 3, 3, 1000, 7):
        x = torch.full((size,), 0.5)
        answer = calls.function(x, x)
        assert (tuple(answer.shape), answer.stride(), answer[0].item()) == ((2 * size,), (1,), 10.0 * size)
    assert calls.function(torch.ones(2), torch.ones(2)) == "python"
    assert calls.function(torch.ones(4), torch.ones(5)) == "python"
    assert calls.function(torch.ones(8)[::2], torch.ones(4)) == "python"
    assert calls.function(torch.ones(4, 1), torch.ones(4)) == "python"
    assert calls.function(torch.ones(4).double(), torch.ones(4)) == "python"


def test_what_fits_exactly_comes_before_what_can_be_turned(code):
    calls = TensorCallSite(["tensor", "tensor"], lambda *arguments: "python")
    vector = (torch.float32, (4,), (1,))
    calls.add(CachedLaunch(code.address("sum"), [vector, vector], [ONE], (1,), code))
    calls.add(twice_as_long(code, 5))
    for size in (4, 6, 4, 5, 4):
        x = torch.full((size,), 0.5)
        assert calls.function(x, x)[0].item() == (1.0 if size == 4 else 10.0 * size)


def test_a_finalizer_that_turns_the_launch(code):
    """Making a Tensor may run a finalizer, which may call the same place for other sizes."""
    calls = TensorCallSite(["tensor", "tensor"], lambda *arguments: "python")
    calls.add(twice_as_long(code, 5))
    small, large, other = torch.full((5,), 0.5), torch.full((7,), 0.5), []

    def turn(phase, info):
        if phase == "start":
            other.append(calls.function(large, large)[0].item())

    thresholds = gc.get_threshold()
    gc.callbacks.append(turn)
    gc.set_threshold(1)
    try:
        answers = [calls.function(small, small) for _ in range(200)]
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(turn)
    assert {(tuple(each.shape), each[0].item()) for each in answers} == {((10,), 50.0)}
    assert set(other) == {70.0}


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_outputs(code, count):
    calls = TensorCallSite(["tensor"], lambda *arguments: "python")
    outputs = [(torch.bfloat16, (2, 0, 3), (3, 3, 1)), (torch.bool, (4, 2), (1, 4)), (torch.complex64, (), ())][:count]
    calls.add(CachedLaunch(code.address("nothing"), [ONE], outputs, keep=code))
    results = calls.function(tensor(1.0))
    results = (results,) if count == 1 else results
    assert [(x.dtype, tuple(x.shape), x.stride()) for x in results] == outputs


def test_a_result_that_cannot_be_made(code):
    """Python is asked, and says what is wrong in its own words."""

    def explain(x):
        raise RuntimeError("no room for that")

    calls = TensorCallSite(["tensor"], explain)
    calls.add(CachedLaunch(code.address("nothing"), [ONE], [ONE, (torch.float32, (2**60,), (1,))], keep=code))
    with pytest.raises(RuntimeError, match="no room for that"):
        calls.function(tensor(1.0))


@pytest.mark.parametrize("arguments", [(), (1,), (1, 2, 3)])
def test_too_few_and_too_many_arguments(code, arguments):
    def pair(x, y):
        return "python"

    calls = TensorCallSite(["tensor", "tensor"], pair)
    with pytest.raises(TypeError, match="pair"):
        calls.function(*arguments)


def test_errors_of_python_come_through(code):
    def fail(x):
        raise KeyError("what")

    with pytest.raises(KeyError, match="what"):
        TensorCallSite(["tensor"], fail).function(1)


def test_nothing_is_leaked(code, add):
    x, y = tensor(1.0), tensor(2.0)
    alive = weakref.ref(add(x, y))
    assert alive() is None
    for arguments in ((x, y), (x, 1.0)):
        add(*arguments)
        gc.collect()
        before = len(gc.get_objects())
        for _ in range(100):
            add(*arguments)
        gc.collect()
        assert len(gc.get_objects()) - before < 10  # objects of other origin may appear


def test_a_place_is_freed_with_its_function(code):
    class Group:
        def __init__(self):
            self.calls = TensorCallSite(["tensor"], self.fall_back)

        def fall_back(self, x):
            return "python"

    group = Group()
    group.calls.add(CachedLaunch(code.address("nothing"), [ONE], [ONE], keep=code))
    function, alive = group.calls.function, weakref.ref(group)
    del group
    gc.collect()
    assert function(1.0) == "python"
    del function
    gc.collect()
    assert alive() is None


def test_threads_share_a_place(code):
    layouts = [(torch.float32, (size,), (1,)) for size in range(1, 5)]
    calls = TensorCallSite(["tensor", "tensor"], lambda *arguments: "python")
    for size, layout in enumerate(layouts, 1):
        calls.add(CachedLaunch(code.address("sum"), [layout, layout], [ONE], (size,), code))
    wrong = []

    def work(size):
        x = torch.ones(size)
        wrong.extend(size for _ in range(3000) if calls.function(x, x).item() != 2.0 * size)

    threads = [threading.Thread(target=work, args=(size,)) for size in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_without_what_native_code_needs(monkeypatch, code):
    monkeypatch.setattr(call_sites, "tensor_objects", lambda: None)
    calls = TensorCallSite(["tensor"], lambda x: "python")
    calls.add(CachedLaunch(code.address("nothing"), [ONE], [ONE], keep=code))
    assert not call_sites.is_available()
    assert calls.function(tensor(1.0)) == "python"


def test_fixed_inputs_are_compared_by_identity(code):
    fixed = torch.ones(1)
    calls = TensorCallSite(["tensor", Fixed(fixed), "tensor", Fixed(None)], lambda *arguments: "python")
    calls.add(CachedLaunch(code.address("sum"), [ONE, None, ONE, None], [ONE], (3,), keep=code))
    x, y = torch.ones(1), torch.full((1,), 2.0)
    assert torch.equal(calls.function(x, fixed, y, None), torch.full((1,), 9.0))
    assert calls.function(x, fixed.clone(), y, None) == "python"
    assert calls.function(x, None, y, None) == "python"
    assert calls.function(x, fixed, y, fixed) == "python"
    assert calls.function(x, fixed, None, None) == "python"
    alive = weakref.ref(fixed)
    del fixed
    gc.collect()
    assert alive() is not None, "another object could come to lie at its address"
