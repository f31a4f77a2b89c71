"""A process that runs a module under changed conditions, each in a forked process of its own, and writes what happened.

Forked processes have imported everything and compiled nothing, as fresh ones. Arguments: the folder for the cache and
the module's file, the file for the results, and the names of :data:`CHANGES`: each runs in a process that finds what
the processes before have left.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import torch

import rekindle
from rekindle.ir import subgraph_execution
from rekindle.runtime.optimization import optimize
from rekindle.runtime.strategies import graph_cache, native_strategy, simple_strategy
from rekindle.scripting.script import script as script  # loads what is loaded with the first compilation

TEXT: Final = """
import torch
from torch import nn, Tensor

OFFSET = 1.0

def halved(x: Tensor) -> Tensor:
    return x * 0.5

class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.factor = 2.0

    def forward(self, x: Tensor) -> Tensor:
        return halved(x * self.weight) * self.factor

class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = Part()
        self.scale = 2.0
        self.shifts = [1, 2]

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        y = self.part(x) * self.scale + OFFSET
        if mask is not None:
            y = y * mask
        if self.training:
            y = y + 1
        for shift in self.shifts:
            y = y + shift
        if x.dtype == torch.float64:
            y = y - 1
        return torch.tanh(y * 0.05) + x.dim() + torch.tensor([1.0]).sum()
"""


def _text(old: str, new: str) -> Callable[[str], str]:
    assert old in TEXT
    return lambda text: text.replace(old, new)


def _edit(compiled: Any) -> None:
    node = compiled.graph.find_node("aten::tanh")
    node.output.replace_all_uses_with(node.graph.create("aten::sin", list(node.inputs)).insert_before(node).output)


def _edit_part(compiled: Any) -> None:
    node = compiled.part.graph.find_node("aten::mul")
    node.output.replace_all_uses_with(node.graph.create("aten::neg", [node.inputs[0]]).insert_before(node).output)


def _patched(owner: Any, name: str, value: object) -> Callable[[], object]:
    return lambda: setattr(owner, name, value)


SOURCES: Final[dict[str, Callable[[str], str]]] = {
    "the method": _text("torch.tanh(y", "torch.cos(y"),
    "a function that it calls": _text("x * 0.5", "x * 0.25"),
    "a global number": _text("OFFSET = 1.0", "OFFSET = 2.0"),
    "the class of a part": _text("* self.factor", "+ self.factor"),
}
"""Changes of the file."""
OBJECTS: Final[dict[str, Callable[[Any], object]]] = {
    "a number": lambda net: setattr(net, "scale", 3.0),
    "the type of a number": lambda net: setattr(net, "scale", 3),
    "a number of a part": lambda net: setattr(net.part, "factor", 5.0),
    "the mode": lambda net: net.eval(),
    "another attribute": lambda net: setattr(net, "more", 1),
    "another part": lambda net: setattr(net, "part", torch.nn.Sigmoid()),
}
"""Changes of the module before it is compiled."""
READ_AT_RUN_TIME: Final[dict[str, Callable[[Any], object]]] = {
    "a list": lambda net: setattr(net, "shifts", [1, 2, 3]),
    "the dtype of parameters": lambda net: net.double(),
}
"""Changes of the module that no version depends on."""
CALLS: Final[dict[str, tuple[torch.Tensor, ...]]] = {
    "an argument in place of None": (torch.ones(3, 4), torch.full((4,), 0.5)),
    "the rank of an argument": (torch.ones(2, 3, 4),),
    "the dtype of an argument": (torch.ones(3, 4, dtype=torch.float64),),
    "a gradient": (torch.ones(3, 4, requires_grad=True),),
}
"""Other calls."""
PROCESSES: Final[dict[str, Callable[[], object]]] = {
    "the default dtype": lambda: torch.set_default_dtype(torch.float64),
    "the number of threads": lambda: torch.set_num_threads(3),
    "the CPU": _patched(torch.backends.cpu, "get_cpu_capability", lambda: "DEFAULT"),
    "PyTorch": _patched(torch, "__version__", "2.99"),
    "Python": _patched(sys, "version", "3.99"),
    "the compiler": _patched(graph_cache, "_files", lambda folder: [("rekindle/other.py", 1, 1)]),
}
"""Changes of the process."""
EDITS: Final[dict[str, Callable[[Any], None]]] = {"the graph": _edit, "the graph of a part": _edit_part}
"""Edits of the compiled module before it is called."""
CHANGES: Final = (*SOURCES, *OBJECTS, *READ_AT_RUN_TIME, *CALLS, *PROCESSES, *EDITS)


def run(change: str, file: Path) -> dict[str, object]:
    """Compile and call the module, and return how often graphs were optimized, whether the source graph was decoded,
    the result, and that of eager mode."""
    optimized: list[int] = []

    def counting(*arguments: Any, **keywords: Any) -> bool:
        optimized.append(1)
        return optimize(*arguments, **keywords)

    subgraph_execution.DEFER_FIRST_CALLS = False  # the one call is optimized
    for module in (simple_strategy, native_strategy):
        module.optimize = counting  # type: ignore[attr-defined]
    PROCESSES.get(change, lambda: None)()
    file.write_text(SOURCES.get(change, str)(TEXT))
    os.utime(file, ns=(1, len(change) if change in SOURCES else 1))
    net = _imported(file).Net()
    {**OBJECTS, **READ_AT_RUN_TIME}.get(change, lambda net: None)(net)
    arguments = CALLS.get(change, (torch.ones(3, 4),))
    with torch.set_grad_enabled(change == "a gradient"):
        compiled = rekindle.script(net)
        EDITS.get(change, lambda compiled: None)(compiled)
        found, expected = compiled(*arguments), net(*arguments)
    record = compiled.forward._record
    values = {"found": found.flatten().tolist(), "eager": expected.flatten().tolist()}
    return {"optimized": len(optimized), "loaded": record.is_loaded, **values}


def _imported(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("stored_program_module", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["stored_program_module"] = module
    spec.loader.exec_module(module)
    return module


def forked(change: str, file: Path) -> dict[str, object]:
    """Return the result of :func:`run` in a forked process."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.write(writer, json.dumps(run(change, file)).encode())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(process, 0)
    found: dict[str, object] = json.loads(text)
    return found


def main(folder: str, output: str, *changes: str) -> None:
    """Run the module, then with each change, then without one again, with one cache. Write all results to ``output``:
    the first, by change, and the last."""
    torch.set_num_threads(1)
    sys.dont_write_bytecode = True  # the file changes within the resolution of its time
    os.environ["REKINDLE_CACHE_DIR"] = str(Path(folder) / "cache")
    file = Path(folder) / "stored_program_module.py"
    before = forked("nothing", file)
    found = {change: forked(change, file) for change in changes}
    Path(output).write_text(json.dumps((before, found, forked("nothing", file))))


if __name__ == "__main__":
    main(*sys.argv[1:])
