"""Plans: a whole function as one Python function, for graphs that never suspend.

``expression_folding`` finds instructions that need no line of their own, ``python_code`` writes the lines,
``plan`` compiles them. ``hot_loops`` compiles loops of functions that the interpreter runs.
"""
