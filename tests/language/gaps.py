"""Programs of the language's corpus that do not do yet what the tests ask for, each with the reason.

The lists are strict: a test fails when a listed program does what is asked for, and when another does not.
"""

from __future__ import annotations

GAPS: dict[str, str] = {
    "expressions.sum_of_no_floats": "the sum of no floats is the int 0; a result that is declared a float is a float",
}
"""Programs that do not compile here, or do not answer as eager does."""

_POWER = "the power of ints is an int, as in Python; a float in torch.jit"
_CHOICE = "one of the operands, as in Python; a bool in torch.jit"
RESULT_TYPES: dict[str, str] = {
    **{
        f"numbers.{name}": _POWER
        for name in ("powers_of_variables", "powers_beyond_a_word", "power_of_nothing", "powers_in_place", "Doubles")
    },
    **{f"numbers.{name}": _POWER for name in ("powers_of_bools", "items_of_tensors", "powers_with_a_minus")},
    "numbers.items_with_tensors": "a Tensor, as in Python; torch.jit takes it for a number",
    **{f"numbers.{name}": _CHOICE for name in ("one_of_two_numbers", "one_of_several_kinds", "one_of_two_tensors")},
}
"""Programs whose result has another type than in torch.jit."""

_RECURSION = "calls itself, directly or through others, which TorchScript does not know"
_TRY = "'try' cannot be saved: TorchScript does not know it"
_SET = "takes or gives a set, which TorchScript does not know"
RUNS_HERE_ONLY: dict[str, str] = {
    "recursion_and_patterns.result_of_recursion_is_inferred": _RECURSION,
    "recursion_and_patterns.mutual_recursion": _RECURSION,
    "recursion_and_patterns.recursion_of_a_local_function": _RECURSION,
    "recursion_and_patterns.recursion_for_each_type": _RECURSION,
    "recursion_and_patterns.ackermann": _RECURSION,
    "recursion_and_patterns.recursion_without_end": _RECURSION,
    "recursion_and_patterns.imports_that_succeed": _TRY,
    "exceptions.defined_by_the_body_only": _TRY,
    "recursion_and_patterns.RecursiveMethod": _RECURSION,
    "numbers.lists_of_other_numbers": "'eq' cannot be saved: TorchScript has nothing to say it with",
    "autograd_functions.scaled": "the program calls the Python function 'Scaled.apply'",
    "autograd_functions.straight_through": "the program calls the Python function 'Rounded.apply'",
    "autograd_functions.two_results": "the program calls the Python function 'ProductAndSign.apply'",
    "autograd_functions.with_a_context_of_its_own": "the program calls the Python function 'Power.apply'",
    "autograd_functions.given_functions_and_dtypes": "the program calls the Python function 'Applies.apply'",
    "autograd_functions.lists_and_none": "the program calls the Python function 'Counted.apply'",
    "autograd_functions.one_after_the_other": "the program calls the Python function 'Rounded.apply'",
    "autograd_functions.written_in_place": "the program calls the Python function 'AddsInPlace.apply'",
    "autograd_functions.forward_that_raises": "the program calls the Python function 'Fails.apply'",
    "autograd_functions.HoldsFunctions": "the program calls the Python function 'Scaled.apply'",
    "exceptions.texts_of_keys": _TRY,
    "operators_past.masked": "the program calls the Python function 'sum'",
    "operators_past.masked_in_a_dtype": "the program calls the Python function 'cumsum'",
    "operators_past.unravelled": "the program calls the Python function 'unravel_index'",
    **dict.fromkeys(("sets.argument_that_changes", "sets.frozen_argument", "sets.sets_within"), _SET),
    **dict.fromkeys(
        (
            "exceptions.caught_of_python",
            "exceptions.caught_key",
            "exceptions.caught_of_an_operator",
            "exceptions.text_of_an_operator",
            "exceptions.caught_of_the_user",
            "exceptions.not_caught",
            "exceptions.base_classes_catch",
            "exceptions.tuple_of_classes",
            "exceptions.caught_whatever_it_is",
            "exceptions.with_else",
            "exceptions.else_is_not_tried",
            "exceptions.with_finally",
            "exceptions.finally_behind_return",
            "exceptions.finally_in_a_loop",
            "exceptions.finally_that_returns",
            "exceptions.break_out_of_try",
            "exceptions.retried",
            "exceptions.assigned_before_the_exception",
            "exceptions.written_before_the_exception",
            "exceptions.tensors_written_before",
            "exceptions.raised_again",
            "exceptions.raised_from",
            "exceptions.nested",
            "exceptions.state_through_two",
            "exceptions.asks_for_the_class",
            "exceptions.names_of_classes",
            "exceptions.refined_within",
            "exceptions.parsed",
            "exceptions.widened",
            "exceptions.TriesTwoWays",
            "exceptions.within_with",
            "exceptions.with_within",
        ),
        _TRY,
    ),
}
"""Programs that saving refuses, each with a part of what it says: TorchScript has nothing to say them with."""

_FORMATS = "torch.jit's runtime knows no format specifications and conversions"
_PARSING = "torch.jit's runtime reads no spaces and no underscores around and in numbers"
_NUMBERS = "torch.jit's runtime writes values as C++ does: 1. for 1.0, 0 for False"
OTHERWISE_IN_TORCH: dict[str, str] = {
    "sizes.declared_without_length": "torch.jit takes no tuple for a list in a Union",
    "python_operators.rounded_to_digits": _FORMATS,
    "python_operators.fields_by_name": _FORMATS,
    "python_operators.representations": _FORMATS,
    **dict.fromkeys(
        (
            "python_texts.widths_and_digits",
            "python_texts.other_presentations",
            "python_texts.shown_with_its_name",
            "python_texts.padded_strings",
            "python_texts.percent_of_numbers",
            "python_texts.percent_of_strings",
            "python_texts.format_with_specifications",
            "python_texts.formatted_by_a_function",
        ),
        _FORMATS,
    ),
    **dict.fromkeys(("python_texts.numbers_of_texts", "python_texts.special_numbers"), _PARSING),
    **dict.fromkeys(
        (
            "python_texts.containers_as_texts",
            "python_texts.tuples_as_texts",
            "python_texts.constants_as_texts",
            "python_texts.floats_as_texts",
        ),
        _NUMBERS,
    ),
    "python_texts.folded_and_printable": "torch.jit's runtime lowers the letters that Python folds, and no others",
    "numbers.int_or_float": _FORMATS,
    "numbers.powers_beyond_a_word": "ints of TorchScript's runtime are words of 64 bits",
    "numbers.remainders_of_nothing": "torch.jit's runtime gives nan where Python raises",
    "python_operators.rounded_to_digits_of_variables": _FORMATS,
    "library_functions.logarithm_of_nothing": "torch.jit's mathematics gives infinity and nan where Python's raises",
    "collection_kinds.copied_and_limited": "what is a deque in Python is a list in TorchScript",
    "collection_kinds.deque_as_a_result": "what is a deque in Python is a list in TorchScript",
    "made_attributes.ReadsWhatIsNotThere": "what no method has made yet is saved empty",
}
"""Programs that answer otherwise in torch.jit when they are saved here and loaded there, each with the reason."""
