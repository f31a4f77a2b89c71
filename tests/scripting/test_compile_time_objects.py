"""Objects that are read at compile time: modules that are scripted after a change of such an object use its values."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

import rekindle
from rekindle.scripting.modules.module_inference import module_type_of


class Config:
    """A class that does not compile, since its ``__init__`` takes any options."""

    def __init__(self, **options: Any) -> None:
        self.__dict__.update(options)


class Block(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config

    def forward(self, x: Tensor) -> Tensor:
        return self.config.table["function"](x) * self.config.heads + self.config.inner.size


def new_config() -> Config:
    found = Config(heads=2, inner=Config(size=1), table={"function": torch.neg, "unused": 0})
    found.__dict__["owner"] = found
    return found


def test_changes_of_an_object_affect_modules_that_are_scripted_later() -> None:
    config, x = new_config(), torch.ones(2)
    first = Block(config)
    compiled = rekindle.script(first)
    torch.testing.assert_close(compiled(x), first(x))
    before = compiled(x)
    for name, value in (("heads", 5), ("heads", 5.0), ("inner", Config(size=7)), ("table", {"function": torch.relu})):
        setattr(config, name, value)
        torch.testing.assert_close(rekindle.script(Block(config))(x), Block(config)(x))
    config.__dict__["inner"].size = 9
    config.__dict__["table"]["function"] = torch.abs
    torch.testing.assert_close(rekindle.script(Block(config))(x), Block(config)(x))
    torch.testing.assert_close(rekindle.script(first)(x), first(x))
    torch.testing.assert_close(compiled(x), before)


class Known(nn.Module):
    """A module that reads containers at compile time, of its class and of an object."""

    steps = {"a": 1, "of": {"b": 2}}

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config

    def forward(self, n: int) -> tuple[bool, int, int]:
        return n in self.config.allowed, self.steps["a"], self.steps["of"]["b"]


def test_changes_of_sets_and_of_containers_of_the_class_affect_modules_that_are_scripted_later() -> None:
    config = Config(allowed={1, 2})
    compiled = rekindle.script(Known(config))
    assert compiled(3) == Known(config)(3) == (False, 1, 2)
    config.__dict__["allowed"].add(3)
    assert rekindle.script(Known(config))(3) == Known(config)(3) == (True, 1, 2)
    try:
        Known.steps["a"] = 5
        assert rekindle.script(Known(config))(3) == (True, 5, 2)
        Known.steps["of"]["b"] = 6  # type: ignore[index]
        assert rekindle.script(Known(config))(3) == (True, 5, 6)
    finally:
        Known.steps.update({"a": 1, "of": {"b": 2}})
    assert compiled(3) == (False, 1, 2)


def test_modules_with_an_unchanged_object_share_their_type() -> None:
    config = new_config()
    found = module_type_of(Block(config))
    assert module_type_of(Block(config)) is found
    assert module_type_of(Block(new_config())) is not found
    config.__dict__["heads"] = 3
    assert module_type_of(Block(config)) is not found
