"""Classes that are written in C++, whose schemas the user requests from PyTorch before there is an object."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import rekindle
from rekindle.errors import UndefinedNameError, UnknownLibraryClassError, UnsupportedError
from rekindle.ir.text.type_parser import custom_class
from rekindle.ir.types import LIBRARY_CLASSES
from rekindle.ops.tensor import torchbind_objects
from tests.archive.archives import members_of, with_members
from tests.support.messages import message_of

ReduceOp = torch.classes.c10d.ReduceOp
WorkerInfo = torch.classes.dist_rpc.WorkerInfo
SELF = f"{LIBRARY_CLASSES}c10d.ReduceOp _0"
HINT = (
    "Hint: register the schemas before this is compiled: "
    "rekindle.add_torchbind_schemas(lambda: torch._C._jit_get_custom_class_schemas())"
)


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torchbind_objects, "_SOURCES", [])
    monkeypatch.setattr(torchbind_objects, "_STATIC", {})
    for name in ("c10d.ReduceOp", "dist_rpc.WorkerInfo"):
        monkeypatch.setattr(custom_class(f"{LIBRARY_CLASSES}{name}"), "library_methods", None)


@pytest.fixture
def registry() -> None:
    rekindle.add_torchbind_schemas(lambda: torch._C._jit_get_custom_class_schemas())


class Counting(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        operation = ReduceOp()
        if x.sum() > 0:
            operation = ReduceOp()
        return x + operation.op()


@pytest.mark.usefixtures("registry")
def test_objects_are_made_and_asked() -> None:
    scripted, x = rekindle.script(Counting()), torch.ones(3)
    for _ in range(4):
        assert torch.equal(scripted(x), Counting()(x))
    nodes = [node.kind for node in scripted.graph.nodes]
    assert nodes.count("prim::CreateObject") == 1
    assert scripted.code.count(f"{LIBRARY_CLASSES}c10d.ReduceOp.__new__({LIBRARY_CLASSES}c10d.ReduceOp)") == 2


@pytest.mark.usefixtures("registry")
def test_archives_in_both_directions() -> None:
    x = torch.ones(3)
    ours = rekindle.script(Counting()).save_to_buffer()
    theirs = torch.jit.script(Counting()).save_to_buffer()
    for archive in (ours, theirs):
        assert torch.equal(torch.jit.load(io.BytesIO(archive))(x), x)
        loaded = rekindle.load(archive)
        for _ in range(3):
            assert torch.equal(loaded(x), x)
    assert "prim::CreateObject" in str(rekindle.load(theirs).graph)


@pytest.mark.usefixtures("registry")
def test_arguments_of_constructors() -> None:
    def made(name: str, number: int) -> WorkerInfo:
        return WorkerInfo(name, number)

    def wrong(name: str) -> WorkerInfo:
        return WorkerInfo(name)

    scripted: Any = rekindle.script(made)
    assert scripted("a", 3)._type().qualified_name() == f"{LIBRARY_CLASSES}dist_rpc.WorkerInfo"
    assert message_of(RuntimeError, lambda: rekindle.script(wrong)).startswith(
        "'__init__' cannot be called with (str): argument '_2' is missing."
    )


@pytest.mark.usefixtures("registry")
def test_methods_that_there_are_not() -> None:
    def wrong() -> int:
        return ReduceOp().operation()

    with pytest.raises(UndefinedNameError, match=r"'ReduceOp' has no method or property 'operation'") as caught:
        rekindle.script(wrong)
    assert caught.value.hint == "its methods are __init__, op"


def of_texts() -> Iterator[str]:
    yield f"limit_getter({SELF}) -> int _0"
    yield f"limit_setter({SELF}, int _1) -> NoneType _0"
    yield f"__len__({SELF}) -> int _0"
    yield f"__getitem__({SELF}, Any index) -> Tensor _0"
    yield f"__contains__({SELF}, str name) -> bool _0"
    yield f"unheard_of({SELF}, UnheardOf name) -> bool _0"


def test_properties_and_operators() -> None:
    """What a program says in Python's words are methods of the class."""

    def said(held: ReduceOp) -> torch.Tensor:
        held.limit = held.limit + 1
        assert len(held) > 0
        return held["a"] if "a" in held else held[1]

    rekindle.add_torchbind_schemas(of_texts)
    code = rekindle.script(said).code
    for call in ("limit_getter()", "limit_setter(torch.add(", "__len__()", "__getitem__(1, )", "__contains__("):
        assert f"(held).{call}" in code


def test_a_class_that_nobody_told_is_one_problem() -> None:
    def said(held: ReduceOp, others: list[ReduceOp]) -> int:
        total = held.op()
        for each in others:
            total += each.op()
        return total

    with pytest.raises(UnknownLibraryClassError) as caught:
        rekindle.script(said)
    assert len(caught.value.errors) == 1
    text = str(caught.value)
    assert text.startswith(
        "nothing is known of the methods of 'torch.classes.c10d.ReduceOp', a class written in C++, before there is an "
        "object of it\n"
    )
    assert text.endswith(HINT)
    rekindle.add_torchbind_schemas(lambda: torch._C._jit_get_custom_class_schemas())
    assert rekindle.script(said)(ReduceOp(), [ReduceOp()]) == 0


