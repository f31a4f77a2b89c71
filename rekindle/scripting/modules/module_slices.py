"""``self.layers[1:]``: some items of a container of modules, as the container that Python creates for them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rekindle.errors import UnsupportedError
from rekindle.frontend.sugared_values.base import CallSite, SugaredValue
from rekindle.frontend.sugared_values.functions import sugared_arguments
from rekindle.frontend.sugared_values.values import SugaredTuple


class ModuleSlice(SugaredTuple):
    """A slice of a container of the class ``container``. A slice of a Sequential can be called: its items run one after
    the other."""

    def __init__(self, items: Sequence[SugaredValue], container: type) -> None:
        super().__init__(items)
        self.container = container
        self.description = f"a slice of a {container.__name__}"

    @property
    def known_length(self) -> int | None:
        return len(self.elements)

    def call(self, call: CallSite) -> SugaredValue:
        if self.container is not torch.nn.Sequential:
            raise UnsupportedError(f"{self.description} cannot be called", call.range)
        args, kwargs = sugared_arguments(call)
        found = args[0] if len(args) == 1 else kwargs.get("input")
        if found is None or len(args) + len(kwargs) != 1:
            raise UnsupportedError(f"{self.description} takes one argument", call.range)
        for item in self.elements:
            found = item.call_with(call.range, call.graph, [found], {})
        return found
