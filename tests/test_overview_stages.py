"""The LSTM cell of TorchScript's technical overview on its way through the executor, compared with the overview's
graphs and against what torch.jit makes of it today.

The overview prints dtypes and ranks of tensors; today's printers add whether a gradient is needed, and the device.
The golden files have all of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

import rekindle
import tests.overview_programs as programs
from rekindle.analysis.type_propagation import propagate_types, refine_types
from rekindle.autodiff import CreateDifferentiableGraphs
from rekindle.codegen.fusion import FuseGraph
from rekindle.ir.graph import Graph
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.text.printer import print_graph
from rekindle.ir.types import TensorType
from rekindle.passes import (
    BatchMM,
    CanonicalizeOps,
    CommonSubexpressionElimination,
    ConstantPooling,
    ConstantPropagation,
    DeadCodeElimination,
    LoopUnrolling,
    Pass,
    PassManager,
    Peephole,
    RemoveExpands,
)
from rekindle.runtime.interpreter.code import Code
from rekindle.runtime.interpreter.state import InterpreterState
from tests.support.golden import GoldenTexts
from tests.support.oracle import normalize, script_with_torch
from tests.test_overview import EXAMPLES

INPUTS = (
    *(torch.linspace(-1, 1, 6).view(2, 3), torch.linspace(0, 1, 8).view(2, 4), torch.linspace(-1, 0, 8).view(2, 4)),
    *(torch.linspace(-1, 1, 48).view(16, 3), torch.linspace(0, 2, 64).view(16, 4)),
    *(torch.linspace(-1, 0, 16), torch.linspace(0, 1, 16)),
)

_TYPED_INPUTS = """
graph(%x : Float(*, *),
      %hx : Float(*, *),
      %cx : Float(*, *),
      %w_ih : Float(*, *),
      %w_hh : Float(*, *),
      %b_ih : Float(*),
      %b_hh : Float(*)):
"""

_UNTYPED = EXAMPLES["lstm_cell"].graph

SPECIALIZED = _TYPED_INPUTS + _UNTYPED.partition("):\n")[2]

WITH_CONSTANT_CHUNK = f"""{_TYPED_INPUTS}\
  %8 : int = prim::Constant[value=1]()
  %9 : Float(*, *) = aten::t(%w_ih)
  %10 : Float(*, *) = aten::mm(%x, %9)
  %11 : Float(*, *) = aten::t(%w_hh)
  %12 : Float(*, *) = aten::mm(%hx, %11)
  %13 : Float(*, *) = aten::add(%10, %12, %8)
  %14 : Float(*, *) = aten::add(%13, %b_ih, %8)
  %gates : Float(*, *) = aten::add(%14, %b_hh, %8)
  %31 : Float(*, *), %32 : Float(*, *), %33 : Float(*, *), %34 : Float(*, *) = prim::ConstantChunk[chunks=4, dim=1](%gates)
  %ingate : Float(*, *) = aten::sigmoid(%31)
  %forgetgate : Float(*, *) = aten::sigmoid(%32)
  %cellgate : Float(*, *) = aten::tanh(%33)
  %outgate : Float(*, *) = aten::sigmoid(%34)
  %25 : Float(*, *) = aten::mul(%forgetgate, %cx)
  %26 : Float(*, *) = aten::mul(%ingate, %cellgate)
  %cy : Float(*, *) = aten::add(%25, %26, %8)
  %28 : Float(*, *) = aten::tanh(%cy)
  %hy : Float(*, *) = aten::mul(%outgate, %28)
  %30 : (Float(*, *), Float(*, *)) = prim::TupleConstruct(%hy, %cy)
  return (%30)
"""  # noqa: E501

WITH_CONSTANTS_PROPAGATED = re.sub(
    r"  %31 .*\n",
    """  %16 : Tensor[] = aten::chunk(%gates, %7, %8)
  %31 : Float(*, *), %32 : Float(*, *), %33 : Float(*, *), %34 : Float(*, *) = prim::ListUnpack(%16)
