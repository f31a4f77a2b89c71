"""Scopes: the bindings of names at the emitter's position.

An :class:`~rekindle.frontend.scopes.environment.Environment` is a stack of
:class:`~rekindle.frontend.scopes.frames.EnvironmentFrame`, one for each block of control flow. Conditions narrow the
types of variables (``refinement``); ``private_names`` finds variables that have the only reference to their container.
"""
