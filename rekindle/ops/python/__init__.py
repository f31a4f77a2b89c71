"""Operators on Python's values: numbers, strings, lists, dicts, tuples, objects, exceptions, futures."""
