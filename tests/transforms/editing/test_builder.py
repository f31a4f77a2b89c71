"""Nodes built as PyTorch's functions make tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import rekindle
from rekindle.errors import GraphError, ParseError, SchemaError, UndefinedNameError
from rekindle.ir.building import Builder
from rekindle.ir.graph import Graph
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.types import INT, OptionalType
from rekindle.ir.verifier import verify

START = """graph(%x : Tensor,
      %w : Tensor,
      %n : int):
  %y : Tensor = aten::relu(%x)
  return (%y)
"""
X = torch.arange(12.0).reshape(3, 4) / 5 - 1
W = torch.arange(16.0).reshape(4, 4) / 7 - 1


def edited(build_result: Callable[[Builder, Any, Any, Any], Any]) -> Graph:
    """The graph with another result, built before its only node."""
    graph = parse_graph(START)
    node = next(iter(graph.nodes))
    with graph.inserting_before(node) as build:
        x, w, n = build(*graph.inputs)
        node.output.replace_all_uses_with(build_result(build, x, w, n))
    node.destroy()
    verify(graph)
    return graph


def answer(build_result: Callable[[Builder, Any, Any, Any], Any], n: int = 2) -> Any:
    return rekindle.create_function(edited(build_result))(X, W, n)


def test_expressions_become_nodes() -> None:
    graph = edited(lambda build, x, w, n: build.tanh(x) @ w + 1)
    assert (
        str(graph)
        == """graph(%x : Tensor,
      %w : Tensor,
      %n : int):
  %4 : Tensor = aten::tanh(%x)
  %5 : Tensor = aten::matmul(%4, %w)
  %6 : int = prim::Constant[value=1]()
  %7 : int = prim::Constant[value=1]()
  %8 : Tensor = aten::add(%5, %6, %7)
  return (%8)
