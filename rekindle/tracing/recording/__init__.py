"""Recording of traced code: calls of operators, subscripts, numbers, modes, compiled functions."""
