"""Text or a Python function -> :class:`~rekindle.syntax.tree.Tree`."""
