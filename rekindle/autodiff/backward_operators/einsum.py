"""Backward of ``einsum``: for each operand, an ``einsum`` of the gradient and the other operands."""

from __future__ import annotations

import string
from collections.abc import Sequence

import torch
from torch import Tensor

from rekindle.ops.registration.declare import implements


@implements("autodiff::einsum_back(Tensor grad, str equation, Tensor[] tensors) -> Tensor[]")
def einsum_back(grad: Tensor, equation: str, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the gradients of ``tensors``, the operands of ``torch.einsum``."""
    operands, output = _written_out(equation, tensors)
    lengths: dict[str, int] = {}
    for letters, tensor in zip(operands, tensors, strict=True):
        for letter, length in zip(letters, tensor.shape, strict=True):
            lengths[letter] = length if lengths.get(letter, 1) == 1 else lengths[letter]
    return [_of_operand(grad, output, operands, tensors, index, lengths) for index in range(len(tensors))]


def _written_out(equation: str, tensors: Sequence[Tensor]) -> tuple[list[str], str]:
    """Return the subscripts of each operand and of the result of ``einsum``, with letters for ``...`` and for an
    omitted result."""
    left, arrow, output = equation.replace(" ", "").partition("->")
    operands = left.split(",")
    spare = [letter for letter in string.ascii_letters if letter not in equation]
    named = [len(letters.replace("...", "")) for letters in operands]
    hidden = max(
        [
            tensor.dim() - count
            for tensor, count, letters in zip(tensors, named, operands, strict=True)
            if "..." in letters
        ],
        default=0,
    )
    dots = "".join(spare[:hidden])
    if not arrow:
        plain = left.replace("...", "").replace(",", "")
        output = "..." + "".join(sorted(letter for letter in set(plain) if plain.count(letter) == 1))
    return (
        [
            letters.replace("...", dots[hidden - (tensor.dim() - count) :] if tensor.dim() > count else "")
            for letters, tensor, count in zip(operands, tensors, named, strict=True)
        ],
        output.replace("...", dots),
    )


def _of_operand(
    grad: Tensor,
    output: str,
    operands: Sequence[str],
    tensors: Sequence[Tensor],
    index: int,
    lengths: dict[str, int],
) -> Tensor:
    """Return the gradient of one operand: summed over broadcast dimensions, and written to the diagonal for repeated
    indices."""
    own, tensor = operands[index], tensors[index]
    letters = "".join(dict.fromkeys(own))
    others = [(each, tensors[place]) for place, each in enumerate(operands) if place != index]
    there = {*output, *(letter for each, _ in others for letter in each)}
    kept = "".join(letter for letter in letters if letter in there)
    text = ",".join([output, *[each for each, _ in others]]) + "->" + kept
    found = torch.einsum(text, grad, *[other for _, other in others])
    sizes = [lengths[letter] for letter in letters]
    found = found.reshape([lengths[letter] if letter in there else 1 for letter in letters]).expand(sizes)
    for place, letter in enumerate(own):
        if letter in own[:place]:
            continue
        if own.count(letter) == 1 and tensor.shape[place] == 1 and lengths[letter] != 1:
            found = found.sum(letters.index(letter), keepdim=True)
    if letters == own:
        return found
    result = tensor.new_zeros(tensor.shape)
    strides = result.stride()
    steps = [sum(stride for stride, each in zip(strides, own, strict=True) if each == letter) for letter in letters]
    return torch.as_strided_scatter(result, found, found.shape, steps)
