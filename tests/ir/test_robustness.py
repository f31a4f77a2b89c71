"""Damaged texts: they are read or refused with a ParseError, and nothing else happens."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch

from rekindle.errors import ParseError
from rekindle.ir.text.parser import parse_graph
from rekindle.ir.text.printer import print_graph
from rekindle.ir.text.schema_parser import parse_schema
from rekindle.ir.text.type_parser import MAX_DEPTH, parse_type
from tests.ir.torch_corpus import torch_texts
from tests.support.shares import portion, share_seed

TYPES = [
    *("Dict(str, Tensor[])?", "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)", "Union(int, str)[]"),
    *(
        'NamedTuple(x : int = 1, y : str = "a")',
        "(int, (Tensor, Future[int]))",
        "Enum<__torch__.A>",
        "InterfaceType<A>",
    ),
]
CHARACTERS = "()[]{}<>%,:=.*!?\"'\\ \n#-+1aTé\0^|"


def damage(text: str, choose: random.Random) -> str:
    """``text`` with something cut out, doubled, put in or torn off."""
    start = choose.randrange(len(text))
    end = min(len(text), start + choose.randrange(1, 6))
    other = choose.randrange(len(text))
    return choose.choice(
        [
            text[:start] + text[end:],
            text[:start] + text[start:end] * 2 + text[end:],
            text[:start] + choose.choice(CHARACTERS) + text[start:],
            text[:start] + text[other : other + choose.randrange(1, 12)] + text[end:],
            text[:start],
            text[start:],
        ]
    )


def tell(parse: Callable[[str], object], text: str) -> object:
    """What ``text`` says; None where it is refused."""
    try:
        return parse(text)
    except ParseError as error:
        str(error)  # the message can be printed
        return None


def test_damaged_graphs() -> None:
    choose = random.Random(f"7 {share_seed()}")
    texts = [text for _, text in torch_texts() if len(text) < 20_000]
    read = 0
    for _ in range(portion(1500)):
        graph = tell(parse_graph, damage(choose.choice(texts), choose))
        if graph is not None:
            read += 1
            text = print_graph(graph)  # type: ignore[arg-type]
            assert print_graph(parse_graph(text)) == text
    assert portion(100) < read < portion(1400)


@pytest.mark.parametrize("parse", [parse_schema, parse_type])
def test_damaged_schemas_and_types(parse: Callable[[str], object]) -> None:
    choose = random.Random(f"7 {share_seed()}")
    schemas = sorted(str(schema) for schema in torch._C._jit_get_all_schemas())
    texts = schemas if parse is parse_schema else TYPES
    read = 0
    for _ in range(portion(3000)):
        found = tell(parse, damage(choose.choice(texts), choose))
        if found is not None:
            read += 1
            assert str(parse(str(found))) == str(found)
    assert portion(100) < read < portion(2900)


NESTED = {
    "tuple type": lambda depth: "(" * depth + "int" + ")" * depth,
    "list type": lambda depth: "int" + "[]" * depth,
    "future type": lambda depth: "Future(" * depth + "int" + ")" * depth,
}


@pytest.mark.parametrize("kind", NESTED)
def test_types_nest_to_a_limit(kind: str) -> None:
    text = NESTED[kind](MAX_DEPTH - 1)
    assert str(parse_type(text)) == text
    for depth in (MAX_DEPTH, 100_000):
        with pytest.raises(ParseError):
            parse_type(NESTED[kind](depth))


@pytest.mark.parametrize("brackets", ["[]", "()"])
@pytest.mark.parametrize("kind", ["prim::Constant", "t::other"])
def test_constants_nest_to_a_limit(kind: str, brackets: str) -> None:
    def text(depth: int) -> str:
        nested = brackets[0] * depth + "1" + brackets[1] * depth
        return f"graph():\n  %1 : int[] = {kind}[value={nested}]()\n  return (%1)\n"

    assert parse_graph(text(MAX_DEPTH))
    for depth in (MAX_DEPTH + 1, 100_000):
        with pytest.raises(ParseError):
            parse_graph(text(depth))
