"""Passes of the profiling strategy: profiling nodes, guards of the recorded types, and bailouts where a guard fails.

``insert_profiling`` runs before the profiled call; ``insert_guards``, ``eliminate_guards`` and ``insert_bailouts``
after it, in that order. ``bailout_graphs`` builds the rest of the program after a failed guard.
"""
