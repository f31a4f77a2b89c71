"""Scopes: what each name means where the emitter is.

An :class:`~rekindle.frontend.scopes.environment.Environment` is a stack of
:class:`~rekindle.frontend.scopes.frames.EnvironmentFrame`, one for each block of control flow. Conditions narrow
the types of variables (``refinement``); ``private_names`` finds variables that alone refer to their container.
"""
