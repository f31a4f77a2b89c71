"""Arguments like those of a sample, with other sizes: what a program must answer too if it fixes none of them.

A size is doubled wherever it occurs among the arguments, by repeating what is there: indices stay in range, and what
has to agree agrees. Not every operator takes what comes of it; those that eager refuses are left out by the caller.

(3, 5), (5, 7)  ->  (6, 5), (5, 7);  (3, 10), (10, 7);  (3, 5), (5, 14)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

LIMIT = 4
"""Sizes that are doubled, one after the other, for each sample."""


def other_sizes(arguments: Any) -> Iterator[Any]:
    """Nested containers as ``arguments``, with tensors of other sizes."""
    leaves, structure = tree_flatten(arguments)
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    if any(tensor.layout is not torch.strided for tensor in tensors):
        return
    sizes = dict.fromkeys(size for tensor in tensors for size in tensor.shape if size > 1)
    for size in list(sizes)[:LIMIT]:
        yield tree_unflatten([_doubled(leaf, size) for leaf in leaves], structure)


def _doubled(leaf: Any, size: int) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    for dim, found in enumerate(leaf.shape):
        if found == size:
            leaf = torch.cat([leaf, leaf], dim)
    return leaf
