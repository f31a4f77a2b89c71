"""A fuzzer of programs: random Python programs, compiled here and held against eager Python."""

from rekindle.autodiff import differentiable_graph

# Gradients of first calls are those of backward graphs, as the gradients of later calls.
differentiable_graph.DEFERRED_RUNS = 0
