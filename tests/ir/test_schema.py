"""Schemas from text and back, with PyTorch's own schemas as the corpus."""

from __future__ import annotations

import pytest
import torch

from rekindle.errors import ParseError
from rekindle.ir.operators.schema import AliasInfo, Argument, FunctionSchema
from rekindle.ir.text.schema_parser import parse_schema
from rekindle.ir.types import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    INT,
    STRING,
    TENSOR,
    ClassType,
    DictType,
    FutureType,
    ListType,
    OptionalType,
    TupleType,
    VarType,
)

TWO_ARGUMENTS_OF_ONE_NAME = (
    "static_runtime::clamp_nan_to_num(Tensor input, Scalar? min, Scalar? max, float? nan, float? posinf, float? posinf)"
    " -> Tensor"
)
"""PyTorch names two arguments alike by mistake. It is an operator of its inference runtime, which no program calls."""


def check_round_trips(texts: list[str]) -> None:
    different = {text: again for text in texts if (again := str(parse_schema(text))) != text}
    assert different == {}


def test_every_schema_of_torchscript_comes_back() -> None:
    texts = sorted({str(schema) for schema in torch._C._jit_get_all_schemas()} - {TWO_ARGUMENTS_OF_ONE_NAME})
    assert len(texts) > 4000
    check_round_trips(texts)


def test_every_schema_of_the_dispatcher_comes_back() -> None:
    names = [qualified.partition(".") for qualified in torch._C._dispatch_get_all_op_names()]
    texts = [str(torch._C._get_schema(name, overload)) for name, _, overload in names]
    assert len(texts) > 3000
    check_round_trips(sorted(set(texts) - {TWO_ARGUMENTS_OF_ONE_NAME}))


def test_a_schema_read_in_parts_is_the_one_that_is_read_as_a_whole() -> None:
    texts = {str(schema) for schema in torch._C._jit_get_all_schemas()} - {TWO_ARGUMENTS_OF_ONE_NAME}
    nested = 't::f(Dict(str, (int, int)) x, (int, float)[] y=[], str z="a") -> ((int, int), int[2])'
    different = [text for text in [*texts, nested] if parse_schema(text) != parse_schema(text, lambda name: None)]
    assert different == []


# ------------------------------------------------------------------------------------------------------------ structure


def argument(text: str) -> Argument:
    """The argument that ``text`` declares."""
    return parse_schema(f"t::f({text}) -> ()").arguments[0]


def test_names() -> None:
    schema = parse_schema("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor")
    assert (schema.name, schema.overload, schema.qualified_name) == ("aten::add", "Tensor", "aten::add.Tensor")
    assert [a.name for a in schema.arguments] == ["self", "other", "alpha"]
    assert [a.kwarg_only for a in schema.arguments] == [False, False, True]
    assert [a.has_default for a in schema.arguments] == [False, False, True]
    assert schema.argument_index("other") == 1
    assert schema.argument_index("out") is None
    assert parse_schema("f() -> ()") == FunctionSchema("f")


@pytest.mark.parametrize(
    ("text", "is_vararg", "is_varret", "results"),
    [
        ("f() -> ()", False, False, 0),
        ("f(...) -> ...", True, True, 0),
        ("f(int x, ...) -> int", True, False, 1),
        ("f() -> (int, ...)", False, True, 1),
        ("f() -> (int, str)", False, False, 2),
        ("f() -> ((int, str))", False, False, 1),
        ("f() -> ((int, str)[])", False, False, 1),
        ("f() -> (Tensor values, Tensor indices)", False, False, 2),
        ("f() -> Tensor values", False, False, 1),
    ],
)
def test_variable_numbers(text: str, is_vararg: bool, is_varret: bool, results: int) -> None:
    schema = parse_schema(text)
    assert (schema.is_vararg, schema.is_varret, len(schema.returns)) == (is_vararg, is_varret, results)
    assert str(schema) == text


