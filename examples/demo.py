"""The compiler in under a minute: one function from source to kernel, times beside eager Python and ``torch.jit``, an
archive that stock PyTorch opens, an exported program, an edited graph.

Run it with ``make demo``. It exits with 1 if a result differs from eager's.
"""

from __future__ import annotations

import inspect
import logging
import statistics
import tempfile
import textwrap
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from models import AttentionDecoder, ResidualNet, edit_distance, gated_norm, lstm_cell
from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.rule import Rule
from rich.syntax import Syntax
from rich.table import Table
from torch import Tensor, nn
from torch.export import Dim

import rekindle

WIDTH = 80
SECONDS = 0.15
"""How long each program is called for one time of the table."""

console = Console(width=WIDTH, highlight=False)


def say(text: str) -> None:
    console.print(textwrap.fill(" ".join(text.split()), WIDTH), style="italic")


def chapter(title: str) -> None:
    console.print()
    console.print(Rule(f"[bold]{title}", align="left"))


def show(title: str, text: str, language: str = "text", lines: int = 24) -> None:
    """Print ``text`` under ``title``, at most ``lines`` of it; lines that are too long are wrapped."""
    console.print(f"[dim]{escape(title)}")
    found = textwrap.dedent(text).rstrip().splitlines()
    if len(found) > lines:
        found = [*found[:lines], f"… {len(found) - lines} more lines"]
    syntax = Syntax("\n".join(found), language, theme="ansi_light", background_color="default", word_wrap=True)
    console.print(syntax)
    console.print()


def pipeline() -> None:
    """One function at each stage of the compiler."""
    chapter("1. From source to kernel")
    show("Source", inspect.getsource(gated_norm), "python")
    compiled = rekindle.script(gated_norm)
    x, weight = torch.randn(64, 256), torch.randn(256)
    with torch.no_grad():
        stages = rekindle.stages(compiled, x, weight)
        show("Graph: single assignment, every value has a type", stages[0].text)
        for _ in range(5):
            compiled(x, weight)
        show(
            "Optimized graph: all operators are in one fusion group",
            without_locations(compiled.graph_for(x, weight)),
            lines=12,
        )
        report = rekindle.report(compiled)
    kernel = report.kernels[0]
    show("Kernel, in the loop IR that LLVM IR is generated from", kernel.text)
    instructions = sum(line.startswith("\t") and not line.startswith("\t.") for line in kernel.assembly.splitlines())
    say(f"LLVM IR: {len(kernel.llvm.splitlines())} lines. Assembly: {instructions} instructions.")


def without_locations(graph: rekindle.Graph) -> str:
    """The text of a graph without the comments that name source lines."""
    return "\n".join(line.partition(" # ")[0] for line in str(graph).splitlines())


def closeness(a: object, b: object) -> float:
    """The largest difference between two results; other values than tensors are equal or infinitely far apart."""
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return float((a - b).abs().max()) if a.shape == b.shape else float("inf")
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)) and len(a) == len(b):
        return max((closeness(x, y) for x, y in zip(a, b, strict=True)), default=0.0)
    return 0.0 if a == b else float("inf")


def timed(calls: Sequence[Callable[[], object]]) -> list[float]:
    """The median seconds of each call, measured in alternation."""
    counts = []
    for call in calls:
        start = time.perf_counter()
        call()
        counts.append(max(1, int(SECONDS / 5 / max(time.perf_counter() - start, 1e-7))))
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(5):
        for call, count, found in zip(calls, counts, times, strict=True):
            start = time.perf_counter()
            for _ in range(count):
                call()
            found.append((time.perf_counter() - start) / count)
    return [statistics.median(found) for found in times]


def programs() -> list[tuple[str, Any, tuple[Any, ...]]]:
    """The programs of the table, with arguments."""
    size, hidden = 32, 32
    cell = (
        *(torch.randn(1, size), torch.randn(1, hidden), torch.randn(1, hidden)),
        *(torch.randn(4 * hidden, size), torch.randn(4 * hidden, hidden)),
        *(torch.randn(4 * hidden), torch.randn(4 * hidden)),
    )
    return [
        ("LSTM cell", lstm_cell, cell),
        ("gated norm", gated_norm, (torch.randn(64, 256), torch.randn(256))),
        ("attention decoder", AttentionDecoder().eval(), (torch.randn(9, 32), 3)),
        ("residual CNN", ResidualNet().eval(), (torch.randn(1, 3, 16, 16),)),
        ("edit distance", edit_distance, (list(range(40)), list(range(5, 45)))),
    ]


