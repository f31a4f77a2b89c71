"""Importers of torch.fx graphs: operators, control flow, symbolic scalars, and the hierarchy of modules."""
