"""Sweeps over PyTorch's own databases of operators and modules: does what torch.jit.script compiles compile here, and
answer as eager does?"""

from rekindle.autodiff import differentiable_graph

# Gradients of first calls are those of backward graphs, as the gradients of later calls.
differentiable_graph.DEFERRED_RUNS = 0
