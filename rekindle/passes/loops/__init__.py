"""Passes on loops: invariant code motion, peeling, unrolling, scalar replacement, and others."""
