"""Kernels as text in LLVM's language, for vectors of the width that a machine has."""
