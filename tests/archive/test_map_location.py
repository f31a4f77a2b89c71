"""Archives whose tensors were on a GPU, and where they go: as with torch.jit.load, and as with torch.load."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.errors import ArchiveError


class OnGpu(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
        self.place = torch.device("cuda:0")

    def forward(self, x: Tensor) -> tuple[Tensor, torch.device]:
        return self.linear(x), self.place


@pytest.fixture(scope="module")
def archive() -> bytes:
    """An archive of torch.jit.save, as if its tensors had been on the first GPU."""
    saved, changed = io.BytesIO(), io.BytesIO()
    torch.jit.save(torch.jit.script(OnGpu()), saved)
    with zipfile.ZipFile(saved) as source, zipfile.ZipFile(changed, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name.endswith("data.pkl"):
                assert b"X\x03\x00\x00\x00cpu" in content
                content = content.replace(b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0")
            target.writestr(name, content)
    return changed.getvalue()


def _outcome(load: Callable[..., Any], archive: bytes, place: object) -> tuple[type, str]:
    """Return the class of the error of loading; else Tensor, and the device of the tensors."""
    try:
        module = load(io.BytesIO(archive), map_location=place)
    except Exception as error:
        return type(error), ""
    return Tensor, str(module.linear.weight.device)


PLACES = [None, "cpu", "meta", "cuda", "cuda:0", "mps", "nonsense", 0, *map(torch.device, ("cpu", "meta", "cuda:0"))]


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_places_of_torch_jit(archive: bytes, place: object) -> None:
    expected, mine = (_outcome(load, archive, place) for load in (torch.jit.load, rekindle.load))
    assert mine[1] == expected[1]
    if expected[0] is not Tensor:  # an ArchiveError is a RuntimeError, as those of PyTorch are
        base = ValueError if expected[0] is ValueError else RuntimeError
        assert issubclass(expected[0], base)
        assert issubclass(mine[0], base)


@pytest.mark.parametrize(
    "place", [{"cuda:0": "cpu"}, lambda storage, location: storage if location == "cuda:0" else None]
)
def test_places_of_torch_load(archive: bytes, place: Any) -> None:
    assert _outcome(rekindle.load, archive, place) == (Tensor, "cpu")


def test_devices_of_the_program_stay(archive: bytes) -> None:
    for load in (torch.jit.load, rekindle.load):
        module = load(io.BytesIO(archive), map_location="cpu")
        y, place = module(torch.ones(2))
        assert (y.device.type, place) == ("cpu", torch.device("cuda:0"))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_error_says_what_to_do(archive: bytes) -> None:
    with pytest.raises(ArchiveError, match=r"on 'cuda:0', where PyTorch cannot put it(.|\n)*map_location=\"cpu\""):
        rekindle.load(io.BytesIO(archive))
