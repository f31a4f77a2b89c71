"""The binary form of graphs: what is written is read, refers to what it did, and is the same in every process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import rekindle
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.bitcode.digest import describe
from rekindle.ir.bitcode.reader import GraphReader
from rekindle.ir.bitcode.references import NotEncodable, References, marshalled
from rekindle.ir.bitcode.writer import GraphWriter
from rekindle.ir.graph import Graph
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.types import INT, TENSOR, ClassType, ListType
from rekindle.ir.verifier import verify
from rekindle.passes import DeadCodeElimination, Inlining
from rekindle.runtime.optimization import optimize
from tests.ir.torch_corpus import torch_texts


def again(graph: Graph, references: References) -> Graph:
    """``graph``, written and read."""
    writer = GraphWriter(references)
    number = writer.add(graph)
    found = GraphReader(writer.bundle(), references).graph(number)
    verify(found)
    return found


def compiled(text: str, name: str = "f") -> Graph:
    graph: Graph = getattr(rekindle.CompilationUnit(text), name).graph
    return graph


def test_texts_of_torch_are_read_as_they_were_written() -> None:
    written = 0
    for _, text in torch_texts():
        graph = parse_graph(text)
        try:
            program = describe(graph)
        except NotEncodable:
            continue
        assert str(again(graph, program.references)) == str(graph)
        written += 1
    assert written >= 110


def test_nodes_keep_places_scopes_operators_and_call_stacks() -> None:
    graph = compiled("""
def g(x):
    return x.relu()
def f(x, n: int):
    for i in range(n):
        if bool(x.sum() > i):
            x = g(x) + 1
    return x
""")
    program = describe(graph)
    optimize(graph, (Inlining(),))
    found = again(graph, program.references)
    for node, other in zip(graph.all_nodes(), found.all_nodes(), strict=True):
        assert node.range.place == other.range.place
        assert node.range.source is other.range.source
        assert [(name, place.place) for name, place in node.callstack] == [
            (name, place.place) for name, place in other.callstack
        ]
        assert (node.operator, node.scope) == (other.operator, other.scope)
    (relu,) = found.find_nodes("aten::relu")
    assert relu.callstack
    assert [use.user.kind for use in relu.output.uses] == ["aten::add"]


def test_the_text_of_a_program_is_written_once() -> None:
    graph = compiled("def f(x):\n    # the name of this program\n" + "    x = x.relu()\n" * 50 + "    return x\n")
    references = References()
    writer = GraphWriter(references)
    writer.add(graph)
    assert marshalled(writer.bundle()).count(b"the name of this program") == 1
    found = again(graph, references)
    assert [node.range.place for node in found.nodes] == [node.range.place for node in graph.nodes]


def test_a_graph_that_was_read_can_be_changed() -> None:
    graph = compiled("def f(x):\n    return x + 1\n")
    found = again(graph, describe(graph).references)
    for each in (graph, found):
        each.insert("aten::relu", [each.inputs[0]]).set_name("x.1")
        each.insert_constant(1)
        each.return_node.replace_input(0, each.inputs[0])
        optimize(each, (DeadCodeElimination(),))
        verify(each)
    assert str(found) == str(graph)


def test_constants_of_every_class() -> None:
    values: list[object] = [
        *(True, 1, -0.0, float("inf"), 1j, "text", None, [1, 2], (1, "a", [None]), {"a": [1.5]}),
        *(torch.device("cpu"), ListType(INT)),
    ]
    graph = Graph()
    node = graph.append_node(graph.create("bitcode::constants", outputs=0))
    for number, value in enumerate(values):
        node.attributes[f"a{number}"] = ConstantObject(value)
    tensors = [torch.ones(2, 3, dtype=torch.bfloat16), torch.tensor(True), torch.empty(0, 2), torch.tensor(1 + 2j)]
    for number, tensor in enumerate(tensors):
        node.attributes[f"t{number}"] = tensor
    node.attributes["graph"] = node.attributes["same"] = compiled("def f(x):\n    return x\n")
    (found,) = again(graph, References()).nodes
    read = [found.attributes[f"a{number}"] for number in range(len(values))]
    assert [repr(each.value) for each in read if isinstance(each, ConstantObject)] == [repr(each) for each in values]
    for number, tensor in enumerate(tensors):
        other = found.attributes[f"t{number}"]
        assert isinstance(other, torch.Tensor)
        assert (other.dtype, other.shape) == (tensor.dtype, tensor.shape)
        assert torch.equal(other, tensor)
    assert found.attributes["graph"] is found.attributes["same"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (ConstantObject(print), "a constant of the class builtin_function_or_method"),
        (torch.ones(2, requires_grad=True), "a tensor that is more than its elements"),
        (torch.ones(2, device="meta"), "a tensor that is more than its elements"),
        (torch.ones(600, 600), "a large tensor"),
        (ClassType("__torch__.A"), "the type '__torch__.A'"),
    ],
)
def test_what_is_no_data_is_refused(value: object, message: str) -> None:
    graph = Graph()
    node = graph.append_node(graph.create("bitcode::constant", outputs=0))
    node.attributes["value"] = value  # type: ignore[assignment]
    with pytest.raises(NotEncodable) as refused:
        GraphWriter(References()).add(graph)
    assert str(refused.value) == message


def test_what_is_referred_to_is_found_again() -> None:
    class Sub(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.sub = Sub()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.sub(x)

    graph = rekindle.script(Net()).forward.graph
    found = again(graph, describe(graph).references)
    assert found.inputs[0].type is graph.inputs[0].type
    (call,) = found.find_nodes("prim::CallMethod")
    assert call.inputs[0].type is graph.find_nodes("prim::CallMethod")[0].inputs[0].type


def test_blocks_that_nest_too_deep_for_marshal() -> None:
    encoded: object = ()
    for _ in range(5000):
        encoded = (encoded,)
    with pytest.raises(NotEncodable, match="blocks that nest too deep"):
        marshalled(encoded)


# -------------------------------------------------------------------------------------------------------------- digests

PROGRAM = """
class C:
    def __init__(self, x: int):
        self.x = x
