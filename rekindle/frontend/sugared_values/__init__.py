"""Sugared values: compile-time values of names and expressions.

``base`` defines :class:`~rekindle.frontend.sugared_values.base.SugaredValue`, and ``values`` the kinds that refer to
values of the graph. Each other module has the kinds for one subject: classes, interfaces, functions, iterables, special
forms of the language.
"""
