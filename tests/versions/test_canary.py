"""The canary: what it reports, and that the changes of each newer release were reviewed."""

from __future__ import annotations

import re

import pytest

from tests.versions import canary

PINNED = "2.13"
REPORT = canary.REPORTS / f"{canary.release()}.md"


@pytest.mark.skipif(canary.release() != PINNED, reason=f"the record is that of PyTorch {PINNED}")
def test_the_record_is_that_of_the_pinned_release() -> None:
    assert canary.recorded() == canary.installed()


@pytest.mark.skipif(not REPORT.exists(), reason="only releases after the pinned one have a report")
def test_a_newer_release_changes_what_was_reviewed() -> None:
    """If this fails, a release has changed since: read `python -m tests.versions.canary`, then commit `--write`."""

    def overloads(text: str) -> list[str]:
        return re.findall(r"^(?:## .*|- `[^`]*`|    - .*)", text, re.MULTILINE)

    found = canary.report(canary.recorded(), canary.installed())
    assert overloads(REPORT.read_text(encoding="utf-8")) == overloads(found)


def test_what_a_report_says() -> None:
    before = {
        "aten::cholesky": "aten::cholesky(Tensor self, bool upper=False) -> Tensor",
        "aten::no_such": "aten::no_such(Tensor self) -> Tensor",
        "aten::relu": "aten::relu(Tensor self) -> Tensor",
    }
    now = {
        "aten::no_such": "aten::no_such(Tensor input) -> Tensor",
        "aten::relu": before["aten::relu"],
        "aten::relu.times": "aten::relu.times(Tensor self, int times) -> Tensor",
        "aten::no_such_new": "aten::no_such_new(Tensor self) -> Tensor",
    }
    text = canary.report(before, now)
    named = ", ".join(canary.concerned("aten::relu"))
    assert "autodiff/formulas/linear_algebra.py" in canary.concerned("aten::cholesky")
    assert text == (
        "1 overloads removed, 1 changed, 2 new.\n"
        "\n"
        "## Removed\n"
        "\n"
        f"- `aten::cholesky`: {', '.join(canary.concerned('aten::cholesky'))}\n"
        "    - `aten::cholesky(Tensor self, bool upper=False) -> Tensor`\n"
        "\n"
        "## Changed\n"
        "\n"
        "- `aten::no_such`: no file names it\n"
        "    - `aten::no_such(Tensor self) -> Tensor`\n"
        "    - `aten::no_such(Tensor input) -> Tensor`\n"
        "\n"
        "## New overloads of operators that were there\n"
        "\n"
        f"- `aten::relu.times`: {named}\n"
        "    - `aten::relu.times(Tensor self, int times) -> Tensor`\n"
        "\n"
        "## New operators\n"
        "\n"
        "- `aten::no_such_new`: no file names it\n"
        "    - `aten::no_such_new(Tensor self) -> Tensor`\n"
    )
    assert canary.report(before, before) == "0 overloads removed, 0 changed, 0 new.\n"
