"""The tests of codegen/native/."""
