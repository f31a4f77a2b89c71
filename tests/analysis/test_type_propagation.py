"""Types of tensors that are inferred before a graph runs, compared with those at run time."""

from __future__ import annotations

import random
import warnings
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

import rekindle
from rekindle.analysis.type_propagation import propagate_types, refine_types
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.types import TENSOR, TensorType, TupleType, Type
from rekindle.ir.verifier import verify
from rekindle.passes import inline
from rekindle.runtime.interpreter.instructions import copy_constant
from tests.analysis.aliasing_programs import aliasing_program
from tests.analysis.test_aliasing_programs import program_arguments
from tests.analysis.watching import Watcher
from tests.property.test_programs import load, unload
from tests.support.graphs import Evaluator
from tests.sweeps.cases import cases_of, load as load_cases
from tests.sweeps.op_db import database

Sizes = tuple[int | None, ...]


def known(*sizes: int | None, dtype: torch.dtype = torch.float32, grad: bool | None = False) -> TensorType:
    return TensorType(dtype, torch.device("cpu"), sizes, None, grad)


def texts(graph_text: str, types: list[Type | None], **options: Any) -> dict[str, str]:
    """The type inferred for each tensor of a graph, by its name; tensors of which nothing is known are omitted."""
    graph = parse_graph(graph_text.lstrip())
    types_of = propagate_types(graph, types, **options)
    told = {value: type for value, type in types_of.items() if isinstance(type, TensorType) and type != TENSOR}
    return {value.name: str(type).replace(", device=cpu", "") for value, type in told.items()}


MATRICES = """
graph(%x : Tensor, %w : Tensor, %n : int):
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %ten : int = prim::Constant[value=10]()
  %end : int = prim::Constant[value=9223372036854775807]()
  %y : Tensor = aten::matmul(%x, %w)
  %z : Tensor = aten::relu(%y)
  %b : Tensor = aten::gt(%z, %one)
  %s : Tensor = aten::slice(%z, %one, %ten, %end, %one)
  %u : Tensor = aten::slice(%z, %one, %n, %end, %one)
  %flat : Tensor = aten::flatten(%z, %n, %n)
  %squeezed : Tensor = aten::squeeze(%x)
  %sum : Tensor = aten::sum(%x, %none)
  %top : Tensor = aten::slice(%x, %zero, %zero, %one, %one)
  %long : Tensor = aten::argmax(%x, %one, %b2)
  return (%z)
""".replace("%b2", "%c").replace("%n : int)", "%n : int, %c : bool)")


def test_known_sizes() -> None:
    assert texts(MATRICES, [known(3, 4), known(4, 8), None, None]) == {
        "x": "Float(3, 4, requires_grad=0)",
        "w": "Float(4, 8, requires_grad=0)",
        "y": "Float(3, 8, requires_grad=0)",
        "z": "Float(3, 8, requires_grad=0)",
        "b": "Bool(3, 8, requires_grad=0)",
        "s": "Float(3, 0, requires_grad=0)",
        "u": "Float(3, *, requires_grad=0)",
        "squeezed": "Float(3, 4, requires_grad=0)",
        "flat": "FloatTensor(requires_grad=0)",
        "sum": "Float(requires_grad=0)",
        "top": "Float(1, 4, requires_grad=0)",
        "long": "LongTensor(requires_grad=0)",
    }


def test_known_ranks() -> None:
    assert texts(MATRICES, [known(None, None), known(None, None), None, None]) == {
        "x": "Float(*, *, requires_grad=0)",
        "w": "Float(*, *, requires_grad=0)",
        "y": "Float(*, *, requires_grad=0)",
        "z": "Float(*, *, requires_grad=0)",
        "b": "Bool(*, *, requires_grad=0)",
        "s": "Float(*, *, requires_grad=0)",  # not 0, though it is for all small sizes
        "u": "Float(*, *, requires_grad=0)",
        "squeezed": "FloatTensor(requires_grad=0)",
        "flat": "FloatTensor(requires_grad=0)",
        "sum": "Float(requires_grad=0)",
        "top": "Float(*, *, requires_grad=0)",  # 0 or 1
        "long": "LongTensor(requires_grad=0)",
    }


