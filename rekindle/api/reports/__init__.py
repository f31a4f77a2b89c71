"""What became of a program: the report, measurements, and the operators that run outside of kernels."""
