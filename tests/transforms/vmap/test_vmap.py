"""Programs for one example, run for a batch of them: what a loop over the examples gives."""

from __future__ import annotations

import io
import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

import rekindle
from rekindle.errors import BatchingError
from rekindle.ir.verifier import verify


def two_layers(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    w1 = w1.sigmoid()
    x = x @ w1 + b1
    x = x.tanh()
    w2 = w2.sigmoid()
    return x @ w2 + b2


def arguments_of_two_layers() -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(5, 1), torch.randn(1, 10), torch.randn(10), torch.randn(10, 1), torch.randn(1)]


def test_the_two_layers_of_the_blog_post() -> None:
    x, *rest = arguments_of_two_layers()
    batched = rekindle.vmap(two_layers, (0, None, None, None, None))
    torch.testing.assert_close(batched(x, *rest), torch.stack([two_layers(each, *rest) for each in x]))
    assert str(batched.report) == "5 operators by rules: aten::add, aten::matmul, aten::tanh"
    verify(batched.graph)


def test_what_is_the_same_for_all_examples_is_computed_once() -> None:
    batched = rekindle.vmap(two_layers, (0, None, None, None, None))
    (first, second) = batched.graph.find_nodes("aten::sigmoid")
    assert first.inputs[0] is batched.graph.inputs[1]
    assert second.inputs[0] is batched.graph.inputs[3]


@pytest.mark.parametrize("in_dim", [0, 1, 2, -1])
@pytest.mark.parametrize("out_dim", [0, 1, -1])
def test_examples_may_lie_in_any_dimension(in_dim: int, out_dim: int) -> None:
    def f(x: Tensor) -> Tensor:
        return x.softmax(0) + x[0]

    x = torch.randn(3, 4, 5)
    expected = torch.stack([f(each) for each in x.unbind(in_dim)], out_dim)
    torch.testing.assert_close(rekindle.vmap(f, in_dim, out_dim)(x), expected)


def test_str_is_computed_for_each_example() -> None:
    def f(x: Tensor) -> Tensor:
        return x * len(str(x)) + len(str([x, x + 1]))

    x = torch.tensor([1.0, 22.0, 333.0])
    torch.testing.assert_close(rekindle.vmap(f)(x), torch.stack([f(each) for each in x]))


def test_nested() -> None:
    def f(x: Tensor, y: Tensor) -> Tensor:
        return (x * y).sum() + x.max()

    x, y = torch.randn(2, 3, 4), torch.randn(3, 5, 4)
    inner = rekindle.vmap(f, (None, 0))
    outer = rekindle.vmap(inner, (0, 0), 1)
    every = rekindle.vmap(outer, (0, None))
    expected = torch.stack(
        [torch.stack([torch.stack([f(a, b) for b in ys]) for a, ys in zip(xs, y, strict=True)], 1) for xs in x]
    )
    torch.testing.assert_close(every(x, y), expected)


class Point(NamedTuple):
    x: Tensor
    y: Tensor


def test_tuples_lists_and_none() -> None:
    def f(pair: tuple[Tensor, tuple[Tensor, int]], several: list[Tensor], z: Tensor | None) -> tuple[Tensor, Point]:
        a, (b, n) = pair
        if z is not None:
            a = a + z
        return a * n, Point(several[0] + b, several[-1].sum())

    a, b, c, d = torch.randn(4, 2, 3).unbind()
    batched = rekindle.vmap(f, ((0, (None, None)), 1, None), (0, 0))
    z = torch.randn(3)
    whole, point = batched((a, (b, 3)), [c.t(), d.t()], z)
    each = [f((a[i], (b, 3)), [c[i], d[i]], z) for i in range(2)]
    torch.testing.assert_close(whole, torch.stack([first for first, _ in each]))
    torch.testing.assert_close(point.x, torch.stack([second.x for _, second in each]))
    torch.testing.assert_close(point.y, torch.stack([second.y for _, second in each]))
    assert type(point).__name__ == "Point"


# --------------------------------------------------------------------------------------------------------- control flow


def collatz(x: Tensor) -> Tensor:
    n = x
    steps = torch.zeros_like(x)
    while bool(n != 1):
        if bool(n % 2 == 0):
            n = n // 2
        else:
            n = 3 * n + 1
        steps = steps + 1
    return steps