def speed() -> bool:
    """Times beside eager Python and ``torch.jit``. Returns whether all results agree with eager's."""
    chapter("2. Times of a call in µs, on one thread, measured now")
    table = Table("program", "eager", "torch.jit", "rekindle", "/ eager", "/ torch.jit", box=SIMPLE)
    for column in table.columns[1:]:
        column.justify = "right"
    worst = 0.0
    for name, program, args in programs():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch.jit is deprecated
            peer = torch.jit.script(program)
        ours = rekindle.script(program)
        if isinstance(program, nn.Module) and name == "residual CNN":
            ours = rekindle.optimize_for_inference(ours)
        calls = [partial(each, *args) for each in (program, peer, ours)]
        with torch.no_grad():
            for _ in range(4):  # compile, and profile
                results = [call() for call in calls]
            eager, jit, here = timed(calls)
        difference = closeness(results[0], results[2])
        worst = max(worst, difference)
        times = [f"{seconds * 1e6:,.1f}" for seconds in (eager, jit, here)]
        table.add_row(name, *times, f"{here / eager:.2f}", f"{here / jit:.2f}")
    console.print(table)
    say(f"""The last two columns are rekindle's time over the others': below 1 is faster. Results differ from eager's
    by at most {worst:.0e}. The residual CNN is optimized for inference. docs/benchmarks.md shows programs that others
    wrote.""")
    return worst < 1e-4


def archive(folder: Path) -> bool:
    """A program is saved here and loaded by PyTorch."""
    chapter("3. An archive that stock PyTorch opens")
    decoder = AttentionDecoder().eval()
    path = folder / "decoder.pt"
    rekindle.save(rekindle.script(decoder), path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit is deprecated
        loaded = torch.jit.load(path)
    memory = torch.randn(9, 32)
    agrees = loaded(memory, 3) == decoder(memory, 3)
    show("What is in the file: rekindle.inspect(path)", str(rekindle.inspect(path)), lines=13)
    say(f"torch.jit.load opens it, and its result {'equals' if agrees else 'DIFFERS FROM'} eager's.")
    return agrees


class Doubler(nn.Module):
    """A loop whose trip count depends on the data."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        while bool(x.abs().sum() < 100):
            x = x * 2
        return self.linear(x)


def export() -> bool:
    """A program with a data-dependent loop as an ``ExportedProgram``."""
    chapter("4. An ExportedProgram, with a loop that depends on the data")
    model = Doubler()
    logging.disable()  # PyTorch logs and prints the graph that it has so far
    try:
        with redirect_stderr(StringIO()):
            torch.export.export(model, (torch.ones(3, 4),))
    except Exception as error:
        say(f"torch.export.export rejects this model: {type(error).__name__}. rekindle.to_exported compiles it first.")
    finally:
        logging.disable(logging.NOTSET)
    show("Source", inspect.getsource(Doubler.forward), "python")
    program = rekindle.script(model)
    exported = rekindle.to_exported(program, (torch.ones(3, 4),), dynamic_shapes={"x": {0: Dim("rows", min=2, max=64)}})
    code = exported.graph_module.code.strip().replace(";  ", "\n    # ")
    show("Its graph", "\n".join(line for line in code.splitlines() if " = None" not in line), "python", lines=16)
    x = torch.ones(7, 4)
    agrees = torch.allclose(exported.module()(x), program(x))
    say(f"On 7 rows its result {'equals' if agrees else 'DIFFERS FROM'} the program's.")
    return agrees


def edit() -> bool:
    """A node is inserted into a graph."""
    chapter("5. An edited graph")

    def layer(x: Tensor, w: Tensor) -> Tensor:
        return torch.relu(x @ w)

    compiled = rekindle.script(layer)
    graph = compiled.graph
    relu = graph.find_node("aten::relu")
    with graph.inserting_before(relu) as build:
        relu.replace_input(0, build(relu.input) + 1.0)
    show(
        "Insert an addition before the relu",
        """
        relu = graph.find_node("aten::relu")
        with graph.inserting_before(relu) as build:
            relu.replace_input(0, build(relu.input) + 1.0)
        """.strip("\n"),
        "python",
    )
    show("The graph after it", without_locations(graph))
    x, w = torch.randn(2, 3), torch.randn(3, 4)
    return torch.allclose(compiled(x, w), torch.relu(x @ w + 1.0))


NEXT = (
    ("docs/index.md", "start pages: an archive, torch.jit, speed, export, graphs"),
    ("docs/start/torch_jit.md", "move code from torch.jit, with diffs"),
    ("rekindle.show(f).save('f.html')", "see each pass in a browser"),
    ("rekindle.report(f)", "see which operators were fused, and why others were not"),
    ("rekindle inspect FILE.pt", "look into an archive"),
    ("make site", "build the documentation, with search"),
)


def main() -> int:
    torch.manual_seed(0)
    torch.set_num_threads(1)  # what other programs run does not change the times much
    started = time.perf_counter()
    pipeline()
    agree = [speed()]
    with tempfile.TemporaryDirectory() as folder:
        agree.append(archive(Path(folder)))
    agree += [export(), edit()]
    if not all(agree):
        console.print("[red]A result differs from eager's.[/red]")
        return 1
    chapter("Next steps")
    for command, purpose in NEXT:
        console.print(f"  [bold]{escape(command)}[/bold]\n      {purpose}")
    say(f"That took {time.perf_counter() - started:.0f} seconds.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
