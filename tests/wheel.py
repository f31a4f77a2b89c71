"""The wheel: ``python -m tests.wheel contents dist`` checks what is in it, ``python -m tests.wheel try dist`` installs
it in a clean environment and runs README's examples and a share of the tests there.

The environment has nothing but the wheel and its dependencies when README's examples run; what the tests need is
installed after that. The tests run in a copy, beside which there is no source of the package.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Final

import rekindle

ROOT: Final = Path(__file__).parent.parent
TESTS: Final = ("tests/test_public_names.py", "tests/archive", "tests/cli", "tests/program", "tests/tracing")
"""What runs with the wheel; of large families a share."""
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


def try_wheel(dist: Path) -> None:
    """Install the wheel alone in a clean environment and run README's examples and a share of the tests."""
    wheel = _wheel(dist).resolve()
    with tempfile.TemporaryDirectory(prefix="rekindle-wheel-") as name:
        folder = Path(name)
        _run([sys.executable, "-m", "venv", folder / "venv"])
        python = folder / "venv" / "bin" / "python"
        install = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "-c",
            ROOT / "constraints.txt",
        ]
        _run([*install, wheel])
        work = folder / "readme"
        work.mkdir()
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        (work / "readme.py").write_text("\n".join(_PROGRAM.findall(readme)), encoding="utf-8")
        _run([python, "readme.py"], work)
        _run([folder / "venv" / "bin" / "rekindle", "inspect", "net.pt"], work)
        _run([*install, f"{wheel}[test]"])
        copy = folder / "copy"
        for path in ("tests", "docs", "examples"):
            shutil.copytree(ROOT / path, copy / path, ignore=shutil.ignore_patterns("__pycache__"))
        for path in ("README.md", "CONTRIBUTING.md", "pyproject.toml"):
            shutil.copy(ROOT / path, copy / path)
        _run([python, "-c", "import rekindle; assert 'site-packages' in rekindle.__file__"], copy)
        _run([python, "-m", "pytest", "-q", "-n", os.environ.get("JOBS", "auto"), *TESTS], copy)


def _wheel(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


def _run(command: list[str | Path], folder: Path | None = None) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment.setdefault("REKINDLE_SHARES", "wheel")
    print("$", *command, flush=True)
    subprocess.run(list(map(str, command)), cwd=folder, env=environment, check=True)


if __name__ == "__main__":
    {"contents": contents, "try": try_wheel}[sys.argv[1]](Path(sys.argv[2]))
