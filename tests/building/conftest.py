"""Native libraries on the releases of PyTorch that they cannot call."""

from __future__ import annotations

import subprocess
from collections.abc import Generator

import pytest

from rekindle.building.native_library import LibraryError
from tests.versions.differences import RELEASE

_SINCE_2_13 = "undefined symbol: torch_exception_get_what_without_backtrace"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Skip a test that opens a library with calls of PyTorch, where PyTorch lacks a function that it calls."""
    try:
        return (yield)
    except (LibraryError, AssertionError, subprocess.CalledProcessError) as error:
        # An assertion of another error shows this one, and so does what the program in C prints.
        if RELEASE < (2, 13) and _SINCE_2_13 in f"{error} {getattr(error, 'stderr', '')}":
            pytest.skip("libraries that need PyTorch need 2.13 or newer")
        raise
