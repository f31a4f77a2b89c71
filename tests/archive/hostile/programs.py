"""Archives written by hand: a module ``M`` and what an attacker adds to it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest

import rekindle
from rekindle.archive.limits import DEFAULT_LIMITS
from rekindle.errors import ArchiveError, CompileError
from tests.archive.hostile.containers import Member, packed
from tests.archive.hostile.judge import Watch

NO_CONSTANTS = b"\x80\x02)."

HEAD = """class M(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
"""

FORWARD = """  def forward(self, x: Tensor) -> Tensor:
    return x
"""

STATE = """  def __getstate__(self) -> int:
    return 1
  def __setstate__(self, state: int) -> None:
    self.training = True
"""


def text(word: str) -> bytes:
    """The instruction of a pickle that makes this string."""
    data = word.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<L", len(data)) + data


def whole(value: int) -> bytes:
    """The instruction that makes this integer."""
    return b"\x8a\x09" + value.to_bytes(9, "little", signed=True)


def object_of(name: str, state: bytes) -> bytes:
    """The instructions that make an object of a class of the program."""
    return f"c__torch__\n{name}\n".encode() + b")\x81" + state + b"b"


def attributes(**values: bytes) -> bytes:
    """The state of an object: its attributes, each with the instructions that make it."""
    return b"}(" + b"".join(text(name) + value for name, value in values.items()) + b"u"


def program(
    body: str = "",
    *,
    before: str = "",
    data: bytes | None = None,
    constants: bytes = NO_CONSTANTS,
    more: Sequence[Member] = (),
    **values: bytes,
) -> bytes:
    """An archive of a module ``M``: the body of its class, the text before it, and the values of its attributes."""
    code = f"{before}{HEAD}{body}{FORWARD}"
    pickle = b"\x80\x02" + object_of("M", attributes(training=b"\x88", **values)) + b"." if data is None else data
    members = [
        Member("a/version", b"3\n"),
        Member("a/data.pkl", pickle),
        Member("a/constants.pkl", constants),
        Member("a/code/__torch__.py", code.encode()),
    ]
    return packed([*members, *more])


def setting_state(code: str, *, before: str = "", methods: str = "") -> bytes:
    """An archive whose module is made by ``__setstate__``, which runs ``code`` with ``state`` 5."""
    lines = "".join(f"    {line}\n" for line in code.splitlines())
    return program(STATE + lines + methods, before=before, data=b"\x80\x02" + object_of("M", b"K\5") + b".")


@cache
def watch() -> Watch:
    """The one of this process; what is imported when it is first needed is imported by now."""
    rekindle.load(setting_state("self.training = bool(torch.sum(torch.zeros([2])))"))
    return Watch()


def refusal(archive: bytes, error: type[ArchiveError | CompileError], **limits: int) -> str:
    """The whole text with which loading refuses an archive. Nothing outside of the process is read in that time."""
    auditor = watch()
    with pytest.raises(error) as caught, auditor.on():
        rekindle.load(archive, limits=replace(DEFAULT_LIMITS, **limits))
    assert type(caught.value) is error
    assert auditor.events == []
    return str(caught.value)


def loaded(archive: bytes) -> rekindle.ScriptModule:
    """The module of an archive, for which nothing outside of the process is looked at."""
    auditor = watch()
    with auditor.on():
        module = rekindle.load(archive)
    assert auditor.events == []
    return module
