"""Lookup and properties of operators: declarations in addition to PyTorch's dispatcher, aliasing, traits."""
