"""Which overload a call means, what becomes of its arguments, and what an error says when there is none."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import rekindle
import rekindle.ops
from rekindle.errors import UNKNOWN_RANGE, SchemaError
from rekindle.ir.graph import Graph, Value
from rekindle.ir.operators.schema_matching import NamedValue, argument, match_schemas
from rekindle.ir.text.schema_parser import parse_schema
from rekindle.ir.text.type_parser import parse_type


class Call:
    """A call of some overloads. Arguments are texts of types, for inputs of a graph, or constants in lists of one."""

    def __init__(self, *schemas: str) -> None:
        self.schemas = [parse_schema(f"test::op{text}") for text in schemas]
        self.graph = Graph()

    def argument(self, given: Any, name: str | None = None) -> NamedValue:
        if isinstance(given, list):
            return argument(given[0], name=name)
        if isinstance(given, Value):
            return argument(given, name=name)
        return argument(self.graph.add_input(type=parse_type(given)), name=name)

    def __call__(self, *given: Any, self_value: str | None = None, **keywords: Any) -> str:
        """The overload's name, and the nodes that make its arguments, with the arguments themselves."""
        positional = [self.argument(item) for item in given]
        named = [self.argument(item, name) for name, item in keywords.items()]
        owner = None if self_value is None else self.argument(self_value)
        index, plan = match_schemas("test::op", self.schemas, UNKNOWN_RANGE, positional, named, owner)
        inputs = plan.inputs(self.graph, UNKNOWN_RANGE)
        self.graph.insert_node(self.graph.create("test::op", inputs, types=plan.return_types))
        nodes = [line.strip() for line in str(self.graph).splitlines() if " = " in line]
        return "\n".join([self.schemas[index].overload or "-", *nodes])


MAY_BE_NONE = "Hint: the value may be None; check it first: if x is not None"


def refusal(*schemas: str, given: tuple[Any, ...] = (), self_value: str | None = None, **keywords: Any) -> str:
    call = Call(*schemas)
    with pytest.raises(SchemaError) as caught:
        call(*given, self_value=self_value, **keywords)
    assert not any(True for _ in call.graph.nodes), "a call that does not fit left something in the graph"
    return str(caught.value)


# --------------------------------------------------------------------------------------------------- one schema


def test_types_that_fit() -> None:
    assert Call("(Tensor x, int n, float? f, t[] l, (int, str) p) -> Tensor")(
        "Tensor", "int", "float", "str[]", "(int, str)"
    ) == ("-\n%5 : Tensor = test::op(%0, %1, %2, %3, %4)")


def test_keywords_and_defaults() -> None:
    assert Call("(Tensor x, int n=2, *, bool b=False, Tensor? w=None) -> int")(w="Tensor", x="Tensor") == (
        "-\n"
        "%2 : int = prim::Constant[value=2]()\n"
        "%3 : bool = prim::Constant[value=0]()\n"
        "%4 : int = test::op(%1, %2, %3, %0)"
    )


def test_the_default_is_of_the_type_that_is_declared() -> None:
    assert Call("(float eps=0, int[] sizes=[], float[2] pair=1) -> int")() == (
        "-\n"
        "%0 : float = prim::Constant[value=0.]()\n"
        "%1 : int[] = prim::Constant[value=annotate(List[int], [])]()\n"
        "%2 : float[] = prim::Constant[value=[1., 1.]]()\n"
        "%3 : int = test::op(%0, %1, %2)"
    )


def test_self_is_bound_by_its_name_wherever_it_stands() -> None:
    assert Call("(Tensor condition, Tensor self, Tensor other) -> Tensor")("Tensor", "Tensor", self_value="Tensor") == (
        "-\n%3 : Tensor = test::op(%0, %2, %1)"
    )


def test_out_is_a_keyword() -> None:
    assert Call("(Tensor x) -> Tensor", ".out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")("Tensor", out="Tensor") == (
        "out\n%2 : Tensor = test::op(%0, %1)"
    )


