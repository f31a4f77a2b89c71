"""What reaches beyond a program: exceptions, prints, warnings, files, devices, generators, modes, results that come
later."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from rekindle.errors import Source
from rekindle.ir.graph import Graph
from rekindle.ir.scalar_types import DTYPE_NUMBERS
from rekindle.ir.types import INT, STRING
from rekindle.ops.python.asynchrony import Await, Call
from rekindle.ops.python.exceptions import EXCEPTION_CLASSES, UnknownExceptionError
from rekindle.ops.python.printing import STATISTICS
from tests.ops.calling import call, operator

# ---------------------------------------------------------------------------------------------------------- exceptions


class OutOfPatience(Exception):
    pass


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("ValueError", ValueError),
        ("builtins.KeyError", KeyError),
        ("AssertionError", AssertionError),
        ("StopIteration", StopIteration),
        (None, RuntimeError),
    ],
)
def test_exceptions_are_of_their_python_class(name: str | None, error: type[BaseException]) -> None:
    with pytest.raises(error) as raised:
        call("prim::RaiseException", "no", name)
    assert type(raised.value) is error
    assert raised.value.args == ("no",)


def test_an_exception_without_a_message_has_no_arguments() -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        call("prim::RaiseException", "", "ZeroDivisionError")
    assert raised.value.args == ()


def test_exceptions_of_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXCEPTION_CLASSES, "package.OutOfPatience", OutOfPatience)
    with pytest.raises(OutOfPatience) as raised:
        call("prim::RaiseException", "waited", "package.OutOfPatience")
    assert str(raised.value) == "waited"


@pytest.mark.parametrize("name", ["package.Lost", "builtins.print", "len"])
def test_exceptions_whose_class_is_not_known(name: str) -> None:
    with pytest.raises(UnknownExceptionError) as raised:
        call("prim::RaiseException", "waited", name)
    assert str(raised.value) == f"{name}: waited"
    assert isinstance(raised.value, RuntimeError)


# ---------------------------------------------------------------------------------------------------- prints, warnings


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    call("prim::Print", "a", 1, 2.0, None, [1.0], outputs=[])
    call("prim::Print", outputs=[])
    assert capsys.readouterr().out == "a 1 2.0 None [1.0]\n\n"


def _warn(filename: str | None, message: str) -> None:
    source = Source("first\nsecond\n", filename, 10)
    graph = Graph()
    node = graph.create("aten::warn", [graph.add_input(type=STRING), graph.add_input(type=INT)], types=[])
    node.set_range(source.range(6, 9))
    operator("aten::warn").operation_of(graph.insert_node(node))(message, 2)


def test_warnings_stand_at_the_line_of_the_program() -> None:
    with pytest.warns(UserWarning, match="^careful$") as found:
        _warn("program.py", "careful")
    assert [(w.filename, w.lineno) for w in found] == [("program.py", 11)]


def test_a_warning_is_given_once_a_place_where_the_filter_says_so() -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        for _ in range(3):
            _warn("once.py", "careful")
    assert len(found) == 1


def test_warnings_of_programs_without_a_file() -> None:
    with pytest.warns(UserWarning, match="^careful$"):
        _warn(None, "careful")


def test_files(tmp_path: Path) -> None:
    call("aten::save", {"x": torch.ones(2)}, str(tmp_path / "x.pt"))
    assert torch.load(tmp_path / "x.pt")["x"].tolist() == [1.0, 1.0]


def test_statistics_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STATISTICS, "calls", 0)
    call("prim::AddStatValue", "calls", 2)
    call("prim::AddStatValue", "calls", 3)
    assert STATISTICS["calls"] == 5
    assert call("prim::TimePoint") <= call("prim::TimePoint")


SIDE_EFFECTS = [
    *("prim::Print", "prim::RaiseException", "prim::SetAttr", "prim::Enter", "prim::Exit", "prim::PythonOp"),
    *("aten::warn", "aten::save", "aten::manual_seed", "aten::set_grad_enabled", "aten::backward", "aten::wait"),
    "prim::AddStatValue",
]


@pytest.mark.parametrize("name", SIDE_EFFECTS)
def test_effects_are_told(name: str) -> None:
    assert operator(name).has_side_effects


@pytest.mark.parametrize("name", ["aten::add.int", "prim::ListConstruct", "prim::TupleIndex", "aten::append.t"])
def test_what_has_no_effects_beyond_its_schema(name: str) -> None:
    assert not operator(name).has_side_effects


# ------------------------------------------------------------------------------------------ devices, generators, modes


def test_devices() -> None:
    assert call("aten::device", "cpu") == torch.device("cpu")
    device = call("aten::device.with_index", "cuda", 1)
    assert device == torch.device("cuda:1")
    assert call("prim::type", device) == "cuda"
    assert call("prim::index", device) == 1
    assert call("prim::index", torch.device("cpu")) is None


def test_generators() -> None:
    cpu = torch.device("cpu")
    generator = call("aten::Generator", cpu, 7)
    assert call("aten::initial_seed", generator) == 7
    assert call("aten::manual_seed.generator", generator, 9) is generator
    assert generator.initial_seed() == 9
    assert call("aten::seed", generator) == generator.initial_seed()
    assert isinstance(call("aten::Generator", None, None), torch.Generator)
    call("aten::manual_seed", 11)
    assert torch.initial_seed() == 11


def test_modes() -> None:
    assert call("aten::is_grad_enabled") is True
    try:
        call("aten::set_grad_enabled", False)
        assert call("aten::is_grad_enabled") is False
    finally:
        torch.set_grad_enabled(True)
    assert call("aten::is_autocast_enabled") is False
    with torch.autocast("cpu"):
        assert call("aten::is_autocast_cpu_enabled") is True
        assert call("aten::get_autocast_dtype", "cpu") == DTYPE_NUMBERS[torch.bfloat16]
    assert call("aten::is_autocast_cpu_enabled") is False
    assert call("aten::is_scripting") is True
    assert call("aten::_get_tracing_state") is False
    assert call("aten::_is_tracing") is False
    assert call("aten::has_torch_function", 1, 2) is False
    assert call("aten::_get_cpu_capability") == torch.backends.cpu.get_cpu_capability()


# --------------------------------------------------------------------------------------------------- results that come


def test_awaits_compute_once() -> None:
    calls: list[int] = []

    def compute() -> int:
        calls.append(1)
        return 7

    waiting = Await(Call(compute))
    assert calls == []
    assert call("prim::awaitable_wait", waiting) == 7
    assert call("prim::awaitable_wait", waiting) == 7
    assert calls == [1]
    assert call("prim::awaitable_wait", call("prim::awaitable_nowait", 5)) == 5


def test_futures_are_waited_for() -> None:
    future: torch.futures.Future[int] = torch.futures.Future()
    future.set_result(3)
    assert call("aten::wait", future) == 3


class RemoteReference:
    """Has the methods of a reference of torch.distributed.rpc, and says how they were called."""

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: (name, *arguments)


@pytest.mark.parametrize(
    "name",
    ["aten::confirmed_by_owner", "aten::is_owner", "aten::local_value", "aten::owner", "aten::owner_name"],
)
def test_remote_references_are_asked(name: str) -> None:
    method = name.removeprefix("aten::")
    assert call(name, RemoteReference()) == (method,)
    assert hasattr(torch.distributed.rpc.RRef, method)


def test_remote_values_are_fetched_within_a_time() -> None:
    assert call("aten::to_here", RemoteReference(), 5.0) == ("to_here", 5.0)


def test_distributed_backward(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(torch.distributed.autograd, "backward", lambda *arguments: calls.append(arguments))
    call("aten::dist_backward", 3, [], True)
    assert calls == [(3, [], True)]
