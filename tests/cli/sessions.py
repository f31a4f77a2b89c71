"""The sessions of README.md, ``docs/command_line.md`` and ``docs/doctor.md``, played;
``python -m tests.cli.sessions`` writes into the pages what happens.

A session is a block of ``console``: lines after ``$`` are typed, the others are the output. All of a page happens in
one folder, in order, after the programs of the page ran there as ``net.py``.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rekindle.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "command_line.md", ROOT / "docs" / "doctor.md")
HOME = "/home/you"
"""What the page calls the folder."""
_PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SESSION = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)


def played(page: str, folder: Path) -> str:
    """The page, with the actual output after each line that is typed."""
    program = folder / "net.py"
    program.write_text("\n".join(_PROGRAM.findall(page)), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, program], cwd=folder, env=environment, check=True, capture_output=True)
    shell = Shell(folder)
    with _within(folder):
        return _SESSION.sub(lambda session: "".join(shell.answers(session[1])), page)


@contextlib.contextmanager
def _within(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


class Shell:
    """Calls the command line in a folder, and knows the exit code of the last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.code = 0

    def answers(self, session: str) -> Iterator[str]:
        for line in session.splitlines():
            if line.startswith("$ "):
                yield f"{line}\n"
                yield self.type(line.removeprefix("$ ")).replace(str(self.folder), HOME)

    def type(self, line: str) -> str:
        if line == "echo $?":
            return f"{self.code}\n"
        name, *arguments = shlex.split(line)
        assert name == "rekindle", line
        with io.StringIO() as told, contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
            self.code = main(arguments)
            return told.getvalue()


if __name__ == "__main__":
    for path in PAGES:
        with tempfile.TemporaryDirectory() as name:
            path.write_text(played(path.read_text(encoding="utf-8"), Path(name).resolve()), encoding="utf-8")
