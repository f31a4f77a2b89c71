"""The tests of codegen/aten/."""