@pytest.mark.parametrize(
    ("text", "type", "size", "spelling"),
    [
        ("int[] x", ListType(INT), None, None),
        ("int[2] x", ListType(INT), 2, None),
        ("int[2]? x", OptionalType(ListType(INT)), 2, None),
        ("SymInt x", INT, None, "SymInt"),
        ("SymInt[1]? x", OptionalType(ListType(INT)), 1, "SymInt[]?"),
        ("ScalarType? x", OptionalType(INT), None, "ScalarType?"),
        ("Layout x", INT, None, "Layout"),
        ("MemoryFormat? x", OptionalType(INT), None, "MemoryFormat?"),
        ("SymFloat x", FLOAT, None, "SymFloat"),
        ("SymBool x", BOOL, None, "SymBool"),
        ("Dimname x", STRING, None, "Dimname"),
        ("PyObject x", ANY, None, "PyObject"),
        ("Tensor?[] x", ListType(OptionalType(TENSOR)), None, None),
        ("Dict(str, t) x", DictType(STRING, VarType("t")), None, None),
        ("(int, Tensor)[] x", ListType(TupleType((INT, TENSOR))), None, None),
        ("Future(t1) x", FutureType(VarType("t1")), None, None),
    ],
)
def test_types_of_arguments(text: str, type: object, size: int | None, spelling: str | None) -> None:
    found = argument(text)
    assert (found.type, found.size, found.spelling) == (type, size, spelling)
    assert str(parse_schema(f"t::f({text}) -> ()")) == f"t::f({text}) -> ()"


def sets(*names: str) -> frozenset[str]:
    return frozenset(names)


@pytest.mark.parametrize(
    ("text", "alias"),
    [
        ("Tensor x", None),
        ("Tensor(a) x", AliasInfo(sets("a"), sets("a"))),
        ("Tensor(a!) x", AliasInfo(sets("a"), sets("a"), is_write=True)),
        ("Tensor(a -> *) x", AliasInfo(sets("a"), sets("*"))),
        ("Tensor(a! -> b|a) x", AliasInfo(sets("a"), sets("a", "b"), is_write=True)),
        ("Tensor(b|a) x", AliasInfo(sets("a", "b"), sets("a", "b"))),
        ("t(*) x", AliasInfo(sets("*"), sets("*"))),
        ("Tensor(a!)? x", AliasInfo(sets("a"), sets("a"), is_write=True)),
        ("t[](a!) x", AliasInfo(sets("a"), sets("a"), is_write=True)),
        ("Dict(str, t)(a!) x", AliasInfo(sets("a"), sets("a"), is_write=True)),
        ("Tensor(a)[] x", AliasInfo(contained=(AliasInfo(sets("a"), sets("a")),))),
        (
            "Tensor(a!)[] x",
            AliasInfo(is_write=True, contained=(AliasInfo(sets("a"), sets("a"), is_write=True),)),
        ),
        (
            "Tensor(a)[](b!) x",
            AliasInfo(sets("b"), sets("b"), is_write=True, contained=(AliasInfo(sets("a"), sets("a")),)),
        ),
        (
            "(Tensor(a!), int) x",
            AliasInfo(is_write=True, contained=(AliasInfo(sets("a"), sets("a"), is_write=True), AliasInfo())),
        ),
    ],
)
def test_aliases(text: str, alias: AliasInfo | None) -> None:
    assert argument(text).alias == alias
    assert str(parse_schema(f"t::f({text}) -> ()")) == f"t::f({text}) -> ()"


def test_a_schema_that_writes_is_mutable() -> None:
    assert parse_schema("f(Tensor(a!) self) -> Tensor(a!)").is_mutable
    assert parse_schema("f(Tensor(a!)[] self) -> ()").is_mutable
    assert parse_schema("f(t[](a!) self) -> ()").is_mutable
    assert not parse_schema("f(Tensor(a) self) -> Tensor(a)").is_mutable
    out = parse_schema("f(Tensor self, *, Tensor(a!) out) -> Tensor(a!)").arguments[1]
    assert out.is_out
    assert AliasInfo(sets("a"), sets("*")).is_wildcard


