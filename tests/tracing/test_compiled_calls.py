"""Compiled code within traces and traces within compiled code: both stay what they are."""

import io
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Dict, List, NamedTuple, Optional, Tuple

import pytest
import torch
from torch import nn

import rekindle
from rekindle.tracing.recording.recorder import TracerWarning
from tests.support import deprecation
from tests.support.equality import assert_same


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(7)


def assert_traced(function, example, *others):
    traced = rekindle.trace(function, example)
    for inputs in (example, *others):
        assert_same(traced(*inputs), function(*inputs))
    return traced


def kinds(graph) -> list[str]:
    return [node.kind for node in graph.nodes if node.kind != "prim::Constant"]


class Pair(NamedTuple):
    tensor: torch.Tensor
    count: int


@rekindle.script
def in_tuple(x: torch.Tensor, factors: List[int], more: Optional[torch.Tensor] = None) -> Tuple[torch.Tensor, int]:
    n = 0
    for factor in factors:
        x, n = x * factor, n + factor * x.size(0)
    return (x if more is None else x + more), n


@rekindle.script
def in_dict(x: torch.Tensor) -> Dict[str, torch.Tensor]:
    return {"less": x - 1, "more": x + 1}


@rekindle.script
def named(x: torch.Tensor) -> Pair:
    return Pair(x * 2, x.size(0))


@rekindle.script
def positive_part(x: torch.Tensor) -> Optional[torch.Tensor]:
    return x if bool(x.sum() > 0) else None


@rekindle.script
def is_large(x: torch.Tensor) -> bool:
    return bool(x.sum() > 100)


@rekindle.script
def total(items: Dict[str, torch.Tensor], others: List[torch.Tensor]) -> torch.Tensor:
    found = torch.zeros(())
    for key in items:
        found = found + items[key].sum()
    for other in others:
        found = found + other.sum()
    return found


def test_numbers_and_tensors_in_tuples():
    def function(x):
        a, n = in_tuple(x, [2])
        b, m = in_tuple(x, more=a, factors=[x.size(0), 2])
        pair = named(x)
        return a * n, b + m, pair.tensor * pair.count, torch.zeros(n)

    traced = assert_traced(function, (torch.randn(2),), (torch.randn(5),))
    assert len(traced.report) == 0


def test_dicts_and_optional_tensors():
    def function(x):
        found, some = in_dict(x), positive_part(x.abs())
        return found["less"], sum(found.values()), some * 2, total(found, [x, some])

    traced = assert_traced(function, (torch.randn(2),), (torch.randn(5),))
    assert len(traced.report) == 0


def test_answers_of_compiled_code_that_are_fixed_are_told():
    with pytest.warns(TracerWarning, match="the result of the compiled 'is_large' was False in the example"):
        traced = rekindle.trace(lambda x: -x if is_large(x) else x, (torch.ones(2),))
    assert [(fact.kind.value, fact.value) for fact in traced.report] == [("branch", "False")]


@torch.jit._overload
def signed(x: int) -> int: ...


@torch.jit._overload
def signed(x: torch.Tensor) -> torch.Tensor: ...  # noqa: F811


def signed(x):  # noqa: F811
    if x > 0:
        return x * 2
    else:
        return x * 3


def test_overloads_stay_calls_with_their_branches():
    compiled = rekindle.script(signed)
    traced = assert_traced(lambda x: compiled(x) + compiled(1), (torch.tensor(1.0),), (torch.tensor(-1.0),))
    assert len(traced.report) == 0


class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.offset = 2

    def forward(self, x: torch.Tensor, steps: int = 2) -> torch.Tensor:
        for _ in range(steps):
            x = self.linear(x)
        return x

    @rekindle.export
    def shifted(self, x: torch.Tensor) -> torch.Tensor:
        return x.relu() + self.offset


