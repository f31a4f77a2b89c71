"""Ways to deploy a program: what builds it, and the process that runs it.

``python -m benchmarks.libraries.ways WAY PROGRAM FOLDER`` builds a program in a process of its own, and prints how long
that took, without the imports.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

import rekindle
from benchmarks.libraries.programs import PROGRAMS

DRIVERS: Final = Path(__file__).parent / "drivers"
TORCH: Final = Path(torch.__file__).parent


@dataclass(frozen=True, slots=True)
class Way:
    """What builds a program for its arguments into a folder and returns the artifact, and what runs that: ``source`` is
    the driver, in C, C++ or Python."""

    build: Callable[[Any, tuple[Any, ...], Path], Path]
    source: str

    def command(self, name: str, artifact: Path, compiled: Path) -> list[str]:
        """Return the command that runs an artifact, without the arguments that drivers share."""
        if self.source == "in_process.py":
            return [sys.executable, str(DRIVERS / self.source), name]
        if self.source.endswith(".py"):
            return [sys.executable, str(DRIVERS / self.source), str(artifact)]
        return [str(compiled / Path(self.source).stem), str(artifact)]


def _library(module: Any, arguments: tuple[Any, ...], folder: Path) -> Path:
    return rekindle.build(rekindle.script(module), folder, [arguments]).folder


def _in_process(module: Any, arguments: tuple[Any, ...], folder: Path) -> Path:
    rekindle.script(module)(*arguments)
    return folder


def _archive(module: Any, arguments: tuple[Any, ...], folder: Path) -> Path:
    path = folder / "net.pt"
    scripted = torch.jit.script(module)
    torch.jit.save(torch.jit.freeze(scripted), path)
    return path


def _package(module: Any, arguments: tuple[Any, ...], folder: Path) -> Path:
    exported = torch.export.export(module, arguments)
    return Path(torch._inductor.aoti_compile_and_package(exported, package_path=str(folder / "net.pt2")))


def _onnx(module: Any, arguments: tuple[Any, ...], folder: Path) -> Path:
    """Export with the exporter of Export IR; a program that it refuses, with the one of TorchScript."""
    path = folder / "net.onnx"
    try:
        program: Any = torch.onnx.export(module, arguments, dynamo=True, verbose=False)
        program.save(path)
    except Exception:  # of whatever class the exporter raises for a program that it refuses
        torch.onnx.export(torch.jit.script(module), arguments, str(path), dynamo=False)
    return path


OURS: Final = "rekindle"
IN_PROCESS: Final = "rekindle, in process"
WAYS: Final = {
    OURS: Way(_library, "native.c"),
    IN_PROCESS: Way(_in_process, "in_process.py"),
    "LibTorch": Way(_archive, "libtorch.cpp"),
    "AOTInductor": Way(_package, "aotinductor.cpp"),
    "ONNX Runtime": Way(_onnx, "onnx_runtime.py"),
}


_IMPORTED: Final = {
    OURS: ("llvmlite.binding",),
    IN_PROCESS: ("llvmlite.binding",),
    "LibTorch": (),
    "AOTInductor": ("torch._inductor.compile_fx", "torch._export"),
    "ONNX Runtime": ("torch.onnx", "onnxscript"),
}
"""Modules that are imported before a build is timed."""


def compile_drivers(ways: Sequence[str], folder: Path) -> None:
    """Compile the drivers of ``ways`` in C and C++ into a folder.

    Raises:
        subprocess.CalledProcessError: a compiler refuses one.
        FileNotFoundError: there is no compiler.
    """
    include = [f"-I{TORCH / 'include'}", f"-I{TORCH / 'include/torch/csrc/api/include'}"]
    libraries = [f"-L{TORCH / 'lib'}", "-ltorch", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{TORCH / 'lib'}"]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}"
    for source in (WAYS[way].source for way in ways):
        command = [DRIVERS / source, "-O2", "-o", folder / Path(source).stem]
        if source.endswith(".c"):
            subprocess.run(["gcc", *command, "-ldl"], check=True)
        elif source.endswith(".cpp"):
            subprocess.run(["g++", "-std=c++20", abi, *command, *include, *libraries], check=True)


def main(arguments: Sequence[str]) -> None:
    """Build, and print the seconds and the artifact, or why there is none."""
    way, program, folder = arguments
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    module, given = next(each for each in PROGRAMS if each.name == program).make()
    for name in _IMPORTED[way]:
        importlib.import_module(name)
    for name in ("script", "build"):
        getattr(rekindle, name)  # imports what it needs
    with torch.no_grad():
        began, used = time.perf_counter(), os.times()
        try:
            artifact = WAYS[way].build(module, given, Path(folder))
        except Exception as error:  # a peer refuses a program with an error of any class: the table has its first line
            lines = [line for line in f"{type(error).__name__}: {error}".splitlines() if line.strip()]
            found: dict[str, Any] = {"unavailable": lines[0][:200]}
        else:
            now = os.times()
            processor = sum(now[:4]) - sum(used[:4])
            found = {"seconds": time.perf_counter() - began, "processor": processor, "artifact": str(artifact)}
    print("REPORT " + json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
