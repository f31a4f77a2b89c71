"""Readers of torch.fx graphs: operators, control flow, symbolic scalars, the hierarchy of modules."""
