"""Other releases of PyTorch and Python: the matrix of tests, and what a new release of PyTorch touches."""
