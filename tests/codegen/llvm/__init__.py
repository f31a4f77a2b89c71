"""The tests of codegen/llvm/."""
