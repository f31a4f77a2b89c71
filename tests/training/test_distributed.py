"""``DistributedDataParallel`` and FSDP2 over gloo: two processes on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.training.models import WAYS

ROOT = Path(__file__).parents[2]


@pytest.mark.usefixtures("strategy")
@pytest.mark.parametrize("strategy", ["native"], indirect=True)
def test_two_processes_learn_what_eager_ones_do() -> None:
    """Each process compares losses and parameters under every strategy itself."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*command, "-m", "tests.training.distributed_program"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    expected = [
        f"process {rank}: {name}, {way}: the same" for rank in (0, 1) for name in ("simple", "native") for way in WAYS
    ]
    expected += [f"process {rank}: fully_shard, {way}: the same" for rank in (0, 1) for way in ("whole", "parts")]
    steps = ("compile_step", "compile_step, the rest of an epoch")
    expected += [f"process {rank}: {name}: the same" for rank in (0, 1) for name in steps]
    assert sorted(done.stdout.splitlines()) == sorted(expected)
