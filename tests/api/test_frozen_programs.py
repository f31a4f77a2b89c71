"""Modules of PyTorch's database, and archives of old releases: frozen, they answer as before."""

from __future__ import annotations

import copy
import io
import random
import warnings
from typing import Any

import pytest
import torch

import rekindle
from rekindle.errors import ArgumentError
from rekindle.ir.verifier import verify
from tests.archive.golden_archives import GoldenArchive, decode, golden_archives, without_names
from tests.support.equality import assert_same
from tests.sweeps.cases import seed
from tests.sweeps.module_db import cases_of, database, load_record, taken_by_torch, taken_names
from tests.sweeps.ways import SCRIPT

RECORD = load_record(SCRIPT)
MODULES = random.Random(61).sample(taken_names(SCRIPT), 20)
ARCHIVES = random.Random(62).sample(golden_archives(), 30)


def answer(function: Any, *args: Any, **kwargs: Any) -> Any:
    """What a call gives, or the class of the error that it raises."""
    own, own_keywords = copy.deepcopy((args, kwargs))
    seed()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return without_names(function(*own, **own_keywords))
        except Exception as error:
            return type(error)


def check(found: Any, expected: Any, where: str) -> None:
    if isinstance(expected, type):
        assert found is expected, where
        return
    try:
        torch.testing.assert_close(found, expected, equal_nan=True, rtol=1e-4, atol=1e-5)
    except TypeError:  # there are strings, or dicts of lists
        assert_same(found, expected, where)


@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str) -> None:
    cases = [case for case in cases_of(database()[name]) if case.key.startswith("eval")]
    taken = taken_by_torch(cases, SCRIPT, RECORD.get(name))
    cases = [case for case in cases if case.key in taken]
    assert cases
    for case in cases[:3]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled, eager = rekindle.script(case.make()), case.make()
        frozen = rekindle.freeze(compiled)
        for record in frozen.script_type.methods.values():
            verify(record.graph)
        assert not frozen.state_dict()
        for _ in range(2):
            expected = answer(eager, *case.arguments, **case.keywords)
            if answer(compiled, *case.arguments, **case.keywords) is ArgumentError:
                expected = ArgumentError  # a compiled module is strict with what is declared
            check(answer(frozen, *case.arguments, **case.keywords), expected, case.text)
        with torch.no_grad():
            fast = rekindle.optimize_for_inference(compiled)
            check(answer(fast, *case.arguments, **case.keywords), expected, case.text)


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda archive: archive.name)
def test_archives(archive: GoldenArchive) -> None:
    """All their methods, in order, since some change the module; and once more saved and loaded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module, plain = (rekindle.load(archive.path).eval() for _ in range(2))
        frozen = rekindle.freeze(module, sorted({call["method"] for call in archive.calls} - {"forward"}))
        again = rekindle.load(io.BytesIO(frozen.save_to_buffer()))
    for call in archive.calls:
        inputs = [decode(record) for record in call["inputs"]]
        expected = answer(getattr(plain, call["method"]), *inputs)
        check(answer(getattr(frozen, call["method"]), *inputs), expected, call["method"])
        check(answer(getattr(again, call["method"]), *inputs), expected, call["method"])
