"""Calls from Python: what fits, what is converted, and what an error says."""

from __future__ import annotations

import enum
import sys
import warnings
from collections import OrderedDict, deque, namedtuple
from typing import Any, NamedTuple

import numpy
import pytest
import torch

from rekindle.errors import ArgumentError
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema import MISSING, Argument, FunctionSchema
from rekindle.ir.types import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    GENERATOR,
    INT,
    NONE,
    NUMBER,
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
from rekindle.runtime.calls.arguments import Binder, bind, binder_of, signature, to_python
from rekindle.runtime.calls.number_conversion import PYTHON_RULES, TORCHSCRIPT_RULES, NumberRules
from tests.support.deprecation import silence


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    HIGH = 2


class Point(NamedTuple):
    x: int
    y: torch.Tensor


class Other(NamedTuple):
    a: int
    b: torch.Tensor


POINT = TupleType((INT, TENSOR), "__torch__.Point", ("x", "y"), (), Point)
COLOR = EnumType("__torch__.Color", INT, {"RED": 1, "BLUE": 2}, Color)


def one(type: Type, name: str = "x") -> FunctionSchema:
    return FunctionSchema("__torch__.f", arguments=(Argument(name, type),), returns=(Argument("", type),))


def convert(type: Type, value: object) -> Any:
    (found,) = bind(one(type), [value], {})
    return found


# -------------------------------------------------------------------------------------------------- position and name

F = FunctionSchema(
    "__torch__.module.f",
    arguments=(
        Argument("x", TENSOR),
        Argument("n", INT, 3),
        Argument("names", ListType(STRING), ["a"]),
        Argument("scale", FLOAT, kwarg_only=True, default=1.5),
        Argument("other", optional(TENSOR), kwarg_only=True, default=None),
    ),
    returns=(Argument("", TENSOR),),
)
X = torch.ones(2)


@pytest.mark.parametrize(
    ("args", "kwargs", "bound"),
    [
        ([X], {}, [X, 3, ["a"], 1.5, None]),
        ([], {"x": X}, [X, 3, ["a"], 1.5, None]),
        ([X, 4], {"scale": 2}, [X, 4, ["a"], 2.0, None]),
        ([X], {"other": X, "names": ["b"], "n": 5}, [X, 5, ["b"], 1.5, X]),
    ],
)
def test_by_position_and_by_name(args: list[Any], kwargs: dict[str, Any], bound: list[Any]) -> None:
    found = bind(F, args, kwargs)
    assert [value is X for value in found] == [value is X for value in bound]
    assert [value for value in found if value is not X] == [value for value in bound if value is not X]


def test_a_default_that_can_be_written_to() -> None:
    """All calls share it in Python, and each has its own in TorchScript."""
    assert bind(F, [X], {})[2] is F.arguments[2].default
    binder = Binder(F, TORCHSCRIPT_RULES)
    binder.bind([X], {})[2].append("b")
    assert binder.bind([X], {})[2] == ["a"]


@pytest.mark.parametrize("rules", [PYTHON_RULES, TORCHSCRIPT_RULES])
@pytest.mark.parametrize("passed", [1, 2, 3, 4])
def test_defaults_of_arguments_by_position(rules: NumberRules, passed: int) -> None:
    schema = FunctionSchema(
        "f",
        arguments=(
            Argument("x", TENSOR),
            Argument("n", INT, 3),
            Argument("names", ListType(STRING), ["a"]),
            Argument("scale", FLOAT, 2.0),
        ),
    )
    given, binder = [X, 4, ["b"], 1.0], Binder(schema, rules)
    for _ in range(2):
        found = binder.bind(given[:passed], {})
        assert found[0] is X
        assert list(found[1:]) == [*given[1:passed], *[3, ["a"], 2.0][passed - 1 :]]
        if passed < 3:
            assert (found[2] is schema.arguments[2].default) == (rules is PYTHON_RULES)
            if rules is TORCHSCRIPT_RULES:
                found[2].append("c")
    with pytest.raises(ArgumentError) as caught:
        binder.bind([], {})
    assert str(caught.value).splitlines()[0] == "f() is missing 1 argument: 'x'"


F_SIGNATURE = (
    "f(x: Tensor, n: int = 3, names: List[str] = ['a'], *, scale: float = 1.5, other: Optional[Tensor] = None)"
    " -> Tensor"
)


