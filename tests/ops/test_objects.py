"""Objects, modules, enums, named tuples, type tests, with-statements, and calls of Python."""

from __future__ import annotations

import collections
import enum
from typing import Any

import pytest
import torch
from torch import nn

from rekindle.errors import GraphError
from rekindle.ir.attributes import ConstantObject
from rekindle.ir.types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    NONE,
    STRING,
    TENSOR,
    ClassType,
    DictType,
    EnumType,
    InterfaceType,
    ListType,
    TupleType,
    Type,
    optional,
    union,
)
from rekindle.ops.python.values import ScriptObject, new_object, type_of_value, value_matches
from tests.ops.calling import call


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Point:
    def __init__(self, x: int) -> None:
        self.x = x


Pair = collections.namedtuple("Pair", ["first", "second"])


def _point() -> ClassType:
    type = ClassType("__torch__.Point", python_class=Point)
    type.add_attribute("x", INT)
    return type


# ---------------------------------------------------------------------------------------------------- slots of objects


def test_slots_of_script_classes() -> None:
    type = _point()
    point = Point(3)
    assert call("prim::GetAttr", point, inputs=[type], attributes={"name": "x"}) == 3
    call("prim::SetAttr", point, 5, inputs=[type, INT], outputs=[], attributes={"name": "x"})
    assert point.x == 5


def test_objects_are_made_without_calling_init() -> None:
    made = call("prim::CreateObject", outputs=[_point()])
    assert isinstance(made, Point)
    assert not hasattr(made, "x")


def test_objects_of_classes_that_have_no_python_class() -> None:
    type = ClassType("__torch__.Lost")
    type.add_attribute("x", INT)
    made = call("prim::CreateObject", outputs=[type])
    call("prim::SetAttr", made, 5, inputs=[type, INT], outputs=[], attributes={"name": "x"})
    assert call("prim::GetAttr", made, inputs=[type], attributes={"name": "x"}) == 5
    assert repr(made) == "<object of __torch__.Lost>"
    assert type_of_value(made) is type


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("running", torch.zeros(2))
        self.child = nn.Linear(2, 2)
        self.scale = 3


def _net() -> ClassType:
    child = ClassType("__torch__.Linear", is_module=True)
    type = ClassType("__torch__.Net", is_module=True)
    type.add_attribute("weight", TENSOR, "parameter")
    type.add_attribute("running", TENSOR, "buffer")
    type.add_attribute("child", child)
    type.add_attribute("scale", INT)
    return type


@pytest.mark.parametrize("name", ["weight", "running", "child", "scale"])
def test_slots_of_modules_are_read(name: str) -> None:
    net = Net()
    assert call("prim::GetAttr", net, inputs=[_net()], attributes={"name": name}) is getattr(net, name)


def test_slots_of_modules_are_written() -> None:
    net = Net()
    new = torch.full((2,), 7.0)
    for name, value, slot in (("running", new, TENSOR), ("scale", 4, INT), ("child", nn.Linear(2, 3), _net())):
        call("prim::SetAttr", net, value, inputs=[_net(), slot], outputs=[], attributes={"name": name})
        assert getattr(net, name) is value
    assert dict(net.named_buffers()) == {"running": new}
    assert net.child.out_features == 3
    assert set(net._modules) == {"child"}


def test_a_parameter_that_was_replaced_by_a_parametrization_is_found() -> None:
    net = Net()
    nn.utils.parametrize.register_parametrization(net, "weight", nn.Tanh())
    found = call("prim::GetAttr", net, inputs=[_net()], attributes={"name": "weight"})
    assert torch.equal(found, torch.ones(2).tanh())


def test_modules_in_containers() -> None:
    layers = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    assert call("prim::ModuleContainerIndex.list", layers, -1) is layers[-1]
    with pytest.raises(IndexError) as raised:
        call("prim::ModuleContainerIndex.list", layers, 2)
    assert str(raised.value) == "index 2 is out of range"
    table = nn.ModuleDict({"a": nn.ReLU()})
    assert call("prim::ModuleContainerIndex.dict", table, "a") is table["a"]


