"""How numbers and strings are spelled in schemas and graphs.

A float has its 17 digits without trailing zeros, and a dot where it is whole and not too large (``1.``,
``1.0000000000000001e-05``), so that it is read back as the same float. Strings are in double quotes; a character that
is not printable ASCII becomes the octal escapes of its UTF-8 bytes.
"""

from __future__ import annotations

import math
import re

_WHOLE_IN_GRAPHS = 1e10
_WHOLE_IN_SCHEMAS = 2.0**63


def format_float(value: float) -> str:
    """Return the number as graphs write it. A whole number of 1e10 and more has no dot: only the type beside it
    marks it as a float.
    """
    if math.isfinite(value) and abs(value) < _WHOLE_IN_GRAPHS and value == int(value):
        return f"{value:.0f}."
    return _digits(value)


def format_schema_float(value: float) -> str:
    """Return the number as the default of an argument, or a part of a complex: a whole number below 2**63 has a dot."""
    if math.isfinite(value) and abs(value) < _WHOLE_IN_SCHEMAS and value == int(value):
        return f"{value:.0f}."
    return _digits(value)


def _digits(value: float) -> str:
    if math.isnan(value) and math.copysign(1.0, value) < 0:
        return "-nan"  # what 0 * inf gives on common machines
    return f"{value:.17g}"


def format_complex(value: complex) -> str:
    """Format a complex number: ``1.+2.j``."""
    # A NaN takes the minus, as every number does that is not at least zero, and so does -0.0.
    sign = "+" if value.imag > 0 or (value.imag == 0 and math.copysign(1.0, value.imag) > 0) else "-"
    return f"{format_schema_float(value.real)}{sign}{format_schema_float(abs(value.imag))}j"


_ESCAPES = {
    "\\": "\\\\",
    "'": "\\'",
    '"': '\\"',
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
_SPECIAL = re.compile(r"[^ !#-&(-\[\]-~]")


def format_string(value: str) -> str:
    """Format a string in double quotes, with escapes for quotes, backslashes and all that is not printable ASCII."""
    return f'"{_SPECIAL.sub(_escape, value)}"'


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    known = _ESCAPES.get(character)
    if known is not None:
        return known
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogatepass"))


def read_string(literal: str) -> str:
    """Return the string that a quoted ``literal`` denotes: the inverse of :func:`format_string`.

    Consecutive octal escapes are the bytes of UTF-8, or of Latin-1 if they are not valid UTF-8. An unknown escape is
    kept verbatim.
    """
    body = literal[1:-1]
    return _ESCAPED.sub(_unescape, body) if "\\" in body else body


_ESCAPED = re.compile(r"((?:\\[0-7]{1,3})+)|\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([\s\S]))")
_CHARACTERS = {escape[1]: character for character, escape in _ESCAPES.items()}


def _unescape(found: re.Match[str]) -> str:
    octal, *hexadecimal, character = found.groups()
    if octal is not None:
        data = bytes(int(digits, 8) & 0xFF for digits in octal[1:].split("\\"))
        try:
            return data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return data.decode("latin-1")
    if character is not None:
        return _CHARACTERS.get(character, "\\" + character)
    code = int(next(filter(None, hexadecimal)), 16)
    return chr(code) if code <= 0x10FFFF else found.group()


def read_number(text: str) -> int | float | complex:
    """Return the value of a NUMBER token."""
    try:
        return int(text, 0)
    except ValueError:
        return complex(text) if text[-1] in "jJ" else float(text)
