"""The machine code that runs native plans: one function an instruction, made once and shared by all plans.

A native plan is a table of instructions (:mod:`rekindle.runtime.native_plans` writes it); here are the functions that
run them, in LLVM IR, and the code that enters and leaves a plan:

- ``frame``: what instructions and frames look like, and the kinds of registers;
- ``macros``: the shorthand in which handlers are written;
- ``ownership_ir``, ``conversion_ir``, ``number_ir``, ``container_ir``, ``call_ir``, ``control_ir``: the handlers by
  subject;
- ``entry_ir``: how Python calls a plan, and how an error or a deoptimization leaves it;
- ``library``: all of it as one module, compiled when the first native plan is made and kept on disk.
"""
