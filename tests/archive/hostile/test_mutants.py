"""Archives changed at random: each is loaded, or refused with an error that says why."""

import os

from tests.archive.hostile.fuzz import RUN, judge_all
from tests.archive.hostile.mutations import mutant
from tests.archive.hostile.seeds import seeds
from tests.support.shares import portion, share_number

COUNT = 2_000


def test_mutants():
    """`python -m tests.archive.hostile.fuzz --only NUMBER` shows one of those that went wrong."""
    jobs = 1 if "PYTEST_XDIST_WORKER" in os.environ else min(2, os.cpu_count() or 1)
    count = portion(COUNT, one_in=16)
    start = share_number(COUNT // count) * count
    report = judge_all(RUN, start, start + count, jobs, chunk=count // jobs)
    assert report.wrong == []
    assert report.count == count
    assert report.outcomes["loaded"] > count // 20  # they are not all so broken that nothing is tested


def test_a_mutant_is_the_same_each_time():
    first, again = (mutant(seeds(), 17, RUN) for _ in range(2))
    assert first == again
    assert first != mutant(seeds(), 17, RUN + 1)
    assert first.data not in [seed.data for seed in seeds()]
