"""metatensor and metatomic are classes in C++ (``torch.classes``), with operations that are scripted at import."""

from __future__ import annotations

import importlib
from typing import Any

import torch
from keeping import main


def imported(name: str) -> Any:
    importlib.import_module(name)
    return name


def operation() -> Any:
    """An operation that is scripted at import, on a map of one block."""
    metatensor = importlib.import_module("metatensor.torch")
    samples = metatensor.Labels(["sample"], torch.tensor([[0], [2], [4]]))
    properties = metatensor.Labels(["property"], torch.tensor([[0], [1]]))
    block = metatensor.TensorBlock(torch.arange(-3.0, 3.0).view(3, 2), samples, [], properties)
    tensors = metatensor.TensorMap(metatensor.Labels(["key"], torch.tensor([[0]])), [block])
    return metatensor.abs(tensors).block(0).values


if __name__ == "__main__":
    main(
        {
            "import metatensor.torch": lambda: imported("metatensor.torch"),
            "metatensor.torch.abs": operation,
            "import metatomic.torch": lambda: imported("metatomic.torch"),
        }
    )
