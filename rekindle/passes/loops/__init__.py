"""Passes on loops: invariant code motion, peeling, unrolling, and splitting a loop's condition from its trip count."""
