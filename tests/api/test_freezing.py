"""Frozen modules answer as the modules that they were made of, and hold what may still change."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.analysis.attribute_writes import nodes_within
from rekindle.errors import NotScriptableError
from rekindle.ir.verifier import verify


def verified(module: rekindle.ScriptModule) -> rekindle.ScriptModule:
    """The module, after its programs were looked at."""
    for part in module.modules():
        for record in part.script_type.methods.values():
            verify(record.graph)
    return module


def attributes(module: rekindle.ScriptModule) -> list[str]:
    """The dotted names of all attributes of a module and of its parts, but for the parts themselves."""
    return sorted(
        f"{path}.{name}" if path else name
        for path, part in module.named_modules()
        for name in part.script_type.attributes
        if name not in part._modules
    )


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)
        self.factors = [1.0, 2.0]
        self.named = {"shift": 3}
        self.pair = (1, "x")

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.inner(x)) * self.factors[1] + self.named["shift"]
        return x if self.pair[1] == "x" else -x


class Nest(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.groups = nn.ModuleList([nn.ModuleList([Block(4), Block(4)]), nn.ModuleList([Block(4)])])
        self.head = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Dropout(0.3))

    def forward(self, x: Tensor) -> Tensor:
        for group in self.groups:
            for block in group:
                x = x + block(x)
        return self.head(x)

    @torch.jit.export
    def features(self, x: Tensor) -> Tensor:
        return self.groups[0][0](x)


class Counter(nn.Module):
    """Replaces an attribute, writes to a buffer and to a list at each call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(2))
        self.weight = nn.Parameter(torch.ones(2))
        self.calls = 0
        self.seen: list[int] = [7]

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        self.seen.append(self.calls)
        self.total.add_(x)
        return self.total * self.weight + self.calls + self.seen[-1] + len(self.seen)


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = Counter()
        self.other = Counter()
        self.plain = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.one(self.plain(x)) + self.other.weight


