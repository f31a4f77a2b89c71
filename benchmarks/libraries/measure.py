"""Deploy programs without Python, and measure start-up, size, memory, call time and build time.

A program is built in fresh processes: with empty caches, as the first program on a machine, and with the caches that
the build of another program leaves. It is then run by a driver, once in each round: the drivers of all ways take turns.
Start-up is the CPU time of the process up to its first result, the loading of
shared libraries included; a call is the median over the rounds of the CPU time of a call. The table has the CPU time of
a build, the rows have both. One thread each. Results are compared with eager's.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import torch
from torch.utils._pytree import tree_leaves

from benchmarks.libraries.arguments import read_leaves, write_arguments
from benchmarks.libraries.programs import PROGRAMS, DeployedProgram
from benchmarks.libraries.ways import IN_PROCESS, OURS, WAYS, compile_drivers

ROUNDS: Final = 7
SECONDS: Final = 0.3
"""CPU time that a driver calls the program for in a round."""
PATH: Final = Path(__file__).parent.parent / "results" / "libraries.json"
ROOT: Final = Path(__file__).parents[2]

_OF_THE_SYSTEM: Final = (
    "ld-linux",
    "libc.",
    "libm.",
    "libdl.",
    "librt.",
    "libpthread.",
    "libstdc++",
    "libgcc_s",
    "locale",
)
"""Shared libraries that every process of C or C++ has."""


@dataclass(slots=True)
class Deployed:
    """One way for one program. Seconds to build it after another program, as time and as CPU time; CPU time to build it
    as the first program on a machine; bytes of its files; bytes of the shared libraries that it needs besides those of
    the system; seconds of CPU time up to the first result; bytes that are then resident; seconds of a call; the median
    over the rounds of our time over its. ``unavailable`` says why there are no numbers."""

    build: float = math.nan
    build_cpu: float = math.nan
    first_build_cpu: float = math.nan
    files: int = 0
    runtime: int = 0
    start: float = math.nan
    start_wall: float = math.nan
    resident: int = 0
    call: float = math.nan
    ours_of_it: float = math.nan
    error: float = math.nan
    unavailable: str = ""


@dataclass(slots=True)
class Row:
    """A program, the bytes of its weights, and how it is deployed each way. ``torch_operators`` are those that a native
    library leaves to PyTorch."""

    program: str
    weights: int = 0
    torch_operators: list[str] = field(default_factory=list)
    ways: dict[str, Deployed] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Return the time of a call over the fastest other way's."""
        return max(
            (each.ours_of_it for name, each in self.ways.items() if name != OURS and not each.unavailable),
            default=math.nan,
        )


def run(
    rounds: int = ROUNDS, workload: str = "", seconds: float = SECONDS, ways: Sequence[str] = tuple(WAYS)
) -> Iterator[Row]:
    """Measure the programs with ``workload`` in their names, one at a time."""
    with tempfile.TemporaryDirectory(prefix="rekindle-deployed-") as folder:
        compile_drivers(ways, Path(folder))
        for program in PROGRAMS:
            if workload in program.name:
                with tempfile.TemporaryDirectory(dir=folder) as place:
                    yield _measure(program, Path(folder), Path(place), rounds, seconds, ways)


def _measure(
    program: DeployedProgram, drivers: Path, folder: Path, rounds: int, seconds: float, ways: Sequence[str]
) -> Row:
    module, arguments = program.make()
    row = Row(program.name, sum(each.nbytes for each in module.state_dict().values()))
    with torch.no_grad():
        expected = tree_leaves(module(*arguments))
    given = folder / "arguments"
    write_arguments(given, arguments)
    commands: dict[str, list[str]] = {}
    for way in ways:
        row.ways[way], artifact = _built(way, program.name, folder, is_quick=rounds == 1)
        if artifact is not None:
            commands[way] = WAYS[way].command(program.name, artifact, drivers)
            if way == OURS:
                row.torch_operators = json.loads((artifact / "manifest.json").read_text())["torch_operators"]
    reports: dict[str, list[dict[str, Any]]] = {way: [] for way in commands}
    for _ in range(rounds):
        for way, command in list(commands.items()):
            try:
                reports[way].append(_report(command, given, folder / "results", seconds))
            except subprocess.CalledProcessError as error:
                said = (error.stderr or str(error)).strip().splitlines()[-1]
                row.ways[way].unavailable = f"does not run: {said[:200]}"
                del commands[way]
                continue
            difference = _difference(read_leaves(folder / "results"), expected)
            row.ways[way].error = max(difference, 0.0)
            if difference > 1e-3:
                if way == OURS:
                    raise AssertionError(f"{program.name}: the library computes something else: {difference}")
                row.ways[way].unavailable = f"computes something else: {difference:.1e}"
                del commands[way]
    for way in commands:
        _summarize(row.ways[way], reports[way], reports.get(OURS, []))
    return row


def _environment(caches: Path) -> dict[str, str]:
    """Return the environment of a process: one thread, and caches in this folder."""
    paths = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    folders = {"TORCHINDUCTOR_CACHE_DIR": caches / "inductor", "REKINDLE_CACHE_DIR": caches / "rekindle"}
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    return {**os.environ, **threads, **{k: str(v) for k, v in folders.items()}, "PYTHONPATH": os.pathsep.join(paths)}


