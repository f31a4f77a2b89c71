"""A fuzzer of programs: random Python programs, compiled here and compared with eager Python."""

from rekindle.ir import subgraph_execution

# First calls run what later calls run: backward graphs, and products that were measured beside BLAS.
subgraph_execution.DEFER_FIRST_CALLS = False
