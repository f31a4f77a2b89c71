"""What a user holds: compilation units, functions, methods and modules, which wrap the records of
:mod:`rekindle.ir`."""
