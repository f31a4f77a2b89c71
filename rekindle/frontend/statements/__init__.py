"""Emit statements.

``simple_statements`` emits blocks, and the statements that have no module of their own, and continues after errors
(``error_recovery``). Its table ``_STATEMENTS`` maps kinds of statements to the functions that emit them.
"""
