"""Export to Export IR, PyTorch's serialization of programs: see :mod:`rekindle.exporting.program`."""