"""
    )


def halves(t: torch.Tensor, k) -> torch.Tensor:  # type: ignore[no-untyped-def]
    """``k`` has no annotation: it is what it is given."""
    if k > 1:
        t = t / k
    return t.neg()


@rekindle.script
def compiled(t: torch.Tensor, k: int = 3) -> torch.Tensor:
    return t * k


CASES: list[tuple[str, Callable[..., Any], Callable[..., Any]]] = [
    ("values on the right", lambda b, x, w, n: 1 - x @ w.value, lambda x, w, n: 1 - x @ w),
    ("methods", lambda b, x, w, n: x.sum(1, keepdim=True).abs(), lambda x, w, n: x.sum(1, keepdim=True).abs()),
    ("attributes", lambda b, x, w, n: x.reshape(x.shape[1], -1).T, lambda x, w, n: x.reshape(x.shape[1], -1).T),
    ("operators of Python", lambda b, x, w, n: -(x**2) // 0.3 % 2, lambda x, w, n: -(x**2) // 0.3 % 2),
    ("comparisons", lambda b, x, w, n: (x > 0) & ~(x == 0.2), lambda x, w, n: (x > 0) & ~(x == 0.2)),
    ("numbers", lambda b, x, w, n: x * (n * 3 - 1), lambda x, w, n: x * (n * 3 - 1)),
    ("subscripts", lambda b, x, w, n: x[1:, None, ..., n] + x[n, :1], lambda x, w, n: x[1:, None, ..., n] + x[n, :1]),
    ("lists of values", lambda b, x, w, n: b.cat([x, w[:, :4]], dim=0), lambda x, w, n: torch.cat([x, w], dim=0)),
    ("sizes with values", lambda b, x, w, n: x.reshape([n, 6]), lambda x, w, n: x.reshape(n, 6)),
    ("several results", lambda b, x, w, n: b.max(x, 1)[0], lambda x, w, n: torch.max(x, 1)[0]),
    ("functions of torch", lambda b, x, w, n: torch.clamp(x, min=0), lambda x, w, n: torch.clamp(x, min=0)),
    ("torch.nn.functional", lambda b, x, w, n: F.gelu(F.linear(x, w)), lambda x, w, n: F.gelu(F.linear(x, w))),
    ("functions inlined", lambda b, x, w, n: b.inline(halves, x, n), lambda x, w, n: halves(x, n)),
    ("functions called", lambda b, x, w, n: b.call(halves, x, k=n), lambda x, w, n: halves(x, n)),
    ("compiled functions", lambda b, x, w, n: b.call(compiled, x), lambda x, w, n: x * 3),
    ("code", lambda b, x, w, n: b.code("torch.where(x > 0, x, w[0]) if n > 1 else w", x=x, w=w, n=n),
     lambda x, w, n: torch.where(x > 0, x, w[0]) if n > 1 else w),
    ("graphs", lambda b, x, w, n: b.inline(compiled.graph, x, n), lambda x, w, n: x * n),
    ("tensors", lambda b, x, w, n: x + torch.ones(4), lambda x, w, n: x + 1),
    ("dtypes", lambda b, x, w, n: x.to(torch.float64), lambda x, w, n: x.to(torch.float64)),
]  # fmt: skip


@pytest.mark.parametrize(("built", "eager"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_they_mean_what_they_mean_in_pytorch(built: Callable[..., Any], eager: Callable[..., Any]) -> None:
    found, wanted = answer(built), eager(X, W, 2)
    assert found.dtype == wanted.dtype
    torch.testing.assert_close(found, wanted, rtol=0, atol=0, equal_nan=True)


def test_inlined_code_keeps_its_lines_and_calls_stay_calls() -> None:
    graph = edited(lambda build, x, w, n: build.inline(halves, x, n))
    (division,) = graph.find_nodes("aten::div")
    assert division.range.text == "t / k"
    assert [name for name, _ in division.callstack] == ["halves"]
    assert not graph.find_nodes("prim::CallFunction")
    (call,) = edited(lambda build, x, w, n: build.call(halves, x, n)).find_nodes("prim::CallFunction")
    assert str(call.inputs[0].type) == "Function"


def test_a_tuple_that_a_call_gives_is_unpacked() -> None:
    def both(t: torch.Tensor) -> tuple[torch.Tensor, int]:
        return t + 1, t.dim()

    def use(build: Builder, x: Any, w: Any, n: Any) -> Any:
        more, rank = build.call(both, x)
        return more * rank

    assert torch.equal(answer(use), (X + 1) * 2)


def test_new_nodes_stand_where_the_node_stands_that_they_are_made_for() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        y = x.neg()
        return y.sin()

    graph = rekindle.script(f).graph
    sine, negation = graph.find_nodes("aten::sin")[0], graph.find_nodes("aten::neg")[0]
    negation.scope = "__module.part"
    with graph.inserting_before(sine) as build:
        one = build(sine.input).exp()
    with graph.inserting_after(sine, like=negation) as build:
        two = build.cos(one)
    assert one.value.node.range.text == "y.sin"
    assert (two.value.node.range.text, two.value.node.scope) == ("x.neg", "__module.part")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NoneType = prim::Constant()"),
        (True, "bool = prim::Constant[value=1]()"),
        (-3, "int = prim::Constant[value=-3]()"),
        (0.5, "float = prim::Constant[value=0.5]()"),
        (1j, "complex = prim::Constant[value=0.+1.j]()"),
        ("text", 'str = prim::Constant[value="text"]()'),
        (torch.int64, "int = prim::Constant[value=4]()"),
        (torch.device("cpu"), 'Device = prim::Constant[value="cpu"]()'),
        (torch.ones(2, 2), "Tensor = prim::Constant[value= 1  1  1  1 [ CPUFloatType{2,2} ]]()"),
        ([1, 2], "int[] = prim::Constant[value=[1, 2]]()"),
        (("a", 1.0), '(str, float) = prim::Constant[value=("a", 1.)]()'),
        ({"k": 1}, 'Dict(str, int) = prim::Constant[value={"k": 1}]()'),
    ],
)
def test_constants_of_every_kind(value: object, text: str) -> None:
    graph = parse_graph(START)
    with graph.inserting_at_end(graph.block) as build:
        node = build.constant(value).value.node
    assert str(node).strip() == f"%4 : {text}"


def test_a_constant_of_a_type_that_its_class_does_not_tell() -> None:
    graph = parse_graph(START)
    with graph.inserting_at_end(graph.block) as build:
        assert str(build.constant(None, OptionalType(INT)).value.type) == "int?"
        assert str(build.list([], INT).value.type) == "int[]"


REFUSED: list[tuple[Callable[[Builder, Any, Any, Any], Any], type[Exception], str]] = [
    (
        lambda b, x, w, n: b.dot(b.tanh(x) @ w, "weight"),
        SchemaError,
        """no overload of 'aten::dot' can be called with (Tensor, str). The candidates are
  aten::dot(Tensor self, Tensor tensor) -> Tensor
      argument 'tensor': expected Tensor, got str
  aten::dot.out(Tensor self, Tensor tensor, *, Tensor(a!) out) -> Tensor(a!)
      argument 'tensor': expected Tensor, got str""",
    ),
    (
        lambda b, x, w, n: b.sigmoidd(x.exp()),
        UndefinedNameError,
        "there is no operator 'aten::sigmoidd'",
    ),
    (lambda b, x, w, n: x.sinn(), UndefinedNameError, "a value of type Tensor has no attribute or method 'sinn'"),
    (lambda b, x, w, n: b.cat([x, n]), GraphError, "the elements of a list must be of one type, not (Tensor, int)"),
    (lambda b, x, w, n: b.relu(object()), GraphError, "a object cannot be a constant of a program"),
    (
        lambda b, x, w, n: b.inline(halves_of_ints, x.exp(), "k"),
        SchemaError,
        """'halves_of_ints' cannot be called with (Tensor, str): argument 'k': expected int, got str.
