"""The wheel: ``python -m tests.wheel contents dist`` checks what is in it, ``python -m tests.wheel try dist`` installs
it in a clean environment and runs README's examples and a share of the tests there. ``--newest`` takes the newest
PyTorch, as pip does, instead of the pinned versions.

The environment has nothing but the wheel and its dependencies when README's examples run; what the tests need is
installed after that. The tests run in a copy, beside which there is no source of the package.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Final

import rekindle
from tests.versions.matrix import installer

ROOT: Final = Path(__file__).parent.parent
TESTS: Final = ("tests/test_public_names.py", "tests/archive", "tests/cli", "tests/program", "tests/tracing")
"""What runs with the wheel; of large families a share."""
_SESSION: Final = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROGRAM: Final = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def contents(dist: Path) -> None:
    """Check what is in the wheel and in the source distribution."""
    wheel, sdist = _wheel(dist), next(dist.glob("*.tar.gz"))
    names = zipfile.ZipFile(wheel).namelist()
    package = {path.relative_to(ROOT).as_posix() for path in (ROOT / "rekindle").rglob("*.py")}
    package |= {"rekindle/py.typed"} | {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "rekindle/viz/assets").iterdir()
    }
    in_wheel = {name for name in names if name.startswith("rekindle/")}
    assert in_wheel == package, in_wheel ^ package
    others = sorted(name.partition("/")[2] for name in names if not name.startswith("rekindle/"))
    assert others == [
        "METADATA",
        "RECORD",
        "WHEEL",
        "entry_points.txt",
        "licenses/LICENSE",
        "licenses/rekindle/viz/assets/dagre.LICENSE",
        "top_level.txt",
    ], others
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert package | {"LICENSE", "README.md", "pyproject.toml"} <= inside
    assert not any(name.startswith("tests/") for name in inside)
    assert rekindle.__version__ in wheel.name
    for path in (wheel, sdist):
        print(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB")


def try_wheel(dist: Path, *, newest: bool) -> None:
    """Install the wheel alone in a clean environment and run README's examples and a share of the tests.

    ``newest``: with the newest PyTorch that pip finds, as for a user, instead of the versions of constraints.txt.
    """
    wheel = _wheel(dist).resolve()
    with tempfile.TemporaryDirectory(prefix="rekindle-wheel-") as name:
        folder = Path(name)
        _run([sys.executable, "-m", "venv", folder / "venv"])
        python = folder / "venv" / "bin" / "python"
        install: list[str | Path] = [*installer(str(python))]
        if not newest:
            install += ["-c", ROOT / "constraints.txt"]
        _run([*install, wheel])
        _run([python, "-c", "import platform, torch; print(platform.python_version(), 'PyTorch', torch.__version__)"])
        work = folder / "readme"
        work.mkdir()
        _readme(python, work)
        _run([*install, f"{wheel}[test]"])
        copy = folder / "copy"
        for path in ("tests", "docs", "examples"):
            shutil.copytree(ROOT / path, copy / path, ignore=shutil.ignore_patterns("__pycache__"))
        for path in ("README.md", "CONTRIBUTING.md", "pyproject.toml"):
            shutil.copy(ROOT / path, copy / path)
        _run([python, "-c", "import rekindle; assert 'site-packages' in rekindle.__file__"], copy)
        _run([python, "-m", "pytest", "-q", "-n", os.environ.get("JOBS", "auto"), *TESTS], copy)


def _readme(python: Path, work: Path) -> None:
    """Run README's programs as one, and then type its commands, which print what it shows."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (work / "readme.py").write_text("\n".join(_PROGRAM.findall(readme)), encoding="utf-8")
    _run([python, "readme.py"], work)
    for session in _SESSION.findall(readme):
        for typed in session.removeprefix("$ ").split("\n$ "):
            line, _, expected = typed.partition("\n")
            name, *arguments = shlex.split(line)
            assert name == "rekindle", line
            printed = _run([python.with_name(name), *arguments], work)
            assert printed.strip() == expected.strip(), f"README shows\n{expected}\nand not\n{printed}"


def _wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


def _run(command: list[str | Path], folder: Path | None = None) -> str:
    """Run a command, print what it prints, and return that."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment.setdefault("REKINDLE_SHARES", "wheel")
    print("$", *command, flush=True)
    lines: list[str] = []
    arguments = list(map(str, command))
    with subprocess.Popen(arguments, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, arguments)
    return "".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="tests.wheel")
    parser.add_argument("task", choices=("contents", "try"))
    parser.add_argument("dist", type=Path)
    parser.add_argument("--newest", action="store_true", help="try the wheel with the newest PyTorch")
    options = parser.parse_args()
    if options.task == "contents":
        contents(options.dist)
    else:
        try_wheel(options.dist, newest=options.newest)
