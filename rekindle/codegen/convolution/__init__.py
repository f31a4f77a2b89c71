"""Convolutions and products with constant weights, by kernels of our own."""
