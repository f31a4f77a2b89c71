"""What has no form in Export IR is refused: whole texts, with places and ways out."""
# ruff: noqa: T201 - the programs print, which is refused

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, Dict, List, Optional

import pytest
import torch
from torch import Tensor
from torch.export import Dim

import rekindle

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")  # PyTorch's own

X = torch.ones(3, 4)


def told(program: Any, *args: Any) -> str:
    """The text of the refusal, without the folder and the numbers of lines."""
    with pytest.raises(rekindle.errors.ExportError) as caught:
        rekindle.to_exported(rekindle.script(program), args)
    lines = str(caught.value).splitlines()
    return "\n".join(line.split(", line")[0].replace(str(Path(__file__)), "here") for line in lines)


@torch.jit.ignore
def in_python(x: Tensor) -> Tensor:
    return torch.from_numpy(x.numpy() + 1)


def gradient(x: Tensor) -> Tensor:
    found = torch.autograd.grad([x.sum()], [x])[0]
    assert found is not None
    return found


def much(x: Tensor) -> Tensor:
    print(x)
    while x.sum() < 100:
        x = torch.cat([x, x + 1])
    x = in_python(x.detach()).requires_grad_()
    parts = [x, gradient(x)]
    if x.sum() < 0:
        in_python(x)
    return parts[int(x.min()) // 100]


def test_all_reasons_are_told() -> None:
    assert (
        told(much, X)
        == """\
'much' cannot be exported, for 6 reasons.

1. this prints, and an exported program cannot
  File "here"
        print(x)
        ^^^^^
Hint: remove the call

2. this loop, whose trip count is data-dependent, changes the kind of what it carries: \
a tensor of shape [3, 4] before an iteration and [6, 4] after it
  File "here"
        while x.sum() < 100:
        ^^^^^^^^^^^^^^^^^^^^
Hint: give the variables before the loop values of the same kinds and shapes as it leaves, and write to a tensor \
of the full size instead of appending to a list

3. this calls Python, and an exported program cannot
  File "here"
        x = in_python(x.detach()).requires_grad_()
            ^^^^^^^^^
Hint: compile the function too: take the @ignore off it; or register it as an operator with torch.library

4. this computes gradients while the program runs, and an exported program cannot
  File "here"
        found = torch.autograd.grad([x.sum()], [x])[0]
                ^^^^^^^^^^^^^^^^^^^
'gradient' is called here:
  File "here"
        parts = [x, gradient(x)]
                    ^^^^^^^^
Hint: take the loss out of the program and differentiate there, or make a program of the gradients with \
rekindle.grad

5. this calls Python, and an exported program cannot
  File "here"
            in_python(x)
            ^^^^^^^^^
Hint: compile the function too: take the @ignore off it; or register it as an operator with torch.library

6. '__getitem__' needs to know a data-dependent number
  File "here"
        return parts[int(x.min()) // 100]
               ^^^^^^^^^^^^^^^^^^^^^^^^^^
Hint: take it from a shape or an argument instead of the elements of a tensor, or give its range with an \
assert before"""
    )


def seeded(x: Tensor) -> Tensor:
    torch.manual_seed(3)
    return x + torch.rand(4)


def test_seeds() -> None:
    assert (
        told(seeded, X)
        == """\
'seeded' cannot be exported: this seeds a generator of random numbers, and an exported program cannot
  File "here"
        torch.manual_seed(3)
        ^^^^^^^^^^^^^^^^^
Hint: seed it before the program is called"""
    )


def none_or_tensor(x: Tensor) -> Optional[Tensor]:
    if x.sum() > 0:
        return None
    return x


def test_branches_that_cannot_be_unified() -> None:
    assert (
        told(none_or_tensor, X)
        == """\
'none_or_tensor' cannot be exported: the branches of this data-dependent 'if' \
come to None here and a Tensor there
  File "here"
        if x.sum() > 0:
        ^^^^^^^^^^^^^^^
Hint: return values of the same kind from both: \
a Tensor in place of None, lists of the same length, one dtype, numbers in place of strings"""
    )


def two_or_one(x: Tensor) -> List[Tensor]:
    found = [x]
    if x.sum() > 0:
        found.append(x + 1)
    return found


def in_another_order(x: Tensor) -> Dict[str, Tensor]:
    found: Dict[str, Tensor] = {}
    if x.sum() > 0:
        found["a"], found["b"] = x, x + 1
    else:
        found["b"], found["a"] = x, x + 1
    return found


@pytest.mark.parametrize(
    ("program", "difference"),
    [
        (two_or_one, "a list of 2 elements here and 1 there"),
        (in_another_order, "a dict with other keys, or in another order, here than there"),
    ],
)
def test_containers_of_before_that_branches_fill_in_other_ways(program: Callable[..., Any], difference: str) -> None:
    assert (
        told(program, X)
        == f"""\
'{program.__name__}' cannot be exported: the branches of this data-dependent 'if' come to {difference}
  File "here"
        if x.sum() > 0:
        ^^^^^^^^^^^^^^^
Hint: return values of the same kind from both: \
a Tensor in place of None, lists of the same length, one dtype, numbers in place of strings"""
    )


def keeps_some(x: Tensor) -> Tensor:
    found: List[Tensor] = []
    for i in range(x.size(0)):
        if x[i].sum() > 0:
            found.append(x[i])
    return torch.stack(found)


def test_what_follows_from_a_reason_is_none() -> None:
    """The tracer complains of the numbers of the example that it sees from then on."""
    with pytest.raises(rekindle.errors.ExportError) as caught:
        rekindle.to_exported(rekindle.script(keeps_some), (X,), dynamic_shapes=({0: Dim("rows", min=2, max=9)},))
    assert [problem.message.split(":")[0] for problem in caught.value.problems] == [
        "the branches of this data-dependent 'if' come to a list of 1 elements here and 0 there",
        "AssertionError",
    ]


def halves(x: Tensor) -> Tensor:
    return x[: x.size(0) // 2].sum(0)


def test_what_the_tracer_says_of_sizes() -> None:
    with pytest.raises(rekindle.errors.ExportError) as caught:
        rekindle.to_exported(rekindle.script(halves), (torch.ones(6, 4),), dynamic_shapes=({0: Dim("n", min=2)},))
    first, *others, last = str(caught.value).splitlines()
    assert first == "'halves' cannot be exported: PyTorch's exporter says: Constraints violated (n)!"
    assert "Suggested fixes:" in others
    assert last.startswith("Hint: give each of these sizes a range in which all conditions above hold")
    assert not any("error above" in line for line in others)


def starts_of_rows(x: Tensor) -> Tensor:
    rows: list[Tensor] = []
    for i in range(x.size(0)):
        if x[i].sum() > 0:
            break
        rows.append(x[i])
    return torch.stack(rows)


def test_what_the_tracer_logs_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    logger.addHandler(caplog.handler)
    try:
        with pytest.raises(rekindle.errors.ExportError, match="stack expects a non-empty TensorList"):
            rekindle.to_exported(rekindle.script(starts_of_rows), (torch.ones(3, 2),))
    finally:
        logger.removeHandler(caplog.handler)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_the_example_is_a_tuple() -> None:
    with pytest.raises(TypeError, match=r"are a tuple, for one argument \(x,\), not a value of class 'Tensor'"):
        rekindle.to_exported(rekindle.script(halves), torch.ones(6, 4))


def writes_to_either(x: Tensor) -> Tensor:
    y = x
    if x.sum() > 0:
        y = x + 1
    y.add_(1)
    return x


def test_what_may_share_memory_is_not_written_to() -> None:
    assert (
        told(writes_to_either, X)
        == """\
'writes_to_either' cannot be exported: this writes to a tensor that may share memory \
with another one, which is data-dependent
  File "here"
        y.add_(1)
        ^^^^^^
Hint: write to a copy: x = x.clone()"""
    )


def raises(x: Tensor) -> Tensor:
    if x.dim() == 2:
        raise ValueError("no")
    return x


def appends(xs: List[Tensor]) -> int:
    xs.append(xs[0])
    return len(xs)


@pytest.mark.parametrize(
    ("program", "argument", "message"),
    [
        (raises, X, "the program raises for these arguments: no"),
        (appends, [X], "the program changes which elements the argument 'xs' has"),
    ],
)
def test_others(program: Callable[..., Any], argument: Any, message: str) -> None:
    assert message in told(program, argument)


class Cache(torch.nn.Module):
    kept: Optional[Tensor]

    def __init__(self) -> None:
        super().__init__()
        self.kept = None

    def forward(self, x: Tensor) -> Tensor:
        self.kept = x
        return x


def test_attributes_that_no_buffer_holds() -> None:
    assert (
        told(Cache(), X)
        == """\
'forward' cannot be exported: the program changes the attribute 'self.kept' so that a buffer \
cannot hold it: None is replaced by a Tensor
  File "here"
            self.kept = x
            ^^^^^^^^^
Hint: keep a Tensor of one shape and dtype \
there from the start, or pass the value in and return the new one"""
    )


def test_numbers_and_strings_are_checked() -> None:
    def scaled(x: Tensor, by: float, how: str) -> Tensor:
        return x * by if how == "mul" else x + by

    module = rekindle.to_exported(rekindle.script(scaled), (X, 2.0, "mul")).module()
    assert torch.equal(module(X, 2.0, "mul"), X * 2)
    for other in ((X, 3.0, "mul"), (X, 2.0, "add"), (torch.ones(2, 4), 2.0, "mul")):
        with pytest.raises(AssertionError, match="Guard failed"):
            module(*other)


def test_what_is_not_compiled() -> None:
    with pytest.raises(TypeError, match="takes a compiled module, method or function, not function; compile it first"):
        rekindle.to_exported(none_or_tensor, (X,))


def test_none_enums_and_dtypes_are_checked() -> None:
    def given(x: Tensor, y: Optional[Tensor]) -> Tensor:
        if y is not None:
            return x + y
        return x.float() if x.is_floating_point() else x * 2

    module = rekindle.to_exported(rekindle.script(given), (X, None)).module()
    assert torch.equal(module(X, None), X)
    with pytest.raises(AssertionError, match="Guard failed: y is None"):
        module(X, X)
    with pytest.raises(RuntimeError, match="Tensor dtype mismatch"):
        module(X.long(), None)


def test_ranks_are_checked(tmp_path: Path) -> None:
    def given(x: Tensor, pair: tuple[Tensor, Tensor]) -> Tensor:
        return (x * 2 if x.dim() == 1 else x) + pair[1]

    one, two = torch.ones(2), torch.ones(2, 2)
    program = rekindle.to_exported(rekindle.script(given), (one, (one, two)))
    torch.export.save(program, tmp_path / "given.pt2")
    for module in (program.module(), torch.export.load(tmp_path / "given.pt2").module()):
        assert torch.equal(module(one, (one, two)), two * 3)
        with pytest.raises(AssertionError, match=r"Guard failed: x.dim\(\) == 1"):
            module(two, (one, two))
        with pytest.raises(AssertionError, match=r"Guard failed: pair\[1\].dim\(\) == 2"):
            module(one, (one, two[..., None]))


class Side(Enum):
    LEFT = 1
    RIGHT = 2


def test_enums_are_checked() -> None:
    def moved(x: Tensor, side: Side) -> Tensor:
        return x - 1 if side == Side.LEFT else x + 1

    program = rekindle.to_exported(rekindle.script(moved), (X, Side.LEFT))
    module = program.module()
    assert torch.equal(module(X, Side.LEFT), X - 1)
    with pytest.raises(AssertionError, match="Guard failed"):
        module(X, Side.RIGHT)
    assert torch.equal(program.run_decompositions().module()(X, Side.LEFT), X - 1)


def test_hooks() -> None:
    class Hooked(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2

    def before(self: Any, given: tuple[Tensor]) -> tuple[Tensor]:
        return (given[0] + 10,)

    module = Hooked()
    module.register_forward_pre_hook(before)
    compiled = rekindle.script(module)
    assert torch.equal(rekindle.to_exported(compiled, (X,)).module()(X), compiled(X))
    compiled.register_forward_hook(lambda module, given, result: result + 1)
    with pytest.raises(rekindle.errors.ExportError, match="hooks that were registered after it was compiled"):
        rekindle.to_exported(compiled, (X,))


@pytest.mark.parametrize(
    "export", [lambda m: rekindle.to_exported(m, (X,)), lambda m: rekindle.to_exported(m.forward, (X,))]
)
def test_hooks_of_parts(export: Any) -> None:
    """A call raises while the hook is there; the export does not leave it out silently either."""
    compiled = rekindle.script(torch.nn.Sequential(torch.nn.ReLU()))
    handle = compiled[0].register_forward_hook(lambda module, given, result: result + 1)
    with pytest.raises(rekindle.errors.ExportError) as caught:
        export(compiled)
    assert str(caught.value) == (
        "'forward' cannot be exported: the part '0' has hooks that were registered after it was compiled, and an "
        "exported program calls no Python\n"
        "Hint: register them before, so that they are compiled too, or remove them: handle.remove()"
    )
    handle.remove()
    assert torch.equal(export(compiled).module()(X), compiled(X))
