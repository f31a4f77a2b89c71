"""The page in a browser: headless Chromium, which `make test-browser` needs on the path.

A test adds a script of its own to the page, which presses keys and buttons as a person does, and leaves what it saw as
JSON in the document that Chromium prints at the end.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import rekindle
from rekindle.codegen.fusion import FuseGraph
from rekindle.runtime.strategies import native_strategy
from rekindle.viz import Page

OUTPUT = Path(__file__).parent.parent.parent / "build" / "screenshots"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

TOOLS = """
<script>
const opened = performance.now();
const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const labels = (each) => each.getAttribute("aria-label");
const drawn = () => [...document.querySelectorAll("#graph .box")];
const boxes = () => drawn().map(labels);
const boxOf = (title) => drawn().find((each) => labels(each).startsWith(title + ","));
const lines = () => [...document.querySelectorAll("#source button.line")];
const lineOf = (text) => lines().find((each) => each.textContent.includes(text));
const push = (element) => element.dispatchEvent(new MouseEvent("click", { bubbles: true }));
const search = (words) => { $("search").value = words; $("search").dispatchEvent(new Event("input")); };
const observed = {};
window.addEventListener("error", (event) => { observed.error = event.message; });
SCRIPT
observed.requests = performance.getEntriesByType("resource").length;
const result = document.createElement("pre");
result.id = "result"; result.textContent = JSON.stringify(observed);
document.body.append(result);
</script>
</body>"""


@pytest.fixture(autouse=True)
def _native(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Machine code for the operators between products of matrices: with these in it, it would all be one box."""
    without = [FuseGraph(products=False) if isinstance(each, FuseGraph) else each for each in native_strategy.FUSION]
    monkeypatch.setattr(native_strategy, "FUSION", tuple(without))
    before = rekindle.set_execution_strategy("native")
    yield
    rekindle.set_execution_strategy(before)


def chromium(path: Path, *options: str, window: str = "1500,950") -> str:
    assert CHROMIUM is not None, "there is no Chromium on the path: on Debian, apt-get install chromium"
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--window-size={window}",
        *options,
        path.as_uri(),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def in_browser(page: Page, script: str, folder: Path, window: str = "1500,950") -> dict[str, Any]:
    """What ``script`` has put into ``observed``."""
    path = folder / "page.html"
    path.write_text(page.html.replace("</body>", TOOLS.replace("SCRIPT", script)), encoding="utf-8")
    found = re.search(r'<pre id="result">(.*?)</pre>', chromium(path, "--dump-dom", window=window), re.DOTALL)
    assert found is not None, "the script did not come to its end"
    observed: dict[str, Any] = json.loads(html.unescape(found[1]))
    assert observed.pop("requests") == 0
    assert "error" not in observed
    return observed


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return torch.tanh(self.fc(x)) * x


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Layer() for _ in range(12)])

    def forward(self, x, flag: bool):
        for layer in self.layers:
            x = layer(x)
        if flag:
            x = x + 1
        return x


@cache
def page() -> Page:
    net = rekindle.script(Net())
    with torch.no_grad(), rekindle.require_fused():
        net(torch.ones(2, 4), False)
    return rekindle.show(net)


def test_folding_and_moving(tmp_path: Path) -> None:
    observed = in_browser(
        page(),
        """
        $("stage").value = 1; $("stage").dispatchEvent(new Event("change"));
        $("fold").click();
        observed.folded = boxes();
        push(boxOf("layer × 12"));
        observed.unfolded = boxes().length;
        observed.expanded = boxOf("layer × 12").getAttribute("aria-expanded");
        press("Enter");
        observed.again = boxes().length;
        press("ArrowUp"); observed.up = document.activeElement.getAttribute("aria-label");
        press("ArrowDown"); press("ArrowRight"); press("ArrowRight");
        observed.inside = document.activeElement.getAttribute("aria-label");
        press("ArrowLeft"); observed.out = document.activeElement.getAttribute("aria-label");
        press("Escape"); observed.title = document.querySelector("#right h2").textContent;
        """,
        tmp_path,
    )
    assert observed == {
        "folded": [
            "inputs, what goes in or out",
            "layer × 12, repeated parts, 12 within",
            "If, control flow, 2 within",
            "outputs, what goes in or out",
        ],
        "unfolded": 16,
        "expanded": "true",
        "again": 4,
        "up": "inputs, what goes in or out",
        "inside": "layer, call, 3 within",
        "out": "layer × 12, repeated parts, 12 within",
        "title": "1. inlining",
    }


