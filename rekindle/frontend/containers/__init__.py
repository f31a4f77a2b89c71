"""Containers of Python that the IR has no type of its own for: sets, ``Counter``, ``defaultdict``, tuples of any
length, and lists and dicts of numbers whose type is known only at run time.
"""
