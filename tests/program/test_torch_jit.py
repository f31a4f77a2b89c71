"""A PyTorch without TorchScript: the package works, and the drop-in provides ``torch.jit``."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

import rekindle
from rekindle.program import torch_jit
from rekindle.scripting.callables.modifiers import modifier_of

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(rekindle.__file__).parents[1])}
KEPT = "_builtins annotate is_scripting is_tracing"
"""What PyTorch's own modules call while they run: it would be gone from them too."""

EMPTIED = f"""
import torch, torch._dynamo, torch._jit_internal, torch.export, torch.jit

for module in (torch.jit, torch._jit_internal):
    for name in list(vars(module)):
        if not name.startswith("__") and name not in {KEPT.split()}:
            delattr(module, name)
"""
PROGRAM = """
from typing import Dict, List, Optional
import io
import rekindle
from torch import Tensor, nn
import torch.nn.functional as F


class Net(nn.Module):
    scale: float

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.BatchNorm2d(4))
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.declared = rekindle.Attribute([], List[str])
        self.scale = 0.5

    @rekindle.export
    def twice(self, x: Tensor) -> Tensor:
        return x * 2

    @rekindle.ignore
    def python(self, x: Tensor) -> Tensor:
        return x + 1

    @rekindle.unused
    def never(self, x: Tensor) -> Tensor:
        return x - 1

    def forward(self, x: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        y = self.layers(x).flatten(2).transpose(1, 2)
        found = self.attention(y, y, y, need_weights=False)[0]
        if mask is not None:
            found = self.never(found)
        return self.python(found) * self.scale


def tasks(x: Tensor) -> Tensor:
    future = rekindle.fork(torch.relu, x)
    sizes: Dict[str, int] = {"rows": x.size(0)}
    pooled, indices = F.max_pool1d(x, 2, return_indices=True)
    return rekindle.wait(future).sum() + sizes["rows"] + pooled.sum() + indices.sum()


def triple(x: Tensor) -> Tensor:
    return x * 3


torch.manual_seed(0)
net, x = Net().eval(), torch.randn(2, 1, 8, 8)
expected = net(x)
compiled = rekindle.script(net)
for _ in range(3):
    torch.testing.assert_close(compiled(x), expected)
torch.testing.assert_close(compiled.twice(x), x * 2)
function, line = rekindle.script(tasks), torch.randn(3, 8)
assert function(line).shape == ()

traced = rekindle.trace(nn.Sequential(nn.Linear(8, 4), nn.GELU()), line)
for program, arguments in ((traced, line), (rekindle.script(nn.GRUCell(8, 4)), line)):
    file = io.BytesIO()
    rekindle.save(program, file)
    file.seek(0)
    torch.testing.assert_close(rekindle.load(file)(arguments), program(arguments))
torch.testing.assert_close(rekindle.freeze(traced.eval())(line), traced(line))

with rekindle.installed() as usage:
    scripted = torch.jit.script(triple)
    torch.testing.assert_close(scripted(line), line * 3)
    assert isinstance(scripted, torch.jit.ScriptFunction), type(scripted)
"""


def run(tmp_path: Path, preparation: str) -> None:
    """Run the program in a process of its own, from a file: its functions are compiled from their source."""
    path = tmp_path / "program.py"
    path.write_text(preparation + PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(path)], capture_output=True, text=True, check=False, env=ENVIRONMENT
    )
    assert done.returncode == 0, done.stderr


def test_programs_without_torchscript(tmp_path: Path) -> None:
    """Modules, functions, traces, archives and the drop-in, with all names of ``torch.jit`` gone before."""
    run(tmp_path, EMPTIED)


def test_a_module_that_pytorch_lacks_is_empty() -> None:
    module = torch_jit._imported("torch.no_such_module")
    assert (module.__name__, torch_jit._found(module, "ScriptModule")) == ("torch.no_such_module", ())


def test_a_module_that_pytorch_lacks_is_provided(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("torch.jit")
    monkeypatch.setattr(torch_jit, "_JIT", module)
    torch_jit.provide()
    assert torch.jit is not module  # there is one
    monkeypatch.setattr(torch, "jit", None)
    monkeypatch.delitem(sys.modules, "torch.jit")
    torch_jit.provide()
    assert torch.jit is sys.modules["torch.jit"] is module


def test_functions_that_dispatch_by_an_argument_are_those_of_the_table_of_pytorch() -> None:
    table = torch._jit_internal.boolean_dispatched
    assert len(table) > 5
    for function, entry in table.items():
        found = torch_jit.boolean_dispatch(function)
        assert found is not None
        index = found.pop("arg_index")
        assert {**found, "index": index} == entry
    assert torch_jit.boolean_dispatch(F.relu) is None


@pytest.mark.parametrize("name", ["EXPORT", "IGNORE", "UNUSED", "_DROP", "COPY_TO_SCRIPT_WRAPPER", "DEFAULT"])
def test_marks_of_pytorch_are_known(name: str) -> None:
    def function() -> None: ...

    function._torchscript_modifier = getattr(torch._jit_internal.FunctionModifiers, name)  # type: ignore[attr-defined]
    expected = {"_DROP": "UNUSED", "COPY_TO_SCRIPT_WRAPPER": "COPIED"}.get(name, name)
    assert modifier_of(function).name == expected
