"""Programs of the corpus that do not do yet what the tests ask for, each with the reason.

The lists are strict: a test fails when a listed program does what is asked for, and when another does not.
"""

from __future__ import annotations

_AUGMENTED = "torch.jit does not do what Python does with this augmented assignment of a Tensor; ours does"
_STAR = "a starred target is a list in Python; torch.jit makes a tuple of it"
_NUMBERS = "a Tensor without dimensions indexes as the number that it holds, as in Python"

KNOWN_DIFFERENCES: dict[str, str] = {
    "arithmetic.tensor_with_numbers": "a number minus a Tensor is aten::rsub, as in eager",
    "assignment.augmented_tensor_bits": f"{_AUGMENTED}: it makes a new tensor for |= and &=",
    "assignment.augmented_tensor_power": f"{_AUGMENTED}: it makes a new tensor for **=",
    "assignment.augmented_tensor_remainder": f"{_AUGMENTED}: it takes C's fmod for %=",
    "indexing.augmented_at_tensor": _NUMBERS,
    "indexing.mask_argument": _NUMBERS,
    "indexing.with_mask": _NUMBERS,
    "indexing.with_tensor": _NUMBERS,
    "indexing.write_at_tensor": _NUMBERS,
    "indexing.write_mask": _NUMBERS,
    "loops.range_three": "range raises for a step of 0 where it is made, as in Python",
    "tensors.item": "the number that item gives is checked to be real where a float is declared",
    "tuples.star_middle": _STAR,
    "tuples.star_unpack": _STAR,
}
"""Programs whose graph is not that of torch.jit."""

WRONG_ANSWERS: dict[str, str] = {
    "calls.rounding": "round of a float gives a float in TorchScript, an int in Python",
}
"""Programs that do not compile, or do not answer as eager does."""