""",
    WITH_CONSTANT_CHUNK.replace("  %8 :", "  %7 : int = prim::Constant[value=4]()\n  %8 :", 1),
)


def specialize(graph: Graph) -> None:
    """Set the types of the graph's inputs to those of an argument specification: everything but sizes and strides."""
    for value, tensor in zip(graph.inputs, INPUTS, strict=True):
        value.set_type(TensorType.of(tensor).with_rank_only())


def require_gradients(graph: Graph) -> None:
    """Set the types of those inputs that are weights to need gradients."""
    for value in list(graph.inputs)[3:]:
        assert isinstance(value.type, TensorType)
        value.set_type(replace(value.type, requires_grad=True))
    refine_types(graph, propagate_types(graph, [value.type for value in graph.inputs]))


def propagate(graph: Graph) -> None:
    PassManager().run(graph, (RemoveExpands(), ConstantPropagation()))
    refine_types(graph, propagate_types(graph, [value.type for value in graph.inputs]))


def canonicalise(graph: Graph) -> None:
    PassManager().run(graph, (CanonicalizeOps(), DeadCodeElimination()))


DIFFERENTIABLE = f"""{_TYPED_INPUTS}\
  %8 : int = prim::Constant[value=1]()
  %hy : Float(*, *) = prim::DifferentiableGraph_0(%cx, %b_hh, %b_ih, %hx, %w_hh, %x, %w_ih)
  return (%hy)
with prim::DifferentiableGraph_0 = graph(%13 : Float(*, *),
      %29 : Float(*),
      %33 : Float(*),
      %40 : Float(*, *),
      %43 : Float(*, *),
      %45 : Float(*, *),
      %48 : Float(*, *)):
  %49 : Float(*, *) = aten::t(%48)
  %47 : Float(*, *) = aten::mm(%45, %49)
  %44 : Float(*, *) = aten::t(%43)
  %42 : Float(*, *) = aten::mm(%40, %44)
  %38 : int = prim::Constant[value=1]()
  %39 : Float(*, *) = aten::add(%47, %42, %38)
  %35 : Float(*, *) = aten::add(%39, %33, %38)
  %gates : Float(*, *) = aten::add(%35, %29, %38)
  %24 : Float(*, *), %25 : Float(*, *), %26 : Float(*, *), %27 : Float(*, *) = prim::ConstantChunk[chunks=4, dim=1](%gates)
  %ingate : Float(*, *) = aten::sigmoid(%24)
  %forgetgate : Float(*, *) = aten::sigmoid(%25)
  %cellgate : Float(*, *) = aten::tanh(%26)
  %outgate : Float(*, *) = aten::sigmoid(%27)
  %14 : Float(*, *) = aten::mul(%forgetgate, %13)
  %11 : Float(*, *) = aten::mul(%ingate, %cellgate)
  %cy : Float(*, *) = aten::add(%14, %11, %38)
  %4 : Float(*, *) = aten::tanh(%cy)
  %hy : Float(*, *) = aten::mul(%outgate, %4)
  return (%hy)
"""  # noqa: E501

FUSED = ("aten::t", "aten::mm", "aten::t", "aten::mm", "prim::FusionGroup", "prim::TupleConstruct")
"""What is left of the graph beside the group; the overview has three nodes more, which broadcast the operands."""


DERIVATIVE_PRESERVING: tuple[Pass, ...] = (
    DeadCodeElimination(),
    CommonSubexpressionElimination(),
    ConstantPooling(),
    Peephole(),
    LoopUnrolling(),
    BatchMM(),
)
"""In the order of the overview."""


def preserve(graph: Graph) -> None:
    PassManager().run(graph, DERIVATIVE_PRESERVING)


