"""Python containers for which the IR has no type: sets, ``Counter``, ``defaultdict``, tuples of variable length, and
lists and dicts of numbers whose type is known only at run time."""
