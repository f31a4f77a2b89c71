"""README.md, docs/command_line.md and docs/doctor.md show the actual output; `make pages` writes it again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rekindle.cli.inputs import SHORT_NAMES
from rekindle.cli.main import cli
from tests.cli.sessions import PAGES, played
from tests.versions.differences import as_documented


@pytest.mark.parametrize(
    ("path", "typed"), [(PAGES[0], 2), (PAGES[1], 15), (PAGES[2], 2)], ids=["README", "command_line", "doctor"]
)
def test_sessions_are_what_happens(path: Path, typed: int, tmp_path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    assert page.count("\n$ ") >= typed
    assert as_documented(_without_sizes(played(page, tmp_path.resolve()))) == _without_sizes(page)


def _without_sizes(page: str) -> str:
    """The archive holds the path of PyTorch's own files, whose length differs; times differ, and so does whether the
    packages for ONNX are installed."""
    page = re.sub(r"(?<=^format 3, )[\d.]+ KiB", "SIZE", page, flags=re.MULTILINE)
    page = re.sub(r"(?<=programs take )[\d.]+(?= of eager's time)", "RATIO", page)
    page = re.sub(r"^\n\d+ of \d+ programs? can leave as ONNX\n", "", page, flags=re.MULTILINE)
    return re.sub(r"^  ONNX, .*\n", "", page, flags=re.MULTILINE)


def test_every_command_option_and_dtype_is_told() -> None:
    page = PAGES[1].read_text(encoding="utf-8")
    for name, command in cli.commands.items():
        assert f"rekindle {name} " in page
        options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        untold = {option for option in options if option.startswith("--") and option not in page}
        assert untold <= ({"--module", "--report"} if name == "run-script" else set()), name
    assert [name for name in SHORT_NAMES if f"`{name}`" not in page] == []
