"""The main job of rekindle, shown on real models: source, tree, graph, instructions, and the answer beside eager's.

Run it with ``make demo``.
"""

from __future__ import annotations

import inspect
import textwrap
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from models import AttentionDecoder, ResidualNet, lstm_cell
from rich.console import Console
from rich.markup import escape
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from torch import nn

import rekindle
from rekindle.runtime.interpreter.code import Code
from rekindle.syntax.python_ast import function_def

console = Console(width=110, highlight=False)


def say(text: str) -> None:
    console.print(textwrap.fill(" ".join(text.split()), 100), style="italic")


def show(title: str, text: str, language: str = "text", lines: int = 40) -> None:
    """Print ``text`` under ``title``, cut to ``lines``."""
    console.print(Rule(escape(title), align="left", style="dim"))
    found = text.rstrip().splitlines()
    if len(found) > lines:
        found = [*found[:lines], f"… {len(found) - lines} more lines"]
    console.print(Syntax("\n".join(found), language, theme="ansi_light", background_color="default"))


def journey() -> None:
    """One function on its way through the house, floor by floor."""
    console.print(Rule("[bold]1. The journey of one function: an LSTM cell"))
    say("""Every program takes the same way through the package; each folder is one floor of it.""")
    show("The source, as its author wrote it", inspect.getsource(lstm_cell), "python")
    say("rekindle/syntax turns it into a tree. Here is the tree of its first statement:")
    definition = function_def(lstm_cell)
    statement = next(s for s in definition.body if s.tree.kind == "assign")
    show("The tree (rekindle.syntax)", str(statement))
    say("""rekindle/frontend walks the tree, resolves the names, checks the types, and emits a graph in static single
    assignment form: every value is defined once. The comments say where in the source each node comes from.""")
    scripted, _ = compiled(lstm_cell)
    show("The graph (rekindle.frontend, rekindle.ir)", str(scripted.graph))
    say("""rekindle/runtime makes instructions of the graph. `move` marks the last use of a value: a tensor's memory is
    free again as soon as nothing needs it.""")
    show("The instructions (rekindle.runtime)", str(Code(scripted.graph, "lstm_cell")))


Result = object

_compiled: dict[Callable[..., Result], tuple[Any, float]] = {}


def compiled(program: Callable[..., Any]) -> tuple[Any, float]:
    """``program`` compiled, and the seconds that it took the first time."""
    if program not in _compiled:
        began = time.perf_counter()
        _compiled[program] = rekindle.script(program), time.perf_counter() - began
    return _compiled[program]


def closeness(a: Result, b: Result) -> float:
    """The largest difference between two results; lists of ints and the like count as 0 if equal, else infinity."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return float((a - b).abs().max()) if a.shape == b.shape else float("inf")
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)) and len(a) == len(b):
        return max((closeness(x, y) for x, y in zip(a, b, strict=True)), default=0.0)
    return 0.0 if a == b else float("inf")


def compare(name: str, program: Callable[..., Result], samples: Sequence[tuple[object, ...]], table: Table) -> bool:
    """Compile ``program``, run it on ``samples`` beside eager, and add a row. Returns whether the answers agree."""
    scripted, seconds = compiled(program)
    worst = max(closeness(program(*sample), scripted(*sample)) for sample in samples)
    agrees = worst <= 1e-5
    graph = scripted.inlined_graph
    nodes = sum(1 for _ in graph.all_nodes())
    verdict = "[green]equal[/green]" if agrees else "[red]DIFFERENT[/red]"
    table.add_row(name, f"{nodes:,}", f"{seconds * 1e3:,.0f} ms", str(len(samples)), f"{worst:.1e}", verdict)
    return agrees


def models() -> bool:
    """Real models beside eager."""
    console.print(Rule("[bold]2. Real models, beside eager"))
    torch.manual_seed(0)
    decoder = AttentionDecoder().eval()
    say("""A decoder whose loop stops on the data keeps its loop in the graph: nothing is unrolled or baked in.""")
    show("AttentionDecoder.forward (source)", textwrap.dedent(inspect.getsource(AttentionDecoder.forward)), "python")
    show("AttentionDecoder.forward (graph)", str(compiled(decoder)[0].graph), lines=60)
    table = Table(
        "model",
        "nodes",
        "compiled in",
        "inputs tried",
        "largest difference",
        "answer",
        title="Beside eager",
        caption="the first includes loading the compiler",
    )
    size, hidden = 16, 32
    cell = [
        *(torch.randn(4, size), torch.randn(4, hidden), torch.randn(4, hidden)),
        *(torch.randn(4 * hidden, size), torch.randn(4 * hidden, hidden)),
        *(torch.randn(4 * hidden), torch.randn(4 * hidden)),
    ]
    transformer = nn.Transformer(
        d_model=32, nhead=4, num_encoder_layers=2, num_decoder_layers=2, dim_feedforward=64, batch_first=True
    ).eval()
    with torch.no_grad():
        agree = [
            compare("LSTM cell", lstm_cell, [tuple(cell)], table),
            compare("attention decoder", decoder, [(torch.randn(t, 32), 3) for t in (3, 5, 9)], table),
            compare("residual CNN", ResidualNet().eval(), [(torch.randn(n, 3, 16, 16),) for n in (1, 4)], table),
            compare(
                "nn.Transformer",
                transformer,
                [(torch.randn(2, s, 32), torch.randn(2, t, 32)) for s, t in ((7, 5), (3, 8))],
                table,
            ),
        ]
    console.print(table)
    return all(agree)


def main() -> int:
    journey()
    if not models():
        console.print("[red]An answer differs from eager's.[/red]")
        return 1
    console.print("Where to go next: docs/architecture.md explains the house, README.md the public names.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
