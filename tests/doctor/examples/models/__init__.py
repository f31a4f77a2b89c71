"""A package that uses torch.jit in every form."""
