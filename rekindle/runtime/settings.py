"""Process-wide settings of execution."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rekindle.runtime.executable import forget_strategies

FusionBehavior = Literal["STATIC", "DYNAMIC"]
FusionStrategy = tuple[tuple[FusionBehavior, int], ...]

_BEHAVIORS: Final = ("STATIC", "DYNAMIC")


@dataclass(slots=True)
class ExecutionSettings:
    """``strategy`` is the name of one of :data:`rekindle.runtime.executor.STRATEGIES`. ``fusion`` has pairs of
    a behavior and a number, as :func:`set_fusion_strategy` takes them: their sum is the
    maximum number of specialized versions of a function, in addition to the one for any arguments. With
    ``in_background`` they are compiled on another thread, and calls do not wait for them. With ``native_plans``
    functions run without Python between their operators where they can. With ``cuda_graphs`` calls on a GPU are
    captured and replayed (:mod:`rekindle.runtime.cuda_graphs`)."""

    strategy: str = "native"
    fusion: FusionStrategy = (("STATIC", 2), ("DYNAMIC", 5))
    in_background: bool = False
    cuda_graphs: bool = False
    native_plans: bool = os.environ.get("REKINDLE_NATIVE_PLANS", "1") not in ("0", "off")

    @property
    def most_versions(self) -> int:
        return sum(count for _, count in self.fusion)


SETTINGS: Final = ExecutionSettings()


def set_fusion_strategy(strategy: Sequence[tuple[FusionBehavior, int]]) -> list[tuple[FusionBehavior, int]]:
    """Set how many versions of a function may be compiled, and return the setting before.

    ``[("STATIC", 2), ("DYNAMIC", 5)]`` allows two versions for given sizes and then five for any sizes, as far as the
    execution strategy distinguishes these. Calls that fit none of them run a generic version. All functions are
    optimized again.

    Args:
        strategy: pairs of a behavior, ``"STATIC"`` or ``"DYNAMIC"``, and a number of versions.

    Raises:
        ValueError: a behavior is unknown, or a number is negative.

    Example:
        >>> before = rekindle.set_fusion_strategy([("DYNAMIC", 10)])
        >>> rekindle.set_fusion_strategy(before)
        [('DYNAMIC', 10)]
    """
    for behavior, count in strategy:
        if behavior not in _BEHAVIORS:
            raise ValueError(f'the behavior {behavior!r} is not known: it is "STATIC" or "DYNAMIC"')
        if count < 0:
            raise ValueError(f"{behavior} has the number {count}: how many versions there are cannot be negative")
    before = list(SETTINGS.fusion)
    SETTINGS.fusion = tuple((behavior, int(count)) for behavior, count in strategy)
    forget_strategies()
    return before


def set_background_compilation(enabled: bool) -> bool:
    """Select whether functions are optimized on another thread, while calls run them unoptimized; return the value
    before.

    Args:
        enabled: True for another thread.

    Example:
        >>> before = rekindle.set_background_compilation(True)
        >>> before, rekindle.set_background_compilation(before)
        (False, True)
    """
    before = SETTINGS.in_background
    SETTINGS.in_background = enabled
    return before


def set_cuda_graphs(enabled: bool) -> bool:
    """Select whether calls on a GPU are captured in CUDA graphs and replayed, and return the value before.

    A call is captured if all its tensors are on one GPU, after some calls with the same sizes, strides, dtypes and
    numbers. Where gradients are recorded, parts of it are captured: the forward and backward graphs of operators that
    are differentiated together. Results are new tensors in each call. Captures hold the memory that a call needs.
    ``rekindle.report`` names what keeps a function from being captured. All functions are optimized again, and captures
    so far are freed.

    Args:
        enabled: True to capture. The default is False.

    Example:
        >>> before = rekindle.set_cuda_graphs(True)
        >>> before, rekindle.set_cuda_graphs(before)
        (False, True)
    """
    before, SETTINGS.cuda_graphs = SETTINGS.cuda_graphs, enabled
    forget_strategies()  # which frees the captures
    return before