def test_nothing_known() -> None:
    of_any = {"b": "BoolTensor(requires_grad=0)", "sum": "Tensor()", "long": "LongTensor(requires_grad=0)"}
    assert texts(MATRICES, [None, None, None, None]) == of_any
    assert texts(MATRICES, [TENSOR, replace(known(4, 8), dtype=None), None, None]) == {
        "w": "Tensor(4, 8, requires_grad=0)",
        **of_any,
    }


GRADIENTS = """
graph(%x : Tensor, %w : Tensor):
  %y : Tensor = aten::mul(%x, %w)
  %cut : Tensor = aten::detach(%y)
  %z : Tensor = aten::neg(%cut)
  %v : Tensor = aten::neg(%x)
  return (%z)
"""


@pytest.mark.parametrize(
    ("enabled", "of_w", "of_y", "of_v"),
    [(None, True, None, False), (True, True, True, False), (False, True, False, False), (True, None, None, False)],
)
def test_gradients(enabled: bool | None, of_w: bool | None, of_y: bool | None, of_v: bool | None) -> None:
    graph = parse_graph(GRADIENTS.lstrip())
    found = propagate_types(graph, [known(2), known(2, grad=of_w)], grad_enabled=enabled)
    told = {value.name: type.requires_grad for value, type in found.items() if isinstance(type, TensorType)}
    assert told == {"x": False, "w": of_w, "y": of_y, "cut": False, "z": False, "v": of_v}


def test_control_flow() -> None:
    told = texts(
        """
graph(%x : Tensor, %y : Tensor, %c : bool, %n : int):
  %true : bool = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %either : Tensor = prim::If(%c)
    block0():
      -> (%x)
    block1():
      -> (%y)
  %chosen : Tensor = prim::If(%true)
    block0():
      -> (%x)
    block1():
      -> (%y)
  %same : Tensor, %grown : Tensor, %spun : Tensor = prim::Loop(%n, %true, %x, %x, %y)
    block0(%i : int, %a : Tensor, %b : Tensor, %d : Tensor):
      %e : Tensor = aten::relu(%a)
      %l : Tensor[] = prim::ListConstruct(%b, %x)
      %f : Tensor = aten::cat(%l, %zero)
      -> (%true, %e, %f, %a)
  return (%either)
""",
        [known(2, 3), known(2, 5), None, None],
    )
    assert told == {
        "x": "Float(2, 3, requires_grad=0)",
        "y": "Float(2, 5, requires_grad=0)",
        "either": "Float(2, *, requires_grad=0)",
        "chosen": "Float(2, 3, requires_grad=0)",
        "same": "Float(2, 3, requires_grad=0)",
        "a": "Float(2, 3, requires_grad=0)",
        "e": "Float(2, 3, requires_grad=0)",
        "grown": "Float(*, 3, requires_grad=0)",
        "b": "Float(*, 3, requires_grad=0)",
        "f": "Float(*, 3, requires_grad=0)",
        "spun": "Float(2, *, requires_grad=0)",
        "d": "Float(2, *, requires_grad=0)",
    }


def test_sizes_as_numbers_and_containers() -> None:
    told = texts(
        """
graph(%x : Tensor, %pair : (Tensor, int)):
  %zero : int = prim::Constant[value=0]()
  %two : int = prim::Constant[value=2]()
  %minus : int = prim::Constant[value=-1]()
  %rows : int = aten::size(%x, %zero)
  %half : int = aten::floordiv(%rows, %two)
  %sizes : int[] = prim::ListConstruct(%half, %two, %minus)
  %v : Tensor = aten::view(%x, %sizes)
  %all : int[] = aten::size(%x)
  %w : Tensor = aten::view(%v, %all)
  %pieces : Tensor[] = aten::split(%x, %two, %zero)
  %piece : Tensor = aten::__getitem__(%pieces, %zero)
  %more : Tensor[] = aten::split(%x, %two, %zero)
  %0 : Tensor[] = aten::append(%more, %v)
  %unsure : Tensor = aten::__getitem__(%more, %zero)
  %t : (Tensor, Tensor) = prim::TupleConstruct(%x, %piece)
  %1 : Tensor, %second : Tensor = prim::TupleUnpack(%t)
  %first : Tensor, %2 : int = prim::TupleUnpack(%pair)
  return (%v)
""",
        [known(4, 3), TupleType((known(7), TENSOR))],
    )
    del told["x"], told["1"]
    assert told == {
        "v": "Float(2, 2, 3, requires_grad=0)",
        "w": "Float(4, 3, requires_grad=0)",
        "piece": "Float(2, 3, requires_grad=0)",
        "second": "Float(2, 3, requires_grad=0)",
        "first": "Float(7, requires_grad=0)",
    }


