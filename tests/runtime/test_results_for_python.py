"""Results as Python has them: named results of operators, sizes and dtypes declared Any, assertions under ``-O``."""

import subprocess
import sys
from collections import defaultdict, deque
from typing import Any, DefaultDict, Deque, Dict, List, Optional, Tuple

import pytest
import torch

import rekindle
from rekindle.errors import ArgumentError, TypeMismatchError, UnsupportedError

X = torch.tensor([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0], [9.0, 7.0, 8.5]])


def of_max(x: torch.Tensor):
    return x.max(1)


def of_min(x: torch.Tensor):
    return torch.min(x, dim=0, keepdim=True)


def of_median(x: torch.Tensor):
    return x.median(1)


def of_nanmedian(x: torch.Tensor):
    return x.nanmedian(1)


def of_mode(x: torch.Tensor):
    return x.mode(1)


def of_sort(x: torch.Tensor):
    return x.sort(descending=True)


def of_topk(x: torch.Tensor):
    return torch.topk(x, 2)


def of_kthvalue(x: torch.Tensor):
    return x.kthvalue(2)


def of_cummax(x: torch.Tensor):
    return torch.cummax(x, 0)


def of_cummin(x: torch.Tensor):
    return x.cummin(0)


def of_aminmax(x: torch.Tensor):
    return torch.aminmax(x)


def of_frexp(x: torch.Tensor):
    return torch.frexp(x)


def of_slogdet(x: torch.Tensor):
    return torch.slogdet(x)


def of_svd(x: torch.Tensor):
    return torch.linalg.svd(x)


def of_qr(x: torch.Tensor):
    return torch.linalg.qr(x)


def of_eigh(x: torch.Tensor):
    return torch.linalg.eigh(x + x.t())


def of_lu(x: torch.Tensor):
    return torch.linalg.lu_factor(x)


def in_a_variable(x: torch.Tensor):
    found = x.max(1)
    if bool(found.values.sum() > 0):
        found = (x * 2).max(0)
    return found


def in_a_list(x: torch.Tensor):
    return [x.max(1), x.min(1)]


def within_a_tuple(x: torch.Tensor):
    return x.max(1), x.sort(), 3


def of_a_loop(x: torch.Tensor):
    found = x.max(0)
    for i in range(3):
        found = (found.values + x).max(0)
    return found


NAMED = [
    *(of_max, of_min, of_median, of_nanmedian, of_mode, of_sort, of_topk, of_kthvalue, of_cummax, of_cummin),
    *(of_aminmax, of_frexp, of_slogdet, of_svd, of_qr, of_eigh, of_lu),
    *(in_a_variable, in_a_list, within_a_tuple, of_a_loop),
]


@pytest.mark.parametrize("function", NAMED, ids=lambda function: function.__name__)
def test_named_results(function):
    compiled, expected = rekindle.script(function), function(X)
    for _ in range(3):
        found = compiled(X)
        assert type(found) is type(expected)
        assert repr(found) == repr(expected)


def what_it_is_used_as(x: torch.Tensor):
    found = x.median(1)
    values, indices = found
    return found.values + values, found.indices + found[1] + indices, isinstance(found, tuple), len(found), str(found)


def test_uses_of_named_results():
    found, expected = rekindle.script(what_it_is_used_as)(X), what_it_is_used_as(X)
    assert repr(found) == repr(expected)


# -------------------------------------------------------------------------------------------------------- declared Any


def size(x: torch.Tensor) -> Any:
    return x.shape


def dtype(x: torch.Tensor) -> Any:
    return x.dtype


def both(x: torch.Tensor) -> Any:
    return x.shape, [x.dtype]


def itself(x: Any) -> Any:
    return x


def of_two_types(x: torch.Tensor) -> Any:
    if x.dim() > 5:
        return 1
    return x.shape


@pytest.mark.parametrize("function", [size, dtype, both])
def test_what_is_returned_as_any(function):
    found, expected = rekindle.script(function)(X), function(X)
    assert (type(found), repr(found)) == (type(expected), repr(expected))


