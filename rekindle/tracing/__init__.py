"""Tracing: run Python code once, and record its tensor operations as a graph."""