def test_what_is_resized_is_not_told() -> None:
    told = texts(
        """
graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::transpose_(%a, %zero, %one)
  %c : Tensor = aten::neg(%x)
  %d : Tensor = aten::add_(%c, %x, %one)
  %e : Tensor = aten::neg(%x)
  %f : Tensor = aten::add(%y, %y, %one, %e)
  return (%a)
""",
        [known(2, 3), known(1, grad=None)],
    )
    assert told == {
        "x": "Float(2, 3, requires_grad=0)",
        "y": "Float(1)",
        "c": "Float(2, 3)",
        "d": "Float(2, 3)",
    }


def test_unknown_code_and_modes() -> None:
    told = texts(
        """
graph(%x : Tensor, %o : Any):
  %a : Tensor = aten::neg(%x)
  %entered : Any = prim::Enter(%o)
  %b : Tensor = aten::neg(%a)
  return (%b)
""",
        [known(2, 3), None],
    )
    assert told == {}  # %x may be resized by what is entered, and autocast may be on


def test_sizes_that_few_numbers_fit() -> None:
    told = texts(
        """
graph(%x : Tensor):
  %none : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %four : int = prim::Constant[value=4]()
  %minus : int = prim::Constant[value=-1]()
  %sizes : int[] = prim::ListConstruct(%four, %minus)
  %fours : Tensor = aten::view(%x, %sizes)
  %up_to_one : Tensor = aten::slice(%x, %one, %none, %one, %one)
  return (%fours)
""",
        [known(None, None)],
    )
    assert told["fours"] == "Float(4, *, requires_grad=0)"
    assert told["up_to_one"] == "Float(*, *, requires_grad=0)"  # 0 where there is nothing


def test_lists_of_a_length_that_is_not_known() -> None:
    """A chunk of a short tensor has fewer parts; whichever there are, they are alike."""
    text = """
graph(%x : Tensor, %i : int, %l : int[]):
  %one : int = prim::Constant[value=1]()
  %four : int = prim::Constant[value=4]()
  %pieces : Tensor[] = aten::chunk(%x, %four, %one)
  %a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor = prim::ListUnpack(%pieces)
  %e : Tensor = aten::__getitem__(%pieces, %i)
  %others : Tensor[] = aten::chunk(%x, %four, %one)
  %f : Tensor[] = aten::append(%others, %e)
  %g : Tensor = aten::__getitem__(%others, %i)
  %h : Tensor, %k : Tensor = prim::ConstantChunk[chunks=2, dim=1](%x)
  return (%a, %b, %c, %d, %e, %g)
"""
    matrix = "Float(*, *, requires_grad=0)"
    assert texts(text, [known(None, None), None, None]) == dict.fromkeys("xabcdehk", matrix)
    exact = "Float(3, 2, requires_grad=0)"
    assert texts(text, [known(3, 8), None, None]) == {
        "x": "Float(3, 8, requires_grad=0)",
        **dict.fromkeys("abcd", exact),
        **dict.fromkeys("hk", "Float(3, 4, requires_grad=0)"),
    }


def test_numbers_promote_by_their_type() -> None:
    told = texts(
        """
graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %float : float = prim::Constant[value=1.]()
  %a : Tensor = aten::add(%x, %one, %one)
  %b : Tensor = aten::add(%x, %float, %one)
  return (%a)
""",
        [known(2, dtype=torch.int64)],
    )
    assert told["a"] == "Long(2, requires_grad=0)"
    assert told["b"] == "Float(2, requires_grad=0)"