def test_search_source_and_kernel(tmp_path: Path) -> None:
    observed = in_browser(
        page(),
        """
        search("prim::FusionGroup");
        observed.found = $("found").querySelector("p").textContent;
        push($("found").querySelectorAll("button")[2]);
        observed.chosen = document.activeElement.getAttribute("aria-label");
        observed.line = document.querySelector("#source .here").textContent.trim();
        observed.kernel = [...document.querySelectorAll("#right pre")].pop().textContent.split("\\n")[0];
        $("stage").value = 1; $("stage").dispatchEvent(new Event("change"));
        push(lineOf("if flag"));
        observed.from_source = document.activeElement.getAttribute("aria-label");
        observed.near = document.querySelectorAll("#graph .near").length > 0;
        """,
        tmp_path,
    )
    assert observed.pop("line").endswith("return torch.tanh(self.fc(x)) * x")
    assert observed == {
        "found": "12 found",
        "chosen": "FusionGroup, machine code, 4 within",
        "kernel": "kernel(in0: f32, in1: f32) -> (out0: f32)",
        "from_source": "If, control flow, 2 within",
        "near": True,
    }


def test_kernels_lead_to_their_nodes(tmp_path: Path) -> None:
    observed = in_browser(
        page(),
        """
        const links = () => [...document.querySelectorAll("#right button.link")];
        observed.kernels = links().map((each) => each.textContent);
        push(links()[0]);
        observed.chosen = document.activeElement.getAttribute("aria-label");
        observed.others = links().filter((each) => each.textContent.includes("prim::FusionGroup")).length;
        observed.line = document.querySelector("#source .here .number").textContent;
        """,
        tmp_path,
    )
    line = Layer.forward.__code__.co_firstlineno + 1
    assert observed == {
        "kernels": ["Kernel 1: 12 nodes"],
        "chosen": "FusionGroup, machine code, 4 within",
        "others": 11,
        "line": str(line),
    }


def test_times_and_types_on_demand(tmp_path: Path) -> None:
    net = rekindle.script(Net())
    with torch.no_grad():
        measured = net.measure(torch.ones(2, 4), False)
    observed = in_browser(
        measured.show(),
        """
        const times = () => drawn().filter((each) => /[0-9] (µs|ms|s)$/.test(labels(each))).length;
        push(boxOf("layer × 12"));
        observed.times = times() > 3;
        const label = /^layer × 12, repeated parts, 12 within, [0-9.,]+ (µs|ms|s)$/;
        observed.label = label.test(labels(boxOf("layer × 12")));
        $("times").click(); observed.without = times();
        press("m"); observed.again = times() > 3;
        observed.types = document.querySelectorAll("#graph .type").length;
        $("types").click();
        observed.with = [...new Set([...document.querySelectorAll("#graph .type")].map((each) => each.textContent))];
        observed.pressed = $("types").getAttribute("aria-pressed");
        """,
        tmp_path,
    )
    assert "Tensor" in observed.pop("with")
    assert observed == {"times": True, "label": True, "without": 0, "again": True, "types": 0, "pressed": "true"}


def test_two_stages_side_by_side(tmp_path: Path) -> None:
    observed = in_browser(
        page(),
        """
        $("stage").value = 1; $("stage").dispatchEvent(new Event("change"));
        observed.alone = getComputedStyle($("before")).display;
        press("c");
        observed.beside = $("before").getBoundingClientRect().width > 200;
        const was = [...document.querySelectorAll("#before .box")].map(labels);
        const calls = was.filter((each) => each.startsWith("CallMethod forward"));
        observed.gone = calls.every((each) => each.includes(", removed"));
        observed.kept = was.some((each) => each.startsWith("inputs") && !each.includes("removed"));
        observed.come = boxes().find((each) => each.startsWith("layer × 12"));
        observed.sign = [...document.querySelectorAll("#graph .added > text")][0].textContent.startsWith("+ ");
        """,
        tmp_path,
    )
    assert observed == {
        "alone": "none",
        "beside": True,
        "gone": True,
        "kept": True,
        "come": "layer × 12, repeated parts, 12 within, added",
        "sign": True,
    }


def test_memory(tmp_path: Path) -> None:
    source = "def f(x):\n    y = x.neg()\n    view = y.t()\n    view.add_(1)\n    return y\n"
    observed = in_browser(
        rekindle.show(rekindle.CompilationUnit(source).f),
        """
        $("stage").value = 0; $("stage").dispatchEvent(new Event("change"));
        push(boxOf("neg"));
        observed.titles = [...document.querySelectorAll("#right h2")].map((each) => each.textContent);
        const links = [...document.querySelectorAll("#right button.link")];
        observed.links = links.map((each) => each.textContent.split(" = ").pop());
        """,
        tmp_path,
    )
    assert observed == {
        "titles": ["neg", "Takes", "Is used by", "May share memory with", "Is written to by"],
        "links": [
            *("%x.1 : Tensor — inputs", "%y.1 : Tensor — t", "%y.1 : Tensor — outputs"),
            *("aten::t(%y.1)", "aten::add_(%view.1, %1, %1)", "aten::add_(%view.1, %1, %1)"),
        ],
    }


