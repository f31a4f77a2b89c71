"""Name mangling: the component ``___torch_mangle_N`` in qualified names, which makes the names of a program unique."""

from __future__ import annotations

import re
from typing import Final

_MANGLE: Final = re.compile(r"___torch_mangle_\d+\.")


def demangled(text: str) -> str:
    """Return ``text``, a qualified name or text that contains such names, without the components
    ``___torch_mangle_N``."""
    return _MANGLE.sub("", text)
