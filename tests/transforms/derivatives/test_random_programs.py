"""Gradients of random programs; see :mod:`tests.transforms.derivatives.random_programs` for more of them."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import example, given, settings

from tests.support.shares import portion
from tests.transforms.derivatives.random_programs import compare


@settings(max_examples=portion(4), deadline=None)
@given(st.integers(0, 1 << 30))
@example(3)  # `continue`: what was never given a value stands for all variables
@example(19)  # the size of what has no value on the other way
def test_gradients(seed: int) -> None:
    compare(seed)
