"""Some random programs of each commit: none crashes, hangs or fails within the compiler, and most compile."""

from __future__ import annotations

import subprocess
import zlib

from tests.fuzzing.batch import run
from tests.fuzzing.results import LEAST_NATIVE, MOST_REJECTED

PROGRAMS = 120
SEVERE = ("crash", "hang", "internal error")
"""What fails here; findings of other classes are those of ``make fuzz-programs``."""


def _seed() -> int:
    found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return zlib.crc32(found.stdout.strip().encode())


def test_random_programs_of_this_commit():
    seed = _seed()
    again = f"python -m tests.fuzzing --seed {seed} --count {PROGRAMS}"
    report = run(seed, 0, PROGRAMS, 1, shrinking=0.0, quiet=True)
    severe = {signature: report.first[signature] for signature in report.failures if signature[0] in SEVERE}
    assert severe == {}, again
    assert report.count == PROGRAMS
    assert report.statuses["rejected"] <= (MOST_REJECTED + 0.1) * PROGRAMS, again
    assert report.native >= (LEAST_NATIVE - 0.1) * report.compiled, again
