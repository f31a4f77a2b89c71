"""Recursive scripting: compile Python objects to programs.

Importing it implements the hooks of lower layers for knowledge of Python objects.
"""

import rekindle.scripting.classes.script_classes
import rekindle.scripting.classes.value_members
import rekindle.scripting.frame_resolver
import rekindle.scripting.library_values.context_managers
import rekindle.scripting.library_values.legacy_constructors
import rekindle.scripting.library_values.tensor_methods
import rekindle.scripting.library_values.type_info
import rekindle.scripting.modules.script_modules  # noqa: F401