It is declared as
  halves_of_ints(Tensor t, int k) -> Tensor""",
    ),
    (lambda b, x, w, n: b.inline(3, x), GraphError, "a int cannot be called"),
    (
        lambda b, x, w, n: b.call("aten::gelu", x),
        GraphError,
        "a str cannot be called; build.op('aten::gelu', …) inserts an operator by its kind",
    ),
    (lambda b, x, w, n: b.code("x +", x=x.exp()), ParseError, "Expected an expression but found ')'."),
    (
        lambda b, x, w, n: 1 if x > 0 else 2,
        TypeError,
        (
            "whether %5 is true is known when the graph runs; write what depends on it as a function with an `if`, "
            "and put that in: build.inline(function, …)"
        ),
    ),
    (
        lambda b, x, w, n: len(x.exp()),
        TypeError,
        "the length of %4 is known when the graph runs; build.len(…) asks for it then",
    ),
    (
        lambda b, x, w, n: list(x.exp()),
        TypeError,
        "a Tensor of a graph cannot be walked: its length is known when it runs",
    ),
    (
        lambda b, x, w, n: b(parse_graph(START).inputs[0]).exp(),
        GraphError,
        "%x belongs to another graph than aten::exp",
    ),
]


@pytest.mark.parametrize(("wrong", "error", "message"), REFUSED)
def test_what_is_refused_leaves_the_graph_as_it_was(
    wrong: Callable[..., Any], error: type[Exception], message: str
) -> None:
    graph = parse_graph(START)
    node = next(iter(graph.nodes))
    with pytest.raises(error) as caught, graph.inserting_before(node) as build:
        wrong(build, *build(*graph.inputs))
    assert str(caught.value).partition("\n  File")[0].partition("\n    def code")[0] == message
    assert str(graph) == START
    verify(graph)
    assert graph.insert_point is graph.return_node


def test_what_is_in_use_stays_where_the_block_raises() -> None:
    graph = parse_graph(START)
    node = next(iter(graph.nodes))

    def edit() -> None:
        with graph.inserting_before(node) as build:
            node.replace_input(0, build.exp(node.input))
            build.sin(node.input)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        edit()
    verify(graph)
    assert [each.kind for each in graph.nodes] == ["aten::exp", "aten::relu"]


def test_nodes_are_cloned_from_another_graph() -> None:
    source = rekindle.script(halves_of_ints).graph
    graph = parse_graph(START)
    node = next(iter(graph.nodes))
    nodes = list(source.nodes)
    with graph.inserting_before(node) as build:
        made = build.clone(nodes, {source.inputs[0]: graph.inputs[0], source.inputs[1]: graph.inputs[2]})
    node.replace_input(0, made[source.outputs[0]])
    verify(graph)
    wanted = torch.relu(halves_of_ints(X, 2))
    assert torch.equal(rekindle.create_function(graph)(X, W, 2), wanted)
    before = str(graph)
    with (
        pytest.raises(GraphError, match=r"^nothing stands for %k\.1, which belongs to another graph$"),
        graph.inserting_before(node) as build,
    ):
        build.clone(nodes, {source.inputs[0]: graph.inputs[0]})
    assert str(graph) == before


def halves_of_ints(t: torch.Tensor, k: int) -> torch.Tensor:
    if k > 1:
        t = t / k
    return t.neg()
