"""What notebooks show: graphs as pictures; reports, stages and traces as HTML."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest
import torch

import rekindle
from rekindle.errors.html_output import details, diff, listing, paragraph, table
from tests.support import notebooks


class Page(HTMLParser):
    """Checks that tags are closed in order, and collects the texts of each kind of tag."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in dict.fromkeys(self.open):
            self.texts[tag][-1] += data


@rekindle.script
def gate(x, y):
    return torch.sort(torch.sigmoid(x) * torch.tanh(y))[0]


def test_graphs_are_pictures() -> None:
    svg = gate.graph._repr_svg_()
    assert svg is not None
    assert svg == rekindle.to_svg(gate.graph)
    words = [each.text for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert words == ["inputs", "sigmoid", "tanh", "mul", "sort", "outputs"]


@pytest.mark.parametrize(("lines", "is_drawn"), [(299, True), (301, False)])
def test_large_graphs_are_text(lines: int, is_drawn: bool) -> None:
    source = "\n".join(["def f(x):", *["    x = x.neg()"] * lines, "    return x", ""])
    assert (rekindle.CompilationUnit(source).f.graph._repr_svg_() is not None) == is_drawn


def test_stages() -> None:
    stages = rekindle.stages(gate, torch.ones(3), torch.ones(3))
    page = Page(stages._repr_html_())
    assert page.texts["summary"][0] == "compiled"
    assert page.texts["summary"][-1] == f"after all {len(stages) - 1} passes"
    assert len(page.texts["summary"]) == 2 + sum(bool(stage.diff) for stage in stages)
    assert page.texts["pre"][0] == stages[0].text.rstrip()
    assert page.texts["pre"][-1] == stages[-1].text.rstrip()
    assert page.texts["span"][0].startswith("--- compiled")
    assert Page(stages[0]._repr_html_()).texts["pre"] == [stages[0].text.rstrip()]


def test_a_report() -> None:
    x = torch.randn(20, 30)
    with torch.no_grad():
        for _ in range(5):
            gate(x, x)
    report = rekindle.report(gate)
    page = Page(report._repr_html_())
    assert page.texts["p"][0] == str(report).splitlines()[0]
    cells = page.texts["td"]
    assert cells[:4] == ["1", "aten::sigmoid, aten::tanh, aten::mul", "f32[20, 30], f32[20, 30]", "f32[20, 30]"]
    assert "aten::sort" in cells
    assert report.kernels[0].text.rstrip() in page.texts["pre"]
    assert page.texts["pre"][-1] == str(report)


def test_a_report_before_the_first_call() -> None:
    report = rekindle.report(rekindle.script(lambda x: x + 1))
    assert Page(report._repr_html_()).texts["pre"] == [str(report)]


def test_traces() -> None:
    def branch(x):
        return x * 2 if x.sum() > 0 else x

    with pytest.warns(rekindle.TracerWarning):
        traced = rekindle.trace(branch, torch.ones(3))
    page = Page(traced.report._repr_html_())
    assert page.texts["th"] == ["kind", "what", "value in the example", "place"]
    assert page.texts["td"][0] == "branch"
    assert page.texts["td"][3].startswith(__file__)
    assert traced._repr_html_() == traced.show()._repr_html_() + traced.report._repr_html_()


def test_a_trace_that_assumes_nothing() -> None:
    traced = rekindle.trace(torch.neg, torch.ones(3))
    assert traced.report._repr_html_() == "<p>the trace assumes nothing but what its operators do</p>"


class Printer:
    """The method of IPython's printer that is used."""

    def __init__(self) -> None:
        self.shown = ""

    def text(self, text: str) -> None:
        self.shown += text


@pytest.mark.parametrize(
    "shown", [gate.graph, rekindle.stages(gate), rekindle.report(gate), rekindle.trace(torch.neg, torch.ones(3)).report]
)
def test_ipython_shows_text_in_a_terminal(shown: Any) -> None:
    printer = Printer()
    shown._repr_pretty_(printer, cycle=False)
    assert printer.shown == str(shown)


def test_the_notebook_of_the_documentation_runs() -> None:
    """Its outputs are those that are stored, but for the times in the report."""
    notebook = notebooks.read()
    stored = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    found = notebooks.execute(notebook)
    assert [[sorted(each.get("data", ["text"])) for each in cell] for cell in found] == [
        [sorted(each.get("data", ["text"])) for each in cell] for cell in stored
    ]
    graph, text, stages = 1, 2, 3
    for cell in (graph, text, stages):
        assert found[cell] == stored[cell], "make pages"


def test_text_is_escaped() -> None:
    text = "<b>&'"
    parts = [
        paragraph(text),
        listing(text),
        table([text], [[text]]),
        details(text, listing(text)),
        diff(f"+{text}\n {text}"),
    ]
    page = Page("".join(parts))
    assert page.texts["p"] == page.texts["th"] == page.texts["td"] == page.texts["summary"] == [text]
    assert page.texts["pre"] == [text, text, f"+{text}\n {text}\n"]
