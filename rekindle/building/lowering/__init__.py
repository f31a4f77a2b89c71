"""Translate graphs to LLVM IR that needs no Python.

``representation`` says how values of each type are held, ``constants`` writes those that the program holds, ``writer``
translates control flow and keeps references, and the other files hold the operators by subject.
"""
