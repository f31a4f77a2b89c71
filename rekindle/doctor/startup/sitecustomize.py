"""What Python imports when it starts, in the processes of ``rekindle doctor --run``: when PyTorch has been imported,
the recorder begins."""

from __future__ import annotations

import atexit
import contextlib
import importlib.abc
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

_HERE = str(Path(__file__).parent)


class _AfterTorch(importlib.abc.MetaPathFinder):
    """Import hook that starts the recorder after ``torch`` has been imported."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        loader = spec.loader
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            _begin()

        loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _begin() -> None:
    sys.path.append(os.environ["REKINDLE_DOCTOR_PACKAGE"])
    recording = importlib.import_module("rekindle.doctor.recording").recording
    stack = contextlib.ExitStack()
    stack.enter_context(recording(Path(os.environ["REKINDLE_DOCTOR_EVENTS"]), keeps_going=False))
    atexit.register(stack.close)


def _others() -> None:
    """Import the user's own ``sitecustomize``, which this one hides."""
    sys.path[:] = [folder for folder in sys.path if os.path.realpath(folder or ".") != os.path.realpath(_HERE)]
    this = sys.modules.pop("sitecustomize")
    with contextlib.suppress(ImportError):
        importlib.import_module("sitecustomize")
    sys.modules.setdefault("sitecustomize", this)


if "REKINDLE_DOCTOR_EVENTS" in os.environ:
    sys.meta_path.insert(0, _AfterTorch())
    _others()
