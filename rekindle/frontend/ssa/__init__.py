"""SSA conversion of an emitted function, which still loads and stores variables and jumps.

``assignedness`` decides which loads need a check that the variable has a value, ``conversion`` replaces loads and
stores with values, ``exits`` replaces ``return``, ``break`` and ``continue`` with outputs of blocks, and
``closures`` makes graphs of local functions.
"""
