"""Tensors indexed by Tensors, of which Python takes one without dimensions for the int or the bool that it holds."""

from typing import List, Optional, Tuple

from torch import Tensor

from rekindle.frontend.prelude.primitives import indexed, put_indexed


def is_mask(index: Tensor) -> bool:
    return index.dtype == 11 or index.dtype == 0


def is_number_index(index: Tensor) -> bool:
    return index.dim() == 0 and not index.is_floating_point() and not index.is_complex()


def item_at(x: Tensor, index: Tensor, indices: List[Optional[Tensor]], has_numbers: bool) -> Tensor:
    if not has_numbers or not is_number_index(index):
        return indexed(x, indices)
    if is_mask(index):
        mask: List[Optional[Tensor]] = [index.unsqueeze(0)]
        return indexed(x.unsqueeze(0), mask)
    return x.select(0, int(index))


def item_copy_at(x: Tensor, index: Tensor, indices: List[Optional[Tensor]], has_numbers: bool) -> Tensor:
    if has_numbers:
        return item_at(x, index, indices, has_numbers).clone()
    return indexed(x, indices)


def put_item_at(x: Tensor, index: Tensor, indices: List[Optional[Tensor]], has_numbers: bool, value: Tensor) -> None:
    if not has_numbers or not is_number_index(index):
        put_indexed(x, indices, value)
    elif is_mask(index):
        mask: List[Optional[Tensor]] = [index.unsqueeze(0)]
        put_indexed(x.unsqueeze(0), mask, value)
    else:
        x.select(0, int(index)).copy_(value)


def positive_step(step: int) -> int:
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step < 0:
        raise ValueError("step must be greater than zero")
    return step


def item_at_each(x: Tensor, indices: List[int]) -> Tensor:
    if len(indices) > x.dim():
        raise IndexError(f"too many indices for tensor of dimension {x.dim()}")
    view = x[...]
    for dim, index in enumerate(indices):
        size = view.size(0)
        if index < -size or index >= size:
            raise IndexError(f"index {index} is out of bounds for dimension {dim} with size {size}")
        view = view.select(0, index)
    return view


def select_numbers(x: Tensor, indices: List[Optional[Tensor]]) -> Tuple[Tensor, List[Optional[Tensor]], bool]:
    view = x
    left: List[Optional[Tensor]] = []
    is_left = False
    for index in indices:
        if index is not None and is_number_index(index):
            if is_mask(index):
                raise IndexError("a bool Tensor without dimensions indexes only by itself here: x[index]")
            view = view.select(len(left), int(index))
        else:
            is_left = is_left or index is not None
            left.append(index)
    return view, left, is_left


def item_of_indices(x: Tensor, indices: List[Optional[Tensor]], has_numbers: bool) -> Tensor:
    if not has_numbers:
        return indexed(x, indices)
    view, left, is_left = select_numbers(x, indices)
    return indexed(view, left) if is_left else view


def item_copy_of_indices(x: Tensor, indices: List[Optional[Tensor]], has_numbers: bool) -> Tensor:
    if has_numbers:
        return item_of_indices(x, indices, has_numbers).clone()
    return indexed(x, indices)


def put_item_of_indices(x: Tensor, indices: List[Optional[Tensor]], has_numbers: bool, value: Tensor) -> None:
    if not has_numbers:
        put_indexed(x, indices, value)
    else:
        view, left, is_left = select_numbers(x, indices)
        if is_left:
            put_indexed(view, left, value)
        else:
            view.copy_(value)


def indices_around_dots(
    x: Tensor, before: List[Optional[Tensor]], after: List[Optional[Tensor]]
) -> List[Optional[Tensor]]:
    indices = before.copy()
    while len(indices) < x.dim() - len(after):
        indices.append(None)
    return indices + after
