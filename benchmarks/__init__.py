"""Side-by-side measurements: here, in torch.jit, in eager Python."""
