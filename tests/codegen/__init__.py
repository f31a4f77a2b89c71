"""The tests of codegen/."""
