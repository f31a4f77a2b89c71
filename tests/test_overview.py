"""TorchScript's technical overview, its programs and its graphs, compared with what is compiled here.

The graph texts of the overview were written by releases long gone. Each is here as today's compilers spell it, with
a note of what was changed and why; the golden file beside it is what the printer writes, the notes on top. Elsewhere:
the tree of ``z.sigmoid() - (x + y)`` and the tokens of a block in tests/syntax, the instructions of the LSTM cell in
tests/runtime.
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from typing import Any

import pytest
import torch

import rekindle
import tests.overview_programs as programs
from rekindle.frontend.ssa.exits import unwrap_with_bodies, wrap_with_bodies
from rekindle.ir.operators.registry import REGISTRY
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.text.schema_parser import parse_schema
from tests.support.golden import GoldenTexts
from tests.support.oracle import normalize, script_with_torch


@dataclass(frozen=True)
class Example:
    """A program, its graph as the overview has it but brought up to date, and what was brought up to date."""

    program: Any
    graph: str
    notes: tuple[str, ...]
    calls: tuple[tuple[Any, ...], ...]


TENSORS = (torch.tensor([0.5, -1.0]), torch.tensor([2.0, 0.25]))

EXAMPLES = {
    "arithmetic": Example(
        programs.arithmetic,
        """
graph(%0 : Tensor,
      %1 : Tensor):
  %2 : int = prim::Constant[value=1]()
  %3 : Tensor = aten::add(%0, %1, %2)
  %4 : Tensor = aten::mul(%3, %3)
  %5 : Tensor = aten::mul(%4, %3)
  %6 : Tensor = aten::tanh(%5)
  %7 : Tensor = aten::add(%6, %6, %2)
  %8 : Tensor = aten::add(%4, %7, %2)
  return (%8)
""",
        (
            "Double(2) is Tensor: a program that was scripted and not run yet knows no shapes.",
            "The last add takes %4, which is d. The old text has %5, which is d * c: a mistake.",
        ),
        (TENSORS,),
    ),
    "branch": Example(
        programs.branch,
        """
graph(%a : Tensor,
      %b : Tensor,
      %c : Tensor):
  %2 : int = prim::Constant[value=1]()
  %3 : Tensor = aten::add(%a, %b, %2)
  %4 : bool = aten::Bool(%c)
  %5 : Tensor = prim::If(%4)
    block0():
      %7 : Tensor = aten::add(%3, %3, %2)
      -> (%7)
    block1():
      %9 : Tensor = aten::add(%b, %3, %2)
      -> (%9)
  return (%5)
""",
        (
            "Dynamic is Tensor: the type was renamed.",
            "A condition is a bool: a Tensor becomes one by aten::Bool, which did not exist.",
            "The three constants 1 are one: constants are pooled.",
            "A closing brace after the first block is gone: it was left over from an older syntax.",
        ),
        ((*TENSORS, torch.tensor(True)), (*TENSORS, torch.tensor(False))),
    ),
    "loop": Example(
        programs.loop,
        """
graph(%z.1 : Tensor):
  %3 : bool = prim::Constant[value=1]()
  %1 : int = prim::Constant[value=0]()
  %2 : int = aten::size(%z.1, %1)
  %z : Tensor = prim::Loop(%2, %3, %z.1)
    block0(%i : int, %5 : Tensor):
      %z.2 : Tensor = aten::mul(%5, %5)
      -> (%3, %z.2)
  return (%z)
""",
        (
            "Dynamic is Tensor: the type was renamed.",
            "The parameter is %x.1, not %z.1: z is another name for the same value, and the first name stays.",
        ),
        ((torch.tensor([[0.5], [-1.0]]),),),
    ),
    "continues": Example(
        programs.continues,
        """
graph(%i.1 : int):
  %max : int = prim::Constant[value=9223372036854775807]()
  %5 : int = prim::Constant[value=5]()
  %3 : int = prim::Constant[value=3]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %continue_loop.1 : bool = aten::lt(%i.1, %5)
  %i : int = prim::Loop(%max, %continue_loop.1, %i.1)
    block0(%trip : int, %i.2 : int):
      %is_3 : bool = aten::eq(%i.2, %3)
      %continue_loop : bool, %i.5 : int = prim::If(%is_3)
        block0():
          %i.3 : int = aten::add(%i.2, %1)
          %continue_loop.2 : bool = aten::lt(%i.3, %5)
          -> (%continue_loop.2, %i.3)
        block1():
          %i.4 : int = aten::add(%i.2, %2)
          %continue_loop.3 : bool = aten::lt(%i.4, %5)
          -> (%continue_loop.3, %i.4)
      -> (%continue_loop, %i.5)
  return (%i)
""",
        (
            "The overview shows the outcome as Python; this is that program as a graph.",
            "did_exit is gone: one branch always continues, so the rest of the body moves into the other.",
        ),
        tuple((i,) for i in range(-2, 8)),
    ),
    "raises": Example(
        programs.raises,
        """
