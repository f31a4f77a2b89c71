"""Types: spelling, subtyping and unification, with torch's own answers for every pair of a long list."""

from __future__ import annotations

import functools

import hypothesis
import pytest
import torch
from hypothesis import strategies

from rekindle.errors import GraphError, ParseError
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.text.printer import format_type
from rekindle.ir.text.type_parser import parse_type
from rekindle.ir.types import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    STRING,
    TENSOR,
    AwaitType,
    Bindings,
    ClassType,
    DictType,
    EnumType,
    FunctionType,
    FutureType,
    InterfaceType,
    ListType,
    OptionalType,
    RRefType,
    TensorType,
    TupleType,
    Type,
    UnionType,
    VarType,
    has_free_variables,
    match_variables,
    optional,
    substitute,
    unify,
    unify_all,
    union,
    union_members,
    unshaped,
    without_none,
)

TENSORS = [
    *(
        "Tensor",
        "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)",
        "Float(2, 3)",
        "Float(*, *)",
        "Float(2, *)",
    ),
    *("Double(2, 3)", "Float(2)", "Float()", "Long(*, *, device=cpu)", "Float(2, 3, requires_grad=1)"),
]
SIMPLE = [
    *("int", "float", "complex", "bool", "Scalar", "str", "NoneType", "Device", "Generator", "Stream", "Storage"),
    *("QScheme", "Capsule", "Any", "AnyEnumType", "AnyClassType"),
]
CONTAINERS = [
    *(
        "int[]",
        "float[]",
        "Tensor[]",
        "Any[]",
        "Scalar[]",
        "int?[]",
        "int[]?",
        "Tensor?",
        "Tensor?[]",
        "int?",
        "float?",
    ),
    *(
        "Scalar?",
        "Any?",
        "Dict(str, int)",
        "Dict(str, Scalar)",
        "Dict(str, Tensor)",
        "Dict(int, int)",
        "Dict(str, int)?",
    ),
    *("Dict(str, Any)", "()", "(int)", "(int, Tensor)", "(int, float)", "(Scalar, Scalar)", "(Any, Any)"),
    *("(int?, Tensor?)", "(int, Float(2, 3))", "((int, int), int)", "(int, NoneType)", "Future(int)", "Future(Scalar)"),
    *("Future(Tensor)", "Future(Any)", "RRef(int)", "RRef(Any)", "Await(int)", "Await(Any)"),
    "__torch__.torch.classes.quantized.LinearPackedParamsBase",
    "__torch__.torch.classes.quantized.LinearPackedParamsBase?",
]
UNIONS = [
    *("Union(int, str)", "Union(int, NoneType, str)", "Union(float, int)", "Union(float, complex, int)"),
    *("Union(int[], str[])", "Union(Tensor, int)", "Union(Tensor, int, NoneType)", "(Union(int, str), int)"),
    "Union(int, str)[]",
]
VARIABLES = ["t", "t[]", "t?"]


@functools.cache
def theirs(text: str) -> torch._C.Type:
    """torch's own type of that spelling."""
    graph = torch._C.parse_ir(f"graph(%x : {text}):\n  return (%x)\n")
    return next(iter(graph.inputs())).type()


def spell(type: torch._C.Type) -> str:
    """How torch prints ``type`` in a graph."""
    graph = torch._C.parse_ir("graph(%x : Tensor):\n  return (%x)\n")
    next(iter(graph.inputs())).setType(type)
    return str(graph).partition("graph(%x : ")[2].partition("):\n")[0]


# ------------------------------------------------------------------------------------------------------------- spelling


@pytest.mark.parametrize("text", TENSORS + SIMPLE + CONTAINERS + UNIONS + VARIABLES)
def test_spelling(text: str) -> None:
    type = parse_type(text)
    assert str(type) == text
    if text != "Union(float, complex, int)":  # torch makes a Scalar of it, in a Union of its own
        assert format_type(type) == spell(theirs(text))
        assert type.annotation == theirs(text).annotation_str


