"""The kinds of arguments that a program is called with: dtypes, sizes, strides, memory, gradients, modes.

``kinds_of(sample)`` gives functions; each makes the same arguments whenever it is called, since a call may write
to them. Not every program takes every kind: then it fails, in every way of executing it with the same words.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map_only, tree_unflatten

from tests.support.trees import SCALARS, map_leaves
from tests.sweeps.other_sizes import other_sizes

Mode = Callable[[], AbstractContextManager[Any]]


@dataclass(slots=True)
class Arguments:
    """What a call is made with. ``behind`` are the tensors that the arguments are views or results of, whose values and
    gradients show what the call did."""

    positional: Any
    keywords: Any
    behind: list[Tensor] = field(default_factory=list)
    mode: Mode = contextlib.nullcontext


@dataclass(slots=True, frozen=True)
class Kind:
    """A name, and what makes arguments of this kind."""

    name: str
    make: Callable[[], Arguments]


Rebuild = Callable[[Tensor, list[Tensor]], Tensor]
"""Another tensor in the place of one; its memory is put on the list. The same tensor, where the kind does
not concern it."""


# ------------------------------------------------------------------------------------------------- tensors of all kinds


def _alike(tensor: Tensor, behind: list[Tensor]) -> Tensor:
    return tensor


def _requires_grad(tensor: Tensor, behind: list[Tensor]) -> Tensor:
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor
    leaf = tensor.detach().clone().requires_grad_()
    behind.append(leaf)
    return leaf


def _has_history(tensor: Tensor, behind: list[Tensor]) -> Tensor:
    """The result of something: programs can write to it, unlike to a leaf."""
    leaf = _requires_grad(tensor, behind)
    return leaf.clone() if leaf is not tensor else tensor


def _view_with_history(tensor: Tensor, behind: list[Tensor]) -> Tensor:
    """Every other element of something that has a history."""
    if not tensor.is_floating_point():
        return tensor
    base = _has_history(torch.stack([tensor, tensor + 1], -1), behind)
    behind.append(base)
    return base[..., 0]


def _transposed(tensor: Tensor, behind: list[Tensor]) -> Tensor:
    if tensor.dim() < 2:
        return tensor
    return tensor.transpose(0, -1).contiguous().transpose(0, -1)


def _sliced(tensor: Tensor, behind: list[Tensor]) -> Tensor:
    base = torch.stack([tensor, torch.zeros_like(tensor)], -1)
    behind.append(base)
    return base[..., 0]


def _shifted(tensor: Tensor, behind: list[Tensor]) -> Tensor:
    """One element after the start of its memory."""
    base = torch.cat([torch.zeros(1, dtype=tensor.dtype), tensor.reshape(-1)])
    behind.append(base)
    return base[1:].view(tensor.shape)


def _expanded(tensor: Tensor, behind: list[Tensor]) -> Tensor:
    if tensor.dim() == 0 or tensor.shape[0] == 0:
        return tensor
    base = tensor[:1].clone()
    behind.append(base)
    return base.expand_as(tensor)


def _overlapping(tensor: Tensor, behind: list[Tensor]) -> Tensor:
    """Adjacent elements in any dimension are adjacent in memory: rows share elements."""
    if tensor.dim() < 2 or tensor.numel() == 0:
        return tensor
    base = tensor.reshape(-1).clone()
    behind.append(base)
    return base.as_strided(tensor.shape, [1] * tensor.dim())


def _channels_last(tensor: Tensor, behind: list[Tensor]) -> Tensor:
    return tensor.contiguous(memory_format=torch.channels_last) if tensor.dim() == 4 else tensor


def _empty(tensor: Tensor, behind: list[Tensor]) -> Tensor:
    return tensor[:0].clone() if tensor.dim() else tensor


def _empty_inside(tensor: Tensor, behind: list[Tensor]) -> Tensor:
    return tensor[..., :0].clone() if tensor.dim() > 1 else tensor


def _scalar(tensor: Tensor, behind: list[Tensor]) -> Tensor:
    return tensor.reshape(-1)[0].clone() if tensor.numel() else tensor


def _one_more_dimension(tensor: Tensor, behind: list[Tensor]) -> Tensor:
    return tensor.unsqueeze(0).clone()


def _single(tensor: Tensor, behind: list[Tensor]) -> Tensor:
    """Sizes of one: what was elementwise broadcasts."""
    return tensor[:1].clone() if tensor.dim() else tensor


def _cast(tensor: Tensor, behind: list[Tensor], *, to: torch.dtype) -> Tensor:
    return tensor if tensor.is_complex() or tensor.is_quantized else tensor.to(to)


def _conjugated(tensor: Tensor, behind: list[Tensor]) -> Tensor:
    """The conjugate that is not computed yet: the memory holds another number than the tensor."""
    return tensor.conj_physical().conj() if tensor.is_complex() else tensor


def _negated(tensor: Tensor, behind: list[Tensor]) -> Tensor:
    """The imaginary part of a conjugate: the memory holds the negative."""
    if not tensor.is_floating_point() or tensor.dtype in (torch.float16, torch.bfloat16):
        return tensor
    return torch.complex(tensor, -tensor).conj().imag


def _not_a_number(tensor: Tensor, behind: list[Tensor]) -> Tensor:
    """NaN, both infinities, minus zero and a subnormal number among the elements."""
    if not tensor.is_floating_point():
        return tensor
    odd = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0, 1e-40], dtype=tensor.dtype)
    flat = tensor.detach().clone().reshape(-1)
    count = min(flat.numel(), 5)
    flat[:count] = odd[:count]
    return flat.view(tensor.shape)


def _on_meta(tensor: Tensor, behind: list[Tensor]) -> Tensor:
    return tensor.to("meta")


class _Named(Tensor):
    """A subclass, whose results are of it too."""


def _subclass(tensor: Tensor, behind: list[Tensor]) -> Tensor:
    return tensor.as_subclass(_Named)


def _parameter(tensor: Tensor, behind: list[Tensor]) -> Tensor:
    if not tensor.is_floating_point():
        return tensor
    parameter = torch.nn.Parameter(tensor.clone())
    behind.append(parameter)
    return parameter


REBUILDERS: dict[str, Rebuild] = {
    "requires_grad": _requires_grad,
    "has_history": _has_history,
    "view_with_history": _view_with_history,
    "transposed": _transposed,
    "sliced": _sliced,
    "shifted": _shifted,
    "expanded": _expanded,
    "overlapping": _overlapping,
    "channels_last": _channels_last,
    "empty": _empty,
    "empty_inside": _empty_inside,
    "scalar": _scalar,
    "one_more_dimension": _one_more_dimension,
    "single": _single,
    "float64": partial(_cast, to=torch.float64),
    "float16": partial(_cast, to=torch.float16),
    "bfloat16": partial(_cast, to=torch.bfloat16),
    "int64": partial(_cast, to=torch.int64),
    "int32": partial(_cast, to=torch.int32),
    "uint8": partial(_cast, to=torch.uint8),
    "bool": partial(_cast, to=torch.bool),
    "float32": partial(_cast, to=torch.float32),
    "conjugated": _conjugated,
    "negated": _negated,
    "not_a_number": _not_a_number,
    "meta": _on_meta,
    "subclass": _subclass,
    "parameter": _parameter,
}

MODES: dict[str, Mode] = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
}


# ------------------------------------------------------------------------------------------------------ whole arguments


def kinds_of(positional: Any, keywords: Any = None) -> Iterator[Kind]:
    """All kinds of arguments made of one sample, the sample itself first.

    Each of :data:`REBUILDERS` for all tensors at once, and for the first alone where there are more; other sizes;
    tensors that are one and the same, or views of each other; None in the place of tensors, and tensors in the place
    of None; other modes, with tensors that require gradients.
    """
    sample = (positional, keywords or {})
    leaves, _ = tree_flatten(sample)
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    source = _Sample.of(sample)
    yield Kind("sample", partial(_rebuilt, source, _alike))
    if not tensors:
        return
    for name, rebuild in REBUILDERS.items():
        if _concerns(rebuild, tensors):
            yield Kind(name, partial(_rebuilt, source, rebuild))
            if len(tensors) > 1 and name != "meta":  # what operators do with tensors of two devices is not said
                yield Kind(f"{name}_first", partial(_rebuilt, source, rebuild, only=1))
    for number, other in enumerate(other_sizes(tree_map_only(Tensor, Tensor.detach, sample))):
        larger = _Sample.of(other)
        yield Kind(f"doubled_{number}", partial(_rebuilt, larger, _alike))
        yield Kind(f"doubled_{number}_requires_grad", partial(_rebuilt, larger, _has_history))
    for name, mode in MODES.items():
        yield Kind(name, partial(_rebuilt, source, _has_history, mode=mode))
    if len(tensors) > 1:
        yield Kind("one_tensor", partial(_one_memory, sample, shift=0))
        yield Kind("one_memory", partial(_one_memory, sample, shift=1))
    if any(leaf is None for leaf in leaves):
        yield Kind("tensors_for_none", partial(_replaced, sample, None))
    yield Kind("none_for_last_tensor", partial(_replaced, sample, tensors[-1]))


def _concerns(rebuild: Rebuild, tensors: list[Tensor]) -> bool:
    """Whether it makes other tensors of these, and can."""
    found = False
    for tensor in tensors:
        try:
            found = found or rebuild(tensor, []) is not tensor
        except (RuntimeError, NotImplementedError):
            return False
    return found


@dataclass(slots=True, frozen=True)
class _Sample:
    """What the arguments of a call are copied from."""

    arguments: tuple[Any, dict[str, Any]]
    is_plain: bool
    """Whether the tensors are copied one by one: each has a memory of its own, and nothing but its elements."""

    @classmethod
    def of(cls, arguments: tuple[Any, dict[str, Any]]) -> _Sample:
        leaves = tree_leaves(arguments)
        tensors = {id(leaf): leaf for leaf in leaves if type(leaf) is Tensor and _is_plain(leaf)}
        memories = {tensor.untyped_storage().data_ptr() for tensor in tensors.values()}
        others = [leaf for leaf in leaves if id(leaf) not in tensors]
        return cls(arguments, len(memories) == len(tensors) and all(type(leaf) in SCALARS for leaf in others))

    def mapped(self, function: Callable[[Any, int], Any]) -> Any:
        """Arguments of what ``function`` makes of a copy of each leaf and of the leaf's identity."""
        if not self.is_plain:
            return map_leaves(lambda leaf: function(leaf, id(leaf)), copy.deepcopy(self.arguments))
        copies: dict[int, Any] = {}

        def made(leaf: Any) -> Any:
            if type(leaf) is not Tensor:
                return function(leaf, id(leaf))
            if id(leaf) not in copies:
                copies[id(leaf)] = leaf.clone()
            return function(copies[id(leaf)], id(leaf))

        return map_leaves(made, self.arguments)


