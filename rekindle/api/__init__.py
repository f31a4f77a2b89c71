"""What spans the floors below: the drop-in for ``torch.jit``."""