@pytest.mark.parametrize(
    ("type", "text"),
    [
        (TensorType(torch.float32), "FloatTensor"),
        (TensorType(torch.float32, requires_grad=False), "FloatTensor(requires_grad=0)"),
        (TensorType(device=torch.device("cuda:1")), "Tensor(device=cuda:1)"),
        (TensorType(sizes=(2, None)), "Tensor(2, *)"),
        (TensorType(torch.bfloat16, sizes=()), "BFloat16()"),
        (TensorType(torch.float8_e4m3fn, sizes=(2,)), "Float8_e4m3fn(2)"),
        (TensorType(torch.float32, sizes=(2,), strides=(None,)), "Float(2)"),
        (TensorType(undefined=True), "Tensor[Undefined]"),
        (TensorType.of(torch.ones(2, 3)), "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)"),
    ],
)
def test_spelling_of_tensors(type: TensorType, text: str) -> None:
    assert str(type) == text
    if type.strides is None:
        assert parse_type(text) == type


def test_every_dtype_is_spelled_as_torch_spells_it() -> None:
    dtypes = {value for name in dir(torch) if isinstance(value := getattr(torch, name), torch.dtype)}
    unspelled = []
    for dtype in dtypes:
        try:
            text = spell(torch._C.TensorType.get().with_dtype(dtype))
        except RuntimeError:
            unspelled.append(dtype)
            continue
        assert str(TensorType(dtype)) == text
        assert parse_type(text) == TensorType(dtype)
    assert unspelled == []


def test_square_brackets_are_read_too() -> None:
    """Graphs have them after Future and RRef, schemas have round ones."""
    assert parse_type("Future[int[]]") == FutureType(ListType(INT))
    assert parse_type("RRef[int]?") == OptionalType(RRefType(INT))


def test_named_types() -> None:
    function = GraphFunction("__torch__.f")
    assert str(ClassType("__torch__.Net")) == "__torch__.Net"
    assert str(InterfaceType("__torch__.Shape")) == "InterfaceType<Shape>"
    assert InterfaceType("__torch__.Shape").annotation == "__torch__.Shape"
    assert str(EnumType("__torch__.Color", INT)) == "Enum<__torch__.Color>"
    assert EnumType("__torch__.Color", INT).annotation == "__torch__.Color"
    assert str(FunctionType(function)) == "Function"
    assert FunctionType(function) == FunctionType(function) != FunctionType(GraphFunction("__torch__.f"))
    assert ClassType("__torch__.Net") != ClassType("__torch__.Net")
    point = TupleType((INT, FLOAT), "__torch__.Point", ("x", "y"))
    assert (str(point), point.annotation) == ("__torch__.Point", "__torch__.Point")
    assert str(TupleType((INT,), None, ("x",))) == "NamedTuple(x : int)"
    assert (str(TupleType(())), TupleType(()).annotation) == ("()", "Tuple[()]")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Tensr", "There is no type 'Tensr'.\n    Tensr\n    ^^^^^\nHint: Did you mean 'Tensor'?"),
        ("int]", "']' closes nothing.\n    int]\n       ^"),
        ("int str", "Expected the end of the type but found 'str'.\n    int str\n        ^^^"),
        ("", "Expected a type but found the end of the text.\n\n    ^"),
        ("Float(2.5)", "Expected a whole number but found '2.5'.\n    Float(2.5)\n          ^^^"),
        ("Union()", "A Union needs a member.\n    Union()\n    ^^^^^"),
        ("Future(int, int)", "Future takes 1 type, not 2.\n    Future(int, int)\n    ^^^^^^"),
        ("Float", "Expected '(' but found the end of the text.\n    Float\n         ^"),
        (
            "NamedTuple(x : int = 1, y : int)",
            (
                "A field without a default follows one that has a default.\n"
                "    NamedTuple(x : int = 1, y : int)\n                                   ^"
            ),
        ),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_type(text)
    assert str(caught.value) == message


# ------------------------------------------------------------------------------------------------------------ subtyping

MORE_THAN_TORCH = {("(int, Float(2, 3))[]", "(int, Tensor)[]"), ("Float(2, 3)[]", "Tensor[]")}
"""A list of tensors of known shape is a list of tensors here: shapes are facts about values, not types of their own."""


def test_subtyping_of_every_pair() -> None:
    texts = [
        *TENSORS,
        *SIMPLE,
        *CONTAINERS,
        *UNIONS,
        *VARIABLES,
        "(int, Float(2, 3))[]",
        "(int, Tensor)[]",
        "Float(2, 3)[]",
    ]
    different = {
        (a, b)
        for a in texts
        for b in texts
        if parse_type(a).is_subtype_of(parse_type(b)) != theirs(a).isSubtypeOf(theirs(b))
    }
    assert different == MORE_THAN_TORCH