def root(x: Tensor) -> tuple[Tensor, int]:
    guess = x
    count = 0
    for i in range(50):
        following = (guess + x / guess) / 2
        count += 1
        if bool((following - guess).abs().max() < 1e-6):
            break
        guess = following
    return guess, count


def refused(x: Tensor) -> Tensor:
    if bool(x.sum() < 0):
        raise ValueError("negative")
    return x.sqrt()


def rows(x: Tensor) -> Tensor:
    kept = [torch.zeros(2)]
    for i in range(x.size(0)):
        kept.append(x[i] * i)
    return torch.stack(kept)


def written(x: Tensor) -> Tensor:
    y = torch.zeros(3)
    y[0] = x.sum()
    y[1:] += x[:2]
    x.mul_(2)
    return y + x


def chosen_size(x: Tensor) -> Tensor:
    return x[: int(x[0].clamp(1, 3))].sum()


def test_examples_leave_loops_and_take_branches_each_at_its_time() -> None:
    batched = rekindle.vmap(collatz)
    numbers = torch.tensor([1, 2, 3, 27, 97])
    assert batched(numbers).tolist() == [0, 1, 7, 111, 118]
    assert batched.report.whole_loop is None


def test_a_branch_that_no_example_takes_raises_nothing() -> None:
    batched = rekindle.vmap(refused)
    x = torch.rand(4, 3)
    torch.testing.assert_close(batched(x), x.sqrt())
    with pytest.raises(ValueError, match=r"^negative$"):
        batched(torch.stack([x[0], -x[0]]))


@pytest.mark.parametrize("function", [rows, written, chosen_size, refused])
def test_programs_with_control_flow_lists_and_writes(function: Callable[..., Tensor]) -> None:
    torch.manual_seed(0)
    shape = (4, 5, 2) if function is rows else (4, 3)
    x = torch.rand(shape) * 3
    expected = torch.stack([function(each.clone()) for each in x])
    torch.testing.assert_close(rekindle.vmap(function)(x.clone()), expected)


def test_what_has_no_rule_is_computed_in_a_loop_and_the_report_says_so() -> None:
    def f(x: Tensor) -> Tensor:
        return torch.histc(x, 4).cumsum(0)

    batched = rekindle.vmap(f)
    x = torch.rand(3, 7)
    torch.testing.assert_close(batched(x), torch.stack([f(each) for each in x]))
    (line,) = [looped.range.line for looped in batched.report.looped]
    assert str(batched.report) == (
        "1 operators by rules: aten::cumsum\n"
        "1 in loops over the examples:\n"
        f"  aten::histc: there is no rule for it (line {line})"
    )
    told = rekindle.report(batched)
    assert [(each.operator.kind, each.operator.line) for each in told.one_by_one] == [("aten::histc", line)]
    assert str(rekindle.report(rekindle.vmap(f))) == (
        "vmap_f: the strategy is 'native', and no call has optimized it yet\n"
        "in loops over the examples of batches\n"
        "  there is no rule for it:\n"
        f"    test_vmap.py:{line}: return torch.histc(x, 4).cumsum(0)\n"
        "      aten::histc"
    )


def test_loops_of_batches_within_batches_are_told_too() -> None:
    def f(x: Tensor) -> Tensor:
        return torch.histc(x, 4)

    inner = rekindle.vmap(f)
    assert [loop.kind for loop in rekindle.vmap(inner).report.looped] == ["aten::histc"]

    def total(x: Tensor) -> Tensor:
        return inner(x).sum()

    assert [each.operator.kind for each in rekindle.report(rekindle.script(total)).one_by_one] == ["aten::histc"]


def test_numbers_that_differ_are_returned_as_tensors() -> None:
    batched = rekindle.vmap(root)
    x = torch.tensor([[1.0, 4.0], [9.0, 100.0], [1.0, 1.0]])
    guesses, counts = batched(x)
    torch.testing.assert_close(guesses, torch.stack([root(each)[0] for each in x]))
    assert counts.tolist() == [root(each)[1] for each in x]
    assert batched.report.whole_loop is None


def test_what_only_a_loop_can_do_is_a_loop_around_everything() -> None:
    def f(x: Tensor) -> Tensor:
        found = [x]
        if bool(x.sum() > 0):
            found.append(x * 2)
        return torch.stack(found).sum(0)

    batched = rekindle.vmap(f)
    x = torch.tensor([[1.0, 2.0], [-1.0, -2.0]])
    torch.testing.assert_close(batched(x), torch.stack([f(each) for each in x]))
    looped = batched.report.whole_loop
    assert looped is not None
    assert str(batched.report) == (
        "the whole program in a loop over the examples:\n"
        "  prim::vmap: aten::append writes to something where only some examples are "
        f"(line {looped.range.line})"
    )


