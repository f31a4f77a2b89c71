"""From what PyTorch captured of a program to one of ours: graphs of ``torch.fx``, ``torch.compile``."""
