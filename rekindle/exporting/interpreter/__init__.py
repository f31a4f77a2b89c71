"""The interpreter that runs a program on fake tensors: statements, branches, loops, calls and the abstract state."""
