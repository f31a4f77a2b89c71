"""Code generation: compile a graph, or a part of one, to machine code."""
