"""Convert an emitted function, which still has loads and stores of variables and jumps, to SSA.

``assignedness`` decides which reads need a check that the variable has a value, ``conversion`` replaces loads and
stores with values, ``exits`` replaces ``return``, ``break`` and ``continue`` with outputs of blocks, and ``closures``
makes graphs of local functions.
"""
