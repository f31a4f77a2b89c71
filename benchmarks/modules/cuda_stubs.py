"""Let the CUDA builds of torchvision and torchaudio load beside a CPU build of PyTorch.

    python -m benchmarks.modules.cuda_stubs

PyPI has no other builds of theirs for Linux. Their extensions are linked to ``libc10_cuda`` and ``libtorch_cuda``,
which a CPU build of PyTorch lacks: neither package can be imported. This compiles two libraries with the missing
symbols into a folder beside the packages, and has Python load them at its start: what is loaded under the name of a
library stands for it. Functions among the symbols trap: nothing on a CPU calls them. It needs ``gcc`` and ``nm``, and
changes the environment that it runs in, where PyTorch itself may be another's.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

SITE: Final = Path(sysconfig.get_path("purelib"))
PACKAGES: Final = ("torchvision", "torchaudio")
LIBRARIES: Final = ("libc10_cuda.so", "libtorch_cuda.so")
OBJECTS: Final = ("allocatorE",)
"""How the names of variables end; all other names are those of functions."""


def _folder(package: str) -> Path | None:
    """Return where a package is, which may be another environment that this one sees."""
    spec = importlib.util.find_spec(package)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def _symbols(library: Path, which: str) -> set[str]:
    done = subprocess.run(["nm", "-D", which, str(library)], capture_output=True, text=True, check=True)
    return {line.split()[-1].partition("@")[0] for line in done.stdout.splitlines()}


def missing() -> list[str]:
    """Return the names that start with CUDA's libraries of PyTorch and that no library here defines."""
    folders = [folder for folder in map(_folder, PACKAGES) if folder is not None]
    extensions = [path for folder in folders for path in folder.rglob("*.so")]
    torch = _folder("torch")
    assert torch is not None, "it is installed"
    libraries = torch / "lib"
    wanted = {name for path in extensions for name in _symbols(path, "--undefined-only")}
    there = [
        *extensions,
        *(set(libraries.glob("libtorch*.so")) - {libraries / name for name in LIBRARIES}),
        libraries / "libc10.so",
    ]
    for path in there:
        wanted -= _symbols(path, "--defined-only")
    return sorted(name for name in wanted if "cuda" in name.lower() and not name.startswith(("cuda", "__cuda")))


def _source(names: list[str]) -> str:
    return "\n".join(
        f"void *{name}[64];" if name.endswith(OBJECTS) else f"void {name}(void) {{ __builtin_trap(); }}"
        for name in names
    )


def main() -> int:
    """Compile stubs of PyTorch's CUDA libraries into the environment's ``site-packages``, and write the ``.pth`` file
    with which Python loads them at its start."""
    folder = SITE / "cuda_stubs"
    folder.mkdir(exist_ok=True)
    for library in LIBRARIES:
        (folder / library).unlink(missing_ok=True)
    for library, names in zip(LIBRARIES, (missing(), []), strict=True):
        command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(folder / library), f"-Wl,-soname,{library}"]
        subprocess.run(command, input=_source(names), text=True, check=True)
    paths = tuple(str(folder / library) for library in LIBRARIES)
    (SITE / "cuda_stubs.pth").write_text(f"import ctypes; list(map(ctypes.CDLL, {paths!r}))\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
