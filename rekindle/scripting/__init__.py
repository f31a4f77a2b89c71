"""Python objects -> programs: recursive scripting.

Importing it fills the slots that the floors below leave open for what knows Python objects.
"""

import rekindle.scripting.classes
import rekindle.scripting.context_managers
import rekindle.scripting.frame_resolver
import rekindle.scripting.modules
import rekindle.scripting.tensor_methods
import rekindle.scripting.type_info  # noqa: F401
