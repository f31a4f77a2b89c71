"""Functions of Python's library, written as programs: each is compiled for the arguments of its calls.

The files are real Python, linted and formatted, but never imported: :mod:`rekindle.frontend.python.library` reads them
as text. Names that no file defines are those of ``primitives``.
"""
