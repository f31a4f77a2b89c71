"""What annotation objects mean as types, and what the type of a value is by example."""

import collections
import enum
import typing
from typing import Any, Dict, Final, List, Literal, NamedTuple, NewType, Optional, Tuple, Union

import pytest
import torch

import rekindle
from rekindle.errors import CompileError, NotScriptableError
from rekindle.ir.types import INT, STRING, TENSOR, EnumType, ListType, TupleType, union
from rekindle.scripting.annotations import class_annotations, find_type, is_final, type_of_annotation
from rekindle.scripting.resolver import PythonResolver
from rekindle.scripting.value_types import NotInferable, infer

UserId = NewType("UserId", int)
Tree = Union[int, List["Tree"]]


@pytest.mark.parametrize(
    ("annotation", "spelling"),
    [
        (int, "int"),
        (None, "NoneType"),
        (type(None), "NoneType"),
        (Any, "Any"),
        (torch.Tensor, "Tensor"),
        (torch.nn.Parameter, "Tensor"),
        (torch.FloatTensor, "Tensor"),
        (torch.device, "Device"),
        (torch.dtype, "int"),
        (torch.layout, "int"),
        (torch.memory_format, "int"),
        (torch.Generator, "Generator"),
        (torch.Size, "int[]"),
        (List[int], "int[]"),
        (list[list[str]], "str[][]"),
        (typing.Sequence[float], "float[]"),
        (Dict[str, torch.Tensor], "Dict(str, Tensor)"),
        (dict[int, bool], "Dict(int, bool)"),
        (Tuple[int, str], "(int, str)"),
        (tuple[()], "()"),
        (Optional[int], "int?"),
        (int | None, "int?"),
        (Union[int, str], "Union(int, str)"),
        (Union[int, str, None], "Union(int, NoneType, str)"),
        (Union[int, float, complex], "Scalar"),
        (Optional[List[Optional[int]]], "int?[]?"),
        (torch.futures.Future[int], "Future(int)"),
        (torch.jit.Future[int], "Future(int)"),
        (Final[int], "int"),
        (typing.Annotated[int, "metres"], "int"),
        (UserId, "int"),
        ("Optional[List[int]]", "int[]?"),
        (typing.ForwardRef("Tensor"), "Tensor"),
    ],
)
@pytest.mark.filterwarnings("ignore:the annotation torch.FloatTensor is read as Tensor")
def test_annotation(annotation, spelling):
    assert str(type_of_annotation(annotation)) == spelling


class Side(enum.Enum):
    LEFT = "left"
    RIGHT = "right"


class Span(NamedTuple):
    start: int
    side: "Side"
    end: Optional[int] = None


Loose = collections.namedtuple("Loose", ["a", "b"])


def test_enums_and_named_tuples_have_one_type_each():
    side = type_of_annotation(Side)
    assert isinstance(side, EnumType)
    assert side is type_of_annotation(Side)
    assert side.name == "__torch__.tests.scripting.test_annotations.Side"
    assert str(side.value_type) == "str"
    span = type_of_annotation(Span, resolver=PythonResolver(globals()))
    assert isinstance(span, TupleType)
    assert span.fields == ("start", "side", "end")
    assert span.elements[1] is side
    assert span.defaults == (None,)
    assert span.python_class is Span
    assert type_of_annotation(Loose).contained == (TENSOR, TENSOR)


def test_names_in_strings_are_looked_up():
    assert type_of_annotation("Side", resolver=PythonResolver(globals())) is type_of_annotation(Side)


def is_left(side: Literal[Side.LEFT, Side.RIGHT] = Side.RIGHT) -> bool:
    return side == Side.LEFT


def test_literals_of_members_have_the_type_of_their_enum():
    compiled = rekindle.script(is_left)
    assert compiled.schema.arguments[0].type is type_of_annotation(Side)
    assert (compiled(), compiled(Side.LEFT)) == (False, True)


def test_a_literal_of_members_in_a_text_has_the_type_of_their_enum():
    assert type_of_annotation("Literal[Side.LEFT]", resolver=PythonResolver(globals())) is type_of_annotation(Side)
    assert type_of_annotation("Literal[1, 'x']", resolver=PythonResolver(globals())) == union((INT, STRING))


