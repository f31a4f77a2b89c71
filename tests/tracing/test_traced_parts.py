"""Traced modules and functions within compiled programs: what was traced is what runs, whatever their Python source
says of arguments that the trace was not given."""

import copy
import io

import pytest
import torch
from torch import nn

import rekindle
from rekindle import errors


class Scaled(nn.Module):
    """A module that shows by its result whether its source was compiled."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([2.0, 3.0]))

    def forward(self, x, k=2):
        return x * self.weight * (100 if torch.jit.is_scripting() else k)


class Annotated(Scaled):
    def forward(self, x: torch.Tensor, k: int = 2) -> torch.Tensor:
        return x * self.weight * (100 if torch.jit.is_scripting() else k)


class KeywordOnly(Scaled):
    def forward(self, x, *, k=2, name="a"):
        return x * self.weight * (100 if torch.jit.is_scripting() else k + len(name))


class AnyNumber(Scaled):
    def forward(self, *xs, **others):
        return xs[0] * self.weight * (100 if torch.jit.is_scripting() else 2)


class Within(nn.Module):
    """A module whose part has the default."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x, n=3):
        return self.part(x) + (100 if torch.jit.is_scripting() else n)


class Methods(Scaled):
    def other(self, x, k=5):
        return x + (100 if torch.jit.is_scripting() else k)


class Parent(nn.Module):
    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part


class Calls(Parent):
    def forward(self, x):
        return self.part(x) + 1


class ByName(Parent):
    def forward(self, x):
        return self.part(x=x) + 1


class OfForward(Parent):
    def forward(self, x):
        return self.part.forward(x) + 1


class InLoop(Parent):
    def forward(self, x):
        for _ in range(2):
            x = self.part(x)
        return x


def through(module, x):
    return module(x)


class Passed(Parent):
    def forward(self, x):
        return through(self.part, x) + 1


class InList(nn.Module):
    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.parts = nn.ModuleList([part, part, nn.Identity()])

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return self.parts[0](x)


class InSequential(nn.Module):
    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.parts = nn.Sequential(part, nn.ReLU(), part)

    def forward(self, x):
        return self.parts(x)


class InDict(nn.Module):
    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.parts = nn.ModuleDict({"a": part})

    def forward(self, x):
        return self.parts["a"](x)


X = torch.tensor([1.0, -1.0])
PARTS = [Scaled, Annotated, KeywordOnly, AnyNumber, lambda: Within(Scaled()), lambda: Within(Annotated())]
PARENTS = [Calls, OfForward, InLoop, Passed, InList, InSequential, InDict]


def saved(module):
    buffer = io.BytesIO()
    rekindle.save(module, buffer)
    buffer.seek(0)
    return rekindle.load(buffer)


@pytest.mark.parametrize("parent", PARENTS)
@pytest.mark.parametrize("part", PARTS)
def test_the_trace_is_what_runs(part, parent):
    eager = part().eval()
    traced = rekindle.trace(eager, X)
    expected = parent(eager)(X)
    compiled = rekindle.script(parent(traced))
    for _ in range(3):
        assert torch.equal(compiled(X), expected)


@pytest.mark.parametrize(
    "way",
    [
        copy.copy,
        copy.deepcopy,
        saved,
        lambda module: rekindle.trace(Calls(module), X).part,
        lambda module: rekindle.script(Calls(module)).part,
        lambda module: rekindle.freeze(copy.deepcopy(module).eval()),
    ],
    ids=["copied", "deeply copied", "saved and loaded", "traced again", "a part of another", "frozen"],
)
@pytest.mark.parametrize("part", [Scaled, lambda: Within(Scaled())], ids=["plain", "nested"])
def test_what_becomes_of_a_trace_is_that_trace(part, way):
    eager = part().eval()
    traced = way(rekindle.trace(eager, X))
    for parent in PARENTS:
        assert torch.equal(rekindle.script(parent(traced))(X), parent(eager)(X))


