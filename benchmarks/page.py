"""``docs/benchmarks.md`` and its plots, made from ``benchmarks/results``: ``python -m benchmarks.page``.

A test compares the page with the results, so that no number in it is older than the measurement.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.plots import lines, ratios

DOCS: Final = Path(__file__).parent.parent / "docs"
RESULTS: Final = Path(__file__).parent / "results"
PAGE: Final = DOCS / "benchmarks.md"
PLOTS: Final = DOCS / "plots"

HEAD: Final = """# Benchmarks

Each plot shows ratios: rekindle's time divided by the time of another executor of the same program. Below 1, rekindle
is faster. The numbers come from `benchmarks/results`, and `make pages` writes this page. [Performance](performance.md)
explains how each is measured, and lists the aims that are missed, with reasons.
"""
Ratios = Mapping[str, Mapping[str, float]]


def _read(name: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return result


def _mean(values: list[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


def _means(data: Ratios) -> str:
    """Return a table of the geometric means, and the number of programs that are slower than each peer by more than 3
    %."""
    rows = ["| compared with | programs | geometric mean | slower by more than 3 % |", "| --- | ---: | ---: | ---: |"]
    for peer in dict.fromkeys(peer for row in data.values() for peer in row):
        values = [row[peer] for row in data.values() if peer in row]
        slower = sum(value > 1.03 for value in values)
        rows.append(f"| {peer} | {len(values)} | {_mean(values):.2f} | {slower} |")
    return "\n".join(rows)


def module_ratios(mode: str) -> dict[str, dict[str, float]]:
    """Return the measured ratios of modules, by library and name, in the mode ``inference`` or ``training``."""
    rows = [row for row in _read("modules")["rows"] if row["mode"] == mode]
    found = {
        f"{row['library']} {row['name']}": row["peers"].get("rekindle", {}).get("ratios", {})
        for row in rows
        if not row["failure"]
    }
    return {name: row for name, row in found.items() if row}


def _distribution(mode: str, title: str) -> str:
    """Return the SVG of the ratios to each peer in ascending order, by the share of the modules."""
    data = module_ratios(mode)
    curves = {}
    for peer in ("eager", "torch.jit"):
        values = sorted(row[peer] for row in data.values() if peer in row)
        curves[peer] = [(100 * (index + 1) / len(values), value) for index, value in enumerate(values)]
    return lines(title, "percent of the modules", "time over the peer's", curves)


def plots() -> Iterator[tuple[str, str]]:
    """Yield the file name and the SVG of each plot."""
    yield (
        "kernels.svg",
        ratios(
            "Programs written for the comparison, CPU", "rekindle's time over the peer's", _read("kernels")["ratios"]
        ),
    )
    yield "modules_inference.svg", _distribution("inference", "Modules of libraries, inference")
    yield "modules_training.svg", _distribution("training", "Modules of libraries, training")
    yield (
        "runtimes.svg",
        ratios("Networks beside inference runtimes, CPU", "rekindle's time over the peer's", _runtimes()),
    )
    yield "cuda.svg", ratios("Programs on a GPU", "rekindle's time over the peer's", _cuda())


def _runtimes() -> dict[str, dict[str, float]]:
    return {
        row["network"]: {
            peer: times["ours_of_it"]
            for peer, times in row["peers"].items()
            if peer != "rekindle" and not times["unavailable"] and times["ours_of_it"]
        }
        for row in _read("runtimes")["rows"]
    }


def _cuda() -> dict[str, dict[str, float]]:
    """Return the ratios of rekindle to each peer by program; both have CUDA graphs where the peer has them."""
    return {
        row["title"]: {
            peer: row["device_us"]["rekindle, CUDA graphs" if "graphs" in peer else "rekindle"] / time
            for peer, time in row["device_us"].items()
            if not peer.startswith("rekindle") and time
        }
        for row in _read("cuda")["rows"]
        if "rekindle" in row["device_us"]
    }


def _machine(name: str) -> str:
    machine = _read(name)["machine"]
    threads = "1 thread" if machine["threads"] == 1 else f"{machine['threads']} threads"
    return f"PyTorch {machine['torch']}, Python {machine['python']}, {threads}"


def render() -> str:
    """Return the page."""
    modules = _read("modules")
    measured = {mode: module_ratios(mode) for mode in ("inference", "training")}
    present = {row["library"] for row in modules["rows"]}
    libraries = ", ".join(
        f"{name} {version}" for name, version in sorted(modules["packages"].items()) if name in present
    )
    cuda = _read("cuda")
    parts = [
        HEAD,
        "## Modules of libraries",
        (
            f"Unchanged modules of installed packages: `torch.nn`, {libraries}. {_machine('modules')}. "
            f"Measured so far: {modules['summary'][0].partition(';')[0]}; "
            "a row is a module in inference or in training. "
            "Each curve has the ratios in ascending order. Below 1, rekindle is faster."
        ),
        "![Ratios in inference](plots/modules_inference.svg)",
        "Inference:",
        _means(measured["inference"]),
        "![Ratios in training](plots/modules_training.svg)",
        "Training:",
        _means(measured["training"]),
        "## Programs written for the comparison",
        (
            "These programs show what is possible. They do not predict the speedup of other programs. "
            f"{_machine('kernels')}."
        ),
        "![Ratios of single programs](plots/kernels.svg)",
        _means(_read("kernels")["ratios"]),
        "## ONNX Runtime and OpenVINO",
        f"Networks after `optimize_for_inference`, compared with two inference runtimes. {_machine('runtimes')}.",
        "![Ratios beside inference runtimes](plots/runtimes.svg)",
        _means(_runtimes()),
        "## On a GPU",
        f"Time on the device: {cuda['device']}, PyTorch {cuda['torch']}.",
        "![Ratios on a GPU](plots/cuda.svg)",
        _means(_cuda()),
        "## Measure it yourself",
        (
            "`make bench` measures the programs on the CPU, `make bench-modules` the modules of libraries, "
            "and `make bench-cuda` the programs on a GPU."
        ),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def main() -> None:
    """Write the page and its plots."""
    PLOTS.mkdir(exist_ok=True)
    for name, svg in plots():
        (PLOTS / name).write_text(svg, encoding="utf-8")
    PAGE.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
