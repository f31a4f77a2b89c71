"""``rekindle.collect_env``: the machine and the versions for a bug report, without private paths."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any, Final

import torch

from rekindle.codegen.llvm.disk_cache import cache_directory
from rekindle.codegen.llvm.target import native_target
from rekindle.errors import RekindleError
from rekindle.runtime.settings import SETTINGS

_PACKAGES: Final = ("llvmlite", "numpy", "torchvision", "torchaudio", "triton", "onnx", "onnxscript", "onnxruntime")
_VARIABLES: Final = re.compile(r"REKINDLE_|PYTORCH_|TORCH_|OMP_|MKL_|ATEN_|CUDA_|NVIDIA_TF32|PYTHONOPTIMIZE$")
"""The names of the environment variables that are reported."""
_PLAIN: Final = re.compile(r"[\w.,:=+-]{0,100}")
"""Pattern of the values that are reported; other values are replaced, as they may be paths."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The machine, the versions and the settings of this process. ``str()`` is for bug reports."""

    rekindle: str
    torch: str
    python: str
    system: str
    processor: str
    """LLVM's name of the processor and the width of its vectors in bits; the kind of error if LLVM cannot be loaded."""
    cores: int
    threads: int
    gpus: tuple[str, ...]
    packages: dict[str, str]
    strategy: str
    native_plans: bool
    """Whether native plans are allowed by the settings."""
    cache: str
    """Whether compiled code is cached on disk, and whether the folder is the default one."""
    variables: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as values that JSON can represent."""
        return {**asdict(self), "gpus": list(self.gpus)}

    def __str__(self) -> str:
        rows = {
            "rekindle": self.rekindle,
            "PyTorch": self.torch,
            "Python": self.python,
            "system": self.system,
            "processor": f"{self.processor}, {self.cores} cores, {self.threads} threads",
            "GPUs": ", ".join(self.gpus) or "none",
            "packages": _listed(self.packages, " "),
            "strategy": f"{self.strategy}, native plans {'on' if self.native_plans else 'off'}",
            "cache": self.cache,
            "variables": _listed(self.variables, "="),
        }
        return "\n".join(f"{name + ':':<11} {value}" for name, value in rows.items())


def collect_env() -> Environment:
    """Return the environment of this process for a bug report.

    It has no paths: values of environment variables with other characters than letters, digits and ``_ . , : = + -``,
    or with more than 100, are replaced with ``(set)``.

    Example:
        >>> "PyTorch" in str(rekindle.collect_env())
        True
    """
    return Environment(
        rekindle=sys.modules["rekindle"].__version__,
        torch=_torch(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        system=_system(),
        processor=_processor(),
        cores=os.cpu_count() or 0,
        threads=torch.get_num_threads(),
        gpus=_gpus(),
        packages={name: version for name in _PACKAGES if (version := _version(name)) is not None},
        strategy=SETTINGS.strategy,
        native_plans=SETTINGS.native_plans,
        cache=_cache(os.environ),
        variables=_variables(os.environ),
    )


def _system() -> str:
    parts = (
        f"{platform.system()} {platform.release().partition('-')[0]}",
        platform.machine(),
        " ".join(platform.libc_ver()).strip(),
    )
    return ", ".join(filter(None, parts))


def _torch() -> str:
    version = torch.version
    built = [f"{name} {number}" for name in ("cuda", "hip") if (number := getattr(version, name, None))]
    return f"{torch.__version__} ({', '.join(built) or 'CPU'}{', debug' if version.debug else ''})"


def _processor() -> str:
    try:
        target = native_target()
    except (RekindleError, ImportError, OSError, RuntimeError) as error:
        return f"unknown to LLVM ({type(error).__name__})"
    return f"{target.cpu}, vectors of {target.vector_bits} bits"


def _gpus() -> tuple[str, ...]:
    if not torch.cuda.is_available():
        return ()
    return tuple(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _cache(environment: Mapping[str, str]) -> str:
    folder = cache_directory(environment)
    if folder is None:
        return "off"
    others = {name: value for name, value in environment.items() if not name.startswith("REKINDLE_")}
    return "in the default folder" if folder == cache_directory(others) else "in a folder of its own"


def _variables(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value if _PLAIN.fullmatch(value) else "(set)"
        for name, value in sorted(environment.items())
        if _VARIABLES.match(name)
    }


def _listed(items: Mapping[str, str], between: str) -> str:
    return ", ".join(f"{name}{between}{value}" for name, value in items.items()) or "none"
