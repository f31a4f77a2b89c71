"""The native guard of a version's assumptions returns what the guard in Python returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from rekindle.codegen.plan_runtime.library import plan_library
from rekindle.ir.types import TENSOR
from rekindle.passes.simplification.partial_evaluation import PRESENT, AttributeRead, ModulePath
from rekindle.runtime.strategies import attribute_checks
from rekindle.runtime.strategies.call_facts import CallFacts, _value_of


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.register_buffer("mean", torch.zeros(2))
        self.flag = True
        self.count = 70_000
        self.scale = 0.0
        self.name = "some text of several words"
        self.nothing: int | None = None


class Whole(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = Part()
        self.rate = 2.5


class Subclass(Tensor):
    pass


SELF = ModulePath(0)
PART = SELF.submodule("part")
LINEAR = PART.submodule("linear")
READS = [
    *(AttributeRead(PART, name) for name in ("flag", "count", "scale", "name", "nothing", "mean")),
    *(AttributeRead(LINEAR, name) for name in ("weight", "bias", "in_features", "training")),
    AttributeRead(SELF, "rate"),
]


def facts_of(module: nn.Module) -> CallFacts:
    values: dict[AttributeRead, object] = {}
    for read in READS:
        value = _value_of([module], read)
        is_tensor = isinstance(value, Tensor)
        values[read] = (
            attribute_checks.TensorType(value.dtype, value.device, (None,) * value.dim()) if is_tensor else value
        )
    return CallFacts({1: None, 2: PRESENT, 3: True}, values)


@pytest.fixture
def verdicts(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """The verdicts of the test in Python from now on."""
    if plan_library() is None:
        pytest.skip("this platform has no machine code of plans: the test in Python is the only one")
    found: list[bool] = []
    test = attribute_checks.AttributeRows.test

    def noting(self: Any, decide: Callable[..., bool]) -> Callable[..., bool] | None:
        def noting_verdict(*arguments: Any) -> bool:
            found.append(decide(*arguments))
            return found[-1]

        return test(self, noting_verdict)

    monkeypatch.setattr(attribute_checks.AttributeRows, "test", noting)
    return found


def _half(module: Whole) -> None:
    module.part.linear.weight.data = module.part.linear.weight.data.half()


def _rank(module: Whole) -> None:
    module.part.mean = torch.zeros(2, 1)


def _subclass(module: Whole) -> None:
    module.part.mean = torch.zeros(2).as_subclass(Subclass)


def _meta(module: Whole) -> None:
    module.part.linear.weight = nn.Parameter(torch.zeros(2, 3, device="meta"))


def _no_bias(module: Whole) -> None:
    module.part.linear.bias = None


def _other_part(module: Whole) -> None:
    module.part = Part()


def _no_part(module: Whole) -> None:
    del module.part


def _another_bias(module: Whole) -> None:
    module.part.linear.bias = nn.Parameter(torch.ones(2), requires_grad=False)


CHANGES: dict[str, tuple[Callable[[Whole], None], bool]] = {
    "nothing": (lambda module: None, True),
    "a flag": (lambda module: setattr(module.part, "flag", False), False),
    "1 for True": (lambda module: setattr(module.part, "flag", 1), False),
    "an equal int": (lambda module: setattr(module.part, "count", int("70000")), True),
    "an equal float for an int": (lambda module: setattr(module.part, "count", 70_000.0), False),
    "another int": (lambda module: setattr(module.part, "count", 70_001), False),
    "a zero of the other sign": (lambda module: setattr(module.part, "scale", -0.0), False),
    "an equal float": (lambda module: setattr(module, "rate", float("2.5")), True),
    "another float": (lambda module: setattr(module, "rate", 2.25), False),
    "an equal text": (lambda module: setattr(module.part, "name", " ".join(module.part.name.split())), True),
    "another text": (lambda module: setattr(module.part, "name", ""), False),
    "a number for None": (lambda module: setattr(module.part, "nothing", 0), False),
    "training": (lambda module: module.eval() and None, False),
    "another dtype": (_half, False),
    "another rank": (_rank, False),
    "a class of tensors": (_subclass, False),
    "another device": (_meta, False),
    "no bias": (_no_bias, False),
    "another parameter of the same kind": (_another_bias, True),
    "another part of the same kind": (_other_part, True),
    "no part": (_no_part, False),
    "a missing attribute": (lambda module: delattr(module.part, "flag"), False),
}


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_both_tests_agree(change: str, verdicts: list[bool]) -> None:
    module = Whole()
    facts = facts_of(module)
    in_python = facts.hold
    assert in_python is not None
    facts.use_machine_code()
    assert facts.hold is not None
    assert facts.hold is not in_python
    make, holds = CHANGES[change]
    make(module)
    arguments = (module, None, 1, True)
    assert in_python(*arguments) is holds
    assert facts.hold(*arguments) is holds
    assert verdicts == ([] if holds else [False]), "Python decides where machine code does not hold, and nowhere else"


@pytest.mark.parametrize(
    ("arguments", "holds"),
    [((None, 1, True), True), ((0, 1, True), False), ((None, None, True), False), ((None, 1, False), False)],
)
def test_arguments(arguments: tuple[object, ...], holds: bool, verdicts: list[bool]) -> None:
    module = Whole()
    facts = facts_of(module)
    facts.use_machine_code()
    assert facts.hold is not None
    assert facts.hold(module, *arguments) is holds
    assert facts.hold(module, *arguments, "more", "of", "them") is holds
    assert len(verdicts) == (0 if holds else 2)


@pytest.mark.parametrize(
    ("argument", "holds"),
    [
        (torch.ones(2), True),
        (nn.Parameter(torch.ones(2)), True),
        (torch.ones(2).as_subclass(Subclass), False),
        (None, False),
        ([torch.ones(2)], False),
        (torch.float32, False),
    ],
)
def test_tensors_of_a_union(argument: object, holds: bool, verdicts: list[bool]) -> None:
    facts = CallFacts({1: TENSOR}, {})
    in_python = facts.hold
    facts.use_machine_code()
    assert in_python is not None
    assert facts.hold is not None
    assert in_python(3, argument) is facts.hold(3, argument) is holds
    assert verdicts == ([] if holds else [False])


def test_a_call_with_too_few_arguments_raises_what_python_raises(verdicts: list[bool]) -> None:
    facts = facts_of(Whole())
    facts.use_machine_code()
    assert facts.hold is not None
    with pytest.raises(TypeError, match=r"missing 2 required positional arguments: 'r2' and 'r3'"):
        facts.hold(Whole(), None)


def test_an_object_without_attributes_is_no_module(verdicts: list[bool]) -> None:
    facts = facts_of(Whole())
    facts.use_machine_code()
    assert facts.hold is not None
    assert facts.hold(3, None, 1, True) is False
    assert verdicts == [False]