def test_what_follows_in_an_archive_is_not_told() -> None:
    """Results of unknown methods are assumed to be Tensors, which have no such attributes."""
    archive = torch.jit.script(Counting()).save_to_buffer()
    members = members_of(archive)
    (name,) = (name for name in members if name.endswith("test_library_schemas.py"))
    asked = members[name].replace(b".op()", b".op().first().second()")
    loaded = rekindle.load(with_members({**members, name: asked}))
    with pytest.raises(UnknownLibraryClassError, match="nothing is known of the methods of") as caught:
        loaded(torch.ones(3))
    assert len(caught.value.errors) == 1
    absent = rekindle.load(with_members({**members, name: asked.replace(b"c10d", b"metatensor")}))
    with pytest.raises(UnknownLibraryClassError) as caught:
        absent(torch.ones(3))
    assert str(caught.value).splitlines()[0] == (
        "The class 'torch.classes.metatensor.ReduceOp' is not there: the package 'metatensor-torch' brings it."
    )
    assert str(caught.value).endswith("Hint: Install 'metatensor-torch' and import it, then call this again.")


# ------------------------------------------------------------------------- the classes that PyTorch tests its own with

LIBRARY = Path(torch.__file__).parent / "lib" / "libtorchbind_test.so"


def double_sum(x: int) -> tuple[int, int, bool]:
    one = Classes._Foo(5, 3)
    one.increment(x)
    other = Classes._Foo(1, 2)
    return one.info(), one.combine(other), one == other


def texts(parts: list[str]) -> tuple[str, str, str, float]:
    stack = Classes._StackString(parts)
    stack.push("z")
    other = stack.clone()
    other.merge(Classes._StackString(["q"]))
    number = stack.return_a_tuple()[0]
    return stack.pop(), other.top(), str(other), number


def statics(x: int) -> tuple[int, int, int]:
    return (
        Classes._StaticMethod.staticMethod(x),
        Classes._StaticMethod.staticMethodWithDefault(x),
        Classes._StaticMethod.staticMethodWithDefault(input=x, scale=4),
    )


def defaults(x: int) -> tuple[int, int, int, int]:
    first = Classes._DefaultArgs()
    first.increment(x)
    second = Classes._DefaultArgs(start=x)
    second.decrement(val=2)
    return first.scale_add(1), first.scale_add(1, scale=3), second.divide(), second.divide(2)


def properties(x: int) -> tuple[int, int, int]:
    held = Classes._FooGetterSetter(x, 2)
    held.x = held.x + 10
    other = Classes._FooReadWrite(x, 2)
    other.x += 3
    return held.x, held.y, other.x


def queues(x: torch.Tensor) -> tuple[torch.Tensor, int, bool, float]:
    queue = Classes._TensorQueue(x)
    queue.push(x * 2)
    queue.push(x * 3)
    y = queue.pop()
    return y + queue.top(), queue.size(), queue.is_empty(), queue.float_size()


def in_a_loop(n: int) -> int:
    held = Classes._Foo(1, 2)
    for step in range(n):
        held = Classes._Foo(held.info(), step)
        if step == 3:
            held = Classes._Foo(4, 1)
    return held.info()


Classes = torch.classes._TorchScriptTesting
CALLS: dict[Any, tuple[Any, ...]] = {
    double_sum: (2,),
    texts: (["a"],),
    statics: (3,),
    defaults: (4,),
    properties: (1,),
    queues: (torch.ones(2),),
    in_a_loop: (5,),
}


@pytest.fixture
def test_library(registry: None) -> None:
    torch.ops.load_library(str(LIBRARY))


needs_test_library = pytest.mark.skipif(not LIBRARY.exists(), reason="PyTorch's wheel has no library of test classes")


@needs_test_library
@pytest.mark.usefixtures("test_library")
@pytest.mark.parametrize("function", CALLS)
def test_as_in_eager_and_torch_jit(function: Any) -> None:
    args = CALLS[function]
    expected, scripted = function(*args), rekindle.script(function)
    for _ in range(4):
        assert str(scripted(*args)) == str(expected)
    assert str(torch.jit.script(function)(*args)) == str(expected)
    if function is not statics:  # as in torch.jit, a program with static methods cannot be saved
        archive = scripted.save_to_buffer()
        assert str(rekindle.load(archive)(*args)) == str(expected)
        assert str(torch.jit.load(io.BytesIO(archive))(*args)) == str(expected)


@needs_test_library
@pytest.mark.usefixtures("test_library")
def test_properties_that_cannot_be_assigned() -> None:
    def wrong() -> int:
        held = Classes._FooReadWrite(1, 2)
        held.y = 3
        return held.y

    assert message_of(UnsupportedError, lambda: rekindle.script(wrong)).splitlines()[0] == (
        "'_FooReadWrite' has no property 'y' that can be assigned"
    )
