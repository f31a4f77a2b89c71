"""State of modules in libraries: what calls change, and what of their arguments they keep."""

import copy
from typing import Dict, List, Optional, Tuple

import pytest
import torch
from torch import Tensor, nn

import rekindle
from tests.building.c_process import compiler, memory_checker, run
from tests.building.corpus import same


def expected_of(module, calls):
    """Return what eager calls of a module return one after the other, and copies of it: eager results are shared."""
    module = copy.deepcopy(module)
    with torch.no_grad():
        return [copy.deepcopy(module(*copy.deepcopy(call))) for call in calls]


class Settings(nn.Module):
    """Attributes that another method than ``forward`` writes to."""

    factor: int

    def __init__(self) -> None:
        super().__init__()
        self.factor = 2
        self.scale = 1.5
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor + self.shift.sum() * self.scale

    @rekindle.export
    def set(self, factor: int, scale: float) -> None:
        self.factor = factor
        self.scale = scale

    @rekindle.export
    def add(self, x: Tensor) -> None:
        self.shift.add_(x)

    @rekindle.export
    def replace(self, x: Tensor) -> None:
        self.shift = x * 2


def test_methods_see_what_others_write(tmp_path):
    """An attribute is not a constant of ``forward`` where another method writes to it."""
    x = torch.randn(3)
    examples = {"forward": [(x,)], "set": [(3, 2.0)], "add": [(x,)], "replace": [(x,)]}
    rekindle.build(rekindle.script(Settings()), tmp_path, examples)
    library, module = rekindle.NativeLibrary(tmp_path), Settings()
    for method, arguments in [("set", (5, 0.25)), ("add", (x,)), ("replace", (x,)), ("add", (x,)), ("set", (-1, 2.0))]:
        library.call(method, *arguments)
        getattr(module, method)(*arguments)
        assert same(library.call("forward", x), module.forward(x))


class Attention(nn.Module):
    """Attention over what earlier calls left in a cache."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(8, 8) for _ in range(4))
        self.out.weight = self.query.weight
        self.register_buffer("keys", torch.zeros(1, 2, 8, 4))
        self.register_buffer("values", torch.zeros(1, 2, 8, 4))
        self.position = 0

    def forward(self, x: Tensor) -> Tuple[Tensor, int]:
        batch, time, size = x.shape
        query = self.query(x).view(batch, time, 2, 4).transpose(1, 2)
        end = self.position + time
        if end > 8:
            raise RuntimeError("the cache is full")
        self.keys[:, :, self.position : end] = self.key(x).view(batch, time, 2, 4).transpose(1, 2)
        self.values[:, :, self.position : end] = self.value(x).view(batch, time, 2, 4).transpose(1, 2)
        self.position = end
        weights = (query @ self.keys[:, :, :end].transpose(-1, -2) * 0.5).softmax(-1)
        found = weights @ self.values[:, :, :end]
        return self.out(found.transpose(1, 2).reshape(batch, time, size)), self.position


def test_examples_are_calls_of_one_module(tmp_path):
    """The second example leads to sizes that no first call leads to; a sequence may end in an error."""
    torch.manual_seed(0)
    module = Attention().eval()
    calls = [(torch.randn(1, 3, 8),), *((torch.randn(1, 1, 8),) for _ in range(5))]
    examples = [*calls[:2], (torch.randn(1, 8, 8),)]
    rekindle.build(rekindle.script(copy.deepcopy(module)), tmp_path, examples)
    library = rekindle.NativeLibrary(tmp_path)
    assert all(same(library(*call), each) for call, each in zip(calls, expected_of(module, calls), strict=True))
    with pytest.raises(RuntimeError, match=r"^the cache is full\n"):
        library(calls[0][0])


class History(nn.Module):
    """Keeps its arguments, and views of them, in attributes of every kind."""

    cache: Dict[str, Tensor]
    history: List[Tensor]
    pairs: List[Tuple[int, Optional[Tensor]]]
    last: Optional[Tensor]

    def __init__(self) -> None:
        super().__init__()
        self.cache = {}
        self.history = []
        self.pairs = []
        self.last = None
        self.register_buffer("plain", torch.zeros(2, 3))

    def forward(self, x: Tensor, others: List[Tensor], key: str) -> Tuple[Dict[str, Tensor], List[Tensor], Tensor]:
        last = self.last
        total = self.plain.sum()
        if last is not None:
            total = total + last.sum()
        self.last = x
        self.plain = x[:, 1:]
        if key == "error":
            raise RuntimeError("after a write")
        self.cache[key] = others[0]
        self.history.append(x[0])
        self.history.append(x)
        self.history.append(others[-1].t())
        self.history[0] += 1
        self.pairs.append((len(self.pairs), others[0][1]))
        for _, each in self.pairs:
            if each is not None:
                total = total + each.sum()
        return self.cache, self.history, total


def _history_calls():
    return [(torch.randn(2, 3), [torch.randn(2, 3), torch.randn(2, 3)], key) for key in ("a", "b", "a", "c")]


def test_arguments_are_kept(tmp_path):
    torch.manual_seed(0)
    calls = _history_calls()
    rekindle.build(rekindle.script(History()), tmp_path, calls)
    library = rekindle.NativeLibrary(tmp_path)
    given = copy.deepcopy(calls)
    for call, each in zip(given, expected_of(History(), calls), strict=True):
        assert same(library(*call), each)
        # The memory of arguments is the caller's again: no later call sees it.
        for tensor in (call[0], *call[1]):
            tensor.fill_(torch.nan)
    with pytest.raises(RuntimeError, match=r"^after a write\n"):
        library(torch.ones(2, 3), [torch.ones(2, 3)], "error")


@pytest.mark.skipif(compiler() is None or memory_checker() is None, reason="this machine has no valgrind")
def test_memory_of_arguments_that_are_kept(tmp_path):
    torch.manual_seed(0)
    calls = _history_calls()
    calls.insert(2, (torch.ones(2, 3), [torch.ones(2, 3)], "error"))
    build = rekindle.build(
        rekindle.script(History()), tmp_path, [calls[0], calls[1]], cpu="x86-64-v3", freestanding=True
    )
    answers = run(build, "forward", calls, tmp_path, prefix=memory_checker())
    assert [each.code for each in answers] == [0, 0, 1, 0, 0]


class Last(nn.Module):
    last: Optional[Tensor]

    def __init__(self) -> None:
        super().__init__()
        self.last = None

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        last = self.last
        y = x * 2
        if last is not None:
            last += y
            y = last
        self.last = y
        return y, y


def test_results_belong_to_the_caller(tmp_path):
    """A result shares no memory with attributes or with other results."""
    import ctypes

    from rekindle.building.native_library import Value, _to_c, _to_python

    x = torch.ones(3)
    rekindle.build(rekindle.script(Last()), tmp_path, [(x,), (x,)])
    library = rekindle.NativeLibrary(tmp_path)
    kept: list = []
    argument, results = _to_c(x, kept), [Value() for _ in range(2)]
    forward = library._library.net_forward
    for result in results:
        assert forward(library._instance, ctypes.byref(argument), ctypes.c_int64(1), ctypes.byref(result)) == 0
    first, second = (_to_python(each, library) for each in results)
    assert same(first, (torch.full((3,), 2.0),) * 2)
    assert same(second, (torch.full((3,), 4.0),) * 2)
    items = (Value * 2).from_address(results[0].payload.address)
    assert ctypes.c_void_p.from_address(items[0].payload.address).value != (
        ctypes.c_void_p.from_address(items[1].payload.address).value
    )
    for result in results:
        library._library.net_free(ctypes.byref(result))
