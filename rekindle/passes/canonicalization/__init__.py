"""Passes that give equal programs one form: inlining, one name for each operator, operators that do several things
split.

They run first, so that the passes after them have fewer forms to match.
"""
