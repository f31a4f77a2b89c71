"""A sample of the operator database becomes the text of a function: tensors are parameters, the rest is written out.

SampleInput(x, args=(2,), kwargs={"alpha": 0.5}) of add

def add_float32_0_function(t0):
    return torch.add(t0, 2, alpha=0.5)
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
import random
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import torch

SEED = 20260
SAMPLES = 6
_HEAD = "import math\n\nimport torch\n\n"


class NotWritable(Exception):
    """An argument that no program text can spell."""


@dataclass(slots=True)
class Case:
    """One call of an operator: ``key`` is ``dtype/sample/variant``, ``arguments`` are what the text calls t0, t1 …"""

    key: str
    name: str
    text: str
    arguments: list[torch.Tensor]


@dataclass(slots=True)
class _Writer:
    tensors: list[torch.Tensor] = field(default_factory=list)

    def write(self, value: Any) -> str:
        if isinstance(value, torch.Tensor):
            self.tensors.append(value)
            return f"t{len(self.tensors) - 1}"
        if isinstance(value, (list, torch.Size)):
            return f"[{', '.join(map(self.write, value))}]"
        if isinstance(value, tuple):
            inner = ", ".join(map(self.write, value))
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        return _literal(value)

    def index(self, value: Any) -> str:
        """The text between the brackets of a subscript."""
        if isinstance(value, tuple):
            return ", ".join(map(self.index, value))
        if value is Ellipsis:
            return "..."
        if isinstance(value, slice):
            parts = ["" if part is None else self.write(part) for part in (value.start, value.stop)]
            return ":".join(parts) + ("" if value.step is None else f":{self.write(value.step)}")
        return self.write(value)


def _literal(value: Any) -> str:
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return str(value)
    if isinstance(value, torch.device):
        return repr(str(value))
    if isinstance(value, bool) or value is None or isinstance(value, (int, str)):
        return repr(value)
    if isinstance(value, (float, numpy.floating)):
        number = float(value)
        if math.isfinite(number):
            return repr(number)
        return "math.nan" if math.isnan(number) else "math.inf" if number > 0 else "-math.inf"
    if isinstance(value, numpy.integer):
        return repr(int(value))
    if isinstance(value, complex):
        return f"complex({_literal(value.real)}, {_literal(value.imag)})"
    raise NotWritable(type(value).__qualname__)


def seed() -> None:
    """The state of all sources of chance before a sample is made, and before each call."""
    random.seed(SEED)
    numpy.random.seed(SEED)
    torch.manual_seed(SEED)


def dtypes_of(op: Any) -> list[torch.dtype]:
    """float32, one integer dtype, complex64: those of them that the operator takes."""
    supported = op.supported_dtypes("cpu")
    chosen = [torch.float32] if torch.float32 in supported else []
    integers = (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8)
    chosen += [dtype for dtype in integers if dtype in supported][:1]
    return chosen + ([torch.complex64] if torch.complex64 in supported else [])


def cases_of(op: Any) -> Iterator[Case]:
    """The calls of an entry: up to six samples for each dtype, as function, method and in-place method."""
    variants = _variants(op)
    for dtype in dtypes_of(op):
        seed()
        for index, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=False)):
            if index == SAMPLES:
                break
            for variant, write in variants.items():
                writer = _Writer()
                key = f"{str(dtype).removeprefix('torch.')}/{index}/{variant}"
                name = re.sub(r"\W", "_", f"{op.full_name}_{key}")
                try:
                    expression = write(writer, sample)
                except NotWritable:
                    continue
                parameters = ", ".join(f"t{i}" for i in range(len(writer.tensors)))
                yield Case(key, name, f"def {name}({parameters}):\n    return {expression}\n", writer.tensors)


def _variants(op: Any) -> dict[str, Callable[[_Writer, Any], str]]:
    """How the operator can be called, and what writes such a call."""
    if op.name in _ODD_CALLS:
        return _ODD_CALLS[op.name]
    variants: dict[str, Callable[[_Writer, Any], str]] = {}
    path = op.name if op.name.startswith("torch.") else f"torch.{op.name}"
    if not op.name.startswith("__") and callable(_lookup(path)):
        variants["function"] = lambda w, s: f"{path}({_arguments(w, [s.input, *s.args], s.kwargs)})"
    for variant, name in (("method", op.name), ("inplace", f"{op.name}_")):
        found = getattr(torch.Tensor, name, None)
        if found is None or (variant == "inplace" and op.name.endswith("_")):
            continue
        if callable(found):
            variants[variant] = lambda w, s, name=name: f"{_receiver(w, s)}.{name}({_arguments(w, s.args, s.kwargs)})"
        else:
            variants["attribute"] = lambda w, s, name=name: f"{_receiver(w, s)}.{name}"
    return variants


_ODD_CALLS: dict[str, dict[str, Callable[[_Writer, Any], str]]] = {
    # The database calls these through functions of its own, which take the arguments in another order.
    "__getitem__": {"subscript": lambda w, s: f"{w.write(s.input)}[{', '.join(map(w.index, s.args))}]"},
    "einsum": {"function": lambda w, s: f"torch.einsum({w.write(s.args[0])}, {w.write(s.input)})"},
    "nn.functional.embedding": {
        "function": lambda w, s: f"torch.nn.functional.embedding({_arguments(w, [s.args[0], s.input], s.kwargs)})"
    },
}


def _receiver(writer: _Writer, sample: Any) -> str:
    if not isinstance(sample.input, torch.Tensor):
        raise NotWritable("a method of another object than a tensor")
    return writer.write(sample.input)


def _arguments(writer: _Writer, positional: Any, keywords: dict[str, Any]) -> str:
    parts = [writer.write(value) for value in positional]
    return ", ".join(parts + [f"{name}={writer.write(value)}" for name, value in keywords.items()])


def _lookup(path: str) -> Any:
    found: Any = torch
    for part in path.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def digest(cases: list[Case]) -> str:
    """A few letters that change when the texts of the cases do."""
    return hashlib.sha256("".join(case.text for case in cases).encode()).hexdigest()[:12]


def load(cases: list[Case], folder: Path, stem: str) -> ModuleType:
    """A real module in a real file with all the functions, so that their source can be read."""
    name = re.sub(r"\W", "_", f"sweep_{stem}")
    path = folder / f"{name}.py"
    path.write_text(_HEAD + "\n\n".join(case.text for case in cases), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
