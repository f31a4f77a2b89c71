"""Graphs before the pass ``annotate_warns``, by a title of what it does with each."""

from __future__ import annotations

CASES = {
    "each its number": """
graph(%s : str, %n : int):
   = aten::warn(%s, %n)
   = aten::warn(%s, %n)
  return (%n)
""",
}
