"""Pausing Python's garbage collector."""

import gc
import subprocess
import sys

from rekindle.errors.gc_pause import gc_paused


def test_collector_waits_until_the_last_user_leaves() -> None:
    assert gc.isenabled()
    with gc_paused():
        with gc_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


_PROCESS = """
import gc
from rekindle.errors.gc_pause import gc_paused

class Made: pass

def is_old(made):
    return any(each is made for each in gc.get_objects(generation=2))

with gc_paused():
    young = Made()
assert not is_old(young)
with gc_paused(everything_stays=True):
    old = Made()
assert is_old(old) and gc.get_freeze_count() == 0 and gc.isenabled()
gc.freeze()
with gc_paused(everything_stays=True):
    young = Made()
assert not is_old(young) and gc.get_freeze_count() > 0
"""


def test_what_stays_is_promoted_unless_the_program_has_frozen_objects() -> None:
    # In a process of its own: the test session has frozen objects.
    subprocess.run([sys.executable, "-c", _PROCESS], check=True)
