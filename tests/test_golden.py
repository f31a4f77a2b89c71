"""The golden texts themselves, in a folder of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.golden import GoldenTexts


def test_equal_text_passes_and_the_last_newline_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "graph.txt").write_text("graph():\n  return ()\n", encoding="utf-8")
    golden = GoldenTexts(tmp_path)
    golden("graph", "graph():\n  return ()")
    golden("graph", "graph():\n  return ()\n")


def test_another_text_fails_and_shows_the_difference(tmp_path: Path) -> None:
    (tmp_path / "graph.txt").write_text("graph():\n  return ()\n", encoding="utf-8")
    with pytest.raises(pytest.fail.Exception) as caught:
        GoldenTexts(tmp_path)("graph", "graph():\n  return (%x)\n")
    assert str(caught.value) == (
        "the text is not that of the golden file graph.txt (`pytest --regenerate-golden` accepts it):\n"
        "--- expected\n"
        "+++ actual\n"
        "@@ -1,2 +1,2 @@\n"
        " graph():\n"
        "-  return ()\n"
        "+  return (%x)"
    )


def test_a_missing_file_fails_and_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception) as caught:
        GoldenTexts(tmp_path)("passes/dce", "graph()")
    assert str(caught.value) == (
        "there is no golden file passes/dce.txt; `pytest --regenerate-golden` would write:\ngraph()\n"
    )
    assert not list(tmp_path.iterdir())


def test_regenerating_writes_what_differs_and_only_that(tmp_path: Path) -> None:
    (tmp_path / "same.txt").write_text("same\n", encoding="utf-8")
    (tmp_path / "old.txt").write_text("old\n", encoding="utf-8")
    golden = GoldenTexts(tmp_path, regenerate=True)
    golden("same", "same")
    golden("old", "new")
    golden("passes/more", "more")
    assert golden.written == ["old", "passes/more"]
    assert (tmp_path / "old.txt").read_text(encoding="utf-8") == "new\n"
    assert (tmp_path / "passes" / "more.txt").read_text(encoding="utf-8") == "more\n"


def test_files_that_nobody_asked_for_are_named(tmp_path: Path) -> None:
    (tmp_path / "passes").mkdir()
    (tmp_path / "passes" / "gone.txt").write_text("gone\n", encoding="utf-8")
    golden = GoldenTexts(tmp_path, regenerate=True)
    golden("here", "here")
    assert golden.not_asked_for() == ["passes/gone"]


def test_one_name_does_not_stand_for_two_texts(tmp_path: Path) -> None:
    golden = GoldenTexts(tmp_path, regenerate=True)
    golden("graph", "one")
    with pytest.raises(
        pytest.fail.Exception, match=r"the golden file graph\.txt was asked for before, with another text"
    ):
        golden("graph", "two")


@pytest.mark.parametrize("name", ["", "../graph", "/graph", "a//b", "a b", ".hidden"])
def test_a_name_stays_inside_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="is not a name for a golden file"):
        GoldenTexts(tmp_path)(name, "text")