def _built(way: str, name: str, folder: Path, *, is_quick: bool) -> tuple[Deployed, Path | None]:
    """Build a program as the first one and after another one, or once, if that has to be quick. Return the measurements
    and the artifact."""
    first: dict[str, Any] = {}
    if not is_quick:
        other = next(each.name for each in PROGRAMS if each.name != name)
        first = _build_report(way, name, folder, folder / "first")
        _build_report(way, other, folder, folder / "caches")
    report = _build_report(way, name, folder, folder / "caches")
    if "unavailable" in report:
        return Deployed(unavailable=report["unavailable"]), None
    artifact = Path(report["artifact"])
    files = [artifact] if artifact.is_file() else [each for each in artifact.rglob("*") if each.is_file()]
    files = [each for each in files if each.suffix not in (".h", ".hpp")]
    if artifact.suffix == ".onnx":
        files += artifact.parent.glob("*.data")
    deployed = Deployed(report["seconds"], report["processor"], first.get("processor", math.nan))
    deployed.files = 0 if way == IN_PROCESS else sum(each.stat().st_size for each in files)
    return deployed, artifact


def _build_report(way: str, name: str, folder: Path, caches: Path) -> dict[str, Any]:
    """Build a program in a process with these caches, in a new folder within ``folder``; return its report."""
    place = Path(tempfile.mkdtemp(dir=folder))
    command = [sys.executable, "-m", "benchmarks.libraries.ways", way, name, str(place)]
    done = subprocess.run(command, cwd=ROOT, env=_environment(caches), capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("REPORT ")]
    if not lines:
        return {"unavailable": f"the build ended with {done.returncode}: {done.stderr.strip()[-200:]}"}
    report: dict[str, Any] = json.loads(lines[0].removeprefix("REPORT "))
    return report


def _report(command: Sequence[str], given: Path, results: Path, seconds: float) -> dict[str, Any]:
    whole = [*command, str(given), str(results), str(seconds), repr(time.monotonic())]
    done = subprocess.run(
        whole,
        cwd=ROOT,
        env=_environment(results.parent / "caches"),
        check=True,
        capture_output=True,
        text=True,
        timeout=600,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _difference(found: Sequence[Any], expected: Sequence[Any]) -> float:
    """Return the largest difference over the largest number of a result."""
    largest = 0.0
    for each, wanted in zip(found, expected, strict=True):
        a, b = (torch.as_tensor(value).double() for value in (each, wanted))
        if a.shape != b.shape:
            return math.inf
        largest = max(largest, float((a - b).abs().max() / b.abs().max().clamp_min(1e-30)))
    return largest


def _summarize(deployed: Deployed, reports: Sequence[dict[str, Any]], ours: Sequence[dict[str, Any]]) -> None:
    def median(key: str) -> float:
        return statistics.median(each[key] for each in reports)

    deployed.start, deployed.start_wall = median("start_cpu"), min(each["start_wall"] for each in reports)
    deployed.resident = int(median("resident")) * 1024
    deployed.call = median("call")
    if ours:
        deployed.ours_of_it = statistics.median(a["call"] / b["call"] for a, b in zip(ours, reports, strict=True))
    mapped = {Path(path).resolve() for path in reports[0]["mapped"]}
    shared = [path for path in mapped if ".so" in path.name and path.is_file() and not path.is_relative_to("/tmp")]
    deployed.runtime = sum(path.stat().st_size for path in shared if not path.name.startswith(_OF_THE_SYSTEM))


# ------------------------------------------------------------------------------------------------------------- tables

_UNITS: Final = {
    "first_build_cpu": 1.0,
    "build_cpu": 1.0,
    "files": 1e-6,
    "runtime": 1e-6,
    "start": 1e3,
    "resident": 1e-6,
    "call": 1e6,
}
_HEADS: Final = {
    "first_build_cpu": "first build, s",
    "build_cpu": "build, s",
    "files": "files, MB",
    "runtime": "shared libraries, MB",
    "start": "start-up, ms",
    "resident": "resident, MB",
    "call": "call, µs",
}


def table(rows: Sequence[Row]) -> list[list[str]]:
    """Return a line for each program and way."""
    lines = [["program", "", *_HEADS.values(), "rekindle of it"]]
    for row in rows:
        for way, each in row.ways.items():
            if each.unavailable:
                lines.append([row.program, way, *["–"] * (len(_HEADS) + 1)])
                continue
            numbers = [_number(getattr(each, key) * unit) for key, unit in _UNITS.items()]
            if way == IN_PROCESS:
                numbers[2:6] = ["–"] * 4
            lines.append([row.program, way, *numbers, f"{each.ours_of_it:.2f}"])
    return lines


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2g}"


def remarks(rows: Sequence[Row]) -> list[str]:
    """Return why numbers are missing, and which operators are left to PyTorch."""
    found = [
        f"{row.program}: {way}: {each.unavailable}"
        for row in rows
        for way, each in row.ways.items()
        if each.unavailable
    ]
    return found + [
        f"{row.program}: a library leaves {', '.join(row.torch_operators) or 'nothing'} to PyTorch" for row in rows
    ]


def save(rows: Sequence[Row], machine: dict[str, Any]) -> None:
    """Write the rows with what they depend on; rows of other programs stay."""
    packages = {}
    for name in ("onnx", "onnxruntime", "onnxscript", "torchvision"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = ""
    known = (
        {row["program"]: row for row in json.loads(PATH.read_text(encoding="utf-8"))["rows"]} if PATH.exists() else {}
    )
    known |= {row.program: {**asdict(row), "ratio": row.ratio} for row in rows}
    found = {
        "machine": {**machine, "cores": os.cpu_count(), "load": os.getloadavg()[0]},
        "packages": packages,
        "rows": [known[program.name] for program in PROGRAMS if program.name in known],
    }
    PATH.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
