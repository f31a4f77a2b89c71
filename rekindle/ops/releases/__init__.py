"""Differences between releases of PyTorch: one module for each release with relevant changes.

Where it is possible, the package asks PyTorch for what it needs, and does without where it is missing. A module here
has what cannot be asked, and what stands in for what an older release lacks. ``rekindle.archive.removed_operators`` has
the replacements of operators that a release removed, which archives still call.
"""

from __future__ import annotations

from typing import Final

import torch

RELEASE: Final = tuple(int(part) for part in torch.__version__.split(".")[:2])
"""The release of PyTorch that this process has, without the last number."""
