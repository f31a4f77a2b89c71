"""Compiled modules: the module that users hold, its frozen form, and how it is frozen."""
