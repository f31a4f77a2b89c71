"""Operators on tensors that PyTorch's dispatcher does not have, and those that passes insert."""
