"""Emission of kernels as LLVM IR, for vectors of the machine's width."""
