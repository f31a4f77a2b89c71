"""piq's losses and measures of images, traced: no compiler scripts the checks of their arguments.

Some losses subtract numbers that are nearly the same, and compare the difference with the machine's epsilon: they are
compared in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import piq
import torch
from keeping import compared, main

LOSSES: dict[str, Callable[[], Any]] = {
    "DSSLoss": piq.DSSLoss,
    "FSIMLoss": piq.FSIMLoss,
    "GMSDLoss": piq.GMSDLoss,
    "HaarPSILoss": piq.HaarPSILoss,
    "InformationWeightedSSIMLoss": piq.InformationWeightedSSIMLoss,
    "MDSILoss": piq.MDSILoss,
    "MultiScaleGMSDLoss": piq.MultiScaleGMSDLoss,
    "MultiScaleSSIMLoss": piq.MultiScaleSSIMLoss,
    "SRSIMLoss": piq.SRSIMLoss,
    "SSIMLoss": piq.SSIMLoss,
    "TVLoss": piq.TVLoss,
    "VIFLoss": piq.VIFLoss,
    "VSILoss": piq.VSILoss,
}
UNSTABLE = ("InformationWeightedSSIMLoss",)


def images(dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, ...]:
    x = torch.rand(2, 3, 192, 192, dtype=dtype)
    return x, (x + 0.1 * torch.rand_like(x)).clamp(0, 1)


def inputs_of(name: str) -> tuple[torch.Tensor, ...]:
    inputs = images(torch.float64 if name in UNSTABLE else torch.float32)
    return inputs[:1] if name == "TVLoss" else inputs


def traced_with(*inputs: torch.Tensor) -> Callable[[Any], Any]:
    return lambda module: torch.jit.trace(module, inputs, check_trace=False)


def traced(name: str, make: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        inputs = inputs_of(name)
        return compared(make(), inputs, compile=traced_with(*inputs))

    return run


def differentiated(make: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        x, y = images()
        return compared(
            make(), (x.requires_grad_(), y), compile=traced_with(x.detach(), y), gradients=True, archive=False
        )

    return run


def refused() -> Any:
    """No compiler takes the checks of the arguments: messages with the class of a tensor, ``x in {1, 2, 3}``."""
    try:
        torch.jit.script(piq.SSIMLoss())
    except Exception:
        return "refused"
    return "compiled"


if __name__ == "__main__":
    main(
        {
            **{name: traced(name, make) for name, make in LOSSES.items()},
            **{
                f"{name}, gradients": differentiated(LOSSES[name])
                for name in ("GMSDLoss", "HaarPSILoss", "MultiScaleSSIMLoss", "VIFLoss")
            },
            "SSIMLoss, scripted": refused,
        }
    )
