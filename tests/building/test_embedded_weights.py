"""Weights in the library instead of in a file."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.building import library as building
from rekindle.building.native_library import NativeLibrary
from tests.building.c_process import compiler, memory_checker, run


class Counts(nn.Module):
    """Writes to a buffer, and shares memory between two."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.arange(6.0).reshape(2, 3))
        self.register_buffer("calls", torch.zeros(3))
        self.register_buffer("last", self.calls[2:])

    def forward(self, x: Tensor) -> Tensor:
        self.calls.add_(1)
        return x @ self.weight + self.calls + self.last


X = torch.tensor([[1.0, 2.0]])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> building.Build:
    module = rekindle.script(Counts())
    folder = tmp_path_factory.mktemp("embedded")
    return rekindle.build(module, folder, [(X,)], cpu="v2,v3", embed_weights=True, freestanding=True)


def test_no_file_of_weights(built: building.Build) -> None:
    names = ["libnet.so", "manifest.json", "net.h", "net.hpp"]
    assert sorted(path.name for path in built.folder.iterdir()) == names
    assert built.weights is None
    assert "net.weights" not in json.loads((built.folder / "manifest.json").read_text())["files"]


def test_each_instance_has_its_weights(built: building.Build) -> None:
    first, second = NativeLibrary(built.folder), NativeLibrary(built.folder)
    products = X @ torch.arange(6.0).reshape(2, 3)
    for calls in (1, 2, 3):
        assert torch.equal(first(X), products + 2 * calls)
    assert torch.equal(second(X), products + 2)


@pytest.mark.skipif(compiler() is None, reason="this machine has no C compiler")
def test_from_c(built: building.Build, tmp_path: Path) -> None:
    answers = run(built, "forward", [(X,), (X,)], tmp_path, prefix=memory_checker() or ())
    products = X @ torch.arange(6.0).reshape(2, 3)
    assert [torch.equal(each.value, products + 2 * calls) for calls, each in enumerate(answers, 1)] == [True, True]


def test_a_file_may_replace_the_weights(built: building.Build, tmp_path: Path) -> None:
    """A path that is given is opened, and has to be that of the weights of this library."""
    library = ctypes.CDLL(str(built.library))
    library.net_error.restype = ctypes.c_char_p
    library.net_error.argtypes = library.net_close.argtypes = [ctypes.c_void_p]
    instance = ctypes.c_void_p()
    wrong = tmp_path / "wrong"
    wrong.write_bytes(bytes(64))
    for path, message in ((tmp_path / "missing", b"cannot be opened"), (wrong, b"has 64 bytes")):
        assert library.net_open(str(path).encode(), ctypes.byref(instance)) == 10
        assert message in library.net_error(instance)
        library.net_close(instance)


def test_weights_that_are_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_MAX_EMBEDDED", 100)
    with pytest.raises(rekindle.NotBuildable, match=r"^192 bytes of weights cannot be embedded: at most 100 are$"):
        rekindle.build(rekindle.script(Counts()), tmp_path, [(X,)], embed_weights=True)