@pytest.mark.parametrize(
    ("text", "value", "printed"),
    [
        ("int x=-1", -1, None),
        ("float x=1e-5", 1e-5, "float x=1.0000000000000001e-05"),
        ("float x=1.", 1.0, None),
        ("float x=1", 1.0, None),
        ("float x=-0.5", -0.5, None),
        ("float x=inf", float("inf"), None),
        ("float x=-inf", -float("inf"), None),
        ("float x=1e16", 1e16, "float x=10000000000000000."),
        ("float x=1.5e20", 1.5e20, "float x=1.5e+20"),
        ("bool x=True", True, None),
        ("bool x=0", False, "bool x=False"),
        ("complex x=1j", 1j, "complex x=0.+1.j"),
        ("complex x=1.-2.j", 1 - 2j, None),
        ("Scalar x=1.5", 1.5, None),
        ("Scalar x=True", True, None),
        ("str x='a'", "a", 'str x="a"'),
        (r'str x="\"\'\\ \n\t\303\251"', "\"'\\ \n\té", None),
        ("str? x=None", None, None),
        ("Device x='cpu'", torch.device("cpu"), "Device x=cpu"),
        ("Tensor? x=None", None, None),
        ("int[] x=[]", [], None),
        ("int[] x=[0,1]", [0, 1], "int[] x=[0, 1]"),
        ("float[] x=[1,2.5]", [1.0, 2.5], "float[] x=[1., 2.5]"),
        ("bool[3] x=[True, False, True]", [True, False, True], None),
        ("int[2] x=1", [1, 1], None),
        ("int[2]? x=[1, 2]", [1, 2], None),
        ("str[] x=['a']", ["a"], 'str[] x=["a"]'),
        ("ScalarType x=long", 4, None),
        ("ScalarType? x=float", 6, None),
        ("ScalarType x=7", 7, None),
        ("Layout x=strided", 0, None),
        ("MemoryFormat? x=contiguous_format", 0, None),
        ("int reduction=Mean", 1, None),
        ("int x=long", 4, None),
    ],
)
def test_defaults(text: str, value: object, printed: str | None) -> None:
    found = argument(text)
    assert found.default == value
    assert type(found.default) is type(value)
    assert str(parse_schema(f"t::f({text}) -> ()")) == f"t::f({printed or text}) -> ()"


def test_schemas_compare_and_hash_by_meaning() -> None:
    one = parse_schema("f(SymInt[2] x=1, *, ScalarType y=long) -> Tensor")
    other = parse_schema("f(int[2] x=[1, 1], *, int y=4) -> Tensor")
    assert one == other
    assert hash(one) == hash(other)
    assert one != parse_schema("f(int[2] x=[1, 2], *, int y=4) -> Tensor")


def test_custom_classes_are_the_same_in_every_schema() -> None:
    name = "__torch__.torch.classes.quantized.LinearPackedParamsBase"
    one = parse_schema(f"f({name} x) -> {name}")
    other = parse_schema(f"g({name}? x) -> ()")
    assert one.arguments[0].type is one.returns[0].type
    assert other.arguments[0].type == OptionalType(one.returns[0].type)
    assert str(other) == f"g({name}? x) -> ()"


def test_a_resolver_knows_classes() -> None:
    known = ClassType("__torch__.Net")
    schema = parse_schema("f(__torch__.Net x, __torch__.Other y) -> ()", {"__torch__.Net": known}.get)
    assert schema.arguments[0].type is known
    other = schema.arguments[1].type
    assert isinstance(other, ClassType)
    assert other.name == "__torch__.Other"


def test_types_that_many_schemas_share() -> None:
    schema = parse_schema("f(complex a, Device b) -> ()")
    assert [a.type for a in schema.arguments] == [COMPLEX, DEVICE]


