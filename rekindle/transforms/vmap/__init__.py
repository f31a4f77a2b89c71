"""Batching: a program for one example becomes a program for a batch of them."""

from rekindle.transforms.vmap.function import BatchedFunction as BatchedFunction, vmap as vmap
from rekindle.transforms.vmap.lowering import BatchingReport as BatchingReport, lower as lower
from rekindle.transforms.vmap.vmap_node import move_out_unbatched as move_out_unbatched, wrap_in_vmap as wrap_in_vmap
