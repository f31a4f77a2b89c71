"""Graphs under ``torch.jit``'s names: what ``.graph`` of a function gives that was compiled through the drop-in."""
