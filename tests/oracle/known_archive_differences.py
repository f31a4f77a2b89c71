"""Programs that do not come through a file as they went in, and why. The lists are strict.

``REFUSED`` cannot be saved here: what the refusal says. ``IN_TORCH`` are saved here and do something else once
torch.jit has loaded them; ``FROM_TORCH`` are saved by torch.jit and do something else once they are loaded here.
``SAVED_AGAIN`` are loaded here and saved again, and the text or the answer is another; the texts of ``READ_BACK`` are
other graphs when they are read.
"""

from __future__ import annotations

from tests.language.gaps import RUNS_HERE_ONLY

_PYTHON = "the program calls the Python function "
_RECURSION = "calls itself, directly or through others, which TorchScript does not know"
_UNION = ") cannot be written as source: no reader knows which one to call"

REFUSED: dict[str, str] = {
    "language.classes.ignored_method": f"{_PYTHON}'in_python'",
    "language.functions.IgnoredMethod": f"{_PYTHON}'log'",
    "language.functions.factorial": _RECURSION,
    "language.functions.ignored_function": f"{_PYTHON}'in_python'",
    "language.functions.ignored_that_raises": f"{_PYTHON}'checked_in_python'",
    "language.functions.ignored_untyped": f"{_PYTHON}'in_python_untyped'",
    "language.modules.interface_variable": f"Squares{_UNION}",
    "language.statements.try_except": "'try' cannot be saved: TorchScript does not know it",
    "language.statements.with_flags": f"{_PYTHON}'flags'",
    "language.statements.with_inference_mode": f"{_PYTHON}'inference_mode'",
    "language.named.enum_keys": "TorchScript has no dicts whose keys are members of enums",
    "language.named.enum_keys_in_a_loop": "TorchScript has no dicts whose keys are members of enums",
    "oracle.interfaces.interface_branch": f"Shift{_UNION}",
    "oracle.interfaces.interface_reassigned": f"Shift{_UNION}",
    **{f"language.{name}": told for name, told in RUNS_HERE_ONLY.items()},
}

REFUSED_BY_FILES: tuple[str, ...] = (
    "language.sets.argument_that_changes",
    "language.sets.frozen_argument",
    "language.sets.sets_within",
)
"""Of these, what can be printed: a text has the dicts that hold sets, and callers of a file would have to give such."""

_MATH = "torch.jit's math gives inf and nan where Python raises"
_FORMAT = "str and format mean what Python means by them here, and torch.jit has formats of its own"
_BYTES = "strings of torch.jit are bytes, of which letters beyond ASCII take several"
_RECURSIVE = "torch.jit has no classes that mention themselves"
_GRAD = "gradients are on where torch.jit leaves no_grad, whatever they were"
_MADE = "an archive has a value for every attribute, so that one that no method has made yet can be read"
_DEQUE = "to archives a deque is the list that holds it"
_INT = "torch.jit's int() takes neither spaces around a number nor underscores within"
_POPITEM = "torch.jit's popitem takes the first item"
_ARGUMENTS = "to archives an exception has a text, and no other arguments"
_DIGITS = "archives say functions of Python's library by operators of tensors, which print as calls of their own"
_FOLD = "archives lower what Python folds"
_KEY = "torch.jit writes the key of a KeyError without quotes"
_ASSIGNED = "a number assigned to items is written by the operator that refuses numbers beyond the dtype, as here"
_LAYOUT = "a number assigned to items is written without the layout that the operator read from the text has"
_DEFAULT = "a default that is a member of an enum is read back as the member of the loaded class"

