"""What the programs have in common: seeds, comparisons with eager, archives, and the file that the answers go into.

A program is called with the file for its answers. Archives go into a folder beside it, each with a call and its answer,
for :mod:`tests.packages.exchange`, which loads them with the other compiler.
"""

from __future__ import annotations

import copy
import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

SEED = 20260
CALLS = 3
"""How often a compiled program is called: the first calls of a program are profiled, the later ones are not."""


class Running:
    """The name of the part that runs, which names its archives."""

    part = ""


def tell_torchbind_classes() -> None:
    """Say what a user of a library with classes in C++ says before importing it; nothing to ``torch.jit``."""
    rekindle = sys.modules.get("rekindle")
    if rekindle is not None:
        rekindle.add_torchbind_schemas(lambda: torch._C._jit_get_custom_class_schemas())


def reloaded(module: Any) -> Any:
    """Save what is compiled as an archive, and load it again."""
    archive = io.BytesIO()
    torch.jit.save(module, archive)
    archive.seek(0)
    return torch.jit.load(archive)


def tensors(value: Any) -> Iterator[Tensor]:
    """Return the tensors in nested tuples, lists and dicts."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors(item)


def assert_close(found: Any, expected: Any, at: str = "answer", tolerance: float = 1e-4) -> None:
    """Raise AssertionError where answers differ: floats by more than ``tolerance`` of the largest, all else at all."""
    if isinstance(expected, Tensor):
        assert isinstance(found, Tensor), f"{at}: {found!r} is not a Tensor"
        pair = (found.dtype, found.shape), (expected.dtype, expected.shape)
        assert pair[0] == pair[1], f"{at}: {pair[0]} is not {pair[1]}"
        if expected.is_floating_point() or expected.is_complex():
            finite = expected.detach()[torch.isfinite(expected)]
            largest = float(finite.abs().max()) if finite.numel() else 0.0
            equal = torch.allclose(found, expected, rtol=tolerance, atol=tolerance * largest + 1e-12, equal_nan=True)
        else:
            equal = torch.equal(found, expected)
        assert equal, f"{at}: the values differ"
    elif isinstance(expected, (tuple, list)):
        assert isinstance(found, (tuple, list)), f"{at}: {type(found).__name__} is not {type(expected).__name__}"
        assert len(found) == len(expected), f"{at}: {len(found)} items are not {len(expected)}"
        for index, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_close(one, other, f"{at}[{index}]", tolerance)
    elif isinstance(expected, dict):
        assert isinstance(found, dict), f"{at}: {type(found).__name__} is not a dict"
        assert list(found) == list(expected), f"{at}: {list(found)} are not {list(expected)}"
        for key in expected:
            assert_close(found[key], expected[key], f"{at}[{key!r}]", tolerance)
    elif isinstance(expected, float):
        assert_close(
            torch.tensor(found, dtype=torch.float64), torch.tensor(expected, dtype=torch.float64), at, tolerance
        )
    else:
        assert found == expected, f"{at}: {found!r} is not {expected!r}"


def answer_of(run: Callable[..., Any], inputs: tuple[Any, ...], module: Any = None) -> Any:
    """Call ``run`` with copies of ``inputs``, from the seed. Returns the answer; with ``module``, whose parameters may
    require gradients, also the gradients of the sum of squares by inputs and parameters."""
    torch.manual_seed(SEED)
    inputs = copy.deepcopy(inputs)
    if module is None:
        with torch.no_grad():
            return run(*inputs)
    leaves = [*(each for each in tensors(inputs) if each.requires_grad), *module.parameters()]
    answer = run(*inputs)
    loss = sum(each.abs().square().sum() for each in tensors(answer) if each.requires_grad)
    assert isinstance(loss, Tensor), "nothing in the answer requires a gradient"
    return answer, torch.autograd.grad(loss, leaves, allow_unused=True)


def compared(
    module: Any,
    *calls: tuple[Any, ...],
    compile: Callable[[Any], Any] = torch.jit.script,
    gradients: bool = False,
    archive: bool = True,
    needs: str = "",
    result: Callable[[Any], Any] = lambda answer: answer,
    tolerance: float = 1e-4,
) -> Any:
    """Compile ``module``, and compare its results of ``calls`` with those of eager. Returns eager's, detached.

    ``gradients``: also those of inputs and parameters. ``archive``: what is loaded from an archive is compared too, and
    the archive stays for the other compiler, which imports ``needs`` before. ``result`` picks what is compared.
    """
    expected = [
        detached(answer_of(lambda *xs: result(module(*xs)), call, module if gradients else None)) for call in calls
    ]
    compiled = compile(module)
    with_gradients = compiled if gradients else None
    for _ in range(CALLS):
        for call, wanted in zip(calls, expected, strict=True):
            found = answer_of(lambda *xs: result(compiled(*xs)), call, with_gradients)
            assert_close(detached(found), wanted, tolerance=tolerance)
    if archive:
        loaded = reloaded(compiled)
        found = answer_of(lambda *xs: result(loaded(*xs)), calls[0])
        wanted = expected[0][0] if gradients else expected[0]
        assert_close(detached(found), wanted, "answer of the archive", tolerance)
        hand_over(compiled, calls[0], found, needs, tolerance)
    return expected


def hand_over(compiled: Any, inputs: tuple[Any, ...], answer: Any, needs: str = "", tolerance: float = 1e-4) -> None:
    """Leave an archive for the other compiler, with a call and its answer."""
    folder = Path(sys.argv[1]).with_suffix(".archives")
    folder.mkdir(exist_ok=True)
    name = Running.part.replace("/", "_")
    torch.jit.save(compiled, str(folder / f"{name}.pt"))
    call = {"inputs": inputs, "answer": list(tensors(answer)), "needs": needs, "tolerance": tolerance}
    torch.save(call, folder / f"{name}.call")


def detached(value: Any) -> Any:
    """Return a copy of ``value`` whose tensors have no history."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, (tuple, list)):
        return [detached(item) for item in value]
    if isinstance(value, dict):
        return {key: detached(item) for key, item in value.items()}
    return value


def main(parts: dict[str, Callable[[], Any]]) -> None:
    """Run each part, and save what it gives, or its error, to the file that the first argument names. Further
    arguments name the parts to run."""
    answers = {}
    for name, part in parts.items():
        if sys.argv[2:] and name not in sys.argv[2:]:
            continue
        torch.manual_seed(SEED)
        Running.part = name
        try:
            answers[name] = ("answer", detached(part()))
        except Exception as error:
            text = " ".join(str(error).split()) or "no message"
            answers[name] = ("error", f"{type(error).__name__}: {text[:300]}")
    torch.save(answers, sys.argv[1])
