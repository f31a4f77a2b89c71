"""A kernel that a process left on disk is loaded by the next one, with the functions that it calls; what was damaged
there is compiled again."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from weakref import WeakValueDictionary

import pytest
import torch

import rekindle.ops
import rekindle.runtime.executor  # noqa: F401 (runs graphs)
from rekindle.codegen import compiled_kernels
from rekindle.codegen.fusion_executor import FusionExecutor
from rekindle.codegen.llvm import engine
from rekindle.ir.subgraph_execution import callable_of
from rekindle.ir.text.parser import parse_graph
from tests.codegen.test_lookups import EMBEDDING
from tests.codegen.test_matmul import LINEAR
from tests.codegen.test_pooling import MAXIMUM, text as windows

CASES = {
    "products": (LINEAR, [(2, 20), (7, 20), (7,)]),
    "lookups": (EMBEDDING, [(5, 20), (3,), (20,)]),
    "windows": (windows(MAXIMUM, [3], [2], [1], [1]), [(1, 2, 9, 40)]),
}


def _as_in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_kernels, "_KERNELS", {})
    monkeypatch.setattr(compiled_kernels, "_PRODUCTS", {})
    monkeypatch.setattr(compiled_kernels, "_RECIPES", OrderedDict())
    monkeypatch.setattr(engine, "_known", WeakValueDictionary())


@pytest.mark.parametrize("name", CASES)
def test_the_next_process_compiles_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REKINDLE_CACHE_DIR", str(tmp_path))
    text, sizes = CASES[name]
    torch.manual_seed(0)
    inputs = [torch.randn(size) for size in sizes]
    if name == "lookups":
        inputs[1] = torch.tensor([4, 0, 2])
    graph = parse_graph(text.lstrip())
    expected = callable_of(graph, "eager")(*inputs)

    def origins() -> list[str]:
        """Where a new process finds the kernel, and the functions that it calls."""
        _as_in_a_new_process(monkeypatch)
        group = FusionExecutor(graph)
        torch.testing.assert_close(group(*inputs), expected)
        (made,) = group.recipes
        called = [code.from_cache for code in compiled_kernels._PRODUCTS.values()]
        return [made.origin, *("disk" if is_kept else "compiled" for is_kept in called)]

    count = 2 if name == "products" else 1
    assert origins() == ["compiled"] * count
    assert origins() == ["disk"] * count
    for file in tmp_path.rglob("*"):
        if file.is_file():
            damaged = bytearray(file.read_bytes())
            damaged[len(damaged) // 2] ^= 1
            file.write_bytes(damaged)
    assert origins() == ["compiled"] * count
    assert origins() == ["disk"] * count
