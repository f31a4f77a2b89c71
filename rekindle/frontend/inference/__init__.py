"""Type inference: types that the first assignment of a variable does not determine.

``type_inference`` collects evidence and restarts the emission of a function with it; ``usage_inference`` takes evidence
from uses. ``none_check_insertion`` inserts checks where a value may be None, ``error_diagnosis`` explains type errors.
"""
