"""The interpreter: graphs are lowered to instructions, which run on registers and may suspend.

``lowering`` makes the :class:`~rekindle.runtime.interpreter.code.Code` of a graph, ``basic_blocks`` binds its
instructions, ``state`` runs them. ``tasks`` and ``futures`` run what ``fork`` starts.
"""
