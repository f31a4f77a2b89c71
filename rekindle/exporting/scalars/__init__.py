"""Data-dependent numbers of exported programs: their arithmetic, and their representation as tensors."""
