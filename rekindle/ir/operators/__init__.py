"""Schemas of operators, the registry that finds them, and the matching of arguments to schemas."""
