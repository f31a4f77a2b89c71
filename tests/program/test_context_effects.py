"""``with`` over context managers of PyTorch, in programs that went through a file."""

import io
import sys

import pytest
import torch
from torch import Tensor

import rekindle
from tests.archive.archives import written_by_torch


def lowered(x: Tensor):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = torch.mm(x, x)
        with torch.autocast("cpu", enabled=False):
            z = torch.mm(x, x)
    return y, z, torch.mm(x, x)


def lowered_or_not(x: Tensor, on: bool):
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=on):
        return torch.mm(x, x)


def lowered_on_cpu(x: Tensor):
    with torch.cpu.amp.autocast():
        return torch.mm(x, x)


def named(x: Tensor):
    with torch.autograd.profiler.record_function("a part of the program"):
        return x + 1


def failing(x: Tensor):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return torch.mm(x, x[0])


def through_a_file(function):
    return rekindle.load(rekindle.script(function).save_to_buffer())


def test_autocast():
    x = torch.ones(2, 2)
    archive = rekindle.script(lowered).save_to_buffer()
    for program in (rekindle.script(lowered), rekindle.load(archive), torch.jit.load(io.BytesIO(archive))):
        assert [y.dtype for y in program(x)] == [y.dtype for y in lowered(x)]


@pytest.mark.parametrize("on", [True, False])
def test_autocast_on_demand(on):
    assert through_a_file(lowered_or_not)(torch.ones(2, 2), on).dtype == (torch.bfloat16 if on else torch.float32)


@pytest.mark.filterwarnings(r"ignore:.torch.cpu.amp.autocast:FutureWarning")
def test_autocast_of_archives_of_torch():
    x = torch.ones(2, 2)
    assert through_a_file(lowered_on_cpu)(x).dtype == torch.bfloat16
    if sys.version_info < (
        3,
        13,
    ):  # from then on torch.jit.script fails: it asks Python for the source of object.__new__
        assert rekindle.load(written_by_torch(lowered_on_cpu))(x).dtype == torch.bfloat16


def test_autocast_is_left_by_an_exception():
    loaded = through_a_file(failing)
    with pytest.raises(RuntimeError):
        loaded(torch.ones(2, 2))
    assert not torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize(
    "load", [through_a_file, lambda function: rekindle.load(written_by_torch(function))], ids=["ours", "torch's"]
)
def test_parts_are_named_in_profiles(load):
    loaded = load(named)
    with torch.profiler.profile(acc_events=True) as profile:
        assert loaded(torch.ones(2)).tolist() == [2, 2]
    assert "a part of the program" in {event.name for event in profile.events()}
