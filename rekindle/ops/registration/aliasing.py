"""Aliasing and mutation by PyTorch's operators that their schemas do not declare.

An operator that the dispatcher composes of others (a *composite*) may return its argument though its schema says
``-> Tensor``: ``type_as`` where nothing is to be converted, ``dropout`` when it does not train, ``einsum`` where a
permutation is all there is to do. So a composite is assumed to return its arguments unless it is
:attr:`~rekindle.ir.operators.traits.Trait.FRESH`. Schemas of other operators are trusted, unless they have the trait
:attr:`~rekindle.ir.operators.traits.Trait.ALIASES_OPERANDS`. tests/ops/test_aliasing.py runs PyTorch's own samples and
compares.
"""

from __future__ import annotations

from typing import Final

import torch

from rekindle.ir.operators.traits import Trait
from rekindle.ops.registration.traits import traits_of_kind

_NORMALIZATION: Final = (("running_mean", "training"), ("running_var", "training"))

HIDDEN_WRITES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    **dict.fromkeys(
        (
            *("aten::batch_norm", "aten::native_batch_norm", "aten::_batch_norm_impl_index"),
            *("aten::cudnn_batch_norm", "aten::miopen_batch_norm"),
        ),
        _NORMALIZATION,
    ),
    "aten::instance_norm": (("running_mean", "use_input_stats"), ("running_var", "use_input_stats")),
}
"""Arguments that are written to without an annotation, each with the argument that turns it off."""


def may_alias_inputs(kind: str, *, is_composite: bool) -> bool:
    """Return whether the results of a dispatcher operator may be its arguments, or views of them, even without alias
    annotations."""
    traits = traits_of_kind(kind)
    return Trait.FRESH not in traits and (Trait.ALIASES_OPERANDS in traits or is_composite)


def is_composite(qualified_name: str) -> bool:
    """Return whether the dispatcher implements an operator by other operators."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(qualified_name, "CompositeImplicitAutograd")