@pytest.mark.parametrize("value", [torch.float32, X.shape, 3, (1, torch.int64)], ids=str)
def test_what_is_passed_as_any(value):
    assert rekindle.script(itself)(value) is value


def test_any_of_two_types_is_refused():
    with pytest.raises(TypeMismatchError) as caught:
        rekindle.script(of_two_types)
    assert caught.value.message == (
        "the function is declared to return Any, and returns torch.Size here and something else before"
    )
    assert caught.value.hint == "leave the declaration of the result away"
    assert caught.value.range.text == "return x.shape"


# ---------------------------------------------------------------------------------------------------------- containers


def appended(items: Deque[int]) -> int:
    items.append(3)
    items.popleft()
    return len(items)


def test_deques():
    given = deque([1, 2])
    assert rekindle.script(appended)(given) == 2
    assert given == deque([2, 3])
    with pytest.raises(ArgumentError) as caught:
        rekindle.script(appended)(deque([1, 2], maxlen=2))
    assert str(caught.value) == (
        "appended() argument 'items' (position 1) takes Deque[int], but got a deque: deque([1, 2], maxlen=2)\n"
        "Signature: appended(items: Deque[int]) -> int\n"
        "Hint: a program does not keep the limit (maxlen) of a deque that it is given; pass a deque without one"
    )


def test_a_deque_for_something_else():
    with pytest.raises(ArgumentError) as caught:
        rekindle.script(lambda x: x)(deque([1], maxlen=2))
    assert str(caught.value) == (
        "_lambda() argument 'x' (position 1) takes Tensor, but got a deque: deque([1], maxlen=2)\n"
        "Signature: _lambda(x: Tensor) -> Tensor"
    )


def counted(x: int):
    found: DefaultDict[int, int] = defaultdict(lambda: 5)
    found[x] += 1
    return found


def test_a_factory_that_python_could_not_call():
    with pytest.raises(TypeError) as caught:
        rekindle.script(counted)(1)
    assert str(caught.value) == (
        "a defaultdict whose factory is compiled cannot be returned to Python, which could not call the factory\n"
        "Hint: return dict(…) of it, or make it with a class as its factory: defaultdict(int)"
    )


# ------------------------------------------------------------------------------------------------------------- defaults


def writes(x: int, items: List[int] = []):  # noqa: B006
    items.append(x)
    return items


def add_to(table: Dict[str, int]) -> None:
    table["a"] = 1


def has_it_written(table: Dict[str, int] = {}) -> int:  # noqa: B006
    add_to(table)
    return len(table)


def reads(x: int, items: List[int] = [1, 2], table: Dict[str, int] = {}) -> List[int]:  # noqa: B006
    mine = list(items)
    mine.append(x + len(table))
    return mine


def writes_to_an_item(x: torch.Tensor, sizes: Tuple[List[int], int] = ([1], 2)):
    sizes[0].append(5)
    return x * len(sizes[0])


def shared(items: List[int] = []):  # noqa: B006
    return items


@pytest.mark.parametrize(
    ("function", "name", "type", "place"),
    [
        (writes, "items", "List[int]", "items: List[int] = []"),
        (has_it_written, "table", "Dict[str, int]", "table: Dict[str, int] = {}"),
        (writes_to_an_item, "sizes", "Tuple[List[int], int]", "sizes: Tuple[List[int], int] = ([1], 2)"),
    ],
)
def test_defaults_that_the_function_writes_to(function, name, type, place):
    with pytest.raises(UnsupportedError) as caught:
        rekindle.script(function)
    assert caught.value.message == (
        f"the default of '{name}' is one object, which all calls share in Python, and the function writes to it"
    )
    assert caught.value.hint == f"write {name}: Optional[{type}] = None, and make the object in the function"
    assert caught.value.range.text in place


def test_other_defaults_are_shared_by_all_calls():
    compiled = rekindle.script(reads)
    assert [compiled(3), compiled(4)] == [reads(3), reads(4)]
    compiled = rekindle.script(shared)
    assert compiled() is compiled()


# ----------------------------------------------------------------------------------------------------------- exceptions


class CodedError(Exception):
    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


def raises_a_number():
    raise KeyError(3)


def raises_its_own():
    raise CodedError("text", 3)