# -------------------------------------------------------------------------------------------------------- named tuples


def test_named_tuples_are_made_of_their_python_class() -> None:
    type = TupleType((INT, INT), "__torch__.Pair", ("first", "second"), (), Pair)
    assert call("prim::TupleConstruct", 1, 2, outputs=[type]) == Pair(1, 2)
    assert isinstance(call("prim::TupleConstruct", 1, 2, outputs=[type]), Pair)


def test_named_tuples_without_a_python_class_share_one() -> None:
    type = TupleType((INT, INT), None, ("values", "indices"))
    made = call("prim::TupleConstruct", 1, 2, outputs=[type])
    again = call("prim::TupleConstruct", 3, 4, outputs=[TupleType((INT, INT), None, ("values", "indices"))])
    assert (made.values, made.indices) == (1, 2)
    assert made.__class__ is again.__class__


# --------------------------------------------------------------------------------------------------------------- enums


def test_enums() -> None:
    assert call("prim::EnumName", Color.RED) == "RED"
    assert call("prim::EnumValue.int", Color.BLUE) == 2
    assert call("aten::eq.enum", Color.RED, Color.RED) is True
    assert call("aten::ne.enum", Color.RED, Color.BLUE) is True


# ---------------------------------------------------------------------------------------------------------- type tests

_ENUM = EnumType("Color", INT, {"RED": Color.RED, "BLUE": Color.BLUE}, Color)

OF_TYPE: list[tuple[object, Type, bool]] = [
    (3, INT, True),
    (True, INT, False),
    (True, BOOL, True),
    (3, FLOAT, False),
    (3.0, FLOAT, True),
    ("x", STRING, True),
    (None, NONE, True),
    (None, optional(INT), True),
    (3, optional(INT), True),
    (3.0, optional(INT), False),
    ([1, 2], ListType(INT), True),
    ([1, "x"], ListType(INT), False),
    ([], ListType(INT), True),
    ((1, "x"), TupleType((INT, STRING)), True),
    ((1,), TupleType((INT, STRING)), False),
    ([1], TupleType((INT,)), False),
    (torch.ones(1), TENSOR, True),
    (1, union((INT, STRING)), True),
    (1.5, union((INT, STRING)), False),
    (Color.RED, _ENUM, True),
    (1, _ENUM, False),
    (Point(1), _point(), True),
    (1, _point(), False),
    (object(), ANY, True),
]


@pytest.mark.parametrize(("value", "type", "expected"), OF_TYPE)
def test_values_are_of_types(value: object, type: Type, expected: bool) -> None:
    assert value_matches(value, type) is expected


def test_objects_are_told_apart_by_their_types() -> None:
    one, other = ClassType("A"), ClassType("A")
    assert value_matches(new_object(one), one)
    assert not value_matches(new_object(one), other)
    assert isinstance(new_object(one), ScriptObject)
    interface = InterfaceType("I", {})
    assert value_matches(new_object(one), interface)


def test_isinstance_is_pythons() -> None:
    def test(value: object, *types: Type) -> bool:
        answer = call("prim::isinstance", value, inputs=[ANY], outputs=[BOOL], attributes={"types": list(types)})
        assert isinstance(answer, bool)
        return answer

    assert test(3, INT)
    assert test(True, INT)
    assert not test(3, FLOAT, STRING)
    assert test("x", FLOAT, STRING)
    assert test([1], ListType(INT))


def test_nodes_without_what_they_need_are_refused() -> None:
    with pytest.raises(GraphError) as raised:
        call("prim::isinstance", 3, outputs=[BOOL])
    assert str(raised.value) == "prim::isinstance has no attribute 'types'"
    with pytest.raises(GraphError) as raised:
        call("prim::CreateObject", outputs=[INT])
    assert str(raised.value) == "prim::CreateObject makes objects of classes, not of int"


