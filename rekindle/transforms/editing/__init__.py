"""Graph editing: insert code, extract parts, and make functions, methods and modules from graphs."""

from rekindle.transforms.editing import builder_frontend as builder_frontend
from rekindle.transforms.editing.from_graph import (
    create_function as create_function,
    create_method as create_method,
    create_module as create_module,
)
from rekindle.transforms.editing.regions import (
    Region as Region,
    extract as extract,
    move as move,
    outline as outline,
    replace as replace,
    split as split,
)
