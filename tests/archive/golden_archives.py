"""The golden archives in ``golden/``, and the comparison of a program's results with its record."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tests.archive.golden.records import decode
from tests.support.equality import assert_same

FOLDER = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Difference:
    """Where a program does not do what its record says."""

    where: str
    """``load``, ``state_dict``, or the method and how: ``forward differs``, ``forward raises``; ``forward answers``
    where its release refused."""
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.text}"


@dataclass(frozen=True)
class GoldenArchive:
    """An archive that a release wrote, and its answers."""

    name: str
    """Release and program: ``1.4/division``."""
    path: Path
    calls: list[dict[str, Any]]
    state: dict[str, Any]
    extra_files: dict[str, str]

    def check(self, load: Callable[[str], Any]) -> list[Difference]:
        """What differs from the record when ``load`` opens the archive; calls are made in order, on one module."""
        try:
            module = load(str(self.path))
        except Exception as error:
            return [Difference("load", f"{type(error).__name__}: {_last_line(error)}")]
        wrong = self._check_state(module)
        for call in self.calls:
            inputs = [decode(record) for record in call["inputs"]]
            try:
                answer = getattr(module, call["method"])(*inputs)
            except Exception as error:
                if "raises" not in call:
                    text = f"{type(error).__name__}: {_last_line(error)}"
                    wrong.append(Difference(f"{call['method']} raises", text))
                continue
            if "raises" in call:
                wrong.append(Difference(f"{call['method']} answers", "it raised in its release"))
                continue
            try:
                assert_same(without_names(answer), decode(call["answer"]), call["method"])
            except AssertionError as error:
                wrong.append(Difference(f"{call['method']} differs", _first_lines(error)))
        return wrong

    def _check_state(self, module: Any) -> list[Difference]:
        try:
            state = {name: value for name, value in sorted(module.state_dict().items())}
            assert_same(state, {name: decode(record) for name, record in self.state.items()}, "state_dict")
        except AssertionError as error:
            return [Difference("state_dict", _first_lines(error))]
        return []


def without_names(value: Any) -> Any:
    """NamedTuples as plain tuples, which is what the records hold; tensors without their gradients."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, tuple):
        return tuple(without_names(item) for item in value)
    if isinstance(value, list):
        return [without_names(item) for item in value]
    if isinstance(value, dict):
        return {key: without_names(item) for key, item in value.items()}
    return value


def golden_archives() -> list[GoldenArchive]:
    """All of them, the oldest release first."""
    folders = sorted(FOLDER.glob("torch-*"), key=lambda folder: [int(part) for part in folder.name[6:].split(".")])
    found = []
    for folder in folders:
        for path in sorted(folder.glob("*.pt")):
            record = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
            name = f"{folder.name[6:]}/{path.stem}"
            found.append(GoldenArchive(name, path, record["calls"], record["state"], record.get("extra_files", {})))
    return found


def _last_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1][:200] if lines else ""


def _first_lines(error: AssertionError) -> str:
    return " ".join(str(error).split())[:300]
