"""Run-time library of native plans: one function for each kind of instruction, compiled once and shared by all plans.

A native plan is a table of instructions (:mod:`rekindle.runtime.native_plans` writes it). This folder has the functions
that run the instructions, in LLVM IR, and the code that enters and leaves a plan:

- ``frame``: the layout of instructions and frames, and the kinds of registers;
- ``macros``: the shorthand in which handlers are written;
- ``ownership_ir``, ``conversion_ir``, ``number_ir``, ``container_ir``, ``call_ir``, ``control_ir``: the handlers by
  subject;
- ``entry_ir``: how Python calls a plan, and how an error or a deoptimization leaves it;
- ``library``: all of it as one module, compiled when the first native plan is created and cached on disk.
"""
