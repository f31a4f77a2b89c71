"""Functions that batching rules and the batcher call."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
# ---- The dimensions of an example, where the tensor has one more in front of them.

def inner(self: Tensor, dim: int) -> int:
    rank = self.dim() - 1
    end = 1 if rank == 0 else rank
    if dim < -end or dim >= end:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-end}, {end - 1}], but got {dim})")
    return dim + 1 if dim >= 0 else dim + end + 1

def inner_all(self: Tensor, dims: List[int]) -> List[int]:
    return [inner(self, dim) for dim in dims]

def every_inner(self: Tensor) -> List[int]:
    return [dim for dim in range(1, self.dim())]

def inner_or_every(self: Tensor, dims: Optional[List[int]]) -> List[int]:
    if dims is None or len(dims) == 0:
        return every_inner(self)
    return inner_all(self, dims)

def inner_sizes(self: Tensor) -> List[int]:
    return torch.slice(torch.size(self), 1)

# An example that is a number has no dimension; what computes along one is given one of size 1.

def lifted(self: Tensor) -> Tensor:
    return torch.unsqueeze(self, 1) if self.dim() == 1 else self

def lowered(result: Tensor, self: Tensor) -> Tensor:
    return torch.squeeze(result, 1) if self.dim() == 1 and result.dim() == 2 else result

def flat(self: Tensor) -> Tensor:
    return torch.flatten(lifted(self), 1)

# ---- Tensors that are broadcast together.

def example_rank(self: Tensor, batched: bool) -> int:
    return self.dim() - 1 if batched else self.dim()

def check_rank(self: Tensor, batched: bool, least: int, most: int, what: str) -> None:
    rank = example_rank(self, batched)
    if rank < least or rank > most:
        raise RuntimeError(f"{what}, got {rank}")

def with_dimensions(self: Tensor, rank: int) -> Tensor:
    sizes = torch.size(self)
    return torch.reshape(self, torch.slice(sizes, 0, 1) + [1] * (rank + 1 - self.dim()) + torch.slice(sizes, 1))

def summed_to(self: Tensor, size: List[int]) -> Tensor:
    if inner_sizes(self) == size:
        return self
    missing = self.dim() - 1 - len(size)
    dims = [1 + i for i in range(missing)] + [1 + missing + i for i in range(len(size)) if size[i] == 1]
    summed = self if len(dims) == 0 else torch.sum(self, dims, True)
    return torch.reshape(summed, [torch.size(self, 0)] + size)

def padded(self: Tensor, batched: bool, rank: int) -> Tensor:
    if not batched or self.dim() > rank:
        return self
    return with_dimensions(self, rank)

def as_promoted(self: Tensor, batched: bool, rank: int, other: Tensor, other_rank: int) -> Tensor:
    # Numbers in tensors without dimensions do not decide the dtype among others; with the batch they have one.
    # Bools decide nothing either way, and a mask has to remain one.
    if batched and rank == 0 and other_rank > 0 and self.dtype != other.dtype and self.dtype != 11:
        number, more = torch.empty([], dtype=self.dtype), torch.empty([1], dtype=other.dtype)
        return torch.to(self, torch.result_type(number, more))
    if not batched and rank == 0 and other_rank == 0 and self.dtype != other.dtype:
        return torch.unsqueeze(self, 0)  # it decides as much as the other one, which has the batch
    return self

def as_promoted_of_three(
    self: Tensor, batched: bool, rank: int, other: Tensor, other_rank: int, third: Tensor, third_rank: int
) -> Tensor:
    if rank > 0 or self.dtype == 11:  # a condition, or what decides nothing
        return self
    x, y = torch.empty([1], dtype=other.dtype), torch.empty([1], dtype=third.dtype)
    if other_rank > 0 and third_rank > 0:
        x = torch.empty([1], dtype=torch.result_type(x, y))
    elif third_rank > 0:
        x = y
    made = self
    if other_rank > 0 or third_rank > 0:
        made = torch.to(self, torch.result_type(torch.empty([], dtype=self.dtype), x))
    return made if batched else torch.unsqueeze(made, 0)

def aligned(self: Tensor, batched_self: bool, other: Tensor, batched_other: bool) -> Tuple[Tensor, Tensor]:
    a, b = example_rank(self, batched_self), example_rank(other, batched_other)
    rank = max(a, b)
    x, y = as_promoted(self, batched_self, a, other, b), as_promoted(other, batched_other, b, self, a)
    return padded(x, batched_self, rank), padded(y, batched_other, rank)

def aligned3(
    self: Tensor, batched_self: bool, other: Tensor, batched_other: bool, third: Tensor, batched_third: bool
) -> Tuple[Tensor, Tensor, Tensor]:
    a, b = example_rank(self, batched_self), example_rank(other, batched_other)
    c = example_rank(third, batched_third)
    rank = max(a, max(b, c))
    x = as_promoted_of_three(self, batched_self, a, other, b, third, c)
    y = as_promoted_of_three(other, batched_other, b, self, a, third, c)
    z = as_promoted_of_three(third, batched_third, c, self, a, other, b)
    return padded(x, batched_self, rank), padded(y, batched_other, rank), padded(z, batched_third, rank)

# ---- The batch itself.

def same_for_all(self: Tensor, batch_size: int) -> Tensor:
    return torch.expand(torch.unsqueeze(self, 0), [batch_size] + torch.size(self))

def same_list_for_all(values: List[Tensor], batch_size: int) -> List[Tensor]:
    return [same_for_all(value, batch_size) for value in values]

def same_optional_for_all(self: Optional[Tensor], batch_size: int) -> Optional[Tensor]:
    return None if self is None else same_for_all(self, batch_size)

def same_optional_list_for_all(values: List[Optional[Tensor]], batch_size: int) -> List[Optional[Tensor]]:
    return [same_optional_for_all(value, batch_size) for value in values]

def own_for_each(self: Tensor, batch_size: int) -> Tensor:
    return torch.clone(same_for_all(self, batch_size), memory_format=0)

def own_list_for_each(values: List[Tensor], batch_size: int) -> List[Tensor]:
    return [own_for_each(value, batch_size) for value in values]

def same_dict_for_all(values: Dict[str, Tensor], batch_size: int) -> Dict[str, Tensor]:
    return {key: same_for_all(value, batch_size) for key, value in values.items()}

def own_dict_for_each(values: Dict[str, Tensor], batch_size: int) -> Dict[str, Tensor]:
    return {key: own_for_each(value, batch_size) for key, value in values.items()}

def example(batch: Tensor, index: int) -> Tensor:
    return torch.select(batch, 0, index)

def example_of_list(batch: List[Tensor], index: int) -> List[Tensor]:
    return [torch.select(each, 0, index) for each in batch]

def example_of_optional(batch: Optional[Tensor], index: int) -> Optional[Tensor]:
    return None if batch is None else torch.select(batch, 0, index)

def example_of_optional_list(batch: List[Optional[Tensor]], index: int) -> List[Optional[Tensor]]:
    return [example_of_optional(each, index) for each in batch]

def example_of_dict(batch: Dict[str, Tensor], index: int) -> Dict[str, Tensor]:
    return {key: torch.select(value, 0, index) for key, value in batch.items()}

def example_of_ints(batch: Tensor, index: int) -> int:
    return int(torch.select(batch, 0, index))

def example_of_floats(batch: Tensor, index: int) -> float:
    return float(torch.select(batch, 0, index))

def example_of_bools(batch: Tensor, index: int) -> bool:
    return bool(torch.select(batch, 0, index))

def stacked(examples: List[Tensor]) -> Tensor:
    return torch.stack(examples, 0)

def stacked_lists(examples: List[List[Tensor]]) -> List[Tensor]:
    return [torch.stack([each[index] for each in examples], 0) for index in range(len(examples[0]))]

def stacked_dicts(examples: List[Dict[str, Tensor]]) -> Dict[str, Tensor]:
    return {key: torch.stack([each[key] for each in examples], 0) for key in examples[0].keys()}

def stacked_optionals(examples: List[Optional[Tensor]]) -> Optional[Tensor]:
    found: List[Tensor] = []
    for each in examples:
        if each is not None:
            found.append(each)
    if len(found) == 0:
        return None
    if len(found) < len(examples):
        raise RuntimeError("vmap: a gradient exists for some examples alone")
    return torch.stack(found, 0)

def stacked_gradients(examples: List[List[List[Optional[Tensor]]]]) -> List[List[Optional[Tensor]]]:
    made: List[List[Optional[Tensor]]] = []
    for i in range(len(examples[0])):
        inner: List[Optional[Tensor]] = []
        for j in range(len(examples[0][i])):
            inner.append(stacked_optionals([each[i][j] for each in examples]))
        made.append(inner)
    return made

def in_place_if_any(self: Optional[Tensor], indices: Tensor, batch_size: int) -> Optional[Tensor]:
    if self is None:
        return None
    zeros = torch.zeros([batch_size] + inner_sizes(self), dtype=self.dtype, device=self.device)
    return torch.index_copy(zeros, 0, indices, self)

def stacked_ints(examples: List[int]) -> Tensor:
    return torch.tensor(examples, dtype=4)

def stacked_floats(examples: List[float]) -> Tensor:
    return torch.tensor(examples, dtype=7)

def stacked_bools(examples: List[bool]) -> Tensor:
    return torch.tensor(examples, dtype=11)

def chosen(batch: Tensor, indices: Tensor) -> Tensor:
    return torch.index_select(batch, 0, indices)

def chosen_list(batch: List[Tensor], indices: Tensor) -> List[Tensor]:
    return [torch.index_select(each, 0, indices) for each in batch]

def chosen_optional(batch: Optional[Tensor], indices: Tensor) -> Optional[Tensor]:
    return None if batch is None else torch.index_select(batch, 0, indices)

def chosen_dict(batch: Dict[str, Tensor], indices: Tensor) -> Dict[str, Tensor]:
    return {key: torch.index_select(value, 0, indices) for key, value in batch.items()}

def where_true(condition: Tensor) -> Tensor:
    return torch.select(torch.nonzero(condition), 1, 0)

def back_in_place(first: Tensor, of_first: Tensor, second: Tensor, of_second: Tensor) -> Tensor:
    return torch.index_select(torch.cat([of_first, of_second]), 0, torch.argsort(torch.cat([first, second])))

def size_of_batch(self: Tensor, dim: int) -> int:
    return torch.size(self, dim)

def size_of_batches(values: List[Tensor], dim: int) -> int:
    return torch.size(values[0], dim)

def check_size(self: Tensor, dim: int, batch_size: int) -> None:
    size = torch.size(self, dim)
    if size != batch_size:
        raise ValueError(f"vmap: the batches differ in size: {batch_size} and {size}")

def check_sizes(values: List[Tensor], dim: int, batch_size: int) -> None:
    for value in values:
        check_size(value, dim, batch_size)

def check_optional_size(value: Optional[Tensor], dim: int, batch_size: int) -> None:
    if value is not None:
        check_size(value, dim, batch_size)

def size_of_entries(values: Dict[str, Tensor], dim: int) -> int:
    size = -1
    for value in values.values():
        size = torch.size(value, dim)
    if size < 0:
        raise ValueError("vmap: the batch size is unknown: the dict has no entries")
    return size

def size_of_optional(self: Optional[Tensor], dim: int) -> int:
    if self is None:
        raise ValueError("vmap: the batch size is unknown: no tensor is batched")
    return torch.size(self, dim)

def check_sizes_of_entries(values: Dict[str, Tensor], dim: int, batch_size: int) -> None:
    for value in values.values():
        check_size(value, dim, batch_size)

def check_entries(values: Dict[str, Tensor], number: int) -> None:
    if len(values) != number:
        raise ValueError(f"vmap: a dict has {len(values)} entries, and in_dims names {number}")

def batch_in_front(self: Tensor, dim: int) -> Tensor:
    return torch.movedim(self, dim, 0)

def optional_batch_in_front(self: Optional[Tensor], dim: int) -> Optional[Tensor]:
    return None if self is None else torch.movedim(self, dim, 0)

def batches_in_front(values: List[Tensor], dim: int) -> List[Tensor]:
    return [torch.movedim(value, dim, 0) for value in values]

def entries_in_front(values: Dict[str, Tensor], dim: int) -> Dict[str, Tensor]:
    return {key: torch.movedim(value, dim, 0) for key, value in values.items()}

def batch_moved_to(self: Tensor, dim: int) -> Tensor:
    return torch.movedim(self, 0, dim)

def batches_moved_to(values: List[Tensor], dim: int) -> List[Tensor]:
    return [torch.movedim(value, 0, dim) for value in values]

def entries_moved_to(values: Dict[str, Tensor], dim: int) -> Dict[str, Tensor]:
    return {key: torch.movedim(value, 0, dim) for key, value in values.items()}
"""
