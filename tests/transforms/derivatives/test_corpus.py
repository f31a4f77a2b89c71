"""The gradients of programs of the corpus that take and return tensors of floats, beside eager's.

The suite takes every fifth program and all known gaps; ``python -m tests.transforms.derivatives.test_corpus`` takes
all.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.errors import DifferentiationError
from rekindle.ir.types import TensorType
from tests.oracle.corpus import Program, Sample, corpus, fresh
from tests.transforms.derivatives.known_gaps import KNOWN_GAPS
from tests.transforms.derivatives.losses import eager_loss, loss_of

_NO_DIFFERENCE = {"calls.keyword_only": "what takes arguments by keyword only has no loss that is called by place"}


def wanted(program: Program, sample: Sample) -> list[int]:
    """The arguments that gradients are by: tensors of floats."""
    arguments = rekindle.script(program.source).schema.arguments
    return [
        index
        for index, (argument, value) in enumerate(zip(arguments, sample, strict=False))
        if isinstance(argument.type, TensorType) and isinstance(value, Tensor) and value.is_floating_point()
    ]


def expected(program: Program, sample: Sample, numbers: list[int]) -> list[Tensor] | None:
    """Eager's gradients; None where there are none."""
    arguments = list(fresh(sample))
    for number in numbers:
        arguments[number] = arguments[number].detach().requires_grad_()
    try:
        loss = eager_loss(program.source, tuple(arguments))
    except Exception:
        return None  # Python does something else, or raises as it is meant to
    if not loss.requires_grad:
        return None
    asked = [arguments[number] for number in numbers]
    found = torch.autograd.grad(loss, asked, allow_unused=True)
    return [torch.zeros_like(x) if each is None else each for x, each in zip(asked, found, strict=True)]


def subjects() -> list[Program]:
    return [
        program
        for program in corpus()
        if not isinstance(program.source, type)
        and program.name not in _NO_DIFFERENCE
        and any(isinstance(value, Tensor) and value.is_floating_point() for value in program.samples[0])
    ]


def compare(program: Program) -> int:
    """How many samples were compared."""
    count = 0
    for sample in program.samples:
        loss = loss_of(program.source, len(sample))
        numbers = wanted(program, sample)
        gradients: Any = expected(program, sample, numbers) if loss is not None and numbers else None
        if gradients is None:
            continue
        found = rekindle.grad(loss, argnums=tuple(numbers))(*fresh(sample))
        torch.testing.assert_close(list(found), gradients, equal_nan=True)
        count += 1
    return count


def chosen() -> list[Program]:
    return [p for index, p in enumerate(subjects()) if index % 5 == 0 or p.name in KNOWN_GAPS]


@pytest.mark.parametrize("program", chosen(), ids=lambda program: program.name)
def test_gradients(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    gap = KNOWN_GAPS.get(program.name)
    if gap is None:
        compare(program)
        return
    with pytest.raises(DifferentiationError) as caught:
        compare(program)
    assert gap in str(caught.value)


def test_the_list_of_gaps() -> None:
    names = {program.name for program in subjects()}
    assert set(KNOWN_GAPS) <= names


def main() -> None:
    """Compare all programs, and return their number."""
    counts = [compare(program) for program in subjects() if program.name not in KNOWN_GAPS]
    compared = sum(count > 0 for count in counts)
    print(f"{compared} programs compared with {sum(counts)} sets of arguments, {len(KNOWN_GAPS)} refused,")  # noqa: T201
    print(f"{len(counts) - compared} without gradients in eager mode")  # noqa: T201


if __name__ == "__main__":
    main()
