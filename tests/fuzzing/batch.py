"""Many programs: generate, judge, shrink what fails, count."""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch

from tests.fuzzing.constructs import constructs
from tests.fuzzing.findings import Finding
from tests.fuzzing.generating.programs import generate
from tests.fuzzing.judge import Judge, Verdict
from tests.fuzzing.known import UNUSED, every_operator
from tests.fuzzing.noise import Noise
from tests.fuzzing.program import HEAD, Program
from tests.fuzzing.shrinking import only, shrink
from tests.fuzzing.workers import PROCESSOR_SECONDS, Ended, Pool, Send, Work, limit

CHUNK: Final = 100
"""Programs of one process."""
EAGER_SECONDS: Final = 3.0
"""What a program may take of a processor in eager Python: an invalid program (``2 ** 2 ** 63``) ends soon."""
SHRUNK: Final = 1
"""How many programs with the same failure, kind and way are shrunk."""


@dataclass(slots=True)
class Report:
    """What came of some programs."""

    seed: int
    count: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    constructs: Counter[str] = field(default_factory=Counter)
    rejections: Counter[str] = field(default_factory=Counter)
    failures: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    first: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """The number of the first program with a failure."""
    findings: dict[str, Finding] = field(default_factory=dict)
    folder: Path | None = None
    """Where findings are written as soon as they are shrunk."""
    native: int = 0
    values: int = 0
    calls: int = 0
    seconds: float = 0.0

    def add(self, number: int, verdict: Verdict, used: list[str]) -> None:
        self.count += 1
        self.statuses[verdict.status] += 1
        self.constructs.update(used)
        self.native += verdict.native
        self.values += verdict.values
        self.calls += verdict.calls
        if verdict.status == "rejected":
            self.rejections.update(verdict.kind.split("; "))
        if verdict.status == "finding":
            self.failures[verdict.signature] += 1
            self.first[verdict.signature] = min(number, self.first.get(verdict.signature, number))

    @property
    def compiled(self) -> int:
        return self.count - self.statuses["rejected"] - self.statuses["invalid"]


_WARM: Final = (
    HEAD
    + """
def f(x, n: int):
    total = 0.0
    for v in x:
        total += v.item()
    if n > 1:
        n = n // 2
    return (x.exp() + 1).tanh(), total, [e * 2 for e in range(n)], f"{n}"
SUBJECT = f
CALLS = [lambda: (torch.ones(2), 3)]
WAYS = ("unoptimized", "optimized", "profiling", "saved")
"""
)
_WARM_DERIVATIVES: Final = (
    HEAD
    + """
def f(x):
    return (x.exp() * x).sum()
SUBJECT = f
CALLS = [lambda: (torch.ones(2, requires_grad=True),)]
WAYS = ("optimized", "jvp", "grad", "vmap")
"""
)


def warm() -> None:
    """Load what programs need before processes fork: PyTorch imports modules for seconds when they are first used."""
    torch.set_num_threads(1)
    Judge().verdict(Program(_WARM, "warm"))
    Judge().verdict(Program(_WARM_DERIVATIVES, "warm"))
    with contextlib.suppress(RuntimeError), Noise(0):
        torch.ones(2).exp().clone()


def _judging(seed: int, numbers: range) -> Work:
    def work(send: Send) -> None:
        for number in numbers:
            limit()
            send({"at": number, "stage": "generate", "found": None})
            program = generate(seed, number)

            def begin(stage: str, found: Verdict | None, number: int = number) -> None:
                limit(EAGER_SECONDS if stage == "eager" else PROCESSOR_SECONDS)
                send({"at": number, "stage": stage, "found": None if found is None else found.to_dict()})

            verdict = Judge(begin).verdict(program)
            send({"done": number, "verdict": verdict.to_dict(), "constructs": constructs(program.source)})

    return work


def _explaining(program: Program) -> Work:
    """Judge a program that hangs again, with every operator executed: an endless loop may end by the error of one whose
    result is not used."""

    def work(send: Send) -> None:
        warnings.simplefilter("ignore")
        with every_operator():
            verdict = Judge().verdict(program)
        if verdict.status == "passed":
            send({"row": UNUSED})

    return work


def _shrinking(source: str, wanted: Verdict, seconds: float) -> Work:
    def work(send: Send) -> None:
        limit(seconds, 4 * seconds)
        judge = Judge()

        warnings.simplefilter("ignore")

        def fails(candidate: str) -> bool:
            verdict = judge.verdict(Program(candidate, "candidate"))
            same = (verdict.failure, verdict.kind) == (wanted.failure, wanted.kind) and verdict.way == wanted.way
            if same:
                send({"source": candidate, "verdict": verdict.to_dict()})
            return same

        focused = only(source, wanted.way, wanted.call)
        shrink(focused if fails(focused) else source, fails)

    return work


