"""An exported program and what is made of it here, side by side."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map_only

import rekindle
from tests.importing.programs import Inputs, Program

AGREES = "agrees"


@dataclass(frozen=True, slots=True)
class Outcome:
    """``stage`` is how far a program comes: "agrees" is the end of the way."""

    stage: str
    detail: str = ""


def answers(module: Any, program: Program, calls: list[Inputs], state: Sequence[str]) -> list[Any]:
    """What a module gives in calls that follow one another, with what becomes of the arguments, and of its state."""
    found: list[Any] = []
    for args in calls:
        given, kwargs = tree_map_only(Tensor, torch.clone, (args, dict(program.kwargs)))
        torch.manual_seed(3)
        with torch.no_grad():
            result = module(*given, **kwargs)
        found.append((_plain(result), [each for each in _plain(given) if isinstance(each, Tensor)]))
    return [*found, {name: module.state_dict()[name] for name in state}]


def gradients(module: Any, program: Program) -> list[Tensor]:
    """The gradients of the parameters, and of arguments."""
    leaves: list[Tensor] = []

    def own(tensor: Tensor) -> Tensor:
        made = tensor.clone()
        if made.is_floating_point():
            leaves.append(made.requires_grad_())
            made = made * 1  # what the program writes to must be no leaf
        return made

    args, kwargs = tree_map_only(Tensor, own, (program.args, dict(program.kwargs)))
    torch.manual_seed(3)
    results = [each for each in tree_leaves(module(*args, **kwargs)) if isinstance(each, Tensor) and each.requires_grad]
    if not results:
        return []
    total = torch.stack([each.square().sum() for each in results]).sum()
    parameters = dict(sorted(module.named_parameters())).values()
    wanted = [*parameters, *leaves]
    found = torch.autograd.grad(total, wanted, allow_unused=True)
    return [torch.zeros_like(x) if grad is None else grad for x, grad in zip(wanted, found, strict=True)]


def _plain(item: Any) -> list[Any]:
    """The leaves of a result: NamedTuples of PyTorch's and ours are of different classes."""
    return tree_flatten(item)[0]


def is_refused(module: Any, args: Inputs) -> bool:
    """Whether a call raises."""
    try:
        module(*copy.deepcopy(args))
    except (RuntimeError, ValueError, AssertionError, TypeError, rekindle.RekindleError):
        return True
    return False


def checked(program: Program) -> Outcome:
    """What comes of a program: imported, in calls, differentiated, in a file, and exported again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stage = "export"
        try:
            exported = program.export()
            stage = "import"
            imported = rekindle.from_exported(exported)
            calls = [program.args, *program.others]

            def same(stage: str, module: Any, answer: Callable[..., Any] = answers) -> str:
                more = () if answer is gradients else (calls, list(exported.state_dict))
                wanted = answer(program.export().module(), program, *more)
                torch.testing.assert_close(answer(module, program, *more), wanted, rtol=1e-4, atol=1e-5)
                return stage

            archive = io.BytesIO()
            rekindle.save(imported, archive)
            stage = "answers"
            same(stage, imported)
            stage = "refusals"
            fresh = rekindle.from_exported(program.export())
            for args in program.refused:
                assert is_refused(fresh, args), "it takes what the exported program refuses"
            if program.has_gradients:
                stage = "gradients"
                same(stage, rekindle.from_exported(program.export()), gradients)
            stage = "archive"
            same(stage, torch.jit.load(io.BytesIO(archive.getvalue())))
            stage = "round trip"
            again = rekindle.to_exported(
                rekindle.from_exported(program.export()), program.args, program.kwargs, dynamic_shapes=program.shapes
            )
            same(stage, again.module())
        except Exception as error:
            first = next(iter(str(error).strip().splitlines()), "")
            return Outcome(stage, f"{type(error).__name__}: {first}"[:300])
    return Outcome(AGREES)
