"""Programs with branches."""

from __future__ import annotations

from typing import Dict, Optional

import torch
from torch import Tensor

from tests.exporting.probes.registry import BATCH, NEGATIVE, POSITIVE, probe, ramp


@probe("straight.function")
def straight(x: Tensor) -> Tensor:
    return torch.relu(x) * 2 + x.sin()


@probe("if.tensor")
def if_tensor(x: Tensor) -> Tensor:
    if x.sum() > 0:
        y = x.sin()
    else:
        y = x.cos() * 2
    return y + 1


@probe("if.nested", others=((NEGATIVE,), (NEGATIVE * 9,)))
def if_nested(x: Tensor) -> Tensor:
    if x.sum() > 0:
        y = x + 1
    else:
        if x.min() < -5:
            y = x * 2
        else:
            y = x - 1
    return y


@probe("if.elif", others=((NEGATIVE,), (POSITIVE * 0,), (POSITIVE * 9,)))
def if_elif(x: Tensor) -> Tensor:
    if x.max() > 5:
        return x / 2
    elif x.sum() > 0:
        return x
    elif x.sum() == 0:
        return x + 1
    return -x


@probe("if.early_return")
def early_return(x: Tensor) -> Tensor:
    if x.mean() > 0:
        return x.exp()
    y = x * x
    if y.sum() > 100:
        return y.sqrt()
    return y


@probe("if.and_or", others=((NEGATIVE,), (POSITIVE * 20,), (NEGATIVE * 20,)))
def and_or(x: Tensor) -> Tensor:
    if (x.sum() > 0 and x.max() < 5) or not (x.min() > -9):
        return x + 1
    return x - 1


@probe("if.mutates")
def if_mutates(x: Tensor) -> Tensor:
    y = x.clone()
    if x.sum() > 0:
        y.add_(3)
    else:
        y[0] = 7
    return y


@probe("if.none_or_tensor")
def none_or_tensor(x: Tensor) -> Tensor:
    mask: Optional[Tensor] = None
    if x.sum() > 0:
        mask = x > 1
    y = x * 2
    if mask is not None:
        y = y.masked_fill(mask, 0.0)
    return y


@probe("if.numbers")
def if_numbers(x: Tensor) -> Tensor:
    n = 2
    f = 0.5
    if x.sum() > 0:
        n = 3
        f = 1.5
    return x * n + f


@probe("if.returns_number")
def returns_number(x: Tensor) -> int:
    if x.sum() > 0:
        return 3
    return x.size(0) + 4


@probe("if.lists", others=((NEGATIVE,),))
def if_lists(x: Tensor) -> Tensor:
    parts = [x]
    if x.sum() > 0:
        parts.append(x * 2)
        parts.append(x * 3)
    return torch.cat(parts).sum(0)


@probe("if.different_shapes")
def different_shapes(x: Tensor) -> Tensor:
    if x.sum() > 0:
        y = torch.cat([x, x])
    else:
        y = x
    return y * 2


@probe("if.on_size", (ramp(3, 4),), ((ramp(8, 4),), (ramp(2, 4),)), BATCH)
def on_size(x: Tensor) -> Tensor:
    if x.size(0) > 4:
        return x * 2
    return x - 1


@probe("if.ternary")
def ternary(x: Tensor) -> Tensor:
    scale = 2.0 if bool(x.sum() > 0) else 0.5
    return x * scale


@probe("if.dict_entry")
def dict_entry(x: Tensor) -> Tensor:
    d: Dict[str, Tensor] = {"a": x}
    if x.sum() > 0:
        d["a"] = x * 3
    d["b"] = d["a"] + 1
    return d["b"]


@probe("if.constant_flag", (POSITIVE, True), ((NEGATIVE, True),))
def constant_flag(x: Tensor, flag: bool) -> Tensor:
    if flag:
        return x * 2
    return x
