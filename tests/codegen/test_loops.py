"""The loop form of fused graphs: what a kernel loads, computes and stores for which layouts."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import rekindle.ops  # noqa: F401 (whose operators the graphs call)
from rekindle.codegen.layout import Layout
from rekindle.codegen.loop_ir.builder import Unsupported
from rekindle.codegen.loop_ir.printer import kernel_text
from rekindle.codegen.lowering import lower
from rekindle.ir.text.parser import parse_graph
from tests.support.golden import GoldenTexts

CHAIN = """
graph(%x : Tensor, %y : Tensor):
  %half : float = prim::Constant[value=0.5]()
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::mul(%a, %half)
  %c : Tensor = aten::relu(%b)
  return (%c)
"""

CHUNKS = """
graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::add(%x, %y, %one)
  %b : Tensor, %c : Tensor = prim::ConstantChunk[chunks=2, dim=1](%a)
  %d : Tensor = aten::sigmoid(%b)
  %e : Tensor = aten::mul(%d, %c)
  return (%e, %d)
"""

TYPES = """
graph(%x : Tensor, %m : Tensor, %s : Scalar, %n : int):
  %a : Tensor = aten::mul(%x, %n)
  %b : Tensor = aten::masked_fill(%a, %m, %s)
  %c : Tensor = aten::lt(%b, %s)
  return (%b, %c)
"""


def layout(tensor: Tensor) -> Layout:
    return Layout(tuple(tensor.shape), tensor.stride(), tensor.dtype)


def kernels() -> dict[str, tuple[str, list[Layout | type]]]:
    """A graph and the layouts of its inputs, by a title."""
    x = torch.empty(4, 6)
    image = torch.empty(2, 3, 4, 5)
    last = image.contiguous(memory_format=torch.channels_last)
    return {
        "contiguous: one loop": (CHAIN, [layout(x), layout(x)]),
        "the same for other sizes": (CHAIN, [layout(image), layout(image)]),
        "channels last: one loop": (CHAIN, [layout(last), layout(last)]),
        "a row for all rows": (CHAIN, [layout(x), layout(x[0])]),
        "a number for each row": (CHAIN, [layout(x), layout(x[:, :1])]),
        "one number": (CHAIN, [layout(x), layout(x[0, 0])]),
        "a gap between rows": (CHAIN, [layout(x[:, :4]), layout(x[:, :4])]),
        "transposed against the other": (CHAIN, [layout(x), layout(torch.empty(6, 4).t())]),
        "no dimensions": (CHAIN, [layout(x[0, 0]), layout(x[0, 0])]),
        "bfloat16 is rounded after each operator": (CHAIN, [layout(x.bfloat16()), layout(x.bfloat16())]),
        "nothing to do": (CHAIN, [layout(x[:0]), layout(x[:0])]),
        "halves of a sum": (CHUNKS, [layout(x), layout(x[0])]),
        "numbers as arguments, a mask": (TYPES, [layout(x), layout(x > 0), float, int]),
        "of integers": (TYPES, [layout(x.long()), layout(x[0] > 0), int, int]),
    }


def test_texts(golden: GoldenTexts) -> None:
    texts = []
    for title, (graph, inputs) in kernels().items():
        lowered = lower(parse_graph(graph.lstrip()), inputs)
        numbers = " ".join(map(str, lowered.parameters))
        texts.append(f"# {title}\n{kernel_text(lowered.kernel)}# called with {numbers}\n")
    golden("codegen/loops", "\n".join(texts))


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ([torch.empty(2), torch.empty(3)], "sizes do not fit together"),
        ([torch.empty(2), torch.empty(2, dtype=torch.complex64)], "elements of torch.complex64"),
    ],
)
def test_refusals(inputs: list[Tensor], reason: str) -> None:
    with pytest.raises(Unsupported) as error:
        lower(parse_graph(CHAIN.lstrip()), [layout(each) for each in inputs])
    assert str(error.value) == reason
