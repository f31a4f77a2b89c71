"""Sizes that remember what was asked of them."""

from __future__ import annotations

import pytest

from rekindle.codegen.symbolic_sizes import ShapeEnv, ShapeOp, ShapeProgram


def test_a_formula() -> None:
    record = ShapeEnv()
    x, y = record.size(6), record.size(3)
    assert x == 2 * y
    formula = record.formula([x + y, -(-x // 4), 7])
    assert formula == ShapeProgram(
        given=2,
        constants=(2, 0, 4, 7),
        steps=(
            (ShapeOp.MULTIPLY, 1, 2),
            (ShapeOp.EQUAL, 0, 6),
            (ShapeOp.ADD, 0, 1),
            (ShapeOp.SUBTRACT, 3, 0),
            (ShapeOp.DIVIDE, 8, 4),
            (ShapeOp.SUBTRACT, 3, 9),
        ),
        results=(7, 10, 5),
    )
    assert formula.words == 11
    assert formula([6, 3]) == [9, 2, 7]
    assert formula([10, 5]) == [15, 3, 7]
    assert formula([10, 6]) is None


def test_what_nobody_needs_is_not_in_it() -> None:
    record = ShapeEnv()
    x = record.size(6)
    assert x * 3 + 1 - x is not None
    assert record.formula([x]) == ShapeProgram(1, (), (), (0,))


@pytest.mark.parametrize(
    ("question", "holds", "fails"),
    [
        (lambda x: x == 4, [4], [3, 5]),
        (lambda x: x != 4, [4], [3, 5]),
        (lambda x: x < 4, [4, 5], [3]),
        (lambda x: x > 3, [4, 5], [3]),
        (lambda x: x <= 4, [4, 3], [5]),
        (lambda x: 3 >= x, [4, 5], [3]),
        (lambda x: 3 < x, [4, 5], [3]),
        (bool, [4, 5, -1], [0]),
        (lambda x: x in (2, 4), [4], [2, 5]),
        (lambda x: max(x, 2), [4, 2], [1]),
        (lambda x: {x: "x"}.get(4), [4], [3, 5]),
        (lambda x: sorted([x, 4, 1]), [4, 3], [5, 1]),
        (lambda x: x < 4.5, [4], [3, 5]),
        (lambda x: x == 4.0, [4], [3, 5]),
        (range, [4], [3, 5]),
        (float, [4], [3, 5]),
        (str, [4], [3, 5]),
        ("{}".format, [4], [3, 5]),
        (lambda x: x % 3, [4], [1, 7]),
        (lambda x: 9 // x, [4], [3]),
        (lambda x: x // 0.5, [4], [5]),
        (lambda x: x + 0.5, [4], [5]),
        (lambda x: x - x, [4, 5], []),
        (lambda x: x == x + 0, [4, 5], []),
    ],
)
def test_questions(question, holds, fails) -> None:  # type: ignore[no-untyped-def]
    """Of a size that is 4: for which others the answer is the same."""
    record = ShapeEnv()
    answer = question(record.size(4))
    formula = record.formula([])
    assert [value for value in holds + fails if formula([value]) == []] == holds
    assert answer == question(4)


def test_arithmetic() -> None:
    values = [-7, -1, 0, 1, 2, 9]
    for x in values:
        for y in values:
            record = ShapeEnv()
            a, b = record.size(x), record.size(y)
            results = [a + b, a - b, a * b, 3 + a, 3 - a, 3 * a, a * 0, a * 1, a + 0, -a, a // 3, a // 1]
            plain = [x + y, x - y, x * y, 3 + x, 3 - x, 3 * x, 0, x, x, -x, x // 3, x]
            formula = record.formula(results)
            assert all(step < ShapeOp.EQUAL for step, _, _ in formula.steps)
            assert formula([x, y]) == plain
            assert formula([5, 4]) == [9, 1, 20, 8, -2, 15, 0, 5, 5, -5, 1, 5]
            assert results == plain
