"""All cases by library, what they need, and whether they are all that the libraries offer."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.modules import (
    audio,
    graphs,
    small_layers,
    timm_models,
    torch_nn,
    torchvision_models,
    transformers_layers,
)
from benchmarks.modules.case import Excluded, ModuleCase

PACKAGES: Final = {
    "e3nn": "0.6.0",
    "einops": "0.8.2",
    "timm": "1.0.31",
    "torch_geometric": "2.8.1",
    "torchaudio": "2.11.0",
    "torchvision": "0.28.0",
    "transformers": "4.57.1",
}
"""The versions of the extra ``modules``: other versions are other programs."""


@dataclass(frozen=True, slots=True)
class Library:
    """A library: ``available`` returns the names that it offers, ``covered`` those with a case. The names in
    ``excluded`` have none for a reason."""

    name: str
    excluded: Sequence[Excluded]
    available: Callable[[], set[str]]
    covered: Callable[[], set[str]]


LIBRARIES: Final = (
    Library("torch.nn", torch_nn.EXCLUDED, torch_nn.available, torch_nn.covered),
    Library("torchvision", torchvision_models.EXCLUDED, torchvision_models.available, torchvision_models.covered),
    Library("timm", timm_models.EXCLUDED, timm_models.available, timm_models.covered),
    Library("torchaudio", audio.EXCLUDED, audio.available, audio.covered),
    Library("torch_geometric", graphs.EXCLUDED, graphs.available, graphs.covered),
)

CASES: Final[tuple[ModuleCase, ...]] = (
    *torch_nn.CASES,
    *torchvision_models.CASES,
    *timm_models.CASES,
    *transformers_layers.CASES,
    *small_layers.CASES,
    *audio.CASES,
    *graphs.CASES,
)


class Incomplete(Exception):
    """A package is missing or of another version, or a library has modules without a case."""


def case_named(title: str) -> ModuleCase:
    """Return the case with this title.

    Raises:
        KeyError: there is none.
    """
    return {case.title: case for case in CASES}[title]


def check_packages(libraries: set[str]) -> None:
    """Check that the packages of ``libraries`` are there, in the versions that were chosen.

    Raises:
        Incomplete: one is not.
    """
    wrong = []
    for name in sorted(libraries & PACKAGES.keys()):
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = "not installed"
        if version.partition("+")[0] != PACKAGES[name]:
            wrong.append(f"{name} {PACKAGES[name]} ({version})")
    if wrong:
        raise Incomplete(f"needed: {', '.join(wrong)}: pip install 'rekindle[modules]'")


def check_complete(libraries: set[str]) -> None:
    """Check that what ``libraries`` offer is a case or excluded, and that what is listed is offered.

    Raises:
        Incomplete: something is missing from the list, or from the library.
    """
    for library in LIBRARIES:
        if library.name in libraries:
            available, excluded = _available(library), {each.name for each in library.excluded}
            covered = library.covered() & available if library.name == "torch.nn" else library.covered()
            if unlisted := available - covered - excluded:
                raise Incomplete(f"{library.name} has modules without a case: {', '.join(sorted(unlisted))}")
            if gone := (covered | excluded) - available:
                raise Incomplete(f"{library.name} does not offer: {', '.join(sorted(gone))}")


def _available(library: Library) -> set[str]:
    try:
        return library.available()
    except (ImportError, OSError, RuntimeError) as error:
        # PyPI's builds of torchvision and torchaudio need CUDA's libraries: see benchmarks.modules.cuda_stubs
        raise Incomplete(
            f"{library.name} cannot be imported: is it a build for this build of torch? {error}"
        ) from error
