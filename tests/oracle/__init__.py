"""Programs that torch.jit.script compiles: our graphs beside its graphs, and the answers of both beside eager's."""
