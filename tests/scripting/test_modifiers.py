"""Marks on functions, in torch.jit's spelling and in ours."""

import re
import typing
from typing import Dict, List, Optional, Tuple, Union

import pytest
import torch
from torch import nn

import rekindle
from rekindle.scripting.callables.modifiers import Modifier, is_left_to_python, modifier_of


def plain():
    pass


@pytest.mark.parametrize(
    ("decorate", "meaning"),
    [
        (rekindle.export, Modifier.EXPORT),
        (torch.jit.export, Modifier.EXPORT),
        (rekindle.ignore, Modifier.IGNORE),
        (rekindle.ignore(), Modifier.IGNORE),
        (rekindle.ignore(drop=True), Modifier.UNUSED),
        (torch.jit.ignore, Modifier.IGNORE),
        (rekindle.unused, Modifier.UNUSED),
        (torch.jit.unused, Modifier.UNUSED),
        (lambda function: function, Modifier.DEFAULT),
    ],
)
def test_marks_mean_the_same_in_both_spellings(decorate, meaning):
    def function():
        return 3

    decorated = decorate(function)
    assert decorated is function
    assert decorated() == 3
    assert modifier_of(decorated) is meaning
    assert is_left_to_python(decorated) is (meaning in (Modifier.IGNORE, Modifier.UNUSED))


def test_torch_jit_understands_ours():
    @rekindle.ignore
    def function():
        pass

    assert torch._jit_internal.is_ignored_fn(function)


def test_properties_are_marked_too():
    @rekindle.unused
    @property
    def value(self):
        return 3

    assert modifier_of(value) is Modifier.UNUSED


def test_wrong_use_of_ignore():
    with pytest.raises(TypeError, match=r"ignore is used as @ignore or as @ignore\(drop=True\)"):
        rekindle.ignore(quietly=True)


def test_questions_are_answered_no_in_python():
    assert rekindle.is_scripting() is False
    assert rekindle.is_tracing() is False
    assert rekindle.annotate(List[int], [1]) == [1]


@pytest.mark.parametrize(
    ("value", "type", "expected"),
    [
        ([1], List[int], True),
        (["a"], List[int], False),
        ({"a": [1]}, Dict[str, List[int]], True),
        ({"a": ["b"]}, Dict[str, List[int]], False),
        ((1, "a"), Tuple[int, str], True),
        ((1,), Tuple[int, str], False),
        ((), Tuple[()], True),
        ((1, 2), Tuple[int, ...], True),
        ((1, 2, "a"), Tuple[int, ...], False),
        (None, Optional[int], True),
        ("a", Optional[int], False),
        (3, Union[str, List[int]], False),
        (3, (str, int), True),
        (3, int, True),
    ],
)
def test_isinstance_looks_at_elements(value, type, expected):
    assert rekindle.isinstance(value, type) is expected


def test_attribute_shows_what_it_holds():
    assert repr(rekindle.Attribute([], List[int])) == "Attribute([], typing.List[int])"


