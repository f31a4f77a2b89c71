"""Small programs that use what TorchScript programs are made of, each with calls that take other branches and trip
counts than the example does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.export import Dim


@dataclass(frozen=True)
class Probe:
    """A program, arguments of an example call, those of other calls, and which sizes differ between them."""

    name: str
    make: Callable[[], Any]
    args: Sequence[Any]
    others: Sequence[Sequence[Any]] = ()
    dynamic: Any = None
    method: str = "forward"


PROBES: Final[dict[str, Probe]] = {}


def ramp(*sizes: int, by: float = 1.0) -> Tensor:
    count = 1
    for size in sizes:
        count *= size
    return (torch.arange(count, dtype=torch.float32).reshape(sizes) % 7 - 3) * 0.25 * by


POSITIVE: Final = ramp(3, 4).abs() + 0.5
NEGATIVE: Final = -POSITIVE


def probe(
    name: str,
    args: Sequence[Any] = (POSITIVE,),
    others: Sequence[Sequence[Any]] = ((NEGATIVE,),),
    dynamic: Any = None,
) -> Callable[[Any], Any]:
    """Register a function or a class of modules as a probe."""

    def register(program: Any) -> Any:
        def make() -> Any:
            torch.manual_seed(0)
            return program().eval() if isinstance(program, type) else program

        PROBES[name] = Probe(name, make, args, others, dynamic)
        return program

    return register


def module(
    name: str, make: Callable[[], nn.Module], args: Sequence[Any], others: Sequence[Any] = (), dynamic: Any = None
) -> None:
    """Register a module of torch.nn as a probe."""

    def made() -> nn.Module:
        torch.manual_seed(0)
        return make().eval()

    PROBES[name] = Probe(name, made, args, others, dynamic)


LONG: Final = Dim("n", min=2, max=64)
BATCH: Final = ({0: LONG},)
