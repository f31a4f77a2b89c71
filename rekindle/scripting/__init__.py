"""Python objects -> programs: recursive scripting.

Importing it fills the slots that the floors below leave open for what knows Python objects.
"""

import rekindle.scripting.classes.script_classes
import rekindle.scripting.frame_resolver
import rekindle.scripting.library_values.context_managers
import rekindle.scripting.library_values.legacy_constructors
import rekindle.scripting.library_values.tensor_methods
import rekindle.scripting.library_values.type_info
import rekindle.scripting.modules.script_modules  # noqa: F401
