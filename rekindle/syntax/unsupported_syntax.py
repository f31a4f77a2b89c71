"""Python constructs that programs cannot have: one sentence and one alternative for each.

Both parsers reject a construct with the same message. Some are rejected by the parser of text alone: ``match``, for
example, which is rewritten in Python's own AST (:mod:`rekindle.syntax.python_patterns`).
"""

from __future__ import annotations

from rekindle.errors import SourceRange, UnsupportedError

REFUSALS: dict[str, tuple[str, str | None]] = {
    # expressions
    "await": ("'await' is not supported.", "Use fork and wait to run work at the same time."),
    "yield": ("Generators ('yield') are not supported.", "Append to a list and return it."),
    "bytes": ("Byte strings are not supported.", "Use a str, or a list of int."),
    "template": ("Template strings are not supported.", "Use an f-string."),
    "nested_format": ("Format specifications within format specifications are not supported.", "Format in two steps."),
    "async_comprehension": ("Asynchronous comprehensions are not supported.", None),
    # statements
    "try_star": ("Groups of exceptions ('except*') are not supported.", "Catch one exception with 'except'."),
    "nested_decorator": (
        "Decorators of functions within functions are not supported.",
        "Move this function out, to the level of its module.",
    ),
    "nested_class": ("Classes within functions are not supported.", "Move this class out, to the level of its module."),
    "class_of_variables": (
        "A class within a function that reads the function's variables is not supported.",
        "Give its objects what they need as arguments of __init__.",
    ),
    "class_in_class": ("Classes within classes are not supported.", "Move this class out, to the level of its module."),
    "async_def": ("Asynchronous functions are not supported.", "Use fork and wait to run work at the same time."),
    "async_for": ("Asynchronous for loops are not supported.", "Use fork and wait to run work at the same time."),
    "async_with": ("Asynchronous with statements are not supported.", None),
    "match": ("match statements are not supported.", "Use if and elif."),
    "type_alias": ("type statements are not supported.", "Assign the type to a name outside of the function."),
    "global": ("'global' is not supported.", "Return the new value, or keep it in an attribute of a module."),
    "import": ("Imports within classes are not supported.", "Import at the top of the file."),
    "import_star": ("'from … import *' is not supported here.", "Import the names that are used."),
    "match_guard": (
        "A guard that assigns a name of its pattern is not supported.",
        "Give the new value another name.",
    ),
    "match_pattern": ("This pattern is not supported.", "Use if and elif."),
    "from_import": ("'from … import' is not supported in program text.", "Use 'import' with the whole name."),
    # definitions
    "varargs": ("Functions with a variable number of arguments ('*args') are not supported.", "Take a list instead."),
    "kwargs": ("Functions with arbitrary keyword arguments ('**kwargs') are not supported.", "Take a dict instead."),
    "class_keywords": ("Keyword arguments of a class (such as a metaclass) are not supported.", None),
    "type_parameters": ("Type parameters are not supported.", "Write one function for each type."),
}
"""Key -> (the unsupported construct, the suggestion)."""


def refuse(what: str, range: SourceRange) -> UnsupportedError:
    """Return the error to raise for the construct ``what``, a key of :data:`REFUSALS`."""
    message, hint = REFUSALS[what]
    return UnsupportedError(message, range, hint=hint)