def optional_number(x: Tensor) -> Tensor:
    best = None
    for row in x:
        if best is None:
            best = float(row.sum())
    return x if best is None else x * best


def best_so_far(x: Tensor) -> Tensor:
    best = None
    for row in x:
        value = float(row)
        if best is None or value > best:
            best = value
    return x if best is None else x * best


def sum_of_numbers(x: Tensor) -> Tensor:
    total = 0
    for row in x:
        total -= float(row.sum())
    return x * total


def number_of_two_types(x: Tensor) -> Tensor:
    total = 0
    for row in x:
        if row > 0:
            total += 1
        else:
            total -= 0.5
    return torch.tensor(total)


def masked(x: Tensor) -> Tensor:
    return x[~(x.isnan() | (x < 0))].relu().sum()


def masked_twice(x: Tensor) -> Tensor:
    y = x.clone()
    above = x > 1
    y[above] = x[above] * 2
    return y


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (optional_number, "a Optional[float] differs between the examples"),
        (best_so_far, "a Optional[float] differs between the examples"),
        (sum_of_numbers, "a Union[float, int] differs between the examples"),
        (number_of_two_types, "the branches return a Union[float, int] for some examples"),
        (masked, "results of a mask differ in size between the examples"),
        (masked_twice, "results of a mask differ in size between the examples"),
    ],
)
def test_numbers_and_sizes_that_differ_need_a_loop(function: Callable[[Tensor], Tensor], reason: str) -> None:
    batched = rekindle.vmap(function)
    x = torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, 6.0], [-1.0, -2.0, -3.0]])
    torch.testing.assert_close(batched(x), torch.stack([function(each) for each in x]))
    looped = batched.report.whole_loop
    assert looped is not None
    assert looped.reason == reason


def first_negative(x: Tensor, w: Tensor) -> tuple[Tensor, int]:
    steps = 0
    for i in range(3):
        if x[i] < 0:
            break
        w = w + x[i]
        steps += 1
    return w, steps


def two_ways_out(x: Tensor, w: Tensor) -> tuple[Tensor, int]:
    steps = 0
    for i in range(3):
        if x[i] < 0:
            break
        if w[i] < 0:
            break
        w = w + x[i]
        steps += 1
    return w, steps


def skips_and_leaves(x: Tensor, w: Tensor) -> tuple[Tensor, int]:
    total = 0
    for i in range(4):
        if w[i % 3] > i:
            continue
        total += i
        if total > 2 or bool(x[i % 3] > 1):
            break
    return w * total, total


@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("function", [first_negative, two_ways_out, skips_and_leaves])
def test_examples_that_leave_a_loop_over_elements(
    function: Callable[[Tensor, Tensor], tuple[Tensor, int]], in_dims: tuple[int | None, int | None]
) -> None:
    batched = rekindle.vmap(function, in_dims)
    for seed in range(5):
        torch.manual_seed(seed)
        x, w = (torch.randn(3) if dim is None else torch.randn(8, 3) for dim in in_dims)
        pairs = [(x if x.dim() == 1 else x[i], w if w.dim() == 1 else w[i]) for i in range(8)]
        expected = [function(*pair) for pair in pairs]
        values, steps = batched(x, w)
        torch.testing.assert_close(values, torch.stack([value for value, _ in expected]))
        found = steps.tolist() if isinstance(steps, Tensor) else [steps] * 8
        assert found == [each for _, each in expected]


def test_a_mask_that_is_an_argument() -> None:
    def f(x: Tensor, mask: Tensor) -> Tensor:
        return x[mask].sum()

    x = torch.tensor([[1.0, -2.0], [4.0, 5.0]])
    with pytest.raises(RuntimeError) as caught:
        rekindle.vmap(f)(x, x > 0)
    assert str(caught.value) == ("vmap: a mask that differs between the examples takes a different number from each")


def test_a_mask_that_nobody_uses() -> None:
    def f(x: Tensor) -> Tensor:
        x[x > 0]
        return x * 2

    batched = rekindle.vmap(f)
    torch.testing.assert_close(batched(torch.ones(2, 3)), torch.full((2, 3), 2.0))
    assert str(batched.report) == "1 operators by rules: aten::mul"