def run(
    seed: int,
    start: int,
    count: int,
    jobs: int,
    seconds: float = 1e9,
    shrinking: float = 30.0,
    quiet: bool = False,
    folder: Path | None = None,
) -> Report:
    """Judge the programs ``start`` to ``start + count`` of ``seed``; findings are shrunk for ``shrinking`` seconds,
    if any, and written to ``folder``."""
    warm()
    report = Report(seed, folder=folder)
    pool = Pool(jobs)
    for at in range(start, start + count, CHUNK):
        numbers = range(at, min(at + CHUNK, start + count))
        pool.add(("judge", at, numbers.stop), _judging(seed, numbers))
    reached: dict[Any, tuple[int, str, Any]] = {}
    rows: dict[int, str] = {}
    begun = time.monotonic()
    for task, message in pool.run():
        if task[0] == "judge":
            _note_judged(report, pool, task, message, reached, shrinking)
        elif task[0] == "explain":
            _note_explained(report, task, message, rows)
        else:
            _note_shrunk(report, task, message)
        if time.monotonic() - begun > seconds:
            for queued in [each for each in pool.tasks if each[0][0] == "judge"]:
                pool.tasks.remove(queued)
        if not quiet and isinstance(message, dict) and "done" in message and report.count % 20 == 0:
            rate = report.count / (time.monotonic() - begun)
            shares = f"{dict(report.statuses)}, {len(report.findings)} shapes"
            text = f"\r{report.count}/{count}, {rate:.1f} a second, {shares}  "
            print(text, end="", file=sys.stderr, flush=True)  # noqa: T201 - progress of a command
    report.seconds = time.monotonic() - begun
    return report


def _note_judged(
    report: Report, pool: Pool, task: Any, message: Any, reached: dict[Any, tuple[int, str, Any]], shrinking: float
) -> None:
    if isinstance(message, Ended):
        if not message.reason:
            return
        number, stage, found = reached.get(task, (task[1], "start", None))
        verdict = Verdict(
            "finding", message.reason.partition(" ")[0], message.reason, stage, detail=message.trace[-1500:]
        )
        if stage in ("generate", "eager", "start"):
            verdict = Verdict("invalid", detail=f"{message.reason} in eager Python")
        if found is not None:
            verdict = Verdict(**found)  # without an explanation: eager Python with other rows may take for ever
        if verdict.failure == "hang":
            program = generate(report.seed, number)
            pool.add(("explain", number, verdict, program.source), _explaining(program), first=True)
        else:
            report.add(number, verdict, [])
            if verdict.status == "finding":
                _keep(report, Finding(report.seed, number, generate(report.seed, number).source, verdict))
        left = range(number + 1, task[2])
        if left and stage != "start":
            pool.add(("judge", left.start, left.stop), _judging(report.seed, left), first=True)
        return
    if "stage" in message:
        reached[task] = (message["at"], message["stage"], message["found"])
        return
    verdict = Verdict(**message["verdict"])
    number = message["done"]
    report.add(number, verdict, message["constructs"])
    if verdict.status == "finding" and report.failures[verdict.signature] <= SHRUNK:
        source = generate(report.seed, number).source
        if shrinking <= 0:
            _keep(report, Finding(report.seed, number, source, verdict))
            return
        pool.add(("shrink", number, verdict, source), _shrinking(source, verdict, shrinking), first=True)


def _note_explained(report: Report, task: Any, message: Any, rows: dict[int, str]) -> None:
    _, number, verdict, source = task
    if not isinstance(message, Ended):
        rows[number] = message["row"]
    elif number in rows:
        report.add(number, Verdict("known", kind=rows.pop(number)), [])
    else:
        report.add(number, verdict, [])
        _keep(report, Finding(report.seed, number, source, verdict))


_SMALLEST: Final[dict[int, tuple[str, Verdict]]] = {}


def _note_shrunk(report: Report, task: Any, message: Any) -> None:
    _, number, verdict, source = task
    if not isinstance(message, Ended):
        _SMALLEST[number] = (message["source"], Verdict(**message["verdict"]))
        return
    smallest, seen = _SMALLEST.pop(number, (source, verdict))
    _keep(report, Finding(report.seed, number, smallest, seen))


def _keep(report: Report, finding: Finding) -> None:
    if finding.signature not in report.findings:
        report.findings[finding.signature] = finding
        if report.folder is not None:
            report.folder.mkdir(parents=True, exist_ok=True)
            (report.folder / finding.file_name).write_text(finding.text(), encoding="utf-8")
