"""Native plans: functions that run without Python between their operators.

A plan is a table of instructions for the handlers of :mod:`rekindle.codegen.plan_runtime`, written from a
:class:`~rekindle.runtime.interpreter.code.Code` instruction by instruction. In the order in which they run:

- ``facts``: which nodes C++ functions run, which lists need not be lists of Python;
- ``registers``: of which kind each register is, and where in the frame it lies;
- ``instruction_table``: instructions, labels and what they keep alive, as words of memory;
- ``words``, ``aten_arguments``: how arguments are passed to C++ functions of ATen;
- ``wrapped_numbers``: numbers as the Tensors that Python's operators pass;
- ``writer``: control flow, moves, calls of Python, results;
- ``operators``, ``aten_calls``: what else an operator becomes: instructions of its own, or a call of a C++ function;
- ``written_plan``: all instructions of a Code;
- ``native_plan``: the function of Python, and how errors and deoptimizations come back;
- ``self_test``, ``availability``: whether this process can have native plans.
"""
