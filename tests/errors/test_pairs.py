"""Wrong statements of different programs in one function: both are reported, whichever comes first, and nothing
else."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

import rekindle
from rekindle.errors import Cause, CompileError
from tests.errors.test_several_problems import reported
from tests.errors.test_wrong_programs import load

# Name -> parameters, the wrong statement, why it is wrong.
STATEMENTS: dict[str, tuple[str, str, Cause]] = {
    "undefined_variable": ("", "a1 = nowhere1 + 1", Cause.UNDEFINED_NAME),
    "misspelled_operator": ("x2: Tensor", "a2 = torch.sigmod(x2)", Cause.UNDEFINED_NAME),
    "misspelled_method": ("x3: Tensor", "x3.sigmod()", Cause.UNDEFINED_NAME),
    "int_plus_str": ("n4: int, s4: str", "a4 = n4 + s4", Cause.TYPE_MISMATCH),
    "annotation_differs_from_value": ("n5: int", "a5: str = n5", Cause.TYPE_MISMATCH),
    "optional_without_refinement": ("n6: Optional[int], v6: List[int]", "v6.append(n6)", Cause.MISSING_REFINEMENT),
    "unannotated_argument_is_a_tensor": ("n7", "a7 = range(n7)", Cause.DEFAULT_TYPE_ASSUMED),
    "unpack_too_many": ("t8: Tuple[int, int]", "a8, b8, c8 = t8", Cause.TYPE_MISMATCH),
    "tuple_index_not_constant": ("t9: Tuple[int, str], i9: int", "a9 = t9[i9]", Cause.DYNAMIC_BEHAVIOUR),
    "call_of_a_numpy_function": ("x10: Tensor", "a10 = numpy.sin(x10)", Cause.DYNAMIC_BEHAVIOUR),
    "set_of_tuples": ("n11: int", "a11 = {(n11, 2)}", Cause.UNSUPPORTED_CONSTRUCT),
    "byte_string": ("", "a12 = b'y'", Cause.UNSUPPORTED_CONSTRUCT),
    "global": ("", "global g13; g13 = 1", Cause.UNSUPPORTED_CONSTRUCT),
    "loop_over_an_int": ("n14: int", "for i14 in n14: a14 = i14 + 'a'", Cause.TYPE_MISMATCH),
    "call_of_an_int": ("n15: int", "a15 = n15(1)", Cause.UNSUPPORTED_CONSTRUCT),
    "append_of_wrong_type": ("v16: List[int]", "v16.append('three')", Cause.TYPE_MISMATCH),
    "attribute_of_an_int": ("n17: int", "assert n17.shape", Cause.UNDEFINED_NAME),
    "builtin_that_is_not_supported": ("", "a18 = eval('x')", Cause.UNDEFINED_NAME),
    "tuple_item_assignment": ("t19: Tuple[int, int]", "t19[0] = 1", Cause.TYPE_MISMATCH),
    "star_argument_of_tensor": ("x20: Tensor", "a20 = torch.cat(*x20)", Cause.TYPE_MISMATCH),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_pairs(name: str, tmp_path: Path) -> None:
    for first, second in permutations(STATEMENTS, 2):
        if first != name:
            continue
        parts = [STATEMENTS[first], STATEMENTS[second]]
        parameters = ", ".join(part[0] for part in parts if part[0])
        body = "".join(f"    {statement}\n" for _, statement, _ in parts)
        module = load(f"{first}_{second}", f"\ndef f({parameters}):\n{body}    return 0\n", tmp_path)
        with pytest.raises(CompileError) as caught:
            rekindle.script(module.f)
        assert reported(caught.value) == {(3, parts[0][2]): 1, (4, parts[1][2]): 1}, (first, second)