def test_what_a_batch_cannot_return() -> None:
    def f(x: Tensor) -> str:
        return "x"

    with pytest.raises(BatchingError) as caught:
        rekindle.vmap(f)
    assert str(caught.value).splitlines()[0] == "out_dims is 0 for the result, which is a str"


# --------------------------------------------------------------------------------------------------------------- chance


def test_random_numbers_are_refused_unless_something_is_said_about_them() -> None:
    def f(x: Tensor) -> Tensor:
        return torch.nn.functional.dropout(x, 0.5)

    with pytest.raises(BatchingError) as caught:
        rekindle.vmap(f)
    assert "aten::dropout draws random numbers" in str(caught.value)
    assert "Hint: say randomness='different' for numbers of its own for each example, or randomness='same'" in str(
        caught.value
    )
    torch.manual_seed(0)
    x = torch.ones(8, 100)
    same = rekindle.vmap(f, randomness="same")(x)
    assert (same == same[0]).all()
    different = rekindle.vmap(f, randomness="different")(x)
    assert not (different == different[0]).all()


def test_dropout_in_evaluation_draws_nothing() -> None:
    def f(x: Tensor) -> Tensor:
        return torch.nn.functional.dropout(x, 0.5, training=False) * 2

    x = torch.randn(2, 3)
    torch.testing.assert_close(rekindle.vmap(f)(x), x * 2)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.nn.functional.dropout(x, 0.0, True),
        lambda x: torch.nn.functional.feature_alpha_dropout(x, 0.0, True),
        lambda x: torch.nn.functional.rrelu(x),
    ],
)
@pytest.mark.parametrize("randomness", ["error", "same"])
def test_what_is_off_or_never_drops_draws_nothing(program: Callable[[Tensor], Tensor], randomness: Any) -> None:
    x = torch.randn(2, 3, 4)
    found = rekindle.vmap(program, randomness=randomness)(x)
    torch.testing.assert_close(found, torch.stack([program(each) for each in x]))


def test_numbers_made_from_nothing() -> None:
    def f(x: Tensor) -> Tensor:
        return x + torch.rand([3])

    torch.manual_seed(0)
    x = torch.zeros(5, 3)
    different = rekindle.vmap(f, randomness="different")(x)
    assert len(different.unique(dim=0)) == 5
    assert len(rekindle.vmap(f, randomness="same")(x).unique(dim=0)) == 1


# --------------------------------------------------------------------------------------------- what it is then good for


def test_it_is_a_program_like_any_other() -> None:
    x, *rest = arguments_of_two_layers()
    batched = rekindle.vmap(two_layers, (0, None, None, None, None))
    file = io.BytesIO()
    rekindle.save(batched, file)
    file.seek(0)
    torch.testing.assert_close(torch.jit.load(file)(x, *rest), batched(x, *rest))


def test_it_is_exported_like_any_other() -> None:
    x, *rest = arguments_of_two_layers()
    batched = rekindle.vmap(two_layers, (0, None, None, None, None))
    exported = rekindle.to_exported(batched, (x, *rest))
    torch.testing.assert_close(exported.module()(x, *rest), batched(x, *rest))


def test_gradients_go_through_it() -> None:
    def f(x: Tensor, w: Tensor) -> Tensor:
        return (x @ w).tanh().sum()

    x, w = torch.randn(4, 3), torch.randn(3, 2, requires_grad=True)
    (found,) = torch.autograd.grad(rekindle.vmap(f, (0, None))(x, w).sum(), w)
    (expected,) = torch.autograd.grad((x @ w).tanh().sum(), w)
    torch.testing.assert_close(found, expected)


# ------------------------------------------------------------------------------------------------------------ bad input


def add(x: Tensor, y: Tensor, n: int) -> Tensor:
    return x + y * n


@pytest.mark.parametrize(
    ("in_dims", "message"),
    [
        ((0, 0), "in_dims has 2 entries, and the function takes 3 arguments"),
        (None, "in_dims says of no argument that it differs between the examples"),
        ((0, None, 0), "in_dims is 0 for argument 'n', which is a int"),
        (((0, 1), 0, None), "in_dims has a tuple for argument 'x', which is a Tensor"),
    ],
)
def test_in_dims_that_do_not_fit(in_dims: object, message: str) -> None:
    with pytest.raises(BatchingError) as caught:
        rekindle.vmap(add, in_dims)  # type: ignore[arg-type]  # what is tested
    assert str(caught.value).splitlines()[0] == message


