"""The classification of PyTorch's own tests that do not pass agrees with its page."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "pytorch_tests"
RECORDS: Final[list[dict[str, str]]] = [
    json.loads(line) for line in (FOLDER / "classification.jsonl").read_text(encoding="utf-8").splitlines()
]
PAGE: Final = (FOLDER / "README.md").read_text(encoding="utf-8")


def table(title: str) -> dict[str, int]:
    """Return the first table under a heading of the page: its first column, and the last one as numbers."""
    section = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return {name.strip("`"): int(cells[-1].replace(",", "")) for name, *cells in rows[2:]}


def test_each_test_is_classified_once_and_in_order() -> None:
    tests = [record["test"] for record in RECORDS]
    assert tests == sorted(set(tests))
    assert all(re.fullmatch(r"[\w/]+\.py::\w+::\w+", test) for test in tests)


def test_each_record_has_a_class_of_the_page_and_a_reason() -> None:
    classes = set(table("Classes"))
    for record in RECORDS:
        assert set(record) == {"test", "class", "reason"}
        assert record["class"] in classes
        assert record["reason"].strip() == record["reason"] != ""
        assert "\n" not in record["reason"]


def test_the_page_tells_the_counts() -> None:
    counts = table("Classes")
    assert counts == {name: 0 for name in counts} | Counter(record["class"] for record in RECORDS)
    totals = table("Result")
    assert totals["do not pass, and are classified"] == len(RECORDS)
    assert totals["pass"] + len(RECORDS) == totals["public tests"]
    assert totals["real differences"] == counts["difference"]
    assert totals["behave as torch.jit or better"] == totals["public tests"] - counts["difference"]


def test_real_differences_are_on_the_page() -> None:
    named = set(re.findall(r"`(Test\w+::test_\w+)`", PAGE))
    assert named == {record["test"].partition("::")[2] for record in RECORDS if record["class"] == "difference"}
