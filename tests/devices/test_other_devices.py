"""Programs on devices that kernels are not made for, with a device in Python, which needs a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch._C
from torch.utils import backend_registration

ROOT = Path(__file__).parents[2]


def _missing() -> str | None:
    """Return what this release of PyTorch lacks for a device in Python."""
    needed = (
        (backend_registration, "_setup_privateuseone_for_python_backend"),
        (torch._C, "_acc"),
        (torch._C, "_construct_storage_from_data_pointer"),
    )
    return next((name for owner, name in needed if not hasattr(owner, name)), None)


@pytest.mark.skipif(_missing() is not None, reason=f"this PyTorch has no {_missing()}: devices need C++")
def test_programs_on_a_device_in_python() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-x"]
    found = subprocess.run(
        [*command, str(Path(__file__).parent / "programs_on_shadow.py")],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, f"{found.stdout[-8000:]}\n{found.stderr[-2000:]}"
