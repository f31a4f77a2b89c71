"""Sweeps over PyTorch's own databases of operators and modules: does what torch.jit.script compiles compile here, and
answer as eager does?"""

from rekindle.ir import subgraph_execution

# First calls run what later calls run: backward graphs, and products that were measured beside BLAS.
subgraph_execution.DEFER_FIRST_CALLS = False
