"""Parsing: source text, or the source of a Python function, to a :class:`~rekindle.syntax.tree.Tree`."""
