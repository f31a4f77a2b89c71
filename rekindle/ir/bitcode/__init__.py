"""Graphs as plain data, which ``marshal`` writes and reads: the binary form beside the text form.

:mod:`~rekindle.ir.bitcode.writer` encodes graphs, :mod:`~rekindle.ir.bitcode.reader` decodes them. A graph refers to
what is more than data: classes, functions, sources, tensors. Those are numbered in a table of
:mod:`~rekindle.ir.bitcode.references` instead of written, and have to be there when the graph is read.
:mod:`~rekindle.ir.bitcode.digest` describes a function with all that it calls, so that equal digests mean equal
programs; its references are those that graphs which were made of the function may refer to.
"""