# --------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "aten::add(Tensr x) -> Tensor",
            """\
There is no type 'Tensr'.
    aten::add(Tensr x) -> Tensor
              ^^^^^
Hint: Did you mean 'Tensor'?""",
        ),
        (
            "aten::add(Tensor x",
            """\
'(' is never closed.
    aten::add(Tensor x
             ^""",
        ),
        (
            "aten::add(Tensor x) Tensor",
            """\
Expected '->' but found 'Tensor'.
    aten::add(Tensor x) Tensor
                        ^^^^^^""",
        ),
        (
            "aten::add(Tensor) -> Tensor",
            """\
Expected a name but found ')'.
    aten::add(Tensor) -> Tensor
                    ^""",
        ),
        (
            "aten::add(int[2][] x) -> Tensor",
            """\
A list of lists of a fixed size is not a type.
    aten::add(int[2][] x) -> Tensor
                    ^""",
        ),
        (
            "aten::add(*, int x, *, int y) -> Tensor",
            """\
The schema has a second '*'.
    aten::add(*, int x, *, int y) -> Tensor
                        ^""",
        ),
        (
            "aten::add(int x, int x) -> Tensor",
            """\
Two arguments are called 'x'.
    aten::add(int x, int x) -> Tensor
                         ^""",
        ),
        (
            "aten::add(int x=1.5) -> Tensor",
            """\
'1.5' cannot be the default of int.
    aten::add(int x=1.5) -> Tensor
                    ^^^""",
        ),
        (
            "aten::add(bool x=true) -> Tensor",
            """\
'true' cannot be the default of bool.
    aten::add(bool x=true) -> Tensor
                     ^^^^""",
        ),
        (
            "aten::add(int[] x=1) -> Tensor",
            """\
Expected a list for int[] but found '1'.
    aten::add(int[] x=1) -> Tensor
                      ^""",
        ),
        (
            "aten::add(Layout x=long) -> Tensor",
            """\
'long' cannot be the default of Layout.
    aten::add(Layout x=long) -> Tensor
                       ^^^^""",
        ),
        (
            'aten::add(str x=b"a") -> Tensor',
            """\
A string of a schema has no prefix.
    aten::add(str x=b"a") -> Tensor
                    ^^^^""",
        ),
        (
            "aten::add(Tensor(a!|b) x) -> Tensor",
            """\
Expected ')' but found '|'.
    aten::add(Tensor(a!|b) x) -> Tensor
                       ^""",
        ),
        (
            "aten::add(Dict(str) x) -> Tensor",
            """\
Dict takes 2 types, not 1.
    aten::add(Dict(str) x) -> Tensor
              ^^^^""",
        ),
        (
            "aten::add() -> Tensor junk more",
            """\
Expected the end of the schema but found 'more'.
    aten::add() -> Tensor junk more
                               ^^^^""",
        ),
        (
            "f() -> (int, str)[]",
            """\
Expected the end of the schema but found '['.
    f() -> (int, str)[]
                     ^""",
        ),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_schema(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text",
    [
        "aten::f(int a=1-2) -> int",
        "aten::f(int a, int a) -> int",
        "aten::f(Tensor(a!) self, *, *, int b) -> Tensor(a!)",
        "aten::f(float a=x) -> int",
        "aten::f(Tensor?[] a, bool b=1.5) -> Tensor",
        "aten::f(Tensor a b) -> Tensor",
        "aten::f::g(Tensor a) -> Tensor",
        "aten::1(Tensor a) -> Tensor",
    ],
)
def test_schemas_of_plain_parts_are_refused_like_others(text: str) -> None:
    # A schema whose arguments were all met before is built from them; a result list is never met before.
    with pytest.raises(ParseError) as plain:
        parse_schema(text)
    with pytest.raises(ParseError) as whole:
        parse_schema(f"{text.rpartition(' -> ')[0]} -> ()")
    assert plain.value.message == whole.value.message
    assert plain.value.range.start == whole.value.range.start
