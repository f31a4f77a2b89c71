"""libdevice, NVIDIA's mathematical functions in LLVM's bitcode: where it is installed, kernels for GPUs link it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

VARIABLE: Final = "REKINDLE_LIBDEVICE"
"""The environment variable that names the file. It is tried before the usual folders."""

_NAME: Final = "libdevice.10.bc"
_PACKAGES: Final = (
    ("triton", "backends/nvidia/lib"),
    ("nvidia", "cu13/nvvm/libdevice"),
    ("nvidia", "cuda_nvcc/nvvm/libdevice"),
)
"""Packages with the file, and the folder in each; PyTorch for CUDA on Linux requires triton."""


@cache
def find_libdevice() -> Path | None:
    """Return the file of libdevice; None if it is not installed."""
    return next((path for path in _candidates() if path.is_file()), None)


def _candidates() -> Iterator[Path]:
    if VARIABLE in os.environ:
        yield Path(os.environ[VARIABLE])
    for package, folder in _PACKAGES:
        spec = importlib.util.find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec is not None else ():
            yield Path(place) / folder / _NAME
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if variable in os.environ:
            yield Path(os.environ[variable]) / "nvvm" / "libdevice" / _NAME
    yield Path("/usr/local/cuda/nvvm/libdevice") / _NAME
