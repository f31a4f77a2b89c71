"""Compiled functions as a user holds them."""

import copy
import inspect
import multiprocessing
import pickle
from typing import Optional

import torch

import rekindle
from rekindle.errors import ArgumentError
from tests.support.messages import message_of
from tests.support.pickles import pickled


def scale(x: torch.Tensor, factor: float = 2.0, *, shift: Optional[torch.Tensor] = None) -> torch.Tensor:
    """Scales x."""
    y = x * factor
    if shift is not None:
        y = y + shift
    return y


def twice(x):
    return scale(x) + scale(x)


def test_call_binds_arguments_as_python_does():
    compiled = rekindle.script(scale)
    x = torch.arange(3.0)
    assert torch.equal(compiled(x), scale(x))
    assert torch.equal(compiled(x, 3), scale(x, 3.0))
    assert torch.equal(compiled(factor=0.5, x=x), scale(x, 0.5))
    assert torch.equal(compiled(x, shift=torch.ones(3)), scale(x, shift=torch.ones(3)))


def test_a_parameter_may_be_called_self():
    def negative(self):
        return -self

    assert torch.equal(rekindle.script(negative)(self=torch.ones(2)), -torch.ones(2))


def test_names_docstring_and_signature():
    compiled = rekindle.script(scale)
    assert compiled.name == compiled.__name__ == "scale"
    assert compiled.qualified_name.startswith("__torch__.")
    assert compiled.qualified_name.endswith(".scale")
    assert compiled.__doc__ == "Scales x."
    assert compiled.__wrapped__ is scale
    assert inspect.signature(compiled) == inspect.signature(scale)
    assert str(compiled.schema) == "scale(Tensor x, float factor=2., *, Tensor? shift=None) -> Tensor"


def test_graph_keeps_calls_and_inlined_graph_does_not():
    compiled = rekindle.script(twice)
    assert [node.kind for node in compiled.graph.nodes if node.kind == "prim::CallFunction"] == [
        "prim::CallFunction"
    ] * 2
    assert "prim::CallFunction" not in {node.kind for node in compiled.inlined_graph.all_nodes()}
    assert len(compiled.graph.find_nodes("prim::CallFunction")) == 2, "the graph itself is left as it was"


def test_wrong_arguments_name_the_argument():
    compiled = rekindle.script(scale)
    assert message_of(ArgumentError, lambda: compiled("x")) == (
        "scale() argument 'x' (position 1) takes Tensor, but got a str: 'x'\n"
        "Signature: scale(x: Tensor, factor: float = 2.0, *, shift: Optional[Tensor] = None) -> Tensor\n"
        "Hint: a parameter without an annotation takes a Tensor; annotate it to take another type"
    )


def test_copies_are_the_function_itself():
    compiled = rekindle.script(scale)
    assert copy.copy(compiled) is compiled
    assert copy.deepcopy([compiled])[0] is compiled


@rekindle.script
def tripled(x: torch.Tensor) -> torch.Tensor:
    return x * 3


def test_pickles_of_functions():
    """By name where Python would find them, as archives where it would not."""

    def local(x: torch.Tensor) -> torch.Tensor:
        return x * 4

    assert pickled(tripled) is tripled
    x = torch.ones(2)
    for compiled in (rekindle.script(scale), rekindle.script(local)):
        arguments = (x, 2.0) if compiled.name == "scale" else (x,)
        torch.testing.assert_close(pickled(compiled)(*arguments), compiled(*arguments))
    assert len(pickle.dumps(rekindle.script(scale))) < 200


def test_functions_go_to_other_processes():
    """Spawned, as the workers of data loaders are."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for compiled in (tripled, rekindle.script(torch.nn.Linear(2, 2).requires_grad_(False))):
            torch.testing.assert_close(pool.apply(compiled, (torch.ones(2),)), compiled(torch.ones(2)))


def test_scripting_again_gives_the_same_code():
    first, second = rekindle.script(scale), rekindle.script(scale)
    assert first.graph is second.graph
    assert rekindle.script(first) is first


def test_gradients_flow():
    x = torch.randn(3, requires_grad=True)
    rekindle.script(twice)(x).sum().backward()
    assert torch.equal(x.grad, torch.full((3,), 4.0))


def test_methods_compare_by_owner_and_code():
    module = rekindle.script(torch.nn.Linear(2, 2))
    assert module.forward == module.forward
    assert module.forward != rekindle.script(torch.nn.Linear(2, 2)).forward
    assert str(inspect.signature(module.forward)) == "(input: 'Tensor') -> 'Tensor'"
