"""Python functions as programs call them: compiled ones, those without declared types, decorated ones, and those that
stay in Python.
"""
