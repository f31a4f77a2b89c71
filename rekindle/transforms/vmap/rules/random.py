"""Batching rules of random numbers: drawn once for all examples, or for each. ``same`` selects between them."""

from __future__ import annotations

from typing import Final

TEXT: Final = """
batch dropout(input, p, train):
    if same and train:
        return input * torch.dropout(torch.ones_like(torch.select(input, 0, 0)), p, train)
    return torch.dropout(input, p, train)

batch rand_like, randn_like(self, dtype, layout, device, pin_memory, memory_format):
    if same:
        like = torch.select(self, 0, 0)
        made = torch.SAME(like, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
        return same_for_all(made, batch_size)
    return torch.SAME(self, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)

batch rand, randn(size, dtype, layout, device, pin_memory):
    return torch.SAME([batch_size] + size, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)

batch bernoulli(self, generator):
    if same:
        chance = torch.rand_like(torch.select(self, 0, 0))
        return torch.to(chance < self, self.dtype)
    return torch.bernoulli(self, generator=generator)
"""
