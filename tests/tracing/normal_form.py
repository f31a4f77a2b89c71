"""Graphs of traces in a form in which those of torch.jit and ours can be compared.

On top of what :func:`tests.support.oracle.normalize` removes (docs/tracing.md has this list for users):

- parameters and buffers are at their uses, by their path from the module; so are lists and tuples that are
  packed, and parts of those that are unpacked;
- a size is an int here and a tensor made of an int there: what turns one into the other is gone (``prim::NumToTensor``,
  ``aten::Int``, ``aten::ScalarImplicit``), numbers stand for themselves wherever they are (``{2}`` in a tensor, ``2``,
  ``2.``), with the six digits that tensors show, and the divisions of sizes that round down (``floor_divide``, ``div``
  with "trunc", ``floordiv``) are one;
- a device that was not asked for is omitted: there every tensor that is made names the example's, here it is None;
- the dtype of an input that the program asks for is printed as the number that it has in the example, which is what is
  there;
- ``x[:, 1]`` takes all of the first dimension there, and nothing is done for it here. Bounds that are not given are 0
  and the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import torch

from rekindle.ir.scalar_types import DTYPE_NUMBERS
from tests.support.oracle import TextNode, normalize, parse_node, scan, split, typed_values

END: Final = "9223372036854775807"
FLOOR: Final = "floordiv of sizes"

MAKES: Final = frozenset(
    f"aten::{name}{like}"
    for name in ("ones", "zeros", "full", "empty", "rand", "randn", "arange", "eye", "randint", "linspace", "tensor")
    for like in ("", "_like")
) | {f"aten::new_{name}" for name in ("ones", "zeros", "full", "empty")}
"""What makes tensors on a device: the last arguments, but for a memory format, are the device and pin_memory."""


def normal_form(graph: object, example: Sequence[object] = ()) -> list[str]:
    """The nodes of a printed graph, one a line, and its result. ``example`` are the inputs that it was traced with."""
    dtypes = {f"%{i}": str(DTYPE_NUMBERS[x.dtype]) for i, x in enumerate(example) if isinstance(x, torch.Tensor)}
    return _NormalForm(dtypes=dtypes).run(normalize(str(graph)))


@dataclass(slots=True)
class _NormalForm:
    names: dict[str, str] = field(default_factory=dict)
    """What stands for a value of the text: its number here, a literal, a path, or the parts of a list."""
    parts: dict[str, list[str]] = field(default_factory=dict)
    """The elements of lists and tuples that were packed."""
    sizes: set[str] = field(default_factory=set)
    """What is computed from sizes alone."""
    dtypes: dict[str, str] = field(default_factory=dict)
    """The numbers of the dtypes of the inputs in the example."""
    count: int = 0
    lines: list[str] = field(default_factory=list)

    def run(self, text: list[str]) -> list[str]:
        for line in text:
            self.line(line)
        return self.lines

    def line(self, line: str) -> None:
        indent, stripped = line[: len(line) - len(line.lstrip())], line.strip()
        if stripped.startswith("graph("):
            values = typed_values(stripped[len("graph(") : scan(stripped, len("graph("), ")")])
            for name, type in values:
                self.names[name] = "self" if type.startswith("__torch__") else self.number()
        elif stripped.startswith(("block", "-> (", "return (")):
            word, _, rest = stripped.partition("(")
            inside = rest[: rest.rindex(")")]
            if word.startswith("block"):
                for name, _ in typed_values(inside):
                    self.names[name] = self.number()
                self.lines.append(f"{indent}{word}")
            else:
                self.lines.append(f"{indent}{word}({', '.join(map(self.use, split(inside)))})")
        else:
            self.node(indent, parse_node(stripped))

    def number(self) -> str:
        self.count += 1
        return f"%{self.count - 1}"

    def use(self, given: str) -> str:
        """The text of a value or a literal."""
        if given.startswith("%"):
            return self.names[given]
        found = _LITERAL.fullmatch(given)
        if found is None:
            return _EMPTY.sub("[]", given.removeprefix("int[] "))
        return found[1] if found[1] == END else f"{float(found[1]):g}"

    def node(self, indent: str, node: TextNode) -> None:
        inputs = [self.use(item) for item in node.inputs]
        special = _SPECIAL.get(node.kind)
        if special is not None and special(self, node, inputs):
            return
        kind, inputs = self.told(node.kind, inputs)
        outputs = []
        for name, _ in node.outputs:
            self.names[name] = self.number()
            outputs.append(self.names[name])
        if kind in _SIZES or (kind in ARITHMETIC and self.of_sizes(inputs)):
            self.sizes.update(outputs)
        attributes = f"[{node.attributes}]" if node.attributes else ""
        self.lines.append(f"{indent}{', '.join(outputs)} = {kind}{attributes}({', '.join(inputs)})")

    def told(self, kind: str, inputs: list[str]) -> tuple[str, list[str]]:
        """A kind and its inputs without what is spelled in two ways."""
        if self.of_sizes(inputs[:2]):
            if kind in ("aten::floordiv", "aten::floor_divide") or (kind == "aten::div" and 'str "trunc"' in inputs):
                return FLOOR, inputs[:2]
            if kind in ("aten::add", "aten::sub"):
                return kind, inputs[:2]
        if kind in MAKES:
            last = len(inputs) - (1 if kind.endswith("_like") else 0)
            return kind, [*inputs[: last - 2], "device", *inputs[last:]]
        return kind, inputs

    def of_sizes(self, inputs: list[str]) -> bool:
        numbers = [item for item in inputs if item in self.sizes or _is_number(item)]
        return bool(self.sizes.intersection(inputs)) and len(numbers) == len(inputs)

    # ------------------------------------------------------------------------------------------------- single kinds

    def same(self, node: TextNode, inputs: list[str]) -> bool:
        self.names[node.outputs[0][0]] = inputs[0]
        return True

    def size_as_int(self, node: TextNode, inputs: list[str]) -> bool:
        return (inputs[0] in self.sizes or _is_number(inputs[0])) and self.same(node, inputs)

    def attribute(self, node: TextNode, inputs: list[str]) -> bool:
        name = re.findall(r'name="(\w+)"', node.attributes)[0]
        self.names[node.outputs[0][0]] = f"{inputs[0]}.{name}"
        return True

    def put_together(self, node: TextNode, inputs: list[str]) -> bool:
        brackets = "()" if node.kind == "prim::TupleConstruct" else "[]"
        text = f"{brackets[0]}{', '.join(inputs)}{brackets[1]}"
        self.names[node.outputs[0][0]] = text
        self.parts[text] = inputs
        return True

    def taken_apart(self, node: TextNode, inputs: list[str]) -> bool:
        parts = self.parts.get(inputs[0])
        if parts is None:
            return False
        self.names.update(zip((name for name, _ in node.outputs), parts, strict=True))
        return True

    def whole_slice(self, node: TextNode, inputs: list[str]) -> bool:
        inputs[2] = "0" if inputs[2] == "None" else inputs[2]
        inputs[3] = END if inputs[3] == "None" else inputs[3]
        return inputs[2:] == ["0", END, "1"] and self.same(node, inputs)

    def dtype(self, node: TextNode, inputs: list[str]) -> bool:
        found = self.dtypes.get(inputs[0])
        if found is not None:
            self.names[node.outputs[0][0]] = found
        return found is not None

    def device(self, node: TextNode, inputs: list[str]) -> bool:
        self.names[node.outputs[0][0]] = "device"
        return True


_SPECIAL: Final[dict[str, Callable[[_NormalForm, TextNode, list[str]], bool]]] = {
    "prim::NumToTensor": _NormalForm.same,
    "aten::Int": _NormalForm.size_as_int,
    "aten::ScalarImplicit": _NormalForm.size_as_int,
    "prim::GetAttr": _NormalForm.attribute,
    "prim::ListConstruct": _NormalForm.put_together,
    "prim::TupleConstruct": _NormalForm.put_together,
    "prim::ListUnpack": _NormalForm.taken_apart,
    "prim::TupleUnpack": _NormalForm.taken_apart,
    "aten::slice": _NormalForm.whole_slice,
    "prim::device": _NormalForm.device,
    "prim::dtype": _NormalForm.dtype,
}

_LITERAL: Final = re.compile(r"(?:int|float|Tensor) \{?(-?\d[\d.e+-]*)\}?")
_SIZES: Final = (FLOOR, "aten::size", "aten::numel")
_EMPTY: Final = re.compile(r"annotate\(List\[int\], \[\]\)")

ARITHMETIC: Final = frozenset(f"aten::{name}" for name in ("add", "sub", "mul", "div", "pow", "remainder"))


def _is_number(text: str) -> bool:
    return text.lstrip("-")[:1].isdigit()
