"""Programs leave for Export IR, PyTorch's own way of keeping programs: see :mod:`rekindle.exporting.program`."""
