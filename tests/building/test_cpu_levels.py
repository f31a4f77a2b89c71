"""One library for several levels of x86-64: the level is selected when an instance is opened."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path
from typing import List, Tuple

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.building.library import Build
from rekindle.building.lowlevel.compiler import field_index
from rekindle.building.native_library import NativeLibrary
from rekindle.building.runtime.instances import Instance
from rekindle.codegen.llvm.target import LEVELS, native_target
from tests.building.c_process import compiler, memory_checker, run

LEVELS_HERE = [name for name in ("x86-64-v2", "x86-64-v3", "x86-64-v4") if all(map(native_target().has, LEVELS[name]))]

pytestmark = pytest.mark.skipif(len(LEVELS_HERE) < 2, reason="this processor has one level only")


class Layers(nn.Module):
    """Kernels, a product, strings, and state."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.calls = 0

    def forward(self, x: Tensor, words: List[str]) -> Tuple[Tensor, str, int]:
        self.calls += 1
        return torch.tanh(self.linear(x)).softmax(-1), "-".join(words).upper(), self.calls

    @rekindle.export
    def last(self) -> int:
        return self.calls


ARGUMENTS = (torch.linspace(-1, 1, 40).reshape(5, 8), ["a", "é"])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    torch.manual_seed(0)
    module = rekindle.script(Layers().eval())
    examples = {"forward": [ARGUMENTS], "last": [()]}
    folder = tmp_path_factory.mktemp("levels")
    return rekindle.build(module, folder, examples, cpu=LEVELS_HERE, freestanding=True)


def level_of(library: NativeLibrary) -> str:
    words = ctypes.cast(library._instance, ctypes.POINTER(ctypes.c_int64))
    return LEVELS_HERE[words[field_index(Instance, "level")]]


def expected() -> Tensor:
    torch.manual_seed(0)
    with torch.no_grad():
        return Layers()(*ARGUMENTS)[0]


@pytest.mark.parametrize("level", ["", "native", *LEVELS_HERE])
def test_a_level_that_is_forced(level: str, built: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REKINDLE_CPU", level)
    library = NativeLibrary(built.folder)
    assert level_of(library) == (level if level in LEVELS_HERE else LEVELS_HERE[-1])
    for calls in (1, 2):
        probabilities, text, count = library(*ARGUMENTS)
        torch.testing.assert_close(probabilities, expected())
        assert (text, count, library.call("last")) == ("A-É", calls, calls)


def test_levels_side_by_side(built: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    libraries = []
    for level in LEVELS_HERE:
        monkeypatch.setenv("REKINDLE_CPU", level)
        libraries.append(NativeLibrary(built.folder))
    monkeypatch.delenv("REKINDLE_CPU")
    assert list(map(level_of, libraries)) == LEVELS_HERE
    for library in libraries:
        assert library(*ARGUMENTS)[2] == 1
        with pytest.raises(rekindle.LibraryError, match=r"^an argument is of kind 1, which is not that of its type$"):
            library(1, ["a"])


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v9"])
def test_a_level_that_the_library_has_not(level: str, built: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REKINDLE_CPU", level)
    names = ", ".join(LEVELS_HERE)
    message = f"REKINDLE_CPU names none of the levels of the library that this processor has ({names})"
    with pytest.raises(rekindle.LibraryError) as raised:
        NativeLibrary(built.folder)
    assert str(raised.value) == message


def test_the_manifest_names_the_levels(built: Build) -> None:
    assert json.loads((built.folder / "manifest.json").read_text())["cpu"] == LEVELS_HERE


def test_null_pointers(built: Build) -> None:
    library = ctypes.CDLL(str(built.library))
    library.net_error.restype = ctypes.c_char_p
    assert library.net_open(None, None) == 10
    assert library.net_forward(None, None, ctypes.c_int64(0), None) == 10
    assert library.net_error(None) == b"the instance is a null pointer"
    library.net_close(None)
    library.net_free(None)


@pytest.mark.skipif(compiler() is None or memory_checker() is None, reason="this machine has no C compiler or valgrind")
def test_the_highest_level_that_a_processor_has(built: Build, tmp_path: Path) -> None:
    """The processor of valgrind has x86-64-v3: instructions of v4 would end the process."""
    (answer,) = run(built, "forward", [ARGUMENTS], tmp_path, prefix=memory_checker() or ())
    torch.testing.assert_close(answer.value[0], expected())
    forced = ("env", f"REKINDLE_CPU={LEVELS_HERE[0]}", *(memory_checker() or ()))
    (answer,) = run(built, "forward", [ARGUMENTS], tmp_path, prefix=forced)
    torch.testing.assert_close(answer.value[0], expected())


def test_several_levels_are_levels_each_once(tmp_path: Path) -> None:
    program = rekindle.script(lambda x: x + 1)
    for levels in ("v3,v3", "native,v3", ["x86-64-v2", "z80"]):
        with pytest.raises(rekindle.RekindleError, match=r"^several levels of a library are of x86-64, "):
            rekindle.build(program, tmp_path, [(torch.ones(2),)], cpu=levels)
    built = rekindle.build(program, tmp_path, [(torch.ones(2),)], cpu="v3,v2")
    assert json.loads((built.folder / "manifest.json").read_text())["cpu"] == ["x86-64-v2", "x86-64-v3"]
