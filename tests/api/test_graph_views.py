"""Code written for torch.jit's graphs reads and edits the graphs of what was compiled through the drop-in."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import rekindle
from rekindle.api.drop_in.graph_views.views import GraphView
from rekindle.errors import GraphError, VerificationError
from rekindle.ir.graph import Graph


def branchy(x: torch.Tensor, n: int) -> torch.Tensor:
    if n > 2:
        x = x.relu()
    for _ in range(n):
        x = x * 2.5
    return x


def mixed(x: torch.Tensor, sizes: list[int]) -> tuple[torch.Tensor, list[int], str]:
    y = torch.add(x, 2, alpha=3)
    return y.view(sizes), sizes, "done"


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU())
        self.out = torch.nn.Linear(2, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.parts(x).mean((2, 3)))  # type: ignore[no-any-return]


IMAGE = torch.arange(50.0).view(2, 1, 5, 5)


def through_drop_in(function: Any) -> Any:
    with rekindle.installed():
        return torch.jit.script(function)


def traced(function: Any, *args: Any) -> Any:
    with rekindle.installed():
        return torch.jit.trace(function, args)


def told_by(graph: Any) -> list[Any]:
    """What the methods that read a graph return, except for names, in the order of the nodes."""

    def node_told(node: Any) -> tuple[Any, ...]:
        return (
            node.kind(),
            {name: (node.kindOf(name), getattr(node, node.kindOf(name))(name)) for name in node.attributeNames()},
            (node.inputsSize(), node.outputsSize(), node.hasMultipleOutputs(), node.hasUses(), node.mustBeNone()),
            node.isNondeterministic(),
            [(value.type().kind(), value.isCompleteTensor(), value.node().kind()) for value in node.inputs()],
            [(value.type().str(), str(value.type()), value.offset()) for value in node.outputs()],
            [value.toIValue() for value in node.outputs()],
            [[(use.user.kind(), use.offset) for use in value.uses()] for value in node.outputs()],
            [[node_told(inner) for inner in block.nodes()] for block in node.blocks()],
        )

    return [
        [value.type().str() for value in graph.inputs()],
        sorted(map(node_told, graph.nodes()), key=repr),
        [value.type().str() for value in graph.outputs()],
    ]


@pytest.mark.parametrize("function", [branchy, mixed])
def test_views_tell_what_graphs_of_torch_jit_tell(function: Any) -> None:
    theirs = torch.jit.script(function).graph
    assert told_by(through_drop_in(function).graph) == told_by(theirs)


def test_what_rekindle_compiles_has_rekindles_graphs() -> None:
    with rekindle.installed():
        assert isinstance(rekindle.script(branchy).graph, Graph)
        assert isinstance(torch.jit.script(branchy).graph, GraphView)
        assert isinstance(rekindle.script(Net()).graph, Graph)
        net = torch.jit.script(Net())
    for owner in (net, net.forward, net.parts, net.parts[0].forward):
        assert isinstance(owner.graph, GraphView)
        assert isinstance(owner.inlined_graph, GraphView)
    assert isinstance(rekindle.vmap(through_drop_in(branchy), (0, None)).graph, Graph)


def test_the_text_of_a_view_is_that_of_the_graph() -> None:
    function = through_drop_in(branchy)
    assert str(function.graph) == str(function.graph.ir)
    assert " # " in str(function.graph)
    assert " # " not in function.graph.str(False)


def test_views_of_one_object_are_equal() -> None:
    graph = through_drop_in(branchy).graph
    loop = graph.findNode("prim::Loop")
    assert loop == next(node for node in graph.nodes() if node.kind() == "prim::Loop")
    assert {loop: 1}[next(iter(graph.outputs())).node()] == 1
    assert loop != graph.findNode("prim::If")
    assert graph.findAllNodes("aten::mul", recurse=False) == []
    assert [node.kind() for node in graph.findAllNodes("aten::mul")] == ["aten::mul"]
    assert loop.isAfter(graph.findNode("prim::If"))
    assert loop.owningBlock() == graph.block()
    assert loop is graph.findNode("prim::Loop")
    assert graph.block().owningNode() is None


def test_the_order_of_uses() -> None:
    def either(x: torch.Tensor, flag: bool) -> torch.Tensor:
        return x + 3 if flag else x - 3

    graph = through_drop_in(either).graph
    first, second = next(graph.inputs()).uses()
    assert (first.user.kind(), second.user.kind()) == ("aten::add", "aten::sub")
    assert not first.isAfter(second)
    assert not second.isAfter(first)
    assert first.user.isAfter(graph.param_node())


def test_types_compare_with_those_of_torch_jit() -> None:
    first, sizes = through_drop_in(mixed).graph.inputs()
    assert first.type() == torch._C.TensorType.get()
    assert sizes.type() == torch._C.ListType.ofInts()
    assert sizes.type().getElementType().kind() == "IntType"
    assert sizes.type().isSubtypeOf(torch._C.ListType.ofInts())
    with pytest.raises(RuntimeError) as raised:
        sizes.type().sizes()
    assert str(raised.value) == "ListType is not a TensorType"


def test_values_of_a_trace_have_the_sizes_of_the_example() -> None:
    net = traced(Net().eval(), IMAGE)
    _, image = net.graph.inputs()
    assert image.type().sizes() == [2, 1, 5, 5]
    assert (image.type().scalarType(), image.type().dim(), image.requires_grad()) == ("Float", 4, False)
    graph = net.inlined_graph
    operators = [node for node in graph.nodes() if node.kind().startswith("aten::")]
    assert [(node.kind(), node.scopeName(), node.output().type().sizes()) for node in operators] == [
        ("aten::conv2d", "__module.parts/__module.parts.0", [2, 2, 3, 3]),
        ("aten::batch_norm", "__module.parts/__module.parts.1", [2, 2, 3, 3]),
        ("aten::relu", "__module.parts/__module.parts.2", [2, 2, 3, 3]),
        ("aten::mean", "", [2, 2]),
        ("aten::linear", "__module.out", [2, 3]),
    ]
    weight = graph.findNode("aten::linear").inputsAt(1)
    assert weight.type().sizes() == [3, 2]
    assert "Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu) = aten::linear" in str(graph)
    # The program itself holds for other sizes, and rekindle's own text does not show these.
    assert "Float" not in str(graph.ir)
    assert net(torch.ones(7, 1, 9, 9)).shape == (7, 3)


def test_a_pass_of_torch_c_runs_on_a_view() -> None:
    net = traced(Net().eval(), IMAGE)
    with rekindle.installed():
        graph = net.graph.copy()
        torch._C._jit_pass_inline(graph)
        torch._C._jit_pass_lint(graph)
        assert graph.findNode("prim::CallMethod") is None
        assert graph.findNode("aten::relu").scopeName() == "__module.parts/__module.parts.2"
        # Graphs of torch.jit go to PyTorch's own.
        other = torch._C.parse_ir("graph(%x : Tensor):\n  %y : Tensor = aten::neg(%x)\n  return (%x)\n")
        torch._C._jit_pass_dce(other)
        assert other.findNode("aten::neg") is None
    assert net.graph.findNode("prim::CallMethod") is not None


def test_the_functions_of_torch_c_are_as_before_without_the_drop_in() -> None:
    before = torch._C._jit_pass_inline
    with rekindle.installed():
        assert torch._C._jit_pass_inline is not before
    assert torch._C._jit_pass_inline is before


def test_alias_db() -> None:
    def writes(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.zeros(2)
        z = torch.ones(2)
        y.add_(x)
        return y, z

    graph = through_drop_in(writes).graph
    zeros, ones = (graph.findNode(f"aten::{name}").output() for name in ("zeros", "ones"))
    added = graph.findNode("aten::add_").output()
    aliases = graph.alias_db()
    assert aliases.may_alias(zeros, added)
    assert not aliases.may_alias(zeros, ones)
    assert aliases.may_contain_alias([zeros], [next(graph.outputs())])
    assert aliases.has_writers(zeros)
    assert not aliases.has_writers(ones)
    names = [value.debugName() for value in (next(graph.inputs()), zeros, added)]
    assert str(aliases) == (
        "%{1} may alias %{2}\n%{0} is in the WILDCARD set\n%{1} is written to\n%{2} is written to\n".format(*names)
    )
    assert aliases.to_graphviz_str().startswith("digraph alias_db {\n")


def test_alias_db_that_descends_into_calls() -> None:
    @rekindle.script
    def adds(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x + y

    def calls() -> tuple[torch.Tensor, torch.Tensor]:
        a = torch.zeros(2)
        b = torch.ones(2)
        return adds(a, b), b

    graph = through_drop_in(calls).graph
    written, read = list(graph.findNode("prim::CallFunction").inputs())[1:]
    shallow, deep = graph.alias_db(), graph.alias_db(False, True)
    assert (shallow.has_writers(written), shallow.has_writers(read)) == (True, True)
    assert (deep.has_writers(written), deep.has_writers(read)) == (True, False)
    assert deep.has_writers(graph.findNode("prim::CallFunction"))
    assert not deep.may_alias(written, graph.findNode("prim::CallFunction").output())


def test_edits_of_a_view_change_the_program() -> None:
    def plus(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) + 1

    function = through_drop_in(plus)
    assert function(torch.tensor([-1.0])).tolist() == [1.0]
    graph = function.graph
    relu = graph.findNode("aten::relu")
    negated = graph.create("aten::neg", [relu.input()])
    negated.insertBefore(relu)
    negated.output().setType(torch._C.TensorType.get()).setDebugName("negated")
    relu.replaceInput(0, negated.output())
    assert function(torch.tensor([-1.0])).tolist() == [2.0]
    assert negated.output().debugName() == "negated"


def test_a_function_made_of_an_edited_copy() -> None:
    """The steps of graph surgery: a node with a block, moved nodes, block inputs and outputs, and back again."""

    def plus(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x + y).tanh()

    original = through_drop_in(plus)
    graph = original.graph.copy()
    nodes = [node for node in graph.nodes() if node.kind() != "prim::Constant"]
    region = graph.create("my::region", 0)
    region.is_("dims", [0, 1])
    region.insertBefore(nodes[0])
    block = region.addBlock()
    x = next(graph.inputs())
    inner = block.addInputToBlock().setType(x.type())
    for node in nodes:
        node.moveBefore(block.returnNode())
    x.replaceAllUsesWith(inner)
    region.addInput(x)
    returned = graph.return_node().inputsAt(0)
    block.registerOutput(returned)
    graph.return_node().replaceInput(0, region.addOutput().setType(returned.type()))
    assert (getattr(region, "is")("dims"), region._is("dims"), region.kindOf("dims")) == ([0, 1], [0, 1], "is")
    assert [node.kind() for node in block.nodes()] == ["aten::add", "aten::tanh"]

    with rekindle.installed():
        unit = torch.jit.CompilationUnit()
        inner.replaceAllUsesWith(region.inputsAt(0))
        for node in list(block.nodes()):
            node.moveBefore(region)
        region.output().replaceAllUsesWith(next(block.outputs()))
        region.destroy()
        function = unit.create_function("moved_and_back", graph)
        assert isinstance(function, torch.jit.ScriptFunction)
    x, y = torch.tensor([1.0]), torch.tensor([2.0])
    assert torch.equal(function(x, y), original(x, y))

    graph.findNode("aten::tanh").removeInput(0)
    with pytest.raises(VerificationError), rekindle.installed():
        torch.jit.CompilationUnit().create_function("broken", graph)


def test_attributes_of_another_kind_are_refused() -> None:
    constant = through_drop_in(branchy).graph.findNode("prim::Constant")
    assert constant.kindOf("value") == "i"
    with pytest.raises(GraphError) as raised:
        constant.s("value")
    assert str(raised.value) == "attribute 'value' of prim::Constant is an int, not a string"
    with pytest.raises(RuntimeError) as missing:
        constant.kindOf("name")
    assert str(missing.value) == "prim::Constant has no attribute 'name'"
    with pytest.raises(GraphError) as given:
        constant.i_("value", "two")
    assert str(given.value) == "'i_' takes an int, not a str"


def test_the_graph_of_a_run() -> None:
    net = Net().eval()
    theirs, _ = torch.jit._get_trace_graph(net, (IMAGE,))
    with rekindle.installed():
        ours, result = torch.jit._get_trace_graph(net, (IMAGE,))
    assert torch.equal(result, net(IMAGE))
    assert [value.type().sizes() for value in ours.inputs()] == [value.type().sizes() for value in theirs.inputs()]

    def operators(graph: Any) -> list[Any]:
        return [
            (node.kind(), [value.type().sizes() for value in node.outputs()], node.inputsSize())
            for node in graph.nodes()
            if node.kind().startswith("aten::")
        ]

    assert operators(ours) == operators(theirs)
    convolution = ours.findNode("aten::_convolution")
    assert convolution.inputsAt(6).toIValue() is False


def test_traces_without_writes() -> None:
    def writes(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y.add_(1).relu_()
        x.mul_(2)
        return y

    with rekindle.installed():
        function = torch.jit.trace(writes, (torch.ones(2),), _force_outplace=True)
    kinds = [node.kind() for node in function.graph.nodes() if node.kind() != "prim::Constant"]
    assert kinds == ["aten::clone", "aten::add", "aten::relu", "aten::mul_"]
    assert "Float" not in str(function.graph.ir)
    x = torch.tensor([-3.0, 3.0, 1.0])
    assert function(x).tolist() == [0.0, 4.0, 2.0]
    assert x.tolist() == [-6.0, 6.0, 2.0]


def test_hooks_name_the_scopes_of_a_run() -> None:
    """As FLOP counters do: a hook before each module opens a scope, one after it closes it."""
    net = Net().eval()

    def open_scope(name: str) -> Any:
        return lambda module, inputs: torch._C._get_tracing_state().push_scope(name)  # type: ignore[attr-defined]

    def close_scope(module: Any, inputs: Any, outputs: Any) -> None:
        torch._C._get_tracing_state().pop_scope()  # type: ignore[attr-defined]

    for name, part in net.named_modules():
        part.register_forward_pre_hook(open_scope(name or "net"))
        part.register_forward_hook(close_scope)
    with rekindle.installed():
        graph, _ = torch.jit._get_trace_graph(net, IMAGE)
    scopes = {node.kind(): node.scopeName() for node in graph.nodes() if node.kind().startswith("aten::")}
    assert scopes == {
        "aten::_convolution": "net/parts/parts.0",
        "aten::batch_norm": "net/parts/parts.1",
        "aten::relu": "net/parts/parts.2",
        "aten::mean": "net",
        "aten::linear": "net/out",
    }
    assert torch._C._get_tracing_state() is None


def test_source_ranges_are_hidden() -> None:
    with rekindle.installed():
        graph = torch.jit.script(branchy).graph
        with torch.jit._hide_source_ranges():
            assert ".py" not in f"{graph}{graph!r}{graph.findNode('prim::If')}"
            assert ".py" in graph.str(print_source_ranges=True)
        assert ".py" in str(graph)
        assert ".py" in str(graph.findNode("prim::If"))
