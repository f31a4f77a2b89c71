"""Operators that formulas call as ``own.NAME``: those that are awkward to write in TorchScript, or would take many
nodes.

They are made of PyTorch's differentiable operators, so that gradients of gradients go back through them. There is a
module for each family.
"""

from rekindle.autodiff.backward_operators import (
    activations as activations,
    attention as attention,
    einsum as einsum,
    indexing as indexing,
    layers as layers,
    linear_algebra as linear_algebra,
    losses as losses,
    matmul as matmul,
    reductions as reductions,
    scatter_reduce as scatter_reduce,
    shapes as shapes,
    sizes as sizes,
)
