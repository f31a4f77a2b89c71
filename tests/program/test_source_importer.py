"""The texts of archives, read by themselves."""

from __future__ import annotations

import enum

import pytest
import torch

from rekindle.errors import CompileError, ParseError, Source, UndefinedNameError
from rekindle.ir.types import ClassType, EnumType, FunctionType, InterfaceType, TupleType
from rekindle.program.function import Function
from rekindle.program.sources.source_importer import SourceImporter
from tests.support.equality import assert_same


def importer(constants: tuple[object, ...] = (), **texts: str) -> SourceImporter:
    """An importer of texts by the last part of their qualifiers: ``m`` is that of ``__torch__.m``."""

    def read(qualifier: str) -> Source | None:
        prefix, _, last = qualifier.rpartition(".")
        text = texts.get(last) if prefix == "__torch__" else None
        return None if text is None else Source(text, f"{last}.py")

    return SourceImporter(read, constants)


def function(source: SourceImporter, name: str) -> Function:
    found = source.load_type(f"__torch__.m.{name}")
    assert isinstance(found, FunctionType)
    return Function(found.function)


def test_a_function_with_constants_and_defaults() -> None:
    text = (
        "op_version_set = 1\n"
        "def f(x: Tensor,\n"
        "    n: float=inf,\n"
        '    d: Device=torch.device("cpu"),\n'
        "    l: List[int]=[1, 2]) -> Tuple[Tensor, float, Device, List[int]]:\n"
        "  _0 = (torch.add(x, CONSTANTS.c0), n, d, l)\n"
        "  return _0\n"
    )
    f = function(importer((torch.tensor([1.0, 2.0]),), m=text), "f")
    assert_same(f(torch.ones(2)), (torch.tensor([2.0, 3.0]), float("inf"), torch.device("cpu"), [1, 2]))


def test_types_are_found_by_qualified_name_when_they_are_needed() -> None:
    source = importer(
        m=(
            "class Point(NamedTuple):\n"
            "  x : int\n"
            "  y : int\n"
            "class Color(Enum):\n"
            "  RED = 1\n"
            "  BLUE = 2\n"
            "class Shape(Interface):\n"
            "  def area(self, scale: int) -> int:\n"
            "    pass\n"
            "def f(c: __torch__.m.Color) -> Tuple[__torch__.m.Point, bool]:\n"
            "  box = __torch__.n.Box.__new__(__torch__.n.Box)\n"
            "  _0 = (box).__init__(2, )\n"
            "  return (__torch__.m.Point((box).area(3, ), 1), torch.eq(c, __torch__.m.Color.BLUE))\n"
        ),
        n=(
            "class Box:\n"
            "  side : int\n"
            "  def __init__(self: __torch__.n.Box,\n"
            "    side: int) -> NoneType:\n"
            "    self.side = side\n"
            "    return None\n"
            "  def area(self: __torch__.n.Box,\n"
            "    scale: int) -> int:\n"
            "    return torch.mul(torch.mul(self.side, self.side), scale)\n"
        ),
    )
    color, shape = source.load_type("__torch__.m.Color"), source.load_type("__torch__.m.Shape")
    point, box = source.load_type("__torch__.m.Point"), source.load_type("__torch__.n.Box")
    assert isinstance(color, EnumType)
    assert isinstance(shape, InterfaceType)
    assert isinstance(point, TupleType)
    assert isinstance(box, ClassType)
    assert box.is_subtype_of(shape)
    assert str(source.resolve_type("Optional[List[__torch__.m.Point]]")) == "__torch__.m.Point[]?"
    assert color.python_class is not None
    assert issubclass(color.python_class, enum.Enum)
    result = function(source, "f")(color.python_class["BLUE"])
    assert result == ((12, 1), True)
    assert result[0].x == 12


def test_a_module_says_what_its_slots_are() -> None:
    net = importer(
        m=(
            "class Net(Module):\n"
            '  __parameters__ = ["weight", "0", ]\n'
            '  __buffers__ = ["mean", ]\n'
            "  weight : Tensor\n"
            "  mean : Tensor\n"
            "  other : Tensor\n"
            '  __annotations__["0"] = Optional[Tensor]\n'
            "  scale : Final[float] = 2.5\n"
        )
    ).load_type("__torch__.m.Net")
    assert isinstance(net, ClassType)
    assert net.is_module
    assert [(slot.name, str(slot.type), slot.kind) for slot in net.attributes.values()] == [
        ("weight", "Tensor", "parameter"),
        ("mean", "Tensor", "buffer"),
        ("other", "Tensor", "attribute"),
        ("0", "Tensor?", "parameter"),
    ]
    assert net.constants == {"scale": 2.5}


def test_a_module_of_an_old_archive_has_its_other_tensors_for_buffers() -> None:
    net = importer(
        m='class Net(Module):\n  __parameters__ = ["w", ]\n  w : Tensor\n  b : Tensor\n  n : int\n'
    ).load_type("__torch__.m.Net")
    assert isinstance(net, ClassType)
    assert [slot.kind for slot in net.attributes.values()] == ["parameter", "buffer", "attribute"]