class Aliased(nn.Module):
    """Writes to a buffer that three names stand for, one of them a list, one a view."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("base", torch.zeros(4))
        self.register_buffer("same", self.base)
        self.register_buffer("view", self.base[1:3])
        self.listed = [self.base]
        self.register_buffer("apart", torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        y = self.base * 2 + self.listed[0] + self.view.sum()
        self.same.add_(x)
        return y + self.base + self.listed[0] * self.apart


class Swapped(nn.Module):
    """What an attribute is replaced with is written to under its new name."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("start", torch.zeros(2))
        self.register_buffer("state", torch.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        before = self.start * 1
        self.state = self.start
        self.state.add_(x)
        return before + self.state


class Steps(nn.Module):
    """One method stores what another one writes to."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("start", torch.zeros(2))
        self.register_buffer("state", torch.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        y = self.start * 3 + self.state
        self.state = self.start
        return y + x

    @torch.jit.export
    def step(self, x: Tensor) -> Tensor:
        self.state.add_(x)
        return self.state * 2


@torch.jit.interface
class Activation(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Doubles(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(2.0))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.factor


class Chooses(nn.Module):
    act: Activation

    def __init__(self) -> None:
        super().__init__()
        self.act = Doubles()
        self.linear = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.act.forward(self.linear(x))


class Swaps(nn.Module):
    act: Activation
    spare: Activation

    def __init__(self) -> None:
        super().__init__()
        self.act = Doubles()
        self.spare = Doubles()
        self.spare.factor.data.fill_(5.0)
        self.linear = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.act.forward(self.linear(x))
        kept = self.act
        self.act = self.spare
        self.spare = kept
        return y


class Forks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Linear(2, 2)
        self.right = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        waiting = torch.jit.fork(self.left, x)
        return self.right(x) + torch.jit.wait(waiting)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4, num_layers=2)

    def forward(self, x: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        return self.lstm(x)


def shared() -> nn.Module:
    module = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    module[2].weight = module[0].weight
    return module


CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], list[str]]] = {
    "nested lists of modules": (Nest, (5, 4), []),
    "state": (Counter, (2,), ["calls", "seen", "total"]),
    "state of one part": (Two, (2,), ["one.calls", "one.seen", "one.total"]),
    "aliases": (Aliased, (4,), ["base", "listed", "same", "view"]),
    "replaced": (Swapped, (2,), ["start", "state"]),
    "an interface": (Chooses, (3, 2), []),
    "forks": (Forks, (3, 2), []),
    "shared parameters": (shared, (2, 3), []),
    "recurrent": (Recurrent, (5, 2, 3), []),
    "attention": (lambda: nn.TransformerEncoderLayer(8, 2, 16), (5, 2, 8), []),
}


def same(found: Any, expected: Any) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_three_calls_answer_as_eager(name: str) -> None:
    make, shape, remaining = CASES[name]
    torch.manual_seed(0)
    module = make().eval()
    compiled = rekindle.script(copy.deepcopy(module))
    frozen = verified(rekindle.freeze(compiled))
    assert attributes(frozen) == remaining
    with torch.no_grad():
        for call in range(3):
            x = torch.randn(shape) + call
            same(frozen(x), module(x))


TORCH_JIT_DIFFERS = {
    "aliases": "torch.jit refuses attributes that overlap",
    "replaced": "torch.jit makes a constant of what it was replaced with, which is written to",
    "attention": "torch.jit keeps two weights for a branch that evaluation never takes",
    "an interface": "what torch.jit saves mentions the interface without its definition",
}
"""Where ``torch.jit.freeze`` leaves other attributes, or nothing that can be looked at, and why."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_torch_jit_keeps_the_same_attributes(name: str) -> None:
    make, _, remaining = CASES[name]
    try:
        buffer = io.BytesIO()
        torch.jit.save(torch.jit.freeze(torch.jit.script(make().eval())), buffer)
        theirs = attributes(rekindle.load(buffer.getvalue()))
    except (RuntimeError, ValueError):
        theirs = ["it is not recorded"]
    assert (theirs != remaining) == (name in TORCH_JIT_DIFFERS), theirs


@pytest.mark.parametrize("name", CASES)
def test_saved_and_loaded(name: str) -> None:
    make, shape, _ = CASES[name]
    torch.manual_seed(0)
    module = make().eval()
    frozen = rekindle.freeze(rekindle.script(copy.deepcopy(module)))
    archive = frozen.save_to_buffer()
    theirs = torch.jit.load(io.BytesIO(archive))
    ours = rekindle.load(io.BytesIO(archive))
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(shape)
            expected = module(x)
            for each in (frozen, theirs, ours):
                same(each(x), expected)


def test_the_original_is_left_alone() -> None:
    compiled = rekindle.script(Counter().eval())
    before = str(compiled.graph)
    frozen = rekindle.freeze(compiled)
    frozen(torch.ones(2))
    assert (compiled.calls, compiled.seen, compiled.total.tolist()) == (0, [7], [0.0, 0.0])
    assert str(compiled.graph) == before
    with torch.no_grad():
        compiled.weight.fill_(9.0)
    same(frozen(torch.ones(2)), rekindle.freeze(rekindle.script(twice(Counter())))(torch.ones(2)))


def twice(counter: Counter) -> nn.Module:
    counter.eval()
    counter(torch.ones(2))
    return counter


def test_several_methods_share_what_one_of_them_writes() -> None:
    module = Steps().eval()
    frozen = verified(rekindle.freeze(rekindle.script(copy.deepcopy(module)), ["step"]))
    assert attributes(frozen) == ["start", "state"]
    for _ in range(3):
        x = torch.rand(2)
        same(frozen(x), module(x))
        same(frozen.step(x), module.step(x))
    alone = rekindle.freeze(rekindle.script(Steps().eval()))
    assert attributes(alone) == ["state"]
    assert not hasattr(alone, "step")


def test_modules_that_are_swapped_stay_modules() -> None:
    torch.manual_seed(0)
    module = rekindle.script(Swaps().eval())
    frozen = verified(rekindle.freeze(module))
    assert attributes(frozen) == ["act.factor", "act.training", "spare.factor", "spare.training"]
    x = torch.randn(3, 2)
    for _ in range(3):
        same(frozen(x), module(x))


def test_preserved_attributes_can_be_assigned() -> None:
    frozen = rekindle.freeze(rekindle.script(Nest().eval()), ["head.0.bias", "features", "groups"])
    assert "head.0.bias" in attributes(frozen)
    assert "groups.0.0.inner.weight" in attributes(frozen)
    x = torch.randn(5, 4)
    with torch.no_grad():
        before = frozen(x)
        getattr(frozen.head, "0").bias.add_(100.0)
        assert (frozen(x) - before).abs().max() > 50
        same(frozen.features(x), getattr(getattr(frozen.groups, "0"), "0")(x))


def test_copied_and_moved() -> None:
    torch.manual_seed(0)
    module = Nest().eval()
    frozen = rekindle.freeze(rekindle.script(module))
    copied = copy.deepcopy(frozen)
    moved = copied.double()
    x = torch.randn(5, 4)
    with torch.no_grad():
        same(frozen(x), module(x))
        same(verified(moved)(x.double()), copy.deepcopy(module).double()(x.double()))
    constants = [
        node.output.type.dtype
        for node in nodes_within(moved.forward.graph)
        if node.kind == "prim::Constant" and isinstance(node.attributes.get("value"), torch.Tensor)
    ]
    assert set(constants) == {torch.float64}


def test_inputs_get_gradients_and_constants_none() -> None:
    module = Nest().eval()
    frozen = rekindle.freeze(rekindle.script(module))
    x, y = (torch.ones(5, 4, requires_grad=True) for _ in range(2))
    frozen(x).sum().backward()
    module(y).sum().backward()
    same(x.grad, y.grad)
    assert list(frozen.parameters()) == []


def test_looks() -> None:
    frozen = rekindle.freeze(rekindle.script(Chooses().eval()))
    assert repr(frozen) == "ScriptModule(original_name=Chooses)"
    assert rekindle.inspect(io.BytesIO(frozen.save_to_buffer())) is not None
    assert "aten::linear" in str(frozen.graph)
    assert frozen.code.startswith("def forward(self,")
    again = rekindle.freeze(frozen)
    assert [node.kind for node in again.graph.nodes] == [node.kind for node in frozen.graph.nodes]


# --------------------------------------------------------------------------------------------------------------- errors


def test_it_takes_compiled_modules_in_evaluation_mode() -> None:
    with pytest.raises(NotScriptableError) as caught:
        rekindle.freeze(nn.ReLU())  # type: ignore[arg-type]
    assert str(caught.value) == (
        "'freeze' takes compiled modules, not a ReLU\nHint: compile it first: rekindle.script(module)"
    )
    with pytest.raises(NotScriptableError) as caught:
        rekindle.freeze(rekindle.script(nn.ReLU()))
    assert str(caught.value) == "'freeze' takes modules in evaluation mode\nHint: call .eval() first"


def test_names_in_one_string_are_refused() -> None:
    module = rekindle.script(Chooses().eval())
    with pytest.raises(TypeError) as caught:
        rekindle.freeze(module, preserved_attrs="forward")
    assert str(caught.value) == ("'preserved_attrs' takes a list of names, not a string: preserved_attrs=['forward']")
    with pytest.raises(TypeError) as caught:
        rekindle.optimize_for_inference(module, "forward")
    assert str(caught.value) == "'other_methods' takes a list of names, not a string: other_methods=['forward']"
    with pytest.raises(TypeError) as caught:
        rekindle.run_frozen_optimizations(rekindle.freeze(module), preserved_methods="")
    assert str(caught.value) == "'preserved_methods' takes a list of names, not a string: preserved_methods=['']"


@pytest.mark.parametrize("name", ["nothing", "linear.nothing", "nothing.weight"])
def test_names_that_are_not_there(name: str) -> None:
    with pytest.raises(NotScriptableError) as caught:
        rekindle.freeze(rekindle.script(Chooses().eval()), [name])
    assert str(caught.value) == f"the module 'Chooses' has no attribute or method '{name}' that could be preserved"


class WithoutForward(nn.Module):
    @torch.jit.export
    def encode(self, x: Tensor) -> Tensor:
        return x + 1


def test_a_module_without_forward() -> None:
    module = rekindle.script(WithoutForward().eval())
    with pytest.raises(NotScriptableError) as caught:
        rekindle.freeze(module)
    assert str(caught.value) == (
        "the module 'WithoutForward' has no method 'forward' to freeze\n"
        "Hint: name the methods to keep: rekindle.freeze(module, preserved_attrs=['method'])"
    )
    assert rekindle.freeze(module, ["encode"]).encode(torch.zeros(1)).item() == 1


class SparseAttributes(nn.Module):
    """Two tensors without strides, which ``torch.equal`` and ``copy.deepcopy`` refuse in some layouts."""

    def __init__(self, layout: torch.layout) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a = torch.rand(4, 4).to_sparse(layout=layout)
        self.b = torch.rand(4, 4).to_sparse(layout=layout)

    def forward(self, x: Tensor) -> Tensor:
        return x.matmul(self.a).matmul(self.b)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_sparse_attributes_become_constants(layout: torch.layout) -> None:
    eager = SparseAttributes(layout).eval()
    x = torch.rand(4, 4).to_sparse(layout=layout)
    frozen = rekindle.freeze(rekindle.script(eager))
    buffer = io.BytesIO()
    rekindle.save(frozen, buffer)
    buffer.seek(0)
    expected = eager(x).to_dense()
    torch.testing.assert_close(frozen(x).to_dense(), expected)
    torch.testing.assert_close(rekindle.load(buffer)(x).to_dense(), expected)