def test_batches_of_different_sizes() -> None:
    with pytest.raises(ValueError, match=r"^vmap: the batches differ in size: 3 and 4$"):
        rekindle.vmap(add)(torch.zeros(3), torch.zeros(4), 1)


def test_a_result_that_differs_cannot_be_the_same_for_all() -> None:
    with pytest.raises(BatchingError) as caught:
        rekindle.vmap(add, out_dims=None)
    assert str(caught.value).splitlines()[0] == (
        "out_dims says that a result is the same for all examples, and it differs between them"
    )


def test_dimensions_out_of_range_are_those_of_an_example() -> None:
    def f(x: Tensor) -> Tensor:
        return x.sum(-3)

    with pytest.raises(IndexError) as caught:
        rekindle.vmap(f)(torch.zeros(2, 3, 4))
    assert str(caught.value).splitlines()[-1] == (
        "Dimension out of range (expected to be in range of [-2, 1], but got -3)"
    )


def test_strides_are_refused() -> None:
    def f(x: Tensor) -> Tensor:
        return torch.as_strided(x, (2,), (1,))

    with pytest.raises(BatchingError) as caught:
        rekindle.vmap(f)
    lines = str(caught.value).splitlines()
    assert lines[0] == "aten::as_strided reads memory by strides, which are others in a batch"
    assert lines[-1] == "Hint: select, slice or unfold the tensor instead"


def test_indices_that_differ_and_that_do_not() -> None:
    def rows(x: Tensor, i: Tensor) -> Tensor:
        return x[i]

    def columns(x: Tensor, i: Tensor) -> Tensor:
        return x[:, i]

    def apart(x: Tensor, i: Tensor) -> Tensor:
        return x[i, :, i]

    torch.manual_seed(0)
    x, i = torch.randn(3, 4, 5, 6), torch.randint(0, 4, (3, 2))
    for f in (rows, columns, apart):
        for dims in ((0, 0), (0, None), (None, 0)):
            arguments = [x if dims[0] == 0 else x[0], i if dims[1] == 0 else i[0]]
            batched = rekindle.vmap(f, dims)
            each = [[a if d is None else a[n] for a, d in zip(arguments, dims, strict=True)] for n in range(3)]
            torch.testing.assert_close(batched(*arguments), torch.stack([f(*one) for one in each]))
            assert not batched.report.looped


def test_rows_of_numbers_in_tensors() -> None:
    def rows(x: Tensor, i: Tensor, j: Tensor):
        return x[i], x[:, i], x[..., i], x[i, j], x[i, :, j], x[i][0]

    def written(x: Tensor, i: Tensor, j: Tensor):
        x = x.clone()
        row = x[i]
        row.add_(1)
        x[j] = 0.0
        x[i, :, j] *= 2
        return x

    torch.manual_seed(0)
    x = torch.randn(3, 4, 4, 4)
    numbers, several = torch.tensor([1, 0, 3]), torch.tensor([[0, 1], [3, 3], [2, 0]])
    for f in (rows, written):
        for i, j in ((numbers, numbers.flip(0)), (numbers, several), (several, numbers), (several, several)):
            batched = rekindle.vmap(f, (0, 0, 0))
            expected = [f(*each) for each in zip(x, i, j, strict=True)]
            stacked = torch.stack(expected) if f is written else tuple(map(torch.stack, zip(*expected, strict=True)))
            torch.testing.assert_close(batched(x, i, j), stacked, rtol=0, atol=0)


def row_written(x: Tensor, i: Tensor):
    x = x.clone()
    x[int(i)].add_(1)
    return x


def items_written(x: Tensor, i: Tensor):
    x = x.clone()
    x[int(i), 0] = 0.0
    return x


def row_of_what_is_written(x: Tensor, i: Tensor):
    x = x.clone()
    row = x[int(i)]
    x.zero_()
    return row


def chosen_row_written(x: Tensor, i: Tensor):
    x = x.clone()
    row = x[0] if bool(i > 0) else x[1]
    row.add_(1)
    return x


def rows_written_in_loop(x: Tensor, i: Tensor):
    x = x.clone()
    for r in range(int(i)):
        x[r].add_(r)
    return x


def row_of_list_written(x: Tensor, i: Tensor):
    x = x.clone()
    rows = [x[0], x[1], x[2], x[3]]
    rows[int(i)].add_(1)
    return x


