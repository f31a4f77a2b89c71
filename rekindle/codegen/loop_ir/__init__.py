"""Loop IR: the form of a kernel between the graph and machine code.

A kernel is a list of loop nests. Sizes and strides are symbols: one kernel serves all tensors of a rank and of a kind
of layout. The text of a kernel (:mod:`rekindle.codegen.loop_ir.printer`) identifies it.
"""
