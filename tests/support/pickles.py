"""What comes out of pickles."""

from __future__ import annotations

import pickle
from typing import Any


def pickled(value: Any) -> Any:
    """What reading the pickle of a value gives."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301 (it is our own)
