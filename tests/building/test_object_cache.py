"""Objects of the runtime: compiled once on a machine, and linked into the libraries that need them."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

import rekindle
from rekindle.building import object_cache
from rekindle.building.elf import ObjectFile
from rekindle.building.lowlevel.module import LowLevelModule, compilation_unit
from rekindle.building.object_cache import object_of, runtime_objects
from rekindle.building.runtime import characters, lists, memory
from rekindle.codegen.llvm.target import Target, host_target

PROGRAM = """
from torch import Tensor

def summed(x: Tensor, word: str) -> tuple[Tensor, str]:
    return x + 2, word.upper()
"""
BUILD = """
import sys, torch, rekindle
rekindle.build(rekindle.script(summed), sys.argv[1], [(torch.ones(3), "a")])
"""


@dataclass(frozen=True)
class Built:
    """A program that another process built with an empty cache."""

    program: Path
    library: bytes
    cache: Path

    def build(self, folder: Path) -> bytes:
        """Build the program in this process."""
        spec = importlib.util.spec_from_file_location("summed", self.program)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return rekindle.build(rekindle.script(module.summed), folder, [(torch.ones(3), "a")]).library.read_bytes()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("built")
    program = folder / "summed.py"
    program.write_text(PROGRAM + BUILD)
    environment = {**os.environ, "REKINDLE_CACHE_DIR": str(folder / "cache")}
    subprocess.run([sys.executable, program, folder / "net"], check=True, env=environment)
    program.write_text(PROGRAM)
    return Built(program, (folder / "net" / "libnet.so").read_bytes(), folder / "cache")


@pytest.fixture
def cache(built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the cache on disk that the other process filled; this process holds no objects."""
    copy = shutil.copytree(built.cache, tmp_path / "cache")
    copy.chmod(0o700)
    monkeypatch.setenv("REKINDLE_CACHE_DIR", str(copy))
    monkeypatch.delenv("REKINDLE_CACHE", raising=False)
    object_cache._known_units.clear()
    return copy


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The LLVM modules that are compiled during a test."""
    modules: list[str] = []
    compile = object_cache._compiled

    def counted(text: str, target: Target) -> bytes:
        modules.append(text)
        return compile(text, target)

    monkeypatch.setattr(object_cache, "_compiled", counted)
    return modules


def defined(objects: list[ObjectFile]) -> set[str]:
    return {symbol.name for each in objects for symbol in each.symbols if symbol.is_definition}


def objects_that_call(*functions) -> list[ObjectFile]:
    module = LowLevelModule(is_whole=False)
    for each in functions:
        module.add(each)
    calls = [f"@use.{index} = global ptr @{each.__name__}" for index, each in enumerate(functions)]
    program = ObjectFile.read(object_of("\n".join([str(module), *calls]), host_target()))
    return runtime_objects([program], host_target())


def test_libraries_are_equal_with_and_without_a_cache(built, cache, compiled, tmp_path, monkeypatch):
    assert built.build(tmp_path / "warm") == built.library
    assert compiled == []
    monkeypatch.setenv("REKINDLE_CACHE", "off")
    object_cache._known_units.clear()
    assert built.build(tmp_path / "off") == built.library
    assert any("define hidden i64 @call_method(" in each for each in compiled)


def test_other_programs_find_the_runtime(cache, compiled, tmp_path):
    rekindle.build(rekindle.script(lambda x: x * x + 1), tmp_path, [(torch.ones(3),)])
    kernel, program = sorted(compiled, key=lambda text: "@net_call(" in text)
    assert "@kernel.0(" in kernel
    assert "define i32 @net_call(" in program


def test_damaged_objects_are_compiled_again(built, cache, compiled, tmp_path):
    damaged = sorted(path for path in cache.iterdir() if b"ELF" in path.read_bytes())[:3]
    for path in damaged:
        path.write_bytes(path.read_bytes()[:-1])
    assert built.build(tmp_path) == built.library
    assert len(compiled) == len(damaged)


def test_a_library_holds_the_functions_that_it_calls_alone():
    assert defined(objects_that_call(memory.release_memory)) == {"release_memory"}
    needed = defined(objects_that_call(memory.destroy))
    assert {"destroy", "drop_entries"} <= needed
    assert not any(name.startswith(("text_", "list_", "runtime.table")) for name in needed)


def test_tables_are_objects():
    assert defined(objects_that_call(characters.is_space_point)) >= {"is_space_point", "runtime.table.spaces"}


def test_small_functions_are_copied_and_others_are_declared():
    unit = compilation_unit(lists.list_insert)
    heads = {line.partition("(")[0] for line in unit.splitlines() if line.startswith(("define", "declare"))}
    assert "define hidden void @list_insert" in heads
    assert "declare hidden void @grow" in heads
    assert not any("internal" in head for head in heads)