def test_optionals() -> None:
    assert call("aten::_unwrap_optional", 3) == 3
    assert call("prim::unchecked_unwrap_optional", 3) == 3
    with pytest.raises(AssertionError) as raised:
        call("aten::_unwrap_optional", None)
    assert str(raised.value) == "Unwrapping null optional"


def test_choice_and_identity() -> None:
    assert call("prim::IfThenElse", True, 1, 2) == 1
    assert call("prim::IfThenElse", False, 1, 2) == 2
    value = [1]
    assert call("prim::unchecked_cast", value) is value
    assert call("prim::id", value) == id(value)
    assert call("prim::id", None) == 0
    assert call("aten::hash.generic", "x") == hash("x")


# ---------------------------------------------------------------------------------------------------------------- with


class Manager:
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def __enter__(self) -> int:
        self.calls.append("enter")
        return 7

    def __exit__(self, *error: Any) -> None:
        self.calls.append(error)


def test_entering_and_leaving() -> None:
    manager = Manager()
    assert call("prim::Enter", manager) == 7
    call("prim::Exit", manager, outputs=[])
    assert manager.calls == ["enter", (None, None, None)]
    with torch.enable_grad():
        guard = torch.no_grad()
        call("prim::Enter", guard)
        assert not torch.is_grad_enabled()
        call("prim::Exit", guard, outputs=[])
        assert torch.is_grad_enabled()


# -------------------------------------------------------------------------------------------------------------- Python


def test_python_functions_are_called_and_their_results_checked() -> None:
    def double(x: int) -> Any:
        return (x, x)

    attributes = {"function": ConstantObject(double)}
    assert call("prim::PythonOp", 2, outputs=[ListType(INT)], attributes=attributes) == [2, 2]
    assert call("prim::PythonOp", 2, outputs=[NONE], attributes=attributes) is None
    with pytest.raises(TypeError) as raised:
        call("prim::PythonOp", 2, outputs=[STRING], attributes=attributes)
    assert str(raised.value) == (
        "the Python function 'test_python_functions_are_called_and_their_results_checked.<locals>.double' should return"
        " str, but returned Tuple[int, int]"
    )


RESULTS: list[tuple[object, Type, object]] = [
    (3, FLOAT, 3.0),
    (torch.float64, INT, 7),
    ((1, 2), ListType(FLOAT), [1.0, 2.0]),
    ({"a": (1,)}, DictType(STRING, ListType(INT)), {"a": [1]}),
    ((1, None), TupleType((FLOAT, optional(INT))), (1.0, None)),
    (3, optional(FLOAT), 3.0),
    ((1, 2), TupleType((INT, FLOAT), "Pair", ("first", "second"), (), Pair), Pair(1, 2.0)),
]


@pytest.mark.parametrize(("returned", "type", "expected"), RESULTS)
def test_results_of_python_are_taken_as_their_type(returned: object, type: Type, expected: object) -> None:
    attributes = {"function": ConstantObject(lambda: returned)}
    answer = call("prim::PythonOp", outputs=[type], attributes=attributes)
    assert repr(answer) == repr(expected)
    assert answer.__class__ is expected.__class__


def test_results_that_fit_are_passed_on_as_they_are() -> None:
    items = [1, 2]
    attributes = {"function": ConstantObject(lambda: items)}
    assert call("prim::PythonOp", outputs=[ListType(INT)], attributes=attributes) is items
    assert call("prim::PythonOp", outputs=[], attributes=attributes) is items


def test_ignored_functions_cannot_be_called_after_loading() -> None:
    with pytest.raises(RuntimeError) as raised:
        call("prim::IgnoredPythonOp")
    assert (
        str(raised.value) == "the program calls a Python function that was marked to be ignored and is not part of it"
    )
