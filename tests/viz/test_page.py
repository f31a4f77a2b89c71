"""The page for browsers: one file, with all that it needs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import torch

import rekindle
from rekindle.api.show import MAX_NODES
from rekindle.viz import Page


def data(page: Page) -> Any:
    """What the page draws."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.html, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def titles(box: Any) -> list[str]:
    return [box["t"], *(title for child in box.get("c", ()) for title in titles(child))]


def half(x):
    return torch.tanh(x) * 0.5 + 0.0


def gate(x, flag: bool):
    if flag:
        x = half(x)
    return x


def test_the_stages_of_a_program() -> None:
    told = data(rekindle.show(gate, torch.ones(2), True))
    names = [stage["name"] for stage in told["stages"]]
    assert names[:2] == ["compiled", "1. partial_evaluation"]
    assert told["title"] == "gate"
    assert "CallFunction" in titles(told["stages"][0]["root"])
    assert "tanh" in titles(told["stages"][1]["root"])
    assert "+    %7 : Tensor = aten::tanh" in told["stages"][1]["diff"] or "tanh" in told["stages"][1]["diff"]
    assert all(stage["diff"] for stage in told["stages"][1:])


def test_source_lines_and_kernels() -> None:
    before = rekindle.set_execution_strategy("native")
    try:
        f = rekindle.script(half)
        with torch.no_grad(), rekindle.require_fused():  # which has kernels made at once
            f(torch.ones(2))
        told = data(rekindle.show(f))
    finally:
        rekindle.set_execution_strategy(before)
    last = told["stages"][-1]
    assert last["name"] == "version 1: what calls run"
    [group] = [child for child in last["root"]["c"] if child["t"] == "FusionGroup"]
    assert told["kernels"][group["n"][0]].startswith("kernel(in0: f32) -> (out0: f32)\n")
    file, line = next(child for child in group["c"] if child["t"] == "tanh")["s"]
    assert told["files"][file]["name"] == Path(__file__).name
    assert told["files"][file]["text"].splitlines()[line] == "    return torch.tanh(x) * 0.5 + 0.0"
    assert told["files"][file]["first"] + line == half.__code__.co_firstlineno + 1


def test_the_page_asks_for_nothing() -> None:
    page = rekindle.show(half)
    assert "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'" in page.html
    assert not re.search(r"""<(script|link|img|iframe)[^>]*\s(src|href)=""", page.html)
    assert "Permission is hereby granted, free of charge" in page.html


def test_text_of_programs_cannot_leave_its_place() -> None:
    source = 'def f(x):\n    """</script><script>alert(1)</script><!-- @@data@@"""\n    return x.relu()\n'
    page = rekindle.show(rekindle.CompilationUnit(source).f)
    assert data(page)["files"][0]["text"] == source
    assert page.html.count("</script>") == 3


def test_graphs_and_files(tmp_path: Path) -> None:
    page = rekindle.show(rekindle.script(half).graph)
    assert [stage["name"] for stage in data(page)["stages"]] == ["graph"]
    assert page.save(tmp_path / "half.html").read_text(encoding="utf-8") == page.html


def test_notebooks_show_it_in_a_frame() -> None:
    text = rekindle.show(half)._repr_html_()
    assert text.startswith('<iframe title="graph" sandbox="allow-scripts allow-downloads" style="width: 100%; ')
    assert "<script" not in text


def test_large_graphs_are_shown_before_and_after_all_passes() -> None:
    lines = [f"    x = x + {number}.5" for number in range(MAX_NODES // 2 + 1)]
    f = rekindle.CompilationUnit("\n".join(["def f(x):", *lines, "    return x", ""])).f
    assert [stage["name"] for stage in data(rekindle.show(f))["stages"]] == ["compiled", "after all passes"]
