"""Operators of the dispatcher: found by name, called by position, distinguished by the constants among their
arguments."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

import rekindle
from rekindle.errors import ParseError
from rekindle.ir.graph import Graph, Node
from rekindle.ir.operators import operator_nodes
from rekindle.ir.operators.lazy_sequence import LazySequence
from rekindle.ir.operators.registry import REGISTRY, Operator, OperatorRegistry, Provider
from rekindle.ir.scalar_types import DTYPE_NUMBERS, MEMORY_FORMATS
from rekindle.ir.text.schema_parser import parse_schema
from rekindle.ir.types import INT, TENSOR, Type
from rekindle.ops.registration import declare as declarations
from rekindle.ops.registration.declare import declare, declared_operator, declared_operators
from rekindle.ops.registration.dispatcher import dispatcher_operator, dispatcher_operators, positional_call
from tests.ops.calling import call, operator


def test_operators_are_found_by_kind() -> None:
    assert [found.schema.overload for found in REGISTRY.overloads("aten::relu")] == ["", "out"]
    assert str(operator("aten::mm").schema) == "aten::mm(Tensor self, Tensor mat2) -> Tensor"
    assert REGISTRY.overloads("aten::no_such_thing") == ()
    assert REGISTRY.overloads("nowhere::at_all") == ()


def test_one_operator_is_found_without_the_others_of_its_kind() -> None:
    registry, asked = OperatorRegistry(), []

    def operators(kind: str) -> Sequence[Operator]:
        asked.append(kind)
        return dispatcher_operators(kind)

    registry.add_provider(Provider(operators, dispatcher_operator))
    registry.add_provider(Provider(declared_operators, declared_operator))
    names = ("aten::relu", "aten::add.Tensor", "aten::add.int", "prim::TupleUnpack")
    found = [registry.find(name) for name in names]
    assert [str(each and each.schema.qualified_name) for each in found] == list(names)
    assert registry.find("aten::add.no_such_thing") is registry.find("aten::relu.default") is None
    assert asked == []
    assert [registry.find(name) in registry.overloads(name.partition(".")[0]) for name in names] == [True] * 4
    assert [registry.find(name) for name in names] == found


def test_a_call_makes_the_overloads_up_to_the_first_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def operators(kind: str) -> Sequence[Operator]:
        def make(overload: str) -> Operator:
            made.append(overload)
            argument = {"first": "str x", "second": "int x", "third": "float x"}[overload]
            return Operator(parse_schema(f"{kind}.{overload}({argument}) -> int"), operation=int)

        return LazySequence.mapped(make, ["first", "second", "third"])

    registry = OperatorRegistry()
    registry.add_provider(Provider(operators, lambda kind, overload: None))
    monkeypatch.setattr(operator_nodes, "REGISTRY", registry)
    graph = Graph()
    assert made == []
    assert str(graph.insert("prim::tests_lazy", [graph.add_input("x", INT)]).type) == "int"
    assert made == ["first", "second"]
    assert [each.schema.overload for each in registry.overloads("prim::tests_lazy")] == ["first", "second", "third"]
    assert registry.overloads("prim::tests_lazy")[1:] == list(registry.overloads("prim::tests_lazy"))[1:]
    assert made == ["first", "second", "third"]


def test_a_schema_without_arguments_in_parentheses_is_an_error() -> None:
    with pytest.raises(ParseError) as caught:
        declare(abs, "prim::tests_undeclared")
    assert str(caught.value) == (
        "Expected '(' but found the end of the text.\n    prim::tests_undeclared\n                          ^"
    )


def test_a_kind_that_was_unknown_is_found_once_it_is_declared_or_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declarations, "_DECLARED", {})
    assert REGISTRY.overloads("prim::tests_declared_late") == ()
    declare(abs, "prim::tests_declared_late(int x) -> int")
    assert operator("prim::tests_declared_late").operation is abs
    REGISTRY.forget("prim::tests_declared_late")
    registry = OperatorRegistry()
    assert registry.overloads("prim::late") == ()
    late = registry.register(Operator(parse_schema("prim::late(int x) -> int"), abs))
    assert registry.overloads("prim::late") == (late,)


def test_importing_looks_nothing_up() -> None:
    code = (
        "import torch\n"
        "def refuse(): raise AssertionError('looked up at import')\n"
        "torch._C._dispatch_get_all_op_names = refuse\n"
        "import rekindle.ops\n"
        "from rekindle.ir.operators.registry import REGISTRY\n"
        "assert REGISTRY._resolved == {}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ------------------------------------------------------------------------------------------------------------- calling


def test_numbers_stand_for_dtypes_layouts_and_memory_formats() -> None:
    float64 = DTYPE_NUMBERS[torch.float64]
    found = call("aten::zeros", [2], float64, 0, torch.device("cpu"), False)
    assert found.dtype == torch.float64
    x = torch.zeros(1, 2, 3, 4)
    channels_last = MEMORY_FORMATS.index(torch.channels_last)
    assert call("aten::contiguous", x, channels_last).is_contiguous(memory_format=torch.channels_last)
    assert call("aten::to.dtype", x, float64, False, False, None).dtype == torch.float64
    assert call("aten::result_type.Tensor", x, x.double()) == float64


def test_results_are_plain() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    values = call("aten::max.dim", x, 1, False, outputs=[TENSOR, TENSOR])
    assert isinstance(values, tuple)  # several results are unpacked at once: it may be a class of PyTorch's own
    assert [part.tolist() for part in values] == [[2.0, 5.0], [2, 2]]
    parts = call("aten::split.Tensor", x, 1, 0)
    assert type(parts) is list
    assert call("aten::item", torch.tensor(3)) == 3
    assert call("aten::size.int", x, -1) == 3
    assert call("aten::index.Tensor", x, [None, torch.tensor([0])]).shape == (2, 1)


def test_errors_are_eagers() -> None:
    x = torch.ones(2)
    with pytest.raises(IndexError) as raised:
        call("aten::select.int", x, 0, 5)
    with pytest.raises(IndexError) as expected:
        x.select(0, 5)
    assert str(raised.value) == str(expected.value)
    with pytest.raises(RuntimeError) as failed:
        call("aten::add.Tensor", x, torch.ones(3), 1)
    with pytest.raises(RuntimeError) as wanted:
        x + torch.ones(3)
    assert str(failed.value) == str(wanted.value)


def test_out_is_given_by_name() -> None:
    out = torch.empty(2)
    assert call("aten::add.out", torch.ones(2), torch.ones(2), 3, out) is out
    assert out.tolist() == [4.0, 4.0]


def test_gradients_flow() -> None:
    x = torch.ones(2, requires_grad=True)
    call("aten::mul.Tensor", x, x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0]


# ------------------------------------------------------------------------------------------ what is left out of a call


class Recorder:
    """Stands for the overload and keeps how it was called."""

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        return args, kwargs


def _called(name: str, wanted: list[bool] | None, *arguments: Any) -> object:
    return positional_call(Recorder(), operator(name).schema, wanted)(*arguments)


def test_arguments_behind_the_star_are_given_by_name() -> None:
    assert _called("aten::add.Tensor", None, "x", "y", 2) == (("x", "y"), {"alpha": 2})
    assert _called("aten::zeros", None, [2], 6, None, None, None) == (
        ([2],),
        {"dtype": 6, "layout": None, "device": None, "pin_memory": None},
    )


def test_what_is_not_wanted_is_left_out() -> None:
    assert _called("aten::add.Tensor", [True, True, False], "x", "y", 1) == (("x", "y"), {})
    assert _called("aten::sum.dim_IntList", [True, True, True, False], "x", [0], True, None) == (("x", [0], True), {})
    # One that is wanted keeps those before it.
    assert _called("aten::max.dim", [True, False, True], "x", 0, True) == (("x", 0, True), {})
    softmax = [True, True, True, True, False]
    assert _called("aten::linalg_vector_norm", softmax, "x", 2, None, True, None) == (("x", 2, None, True), {})
    assert _called("aten::zeros", [True, False, False, True, False], [2], None, None, "cpu", None) == (
        ([2],),
        {"device": "cpu"},
    )


def _node(kind: str, *arguments: Any) -> Node:
    """A node with Tensors for ``...`` and constants for the others."""
    graph = Graph()
    values = [graph.add_input() if item is ... else graph.insert_constant(item) for item in arguments]
    return graph.insert_node(graph.create(kind, values))


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Any:
    def record(node: Node, *arguments: Any) -> object:
        found = node.operator
        assert found is not None
        wanted: list[bool] = []
        monkeypatch.setattr(
            "rekindle.ops.registration.dispatcher.positional_call",
            lambda call, schema, passed, bound, direct: wanted.extend(passed),
        )
        found.operation_of(node)
        return wanted

    return record


def test_constants_equal_to_their_defaults_are_left_out(recorded: Any) -> None:
    assert recorded(_node("aten::add", ..., ..., 1)) == [True, True, False]
    assert recorded(_node("aten::add", ..., ..., 2)) == [True, True, True]
    # 1.0 is not the default, though Python says that it equals 1.
    assert recorded(_node("aten::add", ..., ..., 1.0)) == [True, True, True]
    assert recorded(_node("aten::sum", ..., None)) == [True, False]


def test_constants_that_go_by_name_are_bound_beforehand() -> None:
    node = _node("aten::add", ..., ..., 3)
    found = node.operator
    assert found is not None
    # The values in their place at run time are not read: they can only be the constants.
    assert found.operation_of(node)(torch.ones(1), torch.ones(1), "the constant").item() == 4
    bound = positional_call(Recorder(), operator("aten::add.Tensor").schema, [True] * 3, {"alpha": 3})
    assert bound("x", "y", "the constant") == (("x", "y"), {"alpha": 3})
    schema = operator("aten::zeros").schema
    bound = positional_call(Recorder(), schema, [True, True, False, True, False], {"dtype": 7})
    assert bound([2], "the constant", None, "cpu", None) == (([2],), {"dtype": 7, "device": "cpu"})


def test_what_only_happens_to_equal_a_default_is_passed(recorded: Any) -> None:
    graph = Graph()
    values = [graph.add_input(), graph.add_input(), graph.add_input(type=INT)]
    assert recorded(graph.insert_node(graph.create("aten::add", values))) == [True, True, True]


def test_calls_with_and_without_defaults_agree() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    node = _node("aten::softmax", ..., 1, None)
    found = node.operator
    assert found is not None
    assert torch.equal(found.operation_of(node)(x, 1, None), x.softmax(1))
    node = _node("aten::flatten", ..., 0, -1)
    found = node.operator
    assert found is not None
    assert torch.equal(found.operation_of(node)(x, 0, -1), x.flatten())


# --------------------------------------------------------------------------------------------------------------- facts


@pytest.mark.parametrize(
    ("name", "expected"), [("aten::rand", True), ("aten::bernoulli_.float", True), ("aten::add.Tensor", False)]
)
def test_random_operators_are_nondeterministic(name: str, expected: bool) -> None:
    assert operator(name).is_nondeterministic is expected


@pytest.mark.parametrize(
    ("name", "expected"), [("aten::_assert_async", True), ("aten::add_.Tensor", False), ("aten::mm", False)]
)
def test_what_returns_and_writes_nothing_has_effects(name: str, expected: bool) -> None:
    assert operator(name).has_side_effects is expected


# ---------------------------------------------------------------------------------------------------- custom operators


def test_custom_operators_are_found_when_they_are_defined_later() -> None:
    assert REGISTRY.overloads("rekindle_test::triple") == ()
    library = torch.library.Library("rekindle_test", "DEF")
    library.define("triple(Tensor x, *, int by=3) -> Tensor")
    library.impl("triple", lambda x, *, by=3: x * by, "CompositeExplicitAutograd")
    assert call("rekindle_test::triple", torch.ones(1), 4).item() == 4
    types: list[Type] = [TENSOR, INT]
    assert operator("rekindle_test::triple").matches(_typed_node("rekindle_test::triple", types))


def _typed_node(kind: str, types: list[Type]) -> Node:
    graph = Graph()
    return graph.insert_node(graph.create(kind, [graph.add_input(type=type) for type in types]))


def test_operators_that_replace_as_many_others_are_found() -> None:
    for name in ("first", "second"):
        with torch.library._scoped_library("tests_replaced", "DEF") as library:
            library.define(f"{name}(Tensor x) -> Tensor")
            found = dispatcher_operators(f"tests_replaced::{name}")
            assert [each.schema.qualified_name for each in found] == [f"tests_replaced::{name}"]


def _sum_into(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return torch.add(x, 1, out=out)


def _diagonal_into(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return torch.diagonal_copy(x, out=out) * 2


def _scattered_into(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return torch.slice_scatter(x, torch.zeros(1, 3), 0, 1, 2, out=out) * 2


@pytest.mark.parametrize(("function", "shape"), [(_diagonal_into, (3,)), (_scattered_into, (3, 3))])
def test_generated_operators_that_python_calls_return_results(
    function: Callable[..., torch.Tensor], shape: tuple[int, ...]
) -> None:
    """``torch.diagonal_copy(x, out=y)`` calls the generated operator in eager too, which has no derivative."""
    compiled = rekindle.script(function)
    for _ in range(3):
        found = []
        for run in (function, compiled):
            x, out = torch.arange(9.0).reshape(3, 3).requires_grad_(), torch.empty(shape)
            result = run(x, out)
            assert out.requires_grad
            with pytest.raises(RuntimeError) as caught:
                result.sum().backward()
            found.append((result.tolist(), out.tolist(), str(caught.value)))
        assert found[0] == found[1]


def test_results_in_an_argument_record_no_gradients() -> None:
    """PyTorch generates ``add.Scalar_out``, which Python never calls, without the check that ``add.out`` has."""
    compiled = rekindle.script(_sum_into)
    x = torch.ones(3, requires_grad=True)
    for _ in range(4):
        for function in (_sum_into, compiled):
            with pytest.raises(RuntimeError) as caught:
                function(x, torch.empty(3))
            assert str(caught.value) == (
                "add(): functions with out=... arguments don't support automatic differentiation, but one of the "
                "arguments requires grad."
            )
        with torch.no_grad():
            assert compiled(x, torch.empty(3)).tolist() == [2, 2, 2]
        assert compiled(x.detach(), torch.empty(3)).tolist() == [2, 2, 2]


def test_items_of_a_lazy_sequence_are_made_once() -> None:
    made: list[int] = []

    def make(n: int) -> list[int]:
        made.append(n)
        return [n]

    items = LazySequence.mapped(make, [1, 2, 3])
    assert items[-1] is items[2]
    assert items[1:] == [[2], [3]]
    assert made == [3, 2]
    with pytest.raises(IndexError):
        items[-4]


def test_overloads_may_be_added_to_kinds_with_an_order(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [*declarations._DECLARED["aten::list"]]
    monkeypatch.setitem(declarations._DECLARED, "aten::list", known)
    declare(list, "aten::list.added(Stream s) -> int[]")
    assert [each.schema.overload for each in declared_operators("aten::list")] == ["", "t", "added"]


class _Seen(torch.overrides.TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.functions: list[object] = []

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.functions.append(func)
        return func(*args, **(kwargs or {}))


class _Subclass(torch.Tensor):
    pass


def test_operators_that_take_cpp_objects() -> None:
    """They are called by the dispatcher's boxed call, which does not look for ``__torch_function__``."""
    convolution = operator("quantized::conv2d_relu.new")
    run = convolution.operation
    assert run is not None
    weight = torch.quantize_per_tensor(torch.randn(2, 3, 1, 1), 0.1, 0, torch.qint8)
    packed = torch.ops.quantized.conv2d_prepack(weight, None, [1, 1], [0, 0], [1, 1], 1)
    x = torch.quantize_per_tensor(torch.randn(1, 3, 2, 2), 0.1, 0, torch.quint8)
    eager = torch.ops.quantized.conv2d_relu
    assert torch.equal(run(x, packed, 0.5, 3), eager(x, packed, 0.5, 3))
    with _Seen() as seen:
        run(x, packed, 0.5, 3)
    assert seen.functions == [eager.new]
    subclassed = run(x.as_subclass(_Subclass), packed, 0.5, 3)
    assert type(subclassed) is _Subclass
    for arguments in ((x, 1, 0.5, 3), (x.dequantize(), packed, 0.5, 3), (x[0], packed, 0.5, 3)):
        with pytest.raises(RuntimeError) as expected:
            eager.new(*arguments)
        with pytest.raises(RuntimeError) as found:
            run(*arguments)
        assert str(found.value) == str(expected.value)