def row_of_tensor_index_of_what_is_written(x: Tensor, i: Tensor):
    x = x.clone()
    row = x[i]
    rows = [x[i]]
    x[i] = 0.5
    return row + rows[0] * x[i]


def slices_written(x: Tensor, i: Tensor):
    x = x.clone()
    x.narrow(0, int(i), 1).mul_(2)
    x[int(i) :].neg_()
    return x


@pytest.mark.parametrize(
    "program",
    [
        *(row_written, items_written, row_of_what_is_written, chosen_row_written, rows_written_in_loop),
        *(row_of_list_written, row_of_tensor_index_of_what_is_written, slices_written),
    ],
)
def test_views_that_differ_between_the_examples_are_views(program: Callable[..., Tensor]) -> None:
    torch.manual_seed(0)
    x, i = torch.randn(3, 4, 2), torch.tensor([1, 0, 3])
    expected = torch.stack([program(*each) for each in zip(x, i, strict=True)])
    torch.testing.assert_close(rekindle.vmap(program)(x, i), expected, rtol=0, atol=0)


def total_of_rows(x: Tensor, n: int):
    total = 0
    for i in range(n):
        total += x[i] * i
    return total


def chosen_by_the_example(x: Tensor, n: int):
    best = 0.0
    for v in x[:n]:
        if v > best:
            best = v
    return x * best


@pytest.mark.parametrize("program", [total_of_rows, chosen_by_the_example])
def test_a_number_until_a_tensor_takes_its_place(program: Callable[..., Tensor]) -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    for n in (1, 3):
        expected = torch.stack([program(each, n) for each in x])
        torch.testing.assert_close(rekindle.vmap(program, (0, None))(x, n), expected)


def test_a_result_that_is_a_number() -> None:
    for transformed in (rekindle.vmap(total_of_rows, (0, None)), rekindle.grad(total_of_rows)):
        with pytest.raises(TypeError) as caught:
            transformed(torch.ones(3, 4), 0)
        assert str(caught.value).splitlines()[0] == "total_of_rows returns a number here, not a Tensor"


def test_dims_of_dicts_and_lists_that_do_not_fit() -> None:
    def f(x: Tensor, parts: list[Tensor]) -> Tensor:
        return x + parts[0]

    with pytest.raises(BatchingError) as caught:
        rekindle.vmap(f, ({"a": 0}, 0))
    assert str(caught.value).splitlines()[0] == "in_dims has a dict for argument 'x', which is a Tensor"
    with pytest.raises(BatchingError) as caught:
        rekindle.vmap(f, {"x": 0})
    assert str(caught.value).splitlines()[0] == (
        "in_dims is a number or a tuple with an entry for each argument, not a dict"
    )


def in_parts(x: Tensor) -> tuple[Tensor, ...]:
    return torch.split(x, 1)


def in_parts_by_branch(x: Tensor) -> tuple[Tensor, ...]:
    if bool(x.sum() > 1):
        return torch.split(x, 1)
    return torch.split(x + 1, 1)


def by_name(x: Tensor) -> OrderedDict[str, Tensor]:
    found = OrderedDict([("b", x + 1)])
    found["a"] = x * 2
    return found


@pytest.mark.parametrize("program", [in_parts, in_parts_by_branch, by_name], ids=lambda each: each.__name__)
@pytest.mark.parametrize("dim", [0, 1])
def test_tuples_and_ordered_dicts_stay_what_they_are(program: Callable[..., Any], dim: int) -> None:
    """In the IR they are lists and dicts; by rules, and in a loop over the examples."""
    x = torch.tensor([[0.0, 1.0], [2.0, 3.0], [0.5, 0.25]])
    batched = rekindle.vmap(program, out_dims=dim)
    verify(batched.graph)
    found, alone = batched(x), [program(each) for each in x]
    assert type(found) is type(alone[0])
    if isinstance(found, dict):
        assert list(found) == ["b", "a"]
        found, alone = list(found.values()), [list(each.values()) for each in alone]
    for part, parts in zip(found, zip(*alone, strict=True), strict=True):
        torch.testing.assert_close(part, torch.stack(parts, dim))


def quotient(x: Tensor, y: Tensor) -> Tensor:
    return x / y


def product_added(x: Tensor, y: Tensor) -> Tensor:
    return torch.addcmul(x, x, y)


def chosen(x: Tensor, y: Tensor) -> Tensor:
    return torch.where(x > 2, x, y)


