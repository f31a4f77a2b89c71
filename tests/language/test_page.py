"""The page of the language says what the programs show, and every construct has one."""

from __future__ import annotations

import re

from tests.language.constructs import CONSTRUCTS
from tests.language.corpus import corpus
from tests.language.page import PAGE, by_construct, render


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "make pages"


def test_every_construct_has_a_program() -> None:
    shown = by_construct(corpus())
    assert [construct.key for construct in CONSTRUCTS if not shown[construct.key]] == []


def test_every_program_shows_constructs_of_the_table() -> None:
    keys = [construct.key for construct in CONSTRUCTS]
    assert len(set(keys)) == len(keys)
    assert sorted({key for program in corpus() for key in program.constructs} - set(keys)) == []


def test_links_lead_to_the_programs() -> None:
    links = re.findall(r"\[(\w+)\]\((\.\./tests/[^)]+)\)", PAGE.read_text(encoding="utf-8"))
    assert len(links) >= len(CONSTRUCTS)
    for name, target in links:
        text = (PAGE.parent / target).read_text(encoding="utf-8")
        assert re.search(rf"^(async def|def|class) {name}\b", text, re.MULTILINE), (name, target)