def test_other_members_of_a_literal_in_a_text_are_rejected():
    with pytest.raises(CompileError) as raised:
        type_of_annotation("Literal[f(1)]", resolver=PythonResolver(globals()))
    assert raised.value.message == (
        "a member of a Literal must be an int, a bool, a string, None or a member of an enum here"
    )


@pytest.mark.parametrize(
    "annotation", [set, list, List, tuple, Tuple, frozenset, torch.nn.Linear, typing.Callable[[int], int], 3]
)
def test_what_means_no_type(annotation):
    assert find_type(annotation) is None
    with pytest.raises(NotScriptableError):
        type_of_annotation(annotation)


def test_tuples_of_any_length_are_lists_to_the_ir():
    type = type_of_annotation(Tuple[int, ...])
    assert type == ListType(INT, "tuple")
    assert (str(type), type.annotation) == ("int[]", "Tuple[int, ...]")
    assert type_of_annotation(torch.Size).annotation == "torch.Size"


def test_parts_that_mean_no_type():
    with pytest.raises(NotScriptableError, match="the annotation set is not a type"):
        type_of_annotation(List[set])


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [(Final, True), (Final[int], True), ("Final[int]", True), ("typing.Final", True), (int, False), ("int", False)],
)
def test_final(annotation, expected):
    assert is_final(annotation) is expected


class Parent(torch.nn.Module):
    a: int
    b: str


class Child(Parent):
    b: float  # type: ignore[assignment]


def test_annotations_of_a_class_and_its_bases():
    assert class_annotations(Child) == {"a": (int, Parent), "b": (float, Child)}


# ---------------------------------------------------------------------------------------------------------- by example


@pytest.mark.parametrize(
    ("value", "spelling"),
    [
        (True, "bool"),
        (1, "int"),
        (1.5, "float"),
        (1j, "complex"),
        ("a", "str"),
        (None, "NoneType"),
        (torch.ones(1), "Tensor"),
        (torch.float32, "int"),
        (torch.device("cpu"), "Device"),
        (torch.Size([1, 2]), "int[]"),
        ((1, "a", (2.0,)), "(int, str, (float))"),
        ([1, 2], "int[]"),
        ([[1], [2, 3]], "int[][]"),
        ([torch.ones(1), None], "Tensor?[]"),
        ({"a": [1.0]}, "Dict(str, float[])"),
    ],
)
def test_type_of_a_value(value, spelling):
    assert str(infer(value)) == spelling


def test_types_of_members_and_named_tuples():
    assert infer(Side.LEFT) is type_of_annotation(Side)
    assert infer(Loose(torch.ones(1), torch.ones(2))) is type_of_annotation(Loose)
    assert "holds an object of class 'int'" in str(infer(Loose(1, 2)))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], "an empty list does not determine the type of its elements"),
        ({}, "an empty dict does not determine the type of its keys"),
        ([1, "a"], "the elements of the list are of different types (int, str)"),
        ({"a": 1, "b": "c"}, "the values of the dict are of different types (int, str)"),
        (
            [{1}],
            "among the elements of the list: a value of the Python class 'set' cannot be part of a compiled program",
        ),
        ((1, []), "element 1 of the tuple: an empty list does not determine the type of its elements"),
        (object(), "a value of the Python class 'object' cannot be part of a compiled program"),
    ],
)
def test_values_without_a_type(value, reason):
    assert infer(value) == NotInferable(reason)


def test_a_type_that_is_part_of_itself() -> None:
    resolver = PythonResolver({"Tree": Tree, "List": List})
    with pytest.raises(NotScriptableError) as caught:
        find_type(Tree, resolver=resolver)
    assert str(caught.value) == (
        "the annotation refers to itself, and a type of a program has no parts without end\n"
        "    Tree\n"
        "    ^^^^\n"
        "Hint: annotate with the types that the program uses, as deep as they are nested"
    )
    assert type_of_annotation(Dict[str, List[int]], resolver=resolver) == type_of_annotation(Dict[str, List[int]])


def rows(x: torch.LongTensor) -> torch.Tensor:
    return torch.zeros(x.shape[0], dtype=x.dtype)


def test_an_annotation_that_names_a_dtype_warns_that_it_is_not_checked():
    message = "the annotation torch.LongTensor is read as Tensor: no dtype is checked"
    with pytest.warns(UserWarning, match=f"^{message}$"):
        compiled = rekindle.script(rows)
    assert torch.equal(compiled(torch.ones(3)), torch.zeros(3))