class TakesAnything(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.is_simple: bool = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.is_simple:
            return x
        return self.unknown(x, [1])

    @torch.jit.unused
    def unknown(self, x: "Nowhere", y: typing.Iterable[int], **kwargs) -> torch.Tensor:  # noqa: F821
        return x


def test_what_an_unused_function_takes_is_not_looked_at():
    scripted = rekindle.script(TakesAnything())
    assert torch.equal(scripted(torch.ones(2)), torch.ones(2))
    scripted.is_simple = False
    with pytest.raises(NotImplementedError, match="the function 'unknown' is marked as unused, but was called"):
        scripted(torch.ones(2))


def test_the_body_of_an_ignoring_context_is_compiled():
    class Marked(nn.Module):
        def forward(self) -> int:
            a: int = 4
            b: int = 5
            c: int = 0
            with torch.jit._IgnoreContextManager(a="inp:int", b="inp:int", c="out:int"):
                items = [2 for i in range(a) if i > 2]
                c = items[0] + a + b
            return c

    assert rekindle.script(Marked())() == Marked()() == 11


def test_an_ignored_function_that_is_called_for_its_effect_may_return_none():
    seen = []

    class Logs(nn.Module):
        @torch.jit.ignore
        def log(self, a: int):
            seen.append(a)

        def forward(self) -> int:
            self.log(4)
            return 9

    assert rekindle.script(Logs())() == 9
    assert seen == [4]


class Describes:
    def __init__(self) -> None:
        self.count = 7

    @torch.jit.ignore
    def __call__(self, *args) -> str:
        return f"{type(args[0]).__name__} {self.count}"

    @torch.jit.ignore
    def more(self, x: int, y: float = 2.0) -> float:
        return x + y + self.count


describes = Describes()


def test_ignored_methods_of_objects_that_only_python_knows():
    def calls(x: torch.Tensor) -> Tuple[str, float, float]:
        return describes(x), describes.more(3), describes.more(y=1.0, x=1)

    assert rekindle.script(calls)(torch.ones(1)) == calls(torch.ones(1)) == ("Tensor 7", 12.0, 9.0)


def test_an_old_way_to_mark_what_is_unused_warns():
    message = "ignore(drop_on_export=True) is deprecated, and means @unused: a call raises in the compiled program"
    with pytest.warns(FutureWarning, match=f"^{re.escape(message)}$"):

        @rekindle.ignore(drop_on_export=True)
        def dropped(x):
            return x

    assert modifier_of(dropped) is Modifier.UNUSED


SCALED = nn.Linear(2, 2)


class Halved(nn.Module):
    def forward(self, x: torch.Tensor, n: int = 2) -> Tuple[torch.Tensor, int]:
        return x / n, n


HALVED = Halved()
HALVED.register_forward_hook(lambda module, args, result: (result[0] + 1, result[1]))


class GivesAnInt(nn.Module):
    def forward(self, x):
        return 3


GIVES_AN_INT = GivesAnInt()


def test_modules_from_outside_are_called_by_python():
    """As in torch.jit; with hooks, and with the parameters that they have at the call."""

    def through(x: torch.Tensor, n: int):
        half, count = HALVED(x, n=n)
        return SCALED(half) + HALVED(x)[0] * count

    ours = rekindle.script(through)
    x = torch.ones(1, 2, requires_grad=True)
    for _ in range(3):
        assert torch.equal(ours(x, 3), through(x, 3))
    with torch.no_grad():
        SCALED.weight.mul_(2)
    assert torch.equal(ours(x, 3), through(x, 3))
    gradients = [torch.autograd.grad(f(x, 3).sum(), (x, SCALED.weight)) for f in (ours, through)]
    torch.testing.assert_close(*gradients)
    with pytest.raises(rekindle.RekindleError, match="make the module an attribute of the module that calls it"):
        rekindle.save(ours, "unused.pt")


def test_what_a_module_from_outside_returns_is_checked():
    def adds(x):
        return GIVES_AN_INT(x) + x

    with pytest.raises(TypeError, match="the Python function 'GivesAnInt' should return Tensor, but returned int"):
        rekindle.script(adds)(torch.ones(1))


@rekindle.ignore
def described(x: int, *more: int, scale: int = 1) -> str:
    return f"{x} {more} {scale}"


class Scaled:
    def __init__(self, n: int):
        self.n = n

    @rekindle.ignore
    def times(self, x: int, *, scale: int = 1) -> int:
        return self.n * x * scale


def calls_with_names(n: int):
    scaled = Scaled(n)
    return (
        described(n, scale=3),
        described(n, 1, 2),
        described(n, 1, 2, scale=3),
        scaled.times(2),
        scaled.times(2, scale=3),
    )


def test_ignored_functions_get_keyword_only_arguments_by_name():
    assert rekindle.script(calls_with_names)(5) == calls_with_names(5)


@rekindle.ignore
def classes(
    d: torch.dtype, layout: Optional[torch.layout], size: Tuple[int, ...], pair: Tuple[torch.dtype, int]
) -> str:
    return f"{d} {layout} {size!r} {pair}"


@rekindle.ignore
def extended(items: List[int]) -> int:
    items.append(1)
    return len(items)


def passes_classes(x):
    items = [1, 2]
    first = classes(torch.float64, torch.strided, x.shape, (x.dtype, 1))
    return first, classes(x.dtype, None, (1, 2), (torch.int32, 2)), extended(items), items


def test_ignored_functions_get_arguments_of_the_classes_that_python_has():
    x = torch.ones(2)
    assert rekindle.script(passes_classes)(x) == passes_classes(x)