def test_named_tuples() -> None:
    point = TupleType((INT, FLOAT), "__torch__.Point", ("x", "y"))
    plain = TupleType((INT, FLOAT))
    assert point.is_subtype_of(plain)
    assert not plain.is_subtype_of(point)
    assert not TupleType((INT, FLOAT), "__torch__.Other", ("x", "y")).is_subtype_of(point)
    assert point.is_subtype_of(TupleType((NUMBER, NUMBER)))


def method(name: str, *types: Type, returns: Type = NONE) -> GraphFunction:
    arguments = (Argument("self", ANY), *(Argument(f"a{i}", type) for i, type in enumerate(types)))
    record = GraphFunction(name)
    record.declare(FunctionSchema(name, "", arguments, (Argument("", returns),)))
    return record


def test_interfaces() -> None:
    shape = InterfaceType("__torch__.Shape", {"area": method("area", FLOAT, returns=NUMBER).schema})
    fits = ClassType("__torch__.Square", methods={"area": method("area", FLOAT, returns=FLOAT)})
    wider = ClassType("__torch__.Wide", methods={"area": method("area", NUMBER, returns=INT), "more": method("more")})
    narrow = ClassType("__torch__.Narrow", methods={"area": method("area", INT, returns=FLOAT)})
    lacks = ClassType("__torch__.Lacks")
    module = ClassType("__torch__.Module", is_module=True, methods={"area": method("area", FLOAT, returns=FLOAT)})
    assert [c.is_subtype_of(shape) for c in (fits, wider, narrow, lacks, module)] == [True, True, False, False, True]
    modules = InterfaceType("__torch__.Shapes", dict(shape.methods), is_module=True)
    assert [c.is_subtype_of(modules) for c in (fits, module)] == [False, True]
    larger = InterfaceType("__torch__.Larger", {**shape.methods, "more": method("more").schema})
    assert larger.is_subtype_of(shape)
    assert not shape.is_subtype_of(larger)


def test_classes_have_slots() -> None:
    net = ClassType("__torch__.a.Net")
    net.add_attribute("weight", TENSOR, "parameter")
    assert (net.basename, net.attribute_type("weight"), net.attribute_type("bias")) == ("Net", TENSOR, None)
    with pytest.raises(
        GraphError, match=r"^class '__torch__\.a\.Net' already has an attribute, constant or method 'weight'$"
    ):
        net.add_attribute("weight", INT)


# -------------------------------------------------------------------------------------------------- unions, unification


def test_unions_are_simplified_and_ordered() -> None:
    assert union((INT, INT)) == INT
    assert union((INT, NONE)) == OptionalType(INT)
    assert union((INT, NUMBER)) == NUMBER
    assert union((INT, FLOAT, COMPLEX)) == NUMBER
    assert str(union((STRING, INT, NONE, union((FLOAT, TENSOR))))) == "Union(Tensor, float, int, NoneType, str)"
    assert union((STRING, INT)) == union((INT, STRING))
    assert hash(UnionType((STRING, INT))) == hash(UnionType((INT, STRING)))
    assert union_members(OptionalType(INT)) == (INT, NONE)


def test_optionals_do_not_nest() -> None:
    assert optional(optional(INT)) == OptionalType(INT)
    assert optional(ANY) == ANY
    assert optional(union((INT, STRING))) == union((INT, STRING, NONE))
    assert without_none(OptionalType(INT)) == INT
    assert without_none(union((INT, STRING, NONE))) == union((INT, STRING))
    assert without_none(INT) == INT


def joined(a: str, b: str) -> str | None:
    """What torch unifies two types to."""
    try:
        return spell(torch._C.unify_type_list([theirs(a), theirs(b)]))
    except RuntimeError:
        return None


def test_unification_of_every_pair() -> None:
    texts = [*TENSORS, *SIMPLE, *CONTAINERS, "Union(int, str)", "Union(Tensor, int)", "Union(int, NoneType, str)"]
    different = set()
    for a in texts:
        for b in texts:
            ours, wanted = unify(parse_type(a), parse_type(b)), joined(a, b)
            if wanted is not None and wanted.startswith("Union") and wanted.endswith("?"):
                wanted = str(optional(parse_type(wanted[:-1])))  # None is a member of the Union here
            if (None if ours is None else format_type(ours)) != wanted:
                different.add((a, b))
    assert different == set()


