"""Cases of `benchmarks.modules` as parts of a program: compiled with ``torch.jit.script``, compared with eager."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from keeping import compared

from benchmarks.modules.case import ModuleCase


def part_of(case: ModuleCase, *, gradients: bool = False, needs: str = "") -> Callable[[], Any]:
    """Return a part that compiles the module of ``case``; with ``gradients``, in training mode, with backward."""
    mode = "training" if gradients else "inference"

    def run() -> None:
        module = case.make().train(gradients)
        inputs = case.inputs_of(mode)
        compared(module, inputs, gradients=gradients, archive=not gradients, needs=needs, result=case.result)

    return run


def chosen(cases: Iterable[ModuleCase], names: Iterable[str]) -> list[ModuleCase]:
    """Return the first case of each name; a name may be followed by sizes in a case's."""
    listed = list(cases)
    found = []
    for name in names:
        found.append(next(case for case in listed if case.name.partition(",")[0] == name))
    return found
