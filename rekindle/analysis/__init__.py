"""Facts about a graph: aliasing, liveness, types and shapes."""