IN_TORCH: dict[str, str] = {
    "language.arguments_past.second_place": _FORMAT,
    "language.expressions.tensor_cuda": "a build of PyTorch for CPUs does not know cuda::device_count",
    "language.named.dataclass_repr": _FORMAT,
    "language.named.enum_defaults": _DEFAULT,
    "language.named.members_that_do_not_exist": _KEY,
    "language.sizes.declared_without_length": "in archives a Tuple[int, ...] is a List[int], which takes no tuple",
    "language.collection_kinds.copied_and_limited": _DEQUE,
    "language.exceptions.raises_a_key": _ARGUMENTS,
    "language.exceptions.raises_with_several": _ARGUMENTS,
    "language.expressions.rounding_to_digits": _FORMAT,
    "language.functions.global_dict": _ARGUMENTS,
    "language.library_functions.logarithm_of_nothing": _MATH,
    "language.numbers.int_or_float": _FORMAT,
    "language.numbers.powers_beyond_a_word": "ints of torch.jit's runtime are words of 64 bits",
    "language.numbers.remainders_of_nothing": "torch.jit's runtime gives nan where Python raises",
    "language.python_operators.rounded_to_digits_of_variables": _FORMAT,
    "language.python_texts.folded_and_printable": _FOLD,
    "language.python_forms.picked_from_a_table_within": _FORMAT,
    "language.python_texts.formatted_by_a_function": _FORMAT,
    "language.python_texts.no_ints_to_any_base": _FORMAT,
    "language.python_texts.no_ints_to_that_base": _FORMAT,
    "language.classes.linked_list": _RECURSIVE,
    "language.classes.parents_and_children": _RECURSIVE,
    "language.collection_kinds.deque_as_a_result": _DEQUE,
    "language.containers.dict_popitem": _POPITEM,
    "language.expressions.math_domain_errors": _MATH,
    "language.expressions.math_overflow": _MATH,
    "language.made_attributes.ReadsWhatIsNotThere": _MADE,
    **dict.fromkeys(
        ("language.modules_past.PickedByName", "language.python_forms.picked_when_it_runs"),
        _KEY,
    ),
    "language.named.enum_identity": "torch.jit finds that no member of an enum is itself",
    "language.python_operators.fields_by_name": _FORMAT,
    "language.python_operators.representations": _FORMAT,
    "language.python_operators.rounded_to_digits": _FORMAT,
    "language.python_texts.constants_as_texts": _FORMAT,
    "language.python_texts.containers_as_texts": _FORMAT,
    "language.python_texts.floats_as_texts": _FORMAT,
    "language.python_texts.format_with_specifications": _FORMAT,
    "language.python_texts.numbers_of_texts": _INT,
    "language.python_texts.other_presentations": _FORMAT,
    "language.python_texts.padded_strings": _FORMAT,
    "language.python_texts.percent_of_numbers": _FORMAT,
    "language.python_texts.percent_of_strings": _FORMAT,
    "language.python_texts.shown_with_its_name": _FORMAT,
    "language.python_texts.special_numbers": _INT,
    "language.python_texts.tuples_as_texts": _FORMAT,
    "language.python_texts.widths_and_digits": _FORMAT,
    "language.statements.with_enable_grad": _GRAD,
    "language.statements.with_no_grad": _GRAD,
    "language.strings.cases": _BYTES,
    "language.strings.f_string_specifications": _FORMAT,
    "language.strings.f_strings": _FORMAT,
    "language.strings.format_keywords": _FORMAT,
    "language.strings.format_positions": _FORMAT,
    "language.strings.format_specifications": _FORMAT,
    "language.strings.formats": _FORMAT,
    "language.strings.length": _BYTES,
    "language.strings.lines": "torch.jit's splitlines has an empty line at the end",
    "language.strings.ord_and_chr": _BYTES,
    "language.strings.percent_formatting": _FORMAT,
    "language.strings.repr_of_string": _FORMAT,
    "language.strings.str_of_complex": _FORMAT,
    "language.strings.str_of_containers": _FORMAT,
    "language.strings.str_of_dict": _FORMAT,
    "language.strings.str_of_float": _FORMAT,
    "language.strings.str_of_tensor": _FORMAT,
    "language.strings.zero_filled": "torch.jit's zfill does not know signs",
    "oracle.interfaces.IndexesLayers": "torch.jit does not know negative indices of modules",
}

_OVERLOADED = "forward is overloaded: a module that was loaded has forward__0 and forward__1, in torch.jit as here"
OF_THE_SWEEP: dict[str, str] = {
    **{
        f"module.nn_{name}": _OVERLOADED
        for name in ("GRU eval/0", "GRU eval/1", "LSTM eval/0", "LSTM eval/2", "RNN eval/0", "RNN eval/2")
    },
    **dict.fromkeys(
        [f"module.nn_LinearCrossEntropyLoss eval/{case}" for case in (0, 71)],
        f"{_PYTHON}'linear_cross_entropy', which has no source that can be compiled",
    ),
    "op.fill float32/0/function": "torch.jit's interpreter fails over aten::fill of an archive",
}
"""Of PyTorch's modules and operators, in whichever way."""

_NOT_COMPILED = "torch.jit gives no object of a class, and no member of an enum, that it has not compiled itself"
IN_TORCH_AT_FIRST: dict[str, str] = {
    "language.named.enum_returned": _NOT_COMPILED,
    "language.named.members_looked_up": "torch.jit does not find the class of an enum of which only members are listed",
    "oracle.classes.returns_an_object": _NOT_COMPILED,
}
"""As ``IN_TORCH``, unless torch.jit has compiled the class in the same process before: no test can say."""

