"""Machine code of kernels for GPUs: what NVIDIA's assembler makes of them on each architecture.

``make test-cuda`` installs the assembler, the disassembler and libdevice, and runs this.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import torch

from rekindle.codegen.cuda.geometry import REGISTER_VECTORS, VECTOR_BYTES
from rekindle.codegen.cuda.libdevice import find_libdevice
from rekindle.codegen.cuda.machine import CudaMachine
from rekindle.codegen.cuda.modules import device_module
from rekindle.codegen.cuda.ptx import ptx_of, ptx_target
from rekindle.codegen.layout import Layout
from rekindle.codegen.lowering import lower
from tests.codegen.cuda.programs import CASES, chain, graph_of, softmax


def _tool(name: str) -> str | None:
    """A program of CUDA's toolkit: of a package, or of an installation."""
    packages = Path(sysconfig.get_path("purelib")) / "nvidia"
    found = next(iter(sorted(packages.glob(f"**/bin/{name}"))), None)
    return str(found) if found is not None else shutil.which(name)


PTXAS, NVDISASM = _tool("ptxas"), _tool("nvdisasm")
if PTXAS is None or NVDISASM is None or find_libdevice() is None:
    pytest.skip("CUDA's assembler is not installed here: make test-cuda does that", allow_module_level=True)

ARCHITECTURES: Final = ("sm_80", "sm_86", "sm_90", "sm_100")
MOST_REGISTERS: Final = {1024: 64, 512: 128, 256: 255}
"""How many registers a thread may have, by how many threads a block has at most."""


def _assembled(module_text: str, architecture: str, folder: Path) -> tuple[Path, dict[str, dict[str, int]]]:
    """The machine code, and for each function its registers and the bytes that it spills."""
    major, minor = divmod(int(architecture.removeprefix("sm_")), 10)
    source, target = folder / "kernel.ptx", folder / f"{architecture}.cubin"
    source.write_text(ptx_of(module_text, ptx_target((major, minor), 12000), find_libdevice()))
    command = [str(PTXAS), "-v", f"--gpu-name={architecture}", str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = {}
    for part in done.stderr.split("Compiling entry function ")[1:]:
        name = part.split("'")[1]
        numbers = {"registers": r"Used (\d+) registers", "spilled": r"(\d+) bytes spill stores"}
        found[name] = {key: int((re.search(pattern, part) or ["0", "0"])[1]) for key, pattern in numbers.items()}
    return target, found


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_programs(architecture: str, tmp_path: Path) -> None:
    """Everything is in registers, of which there are enough for as many threads as blocks have."""
    for function, arguments, _ in CASES:
        given = arguments()
        inputs = [
            Layout(tuple(each.shape), each.stride(), each.dtype) if isinstance(each, torch.Tensor) else type(each)
            for each in given
        ]
        kernel = lower(graph_of(function, *given), inputs, "cuda").kernel
        module = device_module(kernel, CudaMachine())
        _, found = _assembled(module.for_gpu(), architecture, tmp_path)
        assert set(found) == set(module.functions)
        for name, numbers in found.items():
            assert numbers["spilled"] == 0, name
            assert numbers["registers"] <= MOST_REGISTERS[module.most_threads[name]], name


@pytest.mark.parametrize(
    ("function", "dtype", "budget"),
    [
        (chain, torch.float32, 32),
        (chain, torch.bfloat16, 36),
        (softmax, torch.float32, 34),
        (softmax, torch.bfloat16, 30),
    ],
)
def test_instructions(function: Callable[..., Any], dtype: torch.dtype, budget: int, tmp_path: Path) -> None:
    """The fastest variants have few enough instructions for memory to be what an H100 waits for: at 33.4e12 a second,
    and 3e12 bytes, that is 45 for each float that is read and written."""
    is_chain = function is chain
    given = [torch.zeros(4, 4096, dtype=dtype)] * (2 if is_chain else 1)
    inputs = [Layout(tuple(each.shape), each.stride(), each.dtype) for each in given]
    kernel = lower(graph_of(function, *given), inputs, "cuda").kernel
    module = device_module(kernel, CudaMachine())
    cubin, _ = _assembled(module.for_gpu(), "sm_90", tmp_path)
    text = subprocess.run([str(NVDISASM), "-c", str(cubin)], capture_output=True, text=True, check=True).stdout
    body = text[text.index(f".text.nest0_{'vector' if is_chain else 'registers4'}:") :]
    body = body[: body.find("//---------------------", 10)]
    counts = Counter(re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z0-9.]+)", body))
    assert not any(name.startswith(("LDL", "STL")) for name in counts), "no memory of a thread's own"
    vectors = 1 if is_chain else REGISTER_VECTORS[-1]
    assert counts["LDG.E.128"] == vectors * len(given)
    assert counts["STG.E.128"] == vectors
    assert sum(counts.values()) <= budget * vectors * VECTOR_BYTES // dtype.itemsize
