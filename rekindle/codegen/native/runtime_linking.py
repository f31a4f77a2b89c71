"""The functions that all regions share: one module, compiled once in a process or loaded from disk. The modules of
regions declare the functions that they call, and contain copies of the small ones, which are inlined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

_NAME = re.compile(r"@([\w.]+)")
_PARAMETER = re.compile(r"\s%\w+(?=[,)])")
_INLINE = "alwaysinline"


def library_module(library: str) -> str:
    """Return the module of ``library`` with its functions visible to other modules."""
    return library.replace("define internal", "define")


def region_module(library: str, text: str) -> str:
    """Return the LLVM IR of a region, ``text``, with declarations of the functions of ``library`` that it calls, and
    definitions of those that are inlined."""
    pieces, rest = _pieces(library)
    chosen = set[str]()
    referenced = set(_NAME.findall(text))
    while referenced:
        name = referenced.pop()
        if name in pieces and name not in chosen:
            chosen.add(name)
            referenced.update(_NAME.findall(pieces[name]))
    return "\n".join([rest, *(piece for name, piece in pieces.items() if name in chosen), text])


@cache
def _pieces(library: str) -> tuple[dict[str, str], str]:
    """Split ``library``: return its definitions by name, with functions as declarations unless they are inlined, and
    the rest."""
    pieces: dict[str, str] = {}
    rest = []
    for piece in _definitions(library):
        head = piece.partition("\n")[0]
        if piece.startswith("define") and _INLINE not in head:
            piece = _PARAMETER.sub("", head[: head.rindex(")") + 1].replace("define internal", "declare"))
        if piece.startswith(("define", "declare", "@")):
            pieces[_NAME.findall(piece)[0]] = piece
        elif piece:
            rest.append(piece)
    return pieces, "\n".join(rest)


def _definitions(library: str) -> Iterator[str]:
    """Yield each definition, declaration, variable or type of a module."""
    body: list[str] = []
    for line in library.splitlines():
        if body:
            body.append(line)
            if line == "}":
                yield "\n".join(body)
                body = []
        elif line.startswith("define"):
            body = [line]
        elif not line.startswith(";"):
            yield line
