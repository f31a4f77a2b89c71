"""Canonicalization passes: inlining, one kind for each operator with several names, composite operators split into
parts.

They run first, so that the passes after them have fewer forms to match.
"""
