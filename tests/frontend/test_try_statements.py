"""try: the graph, and what becomes of such programs elsewhere."""

from __future__ import annotations

import io
from typing import Dict, Optional, Tuple

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.errors import DifferentiationError, ExportError, SaveError, UndefinedNameError, UnsupportedError
from tests.support.calls import assert_calls_agree
from tests.support.golden import GoldenTexts
from tests.versions.differences import NO_FLOOR_DIVISION


def divided(x: Tensor, n: int) -> Tensor:
    y = x
    try:
        y = x * 2
        y = y + 12 // n
    except ZeroDivisionError as error:
        y = y + len(str(error))
    return y


def test_the_graph(golden: GoldenTexts) -> None:
    text = str(rekindle.script(divided).graph)
    golden("frontend/try", "\n".join(line.partition(" # ")[0] for line in text.splitlines()))


def test_the_code_is_for_readers() -> None:
    assert "def __tried_function():" in rekindle.script(divided).code


@pytest.mark.parametrize("strategy", ["simple", "profiling", "native"])
def test_every_strategy(strategy: str) -> None:
    before = rekindle.set_execution_strategy(strategy)
    try:
        compiled = rekindle.script(divided)
        for n in (3, 0, 3, 0, 5):
            x = torch.ones(2, requires_grad=True)
            found, expected = compiled(x, n), divided(x, n)
            assert torch.equal(found, expected)
            assert torch.equal(torch.autograd.grad(found.sum(), x)[0], torch.full((2,), 2.0))
    finally:
        rekindle.set_execution_strategy(before)


def assigned_in_a_loop(n: int, limit: Optional[float], table: Dict[str, int]) -> Tuple[int, Optional[float], int]:
    last = -1
    try:
        for each in range(3):
            n = each
            while table["a"] > 0:
                limit = 0.5
                table["a"] -= 1
                last = 10 // each
    except ZeroDivisionError:
        n += 100
    else:
        n += 10
    return n, limit, last


def test_a_variable_keeps_what_a_loop_within_has_assigned() -> None:
    for count in (0, 1):
        assert_calls_agree(assigned_in_a_loop, (7, None, {"a": count}), (7, 2.0, {"a": count}))


def test_what_may_raise_is_not_taken_for_dead() -> None:
    @rekindle.script
    def fits(x: Tensor) -> bool:
        try:
            x.view(4)
        except RuntimeError:
            return False
        return True

    assert [fits(torch.zeros(n)) for n in (4, 3, 4, 3)] == [True, False, True, False]


def test_other_exceptions_come_through_as_they_are() -> None:
    @rekindle.script
    def strict(n: int) -> int:
        try:
            return 1 // n
        except KeyError:
            return 0

    with pytest.raises(ZeroDivisionError, match=f"^{NO_FLOOR_DIVISION}$"):
        strict(0)


def raises_nothing_said(text: str) -> str:
    raise KeyError


def raises_an_empty_key(text: str) -> str:
    raise KeyError("")


def raises_an_empty_text(text: str) -> str:
    raise ValueError("")


def raises_the_key(text: str) -> str:
    raise KeyError(text)


def text_of_the_key(text: str) -> str:
    try:
        raise KeyError(text)
    except KeyError as error:
        return str(error)


def test_an_empty_argument_of_an_exception_is_an_argument() -> None:
    for function in (raises_nothing_said, raises_an_empty_key, raises_an_empty_text, raises_the_key):
        compiled = rekindle.script(function)
        for text in ("", "a"):
            with pytest.raises(Exception) as expected:  # noqa: PT011 - eager Python says which
                function(text)
            with pytest.raises(type(expected.value)) as caught:
                compiled(text)
            assert (str(caught.value), caught.value.args) == (str(expected.value), expected.value.args)
    assert_calls_agree(text_of_the_key, ("",), ("a",))


class Fitting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        try:
            return self.linear(x).view(2)
        except RuntimeError:
            return self.linear(x).sum()


def test_frozen_modules_try() -> None:
    module = Fitting().eval()
    frozen = rekindle.freeze(rekindle.script(module))
    for x in (torch.ones(3), torch.ones(2, 3)):
        assert torch.equal(frozen(x), module(x))


def test_batches_try() -> None:
    batched = rekindle.vmap(divided, in_dims=(0, None))
    x = torch.arange(3.0)
    for n in (4, 0):
        assert torch.equal(batched(x, n), divided(x, n))


def test_saving_refuses() -> None:
    with pytest.raises(SaveError) as caught:
        rekindle.save(rekindle.script(divided), io.BytesIO())
    assert str(caught.value).startswith(
        "'divided' cannot be saved: 'try' cannot be saved: TorchScript does not know it\n"
    )
    assert str(caught.value).endswith("Hint: test for the condition beforehand; the program runs here as it is")


def test_export_and_gradients_refuse() -> None:
    with pytest.raises(ExportError, match=r"^'divided' cannot be exported: Export IR has no form for 'try'\n"):
        rekindle.to_exported(rekindle.script(divided), (torch.ones(2), 3))
    with pytest.raises(DifferentiationError, match="prim::Try may write to what it is given"):
        rekindle.grad(rekindle.script(divided))(torch.ones(()), 3)


def test_the_class_of_an_exception_is_no_value() -> None:
    def program(n: int):
        try:
            return 1 // n
        except ZeroDivisionError as error:
            return type(error)

    with pytest.raises(UnsupportedError) as caught:
        rekindle.script(program)
    message, *_, hint = str(caught.value).splitlines()
    assert message == "the class of an exception that was caught cannot be used as a value"
    assert hint == "Hint: ask isinstance(e, …); type(e).__name__ is its name"


def handlers_within(d: Dict[str, int]) -> str:
    text = ""
    try:
        text += str(d["x"])
    except KeyError as error:
        text += str(error)
        try:
            text += str(d["y"])
        except KeyError as error:
            text += str(error)
    return text


def read_after_a_handler_of_the_same_name(d: Dict[str, int]) -> str:
    try:
        return str(d["x"])
    except KeyError as error:
        try:
            d["y"]
        except KeyError as error:
            pass
        return str(error)


def test_a_handler_deletes_the_name_of_its_exception() -> None:
    assert_calls_agree(handlers_within, ({},), ({"x": 1},), ({"y": 1},))
    with pytest.raises(UndefinedNameError) as caught:
        rekindle.script(read_after_a_handler_of_the_same_name)
    assert str(caught.value).splitlines()[0] == (
        "'error' is not defined here: a handler within this one has the same name, and deletes it"
    )
