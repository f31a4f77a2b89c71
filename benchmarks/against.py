"""Compile time compared with another commit: what new features cost programs that do not use them.

python -m benchmarks.against COMMIT            the commit's files are laid out in a temporary folder
python -m benchmarks.against COMMIT --rounds 5

The programs are those of tests/language/programs that both commits have, word for word, and that torch.jit runs too:
they use nothing of what came later. A measurement is a process of its own, which imports everything, compiles some
programs, and prints the processor time that compiling all others takes. A round runs the other commit, this state, and
the other commit again. The second ratio, of the other commit to itself, is the noise.

Where other work makes that noise large, the third number says more: how many instructions of Python's the same work
executes, here over there. It is the same in every run, but knows nothing of what a single instruction calls in C.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import inspect
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
ROUNDS: Final = 15
_FIRST: Final = 40
"""So many programs are compiled before the clock runs: they load what the compiler is made of."""


@dataclass(slots=True)
class Comparison:
    """Seconds to compile the programs in each round: at the other commit (``before``), here, and at the other commit
    again. ``instructions`` are the executed Python instructions at the other commit and here. ``programs`` includes
    those of the warm-up, which are not timed."""

    programs: int
    instructions: tuple[int, int]
    before: list[float]
    here: list[float]
    again: list[float]

    @property
    def ratios(self) -> list[float]:
        """The time here divided by the mean of the two times at the other commit, for each round."""
        rounds = zip(self.before, self.here, self.again, strict=True)
        return [2 * here / (before + again) for before, here, again in rounds]

    @property
    def noise(self) -> list[float]:
        """The second time of the other commit divided by its first, for each round."""
        return [again / before for before, again in zip(self.before, self.again, strict=True)]


def run(commit: str, rounds: int = ROUNDS) -> Comparison:
    """Compare this state with ``commit``.

    Raises:
        RuntimeError: a process failed, or git knows no such commit.
    """
    with _laid_out(commit) as other:
        there, here = (json.loads(_process(root, "list")) for root in (other, ROOT))
        names = [name for name in there if here.get(name) == there[name]]
        before, after = (int(_process(root, "count", *names)) for root in (other, ROOT))
        times: tuple[list[float], ...] = ([], [], [])
        for _ in range(rounds):
            for root, found in zip((other, ROOT, other), times, strict=True):
                found.append(float(_process(root, "time", *names)))
    return Comparison(len(names), (before, after), *times)


@contextmanager
def _laid_out(commit: str) -> Iterator[Path]:
    """Yield a temporary folder with the files of ``commit``. Raise RuntimeError if git does not know it."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
        if archive.returncode:
            raise RuntimeError(archive.stderr.decode().strip())
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        yield Path(folder)


def _process(root: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, str(Path(__file__)), *arguments]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{root}: {' '.join(command[:3])}\n{done.stderr}")
    return done.stdout.splitlines()[-1]


def told(comparison: Comparison) -> str:
    """Return the comparison as text: medians of the ratios, and the ratio of the instructions."""
    lines = [f"{comparison.programs - _FIRST} programs, {len(comparison.here)} rounds, time of the processor"]
    for what, found in ((" here / other commit", comparison.ratios), ("other commit / itself", comparison.noise)):
        quarters = statistics.quantiles(found, n=4) if len(found) > 1 else [found[0]] * 3
        lines.append(f"{what}: {quarters[1]:.3f} (middle half of the rounds: {quarters[0]:.3f} to {quarters[2]:.3f})")
    before, here = comparison.instructions
    lines.append(f"instructions here / other commit: {here / before:.3f} ({before:,} there)")
    return "\n".join(lines)


# ------------------------------------------------------------------------------------------------------ in the process


def _plain() -> dict[str, Any]:
    """Return the programs of the corpus that ``torch.jit`` and rekindle both compile, by name. ``sys.path`` selects the
    commit whose corpus is imported."""
    from tests.language.corpus import corpus

    return {each.name: each for each in corpus() if each.torch == "works" and each.refusal is None}


def _list() -> None:
    sources = {name: inspect.getsource(each.source) for name, each in _plain().items()}
    print(json.dumps({name: hashlib.sha256(text.encode()).hexdigest() for name, text in sources.items()}))


def _compile_all(names: Sequence[str], begin: Callable[[], None]) -> None:
    """Compile the programs. ``begin`` is called after the first :data:`_FIRST` of them, which load the compiler."""
    import rekindle

    programs = _plain()
    subjects = [programs[name].subject() for name in names]
    for subject in subjects[:_FIRST]:
        rekindle.script(subject)
    gc.collect()
    begin()
    for subject in subjects[_FIRST:]:
        rekindle.script(subject)


def _time(names: Sequence[str]) -> None:
    started: list[float] = []
    _compile_all(names, lambda: started.append(time.process_time()))
    print(time.process_time() - started[0])


def _count(names: Sequence[str]) -> None:
    found = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal found
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        found += event == "opcode"
        return trace

    _compile_all(names, lambda: sys.settrace(trace))
    sys.settrace(None)
    print(found)


_MODES: Final = {"list": lambda names: _list(), "time": _time, "count": _count}


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in _MODES:
        warnings.simplefilter("ignore")
        _MODES[sys.argv[1]](sys.argv[2:])
    else:
        parser = argparse.ArgumentParser(prog="benchmarks.against")
        parser.add_argument("commit", help="what git calls it: a tag, a branch, a hash")
        parser.add_argument("--rounds", type=int, default=ROUNDS)
        options = parser.parse_args()
        print(told(run(options.commit, options.rounds)))
