"""Strategies: which versions of a function are made, and which one a call runs.

``simple_strategy`` makes one for each kind of arguments (``argument_spec``), ``native_strategy`` fuses the
operators of each, ``profiling_strategy`` specializes to what it saw (``profiling``) and bails out (``bailouts``).
"""
