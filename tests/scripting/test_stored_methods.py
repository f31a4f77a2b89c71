"""Compiled methods of modules on disk: read where the module, its parts and its class are what they were."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import rekindle
from rekindle.ir.mangling import demangled
from rekindle.scripting.callables import functions, stored_functions
from rekindle.scripting.modules import module_values
from tests.scripting.test_stored_functions import module_of

Compiled = list[str]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Compiled:
    """The names of the functions and methods that are compiled, with an empty cache."""
    names: Compiled = []

    def counted(compile_function: Callable[..., None]) -> Callable[..., None]:
        def counting(record: Any, function: types.FunctionType, *arguments: Any, **keywords: Any) -> None:
            names.append(function.__name__)
            compile_function(record, function, *arguments, **keywords)

        return counting

    monkeypatch.setenv("REKINDLE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(stored_functions, "are_passes_watched", lambda: False)
    for module in (functions, module_values):
        monkeypatch.setattr(module, "compile_function", counted(module.compile_function))
    return names


NET = """
    from torch import nn

    class Part(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.width = width

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.width

    class Base(nn.Module):
        def shifted(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1.0

    class Net(Base):
        FACTOR: int = 2
        __constants__ = ["mode"]

        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleList([Part(2), Part(3)])
            self.weight = nn.Parameter(torch.ones(3))
            self.mode = "plain"
            self.limit = None
            self.activation = torch.nn.functional.elu

        @property
        def doubled(self) -> torch.Tensor:
            return self.weight * 2

        def shifted(self, x: torch.Tensor) -> torch.Tensor:
            return super().shifted(x) * 3.0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for part in self.parts:
                x = part(x)
            if self.mode == "plain":
                x = x + self.doubled
            if self.limit is not None:
                x = x.clamp(max=self.limit)
            return self.activation(self.shifted(x)) + self.FACTOR
"""


def twice(path: Path, change: Callable[[Any, Any], object], text: str = NET) -> tuple[Any, Any]:
    """The results of eager and of the compiled module, after an equal one was compiled from a class of an equal
    file; ``change`` is given the module of the file, and the instance."""
    x = torch.randn(3)
    rekindle.script(module_of(path, text).Net())(x)
    made = module_of(path, text)
    torch.manual_seed(0)
    net = made.Net()
    change(made, net)
    return copy.deepcopy(net)(x), rekindle.script(net)(x)


def test_nothing_changed(compiled: Compiled, tmp_path: Path) -> None:
    eager, found = twice(tmp_path / "same.py", lambda module, net: compiled.clear())
    torch.testing.assert_close(found, eager)
    assert compiled == []


def _minus(self: Any, x: Tensor) -> Tensor:
    return x - 5.0


CHANGES: dict[str, Callable[[Any, Any], object]] = {
    "a constant": lambda module, net: setattr(net, "mode", "other"),
    "an attribute that was None": lambda module, net: setattr(net, "limit", 1.0),
    "a function in an attribute": lambda module, net: setattr(net, "activation", torch.nn.functional.silu),
    "an attribute of the class": lambda module, net: setattr(module.Net, "FACTOR", 7),
    "a method of the class": lambda module, net: setattr(module.Net, "shifted", _minus),
    "a method of a base": lambda module, net: setattr(module.Base, "shifted", _minus),
    "a method of a part": lambda module, net: setattr(module.Part, "forward", _minus),
    "a method of the instance": lambda module, net: setattr(net, "shifted", types.MethodType(_minus, net)),
    "a property": lambda module, net: setattr(module.Net, "doubled", property(lambda self: self.weight * 5)),
    "another part": lambda module, net: net.parts.append(module.Part(4)),
    "the class of a part": lambda module, net: net.parts.__setitem__(0, nn.ReLU()),
    "the type of an attribute": lambda module, net: setattr(net.parts[0], "width", 2.5),
    "a hook": lambda module, net: net.parts[0].register_forward_hook(_hook),
}


def _hook(module: nn.Module, given: tuple[Tensor], result: Tensor) -> Tensor:
    return result * 10.0


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_the_module_is_decides(change: Callable[[Any, Any], object], compiled: Compiled, tmp_path: Path) -> None:
    try:
        eager, found = twice(tmp_path / "changed.py", change)
    except rekindle.errors.CompileError:
        assert change is CHANGES["a property"]  # a lambda expression says no types
        return
    torch.testing.assert_close(found, eager)


def test_values_of_attributes_are_read_when_it_runs(compiled: Compiled, tmp_path: Path) -> None:
    eager, found = twice(tmp_path / "values.py", lambda module, net: setattr(net.parts[0], "width", 11))
    torch.testing.assert_close(found, eager)


FILLED = """
    from torch import nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.seen = []
            self.count = None

        def note(self, x: torch.Tensor) -> None:
            self.seen.append(x)
            self.count = len(self.seen)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.note(x)
            count = self.count
            return x * 1.0 if count is None else x * float(count + 1)
"""


def test_attributes_that_methods_fill(compiled: Compiled, tmp_path: Path) -> None:
    eager, found = twice(tmp_path / "filled.py", lambda module, net: None, FILLED)
    torch.testing.assert_close(found, eager)


OF_ALL_MODULES = """
    from torch import nn

    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.FACTOR
"""


@pytest.mark.parametrize("value", [7.0, 2])
def test_a_constant_of_all_modules_decides(
    value: float, compiled: Compiled, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(nn.Module, "FACTOR", 2.0, raising=False)

    def change(module: Any, net: Any) -> None:
        monkeypatch.setattr(nn.Module, "FACTOR", value)

    eager, found = twice(tmp_path / "all.py", change, OF_ALL_MODULES)
    torch.testing.assert_close(found, eager, rtol=0, atol=0)


PROCESS = """
import torch, rekindle
from rekindle.ir.text.printer import print_graph
from rekindle.scripting.callables import functions
from rekindle.scripting.modules import module_values
from torch import nn
compiled = []
def counted(compile_function):
    def counting(record, function, *arguments, **keywords):
        compiled.append(function.__qualname__)
        compile_function(record, function, *arguments, **keywords)
    return counting
for module in (functions, module_values):
    module.compile_function = counted(module.compile_function)
torch.manual_seed(0)
modules = [
    nn.Linear(4, 3), nn.Conv2d(2, 3, 3, padding_mode="circular"), nn.BatchNorm1d(4), nn.LSTM(4, 3), nn.GRUCell(4, 3),
    nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 2)), nn.MultiheadAttention(8, 2),
    nn.TransformerEncoderLayer(8, 2, 16), nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2),
    nn.HuberLoss(), nn.CTCLoss(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d((2, None)), nn.Embedding(5, 3),
    nn.EmbeddingBag(5, 3), nn.Upsample(scale_factor=2.0), nn.InstanceNorm2d(3), nn.Bilinear(3, 3, 2), nn.KLDivLoss(),
    nn.RReLU(), nn.Softmax2d(),
]
texts = []
for module in modules:
    scripted = rekindle.script(module)
    for name, part in scripted.named_modules():
        for method, record in part.script_type.methods.items():
            if record.is_defined:
                texts.append(f"{name} {record.name} {record.schema}\\n{print_graph(record.graph)}")
