"""Numbers and Tensors given to programs that declare numbers: no gradient, dtype or value is lost silently."""

import io
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import numpy as np
import pytest
import torch
from torch import nn

import rekindle
from rekindle.errors import ArgumentError

X = torch.tensor([1.0, 2.0])
REQUIRES_GRAD = torch.tensor(2.0, requires_grad=True)


def plain(x: torch.Tensor, w: float):
    return x * w


def of_int(x: torch.Tensor, w: int):
    return x * w


def of_bool(x: torch.Tensor, w: bool):
    return x * w


def of_complex(x: torch.Tensor, w: complex):
    return x * w


def with_default(x: torch.Tensor, w: float = 1.0):
    return x * w


def keyword_only(x: torch.Tensor, *, w: float = 1.0):
    return x * w


def optional(x: torch.Tensor, w: Optional[float] = None):
    return x if w is None else x * w


def either(x: torch.Tensor, w: Union[float, str]):
    return x * w if isinstance(w, float) else x


def in_list(x: torch.Tensor, w: List[float]):
    return x * w[0]


def in_tuple(x: torch.Tensor, w: Tuple[int, float]):
    return x * w[1]


def in_dict(x: torch.Tensor, w: Dict[str, float]):
    return x * w["a"]


def in_list_of_optionals(x: torch.Tensor, w: List[Optional[float]]):
    v = w[0]
    return x if v is None else x * v


class Pair(NamedTuple):
    name: str
    scale: float


def in_named_tuple(x: torch.Tensor, w: Pair):
    return x * w.scale


class Holder:
    def __init__(self, scale: float):
        self.scale = scale


def in_object(x: torch.Tensor, w: Holder):
    return x * w.scale


def held(value: object) -> Holder:
    holder = Holder(1.0)
    holder.scale = value
    return holder


WITHIN = {
    plain: lambda t: t,
    of_int: lambda t: t,
    of_bool: lambda t: t,
    of_complex: lambda t: t,
    with_default: lambda t: t,
    optional: lambda t: t,
    either: lambda t: t,
    in_list: lambda t: [t],
    in_tuple: lambda t: (1, t),
    in_dict: lambda t: {"a": t},
    in_list_of_optionals: lambda t: [t],
    in_named_tuple: lambda t: Pair("a", t),
    in_object: held,
}
TENSORS = [
    REQUIRES_GRAD,
    nn.Parameter(torch.ones(1)),
    torch.tensor(2.0),
    torch.tensor(2),
    torch.tensor(True),
    torch.ones(1, 1),
]


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale: float = 1.0

    def forward(self, x: torch.Tensor, w: float = 1.0):
        return x * w * self.scale

    @torch.jit.export
    def other(self, x: torch.Tensor, w: float):
        return x * w


@pytest.mark.parametrize("tensor", TENSORS, ids=str)
@pytest.mark.parametrize("function", WITHIN, ids=lambda function: function.__name__)
def test_no_tensor_is_taken_for_a_number(function, tensor):
    compiled = rekindle.script(function)
    given = WITHIN[function](tensor)
    uses = [
        lambda: compiled(X, given),
        lambda: compiled(x=X, w=given),
        lambda: compiled.launch(X, given),
        lambda: compiled.graph_for(X, given),
        lambda: compiled.compile(X, w=given),
    ]
    for use in uses:
        with pytest.raises(ArgumentError):
            use()


@pytest.mark.parametrize("tensor", TENSORS, ids=str)
def test_nor_by_modules(tensor):
    module = rekindle.script(Scaled())
    for use in (module, module.forward, module.other):
        with pytest.raises(ArgumentError):
            use(X, tensor)
        with pytest.raises(ArgumentError):
            use(X, w=tensor)
    with pytest.raises(TypeError):
        module.scale = tensor
    assert module.scale == 1.0
    with pytest.raises(ArgumentError):
        rekindle.script(keyword_only)(X, w=tensor)


def text_of(use) -> str:
    with pytest.raises(TypeError) as caught:
        use()
    return str(caught.value)


