"""Captured calls, on a device of the tests: a capture is a function that runs the call again into the same results.

tests/codegen/cuda/test_gpu.py captures on a GPU.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Optional

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.ir.graph import Graph
from rekindle.ir.subgraph_execution import consuming_callable_of, replayed
from rekindle.ir.types import TENSOR, OptionalType
from rekindle.runtime.cuda_graphs import captured_function
from rekindle.runtime.cuda_graphs.arguments import NotCapturable, kind_of, modes
from rekindle.runtime.cuda_graphs.attributes import Attributes, state_of
from rekindle.runtime.cuda_graphs.capturable import refusal_of
from rekindle.runtime.cuda_graphs.captured_function import MAX_CAPTURES, WARM_UP, CapturedFunction, ReplayedFunction
from rekindle.runtime.executor import prepare
from rekindle.runtime.settings import SETTINGS


class HostDevice:
    """The CPU, in the role of a GPU."""

    def __init__(self) -> None:
        self.captured = 0
        self.current: Hashable = 0
        self.error: str | None = None
        self.time = self.step = 0.0

    def owns(self, tensor: Tensor) -> bool:
        return tensor.is_cpu

    def is_capturing(self) -> bool:
        return False

    def stream(self, device: torch.device) -> Hashable:
        return self.current

    def prepared(self, device: torch.device) -> AbstractContextManager[object]:
        return torch.random.fork_rng([])

    def now(self) -> float:
        self.time += self.step
        return self.time

    def synchronize(self) -> None:
        pass

    def capture(self, run: Callable[[], Any]) -> tuple[Callable[[], object], Any]:
        if self.error is not None:
            raise RuntimeError(f"{self.error}\nmore lines")
        self.captured += 1
        value = run()

        def replay() -> None:
            for own, new in zip(_tensors(value), _tensors(run()), strict=True):
                _memory(own).copy_(_memory(new))

        return replay, value


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return [tensor for each in parts for tensor in _tensors(each)]


def _memory(tensor: Tensor) -> Tensor:
    """All elements from the first to the last of ``tensor``, of which several may be the same."""
    length = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.as_strided((length if tensor.numel() else 0,), (1,))


@pytest.fixture(autouse=True)
def _no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def captured(compiled: Any, *arguments: Any, device: HostDevice | None = None) -> CapturedFunction:
    """The version of a function for these arguments, with captures on a device of the tests."""
    given = (compiled, *arguments) if isinstance(compiled, nn.Module) else arguments
    method: Any = compiled.forward if isinstance(compiled, nn.Module) else compiled
    record = method._record
    version = prepare(record, given)
    return CapturedFunction(version, device or HostDevice())


def settled(function: CapturedFunction, *arguments: Any) -> Any:
    """The result once calls are replayed."""
    for _ in range(WARM_UP + 1):
        function(*arguments)
    before = function.replays
    found = function(*arguments)
    assert function.replays == before + 1, function.reason
    return found


def gate(x: Tensor, y: Tensor) -> Tensor:
    return torch.sigmoid(x) * torch.tanh(y)


def test_replays_compute_with_the_arguments_of_the_call() -> None:
    function = captured(rekindle.script(gate), torch.randn(4), torch.randn(4))
    for _ in range(10):
        x, y = torch.randn(4), torch.randn(4)
        torch.testing.assert_close(function(x, y), gate(x, y))
    assert (function.captures, function.replays) == (1, 10 - WARM_UP - 1)


def test_results_are_new_tensors() -> None:
    function, x = captured(rekindle.script(gate), torch.ones(4), torch.ones(4)), torch.ones(4)
    first = settled(function, x, x)
    second = function(x, x * 2)
    assert first.data_ptr() != second.data_ptr()
    torch.testing.assert_close(first, gate(x, x))


def test_each_kind_of_call_has_a_capture() -> None:
    def scaled(x: Tensor, by: float, n: int) -> Tensor:
        for _ in range(n):
            x = x * by
        return x

    device = HostDevice()
    function = captured(rekindle.script(scaled), torch.ones(2), 2.0, 1, device=device)
    kinds: list[tuple[Tensor, float, int]] = [
        (torch.randn(3), 2.0, 1),
        (torch.randn(4), 2.0, 1),
        (torch.randn(3), 3.0, 1),
        (torch.randn(3), 2.0, 2),
        (torch.randn(3).double(), 2.0, 1),
        (torch.randn(2, 3), 2.0, 1),
        (torch.randn(3, 2).t(), 2.0, 1),
        (torch.randn(3), 0.0, 1),
        (torch.randn(3), -0.0, 1),
    ]
    for arguments in kinds:
        found = settled(function, *arguments)
        torch.testing.assert_close(found, scaled(*arguments), check_stride=True)
        assert torch.equal(torch.signbit(found), torch.signbit(scaled(*arguments)))
    assert device.captured == len(kinds)
    device.current = 1
    settled(function, *kinds[0])
    assert device.captured == len(kinds) + 1, "streams share no memory"
    with torch.inference_mode():
        assert settled(function, *kinds[0]).is_inference()
    assert not function(*kinds[0]).is_inference()


def test_there_is_a_limit_to_captures() -> None:
    function = captured(rekindle.script(gate), torch.ones(2), torch.ones(2))
    for size in range(MAX_CAPTURES + 5):
        for _ in range(WARM_UP + 2):
            function(torch.ones(size), torch.ones(size))
    assert function.captures == MAX_CAPTURES
    assert function.reason == f"there are {MAX_CAPTURES} captures already"


def test_many_kinds_of_calls_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captured_function, "_MAX_KINDS", 20)
    function = captured(rekindle.script(gate), torch.ones(2), torch.ones(2))
    settled(function, torch.ones(2), torch.ones(2))
    for size in range(100):
        function(torch.ones(size), torch.ones(size))
    assert len(function._kinds) <= 20
    assert function.captures == 1


class Net(nn.Module):
    offset: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.scale = 2.0
        self.register_buffer("offset", torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.inner(x)
        return found * self.scale + self.offset


def test_parameters_are_read_where_they_are() -> None:
    net = Net()
    compiled = rekindle.script(net)
    function, x = captured(compiled, torch.ones(2, 4)), torch.randn(2, 4)
    settled(function, compiled, x)
    compiled.inner[0].weight.mul_(2.0)
    compiled.offset += 1.0
    before = function.replays
    torch.testing.assert_close(function(compiled, x), compiled(x))
    assert function.replays == before + 1, "other values in the same place are replayed"


@pytest.mark.parametrize("change", ["parameter", "data", "transposed", "buffer", "module"])
def test_a_parameter_that_moves_is_captured_again(change: str) -> None:
    compiled = rekindle.script(Net())
    function, x = captured(compiled, torch.ones(2, 4)), torch.randn(2, 4)
    settled(function, compiled, x)
    linear = compiled.inner[0]
    if change == "parameter":
        linear.weight = nn.Parameter(torch.randn(4, 4))
    elif change == "data":
        linear.weight.data = torch.randn(4, 4)
    elif change == "transposed":
        linear.weight.data = linear.weight.data.t()
    elif change == "buffer":
        compiled.offset = torch.zeros(4)
    else:
        compiled.inner[0].load_state_dict(nn.Linear(4, 4).state_dict(), assign=True)
    for _ in range(WARM_UP + 3):
        torch.testing.assert_close(function(compiled, x), compiled(x))
    assert function.captures == 1
    assert function.replays > 1


def test_attributes_that_change_again_and_again_are_not_captured() -> None:
    compiled = rekindle.script(Net())
    function, x = captured(compiled, torch.ones(2, 4)), torch.randn(2, 4)
    for _ in range(10):
        for _ in range(WARM_UP + 2):
            torch.testing.assert_close(function(compiled, x), compiled(x))
        compiled.offset = torch.randn(4)
    assert function.captures == 0
    assert function.reason == "attributes have changed since calls were captured"


def test_lists_of_parameters() -> None:
    net = nn.LSTM(3, 4).eval()
    compiled = rekindle.script(net)
    method = compiled.forward.overloads[0]
    x = torch.randn(2, 1, 3)
    version = prepare(method._record, (compiled, x, None))
    function = CapturedFunction(version, HostDevice())
    settled(function, compiled, x, None)
    torch.testing.assert_close(function(compiled, x, None), net(x))
    net.flatten_parameters()
    compiled._flat_weights = [torch.randn_like(each) for each in net.parameters()]
    before = function.replays
    torch.testing.assert_close(function(compiled, x, None), compiled(x))
    assert function.replays == before


def test_structures() -> None:
    def parts(x: list[Tensor], pair: tuple[Tensor, int], named: dict[str, Tensor]) -> dict[str, list[Tensor]]:
        return {"a": [x[0] + pair[0], x[1] * pair[1]], "b": [named["k"] * 2]}

    def arguments() -> tuple[Any, ...]:
        return [torch.randn(2), torch.randn(3)], (torch.randn(2), 3), {"k": torch.randn(4)}

    function = captured(rekindle.script(parts), *arguments())
    settled(function, *arguments())
    given = arguments()
    torch.testing.assert_close(function(*given), parts(*given))


def test_calls_that_cannot_be_replayed_run_plainly() -> None:
    function, x = captured(rekindle.script(gate), torch.ones(4), torch.ones(4)), torch.ones(4)
    settled(function, x, x)
    before = function.replays
    with torch.enable_grad():
        assert function(x.clone().requires_grad_(), x).requires_grad
    function(torch.ones(4).expand(2, 4), x)
    with pytest.raises(RuntimeError, match="device"):
        function(x, torch.ones(4, device="meta"))
    assert torch.func.vmap(function)(torch.ones(3, 4), torch.ones(3, 4)).shape == (3, 4)
    assert function.replays == before


def test_what_a_capture_refuses() -> None:
    device = HostDevice()
    device.error = "operation not permitted when stream is capturing"
    function, x = captured(rekindle.script(gate), torch.ones(4), torch.ones(4), device=device), torch.ones(4)
    for _ in range(10):
        torch.testing.assert_close(function(x, x), gate(x, x))
    assert (function.captures, function.replays) == (0, 0)
    assert function.reason == f"a call raises RuntimeError in a capture: {device.error}"


def test_a_capture_that_takes_longer_than_a_call_is_dropped() -> None:
    class Slow(HostDevice):
        def capture(self, run: Callable[[], Any]) -> tuple[Callable[[], object], Any]:
            replay, value = super().capture(run)

            def slow() -> None:
                replay()
                self.time += 1.0

            return slow, value

    function, x = captured(rekindle.script(gate), torch.ones(4), torch.ones(4), device=Slow()), torch.ones(4)
    for _ in range(WARM_UP + 2):
        torch.testing.assert_close(function(x, x), gate(x, x))
    assert (function.captures, function.reason) == (0, "a replay takes longer than a call")


def test_a_capture_leaves_the_generator_as_it_was() -> None:
    dropout = nn.Dropout(0.5).train()
    compiled, x = rekindle.script(dropout), torch.ones(100)
    function = captured(compiled, x)
    torch.manual_seed(0)
    found = [function(compiled, x) for _ in range(WARM_UP + 4)]
    assert function.captures == 1
    torch.manual_seed(0)
    torch.testing.assert_close(found, [dropout(x) for _ in range(WARM_UP + 4)])


def test_a_call_knows_whether_gradients_are_required() -> None:
    def scaled(x: Tensor) -> Tensor:
        return x * 2.0 if x.requires_grad else x * 3.0

    function = captured(rekindle.script(scaled), torch.ones(2))
    for x in (torch.ones(2), torch.ones(2, requires_grad=True)):
        torch.testing.assert_close(settled(function, x), scaled(x))


def test_captures_that_fail_again_and_again_are_not_tried_any_more() -> None:
    device = HostDevice()
    device.error = "no"
    function = captured(rekindle.script(gate), torch.ones(4), torch.ones(4), device=device)
    for size in range(captured_function._MAX_FAILURES + 3):
        for _ in range(WARM_UP + 2):
            function(torch.ones(size), torch.ones(size))
    assert function._failures == captured_function._MAX_FAILURES


def test_a_module_that_is_gone_leaves_no_capture() -> None:
    class Forgetful(HostDevice):
        def capture(self, run: Callable[[], Any]) -> tuple[Callable[[], object], Any]:
            return (lambda: None), run()  # as on a GPU, nothing holds the arguments of the captured call

    made = [rekindle.script(nn.Linear(3, 3)) for _ in range(4)]
    function, x = captured(made[0], torch.ones(2, 3), device=Forgetful()), torch.ones(2, 3)
    for compiled in made:
        settled(function, compiled, x)
    assert function.captures == 4
    weight = weakref.ref(made[1].weight)
    del compiled, made[1]
    gc.collect()
    assert function.captures == 3
    assert weight() is None


@pytest.mark.parametrize(
    "change",
    [
        lambda: torch.backends.cudnn.flags(enabled=True, allow_tf32=False),
        lambda: torch.backends.cudnn.flags(enabled=False, allow_tf32=True),
        lambda: torch.backends.cudnn.flags(enabled=True, allow_tf32=True, deterministic=True),
        lambda: torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH),
        lambda: torch.autocast("cpu", torch.bfloat16),
        lambda: torch.inference_mode(),
    ],
    ids=["tf32", "cudnn", "deterministic", "attention", "autocast", "inference"],
)
def test_modes_are_part_of_the_kind(change: Callable[[], AbstractContextManager[object]]) -> None:
    before = modes()
    assert modes() == before
    with change():
        assert modes() != before


def test_modes_can_be_read_with_either_interface_of_precisions() -> None:
    program = (
        "import torch\nfrom rekindle.runtime.cuda_graphs.arguments import modes\nfirst = modes()\n"
        "torch.backends.cuda.matmul.fp32_precision = 'tf32'\nassert modes() != first\n"
        "torch.backends.cudnn.conv.fp32_precision = 'ieee'\nmodes()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_tensors_that_are_not_what_their_memory_holds() -> None:
    def doubled(z: Tensor) -> Tensor:
        return z * 2.0 if z.is_conj() else z * 3.0

    z = torch.randn(3, dtype=torch.complex64)
    function = captured(rekindle.script(doubled), z)
    settled(function, z)
    before = function.replays
    torch.testing.assert_close(function(z.conj()), doubled(z.conj()))
    assert function.replays == before
    assert function.reason == "a tensor is conjugated or negated lazily"
    with pytest.raises(NotCapturable):
        state_of([z.conj()])
    with pytest.raises(NotCapturable, match=r"^a tensor is not dense$"):
        state_of([torch.ones(2, 2).to_sparse()])
    assert state_of([0.0]) != state_of([-0.0])
    tensors: list[Tensor] = []
    assert kind_of({0.0: 1}, tensors) != kind_of({-0.0: 1}, tensors)
    assert kind_of({1: 1}, tensors) != kind_of({True: 1}, tensors)


def test_tensors_as_keys() -> None:
    tensors: list[Tensor] = []
    with pytest.raises(NotCapturable, match=r"^a tensor is the key of a dict$"):
        kind_of({torch.ones(2): 1}, tensors)
    assert not tensors


def test_attributes_that_are_only_cast() -> None:
    compiled = rekindle.script(OfOptional())
    graph = Graph()
    owner, x = graph.add_input("self", compiled.script_type), graph.add_input("x", TENSOR)
    read = graph.create("prim::GetAttr", [owner], types=[OptionalType(TENSOR)], attributes={"name": "scale"})
    cast = graph.create("prim::unchecked_cast", [graph.insert_node(read).output], types=[TENSOR])
    product = graph.create("aten::mul", [x, graph.insert_node(cast).output], types=[TENSOR])
    graph.add_output(graph.insert_node(product).output)
    (found,) = Attributes(graph).of([compiled, torch.ones(2)])
    assert found is compiled.scale


class OfOptional(nn.Module):
    scale: Optional[Tensor]

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.ones(2)

    def forward(self, x: Tensor) -> Tensor:
        return x if self.scale is None else x * self.scale


def test_sizes_as_tuples() -> None:
    def scaled(x: Tensor, size: tuple[int, int]) -> Tensor:
        return x * size[0] * size[1]

    function = captured(rekindle.script(scaled), torch.ones(2), torch.Size([2, 3]))
    torch.testing.assert_close(settled(function, torch.ones(2), torch.Size([2, 3])), torch.full((2,), 6.0))


class Part:
    def __init__(self, k: float) -> None:
        self.k = k


class OfParts(nn.Module):
    parts: list[Part]

    def __init__(self) -> None:
        super().__init__()
        self.parts = [Part(2.0), Part(3.0)]

    def forward(self, x: Tensor, n: int) -> Tensor:
        return x * self.parts[n].k


def test_attributes_of_unknown_objects() -> None:
    compiled = rekindle.script(OfParts())
    function = captured(compiled, torch.ones(2), 0)
    for size in (2, 3):
        for n in (0, 1):
            for _ in range(WARM_UP + 2):
                torch.testing.assert_close(function(compiled, torch.ones(size), n), compiled(torch.ones(size), n))
    assert function.reason == "the graph reads the attribute 'k' of an unknown object"


def test_only_calls_that_have_completed_are_captured() -> None:
    class Stops(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.of_input = nn.Linear(3, 4)

        def forward(self, x: Tensor, n: int) -> Tensor:
            h = torch.zeros(x.size(1), 4)
            for t in range(x.size(0)):
                if t == n:
                    raise ValueError("stop")
                h = torch.tanh(self.of_input(x[t]) + h)
            return h

    compiled = rekindle.script(Stops())
    function = captured(compiled, torch.randn(5, 2, 7), 0)
    for _ in range(WARM_UP + 3):
        with pytest.raises(ValueError, match=r"^stop$"):
            function(compiled, torch.randn(5, 2, 7), 0)


class Counter:
    def __init__(self, start: int) -> None:
        self.value = start

    def add(self, n: int) -> int:
        self.value += n
        return self.value


def test_objects_of_the_call() -> None:
    def counted(x: Tensor, n: int) -> Tensor:
        counter = Counter(1)
        for i in range(n):
            counter.add(i)
        return x * counter.value

    function = captured(rekindle.script(counted), torch.ones(2), 3)
    for _ in range(WARM_UP + 2):
        torch.testing.assert_close(function(torch.ones(2), 3), counted(torch.ones(2), 3))
    assert function.reason is not None
    assert function.reason.startswith("prim::SetAttr ")


def test_a_parameter_that_is_gone() -> None:
    compiled = rekindle.script(nn.Linear(3, 3))
    function, x = captured(compiled, torch.ones(2, 3)), torch.ones(2, 3)
    settled(function, compiled, x)
    del compiled._parameters["bias"]
    with pytest.raises(AttributeError, match="bias"):
        function(compiled, x)


class Recurrence(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.of_input, self.of_state = nn.Linear(3, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), 4)
        for t in range(x.size(0)):
            h = torch.tanh(self.of_input(x[t]) + self.of_state(h))
        return h


def test_products_of_all_iterations_are_one_in_a_capture() -> None:
    net = Recurrence()
    compiled, x = rekindle.script(net), torch.randn(5, 2, 3)
    version = prepare(compiled.forward._record, (compiled, x))
    best = version.for_completed((compiled, x))
    assert best is not None
    kinds = [[node.kind for node in each.graph.all_nodes()] for each in (version, best)]
    assert ["aten::narrow" in each for each in kinds] == [False, True], "rows of all iterations"
    function = CapturedFunction(version, HostDevice())
    for _ in range(WARM_UP + 3):
        x = torch.randn(5, 2, 3)
        torch.testing.assert_close(function(compiled, x), net(x))
    assert function.captures == 1


def test_errors_of_the_program_are_errors_of_a_replay() -> None:
    def checked(x: Tensor, n: int) -> Tensor:
        if n > 3:
            raise ValueError(f"{n} is too many")
        return x * n

    function = captured(rekindle.script(checked), torch.ones(2), 2)
    settled(function, torch.ones(2), 2)
    for _ in range(WARM_UP + 2):
        with pytest.raises(ValueError, match=r"^4 is too many$"):
            function(torch.ones(2), 4)


def _returns_leaf(x: Tensor) -> Tensor:
    y = x * 2.0
    y.requires_grad_(True)
    return y


def _returns_bits(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2.0
    return y, y.view(torch.int32)


def _returns_bits_of_argument(x: Tensor) -> Tensor:
    return x.view(torch.int32)


def _returns_argument(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    return x, x * w


def _returns_view_of_argument(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x[1], x.t(), x.sum() * w


def _returns_parameter(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return w, w[0], x * w


def _returns_views(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    y = torch.sin(x) * w
    return y[0], y, y.t()


def _returns_parts(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    first, second = (torch.sin(x) * w).chunk(2, 1)
    return first, second


def _returns_expanded(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    y = torch.sin(x[0]) * w[0]
    return y.expand(2, 4), y.unsqueeze(1).expand(4, 3)


def _returns_twice(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
    y = x * w
    return y, y, [y]


def _returns_nothing(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x[:0], (x * w)[:0], x * w


@pytest.mark.parametrize(
    "function",
    [
        *(_returns_argument, _returns_view_of_argument, _returns_parameter, _returns_views, _returns_parts),
        *(_returns_expanded, _returns_twice, _returns_nothing),
    ],
)
@pytest.mark.parametrize("layout", ["dense", "transposed", "expanded", "gaps"])
def test_results_share_memory_as_those_of_a_call(function: Callable[..., Any], layout: str) -> None:
    """With arguments, attributes and each other; written to, they change alike."""
    compiled = rekindle.script(function)
    weight = nn.Parameter(torch.randn(4, 4))
    of = {
        "dense": lambda: torch.randn(4, 4),
        "transposed": lambda: torch.randn(4, 4).t(),
        "expanded": lambda: torch.randn(4, 1).expand(4, 4),
        "gaps": lambda: torch.randn(4, 8)[:, 1:5],
    }[layout]
    replayed = captured(compiled, of(), weight)
    settled(replayed, of(), weight)
    for _ in range(3):
        x = of()
        before = replayed.replays
        found, expected = _tensors(replayed(x, weight)), _tensors(function(x, weight))
        assert replayed.replays == before + 1
        known = [x, weight]
        for mine, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(mine, theirs, check_stride=True)
            assert mine.requires_grad == theirs.requires_grad
        relations = []
        for tensors in (found, expected):
            everything = [*known, *tensors]
            relations.append(
                [
                    (first is second, _storage(first) == _storage(second))
                    for first in everything
                    for second in everything
                    if first.numel() and second.numel()
                ]
            )
        assert relations[0] == relations[1]


def _of_parameter(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    return w, x * w


def test_a_parameter_that_is_returned_is_that_of_the_call() -> None:
    """Two may have the same memory."""
    w = nn.Parameter(torch.randn(4))
    function, x = captured(rekindle.script(_of_parameter), torch.ones(4), w), torch.ones(4)
    settled(function, x, w)
    other = nn.Parameter(w.data)
    replays = function.replays
    assert function(x, other)[0] is other
    assert function.replays == replays + 1


def test_results_that_are_arguments_are_the_same_objects() -> None:
    """Also where they have no elements, or the memory of another one."""
    w = nn.Parameter(torch.randn(4))
    of_same_memory, empty = nn.Parameter(w.data), torch.ones(0)
    compiled = rekindle.script(lambda x, y, v, w: (x * v, y, w, v))
    function = captured(compiled, torch.ones(4), empty, w, of_same_memory)
    _, *found = settled(function, torch.ones(4), empty, w, of_same_memory)
    assert all(mine is theirs for mine, theirs in zip(found, (empty, of_same_memory, w), strict=True))


def test_a_capture_keeps_no_parameter_alive() -> None:
    class Forgetful(HostDevice):
        """A GPU keeps the addresses of a capture alone."""

        def capture(self, run: Callable[[], Any]) -> tuple[Callable[[], object], Any]:
            return lambda: None, run()

    w = nn.Parameter(torch.randn(4))
    function = captured(rekindle.script(_of_parameter), torch.ones(4), w, device=Forgetful())
    settled(function, torch.ones(4), w)
    alive = weakref.ref(w)
    del w
    gc.collect()
    assert alive() is None
    assert (function.captures, len(function._kinds), function._owners) == (0, 0, set())


def test_kinds_that_are_dropped_leave_nothing_at_a_parameter() -> None:
    """Sizes that vary: the table of kinds is emptied again and again."""
    w = nn.Parameter(torch.randn(1))
    function = captured(rekindle.script(lambda x, w: torch.sin(x) * w), torch.ones(3), w)
    before = len(weakref.finalize._registry)  # type: ignore[attr-defined]
    for size in range(captured_function._MAX_KINDS * 2):
        function(torch.ones(size + 1), w)
    assert len(weakref.finalize._registry) - before == 1  # type: ignore[attr-defined]


def test_captures_are_replayed_after_others_have_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captured_function, "MAX_CAPTURES", 2)
    function = captured(rekindle.script(gate), torch.ones(1), torch.ones(1))
    for size in range(1, captured_function._MAX_FAILURES + 8):
        for _ in range(WARM_UP + 2):
            function(torch.ones(size), torch.ones(size))
    assert (function.captures, function._failures) == (2, captured_function._MAX_FAILURES)
    replays = function.replays
    torch.testing.assert_close(function(torch.ones(2), torch.zeros(2)), gate(torch.ones(2), torch.zeros(2)))
    assert function.replays == replays + 1


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def test_a_list_of_the_caller_is_returned_itself() -> None:
    def counted(x: Tensor, l: list[int]) -> tuple[Tensor, list[int]]:
        return x * 2.0, l

    function, own = captured(rekindle.script(counted), torch.ones(2), [1, 2]), [1, 2]
    for _ in range(WARM_UP + 3):
        assert function(torch.ones(2), own)[1] is own
    assert function.reason == "a result is a list or a dict of an argument or an attribute"


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (_returns_leaf, "a result requires a gradient"),
        (_returns_bits, "a result is a view of a tensor of another dtype"),
        (_returns_bits_of_argument, "a result is a view of a tensor of another dtype"),
    ],
)
def test_results_that_no_copy_replaces(function: Callable[..., Any], reason: str) -> None:
    compiled, x = captured(rekindle.script(function), torch.ones(3)), torch.ones(3)
    for _ in range(WARM_UP + 3):
        torch.testing.assert_close(compiled(x), function(x))
    assert compiled.reason == reason
    assert compiled.captures == 0


def _writes(x: Tensor) -> Tensor:
    return x.add_(1.0)


def _writes_list(x: list[Tensor]) -> int:
    x.append(x[0])
    return len(x)


def _prints(x: Tensor) -> Tensor:
    print(x.size(0))  # noqa: T201
    return x * 2.0


def _reads(x: Tensor) -> float:
    return float(x.sum().item())


def _branches(x: Tensor) -> Tensor:
    if bool(x.sum() > 0):
        return x * 2.0
    return x


def _finds(x: Tensor) -> Tensor:
    return torch.nonzero(x)


def _is_same(x: Tensor, y: Tensor) -> Tensor:
    return x * 2.0 if x is y else x * 3.0


def _hashes(x: Tensor) -> tuple[Tensor, int]:
    return x * 2.0, hash(x)


def _asks(x: Tensor) -> Tensor:
    return x * 2.0 if x.is_leaf else x * 3.0


def _draws(x: Tensor) -> Tensor:
    return x + torch.rand(3)


def _draws_from(x: Tensor, g: torch.Generator) -> Tensor:
    return torch.bernoulli(x, generator=g)


def _copies(x: Tensor) -> Tensor:
    return x.to("cpu", non_blocking=True) * 2.0


@rekindle.ignore
def _python(x: Tensor) -> Tensor:
    return x


def _calls_python(x: Tensor) -> Tensor:
    return _python(x) * 2.0


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (_writes, "it writes to an argument or an attribute"),
        (_writes_list, "it writes to an argument or an attribute"),
        (_prints, "has an effect on the host"),
        (_reads, "waits for the values of a tensor"),
        (_branches, "waits for the values of a tensor"),
        (_finds, "waits for the values of a tensor"),
        (_asks, "distinguishes a tensor from a copy of it"),
        (_is_same, "distinguishes a tensor from a copy of it"),
        (_hashes, "distinguishes a tensor from a copy of it"),
        (_draws, "draws random numbers"),
        (_draws_from, "takes a generator"),
        (_copies, "may copy without waiting"),
        (_calls_python, "calls what is not known"),
    ],
)
def test_functions_that_must_not_be_replayed(function: Callable[..., Any], reason: str) -> None:
    found = refusal_of(rekindle.script(function).graph)
    assert found is not None
    assert found.endswith(reason)


def test_the_reason_names_the_place() -> None:
    found = refusal_of(rekindle.script(_reads).graph)
    assert found is not None
    assert found.startswith("aten::item (")
    assert "test_cuda_graphs.py:" in found


def test_the_switch() -> None:
    assert rekindle.set_cuda_graphs(True) is False
    try:
        compiled = rekindle.script(gate)
        x = torch.ones(3)
        for _ in range(WARM_UP + 3):  # on the CPU everything is as ever
            torch.testing.assert_close(compiled(x, x), gate(x, x))
    finally:
        assert rekindle.set_cuda_graphs(False) is True


def test_the_report() -> None:
    before = rekindle.set_cuda_graphs(True)
    try:
        compiled = rekindle.script(gate)
        function = captured(compiled, torch.ones(2), torch.ones(2))
        settled(function, torch.ones(2), torch.ones(2))
        function.reason = "a reason"
        prepare(compiled._record, (torch.ones(2), torch.ones(2))).captured = function
        (version,) = rekindle.report(compiled).versions
        assert version.cuda_graphs is not None
        assert (version.cuda_graphs.captures, version.cuda_graphs.replays) == (1, 1)
        text = str(rekindle.report(compiled))
        assert "  CUDA graphs: 1 call captured, 1 call replayed\n    not captured: a reason\n" in text
    finally:
        rekindle.set_cuda_graphs(before)


def test_a_function_of_a_list_is_called_or_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture keeps its arguments: it takes them one by one. Other calls empty the list."""
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    run = consuming_callable_of(rekindle.script(lambda x, y: x * y + 1).inlined_graph, "f")
    either = replayed(run, from_list=True)
    assert isinstance(either, ReplayedFunction)
    for is_on, left in ((False, 0), (True, 2)):
        monkeypatch.setattr(SETTINGS, "cuda_graphs", is_on)
        given = [torch.ones(2), torch.full((2,), 3.0)]
        torch.testing.assert_close(either(given), torch.full((2,), 4.0))
        assert len(given) == left
    assert either.version.captured is not None