def test_operators_of_libraries_that_are_missing_stand_in_the_graph() -> None:
    text = (
        "def f(x: Tensor) -> Tensor:\n  a, b, = ops.nosuchlibrary.split(x, 2)\n  return ops.nosuchlibrary.join(a, b)\n"
    )
    f = function(importer(m=text), "f")
    assert [node.kind for node in f.graph.nodes if node.kind != "prim::Constant"] == [
        "nosuchlibrary::split",
        "nosuchlibrary::join",
    ]
    assert "ops.nosuchlibrary.split(x, 2)" in f.code


@pytest.mark.parametrize(
    ("text", "name", "kind", "message"),
    [
        ("def f() -> int:\n  return 1\n", "g", UndefinedNameError, "the archive does not define '__torch__.m.g'"),
        ("x.y()\n", "f", ParseError, "the text of an archive holds classes and functions only"),
        ("class C(Exception):\n  pass\n", "C", CompileError, "the class '__torch__.m.C' derives from what no class"),
        ("class C:\n  f(1)\n", "C", ParseError, "this is not supported in the class of an archive"),
        ("def f() -> int:\n  return 1\ndef f() -> int:\n  return 2\n", "f", ParseError, "'f' is defined twice"),
        (
            "def f(x: __torch__.m.D) -> int:\n  return 1\n",
            "f",
            UndefinedNameError,
            "the type '__torch__.m.D' is not known",
        ),
        ("def f() -> Tensor:\n  return CONSTANTS.c3\n", "f", UndefinedNameError, "the archive has no constant 'c3'"),
        ("def f() -> int:\n  return open(3)\n", "f", UndefinedNameError, "the name 'open' is not defined"),
        (
            "def f() -> int:\n  return __torch__.os.system(3)\n",
            "f",
            CompileError,
            "'__torch__.os.system', which the archive",
        ),
    ],
)
def test_what_is_wrong_is_said(text: str, name: str, kind: type[CompileError], message: str) -> None:
    with pytest.raises(kind) as caught:
        compile_function(importer(m=text), name)
    assert caught.value.message.startswith(message)


def compile_function(source: SourceImporter, name: str) -> None:
    function(source, name)._record.ensure_defined()


def test_text_of_archives_is_text_as_cpp_has_it() -> None:
    text = (
        "def f(x: float) -> Tuple[str, str, str, str]:\n"
        "  print(x)\n"
        '  _0 = (str(x), torch.format("{} {:d}", x), torch.percentFormat("%s", x), ops.aten.str(x))\n'
        "  return _0\n"
    )
    f = function(importer(m=text), "f")
    assert f(5.0) == ("5.", "5. {:d}", "5.", "5.0")
    kinds = [node.kind for node in f.graph.block.nodes if "Print" in node.kind or node.kind.endswith("str")]
    assert kinds == ["archive::Print", "archive::str", "aten::str"]


def test_files_of_old_releases_say_what_they_need() -> None:
    text = "op_version_set = 1\nimport __torch__.torch.nn\nimport __torch__.m\ndef f(x: int) -> int:\n  return x\n"
    assert function(importer(m=text), "f")(3) == 3


def test_classes_of_old_releases_have_the_attributes_that_init_assigns() -> None:
    text = (
        "class Pair:\n"
        "  def total(self: __torch__.m.Pair) -> int:\n"
        "    return torch.add(self.x, 1)\n"
        "  def __init__(self: __torch__.m.Pair,\n"
        "    x: int) -> None:\n"
        "    self.x = x\n"
        "    return None\n"
        "def f(n: int) -> int:\n"
        "  pair = __torch__.m.Pair.__new__(__torch__.m.Pair)\n"
        "  _0 = (pair).__init__(n, )\n"
        "  return (pair).total()\n"
    )
    assert function(importer(m=text), "f")(3) == 4


def test_packed_weights_of_old_releases_have_the_type_of_todays() -> None:
    body = "(Module):\n  __parameters__ = []\n  _packed_params : Tensor\n"
    texts = {
        "__torch__.torch.nn.quantized.modules.linear": f"class LinearPackedParams{body}",
        "__torch__.torch.nn.quantized.modules.conv": f"class Conv1d{body}class Conv3d{body}",
        "__torch__.own": f"class Linear{body}",
    }
    source = SourceImporter(lambda qualifier: Source(texts[qualifier]) if qualifier in texts else None)

    def packed(name: str) -> str:
        found = source.load_type(name)
        assert isinstance(found, ClassType)
        return found.attributes["_packed_params"].type.annotation.rpartition(".")[2]

    assert packed("__torch__.torch.nn.quantized.modules.linear.LinearPackedParams") == "LinearPackedParamsBase"
    assert packed("__torch__.torch.nn.quantized.modules.conv.Conv1d") == "Conv2dPackedParamsBase"
    assert packed("__torch__.torch.nn.quantized.modules.conv.Conv3d") == "Conv3dPackedParamsBase"
    assert packed("__torch__.own.Linear") == "Tensor"
