"""Exponential moving averages of weights, as ``torch.optim.swa_utils.AveragedModel`` keeps them."""

from __future__ import annotations

import inspect
from collections.abc import Collection

from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel


class WeightAverage:
    """The averages ``averaged`` of the weights of ``model``.

    If ``weight`` is not None, the caller may average parameters by kernels, and calls ``finish`` for the others.
    Otherwise it calls ``update``, which runs PyTorch's own code.
    """

    def __init__(self, averaged: AveragedModel, model: nn.Module) -> None:
        self.averaged = averaged
        self.model = model

    @property
    def weight(self) -> float | None:
        """The weight of the new parameters in the averages; None if PyTorch's own code has to average."""
        decay = _ema_decay(self.averaged)
        if decay is None or self.averaged.use_buffers or int(self.averaged.n_averaged) == 0:
            return None
        return 1 - decay

    def pairs(self) -> list[tuple[Tensor, Tensor]]:
        """Return the parameters of the model, each with its average."""
        return list(zip(self.model.parameters(), self.averaged.parameters(), strict=True))

    def update(self) -> None:
        """Update the averages by PyTorch's own code."""
        self.averaged.update_parameters(self.model)

    def finish(self, done: Collection[int]) -> None:
        """Complete an update of exponential moving averages after kernels averaged the parameters whose ids are
        ``done``: average the other parameters, copy the buffers, and increment ``n_averaged``."""
        update = self.averaged.multi_avg_fn
        assert update is not None, "these are exponential moving averages"
        for new, average in self.pairs():
            if id(new) not in done:
                update([average.detach()], [new.detach().to(average.device)], self.averaged.n_averaged)
        for buffer, new in zip(self.averaged.module.buffers(), self.model.buffers(), strict=True):
            buffer.copy_(new)
        self.averaged.n_averaged += 1


def _ema_decay(averaged: AveragedModel) -> float | None:
    """Return the decay if ``averaged`` is an exponential moving average created by PyTorch's factory; None otherwise.
    The decay is a closure variable of the function that the factory creates."""
    if getattr(averaged.update_parameters, "__func__", None) is not AveragedModel.update_parameters:
        return None
    function = inspect.unwrap(averaged.multi_avg_fn) if averaged.multi_avg_fn is not None else None
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    is_pytorchs = getattr(function, "__module__", "") == AveragedModel.__module__
    is_ema = is_pytorchs and getattr(function, "__qualname__", "").startswith("get_ema_multi_avg_fn.")
    if not is_ema or code is None or code.co_freevars != ("decay",) or not cells:
        return None
    return float(cells[0].cell_contents)
