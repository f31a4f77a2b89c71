"""Native plans: functions that run without Python between their operators.

A plan is a table of instructions for the handlers of :mod:`rekindle.codegen.plan_runtime`, written from a
:class:`~rekindle.runtime.interpreter.code.Code` instruction by instruction. In the order in which they run:

- ``registers``: which kind each register is of, and where in the frame;
- ``instruction_table``: instructions, labels and what they keep alive, as words of memory;
- ``words``, ``aten_arguments``: how arguments are passed to C++ functions of ATen;
- ``operators``: what is not called: arithmetic, lists, attributes, sizes;
- ``writer``: the instructions of a Code;
- ``native_plan``: the function of Python, and how errors and deoptimisations come back.
"""
