"""Views of graphs under ``torch.jit``'s names: the ``.graph`` of functions compiled through the drop-in."""
