"""Programs of the corpus that have no derivative as a program, with what the refusal says."""

from __future__ import annotations

from typing import Final

_OBJECTS: Final = "gradients cannot go back through this write: it writes to an attribute of an object"

KNOWN_GAPS: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            *("interfaces.interface_arguments", "interfaces.interface_results", "interfaces.interface_list"),
            *("interfaces.interface_dict", "interfaces.interface_optional", "interfaces.interface_branch"),
            *("interfaces.interface_reassigned", "interfaces.interface_tuple", "interfaces.interface_attributes"),
        ),
        _OBJECTS,
    ),
}
