"""Golden texts: what a test expects, kept in a file of its own that one flag rewrites."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.versions.differences import with_later_messages

REGENERATE = "--regenerate-golden"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")


@dataclass(slots=True)
class GoldenTexts:
    """The golden files of a folder. Calling it with a name and a text compares, or writes under ``regenerate``."""

    folder: Path
    regenerate: bool = False
    asked_for: dict[str, str] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)

    def __call__(self, name: str, text: str) -> None:
        """Fails unless ``<folder>/<name>.txt`` holds ``text``; one newline more or less at its end does not count.

        Under ``regenerate`` the file is written instead. Two tests may ask for the same file only with the same text.
        """
        __tracebackhide__ = True
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is not a name for a golden file: words joined by slashes, without the ending .txt"
            )
        text = with_later_messages(text)
        if not text.endswith("\n"):
            text += "\n"
        if self.asked_for.setdefault(name, text) != text:
            pytest.fail(
                f"the golden file {name}.txt was asked for before, with another text:\n"
                + _difference(self.asked_for[name], text, "before", "now")
            )
        path = self.folder / f"{name}.txt"
        expected = path.read_text(encoding="utf-8") if path.exists() else None
        if text == expected:
            return
        if self.regenerate:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            self.written.append(name)
        elif expected is None:
            pytest.fail(f"there is no golden file {name}.txt; `pytest {REGENERATE}` would write:\n{text}")
        else:
            pytest.fail(
                f"the text is not that of the golden file {name}.txt (`pytest {REGENERATE}` accepts it):\n"
                + _difference(expected, text, "expected", "actual")
            )

    def not_asked_for(self) -> list[str]:
        """The names of the files in the folder that no test has read."""
        existing = {path.relative_to(self.folder).with_suffix("").as_posix() for path in self.folder.rglob("*.txt")}
        return sorted(existing - self.asked_for.keys())


def _difference(before: str, after: str, before_name: str, after_name: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), before_name, after_name, lineterm="")
    return "\n".join(lines)
