"""Operators written in C++ that ``torch.library`` knows, in programs and in archives."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils import cpp_extension

import rekindle

SOURCE = """
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
namespace stable = torch::stable;

void filled(StableIValue* stack, uint64_t inputs, uint64_t outputs) {
  stable::Tensor copy = stable::clone(stable::detail::to<stable::Tensor>(stack[0]));
  stable::fill_(copy, static_cast<double>(stable::detail::to<int64_t>(stack[1])));
  stack[0] = stable::detail::from(copy);
}

STABLE_TORCH_LIBRARY(tests_cpp, library) { library.def("filled(Tensor x, int by=7) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(tests_cpp, CPU, library) { library.impl("filled", &filled); }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler is installed here")
    folder = tmp_path_factory.mktemp("cpp")
    (folder / "filled.cpp").write_text(SOURCE)
    includes = [f"-I{path}" for path in cpp_extension.include_paths()]
    libraries = [f"-L{Path(torch.__file__).parent / 'lib'}", "-ltorch_cpu", "-lc10"]
    target = str(folder / "filled.so")
    command = [compiler, "-std=c++17", "-O0", "-shared", "-fPIC", *includes, str(folder / "filled.cpp"), *libraries]
    subprocess.run([*command, "-o", target], check=True)
    torch.ops.load_library(target)


def fills(x: Tensor, n: int) -> Tensor:
    y = torch.ops.tests_cpp.filled(x)
    for i in range(n):
        y += torch.ops.tests_cpp.filled.default(x, i)
    return y


@pytest.mark.usefixtures("library")
def test_is_called_by_name() -> None:
    compiled = rekindle.script(fills)
    for x in (torch.ones(2), torch.ones(2, 3)):
        torch.testing.assert_close(compiled(x, 4), fills(x, 4), rtol=0, atol=0)


@pytest.mark.usefixtures("library")
def test_runs_from_an_archive() -> None:
    file = io.BytesIO()
    rekindle.save(rekindle.script(fills), file)
    for load in (rekindle.load, torch.jit.load):
        file.seek(0)
        torch.testing.assert_close(load(file)(torch.ones(2), 3), fills(torch.ones(2), 3), rtol=0, atol=0)
