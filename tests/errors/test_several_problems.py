"""Programs with several problems: each is reported, at its place and with its cause, and nothing else is."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import rekindle
from rekindle.errors import Cause, CompileError, InternalError, ProgramErrors
from tests.errors.several_problems import LIVE, TEXTS
from tests.errors.test_wrong_programs import load, told
from tests.support.golden import GoldenTexts


def test_there_are_many_and_they_cover_all_causes() -> None:
    assert len(LIVE) + len(TEXTS) >= 25
    assert {cause for text in [*LIVE.values(), *TEXTS.values()] for _, cause in expected(text)} == set(Cause)


def expected(text: str) -> Counter[tuple[int, Cause]]:
    """The lines that are to be reported, and why, from the comments of the program."""
    found: Counter[tuple[int, Cause]] = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.search(r"#! (.*)$", line)
        for cause in comment[1].split("; ") if comment else ():
            found[number, Cause(cause)] += 1
    return found


def reported(error: CompileError) -> Counter[tuple[int, Cause]]:
    return Counter((each.range.line, each.cause) for each in error.errors if each.range is not None)


def check(name: str, text: str, error: CompileError, folder: Path, golden: GoldenTexts) -> None:
    assert not any(isinstance(each, InternalError) for each in error.errors)
    assert reported(error) == expected(text)
    assert isinstance(error, ProgramErrors)
    assert all(each.suggestion for each in error.errors)
    golden(f"errors/several/{name}", re.sub(r" *#! .*", "", told(error, folder)))


@pytest.mark.parametrize("name", LIVE)
def test_live_program(name: str, tmp_path: Path, golden: GoldenTexts) -> None:
    module = load(name, LIVE[name], tmp_path)
    subject = module.M() if hasattr(module, "M") else module.f
    texts = set()
    for _ in range(2):  # nothing of what failed is kept
        with pytest.raises(CompileError) as caught:
            rekindle.script(subject)
        check(name, LIVE[name], caught.value, tmp_path, golden)
        texts.add(str(caught.value))
    assert len(texts) == 1


@pytest.mark.parametrize("name", TEXTS)
def test_program_text(name: str, tmp_path: Path, golden: GoldenTexts) -> None:
    with pytest.raises(CompileError) as caught:
        rekindle.CompilationUnit(TEXTS[name])
    check(name, TEXTS[name], caught.value, tmp_path, golden)