def test_varargs() -> None:
    assert Call("(str x, ...) -> str")("str", "int", "Tensor") == "-\n%3 : str = test::op(%0, %1, %2)"


# -------------------------------------------------------------------------------------------------- conversions


def test_a_number_is_repeated_for_a_list_of_known_length() -> None:
    assert Call("(int[2] n) -> int")("int") == ("-\n%1 : int[] = prim::ListConstruct(%0, %0)\n%2 : int = test::op(%1)")
    assert Call("(float[3]? n) -> int")("float") == (
        "-\n%1 : float[] = prim::ListConstruct(%0, %0, %0)\n%2 : int = test::op(%1)"
    )


def test_trailing_arguments_stand_for_a_list() -> None:
    assert Call("(Tensor x, int[] sizes, *, int? dtype=None) -> Tensor")("Tensor", "int", "int") == (
        "-\n"
        "%3 : int[] = prim::ListConstruct(%1, %2)\n"
        "%4 : NoneType = prim::Constant()\n"
        "%5 : Tensor = test::op(%0, %3, %4)"
    )


def test_trailing_arguments_do_not_stand_for_an_optional_list() -> None:
    assert Call("(int[]? sizes) -> int")("int[]?") == "-\n%1 : int = test::op(%0)"
    assert refusal("(int[]? sizes) -> int", given=("int", "int")).splitlines()[0] == (
        "'test::op' cannot be called with (int, int): argument 'sizes': expected Optional[List[int]], got int."
    )


def test_a_tuple_stands_for_a_list() -> None:
    assert Call("(Tensor[] x, int dim=0) -> Tensor")("(Tensor, Tensor)", [1]) == (
        "-\n"
        "%1 : Tensor, %2 : Tensor = prim::TupleUnpack(%0)\n"
        "%3 : Tensor[] = prim::ListConstruct(%1, %2)\n"
        "%4 : int = prim::Constant[value=1]()\n"
        "%5 : Tensor = test::op(%3, %4)"
    )


def test_the_elements_of_a_tuple_are_converted() -> None:
    assert Call("((float, int?) x) -> int")("(Tensor, int)") == (
        "-\n"
        "%1 : Tensor, %2 : int = prim::TupleUnpack(%0)\n"
        "%3 : float = aten::FloatImplicit(%1)\n"
        "%4 : (float, int) = prim::TupleConstruct(%3, %2)\n"
        "%5 : int = test::op(%4)"
    )


@pytest.mark.parametrize(
    ("given", "wanted", "how"),
    [
        ("Tensor", "int", "int = aten::IntImplicit"),
        ("Tensor", "float", "float = aten::FloatImplicit"),
        ("Tensor", "complex", "complex = aten::ComplexImplicit"),
        ("Tensor", "Scalar", "Scalar = aten::ScalarImplicit"),
        ("Scalar", "int", "int = aten::Int"),
        ("Scalar", "float", "float = aten::Float"),
        ("Scalar", "complex", "complex = aten::Complex"),
        ("bool", "int", "int = aten::Int"),
        ("bool", "float", "float = aten::Float"),
        ("bool", "Scalar", "Scalar = prim::unchecked_cast"),
        ("str", "Device", "Device = aten::device"),
        ("Tensor", "int?", "int = aten::IntImplicit"),
    ],
)
def test_implicit_conversions(given: str, wanted: str, how: str) -> None:
    assert Call(f"({wanted} x) -> int")(given) == f"-\n%1 : {how}(%0)\n%2 : int = test::op(%1)"


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("int", "float"), ("float", "int"), ("int", "bool"), ("int", "Tensor"), ("int?", "int"), ("int?", "Scalar")],
)
def test_what_is_not_converted(given: str, wanted: str) -> None:
    expected, got = parse_type(wanted).annotation, parse_type(given).annotation
    assert refusal(f"({wanted} x) -> int", given=(given,)) == (
        f"'test::op' cannot be called with ({got}): argument 'x': expected {expected}, got {got}.\n"
        f"It is declared as\n  test::op({wanted} x) -> int" + (f"\n{MAY_BE_NONE}" if given == "int?" else "")
    )


