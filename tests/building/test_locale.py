"""Numbers are written and read as Python does, whatever the locale of the process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Tuple

import pytest

import rekindle

LOCALEDEF = shutil.which("localedef")
DEFINITION = Path("/usr/share/i18n/locales/de_DE")


def numbers(x: float, text: str) -> Tuple[str, str, float, float]:
    return str(x), f"{x:.3f}", float(text), round(x, 2)


SCRIPT = """
import ctypes, locale, sys
import rekindle
locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
printf = ctypes.CDLL(None).snprintf
buffer = ctypes.create_string_buffer(32)
def shown():
    printf(buffer, 32, b"%.1f", ctypes.c_double(0.5))
    return buffer.value.decode()
library = rekindle.NativeLibrary(sys.argv[1])
before = shown()
print(before, library(1234.5678, "2.5"), shown())
try:
    library(0.5, "2,5")
except ValueError as error:
    print(str(error).splitlines()[0], shown())
"""


@pytest.mark.skipif(LOCALEDEF is None or not DEFINITION.exists(), reason="this machine has no sources of locales")
def test_a_locale_with_a_decimal_comma(tmp_path: Path) -> None:
    rekindle.build(rekindle.script(numbers), tmp_path / "net")
    assert LOCALEDEF is not None
    locales = tmp_path / "locales"
    locales.mkdir()
    made = [LOCALEDEF, "--no-archive", "-i", "de_DE", "-f", "UTF-8", str(locales / "de_DE.UTF-8")]
    subprocess.run(made, check=True, capture_output=True)
    environment = {**os.environ, "LOCPATH": str(locales)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, tmp_path / "net"], env=environment, check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [
        "0,5 ('1234.5678', '1234.568', 2.5, 1234.57) 0,5",
        "could not convert string to float 0,5",
    ]