print(len(compiled), "compiled")
print("\\n".join(texts))
"""


def test_the_next_process_has_the_same_graphs(tmp_path: Path) -> None:
    environment = {**os.environ, "REKINDLE_CACHE_DIR": str(tmp_path / "cache"), "REKINDLE_VERIFY": "0"}
    run = [sys.executable, "-c", PROCESS]
    first, second = (
        subprocess.run(run, env=environment, check=True, capture_output=True, text=True).stdout for _ in range(2)
    )
    counts = [int(text.partition(" ")[0]) for text in (first, second)]
    assert counts[0] > 70
    assert counts[1] < counts[0] / 8
    assert demangled(second.partition("\n")[2]) == demangled(first.partition("\n")[2])


OVERLOADS = """
from __future__ import annotations

import os

import torch
import rekindle
from rekindle.scripting.callables import functions
from rekindle.scripting.modules import module_values
from torch import Tensor, nn

VARIANT = os.environ["VARIANT"]
Width = float if VARIANT == "another type" else int
compiled = []
for module in (functions, module_values):
    def counting(record, function, *arguments, compile_function=module.compile_function, **keywords):
        compiled.append(record.basename)
        compile_function(record, function, *arguments, **keywords)
    module.compile_function = counting


class Scale(nn.Module):
    @torch.jit._overload_method
    def forward(self, x: Tensor, width: Width) -> Tensor:
        pass

    @torch.jit._overload_method
    def forward(self, x: list[Tensor], width: Width) -> Tensor:
        pass

    if VARIANT == "another overload":
        @torch.jit._overload_method
        def forward(self, x: Tensor, width: bool) -> Tensor:
            pass

    def forward(self, x, width):
        if isinstance(x, Tensor):
            return x * width
        return torch.stack(x) * width


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = Scale()

    def forward(self, x: Tensor) -> Tensor:
        return self.scale(x, 3) + self.scale([x], 2)


