"""Convolutions and matrix products with constant weights, by generated kernels."""
