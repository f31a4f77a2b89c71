"""Sugared values: compile-time values of names and expressions.

``base`` defines :class:`~rekindle.frontend.sugared_values.base.SugaredValue`, ``values`` the ones that stand for
values of the graph. The other files hold one kind each: classes, interfaces, functions, iterables, special forms
of the language.
"""
