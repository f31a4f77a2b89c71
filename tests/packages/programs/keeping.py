"""What the programs have in common: each part starts from the same seed, and the answers go into a file."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any

import torch


def reloaded(module: Any) -> Any:
    """What is compiled, saved as an archive and loaded again."""
    archive = io.BytesIO()
    torch.jit.save(module, archive)
    archive.seek(0)
    return torch.jit.load(archive)


def main(parts: dict[str, Callable[[], Any]]) -> None:
    """Save what each part gives to the file that the first argument names."""
    answers = {}
    for name, part in parts.items():
        torch.manual_seed(20260)
        answers[name] = part()
    torch.save(answers, sys.argv[1])
