"""Sizes of caches, as a folder of the system reports them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rekindle.codegen.llvm.caches import second_level_cache


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({"1": "32K", "2": "2048K", "3": "36M"}, 2 << 20),
        ({"2": "1M"}, 1 << 20),
        ({"2": "524288"}, 1 << 19),
        ({"1": "32K"}, 1 << 20),
        ({"2": "much"}, 1 << 20),
        ({"2": ""}, 1 << 20),
        ({}, 1 << 20),
    ],
)
def test_the_second_level_is_found(sizes: dict[str, str], expected: int, tmp_path: Path) -> None:
    for number, (level, size) in enumerate(sizes.items()):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        (folder / "level").write_text(f"{level}\n")
        (folder / "size").write_text(f"{size}\n")
    assert second_level_cache(tmp_path) == expected
