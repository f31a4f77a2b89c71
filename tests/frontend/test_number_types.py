"""Numbers have Python's values and types, whatever a variable held before."""

from __future__ import annotations

import copy
import io
import linecache
import math
from collections.abc import Callable
from typing import Any, Dict, List, Optional

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.errors import RekindleError
from tests.frontend.number_programs import ARGUMENTS, EXPRESSIONS, NAMESPACE, ORIGINS, PROGRAMS, source_of


def outcome(call: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    """What a call returns, with the types of all numbers, or that it raises."""
    try:
        return repr(call(*copy.deepcopy(arguments)))
    except (TypeError, ValueError, ArithmeticError, LookupError, RuntimeError, AttributeError):
        return "raises"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs(program: Callable[..., Any]) -> None:
    compiled = rekindle.script(program)
    for _ in range(3):
        for arguments in PROGRAMS[program]:
            assert outcome(compiled, arguments) == outcome(program, arguments), arguments


def defined(source: str, name: str) -> Callable[..., Any]:
    """The function ``f`` of a source text."""
    filename = f"<{name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace = dict(NAMESPACE)
    exec(compile(source, filename, "exec"), namespace)
    function: Callable[..., Any] = namespace["f"]
    return function


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("line", [line for line in EXPRESSIONS.strip().splitlines()])
def test_expressions(line: str, origin: str) -> None:
    for position, expression in enumerate(line.split("; ")):
        program = defined(source_of(origin, expression), f"{origin}-{expression}-{position}")
        compiled = rekindle.script(program)
        for arguments in ARGUMENTS:
            assert outcome(compiled, arguments) == outcome(program, arguments), (expression, arguments)


BOOL_EXPRESSIONS = (
    "round(f); round(f, 1); round(f, 0); math.trunc(f); +f; f * True; f + False; f + 0; f * 1; f & True; f | False",
    "f ^ True; f & 1",
    "type(f) is int; type(f) is bool; type(f) == float; isinstance(f, int); f * x; x * f; x + f; abs(f); -f; f or 3",
    "f.real; f.imag; f.conjugate(); f.numerator; f.denominator; f.bit_length(); f.bit_count()",
    "divmod(f, 1); f ** 1; max(f, 0); min(1.0, f); str([f]); pow(f, 1); sum([f, f]); [f]; math.floor(f)",
)
"""What Python does with a number that may be a bool: arithmetic makes an int of it, ``&``, ``|`` and ``^`` do not."""


@pytest.mark.parametrize("line", BOOL_EXPRESSIONS)
def test_a_number_that_may_be_a_bool(line: str) -> None:
    for position, expression in enumerate(line.split("; ")):
        program = defined(source_of("item", expression), f"bool-{expression}-{position}")
        compiled = rekindle.script(program)
        for values in ([True, False], [False, True], [1, 0], [3, 2], [0.5, 1.5], [-0.0, 1.0]):
            arguments = (torch.tensor(values), 2, [5, 6, 7], 0.0)
            for _ in range(2):
                assert outcome(compiled, arguments) == outcome(program, arguments), (expression, arguments)


# ------------------------------------------------------------------------------------------------------------ modules


class Losses(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.total = 0
        self.count = 0
        self.worst = 0
        self.seen = False

    def forward(self, x: Tensor):
        loss = x.sum()
        self.total += loss.item()
        self.count += 1
        if loss.item() > self.worst:
            self.worst = loss.item()
        self.seen = self.count
        return self.total / self.count


class Nested(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = Losses()
        self.others = nn.ModuleList([Losses(), Losses()])

    def forward(self, x: Tensor):
        result = [self.first(x)]
        for part in self.others:
            result.append(part(x * 2))
        return result, self.first.worst


@pytest.mark.parametrize("kind", [Losses, Nested])
def test_attributes_of_modules(kind: type[nn.Module]) -> None:
    eager, compiled = kind(), rekindle.script(kind())
    for x in (torch.tensor([0.5, 0.25]), torch.tensor([3, 1]), torch.tensor([2.5])):
        assert repr(compiled(x)) == repr(eager(x))
    parts = [(eager, compiled)] if kind is Losses else [(eager.first, compiled.first)]
    for mine, theirs in parts:
        names = ("total", "count", "worst", "seen")
        assert repr([getattr(mine, name) for name in names]) == repr([getattr(theirs, name) for name in names])


def test_attributes_in_archives() -> None:
    compiled = rekindle.script(Losses())
    compiled(torch.tensor([0.5]))
    file = io.BytesIO()
    rekindle.save(compiled, file)
    file.seek(0)
    loaded = rekindle.load(file)
    file.seek(0)
    theirs = torch.jit.load(file)
    for module in (compiled, loaded, theirs):
        assert repr(module(torch.tensor([1.25]))) == "0.875"
        assert repr(module.total) == "1.75"


def test_a_saved_program_keeps_both_types() -> None:
    def halves(n: int):
        total = 0
        for _ in range(n):
            total += 0.5
        return total

    file = io.BytesIO()
    rekindle.save(rekindle.script(halves), file)
    for load in (rekindle.load, torch.jit.load):
        file.seek(0)
        loaded = load(file)
        assert [repr(loaded(n)) for n in (0, 3)] == ["0", "1.5"]


def test_a_saved_program_rounds_numbers_of_either_type() -> None:
    def rounded(n: int):
        total = 7
        if n > 1:
            total = n / 3
        return round(total, 2)

    file = io.BytesIO()
    rekindle.save(rekindle.script(rounded), file)
    for load in (rekindle.load, torch.jit.load):
        file.seek(0)
        loaded = load(file)
        assert [repr(loaded(n)) for n in (0, 5)] == ["7", "1.67"]


# -------------------------------------------------------------------------------------------------------- annotations


class Annotated(nn.Module):
    total: int

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def forward(self, x: Tensor) -> int:
        self.total += x.sum().item()
        return self.total


def takes_an_int(n: int) -> int:
    return n


def argument(x: Tensor):
    return takes_an_int(x[0].item())


def result(x: Tensor) -> int:
    return x[0].item()


def variable(x: Tensor):
    n: int = 0
    for v in x:
        n = v.item()
    return n


def variable_that_was_none(x: Tensor):
    n = None
    n: Optional[int] = 0
    for v in x:
        n = v.item()
    return n


def element(x: Tensor):
    values: List[int] = []
    values.append(x[0].item())
    return values


def value_of_a_dict(x: Tensor):
    values: Dict[str, int] = {}
    values["a"] = x[0].item()
    return values


@pytest.mark.parametrize("program", [argument, result, variable, variable_that_was_none, element, value_of_a_dict])
def test_annotations_that_forbid_the_number(program: Callable[..., Any]) -> None:
    compiled = rekindle.script(program)
    assert repr(compiled(torch.tensor([3]))) == repr(program(torch.tensor([3])))
    for _ in range(3):
        with pytest.raises(TypeError, match=r"^expected an int, got 0\.5$"):
            compiled(torch.tensor([0.5]))


def sizes_of_numbers(x: Tensor, n: Optional[int] = None):
    if n is None:
        n = x.max().item() + 1
    size = list(x.size())
    size[0] = n
    return torch.zeros(size).size(), x.float().expand([2, x.numel()]).size(), torch.ones([n, 2]).size()


def test_numbers_in_lists_of_sizes() -> None:
    """Operators read them as ints."""
    compiled = rekindle.script(sizes_of_numbers)
    for _ in range(3):
        assert compiled(torch.tensor([1, 3])) == sizes_of_numbers(torch.tensor([1, 3]))
        assert compiled(torch.tensor([1, 3]), 7) == sizes_of_numbers(torch.tensor([1, 3]), 7)
        with pytest.raises(TypeError, match=r"^expected an int, got 3\.5$"):
            compiled(torch.tensor([0.5, 2.5]))


def test_functions_keep_their_lists() -> None:
    """A copy would not be the caller's list."""

    def extended(sizes: List[int]):
        sizes.append(1)

    def caller(x: Tensor):
        sizes = [x[0].item()]
        extended(sizes)
        return sizes

    with pytest.raises(RekindleError, match="expected List"):
        rekindle.script(caller)


def test_annotated_attributes() -> None:
    compiled = rekindle.script(Annotated())
    assert compiled(torch.tensor([3])) == 3
    with pytest.raises(TypeError, match=r"^expected an int, got 6\.5$"):
        compiled(torch.tensor([3.5]))
    assert compiled.total == 3


def test_an_int_where_a_float_is_declared_is_one() -> None:
    def total_of(n: int) -> float:
        total: float = 0
        total += n
        return total

    compiled = rekindle.script(total_of)
    assert repr(compiled(3)) == "3.0"


# ------------------------------------------------------------------------------------- Tensors in place of numbers


def greatest_row(x: Tensor):
    best = -math.inf
    for row in x:
        if row > best:
            best = row
    return best


def least_row(x: Tensor):
    best = float("inf")
    for row in x:
        if row < best:
            best = row
    return best


@pytest.mark.parametrize("program", [greatest_row, least_row])
def test_a_variable_that_begins_as_a_constant_becomes_a_tensor(program: Callable[..., Any]) -> None:
    compiled = rekindle.script(program)
    for x in (torch.tensor([2.0, 1.0, 3.0]), torch.tensor([-1.0])):
        assert repr(compiled(x)) == repr(program(x))


def variable_of_a_tensor(x: Tensor):
    total: float = 0.0
    for row in x:
        total = total + row
    return total


def result_of_a_tensor(x: Tensor) -> float:
    return x.sum()


def scaled(w: float):
    return w * 2


def argument_of_a_tensor(x: Tensor):
    return scaled(x.sum())


def element_of_a_tensor(x: Tensor, values: List[float]):
    values[0] = x[0]
    return values


def element_of_a_tensor_or_number(x: Tensor, values: List[float]):
    best = 0
    for row in x:
        best = row
    values[0] = best
    return values


def value_of_a_tensor_or_number(x: Tensor, values: Dict[str, float]):
    best = 0
    for row in x:
        best = row
    values["best"] = best
    return values


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (variable_of_a_tensor, "variable 'total' is float, but is assigned a value of type Tensor here"),
        (result_of_a_tensor, "the function is declared to return float, but this returns Tensor"),
        (argument_of_a_tensor, "'scaled' cannot be called with (Tensor): argument 'w': expected float, got Tensor."),
        (element_of_a_tensor, "no overload of 'aten::_set_item' can be called with (List[float], int, Tensor)."),
        (
            element_of_a_tensor_or_number,
            "no overload of 'aten::_set_item' can be called with (List[float], int, Union[Tensor, int]).",
        ),
        (
            value_of_a_tensor_or_number,
            "no overload of 'aten::_set_item' can be called with (Dict[str, float], str, Union[Tensor, int]).",
        ),
    ],
)
def test_no_tensor_is_taken_for_a_number(program: Callable[..., Any], message: str) -> None:
    with pytest.raises(rekindle.errors.CompileError) as caught:
        rekindle.script(program)
    assert caught.value.message.startswith(message)


def written_to_rows(x: Tensor, y: Tensor):
    x[:] = y.sum().item()
    return x


def written_by_a_mask(x: Tensor, y: Tensor):
    n = y.sum().item()
    x[x == 0] = n
    return x


def number_minus_tensor(x: Tensor, n: int):
    return 1.5 - x, n - x, 0 - x, 2.0 - x.sum(), True - x


def subtracted_from_a_number(x: Tensor, n: int):
    total = 0.0
    for row in x:
        total -= row
    return total, n


@pytest.mark.parametrize("program", [number_minus_tensor, subtracted_from_a_number])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int64, torch.float16, torch.complex64, torch.bool])
def test_a_number_minus_a_tensor_wraps_as_in_python(program: Callable[..., Any], dtype: torch.dtype) -> None:
    x = torch.tensor([1, 0, -128]).to(dtype)
    compiled = rekindle.script(program)
    for _ in range(3):
        assert outcome(compiled, (x, 300)) == outcome(program, (x, 300))


@pytest.mark.parametrize("program", [written_to_rows, written_by_a_mask])
@pytest.mark.parametrize("number", [2**62 + 1, -1, 300, 2.5, math.inf, True, 1 + 2j], ids=str)
@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.float32, torch.bool, torch.complex64], ids=str)
def test_numbers_written_to_tensors_are_those_of_python(
    program: Callable[[Tensor, Tensor], Tensor], number: complex, dtype: torch.dtype
) -> None:
    def of(function: Callable[[Tensor, Tensor], Tensor]) -> str:
        y = torch.tensor([number], dtype=torch.float64 if isinstance(number, float) else None)
        try:
            return repr(function(torch.zeros(2, dtype=dtype), y))
        except RuntimeError as error:
            return str(error)

    assert of(rekindle.script(program)) == of(program)
