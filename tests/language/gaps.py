"""Programs of the language's corpus that do not do yet what the tests ask for, each with the reason.

The lists are strict: a test fails when a listed program does what is asked for, and when another does not.
"""

from __future__ import annotations

GAPS: dict[str, str] = {
    "expressions.sum_of_no_floats": "the sum of no floats is the int 0 in Python; the IR has one type for the result",
}
"""Programs that do not compile here, or do not answer as eager does."""

RESULT_TYPES: dict[str, str] = {}
"""Programs whose result has another type than in torch.jit."""

_RECURSION = "calls itself, directly or through others, which TorchScript does not know"
RUNS_HERE_ONLY: dict[str, str] = {
    "recursion_and_patterns.result_of_recursion_is_inferred": _RECURSION,
    "recursion_and_patterns.mutual_recursion": _RECURSION,
    "recursion_and_patterns.recursion_of_a_local_function": _RECURSION,
    "recursion_and_patterns.recursion_for_each_type": _RECURSION,
    "recursion_and_patterns.ackermann": _RECURSION,
    "recursion_and_patterns.recursion_without_end": _RECURSION,
    "recursion_and_patterns.RecursiveMethod": _RECURSION,
}
"""Programs that saving refuses, each with a part of what it says: TorchScript has nothing to say them with."""

_FORMATS = "torch.jit's runtime knows no format specifications and conversions"
OTHERWISE_IN_TORCH: dict[str, str] = {
    "python_operators.rounded_to_digits": _FORMATS,
    "python_operators.fields_by_name": _FORMATS,
    "python_operators.representations": _FORMATS,
}
"""Programs that answer otherwise in torch.jit when they are saved here and loaded there, each with the reason."""
