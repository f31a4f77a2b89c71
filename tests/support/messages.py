"""The text of an error with what differs between machines and versions of a file taken out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from rekindle.errors import RekindleError


def message_of(error: type[Exception], action: Callable[[], Any]) -> str:
    """The whole text of the ``error`` that ``action`` raises, with ``FILE`` for paths and ``N`` for line numbers."""
    with pytest.raises(error) as caught:
        action()
    if issubclass(error, RekindleError):
        assert type(caught.value) is error
    return re.sub(r'File ".*", line \d+', 'File "FILE", line N', str(caught.value))