@pytest.mark.parametrize("function", [raises_a_number, raises_its_own])
def test_exceptions_are_made_of_what_the_program_says(function):
    def caught(call) -> Exception:
        with pytest.raises((KeyError, CodedError)) as error:
            call()
        return error.value

    found, expected = caught(rekindle.script(function)), caught(function)
    assert type(found) is type(expected)
    assert (str(found), found.args, vars(found)) == (str(expected), expected.args, vars(expected))


# ----------------------------------------------------------------------------------------------------------- assertions

PROGRAM = """
import rekindle

def checked(n: int):
    assert n > 1, "small"
    if __debug__:
        return "debug", __debug__
    return "optimized", __debug__

print(rekindle.script(checked)(2) == checked(2), checked(2))
try:
    print(rekindle.script(checked)(1))
except AssertionError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        ([], "True ('debug', True)\nsmall\n"),
        (["-O"], "True ('optimized', False)\n('optimized', False)\n"),
        (["-OO"], "True ('optimized', False)\n('optimized', False)\n"),
    ],
    ids=["debug", "-O", "-OO"],
)
def test_assertions_follow_the_interpreter(options, printed, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    run = subprocess.run([sys.executable, *options, str(path)], capture_output=True, text=True, timeout=300, check=True)
    assert run.stdout == printed


# ------------------------------------------------------------------------------------------------ containers of several


def dtype_beside_an_int(x: torch.Tensor, n: int):
    return {"shape": x.shape, "dtype": x.dtype, "n": n}


def dtypes_in_a_list(x: torch.Tensor, n: int):
    return [x.dtype, n]


def layout_beside_a_dtype(x: torch.Tensor, n: int):
    return [x.layout, x.dtype]


def test_layouts_and_dtypes_do_not_share_a_container():
    with pytest.raises(UnsupportedError) as caught:
        rekindle.script(layout_beside_a_dtype)
    assert caught.value.message == (
        "a container of layouts and dtypes would be one of ints to Python: a layout is an int in a program"
    )


def layouts_and_memory_formats(x: torch.Tensor, form: torch.memory_format, other: Optional[torch.memory_format] = None):
    layout = x.layout
    made = torch.empty(2, layout=torch.strided, memory_format=torch.contiguous_format)
    shown = f"{layout} {form} {other}", str(layout), repr(form), made.layout == torch.strided
    return layout, form, other, [layout], {"form": form}, shown, layout in (torch.sparse_coo, torch.strided)


class HoldsAMemoryFormat(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.form = torch.channels_last

    def forward(self, x: torch.Tensor):
        return x.to(memory_format=self.form).is_contiguous(memory_format=self.form), self.form


def test_layouts_and_memory_formats_are_those_of_python():
    x = torch.ones(1, 2, 2, 2)
    compiled = rekindle.script(layouts_and_memory_formats)
    for arguments in ((torch.channels_last,), (torch.preserve_format, torch.channels_last_3d)):
        assert compiled(x, *arguments) == layouts_and_memory_formats(x, *arguments)
    assert compiled(x.to_sparse(), torch.channels_last)[0] is torch.sparse_coo
    assert rekindle.script(HoldsAMemoryFormat())(x) == (True, torch.channels_last)


@pytest.mark.parametrize("function", [dtype_beside_an_int, dtypes_in_a_list])
def test_dtypes_and_ints_do_not_share_a_container(function):
    with pytest.raises(UnsupportedError) as caught:
        rekindle.script(function)
    assert caught.value.message == (
        "a container of dtypes and ints would be one of ints to Python: a dtype is an int in a program"
    )
    assert caught.value.hint == "put them into a tuple, or into containers of their own"


def limited_deque(n: int):
    found: Dict[str, Deque[int]] = {"a": deque([n], maxlen=3)}
    return found


def test_a_literal_does_not_forget_the_limit_of_a_deque():
    with pytest.raises(TypeMismatchError) as caught:
        rekindle.script(limited_deque)
    assert caught.value.message == (
        "expected Deque[int] here, and a Deque[int] of 3 at most would not be limited to so many elements any more as "
        "a Deque[int]"
    )
