"""``state_dict()`` of compiled modules: what Python classes and hooks add to it is there as in eager."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle


class Counting(nn.Module):
    """Keeps a number and a text in its ``state_dict()``, in each of the ways that there are."""

    __constants__ = ["name"]

    def __init__(self, count: int = 3) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.count = count
        self.name = "counting"

    def described(self) -> str:
        return f"{self.name} {self.count}"

    def get_extra_state(self) -> dict[str, Any]:
        return {"count": self.count, "text": self.described()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self.count = state["count"]

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}doubled"] = torch.tensor(2 * self.count)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *others: Any) -> None:
        assert state_dict.pop(f"{prefix}doubled") % 2 == 0
        super()._load_from_state_dict(state_dict, prefix, *others)

    @torch.jit.export
    def increase(self) -> None:
        self.count += 1

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight * self.count


class Hooked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.count = 1
        self.events: list[str] = []
        self._register_state_dict_hook(self._add_count)
        self.register_state_dict_post_hook(lambda module, state, prefix, meta: state.update({f"{prefix}post": 1}))
        self.register_state_dict_pre_hook(self._before)
        self._register_load_state_dict_pre_hook(self._take_count)
        self.register_load_state_dict_pre_hook(lambda module, state, prefix, *_: state.pop(f"{prefix}post"))
        self.register_load_state_dict_post_hook(self._after)

    def _add_count(self, module: nn.Module, state: Any, prefix: str, metadata: Any) -> None:
        state[f"{prefix}count"] = torch.tensor(self.count)

    def _before(self, module: nn.Module, prefix: str, keep_vars: bool) -> None:
        EVENTS.append(f"before {prefix} {self.count}")

    def _take_count(self, state: Any, prefix: str, *others: Any) -> None:
        self.count = int(state.pop(f"{prefix}count"))

    def _after(self, module: nn.Module, keys: Any) -> None:
        EVENTS.append(f"after {self.count}")

    @torch.jit.export
    def increase(self) -> None:
        self.count += 1

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight * self.count


EVENTS: list[str] = []


def shown(state: dict[str, Any]) -> dict[str, Any]:
    return {key: value.tolist() if isinstance(value, Tensor) else value for key, value in state.items()}


@pytest.mark.parametrize("cls", [Counting, Hooked])
def test_they_are_those_of_eager(cls: Any) -> None:
    for compiled in (False, True):
        EVENTS.clear()
        inner = cls()
        outer = nn.Sequential(nn.BatchNorm1d(2), inner)
        module: Any = rekindle.script(outer) if compiled else outer
        module[1].increase()
        state = module.state_dict()
        found = shown(state), dict(state._metadata), list(EVENTS)
        changed = {key: value + 4 if key.endswith("weight") else value for key, value in state.items()}
        module[1].increase()
        module[1].increase()
        loaded = module.load_state_dict(dict(changed))
        end = [*found, repr(loaded), list(EVENTS), module[1].count, module[1](torch.ones(1)).tolist()]
        if not compiled:
            expected = end
    assert end == expected
    assert inner.count != module[1].count or cls is Hooked
    assert module[1].weight is inner.weight


def test_copies_have_hooks_of_their_own() -> None:
    module: Any = rekindle.script(Hooked())
    copied: Any = copy.deepcopy(module)
    copied.increase()
    assert (module.state_dict()["count"], copied.state_dict()["count"]) == (1, 2)


def test_metadata_are_those_of_the_class() -> None:
    """The versions by which PyTorch's own classes know older checkpoints."""

    class Versioned(nn.Linear):
        _version = 7

    eager = nn.Sequential(nn.BatchNorm1d(2), Versioned(2, 2))
    assert rekindle.script(eager).state_dict()._metadata == eager.state_dict()._metadata
    old = eager.state_dict()
    del old["0.num_batches_tracked"]
    del old._metadata
    compiled = rekindle.script(eager)
    assert not compiled.load_state_dict(old).missing_keys


class NeedsMore(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.settings = {"a": object()}

    def get_extra_state(self) -> int:
        return len(self.settings)

    def set_extra_state(self, state: int) -> None:
        raise KeyError(state)

    def forward(self, x: Tensor) -> Tensor:
        return x


def test_what_programs_cannot_hold_is_named() -> None:
    module = rekindle.script(NeedsMore())
    with pytest.raises(AttributeError) as caught:
        module.state_dict()
    assert str(caught.value) == (
        "'NeedsMore' object has no attribute 'settings': the method state_dict() of its class needs it, and the "
        "compiled module has the attributes that programs can hold, and no others. Call state_dict() on the module "
        "that was compiled"
    )


def test_assigned_parameters_are_read_by_programs() -> None:
    class Assigned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))
            self.all = [self.weight]

        def _load_from_state_dict(self, *args: Any) -> None:
            super()._load_from_state_dict(*args)

        def forward(self, x: Tensor) -> Tensor:
            return x * self.weight + self.all[0]

    module = rekindle.script(Assigned())
    module.load_state_dict({"weight": torch.full((1,), 3.0)}, assign=True)
    assert module(torch.ones(1)).tolist() == [6.0]


def test_traced_modules_have_hooks() -> None:
    traced = rekindle.trace(nn.Sequential(Hooked()), torch.ones(1))
    assert list(traced.state_dict()) == ["0.weight", "0.count", "0.post"]