@torch.jit._overload
def scaled(x: Tensor, width: Width) -> Tensor:
    pass


@torch.jit._overload
def scaled(x: list[Tensor], width: Width) -> Tensor:
    pass


if VARIANT == "another overload":
    @torch.jit._overload
    def scaled(x: Tensor, width: bool) -> Tensor:
        pass


def scaled(x, width):
    if isinstance(x, Tensor):
        return x * width
    return torch.stack(x) * width


def call(x: Tensor) -> Tensor:
    return scaled(x, 3) + scaled([x], 2)


if __name__ == "__main__":
    x = torch.ones(1)
    for make in (lambda: rekindle.script(Net()), lambda: rekindle.script(call)):
        print(make()(x).tolist(), end=" ")
    print(*sorted(compiled))
"""

EVERYTHING = "call forward forward__0 forward__1 scaled scaled"


@pytest.mark.parametrize(
    ("variant", "output"),
    [
        ("the same", "[[5.0]] [[5.0]] \n"),
        ("another type", f"[[5.0]] [[5.0]] {EVERYTHING}\n"),
        ("another overload", "[[5.0]] [[5.0]] call forward forward__0 forward__1 forward__2 scaled scaled\n"),
    ],
)
def test_overloads_are_read_where_their_declarations_are_the_same(variant: str, output: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(OVERLOADS)

    def run(variant: str) -> str:
        environment = {**os.environ, "REKINDLE_CACHE_DIR": str(tmp_path / "cache"), "REKINDLE_VERIFY": "0"}
        environment |= {"VARIANT": variant, "PYTHONPATH": os.getcwd()}
        run = [sys.executable, str(program)]
        return subprocess.run(run, env=environment, check=True, capture_output=True, text=True).stdout

    assert run("the same") == f"[[5.0]] [[5.0]] {EVERYTHING}\n"
    assert run(variant) == output


CHOICE = """
import os

import rekindle
import torch
from torch import nn

Number = float if os.environ["VARIANT"] == "another type" else int


class Net(nn.Module):
    @torch.jit._overload_method
    def step(self, x: Number, y: int = 1) -> str:
        pass

    @torch.jit._overload_method
    def step(self, x: float, y: int = 2) -> str:
        pass

    def step(self, x, y=0):
        return f"{x} {y}"

    def forward(self, x: float) -> str:
        return self.step(x)


if __name__ == "__main__":
    print(rekindle.script(Net())(2.5))
"""


def test_an_overload_that_did_not_fit_may_fit_later(tmp_path: Path) -> None:
    """A caller is read only where the overloads before the one that it calls are the same."""
    program = tmp_path / "program.py"
    program.write_text(CHOICE)
    environment = {**os.environ, "REKINDLE_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.getcwd()}
    outputs = [
        subprocess.run(
            [sys.executable, str(program)],
            env=environment | {"VARIANT": variant},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for variant in ("the same", "another type", "the same")
    ]
    assert outputs == ["2.5 2\n", "2.5 1\n", "2.5 2\n"]


PACKED = """
import torch
import rekindle
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence
from rekindle.scripting.modules import module_values
compiled = []
compile_function = module_values.compile_function
def counting(record, function, *arguments, **keywords):
    compiled.append(function.__qualname__)
    compile_function(record, function, *arguments, **keywords)
module_values.compile_function = counting
CHANGE
torch.manual_seed(0)
lstm = nn.LSTM(4, 3)
packed = pack_padded_sequence(torch.randn(5, 2, 4), torch.tensor([5, 3]))
expected, found = lstm(packed), rekindle.script(lstm)(packed)
assert type(found[0]) is PackedSequence, type(found[0])
torch.testing.assert_close(tuple(found[0]), tuple(expected[0]))
torch.testing.assert_close(found[1], expected[1])
print(compiled)
"""


def test_methods_with_named_tuples_of_pytorch(tmp_path: Path) -> None:
    environment = {**os.environ, "REKINDLE_CACHE_DIR": str(tmp_path / "cache"), "REKINDLE_VERIFY": "0"}
    other_fields = (
        "from rekindle.scripting.callables import stored_functions\n"
        "stored_functions._described_fields = lambda type: ('other', type.fields)"
    )

    def printed(change: str) -> str:
        run = [sys.executable, "-c", PACKED.replace("CHANGE", change)]
        return subprocess.run(run, env=environment, check=True, capture_output=True, text=True).stdout.strip()

    first = printed("")
    assert "'LSTM.forward'" in first
    assert printed("") == "[]"
    assert printed(other_fields) == "['LSTM.forward', 'LSTM.forward']"  # two overloads name the class