graph(%i : int):
  %0 : int = prim::Constant[value=0]()
  %message : str = prim::Constant[value="Negative input"]()
  %class : str = prim::Constant[value="builtins.Exception"]()
  %never : float = prim::Uninitialized()
  %negative : bool = aten::lt(%i, %0)
  %result : float = prim::If(%negative)
    block0():
       = prim::RaiseException(%message, %class)
      -> (%never)
    block1():
      %root : float = aten::sqrt(%i)
      -> (%root)
  return (%result)
""",
        (
            "The overview describes this graph in words: one output, the root in a branch, prim::Uninitialized in the",
            "other; the print is gone, as nothing reaches it.",
        ),
        ((4,), (0,)),
    ),
    "constant_of_a_module": Example(
        programs.constant_of_a_module,
        """
graph(%x : float):
  %pi : float = prim::Constant[value=3.1415926535897931]()
  %1 : float = aten::mul(%pi, %x)
  return (%1)
""",
        ("The overview describes it in words: math.pi becomes a constant of the graph.",),
        ((2.0,),),
    ),
    "lstm_cell": Example(
        programs.lstm_cell,
        """
graph(%x : Tensor,
      %hx : Tensor,
      %cx : Tensor,
      %w_ih : Tensor,
      %w_hh : Tensor,
      %b_ih : Tensor,
      %b_hh : Tensor):
  %7 : int = prim::Constant[value=4]()
  %8 : int = prim::Constant[value=1]()
  %9 : Tensor = aten::t(%w_ih)
  %10 : Tensor = aten::mm(%x, %9)
  %11 : Tensor = aten::t(%w_hh)
  %12 : Tensor = aten::mm(%hx, %11)
  %13 : Tensor = aten::add(%10, %12, %8)
  %14 : Tensor = aten::add(%13, %b_ih, %8)
  %gates : Tensor = aten::add(%14, %b_hh, %8)
  %16 : Tensor[] = aten::chunk(%gates, %7, %8)
  %ingate.1 : Tensor, %forgetgate.1 : Tensor, %cellgate.1 : Tensor, %outgate.1 : Tensor = prim::ListUnpack(%16)
  %ingate : Tensor = aten::sigmoid(%ingate.1)
  %forgetgate : Tensor = aten::sigmoid(%forgetgate.1)
  %cellgate : Tensor = aten::tanh(%cellgate.1)
  %outgate : Tensor = aten::sigmoid(%outgate.1)
  %25 : Tensor = aten::mul(%forgetgate, %cx)
  %26 : Tensor = aten::mul(%ingate, %cellgate)
  %cy : Tensor = aten::add(%25, %26, %8)
  %28 : Tensor = aten::tanh(%cy)
  %hy : Tensor = aten::mul(%outgate, %28)
  %30 : (Tensor, Tensor) = prim::TupleConstruct(%hy, %cy)
  return (%30)
""",
        (
            "Node for node as in the overview; only the suffixes of names and the numbers are counted otherwise today.",
            "The instructions that it becomes are a golden text of the runtime.",
        ),
        (
            (
                *(torch.ones(2, 3),),
                *(torch.ones(2, 4),) * 2,
                torch.ones(16, 3),
                torch.ones(16, 4),
                *(torch.ones(16),) * 2,
            ),
        ),
    ),
    "views": Example(
        programs.views,
        """