def test_the_signature_as_python_writes_it() -> None:
    assert signature(F) == F_SIGNATURE


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ([], {}, "f() is missing 1 argument: 'x'"),
        ([], {"n": 3}, "f() is missing 1 argument: 'x'"),
        ([X, 1, [], 2.0], {}, "f() takes 3 positional arguments, but 4 were given"),
        ([X, 1, [], 2.0, None], {}, "f() takes 3 positional arguments, but 5 were given"),
        ([X], {"nn": 3}, "f() has no parameter 'nn'"),
        ([X], {"x": X}, "f() got its argument 'x' twice: by position and by name"),
        ([X, "three"], {}, "f() argument 'n' (position 2) takes int, but got a str: 'three'"),
        ([X], {"n": 2.5}, "f() argument 'n' (position 2) takes int, but got a float: 2.5"),
        ([numpy.ones(2)], {}, "f() argument 'x' (position 1) takes Tensor, but got a ndarray: array([1., 1.])"),
        ([torch.nn.Linear(2, 2)], {}, "f() argument 'x' (position 1) takes Tensor, but got the module Linear"),
        (
            [X],
            {"scale": X},
            "f() argument 'scale' takes float, but got a Tensor of shape (2,) and dtype torch.float32",
        ),
        (
            [X],
            {"names": ["a", 3]},
            (
                "f() argument 'names' (position 3) takes List[str], but got a list: ['a', 3], "
                "in which names[1] is an int: 3 instead of str"
            ),
        ),
        ([X], {"names": "ab"}, "f() argument 'names' (position 3) takes List[str], but got a str: 'ab'"),
    ],
)
def test_what_an_error_says(args: list[Any], kwargs: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        bind(F, args, kwargs)
    assert str(caught.value) == f"{text}\nSignature: {F_SIGNATURE}"
    assert isinstance(caught.value, TypeError)
    assert caught.value.__context__ is None


def test_a_list_where_a_tensor_is_expected() -> None:
    with pytest.raises(ArgumentError) as caught:
        convert(TENSOR, [1, 2])
    assert (
        str(caught.value)
        == """\
f() argument 'x' (position 1) takes Tensor, but got a list: [1, 2]
Signature: f(x: Tensor) -> Tensor
Hint: a parameter without an annotation takes a Tensor; annotate it to take another type"""
    )


def test_none_where_none_is_not_expected() -> None:
    with pytest.raises(ArgumentError) as caught:
        convert(TENSOR, None)
    assert (
        str(caught.value)
        == """\
f() argument 'x' (position 1) takes Tensor, but got None
Signature: f(x: Tensor) -> Tensor
Hint: a parameter that may be None is annotated as Optional[Tensor]"""
    )


def test_several_missing_arguments() -> None:
    schema = FunctionSchema("g", arguments=(Argument("a", INT), Argument("b", INT), Argument("c", INT)))
    with pytest.raises(ArgumentError) as caught:
        bind(schema, [], {"b": 1})
    assert str(caught.value) == "g() is missing 2 arguments: 'a', 'c'\nSignature: g(a: int, b: int, c: int) -> None"


def test_methods_do_not_count_their_object() -> None:
    owner = ClassType("__torch__.Net", is_module=True)
    module = torch.nn.Identity()
    module._rekindle_type = owner  # type: ignore[assignment]
    schema = FunctionSchema(
        "__torch__.Net.forward",
        arguments=(Argument("self", owner), Argument("x", TENSOR)),
        returns=(Argument("", TENSOR),),
    )
    assert bind(schema, [module, X], {})[0] is module
    with pytest.raises(ArgumentError) as caught:
        bind(schema, [module, 3], {})
    assert (
        str(caught.value)
        == """\
forward() argument 'x' (position 1) takes Tensor, but got an int: 3
Signature: forward(self, x: Tensor) -> Tensor
Hint: a parameter without an annotation takes a Tensor; annotate it to take another type"""
    )
    with pytest.raises(ArgumentError) as caught:
        bind(schema, [module, X, X], {})
    assert (
        str(caught.value)
        == "forward() takes 1 positional argument, but 2 were given\nSignature: forward(self, x: Tensor) -> Tensor"
    )


# -------------------------------------------------------------------------------------------------------- conversions

ACCEPTED: list[tuple[Type, object, object]] = [
    (INT, 3, 3),
    (INT, True, 1),
    (INT, numpy.int32(3), 3),
    (INT, numpy.bool_(True), 1),
    (INT, torch.float32, 6),
    (INT, torch.strided, 0),
    (INT, torch.channels_last, 2),
    (INT, 2**70, 2**70),
    (FLOAT, 3, 3.0),
    (FLOAT, True, 1.0),
    (FLOAT, 2.5, 2.5),
    (FLOAT, 2**60, 2.0**60),
    (FLOAT, -(2**53), -(2.0**53)),
    (FLOAT, Level.HIGH, 2.0),
    (FLOAT, numpy.float32(2.5), 2.5),
    (FLOAT, numpy.float64(2.5), 2.5),
    (BOOL, True, True),
    (BOOL, 1, True),
    (BOOL, 0, False),
    (BOOL, numpy.int64(1), True),
    (BOOL, numpy.bool_(False), False),
    (COMPLEX, 1, 1 + 0j),
    (COMPLEX, 1j, 1j),
    (COMPLEX, numpy.complex64(1j), 1j),
    (NUMBER, 3, 3),
    (NUMBER, 2.5, 2.5),
    (NUMBER, True, 1),
    (STRING, "cpu", "cpu"),
    (DEVICE, "cpu", torch.device("cpu")),
    (DEVICE, torch.device("cpu"), torch.device("cpu")),
    (NONE, None, None),
    (COLOR, Color.RED, Color.RED),
    (ANY, torch.float32, torch.float32),
    (ANY, "text", "text"),
    (ListType(INT), (1, 2), [1, 2]),
    (ListType(INT), torch.Size([1, 2]), [1, 2]),
    (ListType(INT), range(3), [0, 1, 2]),
    (ListType(INT), deque([1, 2]), [1, 2]),
    (ListType(INT), numpy.arange(2), [0, 1]),
    (ListType(INT), [True, 2], [1, 2]),
    (ListType(INT), (), []),
    (ListType(FLOAT), [1, 2.5], [1.0, 2.5]),
    (ListType(FLOAT), (n for n in (1, 2)), [1.0, 2.0]),
    (ListType(optional(INT)), (None, 1), [None, 1]),
    (ListType(ListType(INT)), ([1], (2,)), [[1], [2]]),
    (ListType(TupleType((INT, INT))), [(1, 2)], [(1, 2)]),
    (TupleType((INT, FLOAT)), (1, 2), (1, 2.0)),
    (TupleType((INT, INT)), [1, 2], (1, 2)),
    (TupleType((INT, INT)), torch.Size([1, 2]), (1, 2)),
    (DictType(STRING, FLOAT), {"a": 1}, {"a": 1.0}),
    (DictType(INT, INT), OrderedDict({1: 2}), {1: 2}),
    (optional(FLOAT), 2, 2.0),
    (optional(FLOAT), None, None),
    (optional(ListType(INT)), (1,), [1]),
    (union([INT, FLOAT]), 2.5, 2.5),
    (union([INT, FLOAT]), 2, 2),
    (union([FLOAT, STRING]), 2, 2.0),
    (union([ListType(INT), ListType(FLOAT)]), [2.5], [2.5]),
    (union([ListType(INT), TENSOR]), (1, 2), [1, 2]),
    (union([INT, NONE, STRING]), None, None),
]


@pytest.mark.parametrize(("type", "value", "expected"), ACCEPTED, ids=lambda value: str(value)[:30])
def test_what_is_converted(type: Type, value: object, expected: Any) -> None:
    found = convert(type, value)
    assert found == expected
    assert _classes(found) == _classes(expected) or found is value


def _classes(value: object) -> object:
    return [_classes(item) for item in value] if isinstance(value, list | tuple) else value.__class__


NUMBERS_IN_TENSORS = (
    *(torch.tensor(3), torch.tensor(2.5), torch.tensor(True), torch.tensor([True]), torch.ones(2)),
    *(torch.nn.Parameter(torch.ones(1)), torch.tensor(2.0, requires_grad=True), torch.tensor(1j)),
)

REFUSED: list[tuple[Type, object]] = [
    *((TENSOR, value) for value in (1, 2.5, True, "x", [X], numpy.ones(2), None)),
    *((INT, value) for value in (2.5, 2.0, numpy.float32(2), "1", None, 1j, [1], *NUMBERS_IN_TENSORS)),
    *((FLOAT, value) for value in (1j, "1.5", None, numpy.complex64(1j), 10**400, numpy.ones(1), *NUMBERS_IN_TENSORS)),
    *((FLOAT, value) for value in (2**53 + 1, -(2**63) - 1, numpy.int64(2**53 + 1))),
    *((BOOL, value) for value in ("True", [], 2, -1, 0.0, 1.0, 0.5, None, 1j, *NUMBERS_IN_TENSORS)),
    *((COMPLEX, value) for value in ("1j", None, 2**53 + 1, 10**400, *NUMBERS_IN_TENSORS)),
    *((NUMBER, value) for value in ("1", None, *NUMBERS_IN_TENSORS)),
    *((STRING, value) for value in (1, b"x", None)),
    *((DEVICE, value) for value in (0, "nonsense", None)),
    *((NONE, value) for value in (0, "")),
    *((COLOR, value) for value in (1, "RED", None)),
    *(
        (ListType(INT), value)
        for value in ([1.5], ["a"], "12", {1: 2}, 3, X, [[1]], None, numpy.ones(2), numpy.array(3))
    ),
    *((ListType(STRING), value) for value in ("ab", [b"a"], {"a": 1})),
    *((TupleType((INT, INT)), value) for value in ((1,), (1, 2, 3), (1, "b"), {1, 2}, "ab", 1)),
    *((DictType(STRING, INT), value) for value in ([], {"a": 1.5}, {1: 1})),
    *((POINT, value) for value in ((1,), Other(1, X), ("a", X))),
    *((union([INT, STRING]), value) for value in (2.5, None, [1])),
    (optional(INT), "a"),
    (GENERATOR, 1),
]


@pytest.mark.parametrize(("type", "value"), REFUSED, ids=lambda value: str(value)[:30])
def test_what_is_refused(type: Type, value: object) -> None:
    with pytest.raises(ArgumentError):
        convert(type, value)


@pytest.mark.parametrize(
    ("type", "value"),
    [
        (ListType(INT), [1, 2]),
        (ListType(INT), []),
        (ListType(FLOAT), []),
        (ListType(TENSOR), [X]),
        (ListType(TENSOR), [torch.nn.Parameter(torch.ones(1)), X]),
        (ListType(ListType(INT)), [[1], []]),
        (ListType(optional(TENSOR)), [None, X]),
        (DictType(STRING, TENSOR), {"a": X}),
        (DictType(STRING, ListType(INT)), OrderedDict({"a": [1]})),
        (DictType(STRING, INT), {}),
        (TupleType((TENSOR, ListType(INT))), (X, [1])),
        (optional(ListType(INT)), [1]),
        (union([ListType(INT), STRING]), [1]),
        (ANY, [1]),
        (POINT, Point(1, X)),
        (TENSOR, torch.nn.Parameter(torch.ones(1))),
    ],
    ids=str,
)
def test_what_fits_is_passed_on_as_itself(type: Type, value: object) -> None:
    assert convert(type, value) is value


def test_a_list_within_a_list_that_is_converted_is_still_itself() -> None:
    inner = [1, 2]
    assert convert(ListType(ListType(INT)), (inner,))[0] is inner


def test_named_tuples() -> None:
    found = convert(POINT, (1, X))
    assert isinstance(found, Point)
    assert found == (1, X)
    found = convert(POINT, Point(True, X))  # type: ignore[arg-type]
    assert (type(found), found.x.__class__) == (Point, int)
    # Without a Python class, as in archives, one is made.
    archived = TupleType((INT, TENSOR), "__torch__.Point", ("x", "y"))
    made = convert(archived, Point(1, X))
    assert (type(made).__name__, made._fields) == ("Point", ("x", "y"))


class Step:
    pass


def test_objects_and_modules() -> None:
    step = ClassType("__torch__.Step", python_class=Step)
    other = ClassType("__torch__.Other", python_class=Step, is_module=True)
    value = Step()
    assert convert(step, value) is value
    with pytest.raises(ArgumentError):
        convert(other, value)
    value._rekindle_type = other  # type: ignore[attr-defined]
    assert convert(other, value) is value
    with pytest.raises(ArgumentError, match=r"argument 'x' \(position 1\) takes __torch__.Step, but got an int: 3"):
        convert(step, 3)


def test_interfaces() -> None:
    schema = FunctionSchema(
        "forward", arguments=(Argument("self", ANY), Argument("x", INT)), returns=(Argument("", INT),)
    )
    interface = InterfaceType("__torch__.Takes", {"forward": schema}, is_module=True)
    fitting = ClassType("__torch__.A", is_module=True)
    record = GraphFunction("forward")
    record.declare(schema)
    fitting.methods["forward"] = record
    value = Step()
    value._rekindle_type = fitting  # type: ignore[attr-defined]
    assert convert(interface, value) is value
    value._rekindle_type = ClassType("__torch__.B", is_module=True)  # type: ignore[attr-defined]
    with pytest.raises(ArgumentError):
        convert(interface, value)


# Programs of archives take what torch.jit takes, except these.

LESS_THAN_TORCH: set[tuple[str, str]] = {
    # torch.jit cuts these down to ints without a word.
    ("int", "float32(2.5)"),
    ("int", "tensor(2.5000)"),
    # A number has no gradient.
    *(
        (name, "Parameter containing:\ntensor([1.], requires_grad=True)")
        for name in ("int", "float", "bool", "complex")
    ),
    # Takes a string for the list of its letters, a dict for the list of its keys, a Tensor for a placeholder.
    ("List[str]", "'ab'"),
    ("List[str]", "{'a': 1}"),
    ("Tensor", "None"),
    ("List[str]", "{}"),
    ("Dict[str, int]", "[]"),
    ("Dict[str, int]", "()"),
    ("bool", "range(0, 3)"),
    *([("bool", "deque([1, 2])")] if sys.version_info < (3, 11) else []),  # there its type has a slot for bool()
    # Anything that can be walked over for a tuple.
    ("Tuple[int, int]", "array([0, 1])"),
    ("Tuple[int, int]", "tensor([1., 1.])"),
    ("Tuple[int, int]", "{1, 2}"),
    ("Tuple[int, int]", "deque([1, 2])"),
}


def test_torch_takes_nothing_more_but_what_is_listed() -> None:
    values: list[Any] = [
        *(3, True, 2.5, 1j, "ab", None, numpy.int64(3), numpy.float32(2.5), numpy.float64(2.5)),
        *(numpy.bool_(True), torch.tensor(3), torch.tensor(2.5), torch.ones(2), torch.nn.Parameter(torch.ones(1))),
        *(torch.float32, torch.strided, torch.channels_last, torch.device("cpu"), [1, 2], (1, 2), [1.0, 2], [True]),
        *([], (), torch.Size([1, 2]), [X], (X,), ["a"], numpy.ones(2), numpy.arange(2), {"a": 1}, {1: 1}, {}),
        *(range(3), {1, 2}, deque([1, 2]), namedtuple("P", "a b")(1, 2)),
    ]
    source = "def f(x: {}):\n    return x\n"
    found: set[tuple[str, str]] = set()
    types: list[Type] = [TENSOR, INT, FLOAT, BOOL, COMPLEX, STRING, ListType(INT), ListType(FLOAT), ListType(STRING)]
    types += [ListType(TENSOR), TupleType((INT, INT)), DictType(STRING, INT), optional(INT), optional(ListType(INT))]
    with warnings.catch_warnings():
        silence()
        for type in types:
            oracle = torch.jit.CompilationUnit(source.format(type.annotation)).f
            for value in values:
                try:
                    oracle(value)
                except (TypeError, RuntimeError):
                    continue
                try:
                    Binder(one(type), TORCHSCRIPT_RULES).bind([value], {})
                except ArgumentError:
                    name = "int" if type == optional(INT) else type.annotation
                    found.add((name, repr(value).removeprefix("np.")))
    assert found == LESS_THAN_TORCH


# ------------------------------------------------------------------------------------------------------------ results


def test_results() -> None:
    assert to_python(X, TENSOR) is X
    pair = (X, 1)
    assert to_python(pair, TupleType((TENSOR, INT))) is pair
    found = to_python((1, X), POINT)
    assert isinstance(found, Point)
    inner = Point(2, X)
    assert to_python(inner, POINT) is inner
    items = [(1, X), inner]
    assert to_python(items, ListType(POINT)) is items
    assert [type(item) for item in items] == [Point, Point]
    assert items[1] is inner
    assert to_python(None, optional(POINT)) is None
    nested = to_python((3, (1, X)), TupleType((INT, POINT)))
    assert isinstance(nested[1], Point)


def test_what_fits_at_the_first_glance_is_not_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    types = (TENSOR, INT, optional(TENSOR), optional(FLOAT), STRING, DEVICE)
    binder = Binder(FunctionSchema("f", arguments=tuple(Argument(f"a{i}", type) for i, type in enumerate(types))))
    monkeypatch.setattr(binder, "_converters", [])
    parameter = torch.nn.Parameter(X)

    args = (parameter, 1, None, 2.0, "a", torch.device("cpu"))
    assert binder.bind(args, {}) == args
    with pytest.raises(IndexError):
        binder.bind((X, True, None, 2.0, "a", torch.device("cpu")), {})


def test_a_function_declared_anew_is_bound_anew() -> None:
    record = GraphFunction("f")
    record.declare(FunctionSchema("f", arguments=(Argument("x", INT),)))
    assert binder_of(record).bind([1], {}) == (1,)
    assert binder_of(record) is binder_of(record)
    record.declare(FunctionSchema("f", arguments=(Argument("x", STRING), Argument("y", INT))))
    assert binder_of(record).bind(["a", 2], {}) == ("a", 2)


def test_missing_is_no_default() -> None:
    assert not Argument("x", INT, MISSING).has_default
