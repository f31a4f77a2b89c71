"""The gradients of operators: a text for each family, in the form that :mod:`rekindle.autodiff.formula_text` reads."""

from __future__ import annotations

from typing import Final

from rekindle.autodiff.formulas import matrices, pointwise

TEXTS: Final[dict[str, str]] = {"pointwise": pointwise.TEXT, "matrices": matrices.TEXT}
"""By family."""
