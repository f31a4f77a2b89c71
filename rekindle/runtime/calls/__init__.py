"""Calls from Python: arguments checked and converted, results converted back, tracebacks in terms of the user's
lines.
"""
