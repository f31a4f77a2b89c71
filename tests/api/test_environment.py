"""`rekindle.collect_env`, and reports that are saved to be shared: what they say, and that they name no folders."""

from __future__ import annotations

import json
import platform
import re
from pathlib import Path

import pytest
import torch

import rekindle


def test_what_a_bug_report_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REKINDLE_CACHE_DIR", "/home/someone/cache")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("SECRET_TOKEN", "hidden")
    found = rekindle.collect_env()
    text = str(found)
    assert found.rekindle == rekindle.__version__
    assert found.torch.startswith(torch.__version__)
    assert (found.variables["OMP_NUM_THREADS"], found.variables["REKINDLE_CACHE_DIR"]) == ("2", "(set)")
    assert found.cache == "in a folder of its own"
    assert re.search(r"^Python: +CPython 3\.\d+", text, re.MULTILINE)
    for private in ("someone", "hidden", "SECRET", str(Path.home()) + "/", str(Path.cwd()), platform.node() + "."):
        assert private not in text
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()


def test_without_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REKINDLE_CACHE", "0")
    assert rekindle.collect_env().cache == "off"


def softened(x: torch.Tensor) -> torch.Tensor:
    return (x * 2 + 1).relu().exp() < 3


@pytest.mark.parametrize("name", ["report.html", "report.json"])
def test_reports_in_one_file(tmp_path: Path, name: str) -> None:
    compiled = rekindle.script(softened)
    for _ in range(3):
        compiled(torch.ones(4, 8))
    report = rekindle.report(compiled)
    assert len(report.kernels) == 1
    path = report.save(tmp_path / name)
    assert path == tmp_path / name
    text = path.read_text(encoding="utf-8")
    assert "aten::relu" in text
    assert str(Path(__file__).parent) not in text
    assert "test_environment.py" in text
    assert rekindle.collect_env().torch in text
    if name.endswith("json"):
        data = json.loads(text)
        assert data["report"]["name"] == "softened"
        assert data["environment"]["rekindle"] == rekindle.__version__
    else:
        assert "<h1>rekindle report: softened</h1>" in text
        assert "&lt;" in text
        assert not re.search(r"\b(src|href)=|https?://", text)
