"""Subjects that answer otherwise when they are optimised, with the reason. The list is strict."""

KNOWN_DIFFERENCES: dict[str, str] = {}
