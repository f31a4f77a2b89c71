"""Load the archives of one compiler with the other: ``python exchange.py ANSWERS FOLDER``.

Each archive lies beside a file with a call and its answer, as ``programs/keeping.py`` leaves them.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent / "programs"))

import keeping


def outcome(path: Path) -> str:
    """Return what is wrong with the answer of an archive; "" if nothing is."""
    call: dict[str, Any] = torch.load(path.with_suffix(".call"), weights_only=False)
    try:
        if call["needs"]:
            importlib.import_module(call["needs"])
        loaded = torch.jit.load(str(path))
        found = keeping.answer_of(loaded, call["inputs"])
        keeping.assert_close(list(keeping.tensors(found)), call["answer"], tolerance=call["tolerance"])
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return ""


if __name__ == "__main__":
    answers, folder = sys.argv[1:]
    keeping.tell_torchbind_classes()
    torch.save({path.stem: outcome(path) for path in sorted(Path(folder).glob("*.pt"))}, answers)
