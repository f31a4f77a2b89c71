"""The text of formulas, read."""

from __future__ import annotations

import pytest

from rekindle.autodiff.formula_parser import Definition, read_definitions
from rekindle.errors import InternalError

TEXT = """
# What is said of all
constant eq.Tensor, ne.Tensor,
    lt.Tensor

def twice(x: Tensor) -> Tensor:
    return x * 2

forward dropout(input, p, train):
    result, mask = torch.native_dropout(input, p, train)
    return result, mask

backward div.Tensor, true_divide.Tensor(grad, self,
                                        other) -> self, other:
    a = grad / other
    return a, -a * (self / other)
"""


CONSTANTS = "constant eq.Tensor, ne.Tensor,\n    lt.Tensor\n"


def test_definitions() -> None:
    assert list(read_definitions(TEXT)) == [
        Definition(
            "constant",
            ("eq.Tensor", "ne.Tensor", "lt.Tensor"),
            (),
            (),
            "constant eq.Tensor, ne.Tensor,\n    lt.Tensor\n",
        ),
        Definition("def", ("twice",), (), (), "def twice(x: Tensor) -> Tensor:\n    return x * 2\n"),
        Definition(
            "forward",
            ("dropout",),
            ("input", "p", "train"),
            (),
            "    result, mask = torch.native_dropout(input, p, train)\n    return result, mask\n",
        ),
        Definition(
            "backward",
            ("div.Tensor", "true_divide.Tensor"),
            ("grad", "self", "other"),
            ("self", "other"),
            "    a = grad / other\n    return a, -a * (self / other)\n",
        ),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "backward neg(grad):\n    return -grad",
        "forward neg(self) -> self:\n    return self",
        "wayback neg(grad):\n    -grad",
    ],
)
def test_a_head_that_says_something_else(text: str) -> None:
    with pytest.raises(InternalError, match="the head of a formula cannot be read") as caught:
        list(read_definitions(text))
    assert text.splitlines()[0] in str(caught.value)
