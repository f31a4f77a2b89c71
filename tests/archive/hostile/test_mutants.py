"""Archives changed at random: each is loaded, or refused with an error that says why."""

import os

from tests.archive.hostile.fuzz import RUN, judge_all
from tests.archive.hostile.mutations import mutant
from tests.archive.hostile.seeds import seeds

COUNT = 2_000


def test_mutants():
    """`python -m tests.archive.hostile.fuzz --only NUMBER` shows one of those that went wrong."""
    jobs = 1 if "PYTEST_XDIST_WORKER" in os.environ else min(2, os.cpu_count() or 1)
    report = judge_all(RUN, 0, COUNT, jobs, chunk=COUNT // jobs)
    assert report.wrong == []
    assert report.count == COUNT
    assert report.outcomes["loaded"] > COUNT // 20  # they are not all so broken that nothing is tested


def test_a_mutant_is_the_same_each_time():
    first, again = (mutant(seeds(), 17, RUN) for _ in range(2))
    assert first == again
    assert first != mutant(seeds(), 17, RUN + 1)
    assert first.data not in [seed.data for seed in seeds()]