FROM_TORCH: dict[str, str] = {
    name: IN_TORCH[name]
    for name in (
        "language.exceptions.raises_a_key",
        "language.named.enum_identity",
        "language.numbers.remainders_of_nothing",
        "language.python_texts.numbers_of_texts",
        "language.python_texts.special_numbers",
        "language.statements.with_no_grad",
        "language.strings.length",
        "language.strings.lines",
        "language.strings.ord_and_chr",
        "language.strings.zero_filled",
        "oracle.interfaces.IndexesLayers",
    )
} | dict.fromkeys(
    ("language.inference.penalty", "language.numbers.items_with_tensors"),
    "another text of the same error, which torch.jit's own code raises there",
)
FROM_TORCH |= {
    "language.python_operators.searches_up_to_a_negative_index": (
        "torch.jit's find and count take a negative end for another place"
    ),
    "language.python_operators.strips_of_spelled_white_space": (
        "a strip of torch.jit's default is written as strip() is, which strips all white space here"
    ),
}

READ_BACK: dict[str, str] = {
    **{f"language.exceptions.{name}": _ARGUMENTS for name in ("raises_a_key", "raises_with_several")},
    **{f"language.expressions.{name}": _DIGITS for name in ("rounding_to_digits", "math_log2")},
    **{f"language.library_functions.{name}": _DIGITS for name in ("logarithms_and_roots", "logarithm_of_nothing")},
    "language.library_functions.neighbors": _DIGITS,
    "language.python_operators.rounded_to_digits_of_variables": _DIGITS,
    "language.python_texts.folded_and_printable": _FOLD,
    **dict.fromkeys(
        (
            *(f"oracle.indexing.write_{name}" for name in ("number", "at_tensor", "mask")),
            *(f"language.containers.tensor_{name}" for name in ("slice_assign", "step_of_zero")),
            "language.expressions.tensor_index_assign",
            "language.optionals.augmented_tensor",
        ),
        _ASSIGNED,
    ),
    "language.numbers.unions_of_numbers": "the branches return tuples of two types, which the text joins by a cast",
    "language.searches.goes_on_while_known": "an unused result of a branch is of a narrower type",
    "language.functions_within.builtins_in_a_table": "the result of a branch that raises is of a narrower type",
}

SAVED_AGAIN: dict[str, str] = {
    "language.collection_kinds.copied_and_limited": _DEQUE,
    "language.exceptions.raises_a_key": _ARGUMENTS,
    "language.exceptions.raises_with_several": _ARGUMENTS,
    **{f"language.expressions.{name}": _DIGITS for name in ("math_fsum", "math_hypot", "math_log2")},
    "language.expressions.rounding_to_digits": _DIGITS,
    **{f"language.library_functions.{name}": _DIGITS for name in ("exact_sums", "logarithm_of_nothing")},
    **{f"language.library_functions.{name}": _DIGITS for name in ("logarithms_and_roots", "neighbors")},
    "language.python_operators.rounded_to_digits_of_variables": _DIGITS,
    "language.python_texts.folded_and_printable": _FOLD,
    "language.collection_kinds.deque_as_a_result": _DEQUE,
    "language.made_attributes.ReadsWhatIsNotThere": _MADE,
    "language.named.dataclass_default_factory": "a variable gets another number",
    **dict.fromkeys(
        (
            *(f"oracle.indexing.write_{name}" for name in ("number", "at_tensor", "mask")),
            *(f"language.containers.tensor_{name}" for name in ("slice_assign", "step_of_zero")),
            "language.expressions.tensor_index_assign",
            "language.optionals.augmented_tensor",
            "language.operators_past.written_by_their_methods",
        ),
        _LAYOUT,
    ),
    **dict.fromkeys(
        [
            *("language.collection_kinds.moved_to_the_end", "language.named.members_looked_up"),
            "language.named.members_that_do_not_exist",
        ],
        "a tuple that nothing uses is not written again",
    ),
    **dict.fromkeys(
        [
            *(f"language.numbers.powers_{name}" for name in ("that_are_scaled", "with_a_minus")),
            *(f"language.numbers.{name}" for name in ("items_of_tensors", "int_or_float", "unions_of_numbers")),
        ],
        "what is declared as a number is returned by a cast",
    ),
    "language.functions_within.builtins_as_values": "a conversion moves into the return",
    "language.functions_within.builtins_in_a_table": "the result of a branch that raises is of a narrower type",
    "language.named.enum_defaults": _DEFAULT,
}