def test_unification_with_a_hint_and_to_a_union() -> None:
    assert unify(INT, FLOAT) is None
    assert unify(INT, FLOAT, hint=NUMBER) == NUMBER
    assert unify(INT, STRING, default_to_union=True) == union((INT, STRING))
    assert unify_all([INT, NONE, INT]) == OptionalType(INT)
    assert unify_all([]) is None
    assert unify_all([INT, STRING, NONE]) is None
    assert unify(TensorType(torch.float32, None, (2, 3)), TensorType(torch.float32, None, (2, 4))) == TensorType(
        torch.float32, None, (2, None)
    )


def test_shapes_are_forgotten_all_the_way_down() -> None:
    shaped = parse_type("Dict(str, (Float(2), Long(3)[])?)")
    assert str(unshaped(shaped)) == "Dict(str, (Tensor, Tensor[])?)"


def test_variables() -> None:
    formal = DictType(VarType("k"), ListType(VarType("v")))
    bindings: Bindings = {}
    assert match_variables(formal, DictType(STRING, ListType(INT)), bindings) is None
    assert bindings == {"k": STRING, "v": INT}
    assert substitute(OptionalType(VarType("v")), bindings) == OptionalType(INT)
    assert substitute(VarType("w"), bindings) is None
    assert has_free_variables(formal)
    assert not has_free_variables(DictType(STRING, INT))
    assert match_variables(VarType("v"), STRING, bindings) == "type variable 'v' cannot be both int and str"
    assert match_variables(formal, ListType(INT), {}) == "expected a Dict[k, List[v]], got List[int]"


# ------------------------------------------------------------------------------------------------------------- any type

SCALARS = strategies.sampled_from([INT, FLOAT, COMPLEX, BOOL, NUMBER, STRING, NONE, DEVICE, ANY, TENSOR])
SIZES = strategies.none() | strategies.lists(strategies.none() | strategies.integers(0, 9), max_size=3).map(tuple)
TENSOR_TYPES = strategies.builds(
    TensorType,
    strategies.sampled_from([None, torch.float32, torch.int64]),
    strategies.sampled_from([None, torch.device("cpu"), torch.device("cuda:1")]),
    SIZES,
    strategies.none(),
    strategies.none() | strategies.booleans(),
)


def larger(inner: strategies.SearchStrategy[Type]) -> strategies.SearchStrategy[Type]:
    return (
        inner.map(ListType)
        | inner.map(optional)
        | inner.map(FutureType)
        | inner.map(RRefType)
        | inner.map(AwaitType)
        | strategies.builds(DictType, strategies.sampled_from([STRING, INT]), inner)
        | strategies.lists(inner, max_size=3).map(lambda parts: TupleType(tuple(parts)))
        | strategies.lists(inner, min_size=1, max_size=2).map(
            lambda parts: TupleType(tuple(parts), None, tuple("xy"[: len(parts)]))
        )
        | strategies.lists(inner, min_size=1, max_size=3).map(union)
    )


TYPES = strategies.recursive(SCALARS | TENSOR_TYPES, larger, max_leaves=6)


def is_told_by_text(type: Type) -> bool:
    """Not so of a tensor without a dtype and of rank 0 with other facts, whose text says nothing of the rank."""
    if isinstance(type, TensorType):
        return not (type.dtype is None and type.sizes == () and (type.device, type.requires_grad) != (None, None))
    return all(is_told_by_text(part) for part in type.contained)


@hypothesis.given(TYPES.filter(is_told_by_text))
def test_text_and_back(type: Type) -> None:
    assert parse_type(str(type)) == type
    assert parse_type(format_type(type)) == type


@hypothesis.given(TYPES, TYPES, TYPES)
def test_subtyping_is_an_order(a: Type, b: Type, c: Type) -> None:
    assert a.is_subtype_of(a)
    if a.is_subtype_of(b) and b.is_subtype_of(c):
        assert a.is_subtype_of(c)


@hypothesis.given(TYPES, TYPES)
def test_what_is_unified_covers_both(a: Type, b: Type) -> None:
    common = unify(a, b)
    if common is not None:
        assert unshaped(a).is_subtype_of(unshaped(common))
        assert unshaped(b).is_subtype_of(unshaped(common))


@hypothesis.given(strategies.lists(TYPES, min_size=1, max_size=4))
def test_a_union_covers_its_members(members: list[Type]) -> None:
    whole = union(members)
    assert all(member.is_subtype_of(whole) for member in members)
    assert whole == union(reversed(members))
