"""A folder for ``PYTHONPATH``, with which ``rekindle doctor --run`` records what a command compiles."""
