"""Edits of sources, and switches that are taken out."""

from __future__ import annotations

from pathlib import Path

import pytest

from rekindle.doctor.changes import SourceEdit, StaleEdit, apply, diff_of, edited, without_switches
from rekindle.doctor.search import search

FIRST = SourceEdit("a.py", 1, 4, 1, 5, "x", "long")
SECOND = SourceEdit("a.py", 1, 8, 1, 9, "y", "z")


def test_edits_of_one_line() -> None:
    assert edited("é = x + y\n", [FIRST, SECOND, FIRST]) == "é = long + z\n"


def test_edits_that_do_not_fit() -> None:
    with pytest.raises(StaleEdit, match=r"^a.py:1 is not 'y'$"):
        edited("é = x + x\n", [FIRST, SECOND])
    with pytest.raises(StaleEdit, match=r"^a.py:1 is not 'x'$"):
        edited("é = x\n", [FIRST, SourceEdit("a.py", 1, 4, 1, 5, "x", "w")])
    with pytest.raises(StaleEdit, match=r"^a.py has no line 3$"):
        edited("\n", [SourceEdit("a.py", 3, 0, 3, 0, "", "w")])


def test_line_ends_and_encodings_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes("# coding: latin-1\r\né = x + y\r\n".encode("latin-1"))
    edit = SourceEdit("a.py", 2, 4, 2, 5, "x", "é")
    assert diff_of(tmp_path, [edit]).splitlines()[2:] == [
        "@@ -1,2 +1,2 @@",
        " # coding: latin-1",
        "-é = x + y",
        "+é = é + y",
    ]
    assert apply(tmp_path, [edit]) == ["a.py"]
    assert path.read_bytes() == "# coding: latin-1\r\né = é + y\r\n".encode("latin-1")


def test_nothing_is_written_if_one_file_changed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("é = x\n", encoding="utf-8")
    (tmp_path / "b.py").write_text("nothing\n", encoding="utf-8")
    with pytest.raises(StaleEdit):
        apply(tmp_path, [FIRST, SourceEdit("b.py", 1, 0, 1, 1, "x", "y")])
    assert (tmp_path / "a.py").read_text(encoding="utf-8") == "é = x\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch\nON\nx = 1\n", "import torch\nx = 1\n"),
        (
            "import torch\nif x:\n    ON\n    ON  # why\nelse:\n    ON\n",
            "import torch\nif x:\n    pass\nelse:\n    pass\n",
        ),
        (
            "import torch\ntry:\n    ON\nfinally:\n    ON\n    y()\n",
            "import torch\ntry:\n    pass\nfinally:\n    y()\n",
        ),
        ("import torch\nx = 1; ON; y = 2\n", "import torch\nx = 1; pass; y = 2\n"),
        ("import torch\nON", "import torch\npass"),
        ("import torch\nold = ON\n", "import torch\nold = ON\n"),
        (
            '"""Text."""\nfrom __future__ import annotations\nimport torch\nwith torch.jit.fuser("a"), x:\n    pass\n',
            (
                '"""Text."""\nfrom __future__ import annotations\nimport contextlib\nimport torch\n'
                "with contextlib.nullcontext(), x:\n    pass\n"
            ),
        ),
        (
            (
                '"""Text."""\nfrom __future__ import annotations\ndef f():\n    import torch\n'
                '    with torch.jit.fuser("a"):\n        pass\n'
            ),
            (
                '"""Text."""\nfrom __future__ import annotations\nimport contextlib\ndef f():\n    import torch\n'
                "    with contextlib.nullcontext():\n        pass\n"
            ),
        ),
        (
            "import contextlib, torch\nwith torch.jit.fuser(\n    name\n):\n    pass\n",
            "import contextlib, torch\nwith contextlib.nullcontext():\n    pass\n",
        ),
    ],
)
def test_switches(tmp_path: Path, source: str, expected: str) -> None:
    switch = (
        "torch._C._jit_set_profiling_mode(\n    False)"
        if source.endswith("x = 1\n")
        else "torch._C._jit_set_nvfuser_enabled(1)"
    )
    path = tmp_path / "a.py"
    path.write_text(source.replace("ON", switch), encoding="utf-8")
    found, (file,) = search(path)
    changes = without_switches(file, [use for use in found.uses if use.form == "call"])
    result = edited(file.text, [edit for edits in changes.values() for edit in edits])
    assert result == expected.replace("ON", switch)
    compile(result, "a.py", "exec")
