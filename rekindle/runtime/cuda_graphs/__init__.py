"""CUDA graphs: capture the GPU work of a call once, and replay it in later calls of the same kind.

A replay launches all kernels of a call at once, so that small tensors no longer wait for the host. It is off by default
(:func:`set_cuda_graphs`). A version of a function owns its captures, one for each kind of call: sizes, strides, dtypes,
numbers, stream and modes. A capture holds tensors of its own for the inputs, into which a call copies its arguments,
and for the results, of which a call returns copies (:mod:`~rekindle.runtime.cuda_graphs.memory`). Its kernels read
parameters and buffers where they are in memory, so that the call tests whether they are still there.

Calls that record no gradients are captured as a whole. Where gradients are recorded, the forward and backward graphs of
differentiable graphs are captured, each for itself (:func:`rekindle.ir.subgraph_execution.replayed`).

What a replay would not repeat keeps the function from being captured: see
:func:`~rekindle.runtime.cuda_graphs.capturable.refusal_of`.
"""