def _is_plain(tensor: Tensor) -> bool:
    return (
        tensor.layout is torch.strided
        and tensor.device.type == "cpu"
        and not (tensor.requires_grad or tensor.is_conj() or tensor.is_neg() or tensor.is_quantized)
        and tensor.is_contiguous()
        and tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size() > 0
        and not tensor.__dict__
    )


def _rebuilt(
    sample: _Sample, rebuild: Rebuild, *, only: int | None = None, mode: Mode = contextlib.nullcontext
) -> Arguments:
    behind: list[Tensor] = []
    done: dict[int, Tensor] = {}

    def made(leaf: Any, identity: int) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        if identity not in done:
            if only is not None and len(done) >= only:
                return leaf
            done[identity] = rebuild(leaf, behind)
        return done[identity]

    positional, keywords = sample.mapped(made)
    return Arguments(positional, keywords, behind, mode)


def _one_memory(sample: Any, *, shift: int) -> Arguments:
    """Tensors of one dtype and size are one tensor, or lie ``shift`` elements from each other in one memory."""
    leaves, structure = tree_flatten(copy.deepcopy(sample))
    behind: list[Tensor] = []
    bases: dict[tuple[Any, ...], tuple[Tensor, Tensor]] = {}
    for index, leaf in enumerate(leaves):
        if not isinstance(leaf, Tensor) or leaf.layout is not torch.strided:
            continue
        key = (leaf.dtype, leaf.shape)
        if key in bases:
            base, first = bases[key]
            leaves[index] = base[shift : shift + leaf.numel()].view(leaf.shape) if shift else first
            continue
        base = torch.cat([leaf.detach().reshape(-1), torch.ones(shift, dtype=leaf.dtype)])
        behind.append(base)
        leaves[index] = base[: leaf.numel()].view(leaf.shape)
        bases[key] = base, leaves[index]
    positional, keywords = tree_unflatten(leaves, structure)
    return Arguments(positional, keywords, behind)


def _replaced(sample: Any, old: Tensor | None) -> Arguments:
    """None in the place of a tensor; or a tensor like the first in the place of each None."""
    leaves, structure = tree_flatten(sample)
    first = next(leaf for leaf in leaves if isinstance(leaf, Tensor))
    new = None if old is not None else first
    leaves = [new if leaf is old else leaf for leaf in leaves]
    positional, keywords = copy.deepcopy(tree_unflatten(leaves, structure))
    return Arguments(positional, keywords)
