"""What a person reads when the text of a graph cannot be read."""

from __future__ import annotations

import pytest
import torch

from rekindle.errors import ParseError
from rekindle.ir.text.parser import parse_graph


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "graph(%x : int):\n  %y : int = aten::neg(%xx)\n  return (%y)\n",
            """\
%xx is not defined.
    graph(%x : int):
      %y : int = aten::neg(%xx)
                           ^^^
Hint: Did you mean %x?""",
        ),
        (
            "graph(%x : int):\n  %y : int = aten::neg(%y)\n  return (%y)\n",
            """\
%y is not defined.
    graph(%x : int):
      %y : int = aten::neg(%y)
                           ^^""",
        ),
        (
            "graph(%x : int):\n  %x : int = aten::neg(%x)\n  return (%x)\n",
            """\
%x is defined twice.
    graph(%x : int):
      %x : int = aten::neg(%x)
      ^^""",
        ),
        (
            (
                "graph(%c : bool):\n"
                "   = prim::If(%c)\n"
                "    block0():\n"
                "      %y : int = prim::Constant[value=1]()\n"
                "      -> ()\n"
                "    block1():\n"
                "      -> ()\n"
                "  return (%y)\n"
            ),
            """\
%y is defined in a block that has ended.
          -> ()
        block1():
          -> ()
      return (%y)
              ^^""",
        ),
        (
            (
                "graph(%c : bool):\n"
                "  %y : int = prim::If(%c)\n"
                "    block0():\n"
                "      -> ()\n"
                "    block1():\n"
                "      -> (%c)\n"
                "  return (%y)\n"
            ),
            """\
The prim::If has 1 output, but its block returns 0 values.
    graph(%c : bool):
      %y : int = prim::If(%c)
        block0():
          -> ()
          ^^^^^""",
        ),
        (
            "graph(%c : bool):\n  %y : int = prim::If(%c)\n    block0():\n      -> (%c)\n  return (%y)\n",
            """\
A prim::If has 2 blocks, not 1.
    graph(%c : bool):
      %y : int = prim::If(%c)
                 ^^^^""",
        ),
        (
            "graph(%c : bool):\n  %y : int = prim::If(%c, %c)\n  return (%y)\n",
            """\
A prim::If takes 1 input, not 2.
    graph(%c : bool):
      %y : int = prim::If(%c, %c)
                 ^^^^""",
        ),
        (
            (
                "graph(%n : int, %c : bool):\n"
                "  %y : int = prim::Loop(%n, %c, %n)\n"
                "    block0(%i : int, %j : int):\n"
                "      -> (%c)\n"
                "  return (%y)\n"
            ),
            """\
The prim::Loop has 1 output and the condition, but its block returns 1 value.
    graph(%n : int, %c : bool):
      %y : int = prim::Loop(%n, %c, %n)
        block0(%i : int, %j : int):
          -> (%c)
          ^^^^^^^""",
        ),
        (
            "graph(%n : int, %c : bool):\n  %y : int = prim::Loop(%n, %c)\n  return (%y)\n",
            """\
A prim::Loop with 1 output takes 3 inputs, not 2.
    graph(%n : int, %c : bool):
      %y : int = prim::Loop(%n, %c)
                 ^^^^""",
        ),
        (
            "graph(%n : int, %c : bool):\n   = prim::Loop(%n, %c)\n    block0():\n      -> (%c)\n  return ()\n",
            """\
The prim::Loop has 0 outputs, so its block takes 1 input, not 0.
    graph(%n : int, %c : bool):
       = prim::Loop(%n, %c)
         ^^^^""",
        ),
        (
            "graph(%x : int):\n    block0():\n      -> ()\n  return ()\n",
            """\
No node precedes this block.
    graph(%x : int):
        block0():
        ^^^^^^""",
        ),
        (
            "graph(%x : bool):\n   = prim::If(%x)\n    block1():\n      -> ()\n  return ()\n",
            """\
Expected 'block0' but found 'block1'.
    graph(%x : bool):
       = prim::If(%x)
        block1():
        ^^^^^^""",
        ),
        (
            "graph(%x : bool):\n   = prim::If(%x)\n    block0():\n      return ()\n  return ()\n",
            """\
A block ends with '->', not with 'return'.
    graph(%x : bool):
       = prim::If(%x)
        block0():
          return ()
          ^^^^^^""",
        ),
        (
            "graph(%x : bool):\n  -> (%x)\n",
            """\
A graph ends with 'return', not with '->'.
    graph(%x : bool):
      -> (%x)
      ^^""",
        ),
        (
            "graph(%x : bool):\n  %y : bool = aten::not(%x)\n",
            """\
Expected a node, '->' or 'return' but found the end of the text.
    graph(%x : bool):
      %y : bool = aten::not(%x)

    ^""",
        ),
        (
            "graph(%x : Tensr):\n  return (%x)\n",
            """\
There is no type 'Tensr'.
    graph(%x : Tensr):
               ^^^^^
Hint: Did you mean 'Tensor'?""",
        ),
        (
            "graph(%x : Float(2, grad=1)):\n  return (%x)\n",
            """\
'grad' is nothing that a tensor type can say.
    graph(%x : Float(2, grad=1)):
                        ^^^^""",
        ),
        (
            "graph(%x : Float(2, device=gpu)):\n  return (%x)\n",
            """\
There is no device 'gpu'.
    graph(%x : Float(2, device=gpu)):
                               ^^^""",
        ),
        (
            "graph(%x : int)\n  return (%x)\n",
            """\
Expected ':' but found 'return'.
    graph(%x : int)
      return (%x)
      ^^^^^^""",
        ),
        (
            "graph(%x : int):\n  return (%x)\n}\n",
            """\
'}' closes nothing.
    graph(%x : int):
      return (%x)
    }
    ^""",
        ),
        (
            "graph(%x : int):\n  return (%x)\n  %y : int = aten::neg(%x)\n",
            """\
Expected the end of the text but found '%y'.
    graph(%x : int):
      return (%x)
      %y : int = aten::neg(%x)
      ^^""",
        ),
        (
            "graph(%x : int):\n  return (%x)\nwith prim::fork_0 = graph():\n  return ()\n",
            """\
Expected the end of the text but found 'with'.
    graph(%x : int):
      return (%x)
    with prim::fork_0 = graph():
    ^^^^""",
        ),
        (
            "graph(%x : int):\n  %y : int = neg(%x)\n  return (%y)\n",
            """\
Expected '::' but found '('.
    graph(%x : int):
      %y : int = neg(%x)
                    ^""",
        ),
        (
            "graph(%x : int):\n  %y : int = prim::Constant[value=abc]()\n  return (%y)\n",
            """\
Expected a constant of type int but found 'abc'.
    graph(%x : int):
      %y : int = prim::Constant[value=abc]()
                                      ^^^""",
        ),
        (
            "graph(%x : int):\n  %y : int = a::b[k=1, k=2](%x)\n  return (%y)\n",
            """\
The attribute 'k' is here twice.
    graph(%x : int):
      %y : int = a::b[k=1, k=2](%x)
                           ^""",
        ),
        (
            "block(%x : int):\n  return (%x)\n",
            """\
Expected 'graph' but found 'block'.
    block(%x : int):
    ^^^^^""",
        ),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_graph(text)
    assert str(caught.value) == message


