"""Programs of the corpus that do not do yet what the tests ask for, each with the reason.

The lists are strict: a test fails when a listed program does what is asked for, and when one that is not listed does
not.
"""

from __future__ import annotations

KNOWN_DIFFERENCES: dict[str, str] = {}
"""Programs whose graph is not that of torch.jit."""

WRONG_ANSWERS: dict[str, str] = {}
"""Programs that do not compile, or do not answer as eager does."""