def test_none_stands_for_an_optional() -> None:
    assert Call("(Tensor? x, t? y, t z) -> t")([None], [None], "int") == (
        "-\n%1 : NoneType = prim::Constant()\n%2 : NoneType = prim::Constant()\n%3 : int = test::op(%1, %2, %0)"
    )


# -------------------------------------------------------------------------------------------------- empty lists


def empty_list(call: Call) -> Value:
    node = call.graph.create("prim::EmptyListLiteral", types=[parse_type("Tensor[]")])
    return call.graph.insert_node(node).output


def test_an_empty_list_literal_is_a_list_of_whatever_is_wanted() -> None:
    call = Call("(int[] x, str[]? y) -> int")
    assert call(empty_list(call), empty_list(call)).splitlines()[3:] == [
        "%2 : int[] = prim::ListConstruct()",
        "%3 : str[] = prim::ListConstruct()",
        "%4 : int = test::op(%2, %3)",
    ]


def test_an_empty_list_literal_follows_the_type_variable() -> None:
    call = Call("(t[] x, t[] y) -> t[]")
    assert call("int[]", empty_list(call)).splitlines()[2:] == [
        "%2 : int[] = prim::ListConstruct()",
        "%3 : int[] = test::op(%1, %2)",
    ]
    call = Call("(t[] x, t el) -> t[]")
    assert call("int[][]", empty_list(call)).splitlines()[2:] == [
        "%2 : int[] = prim::ListConstruct()",
        "%3 : int[][] = test::op(%1, %2)",
    ]


# ----------------------------------------------------------------------------------------------- type variables


def test_type_variables_tell_the_result() -> None:
    assert Call("(Dict(str, t) x, str k) -> (t, str)")("Dict(str, int[])", "str").endswith(
        "%2 : int[], %3 : str = test::op(%0, %1)"
    )


def test_a_type_variable_stands_for_one_type() -> None:
    assert refusal("(t[] x, t y) -> t[]", given=("int[]", "str")) == (
        "'test::op' cannot be called with (List[int], str): "
        "argument 'y': type variable 't' cannot be both int and str.\n"
        "It is declared as\n  test::op(t[] x, t y) -> t[]"
    )


def test_a_type_variable_is_not_widened() -> None:
    assert refusal("(t[] x, t y) -> t[]", given=("int[]", "int?")) == (
        "'test::op' cannot be called with (List[int], Optional[int]): "
        "argument 'y': type variable 't' cannot be both int and Optional[int].\n"
        f"It is declared as\n  test::op(t[] x, t y) -> t[]\n{MAY_BE_NONE}"
    )
    assert Call("(t[] x, t y) -> t[]")("int?[]", "int").endswith("%2 : int?[] = test::op(%0, %1)")


def test_containers_are_matched_by_their_kind() -> None:
    assert refusal("(t[] x) -> t", given=("Dict(str, int)",)) == (
        "'test::op' cannot be called with (Dict[str, int]): argument 'x': expected a List[t], got Dict[str, int].\n"
        "It is declared as\n  test::op(t[] x) -> t"
    )


# ---------------------------------------------------------------------------------------------------- overloads


def test_the_first_overload_that_fits_as_it_is() -> None:
    overloads = (".a(float x) -> int", ".b(int x) -> int", ".c(Scalar x) -> int")
    assert Call(*overloads)("int").splitlines()[0] == "b"
    assert Call(*overloads)("float").splitlines()[0] == "a"
    assert Call(*overloads)("Scalar").splitlines()[0] == "c"


def test_an_overload_that_needs_no_conversion_comes_before_one_that_does() -> None:
    overloads = (".int(int x) -> int", ".tensor(Tensor x) -> int")
    assert Call(*overloads)("Tensor").splitlines()[0] == "tensor"
    assert Call(*overloads)("bool").splitlines()[0] == "int"


