"""What is recorded while traced code runs: calls of operators, subscripts, numbers, modes, compiled functions."""
