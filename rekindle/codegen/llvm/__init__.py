"""LLVM as a library: text in LLVM's language becomes code in this process.

Nothing here knows of graphs. LLVM itself is loaded when the first text is compiled.
"""
