"""Lowering of graphs to LLVM IR that needs no Python.

``representation`` defines how values of each type are represented, ``constants`` emits constants, ``writer`` lowers
control flow and counts references, and the other files lower the operators by subject.
"""
