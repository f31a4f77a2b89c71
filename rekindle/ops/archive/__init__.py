"""Operators on texts, values and tensors whose semantics in archives differ from the current ones."""
