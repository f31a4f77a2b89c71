"""The table of the language's constructs: ``constructs.txt``, read.

Each line is ``key | what it is``; a line with a ``#`` begins a section. The programs of the corpus name the keys, and
``docs/language.md`` is made of the table and the programs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).parent / "constructs.txt"


@dataclass(slots=True, frozen=True)
class Construct:
    key: str
    section: str
    title: str


def _read() -> list[Construct]:
    found: list[Construct] = []
    section = ""
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            section = line[2:]
        else:
            key, title = line.split(" | ", 1)
            found.append(Construct(key, section, title))
    return found


CONSTRUCTS = _read()
