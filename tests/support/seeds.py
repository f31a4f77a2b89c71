"""The seed of everything random in the tests."""

from __future__ import annotations

import random
from typing import Final

import numpy
import torch

SEED: Final = 20260


def seed_everything() -> None:
    random.seed(SEED)
    numpy.random.seed(SEED)
    torch.manual_seed(SEED)
