"""Differences between releases of PyTorch that tests have to know, by the release that brought them."""

from __future__ import annotations

from typing import Final

import torch

RELEASE: Final = tuple(int(part) for part in torch.__version__.split(".")[:2])

_REMOVED: Final = {(2, 14): {"aten::cholesky", "aten::qr"}}
_NEW_IN_TORCHSCRIPT: Final = {(2, 13): {"aten::broadcast_shapes"}, (2, 15): {"aten::_is_tracing"}}


def removed_operators() -> set[str]:
    """Return the operators for which the package has rules and that this release has no longer."""
    return {name for release, names in _REMOVED.items() if release <= RELEASE for name in names}


def not_yet_in_torchscript() -> set[str]:
    """Return the operators that the package declares and TorchScript has in later releases."""
    return {name for release, names in _NEW_IN_TORCHSCRIPT.items() if release > RELEASE for name in names}
