"""Many mutants, in processes of their own.

python -m tests.archive.hostile.fuzz --count 200000 --jobs 2     writes results/fuzz.md
python -m tests.archive.hostile.fuzz --only 17 --run 1           one of them: what it is, and what comes of it
"""
# ruff: noqa: T201 - a command: it prints

from __future__ import annotations

import argparse
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import torch

from tests.archive.hostile.judge import SECONDS, Judge, calm_down
from tests.archive.hostile.mutations import mutant
from tests.archive.hostile.seeds import Seed, seeds

RESULTS = Path(__file__).parent / "results"
RUN = 20260
"""Which mutants the numbers mean."""

_CHUNK = 2_000
_STUCK = 300.0
"""Seconds after which a process is ended that does not even use the processor."""
_BEAT = struct.Struct("<qd")


@dataclass
class Report:
    """What came of some mutants: how many of each outcome, and those that went wrong."""

    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[int, str, str]] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, 0)
    """Seconds of the processor's time, and the number of the mutant."""

    def add(self, other: Report) -> None:
        self.outcomes += other.outcomes
        self.wrong += other.wrong
        self.slowest = max(self.slowest, other.slowest)

    @property
    def count(self) -> int:
        return sum(self.outcomes.values())


def judge_all(run: int, start: int, stop: int, jobs: int, seconds: float = 1e9, chunk: int = _CHUNK) -> Report:
    """Judge the mutants ``start`` to ``stop``, ``chunk`` in each process; no process is begun once ``seconds`` have
    passed."""
    deadline = time.monotonic() + seconds
    chunks = [(at, min(at + chunk, stop)) for at in range(start, stop, chunk)]
    report = Report()

    def work(chunk: tuple[int, int]) -> Report:
        return _judge_chunk(run, *chunk) if time.monotonic() < deadline else Report()

    with ThreadPoolExecutor(jobs) as pool:
        for part in pool.map(work, chunks):
            report.add(part)
            told = f"\r{report.count}/{stop - start}, {len(report.wrong)} wrong"
            print(told, end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return report


def _judge_chunk(run: int, start: int, stop: int) -> Report:
    report = Report()
    at = start
    while at < stop:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "lines"
            path.write_text("", encoding="utf-8")
            (Path(folder) / "beat").write_bytes(_BEAT.pack(at, 0.0))
            command = [sys.executable, "-m", "tests.archive.hostile.fuzz", "--worker", folder, "--run", str(run)]
            process = subprocess.Popen([*command, "--start", str(at), "--stop", str(stop)])
            killed = _watch(process, Path(folder) / "beat")
            if _BEAT.unpack((Path(folder) / "beat").read_bytes())[1] == 0.0:
                raise RuntimeError("the process ended before the first mutant")
            done = at
            for line in path.read_text(encoding="utf-8").splitlines():
                number, outcome, is_wrong, detail, took = json.loads(line)
                report.outcomes[outcome] += 1
                report.slowest = max(report.slowest, (took, number))
                if is_wrong:
                    report.wrong.append((number, outcome, detail))
                done = number + 1
        at = done
        if process.returncode != 0 and at < stop:
            outcome = killed or f"crash ({process.returncode})"
            report.outcomes[outcome] += 1
            report.wrong.append((at, outcome, ""))
            at += 1
    return report


def _watch(process: subprocess.Popen[bytes], beat: Path) -> str:
    """Wait for a process; end one that hangs where its own alarm cannot reach it. Returns why, if so."""
    since = time.monotonic()
    last = -1
    while True:
        try:
            process.wait(1)
            return ""
        except subprocess.TimeoutExpired:
            pass
        number, used = _BEAT.unpack(beat.read_bytes())
        if number != last:
            last, since = number, time.monotonic()
        if used and _processor_time(process.pid) - used > 2 * SECONDS:
            reason = "hang"
        elif time.monotonic() - since > _STUCK:
            reason = "stuck"
        else:
            continue
        process.kill()
        process.wait()
        return reason


def _processor_time(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def serve(folder: Path, run: int, start: int, stop: int) -> None:
    """The other side: judge and write down."""
    torch.set_num_threads(1)
    originals = seeds()
    judge = _judge(originals)
    beat = os.open(folder / "beat", os.O_WRONLY)
    with (folder / "lines").open("a", encoding="utf-8") as out:
        for number in range(start, stop):
            os.pwrite(beat, _BEAT.pack(number, math.inf), 0)  # making one may take longer than judging it
            made = mutant(originals, number, run)
            before = time.process_time()
            os.pwrite(beat, _BEAT.pack(number, before), 0)
            verdict = judge.verdict(made.data)
            took = round(time.process_time() - before, 3)
            detail = f"{made.history}\n{verdict.detail}" if verdict.is_wrong else ""
            out.write(json.dumps([number, verdict.outcome, verdict.is_wrong, detail, took]) + "\n")
            out.flush()
            if number % 500 == 0:
                calm_down()


def _judge(originals: Sequence[Seed]) -> Judge:
    """One that has seen archives: what is imported or made once is not a mutant's doing."""
    judge = Judge()
    for seed in originals:
        judge.verdict(seed.data)
    return judge


def explain(number: int, run: int, save: Path | None) -> None:
    """One mutant: what it is, and what comes of it."""
    originals = seeds()
    made = mutant(originals, number, run)
    print(f"{len(made.data)} bytes: {made.history}")
    if save is not None:
        save.write_bytes(made.data)
    verdict = _judge(originals).verdict(made.data)
    print(f"{verdict.outcome}{' (wrong)' if verdict.is_wrong else ''}\n{verdict.detail}")


def text_of(report: Report, run: int, start: int, stop: int) -> str:
    seconds, slowest = report.slowest
    facts = (
        f"Run {run}, mutants {start} to {stop - 1}: {report.count} of {stop - start} judged, {len(report.wrong)} "
        f"wrong, with PyTorch {torch.__version__}. The slowest, {slowest}, took {seconds:.1f} s of processor time."
    )
    lines = [
        "# Mutants of archives",
        "",
        facts,
        "",
        "| outcome | mutants |",
        "| --- | ---: |",
        *(f"| {outcome} | {count} |" for outcome, count in report.outcomes.most_common()),
    ]
    if report.wrong:
        lines += ["", "Wrong:", ""]
        lines += [
            f"- {number}: {outcome}: {' '.join(detail.split())[:600]}" for number, outcome, detail in report.wrong
        ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--stop", type=int, help="instead of --count")
    parser.add_argument("--run", type=int, default=RUN, help="which mutants the numbers mean")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no more mutants after this time")
    parser.add_argument("--only", type=int, help="one mutant")
    parser.add_argument("--save", type=Path, help="with --only: write the mutant to this file")
    parser.add_argument("--write", action="store_true", help="write results/fuzz.md")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    stop = options.start + options.count if options.stop is None else options.stop
    if options.worker is not None:
        serve(options.worker, options.run, options.start, stop)
        return
    if options.only is not None:
        explain(options.only, options.run, options.save)
        return
    print(f"run {options.run}, mutants {options.start} to {stop - 1}", file=sys.stderr)
    report = judge_all(options.run, options.start, stop, options.jobs, options.minutes * 60)
    text = text_of(report, options.run, options.start, stop)
    print(text)
    if options.write:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "fuzz.md").write_text(text, encoding="utf-8")
    sys.exit(bool(report.wrong))


if __name__ == "__main__":
    main()
