"""Features that span several layers: the drop-in for ``torch.jit``, reports, stages, bisection."""
