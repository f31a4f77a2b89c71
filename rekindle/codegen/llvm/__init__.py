"""LLVM as a library: compile LLVM IR to machine code in this process.

Nothing here depends on graphs. LLVM itself is loaded when the first module is compiled.
"""
