"""The code of a region is not tied to CPython: with another representation of objects, it needs the C library alone."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest

from rekindle.codegen.llvm.engine import NativeCode, compile_module
from rekindle.codegen.llvm.library import LOCK, llvm
from rekindle.codegen.native.arithmetic import DECLARATIONS, FUNCTIONS
from rekindle.codegen.native.list_runtime_ir import lists_text
from rekindle.codegen.native.lists import NativeWriter
from rekindle.ir.graph import Graph
from tests.codegen.native.support import compiled

NO_OBJECTS = """
define internal i1 @take_element(ptr %arena, ptr %origin, i64 %index, i64 %kind, ptr %word) {
  ret i1 false
}

define internal void @release(ptr %origin) {
  ret void
}

define internal i1 @check_interrupts() noinline {
  ret i1 true
}
"""
"""Without Python, a program has no foreign objects and is not interrupted by Ctrl-C."""

ENTRY = """
define i32 @{name}({parameters}) {{
  %arena = alloca %Arena
  store %Arena zeroinitializer, ptr %arena
  %status = call i32 @region(ptr %arena, {parameters})
  call void @free_arena(ptr %arena)
  ret i32 %status
}}
"""


def collatz(n: int) -> int:
    longest = 0
    for start in range(1, n):
        value = start
        steps = 0
        while value != 1:
            if value % 2 == 0:
                value = value // 2
            else:
                value = 3 * value + 1
            steps += 1
        longest = max(longest, steps)
    return longest


def primes_below(n: int) -> int:
    sieve = [True] * n
    found: list[int] = []
    for number in range(2, n):
        if sieve[number]:
            found.append(number)
            multiple = number * number
            while multiple < n:
                sieve[multiple] = False
                multiple += number
    total = 0
    for prime in found:
        total += prime
    return total


def region_of(function: Callable[..., Any]) -> Graph:
    regions = compiled(function).regions
    [region] = [graph for graph in regions if any(node.kind == "prim::Loop" for node in graph.nodes)]
    return region


def module_of(function: Callable[..., Any]) -> str:
    region = NativeWriter().function(region_of(function), "region")
    parameters = "i64 %a0, ptr %results"
    entry = ENTRY.format(name=function.__name__, parameters=parameters)
    return "\n".join([lists_text(), NO_OBJECTS, DECLARATIONS, region, entry])


def undefined_symbols(text: str) -> set[str]:
    """Return the symbols that a module imports, without LLVM's intrinsics."""
    with LOCK:
        module = llvm().parse_assembly(text)
        symbols = [*module.functions, *module.global_variables]
        names = {symbol.name for symbol in symbols if symbol.is_declaration}
    return {name for name in names if not name.startswith("llvm.")}


@pytest.mark.parametrize("function", [collatz, primes_below])
def test_a_region_compiles_with_no_symbol_of_cpython(function: Callable[..., Any]) -> None:
    text = module_of(function)
    assert undefined_symbols(text) == {"malloc", "free", "pow", *FUNCTIONS}
    code: NativeCode = compile_module(text, cache=False)
    native = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_void_p)(code.address(function.__name__))
    results = (ctypes.c_int64 * 4)()
    assert native(1000, ctypes.addressof(results)) == 0
    assert results[0] == function(1000)
