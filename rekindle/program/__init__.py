"""User-visible objects: compilation units, functions, methods and modules, which wrap the records of
:mod:`rekindle.ir`."""