def g(x):
    return x + 1
def f(x):
    return g(x) * C(2).x
"""


@pytest.mark.parametrize(
    ("change", "to"),
    [
        ("x + 1", "x + 2"),  # a callee
        ("x: int", "x: float"),  # the slot of a class
        ("C(2)", "C(3)"),
        ("    return x + 1", "    # here\n    return x + 1"),  # a place in the source, which errors name
    ],
)
def test_digests_tell_programs_apart(change: str, to: str) -> None:
    before = describe(compiled(PROGRAM)).digest
    assert describe(compiled(PROGRAM)).digest == before
    assert describe(compiled(PROGRAM.replace(change, to))).digest != before


def test_digests_look_at_the_elements_of_tensors() -> None:
    def digest(value: float) -> bytes:
        graph = Graph()
        node = graph.append_node(graph.create("prim::Constant", types=[TENSOR]))
        node.attributes["value"] = torch.full((3,), value)
        graph.add_output(node.output)
        return describe(graph).digest

    assert digest(1.0) == digest(1.0)
    assert digest(1.0) != digest(2.0)


def test_calls_of_python_have_no_digest() -> None:
    @torch.jit.ignore
    def python(x: torch.Tensor) -> torch.Tensor:
        return x

    def f(x: torch.Tensor) -> torch.Tensor:
        return python(x)

    with pytest.raises(NotEncodable, match="a constant of the class function"):
        describe(rekindle.script(f).graph)


def test_digests_are_the_same_in_every_process(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("""
import torch, rekindle
from rekindle.ir.bitcode.digest import describe
layer = torch.nn.TransformerEncoderLayer(8, 2, 16)
print(describe(rekindle.script(layer).forward.graph).digest.hex())
""")
    digests = {
        subprocess.run(
            [sys.executable, str(program)],
            env={"PYTHONHASHSEED": seed, "PATH": "", "PYTHONPATH": str(Path(rekindle.__file__).parents[1])},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(digests) == 1
