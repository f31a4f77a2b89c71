"""Emit statements.

``simple_statements`` emits blocks and the statements without a file of their own, and recovers from errors
(``error_recovery``). :mod:`rekindle.frontend.language` lists which function emits which statement.
"""
