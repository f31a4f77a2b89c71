"""Graphs as plain data, which ``marshal`` writes and reads: the binary form beside the text form.

:mod:`~rekindle.ir.bitcode.writer` encodes graphs, :mod:`~rekindle.ir.bitcode.reader` decodes them. A graph refers to
objects that are more than data: classes, functions, sources, tensors. They are not written. Each gets a number in a
table of :mod:`~rekindle.ir.bitcode.references`; the reader must be passed a table with the same objects.

:mod:`~rekindle.ir.bitcode.digest` describes a function with all that it calls, so that equal digests mean equal
programs. Its table of references holds the objects to which graphs derived from the function may refer.
"""