def test_modes_that_the_graph_sets() -> None:
    text = """
graph(%x : Tensor, %y : Tensor):
  %on : bool = aten::is_grad_enabled()
  %a : Tensor = aten::neg(%x)
  %either : Tensor = prim::If(%on)
    block0():
      -> (%a)
    block1():
      -> (%y)
  return (%either)
"""
    plain = texts(text, [known(2, grad=True), known(3)], grad_enabled=True)
    assert plain["a"] == "Float(2, requires_grad=1)"
    assert plain["either"] == "Float(*)"  # what is_grad_enabled says is known when it runs
    setting = text.replace("  %a : Tensor", "   = aten::set_grad_enabled(%on)\n  %a : Tensor")
    assert texts(setting, [known(2, grad=True), known(3)], grad_enabled=True)["a"] == "Float(2)"


def test_nothing_is_told_where_autocast_may_be_on() -> None:
    told = texts(
        """
graph(%o : Any, %sizes : int[]):
  %none : NoneType = prim::Constant()
  %two : int = prim::Constant[value=2]()
  %entered : Any = prim::Enter(%o)
  %square : int[] = prim::ListConstruct(%two, %two)
  %a : Tensor = aten::ones(%square, %none, %none, %none, %none)
  %b : Tensor = aten::matmul(%a, %a)
  return (%b)
""",
        [None, None],
    )
    assert told == {}


def test_guards_are_believed() -> None:
    told = texts(
        """
graph(%x : Tensor):
  %y : Float(2, 3, requires_grad=0, device=cpu) = prim::Guard(%x)
  %z : Tensor = aten::t(%y)
  return (%z)
""",
        [None],
    )
    assert told == {"y": "Float(2, 3, requires_grad=0)", "z": "Float(3, 2, requires_grad=0)"}


def test_types_are_written_into_the_graph() -> None:
    graph = parse_graph(GRADIENTS.lstrip())
    types = propagate_types(graph, [known(2), known(2)])
    assert refine_types(graph, types)
    assert not refine_types(graph, types)
    verify(graph)
    assert "%z : Float(2, requires_grad=0, device=cpu) = aten::neg(%cut)" in str(graph)


def test_tuples_in_the_graph_fit_what_they_are_made_of() -> None:
    """That an optional tensor is missing is known, but no value has that type."""
    text = """graph(%x : Tensor, %p : bool):
  %none : NoneType = prim::Constant()
  %y : Tensor? = prim::If(%p)
    block0():
      -> (%none)
    block1():
      -> (%none)
  %t : (Tensor, Tensor?) = prim::TupleConstruct(%x, %y)
  return (%t)
"""
    graph = parse_graph(text)
    types = propagate_types(graph, [known(2), None])
    assert refine_types(graph, types)
    verify(graph)
    assert "(Float(2, requires_grad=0, device=cpu), Tensor?) = prim::TupleConstruct" in str(graph)
    assert not refine_types(graph, types)


def test_a_wrong_number_of_types() -> None:
    with pytest.raises(ValueError, match=r"^the graph takes 2 inputs, got 1 types$"):
        propagate_types(parse_graph(GRADIENTS.lstrip()), [None])


def test_random_numbers_stay_where_they_are() -> None:
    state = torch.get_rng_state()
    told = texts(
        """
graph(%x : Tensor, %n : int[]):
  %none : NoneType = prim::Constant()
  %y : Tensor = aten::bernoulli(%x, %none)
  %z : Tensor = aten::rand_like(%y, %none, %none, %none, %none, %none)
  %l : int[] = aten::size(%x)
  %w : Tensor = aten::rand(%l, %none, %none, %none, %none)
  %dtype : int = prim::Constant[value=6]()
  %device : Device = prim::Constant[value="cpu"]()
  %v : Tensor = aten::randn_like(%y, %dtype, %none, %device, %none, %none)
  return (%w)
""",
        [known(2, 3), None],
    )
    assert told["z"] == told["w"] == told["v"] == "Float(2, 3, requires_grad=0)"
    assert torch.equal(state, torch.get_rng_state())


