"""The faster ways into operators do what the operators do."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
import torch

import rekindle
from rekindle.ir.graph import Graph, Node
from rekindle.ir.operators.schema import Argument
from rekindle.ir.types import INT, TENSOR, OptionalType
from rekindle.ops.python.values import type_of_value
from rekindle.ops.registration.fast_paths import ALWAYS_PASSED, DIRECT, IN_PIECES, SPREADS, most_positional, objects_of
from rekindle.runtime.plans.plan_text import plan_text
from rekindle.runtime.strategies.simple_strategy import SpecializingStrategy
from tests.ops.calling import call, make_node, operator
from tests.ops.fast_path_samples import INTEGRAL, KEYWORDS, NO_ERRORS, PIECES, SAMPLES, samples, t
from tests.versions.differences import not_yet_in_dispatcher


def _copies(arguments: tuple[Any, ...], *, grad: bool = False) -> list[Any]:
    """Copies of the Tensors, which require gradients if they can where ``grad`` is True."""
    copies = [item.clone() if isinstance(item, torch.Tensor) else item for item in arguments]
    if grad:
        floats = [item for item in copies if isinstance(item, torch.Tensor) and item.is_floating_point()]
        for item in floats[-1:]:
            item.requires_grad_()
    return copies


def _describe(value: Any) -> object:
    if isinstance(value, (list, tuple)):
        return [_describe(item) for item in value]
    if not isinstance(value, torch.Tensor):
        return type(value), value
    kind = type(value.grad_fn).__name__  # of which an operator with several overloads has several
    bits = value.detach().contiguous().numpy().tobytes()
    return value.dtype, value.shape, value.stride(), bits, value.requires_grad, kind.rstrip("0123456789")


def _outcome(function: Any, arguments: list[Any], keywords: dict[str, Any], name: str) -> Any:
    """What a call returns; for an error its class and the first line of its text."""
    torch.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = function(*arguments, **keywords)
    except Exception as error:
        return type(error), str(error).partition("\n")[0]
    return answer.detach().zero_() if name.startswith(("empty", "new_empty")) else answer


def _compare(name: str, arguments: tuple[Any, ...], keywords: dict[str, Any], *, grad: bool = False) -> bool:
    """Call both ways; returns whether there is a result."""
    base, _, overload = name.partition(".")
    ours, theirs = _copies(arguments, grad=grad), _copies(arguments, grad=grad)
    answer = _outcome(DIRECT[f"aten::{name}"], ours, keywords, name)
    expected = _outcome(getattr(getattr(torch.ops.aten, base), overload or "default"), theirs, keywords, name)
    assert _describe(answer) == _describe(expected)
    assert _describe(ours) == _describe(theirs)
    if isinstance(answer, torch.Tensor):
        # Views of the first argument are views of it either way.
        assert (answer is ours[0]) == (expected is theirs[0])
        if isinstance(ours[0], torch.Tensor):
            assert (answer.data_ptr() == ours[0].data_ptr()) == (expected.data_ptr() == theirs[0].data_ptr())
    return not isinstance(answer, tuple) or not isinstance(answer[0], type)


def _keywords(name: str, arguments: Iterable[Argument]) -> dict[str, Any]:
    found = {each.name: KEYWORDS[each.name] for each in arguments if each.kwarg_only}
    return {**found, "dtype": torch.int32} if name in INTEGRAL and found else found


@pytest.mark.parametrize("name", [name.removeprefix("aten::") for name in DIRECT])
def test_the_answer_is_the_overloads(name: str) -> None:
    """With all arguments, lists as tuples, those that are passed by name, and without those that have defaults."""
    schema = operator(f"aten::{name}").schema
    arguments = samples(name)
    assert len(arguments) == most_positional(f"aten::{name}", schema.arguments)
    keywords = _keywords(name, schema.arguments)
    needed = _keywords(name, [each for each in schema.arguments if not each.has_default])
    assert _compare(name, arguments, needed)
    _compare(name, arguments, needed, grad=True)
    assert _compare(name, tuple(tuple(each) if isinstance(each, list) else each for each in arguments), needed)
    for keyword, value in keywords.items():
        _compare(name, arguments, {**needed, keyword: value})
    _compare(name, arguments, keywords)
    always = 1 + max((i for i, each in enumerate(schema.arguments) if each.name in ALWAYS_PASSED), default=-1)
    for count in range(always, len(arguments)):
        if schema.arguments[count].has_default:
            _compare(name, arguments[:count], needed)


@pytest.mark.parametrize("name", sorted({name.removeprefix("aten::") for name in DIRECT} - NO_ERRORS))
def test_errors_are_the_overloads(name: str) -> None:
    arguments = samples(name)
    needed = _keywords(name, [each for each in operator(f"aten::{name}").schema.arguments if not each.has_default])
    for index, argument in enumerate(arguments):
        if isinstance(argument, torch.Tensor):
            for wrong in (t(5, 7, 2), t(6) > 0):
                _compare(name, (*arguments[:index], wrong, *arguments[index + 1 :]), needed)


# --------------------------------------------------------------------------------------------------------- in programs


def _node(name: str, arguments: Sequence[Any]) -> Node:
    """A node of which every argument that can be is a constant, and the others are inputs."""
    graph = Graph()
    found = operator(name)
    values = []
    for argument, value in zip(found.schema.arguments, arguments):
        objects = objects_of(argument)
        number = value if value is None or objects is None else {each: n for n, each in objects.items()}[value]
        is_input = isinstance(value, (torch.Tensor, list))
        kind = type_of_value(value) if is_input else argument.type
        values.append(graph.add_input(type=kind) if is_input else graph.insert_constant(number, kind))
    outputs = [result.type for result in found.schema.returns]
    return graph.insert_node(graph.create(found.name, values, types=outputs)).set_operator(found)


def _invoked(node: Node, arguments: Sequence[Any]) -> Any:
    invocation = node.operator.invocation_of(node)
    reads = {**dict(enumerate(arguments)), **dict(invocation.objects)}
    named = {keyword: reads[index] for keyword, index in invocation.named}
    return invocation.function(*(reads[index] for index in invocation.positional), **named)


def _by_schema(name: str) -> tuple[list[Any], dict[str, Any]]:
    """All arguments of an operator in their order, and those of them that go by name."""
    schema = operator(name).schema
    base = name.removeprefix("aten::")
    keywords = _keywords(base, schema.arguments)
    rest = schema.arguments[len(samples(base)) :]
    return [*samples(base), *(keywords.get(each.name, each.default) for each in rest)], keywords


@pytest.mark.parametrize("name", sorted(set(DIRECT) - {"aten::bitwise_not"} - not_yet_in_dispatcher()))
def test_constants_are_objects(name: str) -> None:
    """Dtypes, layouts, memory formats and devices that are constants do not prevent the fast path."""
    arguments, keywords = _by_schema(name)
    node = _node(name, arguments)
    invocation = node.operator.invocation_of(node)
    assert invocation.function is DIRECT[name]
    base, _, overload = name.removeprefix("aten::").partition(".")
    slow = getattr(getattr(torch.ops.aten, base), overload or "default")
    count = len(arguments) - len(keywords)
    ours, theirs = _copies(tuple(arguments)), _copies(tuple(arguments))
    answer = _outcome(lambda: _invoked(node, ours), [], {}, base)
    expected = _outcome(slow, theirs[:count], keywords, base)
    assert _describe(answer) == _describe(expected)
    assert _describe(ours) == _describe(theirs)


def test_numbers_are_looked_up() -> None:
    made = rekindle.script(like)
    plan = SpecializingStrategy(made._record).general().plan
    assert plan is not None
    assert "dtype=torch_dtypes[" in plan.source
    assert "torch_dtypes = {0: torch.uint8, " in plan_text(plan)
    for x in (torch.ones(2), torch.ones(2, dtype=torch.float64), torch.ones(2, dtype=torch.int8)):
        assert _describe(plan.function(x)) == _describe(made(x)) == _describe(like(x))


def like(x):
    return torch.zeros([2], dtype=x.dtype, device=x.device)


def test_what_may_be_none_goes_by_the_schema() -> None:
    types = (TENSOR, OptionalType(INT))
    node = make_node("aten::sum", [None, None], inputs=types).set_operator(operator("aten::sum"))
    invocation = node.operator.invocation_of(node)
    assert invocation.function is torch.ops.aten.sum.default._op
    assert invocation.named == (("dtype", 1),)
    assert not invocation.objects
    assert not invocation.tables


def test_default_devices_are_no_part_of_programs() -> None:
    """As in TorchScript: ``torch.zeros`` is on the CPU where no device is given."""
    made = rekindle.script(fill)
    plan = SpecializingStrategy(made._record).general().plan
    assert plan is not None
    assert "dtype=torch_float16, device=cpu" in plan.source
    x = torch.ones(2)
    with torch.device("meta"):
        assert made(x).device.type == "cpu"
    names: dict[str, Any] = {}
    exec(plan_text(plan), names)
    assert names["plan"](torch.ones(2)).dtype == torch.float16


def fill(x):
    return torch.zeros([2], dtype=torch.float16) + x.to(torch.float16)


@pytest.mark.parametrize("name", list(DIRECT))
def test_results_are_tensors_or_a_number(name: str) -> None:
    """A list of Tensors would come back as a tuple."""
    schema = operator(name).schema
    kinds = {str(result.type) for result in schema.returns}
    assert kinds == {"Tensor"} or (len(schema.returns) == 1 and kinds <= {"int", "bool", "Scalar"})


@pytest.mark.parametrize("name", list(IN_PIECES))
def test_pieces_are_those_of_the_overload(name: str) -> None:
    arguments = PIECES[name.removeprefix("aten::")]
    assert len(arguments) == most_positional(name, operator(name).schema.arguments)
    answer = IN_PIECES[name](*arguments)
    assert isinstance(answer, tuple)
    assert _describe(answer) == _describe(call(name, *arguments))


@pytest.mark.parametrize("name", sorted(SPREADS))
def test_sizes_may_be_spread(name: str) -> None:
    *first, sizes = SAMPLES[name.removeprefix("aten::")]
    direct = DIRECT[name]
    assert _describe(direct(*first, *sizes)) == _describe(direct(*first, sizes))
