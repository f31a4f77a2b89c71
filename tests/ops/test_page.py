"""The page of operators is up to date, and every operator on it has a test."""

from __future__ import annotations

import re

import pytest
import torch

from tests.ops import support_page
from tests.ops.page import PAGE, evidence, render, without_test
from tests.versions.differences import not_yet_in_dispatcher


def test_every_operator_has_a_test() -> None:
    assert set(without_test()) <= not_yet_in_dispatcher()


@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="the page is that of PyTorch 2.13")
def test_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "make pages"


@pytest.mark.skipif(not torch.__version__.startswith("2.13."), reason="the page is that of PyTorch 2.13")
def test_page_of_what_is_known_is_up_to_date() -> None:
    assert support_page.PAGE.read_text(encoding="utf-8") == support_page.render(), "make pages"


def test_evidence_is_in_tests() -> None:
    for name, file in evidence().items():
        text = (PAGE.parents[1] / "tests" / "ops" / file).read_text(encoding="utf-8")
        assert re.search(r"^def test_", text, re.MULTILINE), (name, file)