STAGES: dict[str, tuple[Callable[[Graph], None], str, tuple[str, ...]]] = {
    "specialized": (
        specialize,
        SPECIALIZED,
        ("As in the overview; the types of inputs have devices and gradients too.",),
    ),
    "with_constants_propagated": (
        propagate,
        WITH_CONSTANTS_PROPAGATED,
        ("The overview shows it together with the next stage; here each is separate.",),
    ),
    "with_constant_chunk": (canonicalise, WITH_CONSTANT_CHUNK, ("Node for node as in the overview.",)),
    "after_derivative_preserving_passes": (
        preserve,
        WITH_CONSTANT_CHUNK,
        ("Nothing is left for them to do: the overview shows the same graph twice.",),
    ),
}
"""By the name of a stage: what makes it of the one before, its graph in the overview, and notes on it."""


def graph_at(name: str) -> Graph:
    graph = rekindle.script(programs.lstm_cell).graph.copy()
    for each, (step, *_) in STAGES.items():
        step(graph)
        if each == name:
            return graph
    raise KeyError(name)


def normalized(text: str) -> list[str]:
    """The graph in normal form, with the types of tensors, which the normal form leaves out."""
    return normalize(text.replace("Float(*, *)", "Matrix").replace("Float(*)", "Row"))


@pytest.mark.parametrize("name", STAGES)
def test_graph_is_the_overviews(name: str) -> None:
    text = print_graph(graph_at(name), ranges=False, verbosity=1)
    assert normalized(text) == normalized(STAGES[name][1])


@pytest.mark.parametrize("name", STAGES)
def test_printed_graph(name: str, golden: GoldenTexts) -> None:
    text = print_graph(graph_at(name), ranges=False)
    assert str(parse_graph(text)) == text
    golden(f"overview/lstm_cell_{name}", "".join(f"# {note}\n" for note in STAGES[name][2]) + f"\n{text}")


@pytest.mark.parametrize("name", STAGES)
def test_answers(name: str) -> None:
    answer = InterpreterState(Code(graph_at(name), "lstm_cell")).run(INPUTS)
    torch.testing.assert_close(answer, programs.lstm_cell(*INPUTS), rtol=0, atol=0)


def test_differentiable_graph_is_the_overviews(golden: GoldenTexts) -> None:
    graph = graph_at("after_derivative_preserving_passes")
    results = graph.outputs[0].node
    graph.return_node.replace_input(0, results.inputs[0])
    results.destroy()
    require_gradients(graph)
    PassManager().run(graph, [CreateDifferentiableGraphs()])
    assert normalized(print_graph(graph, ranges=False, verbosity=1)) == normalized(DIFFERENTIABLE)
    note = (
        "# Node for node as in the overview, the order of the inputs included, for the function without its second\n"
        "# result: the graph would end at %cy, since a caller could differentiate %hy with respect to it.\n"
    )
    golden("overview/lstm_cell_differentiable", f"{note}\n{print_graph(graph, ranges=False)}")


def test_fused_graph(golden: GoldenTexts) -> None:
    graph = graph_at("after_derivative_preserving_passes")
    PassManager().run(graph, [FuseGraph(products=False), DeadCodeElimination()])
    assert tuple(node.kind for node in graph.nodes) == FUSED
    note = (
        "# The overview's group begins with four chunks and adds those, because its kernels could not take a chunk of\n"
        "# what they compute, and wants its operands broadcast before. Kernels here do both.\n"
    )
    golden("overview/lstm_cell_fused", f"{note}\n{print_graph(graph, ranges=False)}")


def test_last_graph_is_that_of_torch_jit_today() -> None:
    with executor_of_the_overview():
        function = script_with_torch(programs.lstm_cell)
        function(*INPUTS)
        text = str(function.graph_for(*INPUTS))
    ours = print_graph(graph_at("after_derivative_preserving_passes"), ranges=False, verbosity=1)
    assert normalized(re.sub(r", (requires_grad=\d|device=cpu)", "", text)) == normalized(ours)


@contextmanager
def executor_of_the_overview() -> Iterator[None]:
    """torch.jit still has it beside the one that records profiles."""
    before = torch._C._jit_set_profiling_executor(False)
    try:
        yield
    finally:
        torch._C._jit_set_profiling_executor(before)
