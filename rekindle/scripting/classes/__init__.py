"""Python classes as programs use them: script classes, dataclasses, and interfaces."""
