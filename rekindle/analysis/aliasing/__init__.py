"""Alias analysis: which values may share memory, what writes to them, and which nodes may change places."""
