"""Recorded execution -> program: run Python code once, and keep what it did to tensors as a graph."""