def clamped(x: Tensor, y: Tensor) -> Tensor:
    return torch.clamp(x, y.sum())


@pytest.mark.parametrize("program", [quotient, product_added, chosen, clamped])
@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("sizes", [((), ()), ((2,), ()), ((), (2,))], ids=str)
def test_dtypes_are_promoted_as_for_one_example(
    program: Callable[[Tensor, Tensor], Tensor],
    in_dims: tuple[int | None, int | None],
    sizes: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    batched = rekindle.vmap(program, in_dims)
    for first, second in ((torch.float16, torch.float64), (torch.float32, torch.float16)):
        x = torch.arange(1.0, 1 + math.prod((3, *sizes[0]))).reshape(3, *sizes[0]).to(first)
        y = torch.arange(1.0, 1 + math.prod((3, *sizes[1]))).reshape(3, *sizes[1]).to(second)
        of_example = [(x[0 if in_dims[0] is None else i], y[0 if in_dims[1] is None else i]) for i in range(3)]
        expected = torch.stack([program(*each) for each in of_example])
        found = batched(x[0] if in_dims[0] is None else x, y[0] if in_dims[1] is None else y)
        torch.testing.assert_close(found, expected)


def assigned_before_some_leave(x: Tensor) -> Tensor:
    for _ in range(2):
        for e in range(3):
            if x.mean() * e > 0.1:
                hit = e
                break
        else:
            x = x + hit
    return x


def test_a_variable_that_a_loop_may_find_unassigned() -> None:
    """The loop of which examples leave the iterations at different times starts with what has no value."""
    batch = torch.tensor([[1.0, 2.0], [0.2, 0.1]])
    expected = torch.stack([assigned_before_some_leave(x) for x in batch])
    torch.testing.assert_close(rekindle.vmap(assigned_before_some_leave)(batch), expected)
    with pytest.raises(UnboundLocalError, match="local variable 'hit'"):
        rekindle.vmap(assigned_before_some_leave)(-batch)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.argmax(x, keepdim=True),
        lambda x: torch.argmin(x, keepdim=True),
        lambda x: torch.argmax(x, 0, keepdim=True),
        lambda x: torch.quantile(x, 0.3, keepdim=True),
        lambda x: torch.quantile(x, torch.tensor(0.3)),
        lambda x: torch.quantile(x, torch.tensor([0.2, 0.5]), dim=0),
        lambda x: torch.nanquantile(x, torch.tensor([0.2, 0.5]), keepdim=True),
    ],
)
@pytest.mark.parametrize("sizes", [(3, 4), (3, 4, 5)], ids=str)
def test_reductions_over_all_elements(program: Callable[[Tensor], Tensor], sizes: tuple[int, ...]) -> None:
    batch = torch.randn(sizes)
    torch.testing.assert_close(rekindle.vmap(program)(batch), torch.stack([program(x) for x in batch]))


@pytest.mark.parametrize(
    "program",
    [
        lambda x, y: torch.diff(x, prepend=y, append=x[:, :1]),
        lambda x, y: torch.cross(x, x * 2),
        lambda x, y: torch.cross(x.t(), x.t() * 2, dim=1),
        lambda x, y: torch.take(x, torch.where(y > 0, 3, -3).to(torch.int64)),
        lambda x, y: x.index_fill(0, torch.where(y > 0, 1, -1).to(torch.int64).flatten(), 9.0),
        lambda x, y: torch.cat([x, y, torch.zeros(0) * y.sum()], 1),
    ],
)
@pytest.mark.filterwarnings("ignore:Using torch.cross without specifying the dim")
def test_arguments_that_are_easily_forgotten(program: Callable[[Tensor, Tensor], Tensor]) -> None:
    x, y = torch.randn(4, 3, 5), torch.randn(4, 3, 2)
    found = rekindle.vmap(program)(x, y)
    torch.testing.assert_close(found, torch.stack([program(*each) for each in zip(x, y, strict=True)]))


