"""Hooks of modules go through files: those of the module itself run when Python calls it."""

import io
from typing import Tuple

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.errors import SaveError
from tests.archive.archives import written_by_torch


class Inner(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) * 2


def before(self, input: Tuple[Tensor]) -> Tuple[Tensor]:
    return (input[0] * 10,)


def behind(self, input: Tuple[Tensor], output: Tensor) -> Tensor:
    return output + input[0]


def unannotated(module, input):
    return (input[0] * 10,)


def hooked() -> Outer:
    module = Outer()
    for part in (module, module.inner):
        part.register_forward_pre_hook(before)
        part.register_forward_hook(behind)
    return module


def test_saved_here():
    module, x = hooked(), torch.arange(3.0)
    archive = rekindle.script(module).save_to_buffer()
    theirs, ours = torch.jit.load(io.BytesIO(archive)), rekindle.load(archive)
    again = torch.jit.load(io.BytesIO(ours.save_to_buffer()))
    for loaded in (theirs, ours, again):
        assert torch.equal(loaded(x), module(x))
        assert torch.equal(loaded.inner(x), module.inner(x))


def test_saved_by_torch():
    module, x = hooked(), torch.arange(3.0)
    ours = rekindle.load(written_by_torch(module))
    assert torch.equal(ours(x), module(x))
    assert torch.equal(ours.inner(x), module.inner(x))


def test_a_hook_that_does_not_take_what_it_is_given():
    module = Inner()
    module.register_forward_pre_hook(unannotated)
    compiled = rekindle.script(module)
    assert compiled(torch.ones(1)).tolist() == [11]
    for _ in range(2):
        with pytest.raises(SaveError) as caught:
            compiled.save_to_buffer()
        assert str(caught.value) == (
            "'tests.archive.test_hooks.Inner' cannot be saved: the pre-hook 'unannotated' of the module 'Inner' takes "
            "(Tensor) besides the module, and would be given (Tuple[Tensor])\n"
            "Hint: annotate its parameters so, or remove it before compiling"
        )


def test_two_hooks_of_one_name():
    def again(self, input: Tuple[Tensor], output: Tensor) -> Tensor:
        return output * 2

    again.__name__ = "behind"
    module = Inner()
    module.register_forward_hook(behind)
    module.register_forward_hook(again)
    module.register_forward_hook(behind)
    archive = rekindle.script(module).save_to_buffer()
    x = torch.arange(3.0)
    for load in (rekindle.load, torch.jit.load):
        loaded = load(io.BytesIO(archive))
        assert torch.equal(loaded(x), module(x))


def test_hooks_that_change_the_type_of_the_result():
    def paired(self, input: Tuple[Tensor], output: Tensor):
        return output, output * 2

    def looked_at(self, input: Tuple[Tensor], output: Tuple[Tensor, Tensor]) -> None:
        assert len(output) == 2

    def added(self, input: Tuple[Tensor], output: Tuple[Tensor, Tensor]) -> Tensor:
        return output[0] + output[1]

    # torch.jit takes a hook that returns nothing for one that returns None to the next.
    both = rekindle.load, torch.jit.load
    for hooks, loads in (((paired, added), both), ((paired, looked_at, added), both[:1])):
        module, x = Inner(), torch.arange(3.0)
        for hook in hooks:
            module.register_forward_hook(hook)
        archive = rekindle.script(module).save_to_buffer()
        for load in loads:
            assert torch.equal(load(io.BytesIO(archive))(x), module(x))
