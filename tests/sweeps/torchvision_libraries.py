"""The sweep over torchvision's classification models that become native libraries, each called from a C program.

python -m tests.sweeps.torchvision_libraries --full         every model; writes results/
python -m tests.sweeps.torchvision_libraries --only vit_    some models, and what is wrong with them
python -m tests.sweeps.torchvision_libraries --resume       the models whose results are missing, or are not the same

Weights are random, those that torchvision initializes with zeros too; nothing is downloaded. Statistics of batch
normalizations are those of a batch, as in a trained network, so that numbers neither vanish nor grow. Each model is
scripted, built for an image, and called from C with that and another image. The result is compared with eager's.
"""
# ruff: noqa: T201 - a command: it prints

from __future__ import annotations

import argparse
import copy
import json
import multiprocessing
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor, nn

import rekindle
from tests.building.c_process import run
from tests.sweeps.report import RESULTS

TOLERANCE: Final = 1e-4
"""The largest difference from eager, over the largest number of the result. A model with a larger one is compared with
float64: the error of the library may be at most twice that of eager."""
IMAGE: Final = (1, 3, 224, 224)


class Outcome(NamedTuple):
    """What came of a model: ``same``, ``not built`` or ``differs``, with the reason; how many operators are left to
    PyTorch, the largest difference over the largest number, and the seconds of the build."""

    verdict: str
    detail: str = ""
    torch_operators: Sequence[str] = ()
    error: float = 0.0
    seconds: float = 0.0


def model(name: str) -> Any:
    """Return a model with random weights, in evaluation mode."""
    import torchvision

    torch.manual_seed(0)
    found = torchvision.models.get_model(name, weights=None)
    with torch.no_grad():
        for parameter in found.parameters():
            if not parameter.any():
                parameter.normal_(std=0.02)
    norms = [part for part in found.modules() if isinstance(part, nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0
    if norms:
        for part in found.modules():
            part.training = isinstance(part, nn.BatchNorm2d)
        with torch.no_grad():
            found(torch.randn(2, *IMAGE[1:]))
    return found.eval()


def attempt(name: str) -> Outcome:
    """Build a model, and call it from C."""
    warnings.simplefilter("ignore")
    eager = model(name)
    images = [torch.randn(IMAGE), torch.randn(IMAGE)]
    with torch.no_grad():
        expected = [eager(image) for image in images]
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        try:
            built = rekindle.build(rekindle.script(eager), folder, [(images[0],)])
        except rekindle.RekindleError as error:
            return Outcome("not built", str(error).splitlines()[0])
        seconds = time.perf_counter() - began
        answers = run(built, "forward", [(image,) for image in images], Path(folder))
    error = 0.0
    assert all(each.any() and each.isfinite().all() for each in expected), "eager computes nothing to compare with"
    for answer, wanted in zip(answers, expected, strict=True):
        if answer.code:
            return Outcome("differs", answer.message, built.torch_operators, seconds=seconds)
        value = _result(answer.value)
        assert value.isfinite().all(), "the library computes infinities or NaN"
        error = max(error, float((value - wanted).abs().max() / wanted.abs().max()))
    if error > TOLERANCE:
        ours, eagers = _errors(eager, images, [_result(answer.value) for answer in answers], expected)
        detail = f"beside float64: {ours:.1e}, eager {eagers:.1e}"
        return Outcome("same" if ours <= 2 * eagers else "differs", detail, built.torch_operators, error, seconds)
    return Outcome("same", "", built.torch_operators, error, seconds)


def _result(value: Any) -> Tensor:
    """Return the result of a model. Scripted, GoogLeNet and Inception return it with two others that are None."""
    result = value[0] if isinstance(value, tuple) else value
    assert isinstance(result, Tensor)
    return result


def _errors(
    eager: nn.Module, images: Sequence[Tensor], ours: Sequence[Tensor], eagers: Sequence[Tensor]
) -> tuple[float, float]:
    """Return the largest errors of the library and of eager beside float64, over the largest number."""
    exact = copy.deepcopy(eager).double()
    with torch.no_grad():
        wanted = [exact(image.double()) for image in images]

    def error(found: Sequence[Tensor]) -> float:
        return max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(found, wanted, strict=True))

    return error(ours), error(eagers)


def _attempt(name: str) -> tuple[str, Outcome]:
    try:
        return name, attempt(name)
    except Exception as error:  # a process may crash, and a model may raise anything
        return name, Outcome("differs", f"{type(error).__name__}: {error}".splitlines()[0])


def names() -> list[str]:
    """Return the classification models of torchvision."""
    import torchvision

    return sorted(torchvision.models.list_models(module=torchvision.models))


def outcomes(chosen: Sequence[str], note: Callable[[dict[str, Outcome]], object]) -> dict[str, Outcome]:
    """Return what comes of models, each in a process of its own; ``note`` is called after each."""
    found: dict[str, Outcome] = {}
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for name, outcome in pool.imap(_attempt, chosen):
            found[name] = outcome
            print(f"{name}: {outcome.verdict} {outcome.detail} {outcome.error:.1e} {outcome.seconds:.1f} s", flush=True)
            note(found)
    return found


def page(found: dict[str, Outcome]) -> str:
    """Return the results as a page."""
    import torchvision

    counts = Counter(each.verdict for each in found.values())
    versions = f"torch {torch.__version__.split('+')[0]}, torchvision {torchvision.__version__.split('+')[0]}"
    lines = ["# torchvision's classification models as native libraries", ""]
    lines.append(f"{counts['same']} of {len(found)} models, called from C, compute what eager computes; {versions}.")
    if len(found) < len(names()):
        rest = ", ".join(name for name in names() if name not in found)
        lines += ["", f"torchvision has {len(names())}. Not run yet (`--resume` continues): {rest}."]
    lines += [
        "",
        f"An error is the largest difference from eager over the largest result. Up to {TOLERANCE:g} is the same.",
        "Beyond, both are compared with float64, and the error of the library may be at most twice that of eager.",
        "",
    ]
    lines += ["| model | | error | operators left to PyTorch | build, s |", "| --- | --- | ---: | --- | ---: |"]
    for name, each in found.items():
        verdict = each.verdict if each.verdict == "same" else f"**{each.verdict}**"
        verdict += f": {each.detail}" if each.detail else ""
        operators = ", ".join(operator.removeprefix("aten::") for operator in each.torch_operators)
        lines.append(f"| {name} | {verdict} | {each.error:.0e} | {operators} | {each.seconds:.0f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="all models; write the results")
    parser.add_argument("--resume", action="store_true", help="keep results that are the same; write the results")
    parser.add_argument("--only", default="", help="models whose names contain this")
    options = parser.parse_args()
    kept: dict[str, Outcome] = {}
    if options.resume:
        rows = json.loads(_RESULTS.read_text(encoding="utf-8"))
        kept = {name: Outcome(**row) for name, row in rows.items() if row["verdict"] == "same"}

    def write(found: dict[str, Outcome]) -> None:
        if options.full or options.resume:
            whole = dict(sorted({**kept, **found}.items()))
            rows = {name: each._asdict() for name, each in whole.items()}
            _RESULTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
            _RESULTS.with_suffix(".md").write_text(page(whole), encoding="utf-8")

    chosen = [name for name in names() if options.only in name and name not in kept]
    print(Counter(each.verdict for each in outcomes(chosen, write).values()))


_RESULTS: Final = RESULTS / "torchvision_libraries.json"


if __name__ == "__main__":
    main()
