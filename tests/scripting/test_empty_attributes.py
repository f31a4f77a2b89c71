"""Attributes that ``__init__`` leaves empty: what methods put into them determines the types of their elements."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.errors import NotScriptableError

X = torch.arange(6.0).reshape(2, 3)


class Empty(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.history = []
        self.seen = {}


class AppendsItems(Empty):
    def forward(self, x):
        self.history.append(x.sum().item())
        return x * 2


class AppendsTensors(Empty):
    def forward(self, x):
        self.history.append(x)
        return torch.stack(self.history).sum()


class ReadsFirst(Empty):
    def forward(self, x):
        if len(self.history) > 0:
            x = x + self.history[-1]
        self.history.append(float(x.sum()))
        return x


class Window(Empty):
    def forward(self, x):
        self.history.append(float(x.sum()))
        if len(self.history) > 2:
            self.history.pop(0)
        return sum(self.history) / len(self.history)


class SlicesFirst(Empty):
    def forward(self, x):
        self.history = self.history[-2:]
        self.history.append(x.shape[0])
        return self.history


class Augments(Empty):
    def forward(self, x):
        self.history += [x.mean().item()]
        return len(self.history)


class Adds(Empty):
    def forward(self, x):
        self.history = self.history + [1.5]
        return self.history


class Resets(Empty):
    def forward(self, x):
        if x.sum() > 20:
            self.history = []
        self.history.append("a")
        return self.history


class AppendsTuples(Empty):
    def forward(self, x):
        self.history.append((x.shape[0], x.sum()))
        return self.history


class Extends(Empty):
    def forward(self, x):
        self.history.extend([1, 2])
        return self.history


class OfSeveralNumbers(Empty):
    def forward(self, x):
        self.history.append(1)
        self.history.append(0.5)
        return self.history


class InAnotherMethod(Empty):
    def forward(self, x):
        self.note(1.5)
        return self.history

    def note(self, value: float):
        self.history.append(value)


class Exported(Empty):
    def forward(self, x):
        return self.history

    @rekindle.export
    def note(self, value: float):
        self.history.append(value)


class FillsDict(Empty):
    def forward(self, x):
        self.seen["a"] = x.sum()
        return self.seen


class Counts(Empty):
    def forward(self, x):
        k = x.shape[0]
        if k not in self.seen:
            self.seen[k] = 0.5
        self.seen[k] += 1.0
        return self.seen


PROGRAMS: list[tuple[Callable[[], Any], str, str]] = [
    (AppendsItems, "history", "List[number]"),
    (AppendsTensors, "history", "List[Tensor]"),
    (ReadsFirst, "history", "List[float]"),
    (Window, "history", "List[float]"),
    (SlicesFirst, "history", "List[int]"),
    (Augments, "history", "List[number]"),
    (Adds, "history", "List[float]"),
    (Resets, "history", "List[str]"),
    (AppendsTuples, "history", "List[Tuple[int, Tensor]]"),
    (Extends, "history", "List[int]"),
    (OfSeveralNumbers, "history", "List[Union[float, int]]"),
    (InAnotherMethod, "history", "List[float]"),
    (Exported, "history", "List[float]"),
    (FillsDict, "seen", "Dict[str, Tensor]"),
    (Counts, "seen", "Dict[int, float]"),
]


@pytest.mark.parametrize(("make", "name", "annotation"), PROGRAMS, ids=[make.__name__ for make, _, _ in PROGRAMS])
def test_uses_tell_what_they_hold(make: Callable[[], Any], name: str, annotation: str) -> None:
    eager = make()
    compiled = rekindle.script(copy.deepcopy(eager))
    assert compiled.script_type.attributes[name].type.annotation == annotation
    assert ("history" in compiled.script_type.attributes) != ("seen" in compiled.script_type.attributes)
    for call in range(4):
        expected, found = eager(X + call), compiled(X + call)
        assert repr(found) == repr(expected)
        assert repr(getattr(compiled, name)) == repr(getattr(eager, name))
    buffer = io.BytesIO()
    rekindle.save(compiled, buffer)
    buffer.seek(0)
    assert repr(rekindle.load(buffer)(X)) == repr(eager(X))
    assert repr(rekindle.script(make())(X)) == repr(make()(X))


def test_parts_have_their_own() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.floats = AppendsTensors(), AppendsTensors(), Window()

        def forward(self, x: Tensor):
            return self.first(x) + self.second(x) + self.second(x), self.floats(x)

    eager, compiled = Both(), rekindle.script(Both())
    assert repr(compiled(X)) == repr(eager(X))
    assert [len(each.history) for each in (compiled.first, compiled.second, compiled.floats)] == [1, 2, 1]


def test_what_was_there_before_scripting_stays() -> None:
    eager = Window()
    eager(X)
    compiled = rekindle.script(eager)
    assert compiled(X + 1) == (15.0 + 21.0) / 2
    assert rekindle.script(Window())(X) == 15.0


class Reads(Empty):
    def forward(self, x):
        return x, self.history


class ByAnotherName(Empty):
    def forward(self, x):
        history = self.history
        return len(history) + len(self.history)


@pytest.mark.parametrize("make", [Reads, ByAnotherName])
def test_refused_where_nothing_tells(make: Callable[[], Any]) -> None:
    for _ in range(2):
        with pytest.raises(NotScriptableError) as caught:
            rekindle.script(make())
        message, _, place = str(caught.value).partition("\n")
        assert message == (
            f"attribute 'history' of the module '{make.__name__}' cannot be used: an empty list does not determine "
            "the type of its elements; declare its type in the class, for example: List[int]"
        )
        assert "self.history" in place


def test_an_owner_is_evaluated_once() -> None:
    class Owner:
        def __init__(self) -> None:
            self.values: dict[str, int] = {}
            self.asked: int = 0

        def itself(self) -> Owner:
            self.asked += 1
            return self

    def program() -> tuple[int, int]:
        owner = Owner()
        owner.itself().values["a"] = 1
        owner.itself().asked += 1
        return owner.asked, owner.values["a"]

    assert rekindle.script(program)() == program() == (3, 1)