graph(%t : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %t2 : Tensor = aten::select(%t, %0, %0)
  %a : Tensor = aten::relu_(%t2)
  %b : Tensor = aten::add(%t, %t, %1, %t)
  %2 : (Tensor, Tensor) = prim::TupleConstruct(%t, %t2)
  return (%2)
""",
        ("The overview shows the lines of the program one by one; this is their graph.",),
        ((torch.tensor([[-1.0, 2.0], [3.0, -4.0]]),),),
    ),
    "with_statement": Example(
        programs.with_statement,
        """
graph(%x.1 : Tensor,
      %c.1 : __torch__.tests.overview_programs.Multiplier):
  %2 : int = prim::Constant[value=1]()
  %mult.1 : int = prim::Enter(%c.1)
  %y.1 : Tensor = aten::add(%x.1, %mult.1, %2)
  %11 : Tensor = prim::Exit(%c.1)
  return (%y.1)
""",
        (
            "Node for node as in the overview, which shows the body only; c is an object of a script class.",
            "The overview's two texts give the constant 1 two names; it is %2 here.",
        ),
        ((TENSORS[0], programs.Multiplier(2)),),
    ),
}


@pytest.fixture(params=EXAMPLES)
def example(request: pytest.FixtureRequest) -> Example:
    return EXAMPLES[request.param]


def test_graph_is_the_overviews(example: Example) -> None:
    assert normalize(str(rekindle.script(example.program).graph)) == normalize(example.graph)


def test_graph_is_that_of_torch_jit_today(example: Example) -> None:
    assert normalize(example.graph) == normalize(str(script_with_torch(example.program).graph))


def test_printed_graph(example: Example, golden: GoldenTexts) -> None:
    notes = "".join(f"# {note}\n" for note in example.notes)
    golden(
        f"overview/{example.program.__name__}", notes + "\n" + _without_folders(rekindle.script(example.program).graph)
    )


def test_printed_graph_parses_back(example: Example) -> None:
    text = str(rekindle.script(example.program).graph)
    assert str(parse_graph(text)) == text


def test_answers(example: Example) -> None:
    compiled = rekindle.script(example.program)
    for arguments in example.calls:
        ours, theirs = _copies(arguments), _copies(arguments)
        torch.testing.assert_close(compiled(*ours), example.program(*theirs), rtol=0, atol=0)
        torch.testing.assert_close(_attributes(ours), _attributes(theirs), rtol=0, atol=0)


def test_exit_transform_means_the_same() -> None:
    """The overview explains the loop with continue by another program, which (did_exit made definite) does the same."""
    compiled, transformed = rekindle.script(programs.continues), rekindle.script(programs.continues_transformed)
    for i in range(-3, 9):
        assert compiled(i) == transformed(i) == programs.continues(i)


def test_with_statements_have_blocks_while_exits_are_transformed(golden: GoldenTexts) -> None:
    """The body and the prim::Exit are each in a block of a prim::With; then all is as before. As in the overview,
    nothing after the statement reads what its body computes."""
    graph = parse_graph(EXAMPLES["with_statement"].graph.replace("return (%y.1)", "return (%mult.1)"))
    before = str(graph)
    wrap_with_bodies(graph.block)
    golden("overview/with_statement_in_exit_transform", str(graph))
    unwrap_with_bodies(graph.block)
    assert str(graph) == before


def test_raise() -> None:
    with pytest.raises(Exception, match=r"^Negative input$"):
        rekindle.script(programs.raises)(-1)


def test_refinement_survives_the_exit_transform(golden: GoldenTexts, capsys: pytest.CaptureFixture[str]) -> None:
    """After a continue that took None with it, x is an int; were exits transformed earlier, an Optional[int]."""
    compiled = rekindle.script(programs.refined)
    text = str(compiled.graph)
    assert normalize(text) == normalize(str(script_with_torch(programs.refined).graph))
    assert _type_printed(text) == "int"
    assert _type_printed(str(rekindle.script(programs.refined_rearranged).graph)) == "int?"
    golden("overview/refined", _without_folders(compiled.graph))
    for arguments in ((True, 1), (True, 3), (False, 0)):
        compiled(*arguments)
        ours = capsys.readouterr().out
        programs.refined(*arguments)
        assert ours == capsys.readouterr().out


def test_fork_and_wait(golden: GoldenTexts) -> None:
    compiled = rekindle.script(programs.forked)
    text = str(compiled.graph)
    assert normalize(text) == normalize(str(script_with_torch(programs.forked).graph))
    assert str(parse_graph(text)) == text
    golden("overview/forked", _without_folders(text))
    expected = (programs.arithmetic(*TENSORS), TENSORS[0] - TENSORS[1])
    for _ in range(3):
        torch.testing.assert_close(compiled(*TENSORS), expected, rtol=0, atol=0)


@pytest.mark.parametrize(
    "schema",
    [
        "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        "aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
        "aten::add.int(int a, int b) -> int",
        "aten::add.float(float a, float b) -> float",
    ],
)
def test_overloads_of_add(schema: str) -> None:
    """The overview lists four overloads of aten::add; since then they have names, other parameters' names and alpha."""
    operator = REGISTRY.find(schema.partition("(")[0])
    assert operator is not None
    assert str(operator.schema) == schema
    assert str(parse_schema(schema)) == schema


@pytest.mark.parametrize(
    "schema",
    [
        "add(Tensor a, Tensor b) -> Tensor",
        "view(Tensor(a) self, int[] size) -> Tensor(a)",
        "add_(Tensor(a!) self, Tensor other) -> Tensor(a!)",
        "list_select(Tensor[] list, int idx) -> Tensor(*)",
        "example_add(Tensor a, Tensor b) -> Tensor",
    ],
)
def test_schemas_of_the_overview(schema: str) -> None:
    assert str(parse_schema(schema)) == schema


def _without_folders(graph: object) -> str:
    return re.sub(r"# \S*/(\w+\.py:)", r"# \1", str(graph))


def _type_printed(text: str) -> str:
    """The type of the value that the graph prints."""
    name = re.search(r"prim::Print\((%[\w.]+)\)", text)
    assert name is not None
    type = re.search(re.escape(name[1]) + r" : ([\w?]+)", text)
    assert type is not None
    return type[1]


def _copies(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return copy.deepcopy(arguments)


def _attributes(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, of objects their attributes."""
    return tuple(vars(a) if isinstance(a, programs.Multiplier) else a for a in arguments)


def test_every_program_is_used() -> None:
    named = {example.program.__name__ for example in EXAMPLES.values()}
    named |= {"continues_transformed", "refined", "refined_rearranged", "forked", "Multiplier"}
    defined = {name for name, value in vars(programs).items() if getattr(value, "__module__", "") == programs.__name__}
    assert named == defined
