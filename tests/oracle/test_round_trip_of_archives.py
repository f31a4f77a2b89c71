"""Programs through files, both ways between this package and torch.jit. All of them: ``make sweep-archives``."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator

import pytest

from rekindle.errors import SaveError
from tests.oracle.archive_round_trips import (
    NotApplicable,
    Problem,
    compile_here,
    ours_to_ours,
    ours_to_torch,
    torch_to_ours,
)
from tests.oracle.known_archive_differences import FROM_TORCH, IN_TORCH, IN_TORCH_AT_FIRST, REFUSED, SAVED_AGAIN
from tests.oracle.subjects import Subject, subjects, traced_models
from tests.sweeps import report

SUBJECTS = {subject.name: subject for subject in [*subjects(), *traced_models()]}
LISTED = {*REFUSED, *IN_TORCH, *IN_TORCH_AT_FIRST, *FROM_TORCH, *SAVED_AGAIN}
TRACED = ("traced.resnet", "traced.gru", "traced.attention")


def _sample(size: int, seed: int) -> list[Subject]:
    """So many of those that are on no list, and some traces."""
    names = [name for name in SUBJECTS if name not in LISTED and not name.startswith("traced.")]
    chosen = set(random.Random(seed).sample(names, size))
    return [subject for name, subject in SUBJECTS.items() if name in chosen or name in TRACED]


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("subject", _sample(300, 1), ids=str)
def test_saved_here_and_loaded_by_torch(subject: Subject) -> None:
    assert not list(ours_to_torch(subject))


@pytest.mark.parametrize("subject", _sample(60, 2), ids=str)
def test_saved_here_and_loaded_here(subject: Subject) -> None:
    assert not list(ours_to_ours(subject))


@pytest.mark.parametrize("subject", _sample(150, 3), ids=str)
def test_saved_by_torch_and_loaded_here(subject: Subject) -> None:
    try:
        assert not list(torch_to_ours(subject))
    except NotApplicable:
        pass  # what torch.jit does not compile: the sweep counts the others


# ------------------------------------------------------------------------------------------------------------ the lists


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_saved_is_refused_by_name(name: str) -> None:
    with pytest.raises(SaveError) as caught:
        compile_here(SUBJECTS[name]).save_to_buffer()
    assert REFUSED[name] in str(caught.value)


@pytest.mark.parametrize(
    ("way", "name"),
    [
        *((ours_to_torch, name) for name in IN_TORCH),
        *((torch_to_ours, name) for name in FROM_TORCH),
        *((ours_to_ours, name) for name in SAVED_AGAIN),
    ],
)
def test_known_differences_are_there(way: Callable[[Subject], Iterator[Problem]], name: str) -> None:
    try:
        problems = list(way(SUBJECTS[name]))
    except RuntimeError as error:
        problems = [str(error)]
    assert problems, f"{name} comes through now: take it off the list"


# ---------------------------------------------------------------------------------------------------- the whole of it


def test_committed_sweep_has_no_problems_and_many_programs() -> None:
    summary = report.committed_summary("archives")
    assert summary["problems"] == []
    assert all(passed >= 1700 for passed in summary["passed"].values())
