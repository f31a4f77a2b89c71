"""The loop form: what a kernel computes, between the graph and machine code.

A kernel is a list of nests of loops. Sizes and strides are symbols: one kernel serves all tensors of a rank and of a
kind of layout. Its text (:mod:`rekindle.codegen.loop_ir.printer`) identifies a kernel.
"""