def test_what_the_errors_say():
    assert (
        text_of(lambda: rekindle.script(plain)(X, REQUIRES_GRAD))
        == """\
plain() argument 'w' (position 2) takes float, but got a Tensor of shape () and dtype torch.float32
Signature: plain(x: Tensor, w: float) -> Tensor
Hint: the Tensor requires grad, and no gradient flows through a float; declare a Tensor, or pass .item() if no \
gradient is wanted"""
    )
    assert (
        text_of(lambda: rekindle.script(keyword_only)(X, w=torch.tensor(2)))
        == """\
keyword_only() argument 'w' takes float, but got a Tensor of shape () and dtype torch.int64
Signature: keyword_only(x: Tensor, *, w: float = 1.0) -> Tensor
Hint: a Tensor is not converted to a float; pass .item(), or declare a Tensor"""
    )
    assert (
        text_of(lambda: rekindle.script(in_dict)(X, {"a": REQUIRES_GRAD}))
        == """\
in_dict() argument 'w' (position 2) takes Dict[str, float], but got a dict: {'a': tensor(2., requires_grad=True)}, \
in which w['a'] is a Tensor of shape () and dtype torch.float32 instead of float
Signature: in_dict(x: Tensor, w: Dict[str, float]) -> Tensor
Hint: the Tensor requires grad, and no gradient flows through a float; declare a Tensor, or pass .item() if no \
gradient is wanted"""
    )
    module = rekindle.script(Scaled())
    with pytest.raises(TypeError) as caught:
        module.scale = REQUIRES_GRAD
    assert str(caught.value) == (
        "attribute 'scale' of 'Scaled' takes float, but got a Tensor of shape () and dtype torch.float32\n"
        "Hint: the Tensor requires grad, and no gradient flows through a float; declare a Tensor, or pass .item() "
        "if no gradient is wanted"
    )
    assert (
        text_of(lambda: rekindle.script(plain)(X, 2**53 + 1))
        == """\
plain() argument 'w' (position 2) takes float, but got an int: 9007199254740993
Signature: plain(x: Tensor, w: float) -> Tensor
Hint: no float is equal to this int; pass float(…) to round it"""
    )
    assert (
        text_of(lambda: rekindle.script(of_bool)(X, 2))
        == """\
of_bool() argument 'w' (position 2) takes bool, but got an int: 2
Signature: of_bool(x: Tensor, w: bool) -> Tensor"""
    )
    assert (
        text_of(lambda: rekindle.script(of_bool)(X, None))
        == """\
of_bool() argument 'w' (position 2) takes bool, but got None
Signature: of_bool(x: Tensor, w: bool) -> Tensor
Hint: a parameter that may be None is annotated as Optional[bool]"""
    )


@pytest.mark.parametrize(
    ("function", "number"),
    [
        *((plain, number) for number in (3, True, -(2**53), 0, 2.5, float("inf"))),
        *((of_int, number) for number in (3, True, 2**40)),
        *((of_bool, number) for number in (0, 1, True)),
        *((of_complex, number) for number in (1, 2.5, 1j, True)),
        *((optional, number) for number in (3, None)),
        *((in_list, number) for number in ([3], (2.5,), [True])),
        *((in_tuple, number) for number in ((True, 3), [1, 2])),
        *((in_dict, number) for number in ({"a": 3},)),
    ],
)
def test_numbers_that_the_type_holds_are_converted(function, number):
    compiled = rekindle.script(function)
    converted = complex(number) if function is of_complex else number
    for _ in range(3):
        found, expected = compiled(X, number), function(X, converted)
        assert found.dtype == expected.dtype
        assert torch.equal(found, expected)


def test_a_number_is_of_the_declared_type_in_the_program():
    """As PEP 484 has it, an int is accepted where a float is declared; there it is that float."""

    def itself(w: float):
        return w, w // 2, str(w)

    assert repr(rekindle.script(itself)(3)) == "(3.0, 1.0, '3.0')"


def loaded(function):
    buffer = io.BytesIO()
    rekindle.save(rekindle.script(function), buffer)
    buffer.seek(0)
    return rekindle.load(buffer)


class Bool(nn.Module):
    def forward(self, x: torch.Tensor, w: bool):
        return x * w


def test_programs_of_archives_take_what_torchscript_takes():
    for module, values in ((Scaled(), (2, torch.tensor(2.0), torch.ones(1), 2**53 + 1)), (Bool(), (2, 0.5, None))):
        found, oracle = loaded(module), torch.jit.script(module)
        for again in (found, rekindle.freeze(found.eval())):
            for value in values:
                assert torch.equal(again(X, value), oracle(X, value))
            # torch.jit loses the gradient here.
            with pytest.raises(ArgumentError):
                again(X, REQUIRES_GRAD)


def test_a_trace_of_what_calls_a_compiled_function():
    compiled = rekindle.script(plain)
    with pytest.raises(ArgumentError):
        rekindle.trace(lambda x, w: compiled(x, w), (X, REQUIRES_GRAD))


def takes_either(n: Union[int, float]):
    return n


def takes_list(xs: List[int]):
    return xs


@pytest.mark.parametrize(
    ("given", "taken"),
    [(True, 1), (np.int64(3), 3), (np.float32(0.5), 0.5), (np.bool_(False), 0), (2, 2), (2.0, 2.0)],
)
def test_a_union_takes_a_number_as_the_narrowest_type_that_holds_it(given: Any, taken: int | float) -> None:
    assert repr(rekindle.script(takes_either)(given)) == repr(taken)


@pytest.mark.parametrize("given", [{1, 2}, frozenset([1])])
def test_a_set_is_no_list(given: Any) -> None:
    with pytest.raises(ArgumentError, match=r"takes List\[int\], but got a (frozen)?set"):
        rekindle.script(takes_list)(given)