@pytest.mark.parametrize("way", [copy.deepcopy, saved, lambda module: rekindle.freeze(module.eval())])
def test_a_parent_keeps_the_trace(way):
    compiled = way(rekindle.script(Calls(rekindle.trace(Scaled(), X))))
    assert torch.equal(compiled(X), Calls(Scaled())(X))


def test_by_name():
    assert torch.equal(rekindle.script(ByName(rekindle.trace(Scaled(), X)))(X), ByName(Scaled())(X))


def test_an_argument_that_was_traced_may_be_given():
    class Given(Parent):
        def forward(self, x, k):
            return self.part(x, k) - self.part(x, k=k) + self.part(k=k, x=x)

    traced = rekindle.trace(Scaled(), (X, torch.tensor(4.0)))
    five = torch.tensor(5.0)
    assert torch.equal(rekindle.script(Given(traced))(X, five), Scaled()(X, five))


def test_methods_of_trace_module():
    class Both(Parent):
        def forward(self, x):
            return self.part(x) + self.part.other(x)

    traced = rekindle.trace_module(Methods(), {"forward": X, "other": X})
    assert torch.equal(rekindle.script(Both(traced))(X), Both(Methods())(X))


def test_functions():
    def scaled(x, k=2):
        return x * (100 if torch.jit.is_scripting() else k)

    traced = rekindle.trace(scaled, X)

    def apply(f, x):
        return f(x)

    def calls(x):
        return traced(x) + traced(x=x) + apply(traced, x) + torch.stack([traced(v) for v in x.unbind()])

    assert torch.equal(rekindle.script(calls)(X), calls(X))
    assert torch.equal(calls(X), X * 8)


def test_gradients_reach_the_parameters_of_the_trace():
    part, alone = Scaled(), Scaled()
    rekindle.script(Calls(rekindle.trace(part, X)))(X).sum().backward()
    Calls(alone)(X).sum().backward()
    assert torch.equal(part.weight.grad, alone.weight.grad)


# ------------------------------------------------------------------------------------------- what the trace cannot take


class GivenDefault(Parent):
    def forward(self, x):
        return self.part(x, 2)


class GivenAnother(Parent):
    def forward(self, x):
        return self.part(x, k=3)


@pytest.mark.parametrize("part", [Scaled, Annotated])
@pytest.mark.parametrize(
    ("parent", "problem", "line"),
    [
        (GivenDefault, "(Tensor, int): it takes at most 1 positional argument, got 2", "self.part"),
        (GivenAnother, "(Tensor, k: int): it has no argument 'k'", "self.part"),
    ],
)
def test_an_argument_that_was_not_traced_cannot_be_given(part, parent, problem, line):
    with pytest.raises(errors.SchemaError) as caught:
        rekindle.script(parent(rekindle.trace(part(), X)))
    text = f"'forward' cannot be called with {problem}.\nIt is declared as\n  forward(Tensor x) -> Tensor"
    assert caught.value.message == text
    assert caught.value.hint == (
        "'k' of 'forward' was not traced: what it was in the trace is part of the code. Leave it out here, trace the "
        "module with it as an input, or do not trace the module"
    )
    assert caught.value.range.text == line


class Uncalled(nn.Module):
    """A module that does not call its part."""

    def __init__(self) -> None:
        super().__init__()
        self.part = Scaled()

    def forward(self, x):
        return x + 1


class CallsPartOfPart(Parent):
    def forward(self, x):
        return self.part.part(x)


@pytest.mark.parametrize("register", ["register_forward_hook", "register_forward_pre_hook"])
def test_hooks_of_a_part_that_the_trace_did_not_call_are_not_lost_silently(register):
    eager = Uncalled()
    getattr(eager.part, register)(lambda module, *given: None)
    traced = rekindle.trace(eager, X)
    text = "the module 'Scaled' is part of a trace that did not call it, so that its hooks are lost"
    for use in (lambda: traced.part(X), lambda: rekindle.script(CallsPartOfPart(traced))):
        with pytest.raises(errors.NotScriptableError) as caught:
            use()
        assert caught.value.message == text
        assert caught.value.hint == "call it in what is traced, or remove its hooks before tracing"