TWO_TENSORS = """graph():
  %a : Tensor = prim::Constant[value=<Tensor>]()
  %b : Tensor = prim::Constant[value={3}]()
  return (%a, %b)
"""


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        (
            [torch.ones(20)],
            """\
The text has more tensor constants than the 1 that are given.
    graph():
      %a : Tensor = prim::Constant[value=<Tensor>]()
      %b : Tensor = prim::Constant[value={3}]()
                                         ^""",
        ),
        (
            [torch.ones(20), torch.tensor(3), torch.ones(1)],
            """\
3 tensors are given, but the text has only 2 tensor constants.
      %a : Tensor = prim::Constant[value=<Tensor>]()
      %b : Tensor = prim::Constant[value={3}]()
      return (%a, %b)

    ^""",
        ),
        (
            [torch.ones(20), torch.tensor(4)],
            """\
A tensor is given that prints as '{4}', but '{3}' is here.
    graph():
      %a : Tensor = prim::Constant[value=<Tensor>]()
      %b : Tensor = prim::Constant[value={3}]()
                                         ^""",
        ),
        (
            {"b": torch.ones(2)},
            """\
The tensor for %b is given that prints as ' 1  1 [ CPUFloatType{2} ]', but '{3}' is here.
    graph():
      %a : Tensor = prim::Constant[value=<Tensor>]()
      %b : Tensor = prim::Constant[value={3}]()
                                         ^""",
        ),
    ],
)
def test_tensors_that_do_not_fit(tensors: object, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_graph(TWO_TENSORS, tensors=tensors)  # type: ignore[arg-type]
    assert str(caught.value) == message
