"""Python's builtins, operators and standard library where TorchScript has no operator for them.

Most are written in terms of others, as sources in :mod:`rekindle.frontend.prelude` that ``library``
compiles when they are called.
"""
