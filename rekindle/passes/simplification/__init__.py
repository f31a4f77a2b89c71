"""Passes that compute less: constant folding, common subexpressions, dead code, peephole rules, removal of mutation."""
