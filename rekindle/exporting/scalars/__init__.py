"""Numbers that only the exported program knows: their arithmetic, and tensors that stand for them."""
