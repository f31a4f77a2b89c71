"""The sweep over modules of libraries that ``torch.jit.script`` refuses.

    python -m tests.sweeps.real_modules             every case; writes results/real_modules.md
    python -m tests.sweeps.real_modules ViTLayer    some, and what goes wrong with them

A module counts where it scripts unchanged, agrees with eager on three calls with each of two inputs of other
sizes, and gives the gradients of eager.
"""
# ruff: noqa: T201 - a command: it prints

from __future__ import annotations

import contextlib
import copy
import importlib.metadata
import io
import sys
import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import rekindle
from tests.sweeps.real_module_cases import CASES, Case
from tests.sweeps.report import RESULTS


@dataclass(slots=True)
class Row:
    case: Case
    torch_says: str
    answers: str = ""
    gradients: str = ""
    saved: str = ""

    @property
    def counts(self) -> bool:
        return self.torch_says != "scripts" and self.answers == "as eager" and self.gradients in ("as eager", "none")


def _first_line(error: BaseException) -> str:
    text = next((line for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {text[:110]}".replace("|", "\\|")


def _tensors(found: Any) -> list[Tensor]:
    if isinstance(found, Tensor):
        return [found]
    parts = found.values() if isinstance(found, dict) else found if isinstance(found, (tuple, list)) else ()
    return [tensor for part in parts for tensor in _tensors(part)]


def _agree(one: Any, other: Any) -> bool:
    if isinstance(one, (tuple, list)):
        return type(one) is type(other) and len(one) == len(other) and all(map(_agree, one, other))
    if isinstance(one, Tensor):
        return isinstance(other, Tensor) and torch.allclose(one, other, rtol=1e-4, atol=1e-5, equal_nan=True)
    return one == other


def _gradients(subject: Any, inputs: tuple[Any, ...]) -> list[Tensor]:
    inputs = copy.deepcopy(inputs)
    leaves = [item.requires_grad_() for item in _tensors(inputs) if item.is_floating_point()]
    if isinstance(subject, torch.nn.Module):
        leaves += [parameter for parameter in subject.parameters() if parameter.requires_grad]
    results = [found for found in _tensors(subject(*inputs)) if found.requires_grad]
    if not results:
        return []
    found = torch.autograd.grad([result.sum() for result in results], leaves, allow_unused=True)
    return [gradient for gradient in found if gradient is not None]


def _judged(case: Case) -> Row | None:
    """What comes of the case; None where its library is not installed."""
    try:
        torch.manual_seed(0)
        subject = case.make()
    except ModuleNotFoundError as error:
        print(f"{case.library}.{case.name}: skipped: {error}")
        return None
    row = Row(case, "scripts")
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            torch.jit.script(subject)
    except Exception as error:
        row.torch_says = _first_line(error)
    try:
        compiled = rekindle.script(subject)
        alike = [
            _agree(subject(*copy.deepcopy(inputs)), compiled(*copy.deepcopy(inputs)))
            for inputs in case.inputs
            for _ in range(3)
        ]
        row.answers = "as eager" if all(alike) else f"differ in {alike.count(False)} of {len(alike)} calls"
        wanted, found = _gradients(subject, case.inputs[0]), _gradients(compiled, case.inputs[0])
        row.gradients = "none" if not wanted else "as eager" if _agree(wanted, found) else "differ"
        row.saved = _saved(compiled, subject, case)
    except Exception as error:
        row.answers = row.answers or _first_line(error)
        row.gradients = row.gradients or _first_line(error)
    return row


def _saved(compiled: Any, subject: Any, case: Case) -> str:
    """Whether the archive runs in torch.jit.load, or what keeps it from being one."""
    buffer = io.BytesIO()
    try:
        rekindle.save(compiled, buffer)
        buffer.seek(0)
        loaded = torch.jit.load(buffer)
        alike = all(_agree(subject(*inputs), loaded(*copy.deepcopy(inputs))) for inputs in case.inputs)
    except Exception as error:
        return _first_line(error)
    return "as eager" if alike else "differs"


def page(rows: list[Row]) -> str:
    """The results as a page."""
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in dict.fromkeys(row.case.library for row in rows)
    )
    refused = [row for row in rows if row.torch_says != "scripts"]
    told = (
        f"torch {torch.__version__.partition('+')[0]}, {versions}. Of {len(CASES)} modules and functions {len(rows)} "
        f"were looked at; `torch.jit.script` refuses {len(refused)}. "
        f"**{sum(row.counts for row in rows)}** of these script unchanged, answer as eager on three calls with each "
        "of two inputs of different sizes, and give its gradients."
    )
    lines = [
        "# Modules of libraries that torch.jit.script refuses",
        "",
        told,
        "",
        "| module | `torch.jit.script` | answers | gradients | saved, in `torch.jit.load` |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {row.case.library} `{row.case.name}` | {row.torch_says} | {row.answers} | {row.gradients} | {row.saved} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def main(names: list[str]) -> int:
    warnings.simplefilter("ignore")
    chosen = [case for case in CASES if not names or case.name in names]
    rows = [row for row in map(_judged, chosen) if row is not None]
    text = page(rows)
    print(text)
    if not names:
        (RESULTS / "real_modules.md").write_text(text, encoding="utf-8")
    return 0 if all(row.counts for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