class UsesSteps(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = rekindle.script(Steps())

    def forward(self, x):
        return self.steps(x, x.size(0)) + self.steps.shifted(x) + self.steps(x)


class Chooses(nn.Module):
    def __init__(self, part: nn.Module):
        super().__init__()
        self.part = part

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool(x.sum() > 0):
            return self.part(x)
        return -x


def test_script_in_trace_in_script_in_trace():
    module = UsesSteps()
    traced = assert_traced(module, (torch.randn(2, 3),), (torch.randn(4, 3),))
    chooses = rekindle.script(Chooses(traced))
    positive = torch.rand(4, 3)
    assert_same((chooses(positive), chooses(-positive)), (module(positive), positive))
    outer = rekindle.trace(nn.Sequential(chooses, nn.ReLU()), (positive,))
    assert_same((outer(positive), outer(-positive)), (module(positive).relu(), positive))
    written = outer.save_to_buffer()
    for loaded in (rekindle.load(written), torch.jit.load(io.BytesIO(written))):
        assert_same((loaded(positive), loaded(-positive)), (module(positive).relu(), positive))


def test_traced_functions_and_modules_stay_calls():
    doubled = rekindle.trace(lambda x: x * 2, (torch.ones(2),))
    traced = assert_traced(lambda x: doubled(x) + 1, (torch.ones(2),), (torch.ones(3, 4),))
    assert kinds(traced.graph) == ["prim::CallFunction", "aten::add"]
    part = rekindle.trace(nn.Linear(2, 2), (torch.ones(1, 2),))
    traced = assert_traced(nn.Sequential(part, nn.ReLU()), (torch.randn(1, 2),), (torch.randn(5, 2),))
    assert kinds(traced[0].graph)[-1] == "aten::linear"


def test_what_torch_jit_compiled_is_told():
    def halved(x):
        if bool(x.sum() > 0):
            return x.view(x.size(0), -1) / 2
        return x

    with warnings.catch_warnings():
        deprecation.silence()
        theirs = torch.jit.script(halved)
    assert isinstance(theirs, torch.jit.ScriptFunction)
    with pytest.warns(TracerWarning, match="code that is not Python's was run: the trace has the operators that it"):
        traced = rekindle.trace(lambda x: theirs(x) + 1, (torch.ones(2, 3),))
    assert kinds(traced.graph) == ["prim::ListConstruct", "aten::view", "aten::div", "aten::add"]
    assert [fact.kind.value for fact in traced.report] == ["state", "size"]


def test_traces_under_the_drop_in():
    module, x = UsesSteps(), torch.randn(4, 3)
    with rekindle.installed():
        traced = torch.jit.trace(module, (x,))
        linear = torch.jit.trace_module(nn.Linear(3, 3), {"forward": x})

        @torch.jit.script
        def signed(x):
            return x if bool(x.sum() > 0) else -x

        @torch.jit.script_if_tracing
        def signed_later(x):
            return x if bool(x.sum() > 0) else -x

        function = torch.jit.trace(lambda x: signed(x) + signed_later(x), (x,))
        assert not torch.jit.is_tracing()
    assert isinstance(traced, rekindle.ScriptModule)
    assert isinstance(linear, rekindle.ScriptModule)
    assert_same(traced(x), module(x))
    ones = torch.ones(2)
    assert_same((function(ones), function(-ones)), (ones * 2, ones * 2))
    assert kinds(function.graph.ir) == ["prim::CallFunction", "prim::CallFunction", "aten::add"]


# -------------------------------------------------------------------------------------------------------------- threads


def test_two_threads_trace_at_once():
    barrier = threading.Barrier(2, timeout=60)

    def record(factor):
        def function(x):
            barrier.wait()
            with torch.no_grad():
                y = x * factor
            barrier.wait()
            return y.view(x.size(0), -1) + len(x)

        return rekindle.trace(function, (torch.ones(2, 3),), check_trace=False)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(record, (2, 3))
    x = torch.ones(4, 2)
    assert_same((first(x), second(x)), (x * 2 + 4, x * 3 + 4))
    assert len(nn.Linear(2, 2)(x)) == 4


def test_what_another_thread_computes_is_a_constant_and_told():
    def function(x):
        with ThreadPoolExecutor(1) as pool:
            return x + pool.submit(lambda: x.detach() * 2).result()

    traced = rekindle.trace(function, (torch.ones(2),))
    assert [(fact.kind.value, fact.value) for fact in traced.report] == [("constant", "float32[2]")]
    assert_same(traced(torch.zeros(2)), torch.full((2,), 2.0))


# ------------------------------------------------------------------------------------------------------------- settings


def autocasting(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.mT
        z = torch.einsum("ij,kj->ik", x, x)
        wide = torch.cat([y, y.float()]).sum()
        with torch.autocast("cpu", enabled=False):
            exact = x @ x.mT
    return y, z, wide, exact, y.float() + 1


class Autocasts(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.recurrent = nn.LSTM(3, 3)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.linear(self.linear(x)), self.recurrent(x)[0]


@pytest.mark.parametrize("make", [lambda: autocasting, Autocasts], ids=["function", "module"])
def test_what_autocasting_converts_is_converted_by_the_program(make):
    function = make()
    try:
        function(torch.randn(2, 3))
    except RuntimeError as error:
        if "could not create a primitive descriptor for the LSTM" not in str(error):
            raise
        pytest.skip("PyTorch itself has no LSTM of bfloat16 on this processor")
    traced = assert_traced(function, (torch.randn(2, 3),), (torch.randn(4, 3),))
    x = torch.randn(4, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_same(traced(x)[0], function(x)[0])


def test_autocasting_around_a_trace_is_part_of_it():
    x = torch.randn(4, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        traced = rekindle.trace(lambda x: x @ x.mT, (x,))
        expected = x @ x.mT
    assert_same(traced(x), expected)
    assert [str(fact) for fact in traced.report] == ["state: autocasting was on, and is part of the trace"]


def test_seeds_are_set_by_the_program():
    def function(x):
        torch.manual_seed(x.size(0))
        return torch.rand(3) + x.sum()

    assert_traced(function, (torch.randn(2),), (torch.randn(5),))


def test_a_generator_from_outside_stays_the_one_that_it_is():
    generator = torch.Generator()

    def function(x):
        return torch.rand(3, generator=generator) + x

    generator.manual_seed(1)
    traced = rekindle.trace(function, (torch.zeros(3),), check_trace=False)
    answers = []
    for call in (function, traced):
        generator.manual_seed(2)
        answers.append((call(torch.ones(3)), call(torch.ones(3))))
    assert_same(answers[0], answers[1])
    assert [fact.what for fact in traced.report] == ["a generator of random numbers"]


def test_attributes_that_may_be_none():
    attention = nn.MultiheadAttention(8, 2, batch_first=True, add_bias_kv=True, add_zero_attn=True)

    class Attends(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = attention

        def forward(self, x):
            return self.attention(x, x, x)[0]

    assert_traced(Attends(), (torch.randn(2, 5, 8),), (torch.randn(3, 7, 8),))
