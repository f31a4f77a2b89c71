"""Devices that kernels are not made for."""
