"""The differences between releases that tests have to know."""

from __future__ import annotations

import sys

import pytest

from rekindle.frontend.ssa.assignedness import unassigned_text
from tests.versions.differences import with_later_messages


@pytest.mark.parametrize("is_free", [False, True])
@pytest.mark.parametrize("quoted", ["{}", r'prim::Constant[value="{}"]()'])
def test_messages_of_python_3_10(quoted: str, is_free: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def text_of(python: tuple[int, ...]) -> str:
        monkeypatch.setattr(sys, "version_info", python)
        text, _ = unassigned_text("x", is_free=is_free)
        return quoted.format(text.replace("'", r"\'") if "prim" in quoted else text)

    before, later = text_of((3, 10, 13)), text_of((3, 11, 0))
    assert before != later
    assert with_later_messages(before, (3, 10)) == later
    assert with_later_messages(before, (3, 11)) == before
