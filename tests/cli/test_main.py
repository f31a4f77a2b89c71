"""What all commands have in common: exit codes, errors in one line, limits, colors, bars."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import click
import pytest
import torch

from rekindle.cli.archive_options import LIMITS
from rekindle.cli.main import _COMMANDS, cli
from rekindle.cli.progress import working
from tests.cli.conftest import Command

ROOT = Path(__file__).parent.parent.parent
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    return {**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "COLUMNS": "40", **changes}


def at_a_terminal(*arguments: str, **changes: str) -> str:
    """What a command writes to its stdout when that is a terminal."""
    ours, theirs = pty.openpty()
    with open(ours, "rb", buffering=0) as reader:
        done = subprocess.Popen(
            [sys.executable, "-m", "rekindle", *arguments], stdout=theirs, env=environment(**changes)
        )
        os.close(theirs)
        written = b""
        while True:
            try:
                chunk = reader.read(4096)
            except OSError:  # Linux says so when the other end is closed
                break
            if not chunk:
                break
            written += chunk
        assert done.wait(120) == 0
    return written.decode().replace("\r\n", "\n")


def test_colors_at_a_terminal_and_nowhere_else(command: Command) -> None:
    plain = command("show", "net.pt").out
    assert "\x1b" not in plain
    colored = at_a_terminal("show", "net.pt")
    assert "\x1b[1m# forward" in colored
    assert re.search(r"\x1b\[[0-9;]*[39][0-7][;m]", colored), "there are colors"
    # Nothing is wrapped or cut off, though the terminal is narrow.
    assert ESCAPES.sub("", colored) == plain
    without = at_a_terminal("show", "net.pt", NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*[39][0-7][;m]", without)


def test_json_has_no_colors(command: Command) -> None:
    assert at_a_terminal("show", "net.pt", "--json") == command("show", "net.pt", "--json").out


def test_who_reads_may_go_away(folder: Path) -> None:
    done = subprocess.run(
        f"{sys.executable} -m rekindle show net.pt | true",
        shell=True,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_a_bar_from_some_time_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as at a terminal
    with working("Loading [net].pt", patience=0.0) as bar:
        bar.of(3)
        bar.step()
        wait_until(lambda: bar.is_shown)
    told = capsys.readouterr()
    assert told.out == ""
    assert ESCAPES.sub("", told.err).startswith("\rLoading [net].pt") or "Loading [net].pt" in told.err
    assert "1/3" in told.err


def wait_until(question: Callable[[], bool]) -> None:
    for _ in range(6000):
        if question():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it never came")


def test_no_bar_for_quick_work_nor_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with working("Loading net.pt", patience=0.0):
        threading.Event().wait(0.05)
    monkeypatch.setenv("FORCE_COLOR", "1")
    with working("Loading net.pt", patience=600.0):
        pass
    assert tuple(capsys.readouterr()) == ("", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show"], "Missing argument 'ARCHIVE'. (see 'rekindle show --help')"),
        (["shwo"], "No such command 'shwo'. Did you mean 'show'? (see 'rekindle --help')"),
        (["show", "nothing.pt"], "nothing.pt: No such file or directory"),
        (["show", "."], ".: An archive is read from a regular file, but '.' is a directory."),
        (["show", "text.pt"], "text.pt: The file is not an archive: it has no zip directory."),
        (
            ["show", "weights.pt"],
            (
                "weights.pt: The archive holds no program. "
                "(torch.save wrote it, or torch.export: read it with torch.load or torch.export.load)"
            ),
        ),
        (
            ["show", "net.pt", "--limit", "code_bytes=100"],
            (
                "net.pt: The texts of the archive are longer than 100 bytes. "
                "(in 'code/__torch__/tests/cli/conftest.py') (if you trust the file, raise the limit: "
                "--limit code_bytes=NUMBER)"
            ),
        ),
        (
            ["show", "net.pt", "--limit", "code=1"],
            (
                f"Invalid value for '--limit': there is no limit 'code'; there are {', '.join(LIMITS)} "
                "(see 'rekindle show --help')"
            ),
        ),
        (
            ["show", "net.pt", "--limit", "ratio"],
            "Invalid value for '--limit': 'ratio' sets no limit: write ratio=1000000 (see 'rekindle show --help')",
        ),
    ],
)
def test_errors_are_one_line(command: Command, folder: Path, arguments: list[str], message: str) -> None:
    (folder / "text.pt").write_text("this is not an archive", encoding="utf-8")
    torch.save({"weight": torch.ones(2)}, "weights.pt")
    done = command(*arguments)
    assert (done.code, done.out, done.err) == (2, "", f"rekindle: error: {message}\n")


def test_someone_presses_ctrl_c(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object, **others: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rekindle.cli.archives.load", interrupted)
    done = command("show", "net.pt")
    assert (done.code, done.out, done.err) == (130, "", "\nrekindle: error: interrupted\n")


def test_without_a_command_there_is_help(command: Command) -> None:
    done = command()
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Usage: rekindle [OPTIONS] COMMAND [ARGS]...\n")
    assert command("--help").out == done.err


def test_the_list_of_commands_is_complete_in_80_columns(command: Command) -> None:
    listed = command("--help").out.partition("Commands:\n")[2].splitlines()
    assert len(listed) == len(_COMMANDS)
    for line, (name, summary) in zip(listed, sorted(_COMMANDS.items()), strict=True):
        assert line.split(maxsplit=1) == [name, summary]


def test_the_package_does_without_the_libraries_of_the_command_line() -> None:
    """They are loaded when a command is called, not by those who only import the package."""
    script = "import sys, rekindle; print([name for name in ('click', 'rich', 'rekindle.cli') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], env=environment(), capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_list_of_commands_is_what_they_say_of_themselves() -> None:
    """It is a table, so that a list of the commands imports none of them."""
    context = click.Context(cli)
    found = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    assert {name: command and command.get_short_help_str(1000) for name, command in found.items()} == _COMMANDS
    assert {name: command and command.name for name, command in found.items()} == {name: name for name in _COMMANDS}


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["no-such-command"], [], ["inspect", "--help"], ["show", "--help"]]
)
def test_what_runs_no_command_imports_no_pytorch(arguments: list[str]) -> None:
    script = f"import sys; from rekindle.cli.main import main; main({arguments!r}); assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", script], env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_archive_is_described_without_loading_the_compiler(folder: Path) -> None:
    """The types, the operators and the parts of the frontend that read declarations suffice."""
    script = (
        "import sys; from rekindle.cli.main import main; main(['inspect', 'net.pt']); "
        "print(sorted({name.split('.')[1] for name in sys.modules if name.startswith('rekindle.')}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, env=environment(), capture_output=True, text=True)
    assert "5 modules, 12 numbers in parameters" in done.stdout
    assert done.stderr == str(["archive", "cli", "errors", "frontend", "ir", "ops", "program", "syntax"]) + "\n"


def test_the_source_of_a_program_is_shown_without_loading_what_draws_pages(folder: Path) -> None:
    script = (
        "import sys; from rekindle.cli.main import main; main(['show', 'net.pt']); "
        "assert not {'rekindle.viz', 'rekindle.api', 'rekindle.transforms'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "def forward(" in done.stdout
