"""A sample of PyTorch's own modules, printed as archives hold them and read back."""

from __future__ import annotations

import warnings

import pytest

import rekindle
from rekindle.errors import RekindleError
from tests.support.texts import round_trip_differences
from tests.sweeps.module_db import cases_of, database

SAMPLE = sorted(database())[::3]
"""Every third module."""


@pytest.mark.parametrize("name", SAMPLE)
def test_modules_of_pytorch(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled = []
        for case in cases_of(database()[name])[:3]:
            try:
                compiled.append(rekindle.script(case.make()))
            except RekindleError:
                continue  # the sweep says which and why
    for module in compiled:
        assert not "\n".join(round_trip_differences(module))
