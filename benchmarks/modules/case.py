"""A module of a library, and what it is called with."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

Modes = tuple[str, ...]
INFERENCE: Final = ("inference",)
BOTH: Final = ("inference", "training")


def _unchanged(result: Any) -> Any:
    return result


@dataclass(frozen=True, slots=True)
class ModuleCase:
    """A module and its inputs, both made from a seed that is set before.

    ``training_inputs`` are those of the training mode where they are others. ``differentiated`` are the positions of
    the inputs that require a gradient in training: a layer passes it on, a whole model has no use for it. ``result``
    picks what is compared and differentiated from what the module returns. ``prepare`` runs before the library's
    module is made.
    """

    library: str
    name: str
    make: Callable[[], Any]
    inputs: Callable[[], tuple[Any, ...]]
    training_inputs: Callable[[], tuple[Any, ...]] | None = None
    differentiated: tuple[int, ...] = ()
    modes: Modes = BOTH
    result: Callable[[Any], Any] = _unchanged
    prepare: Callable[[], None] | None = None

    @property
    def title(self) -> str:
        """The name among all cases."""
        return f"{self.library} {self.name}"

    def inputs_of(self, mode: str) -> tuple[Any, ...]:
        """Return new inputs for a mode; in training, those of ``differentiated`` require gradients."""
        make = self.training_inputs if mode == "training" and self.training_inputs is not None else self.inputs
        inputs = make()
        if mode == "training":
            for position in self.differentiated:
                inputs[position].requires_grad_()
        return inputs


@dataclass(frozen=True, slots=True)
class Excluded:
    """The reason why a name that a library offers is not a case."""

    name: str
    reason: str


def found(path: str) -> Any:
    """Return what a dotted path names: ``package.module.Name``. The import is deferred to the process of the case."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def maker(path: str, *arguments: Any, **keywords: Any) -> Callable[[], Any]:
    """Return a function that makes an object of the class or factory at ``path``."""
    return lambda: found(path)(*arguments, **keywords)


def normal(*shapes: tuple[int, ...]) -> Callable[[], tuple[Tensor, ...]]:
    """Return a function that makes a tensor of normally distributed numbers for each shape."""
    return lambda: tuple(torch.randn(shape) for shape in shapes)
