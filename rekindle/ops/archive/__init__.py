"""Operators of the texts, values and tensors in archives that mean something else than today's."""
