"""What may be None, used as what it is else: what is inserted, what is raised, and what is refused still."""

from __future__ import annotations

import traceback
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

import rekindle
from rekindle.errors import RekindleError
from rekindle.runtime.executor import execute
from tests.support.frontend import compiled

X = torch.tensor([1.0, -2.0])


def kinds(text: str) -> list[str]:
    return [node.kind for node in compiled(text).graph.all_nodes()]


def raised(text: str, *arguments: object) -> str:
    with pytest.raises((TypeError, AttributeError)) as caught:
        execute(compiled(text), arguments)
    return f"{type(caught.value).__name__}: {caught.value}"


def test_one_check_serves_what_follows() -> None:
    text = "def f(x: Optional[Tensor]):\n    n = x.size(0)\n    return x.relu() + x[0] + n\n"
    assert kinds(text).count("prim::RaiseException") == 1


def test_a_branch_that_checks_does_not_check_for_what_is_behind() -> None:
    text = "def f(x: Optional[int], c: bool):\n    if c:\n        c = x > 1\n    return x + 1, c\n"
    assert kinds(text).count("prim::RaiseException") == 2
    assert raised(text, None, False).endswith("for +: 'NoneType' and 'int'")


def test_an_assignment_in_between_is_not_undone() -> None:
    text = "def f(x: Optional[int]):\n    return x + (x := 3) + x\n"
    assert execute(compiled(text), (1,)) == 7


def test_what_fits_is_not_checked() -> None:
    assert "prim::RaiseException" not in kinds("def f(x: Tensor, n: Optional[int]):\n    return torch.argmax(x, n)\n")
    assert "prim::RaiseException" not in kinds("def f(x: Optional[int]):\n    return x == 1, bool(x)\n")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("torch.relu(x)", "TypeError: relu(): argument 'input' (position 1) must be Tensor, not NoneType"),
        (
            "torch.stack(x)",
            "TypeError: stack(): argument 'tensors' (position 1) must be tuple of Tensors, not NoneType",
        ),
        ("torch.ones(2).unsqueeze(x)", "TypeError: unsqueeze(): argument 'dim' (position 1) must be int, not NoneType"),
        ("torch.arange(x)", "TypeError: arange(): argument 'end' (position 1) must be Number, not NoneType"),
        ("x.size()", "AttributeError: 'NoneType' object has no attribute 'size'"),
        ("[1, 2][x]", "TypeError: list indices must be integers or slices, not NoneType"),
        ("int(x)", "TypeError: int() argument must be a string, a bytes-like object or a real number, not 'NoneType'"),
        ("[y for y in x]", "TypeError: 'NoneType' object is not iterable"),
        ("[1] + x", 'TypeError: can only concatenate list (not "NoneType") to list'),
        ("2 ** x", "TypeError: unsupported operand type(s) for ** or pow(): 'int' and 'NoneType'"),
        ("g(x)", "TypeError: g(): argument 'n' (position 1) must be int, not NoneType"),
    ],
)
def test_what_is_raised(text: str, error: str) -> None:
    kind = "Tensor" if "size" in text or "relu" in text else "int"
    kind = "List[Tensor]" if "stack" in text else "List[int]" if "[1] +" in text or " in x" in text else kind
    program = f"def g(n: int):\n    return n\n\ndef f(x: Optional[{kind}]):\n    return {text}\n"
    assert raised(program, None) == error


@pytest.mark.parametrize("index", ["0", "...", "1:", "torch.tensor([1])"])
@pytest.mark.parametrize("type", ["float", "Tensor"])
def test_none_is_no_item_of_a_tensor(index: str, type: str) -> None:
    program = f"def f(x: Optional[{type}]):\n    t = torch.ones(3)\n    t[{index}] = x\n    return t\n"
    assert raised(program, None) == "TypeError: can't assign a NoneType to a Tensor"


def test_a_result_that_is_declared_otherwise() -> None:
    program = "def f(d: Dict[str, int]) -> int:\n    return d.get('a')\n"
    assert execute(compiled(program), ({"a": 1},)) == 1
    assert raised(program, {}) == "TypeError: the function is declared to return int, but returns None"


def test_where_it_is_raised() -> None:
    def doubled(x: torch.Tensor | None) -> torch.Tensor:
        return x * 2

    scripted: Any = rekindle.script(doubled)
    with pytest.raises(TypeError) as caught:
        scripted(None)
    lines = [frame.line for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert "return x * 2" in lines


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "def f(x: Optional[int]):\n    if x is None:\n        return -x\n    return 0\n",
            "Hint: x may be None; check it first: if x is not None",
        ),
        (
            "def f(xs: List[int], x: Optional[int]):\n    return xs.count(x)\n",
            "Hint: x may be None; check it first: if x is not None",
        ),
        (
            "def f(x: Optional[int]):\n    y: int = x\n    return y\n",
            "'y' is annotated as int, but the value is Optional[int]",
        ),
        ("def f(x: Optional[int]):\n    return x.size()\n", "a value of type int has no attribute or method 'size'"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(RekindleError) as caught:
        compiled(text)
    assert message in str(caught.value)


def test_given_an_argument_nothing_is_asked() -> None:
    program: Any = rekindle.script(doubled_or_not)
    exported = rekindle.to_exported(program, (X, X))
    assert torch.equal(exported.module()(X, X), doubled_or_not(X, X))
    assert not [node for node in exported.graph.nodes if "assert" in str(node.target)]


def doubled_or_not(x: torch.Tensor, y: torch.Tensor | None) -> torch.Tensor:
    return x * y + y


def test_archives_mean_what_torchscript_means(tmp_path: Path) -> None:
    """A text that torch.jit refuses is refused: nothing is checked for it."""
    path, changed = tmp_path / "f.pt", tmp_path / "changed.pt"
    rekindle.save(rekindle.script(Adds()), path)
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if item.filename.endswith(".py"):
                data = data.replace(b"n: int)", b"n: Optional[int])")
            new.writestr(item, data)
    with pytest.raises(RekindleError) as caught:
        rekindle.load(changed)(X, 1)
    assert "Hint: n may be None; check it first: if n is not None" in str(caught.value)


class Adds(torch.nn.Module):
    def forward(self, x: torch.Tensor, n: int) -> torch.Tensor:
        return torch.add(x, n)
