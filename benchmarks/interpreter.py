"""Time of the interpreter for each node, compared with ``torch.jit`` and eager.

Each round runs each candidate once; medians over the rounds are reported.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import rekindle.ops  # noqa: F401 (the operators)
from rekindle.ir.text.parser import parse_graph
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.instructions import Opcode
from rekindle.runtime.interpreter.state import InterpreterState

ITERATIONS = 20_000
ADDS = 100

SUM = """
graph(%n : int):
  %true : bool = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %two : int = prim::Constant[value=2]()
  %s : int = prim::Loop(%n, %true, %zero)
    block0(%i : int, %a : int):
      %d : int = aten::mul(%i, %two)
      %b : int = aten::add(%a, %d)
      -> (%true, %b)
  return (%s)
"""
SUM_SOURCE = """
def f(n: int) -> int:
    s = 0
    for i in range(n):
        s = s + i * 2
    return s
"""
CHAIN = "".join(
    [
        "graph(%x0 : Tensor, %y : Tensor):\n  %one : int = prim::Constant[value=1]()\n",
        *(f"  %x{i + 1} : Tensor = aten::add(%x{i}, %y, %one)\n" for i in range(ADDS)),
        f"  return (%x{ADDS})\n",
    ]
)
CHAIN_SOURCE = "def f(x, y):\n" + "    x = x + y\n" * ADDS + "    return x\n"


@dataclass(slots=True)
class Row:
    """Nanoseconds for each node: in rekindle, in ``torch.jit``, in eager Python, and in a minimal loop over the same
    instructions that calls the same operations."""

    what: str
    rekindle: float
    torch_jit: float
    eager: float
    naive: float

    @property
    def ratio(self) -> float:
        """The time of rekindle divided by that of ``torch.jit``."""
        return self.rekindle / self.torch_jit


def run(rounds: int = 30) -> list[Row]:
    """Measure all programs, which takes a few seconds."""
    x, y = torch.ones(4), torch.ones(4)
    with torch.no_grad():
        return [
            _measure("scalar loop (2 nodes an iteration)", SUM, SUM_SOURCE, [ITERATIONS], 2 * ITERATIONS, rounds),
            _measure(f"chain of {ADDS} adds of 4 floats", CHAIN, CHAIN_SOURCE, [x, y], ADDS, 20 * rounds),
        ]


def _measure(what: str, graph: str, source: str, arguments: list[Any], nodes: int, rounds: int) -> Row:
    code = Code(parse_graph(graph), "f")
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    eager = namespace["f"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        script = torch.jit.CompilationUnit(source).f
    naive = Naive(code)
    candidates: list[Callable[[], object]] = [
        lambda: InterpreterState(code).run(arguments),
        lambda: script(*arguments),
        lambda: eager(*arguments),
        lambda: naive.run(arguments),
    ]
    times: list[list[float]] = [[] for _ in candidates]
    for number in range(rounds + 3):
        for candidate, found in zip(candidates, times):
            start = time.perf_counter()
            candidate()
            if number >= 3:  # the first rounds compile and warm up
                found.append(time.perf_counter() - start)
    return Row(what, *(statistics.median(found) / nodes * 1e9 for found in times))


class Naive:
    """A minimal interpreter of the same instructions, for comparison."""

    def __init__(self, code: Code) -> None:
        self.code = code

    def run(self, arguments: list[Any]) -> Any:
        registers = self.code.template[:]
        registers[: len(arguments)] = arguments
        instructions = self.code.instructions
        at = 0
        while True:
            i = instructions[at]
            at += 1
            if i.opcode is Opcode.OPERATION:
                result = i.operation(*[registers[r] for r in i.inputs])
                for r in i.cleared:
                    registers[r] = None
                if len(i.outputs) == 1 and i.outputs[0] is not None:
                    registers[i.outputs[0]] = result
            elif i.opcode is Opcode.MOVE:
                values = [registers[r] for r in i.inputs]
                for r in i.cleared:
                    registers[r] = None
                for r, value in zip(i.outputs, values):
                    registers[r] = value
            elif i.opcode is Opcode.LOOP_START:
                registers[i.outputs[0]] = 0
                at = at if registers[i.inputs[0]] > 0 else i.target
            elif i.opcode is Opcode.LOOP_NEXT:
                registers[i.outputs[0]] += 1
                at = i.target if registers[i.outputs[0]] < registers[i.inputs[0]] else at
            elif i.opcode is Opcode.STORE:
                return registers[i.inputs[0]]
            else:
                raise NotImplementedError(i.opcode)


def table(rows: list[Row]) -> list[list[Any]]:
    """Return the rows as text, after a row of column names."""
    head = ["program", "rekindle, ns", "torch.jit, ns", "ratio", "eager, ns", "plainest loop, ns"]
    body = [
        [
            row.what,
            f"{row.rekindle:.0f}",
            f"{row.torch_jit:.0f}",
            f"{row.ratio:.2f}",
            f"{row.eager:.0f}",
            f"{row.naive:.0f}",
        ]
        for row in rows
    ]
    return [head, *body]
