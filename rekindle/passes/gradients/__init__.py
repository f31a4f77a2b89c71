"""Passes on backward graphs: computations that depend on whether a gradient is defined."""
