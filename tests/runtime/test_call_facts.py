"""What is assumed of calls, and calls that are not as assumed."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.runtime.executor import with_strategy


class Net(nn.Module):
    def __init__(self, scale: float = 2.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.5)
        self.scale = scale
        self.mode = "add"

    def forward(self, x: Tensor, mask: Tensor | None = None, negate: bool = False) -> Tensor:
        x = self.dropout(x) * self.scale
        if mask is not None:
            x = x + mask
        if self.mode == "sub":
            x = x - 100
        return -x if negate else x


def versions_of(module: Any) -> int:
    return len(with_strategy(module.script_type.methods["forward"]).strategy.versions)


def agrees(compiled: Any, module: nn.Module, *args: Any) -> None:
    for _ in range(3):
        assert torch.equal(compiled(*args), module(*args))


X = torch.arange(4.0)


def test_modes_and_attributes_that_change_between_calls() -> None:
    module = Net().eval()
    compiled = rekindle.script(module)
    agrees(compiled, module, X)
    for each in (module, compiled):
        each.mode = "sub"
        each.scale = 3.0
    agrees(compiled, module, X)
    agrees(compiled, module, X, X, True)
    compiled.train()
    assert any(not torch.equal(compiled(X), compiled(X)) for _ in range(20))
    compiled.eval()
    agrees(compiled, module, X)


def test_writes_past_setattr_are_seen() -> None:
    module = Net().eval()
    compiled = rekindle.script(module)
    agrees(compiled, module, X)
    for each in (module, compiled):
        each.__dict__["scale"] = -1.0
        each.dropout.__dict__["training"] = False
        vars(each)["mode"] = "sub"
    agrees(compiled, module, X)
    compiled._modules["dropout"].__dict__["training"] = True
    assert any(not torch.equal(compiled(X), compiled(X)) for _ in range(20))


def test_zeros_of_either_sign() -> None:
    class Signed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.zero = 0.0

        def forward(self, x: Tensor) -> float:
            return math.copysign(1.0, self.zero)

    compiled = rekindle.script(Signed())
    assert compiled(X) == 1.0
    compiled.zero = -0.0
    assert compiled(X) == -1.0
    compiled.zero = 0.0
    assert compiled(X) == 1.0


def test_equal_numbers_of_other_classes() -> None:
    class Step(nn.Module):
        step: int | float | bool

        def forward(self, x: Tensor) -> Tensor:
            step = self.step
            if isinstance(step, bool):
                return x if step else -x
            return x[step:] if isinstance(step, int) else x * step

    module = Step()
    module.step = 1
    compiled = rekindle.script(module)
    for step in (1, 1.0, True, 1, False, 0, 0.0, True):
        module.step = compiled.step = step
        agrees(compiled, module, X)


def test_an_attribute_that_keeps_changing_is_assumed_no_more() -> None:
    class Annealed(Net):
        pass

    module = Annealed().eval()
    compiled = rekindle.script(module)
    for step in range(20):
        for each in (module, compiled):
            each.scale = step / 4
        agrees(compiled, module, X)
    assert versions_of(compiled) == 2


def test_modules_of_one_type_share_versions_as_far_as_they_are_alike() -> None:
    class Scaled(Net):
        pass

    modules = [Scaled(scale).eval() for scale in (2.0, 2.0, 3.0, 5.0)]
    compiled = [rekindle.script(each) for each in modules]
    for _ in range(2):
        for one, other in zip(compiled, modules, strict=True):
            agrees(one, other, X)
    assert versions_of(compiled[0]) == 2


def test_a_submodule_that_is_replaced() -> None:
    class Outer(nn.Module):
        def __init__(self, scale: float) -> None:
            super().__init__()
            self.inner = Net(scale)

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x)

    module, other = Outer(2.0).eval(), Outer(7.0).eval()
    compiled, replacement = rekindle.script(module), rekindle.script(other)
    agrees(compiled, module, X)
    compiled.inner = replacement.inner
    agrees(compiled, other, X)


def test_what_the_program_writes_is_not_assumed() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count = 0
            self.seen = False

        def note(self) -> int:
            self.count += 1
            self.seen = True
            return self.count

        def forward(self, x: Tensor) -> Tensor:
            before = self.count
            after = self.note()
            if self.seen:
                x = x + 1
            return x * before + after * 10 + self.count * 100

    module = Counter()
    compiled = rekindle.script(module)
    for _ in range(4):
        assert torch.equal(compiled(X), module(X))
    assert compiled.count == 4


def test_what_python_may_write_is_not_assumed() -> None:
    class Calling(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.level = 1

        @torch.jit.ignore
        def raise_level(self) -> None:
            self.level += 1

        def forward(self, x: Tensor) -> Tensor:
            x = x * self.level
            self.raise_level()
            return x + 100 * self.level

    module = Calling()
    compiled = rekindle.script(module)
    for _ in range(4):
        assert torch.equal(compiled(X), module(X))


class Quantized(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.padding_mode = "zeros"
        self.scale = 0.5

    def forward(self, x: Tensor) -> Tensor:
        if self.padding_mode != "zeros":
            x = torch.ops.quantized.mul(x, x, 0.25, 1)
        return torch.ops.quantized.add(x, x, self.scale, 3)


def test_quantized_operators_write_to_no_module() -> None:
    module = Quantized()
    compiled = rekindle.script(module)
    x = torch.quantize_per_tensor(X, 0.1, 0, torch.quint8)
    agrees(compiled, module, x)
    graph = rekindle.last_executed_graph()
    assert not graph.find_nodes("prim::If")
    for each in (module, compiled):
        each.padding_mode = "circular"
    agrees(compiled, module, x)


def test_an_attribute_that_is_gone() -> None:
    module = Net().eval()
    compiled = rekindle.script(module)
    agrees(compiled, module, X)
    del compiled.__dict__["scale"]
    with pytest.raises(AttributeError, match="has no attribute 'scale'"):
        compiled(X)
    compiled.scale = 2.0
    agrees(compiled, module, X)


def test_the_number_of_versions_is_bounded() -> None:
    class Flags(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = self.b = self.c = self.d = False

        def forward(self, x: Tensor) -> Tensor:
            for number, flag in enumerate((self.a, self.b, self.c, self.d)):
                if flag:
                    x = x + 2.0**number
            return x

    module = Flags()
    compiled = rekindle.script(module)
    for _ in range(2):
        for code in range(16):
            for each in (module, compiled):
                each.a, each.b, each.c, each.d = (bool(code >> bit & 1) for bit in range(4))
            agrees(compiled, module, X)
    assert versions_of(compiled) == 8


class Indices:
    def __init__(self, first: Tensor) -> None:
        self.first = first


class Subclass(Tensor):
    pass


def test_tensors_of_a_union_are_known() -> None:
    @rekindle.script
    def gathered(x: Tensor, index: Tensor | Indices, other: Tensor | list[Tensor]) -> Tensor:
        if isinstance(index, Indices):
            index = index.first
        if isinstance(other, Tensor):
            return x[index] + other
        assert isinstance(index, Tensor)
        return x[index] * len(other)

    index, object = torch.tensor([1, 3]), Indices(torch.tensor([0]))
    for _ in range(3):
        assert torch.equal(gathered(X, index, X[:1]), torch.tensor([1.0, 3.0]))
    executed = rekindle.last_executed_graph()
    assert executed is not None
    assert executed.find_node("prim::isinstance") is None
    for _ in range(3):
        assert torch.equal(gathered(X, object, X[:1] + 1), torch.tensor([1.0]))
        assert torch.equal(gathered(X, object, [X, X]), torch.tensor([0.0]))
        assert torch.equal(gathered(X, index, [X, X]), torch.tensor([2.0, 6.0]))
        assert torch.equal(gathered(X, index, X[:1]), torch.tensor([1.0, 3.0]))
        assert type(gathered(X, index, X[:1].as_subclass(Subclass))) is Subclass
        assert gathered(X, index, nn.Parameter(X[:1])).requires_grad
