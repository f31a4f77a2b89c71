"""Emit statements.

``simple_statements`` emits blocks and the statements without a file of their own, and recovers from errors
(``error_recovery``). Its table ``_STATEMENTS`` lists which function emits which statement.
"""
