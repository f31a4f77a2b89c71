"""Emit expressions: one file for each kind.

``primaries`` has names, attributes and what the others share. :mod:`rekindle.frontend.language` lists which
function emits which expression.
"""
