"""Canonicalization passes, which leave fewer forms for other passes to match: inlining, one kind for each operator with
several names, composite operators split into parts.
"""