@pytest.mark.parametrize(
    ("program", "sizes"),
    [
        (lambda x, i: torch.take(x, i), (5,)),
        (lambda x, i: x.index_fill(0, i, 1.0), (5,)),
        (lambda x, i: torch.nn.functional.embedding(i, x), (5, 2)),
        (lambda x, i: torch.nn.functional.embedding(i - 7, x), (5, 2)),
        (lambda x, i: x.index_add(0, i - 7, torch.ones(2, 3)), (5, 3)),
        (lambda x, i: x.index_copy(0, i - 7, torch.ones(2, 3)), (5, 3)),
        (lambda x, i: x.index_add(0, i - 7, torch.ones(1, 4)), (5, 3)),
        (lambda x, i: torch.cat([x, x[0]]), (5, 3)),
    ],
)
def test_what_an_example_refuses_is_refused(
    program: Callable[[Tensor, Tensor], Tensor], sizes: tuple[int, ...]
) -> None:
    x, i = torch.randn(3, *sizes), torch.tensor([[7], [6], [5]])
    with pytest.raises((RuntimeError, IndexError)):
        torch.stack([program(*each) for each in zip(x, i, strict=True)])
    with pytest.raises((RuntimeError, IndexError)):
        rekindle.vmap(program)(x, i)


@pytest.mark.parametrize(("tables", "texts"), [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize(
    "f",
    [
        lambda table, text: torch.nn.functional.embedding(text, table, padding_idx=0),
        lambda table, text: torch.nn.functional.embedding(text, table, padding_idx=-1),
        lambda table, text: torch.nn.functional.embedding(text, table, scale_grad_by_freq=True),
    ],
)
def test_gradients_of_embeddings(tables: int | None, texts: int | None, f: Callable[[Tensor, Tensor], Tensor]) -> None:
    table = torch.randn(*[3, 4, 2][0 if tables == 0 else 1 :], requires_grad=True)
    text = torch.tensor([[0, 1, 1], [0, 0, 3], [2, 0, 0]])
    text = text if texts == 0 else text[1]
    of_each = [(table if tables is None else table[n], text if texts is None else text[n]) for n in range(3)]
    found, expected = rekindle.vmap(f, (tables, texts))(table, text), torch.stack([f(*each) for each in of_each])
    torch.testing.assert_close(found, expected)
    weights = torch.randn_like(found)
    (gradient,) = torch.autograd.grad((found * weights).sum(), table)
    torch.testing.assert_close(gradient, *torch.autograd.grad((expected * weights).sum(), table))


@pytest.mark.parametrize(
    "program",
    [
        lambda n, x: x * (n * 0.1),
        lambda n, x: x * (0.1 - n),
        lambda n, x: x + float(n < 16777216.5),
        lambda n, x: x * (n - float(x.sum())),
    ],
)
def test_ints_with_floats_are_computed_in_double(program: Callable[[int, Tensor], Tensor]) -> None:
    def f(x: Tensor) -> Tensor:
        return program(int(x.sum()), x)

    x = torch.tensor([[3.7], [16777217.3], [2.0]], dtype=torch.float64)
    torch.testing.assert_close(rekindle.vmap(f)(x), torch.stack([f(each) for each in x]), rtol=1e-14, atol=0)


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.movedim(0, -1),
        lambda x: x.movedim([0], [-1]),
        lambda x: x.squeeze(-1),
        lambda x: x.squeeze((0,)),
        lambda x: x.squeeze(()),
        lambda x: x.transpose(0, -1),
        lambda x: x.flip(0),
        lambda x: x.msort(),
        lambda x: torch.cosine_similarity(x, x + 1, 0),
        lambda x: torch.linalg.norm(x, dim=0, keepdim=True),
        lambda x: torch.aminmax(x, keepdim=True)[1],
        lambda x: torch.aminmax(x)[0],
    ],
)
def test_dimensions_of_examples_that_are_numbers(program: Callable[[Tensor], Tensor]) -> None:
    x = torch.randn(4)
    found = rekindle.vmap(program)(x)
    torch.testing.assert_close(found, torch.stack([program(each) for each in x]))


def test_extremes_keep_dimensions() -> None:
    x = torch.randn(4, 3, 2)
    found = rekindle.vmap(lambda x: torch.aminmax(x, keepdim=True))(x)
    torch.testing.assert_close(tuple(found), (x.amin((1, 2), True), x.amax((1, 2), True)))


@pytest.mark.parametrize(
    "program", [lambda x: x.squeeze(1), lambda x: x.transpose(0, 1), lambda x: x.flip(1), lambda x: x.swapaxes(0, 1)]
)
def test_dimensions_that_numbers_do_not_have(program: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(IndexError, match="Dimension out of range"):
        program(torch.tensor(1.0))
    with pytest.raises(IndexError, match="Dimension out of range"):
        rekindle.vmap(program)(torch.randn(4))
