"""The drop-in for torch.jit: its names, installed in place of PyTorch's."""
