"""Programs of the corpus that have no derivative as a program, with what the refusal says."""

from __future__ import annotations

from typing import Final

_OBJECTS: Final = "gradients cannot go back through this write: it writes to an attribute of an object"

KNOWN_GAPS: Final[dict[str, str]] = {
    # Which of several objects a value is, is known only when the program runs.
    **dict.fromkeys(
        (
            *("interfaces.interface_list", "interfaces.interface_dict", "interfaces.interface_optional"),
            *("interfaces.interface_branch", "interfaces.interface_reassigned"),
        ),
        _OBJECTS,
    ),
    "interfaces.interface_attributes": "it is not known which method is called here, and it may write to its arguments",
}
