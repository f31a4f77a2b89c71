"""Functionalization: replace writes to tensors and lists with new values before a program is differentiated.

``programs`` rewrites graphs; ``operators`` has the functional variants of single operators and the inverses of
views.
"""
