"""The specification of Export IR, point by point, on exported programs. Each test names its point."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses import FakeTensor
from torch.export import Dim
from torch.export.graph_signature import InputKind, OutputKind

import rekindle
from tests.exporting.checking import saved_and_loaded

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")  # PyTorch's own


def helper(y: Tensor) -> Tensor:
    return y.add_(1)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.linear(x))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Block()
        self.register_buffer("total", torch.zeros(4))
        self.register_buffer("scale", torch.ones(4), persistent=False)
        self.calls = 0

    def forward(self, x: Tensor, n: int = 2) -> tuple[Tensor, int]:
        self.calls += 1
        y = helper(self.block(x) * self.scale)
        self.total.add_(y.sum(0))
        if y.sum() > 3:
            y = y.sin()
        else:
            y = torch.nn.functional.gelu(y)
        while y.abs().max() < 4:
            y = y * 2 + 0.5
        return y, x.size(0) * n


@pytest.fixture(scope="module")
def program() -> torch.export.ExportedProgram:
    model = rekindle.script(Model())
    return rekindle.to_exported(model, (torch.ones(3, 4),), dynamic_shapes={"x": {0: Dim("rows", min=2, max=9)}})


def graphs(program: torch.export.ExportedProgram) -> Iterator[torch.fx.Graph]:
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield module.graph


def calls(program: torch.export.ExportedProgram) -> Iterator[torch.fx.Node]:
    for graph in graphs(program):
        yield from (node for node in graph.nodes if node.op == "call_function")


def test_placeholders_come_first_and_there_is_one_output(program: torch.export.ExportedProgram) -> None:
    """In "Graph", "placeholder": any number of placeholders, which come first; exactly one output, the last."""
    for graph in graphs(program):
        kinds = [node.op for node in graph.nodes]
        count = kinds.count("placeholder")
        assert kinds[:count] == ["placeholder"] * count
        assert kinds.count("output") == 1
        assert kinds[-1] == "output"
        assert {*kinds} <= {"placeholder", "call_function", "get_attr", "output"}


def test_what_is_called_is_an_operator_and_writes_to_nothing(program: torch.export.ExportedProgram) -> None:
    """In "call_function": functional operators of ATen, of the user and of control flow, and nothing else."""
    for node in calls(program):
        if isinstance(node.target, torch._ops.OpOverload):
            assert not node.target._schema.is_mutable, node.format_node()
        else:
            assert isinstance(node.target, torch._ops.HigherOrderOperator) or node.target.__module__ in (
                "_operator",
                "torch",
                "math",
            )


def test_attributes_are_read_of_submodules_alone(program: torch.export.ExportedProgram) -> None:
    """In "get_attr": reads submodules, the branches and bodies of control flow; parameters and buffers are inputs."""
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            if node.op == "get_attr":
                assert isinstance(getattr(module, node.target), torch.fx.GraphModule)


def test_parameters_and_buffers_are_inputs(program: torch.export.ExportedProgram) -> None:
    """In "graph_signature", "state_dict": what is lifted, what is mutated, under the names of the module."""
    signature = program.graph_signature
    assert signature.parameters == ("block.linear.weight", "block.linear.bias")
    assert {*signature.buffers} == {"total", "scale", "calls"}
    assert signature.non_persistent_buffers == ("scale",)
    assert {*program.state_dict} == {"block.linear.weight", "block.linear.bias", "total", "calls"}
    assert {*signature.buffers_to_mutate.values()} == {"total", "calls"}
    kinds = [spec.kind for spec in signature.input_specs]
    assert kinds == [*[InputKind.PARAMETER] * 2, *[InputKind.BUFFER] * 3, InputKind.USER_INPUT]
    assert [spec.kind for spec in signature.output_specs][-2:] == [OutputKind.USER_OUTPUT] * 2


def test_ranges_of_dynamic_sizes(program: torch.export.ExportedProgram) -> None:
    """In "range_constraints", "SymInt": sizes that differ between calls are symbols with ranges."""
    placeholder = next(node for node in program.graph.nodes if node.name == "x")
    size = placeholder.meta["val"].shape[0]
    assert isinstance(size, torch.SymInt)
    bounds = program.range_constraints[size.node.expr]
    assert (int(bounds.lower), int(bounds.upper)) == (2, 9)


def chooses(x: Tensor, by: float, times: int, how: str, back: bool) -> Tensor:
    y = x * by if how == "mul" else x + by
    for _ in range(times):
        y = y + 1
    return -y if back else y


@pytest.mark.parametrize(
    ("other", "guard"),
    [
        ((2.5, 3, "mul", True), "by == 2.0"),
        ((2.0, 4, "mul", True), "times == 3"),
        ((2.0, 3, "add", True), "how == 'mul'"),
        ((2.0, 3, "mul", False), "back == True"),
    ],
)
def test_arguments_that_are_no_tensors_are_constants_with_a_guard(other: tuple[object, ...], guard: str) -> None:
    """In "call_function": constants are arguments in the graph; another string or number raises, from a file too."""
    made = rekindle.to_exported(rekindle.script(chooses), (torch.ones(2), 2.0, 3, "mul", True))
    assert [node.name for node in made.graph.nodes if node.op == "placeholder"] == [
        *("x", "by", "times", "how", "back")
    ]
    assert not any(node.users for node in made.graph.nodes if node.name in ("by", "times", "how", "back"))
    for program in (made, saved_and_loaded(made)):
        module = program.module()
        assert module(torch.ones(2), 2.0, 3, "mul", True).tolist() == [-5.0, -5.0]
        with pytest.raises(AssertionError, match=rf"^Guard failed: {re.escape(guard)}$"):
            module(torch.ones(2), *other)


def test_sizes_with_a_name_are_one_symbol_and_others_are_guarded() -> None:
    """In "range_constraints": a dimension by its name, wherever it occurs; what has no name stays as it was."""

    def product(x: Tensor, y: Tensor) -> Tensor:
        return x @ y

    inner = Dim("inner", min=3, max=12)
    shapes = {"x": {1: inner}, "y": {0: inner}}
    made = rekindle.to_exported(rekindle.script(product), (torch.ones(2, 4), torch.ones(4, 5)), dynamic_shapes=shapes)
    x, y = (node.meta["val"] for node in made.graph.nodes if node.op == "placeholder")
    assert x.shape[1].node.expr == y.shape[0].node.expr
    assert [(int(each.lower), int(each.upper)) for each in made.range_constraints.values()] == [(3, 12)]
    module = made.module()
    assert module(torch.ones(2, 7), torch.ones(7, 5)).shape == (2, 5)
    for sizes in ((2, 13, 13), (2, 2, 2), (2, 7, 6), (3, 4, 4)):
        with pytest.raises((AssertionError, RuntimeError)):
            module(torch.ones(sizes[0], sizes[1]), torch.ones(sizes[2], 5))


def test_every_node_tells_its_value(program: torch.export.ExportedProgram) -> None:
    """In "val": a FakeTensor, a SymInt, a list of these, or None."""

    def fits(value: Any) -> bool:
        if isinstance(value, (list, tuple)):
            return all(fits(item) for item in value)
        return value is None or isinstance(
            value, (FakeTensor, torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool)
        )

    for graph in graphs(program):
        for node in graph.nodes:
            if node.op == "call_function" or (node.op == "placeholder" and graph is program.graph):
                assert fits(node.meta["val"]), node.format_node()


def test_every_call_tells_its_place(program: torch.export.ExportedProgram) -> None:
    """In "stack_trace", "nn_module_stack", "source_fn_stack": on every call, the outermost first."""
    for node in calls(program):
        assert "test_specification.py" in node.meta["stack_trace"], node.format_node()
        assert node.meta["nn_module_stack"]["L__self__"] == ("", f"{__name__}.Model")
        assert node.meta["source_fn_stack"]
    add = next(node for node in calls(program) if "in helper" in node.meta["stack_trace"])
    lines = [line.strip() for line in add.meta["stack_trace"].splitlines()]
    assert lines[0].endswith("in forward")
    assert lines[1] == "y = helper(self.block(x) * self.scale)"
    assert lines[2].endswith("in helper")
    assert lines[3] == "return y.add_(1)"


def test_modules_and_functions_of_torch_are_told(program: torch.export.ExportedProgram) -> None:
    """In "nn_module_stack", "source_fn_stack": the modules around a call, and its leaf module."""
    linear = next(node for node in calls(program) if node.target is torch.ops.aten.linear.default)
    assert list(linear.meta["nn_module_stack"].values()) == [
        ("", f"{__name__}.Model"),
        ("block", f"{__name__}.Block"),
        ("block.linear", "torch.nn.modules.linear.Linear"),
    ]
    assert linear.meta["source_fn_stack"] == [("block_linear", nn.Linear)]
    gelu = next(node for node in calls(program) if node.target is torch.ops.aten.gelu.default)
    assert [target for _, target in gelu.meta["source_fn_stack"]] == [torch.ops.aten.gelu.default]


def test_branches_and_loops_are_operators_of_a_higher_order(program: torch.export.ExportedProgram) -> None:
    """In "call_function": control flow is operators whose branches are submodules."""
    targets = [node.target for node in program.graph.nodes if node.op == "call_function"]
    assert targets.count(torch.ops.higher_order.cond) == 1
    assert targets.count(torch.ops.higher_order.while_loop) == 1


def test_methods_share_one_state() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4))
            self.calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return x * self.weight * self.calls

        @torch.jit.export
        def count(self, x: Tensor) -> Tensor:
            return x + self.calls

    programs = rekindle.to_exported_methods(
        rekindle.script(Two()), {"count": (torch.ones(4),), "forward": (torch.ones(4),)}
    )
    assert programs["count"].state_dict is programs["forward"].state_dict
    forward, count = programs["forward"].module(), programs["count"].module()
    forward(torch.ones(4))
    forward(torch.ones(4))
    assert count(torch.zeros(4)).tolist() == [2.0] * 4


def test_the_output_has_the_metadata_of_calls(program: torch.export.ExportedProgram) -> None:
    """In "output": the same metadata as calls."""
    for graph in graphs(program):
        output = graph.output_node()
        assert "test_specification.py" in output.meta["stack_trace"]
        values = [each.meta["val"] for each in output.all_input_nodes]
        flat = torch.utils._pytree.tree_leaves(output.meta["val"])
        assert [id(each) for each in flat if not isinstance(each, int)] == [id(each) for each in values]


def test_fake_tensors_tell_sizes_dtypes_and_devices(program: torch.export.ExportedProgram) -> None:
    """In "FakeTensor": sizes are ints or SymInts, the rank is fixed, there is a dtype and a device."""
    rows = next(node for node in program.graph.nodes if node.name == "x").meta["val"].shape[0]
    linear = next(node for node in calls(program) if node.target is torch.ops.aten.linear.default)
    value = linear.meta["val"]
    assert list(value.shape) == [rows, 4]
    assert isinstance(value.shape[0], torch.SymInt)
    assert (value.dtype, value.device) == (torch.float32, torch.device("cpu"))


def test_operators_with_several_results_tell_each() -> None:
    """In "FakeTensor": an operator that returns a tuple of tensors has a FakeTensor for each."""

    def pooled(x: Tensor) -> Tensor:
        values, indices = torch.max(x, 1)
        return values + indices

    made = rekindle.to_exported(rekindle.script(pooled), (torch.ones(3, 4),))
    node = next(node for node in calls(made) if node.target is torch.ops.aten.max.dim)
    values, indices = node.meta["val"]
    assert (values.dtype, indices.dtype) == (torch.float32, torch.int64)


def test_the_smallest_graph_and_constants_in_the_graph() -> None:
    """In "Graph" and "call_function": a graph is never empty, and constants are arguments in it."""
    nothing = rekindle.to_exported(rekindle.script(_nothing), ())
    assert [node.op for node in nothing.graph.nodes] == ["output"]
    added = rekindle.to_exported(rekindle.script(_added), (torch.ones(3),))
    assert next(calls(added)).args[1] == 2.5


def _nothing() -> int:
    return 3


def _added(x: Tensor) -> Tensor:
    return x + 2.5


def test_graphs_are_graphs_of_fx(program: torch.export.ExportedProgram) -> None:
    """In the introduction: an interpreter of FX graphs runs the graph as it is, inputs lifted."""
    state = {**program.state_dict, **program.constants}
    lifted = [
        state[spec.target].clone() if spec.target is not None else torch.ones(5, 4)
        for spec in program.graph_signature.input_specs
        if spec.kind is not InputKind.USER_INPUT
    ]
    found = torch.fx.Interpreter(program.graph_module).run(*lifted, torch.ones(5, 4))
    count = len(program.graph_signature.buffers_to_mutate)
    wanted = program.module()(torch.ones(5, 4))
    torch.testing.assert_close(found[count], wanted[0])
    assert found[count + 1] == wanted[1] == 10
