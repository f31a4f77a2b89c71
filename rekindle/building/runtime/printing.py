"""Output: write text to the standard output."""

from __future__ import annotations

from rekindle.building.lowlevel import native
from rekindle.building.runtime.c_library import putchar
from rekindle.building.runtime.objects import Text
from rekindle.building.runtime.texts import data_of


@native
def print_text(text: Text) -> None:
    data = data_of(text)
    for i in range(text.bytes):
        putchar(data[i])
