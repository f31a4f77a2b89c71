"""``.pt`` in and out: the container, the pickles, the tensors, and what programs make of them. Nothing in an archive is
executed to load it."""
