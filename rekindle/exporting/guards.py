"""Argument checks of an exported program beyond PyTorch's: that an argument is still None, that a bool or enum is the
same, the ranks of tensors, and dtypes, if the program queried them.

PyTorch's guards are lines of Python about ``L['argument']``. They are kept with the program, in files too.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import Any, Final

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from rekindle.ir.operators.traits import Trait
from rekindle.ops.registration.traits import kinds_with

ASKS_DTYPE: Final = kinds_with(Trait.READS_DTYPE) | {"prim::tolist", "prim::isinstance"}
"""Kinds of nodes whose results depend on the dtype of a tensor, so that the program may branch on it."""


def leaves_with_sources(names: Sequence[str], args: Sequence[Any], kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield every leaf of the arguments with the expression by which guards refer to it, such as ``L['x'][0]``."""
    for name, value in [*zip(names, args, strict=False), *kwargs.items()]:
        for path, leaf in pytree.tree_flatten_with_path(value)[0]:
            yield f"L['{name}']{pytree.keystr(path)}", leaf


def guards_of(names: Sequence[str], args: Sequence[Any], kwargs: dict[str, Any]) -> list[str]:
    """Return the guards for the Nones, enums and bools among the arguments of an example call, and for the ranks of
    tensors, as Python expressions. ``names`` are those of the positional arguments."""
    found: list[str] = []
    for source, leaf in leaves_with_sources(names, args, kwargs):
        if leaf is None:
            found.append(f"{source} is None")
        elif isinstance(leaf, enum.Enum):
            # run_decompositions evaluates guards on stand-ins for enums, which have no attributes.
            found.append(f"getattr({source}, 'name', '{leaf.name}') == '{leaf.name}'")
        elif isinstance(leaf, bool):
            found.append(f"{source} == {leaf}")  # from a file a bool may come as 1
        elif isinstance(leaf, Tensor):  # PyTorch checks sizes, and accepts more dimensions than the example has
            found.append(f"{source}.dim() == {leaf.dim()}")
    return found


def check_dtypes(args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Emit checks of the dtypes of all tensors among the arguments into the program that is being traced."""
    for leaf in pytree.tree_leaves((list(args), kwargs)):
        if isinstance(leaf, Tensor):
            torch.ops.aten._assert_tensor_metadata.default(leaf, None, None, leaf.dtype)
