"""``str`` and ``repr`` of dataclasses, in an archive too, where Python's class is not known."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any, List, Optional, Tuple

import torch
from torch import Tensor

import rekindle
from tests.frontend.outcomes import agrees, outcome


@dataclass
class Inner:
    rate: float = 0.5


@dataclass
class Settings:
    count: int = 1
    weight: Optional[Tensor] = None
    names: List[str] = field(default_factory=list)
    inner: Optional[Inner] = None
    pair: Tuple[int, float] = (1, 2.0)
    hidden: str = field(default="x", repr=False)


@dataclass
class Derived(Settings):
    flag: bool = True


class Outer:
    @dataclass
    class Nested:
        count: int = 2


@dataclass
class WithItsOwn:
    count: int

    def __repr__(self) -> str:
        return "its own"


def texts(n: int, x: Optional[Tensor]):
    settings = Settings(n, x, ["a'b"], Inner())
    print(settings, [Inner(2.0)], (Inner(1.0),))  # noqa: T201
    return (
        *(str(settings), repr(settings), f"{settings}|{settings!r}", "%s|%r" % (settings, settings)),
        *("{}".format(settings), str(Derived(n)), str(Outer.Nested(n)), str(WithItsOwn(n))),
        *(str([Inner(1.0)]), str({"a": Inner(1.0)}), str((Inner(1.0), n)), str(Settings(n).inner)),
    )


CALLS: list[tuple[Any, ...]] = [(3, torch.ones(2)), (-1, None)]


def test_as_eager() -> None:
    agrees(texts, *CALLS)


def test_as_eager_after_loading() -> None:
    file = io.BytesIO()
    rekindle.save(rekindle.script(texts), file)
    file.seek(0)
    loaded = rekindle.load(file)
    for arguments in CALLS:
        assert outcome(loaded, arguments) == outcome(texts, arguments)


def test_torch_jit_loads_it() -> None:
    def count(n: int) -> int:
        return Settings(n).count

    file = io.BytesIO()
    rekindle.save(rekindle.script(count), file)
    file.seek(0)
    assert torch.jit.load(file)(3) == 3