def test_what_does_not_fit_leaves_nothing_behind() -> None:
    # The first argument of the first overload would be converted before its second fails.
    overloads = (".a(int x, str y) -> int", ".b(float x, int y) -> int")
    assert Call(*overloads)("Tensor", "int") == ("b\n%2 : float = aten::FloatImplicit(%0)\n%3 : int = test::op(%2, %1)")


def test_the_error_shows_every_candidate() -> None:
    text = refusal(
        ".a(int x, str y) -> int",
        ".b(float x, *, int y) -> int",
        ".c(Tensor self) -> int",
        ".d(Tensor x, int y, int z) -> int",
        ".e(Tensor x) -> int",
        ".f(Tensor x, bool y, bool w=True) -> int",
        given=("Tensor", "int"),
        w="bool",
    )
    assert (
        text
        == """\
no overload of 'test::op' can be called with (Tensor, int, w: bool). The candidates are
  test::op.a(int x, str y) -> int
      argument 'y': expected str, got int
  test::op.b(float x, *, int y) -> int
      argument 'y' is missing
  test::op.c(Tensor self) -> int
      it takes at most 1 positional argument, got 2
  test::op.d(Tensor x, int y, int z) -> int
      argument 'z' is missing
  test::op.e(Tensor x) -> int
      it takes at most 1 positional argument, got 2
  test::op.f(Tensor x, bool y, bool w=True) -> int
      argument 'y': expected bool, got int"""
    )


@pytest.mark.parametrize(
    ("schema", "given", "keywords", "self_value", "why"),
    [
        ("(int x) -> int", (), {}, None, "(): argument 'x' is missing"),
        ("(int x) -> int", ("int", "int"), {}, None, "(int, int): it takes at most 1 positional argument, got 2"),
        ("(int x) -> int", ("int",), {"x": "int"}, None, "(int, x: int): argument 'x' is given twice"),
        ("(int x) -> int", ("int",), {"y": "int"}, None, "(int, y: int): it has no argument 'y'"),
        ("(*, int x) -> int", ("int",), {}, None, "(int): argument 'x' is missing"),
        ("(int x) -> int", (), {}, "int", "(int): argument 'x' is missing"),
        ("(int x) -> int", ("int",), {}, "str", "(str, int): it takes no self: it cannot be called as a method"),
        ("(int? x) -> t", ("int",), {}, None, "(int): the result type t cannot be inferred from the arguments"),
        (
            "(int[] x) -> int",
            ("Tensor[]",),
            {},
            None,
            (
                "(List[Tensor]): argument 'x': expected List[int], got List[Tensor] "
                "(an empty list without an annotation is a List[Tensor])"
            ),
        ),
    ],
)
def test_why_a_call_does_not_fit(
    schema: str, given: tuple[str, ...], keywords: dict[str, str], self_value: str | None, why: str
) -> None:
    text = refusal(schema, given=given, self_value=self_value, **keywords)
    assert text == f"'test::op' cannot be called with {why}.\nIt is declared as\n  test::op{schema}"


def test_none_fits_an_optional_whose_element_nothing_tells() -> None:
    """Inlining a call with None leaves such nodes in branches that never run."""
    graph = Graph()
    none = graph.insert_constant(None)
    node = graph.insert_node(graph.create("aten::_unwrap_optional", [none], types=[parse_type("Tensor")]))
    assert str(node.schema) == "aten::_unwrap_optional(t(a)? optional) -> t(a)"


def test_an_int_beside_the_name_of_a_device_stays_one() -> None:
    """A string becomes a device only by a conversion, and with conversions an int fits the overload for floats too."""

    def tensors(n: int, flag: bool) -> Any:
        return (
            torch.tensor(4, device="cpu"),
            torch.tensor(n, device="cpu"),
            torch.as_tensor(n, device="cpu"),
            torch.tensor(flag, device="cpu"),
            torch.tensor(2.5, device="cpu"),
            torch.tensor(n, dtype=torch.float64, device="cpu"),
        )

    expected, actual = tensors(3, True), rekindle.script(tensors)(3, True)
    assert [each.dtype for each in actual] == [each.dtype for each in expected]
    assert all(map(torch.equal, actual, expected))