# --------------------------------------------------------------------------------------------------- beside real runs


class Recorder(Watcher):
    """Notes the types that each value has when it is made."""

    def __init__(self) -> None:
        super().__init__()
        self.types: dict[Value, list[Type]] = {}

    def run(self, graph: Graph, arguments: list[Any]) -> Any:
        for value, argument in zip(graph.inputs, arguments, strict=True):
            self.remember(value, argument)
        return Evaluator.run(self, graph, arguments)

    def node(self, node: Node) -> list[Any]:
        return Evaluator.node(self, node) if node.blocks else self._run(node)

    def remember(self, value: Value, found: Any) -> None:
        if isinstance(found, torch.Tensor):
            self.types.setdefault(value, []).append(replace(TensorType.of(found), strides=None))


def _coarser(type: Type | None, choose: random.Random) -> Type | None:
    """The same with something forgotten."""
    if not isinstance(type, TensorType) or choose.random() < 0.1:
        return None if choose.random() < 0.5 else type
    if choose.random() < 0.4:
        return type.with_rank_only()
    assert type.sizes is not None
    return replace(type, sizes=tuple(None if choose.random() < 0.3 else size for size in type.sizes))


def check_run(graph: Graph, arguments: list[Any], seed: int) -> int:
    """Run ``graph``, and compare the inferred types of its values with the values. Returns the number of inferred
    facts."""
    types: list[Type | None] = [
        replace(TensorType.of(argument), strides=None) if isinstance(argument, torch.Tensor) else None
        for argument in arguments
    ]
    choose = random.Random(seed)
    attempts = [
        propagate_types(graph, [_coarser(type, choose) for type in types] if turn else types, grad_enabled=enabled)
        for turn, enabled in ((0, None), (0, True), (1, None), (1, None))
    ]
    recorder = Recorder()
    with warnings.catch_warnings(), torch.enable_grad():
        warnings.simplefilter("ignore")
        recorder.run(graph, arguments)
    told = 0
    for found in attempts:
        for value, seen in recorder.types.items():
            claim = found.get(value, TENSOR)
            for type in seen if isinstance(claim, TensorType) else []:
                assert type.is_subtype_of(claim), f"%{value.name} is {type}, not {claim}\n{graph}"
            told += claim != TENSOR
    return told


@pytest.mark.parametrize("seed", range(20))
def test_beside_runs_of_programs(tmp_path: Path, seed: int) -> None:
    module = load(aliasing_program(seed), tmp_path)
    try:
        graph = rekindle.script(module.f).graph.copy()
        inline(graph)
        check_run(graph, program_arguments(module, seed), seed)
    finally:
        unload(module)


SHARDS = 16


def _cases(entry: Any) -> list[Any]:
    """A few calls of an operator; none where it is for other devices or layouts."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return list(islice(cases_of(entry), 2))
    except Exception:
        return []


@pytest.mark.parametrize("shard", range(SHARDS))
def test_beside_runs_of_operators(tmp_path: Path, shard: int) -> None:
    told = 0
    for name, entry in list(database().items())[shard::SHARDS]:
        cases = _cases(entry)
        module = load_cases(cases, tmp_path, f"entry_{shard}_{name.replace('.', '_')}") if cases else None
        for case in cases:
            try:
                graph = rekindle.script(getattr(module, case.name)).graph
                Evaluator().run(graph, copy_constant(case.arguments))  # type: ignore[arg-type]
            except Exception:
                continue  # not a program: the sweep over operators counts those
            told += check_run(graph, case.arguments, shard) > 0
    assert told > 20


def test_a_dtype_that_is_not_known_is_not_guessed() -> None:
    """PyTorch crashes on numbers that denote no dtype."""
    graph = parse_graph(
        """
graph(%x : Float(2, 2), %dtype : int, %no : bool):
  %none : NoneType = prim::Constant()
  %y : Tensor = aten::to(%x, %dtype, %no, %no, %none)
  return (%y)
""".lstrip()
    )
    facts = propagate_types(graph, [None, None, None])
    assert facts[graph.outputs[0]] == TENSOR