def test_stages_beside_what_changed(tmp_path: Path) -> None:
    observed = in_browser(
        page(),
        """
        $("stage").value = 0; $("stage").dispatchEvent(new Event("change"));
        observed.compiled = boxes().some((each) => each.startsWith("CallMethod forward"));
        $("on").click();
        observed.inlined = boxes().some((each) => each.startsWith("CallMethod forward"));
        observed.added = document.querySelectorAll("#right .added").length > 0;
        """,
        tmp_path,
    )
    assert observed == {"compiled": True, "inlined": False, "added": True}


def test_light_and_dark(tmp_path: Path) -> None:
    observed = in_browser(
        page(),
        """
        const back = () => getComputedStyle(document.body).backgroundColor;
        $("theme").click(); observed.first = back();
        $("theme").click(); observed.second = back();
        """,
        tmp_path,
    )
    assert sorted(observed.values()) == ["rgb(22, 24, 29)", "rgb(255, 255, 255)"]


def test_twenty_thousand_nodes(tmp_path: Path) -> None:
    lines = ["def f(x):", *(f"    x = x.tanh() * {number}.5 + x" for number in range(6_700)), "    return x", ""]
    observed = in_browser(
        rekindle.show(rekindle.CompilationUnit("\n".join(lines)).f), "observed.ms = opened;", tmp_path
    )
    assert observed["ms"] < 5_000


def chain(length: int) -> Page:
    """The page of one operator after the other, which nothing divides but their number."""
    names = ("tanh", "exp", "neg", "abs", "sin", "cos", "floor")
    lines = ["def f(x):", *(f"    x = x.{names[n * n % 11 % 7]}()" for n in range(length)), "    return x", ""]
    return rekindle.show(rekindle.CompilationUnit("\n".join(lines)).f.graph)


def transformer() -> Page:
    layer = nn.TransformerEncoderLayer(64, 4, batch_first=True).eval()
    return rekindle.show(layer, torch.randn(2, 8, 64))


def layers() -> Page:
    return page()


@pytest.mark.parametrize("window", ["1280,720", "1366,768", "1920,1080", "900,640"])
@pytest.mark.parametrize("shown", [layers, transformer, lambda: chain(40), lambda: chain(110), lambda: chain(3_000)])
def test_the_first_view_has_the_whole_graph_and_labels_that_can_be_read(
    shown: Callable[[], Page], window: str, tmp_path: Path
) -> None:
    observed = in_browser(
        shown(),
        """
        const room = $("graph").getBoundingClientRect();
        observed.stages = DATA.stages.map((_, index) => {
          show(index);
          const places = drawn().map((each) => each.getBoundingClientRect());
          const out = places.filter((each) => each.left < room.left - 1 || each.right > room.right + 1 ||
            each.top < room.top - 1 || each.bottom > room.bottom + 1);
          return [places.length, out.length, 12 * view.scale];
        });
        """,
        tmp_path,
        window,
    )
    for boxes, out_of_view, letters in observed["stages"]:
        assert boxes >= 2
        assert out_of_view == 0
        assert letters >= 7, "pixels"


def test_the_demo_in_a_terminal_of_80_columns(tmp_path: Path) -> None:
    demo = Path(__file__).parent.parent.parent / "examples" / "demo.py"
    environment = {**os.environ, "PYTHONPATH": str(demo.parent.parent)}
    printed = subprocess.run([sys.executable, str(demo)], capture_output=True, text=True, env=environment, check=True)
    style = "font: 14px monospace; width: 80ch; overflow: auto; white-space: pre; background: #111; color: #ddd"
    script = "document.title = terminal.scrollWidth - terminal.clientWidth"
    OUTPUT.mkdir(parents=True, exist_ok=True)
    path = OUTPUT / "demo.html"
    path.write_text(
        f'<meta charset="utf-8"><pre id="terminal" style="{style}">{html.escape(printed.stdout)}</pre>'
        f"<script>{script}</script>",
        encoding="utf-8",
    )
    assert "<title>0</title>" in chromium(path, "--dump-dom")
    chromium(path, f"--screenshot={OUTPUT / 'demo.png'}", window="760,3600")
    assert (OUTPUT / "demo.png").stat().st_size > 10_000


def test_screenshots() -> None:
    """Kept as build output, to be looked at."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    path = page().save(OUTPUT / "net.html")
    chromium(path, f"--screenshot={OUTPUT / 'light.png'}")
    chromium(
        path, f"--screenshot={OUTPUT / 'dark.png'}", "--force-dark-mode", "--blink-settings=preferredColorScheme=0"
    )
    first = transformer().save(OUTPUT / "transformer.html")
    chromium(first, f"--screenshot={OUTPUT / 'first_view.png'}", window="1366,768")
    compared = OUTPUT / "compared.html"
    script = '<script>$("stage").value = 1; show(1); $("compare").click(); $("types").click();</script></body>'
    compared.write_text(page().html.replace("</body>", script), encoding="utf-8")
    chromium(compared, f"--screenshot={OUTPUT / 'compared.png'}")
    assert (OUTPUT / "light.png").stat().st_size > 10_000
    assert (OUTPUT / "dark.png").read_bytes() != (OUTPUT / "light.png").read_bytes()
