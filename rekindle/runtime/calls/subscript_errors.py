"""Word the errors of subscripts of Tensors as Python's indexing does.

.. code-block:: text

    select(): index 5 out of range for tensor of size [2, 3] at dimension 0
    index 5 is out of bounds for dimension 0 with size 2

``x[5]`` is ``aten::select`` in the IR, whose error is the first of these; eager PyTorch raises the second. An index
of a list that is a tuple in Python is out of the range of a tuple.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Final

from rekindle.errors import Source
from rekindle.ir.graph import Node
from rekindle.ir.types import ListType

_CHAIN: Final = frozenset({"aten::select", "aten::slice", "aten::unsqueeze"})
_BEYOND: Final = re.compile(
    r"select\(\): index (-?\d+) out of range for tensor of size \[([\d, ]*)\] at dimension (\d+)"
)
_AFTER_OTHERS: Final = re.compile(r"index (-?\d+) is out of bounds for dimension 0 with size (\d+)")
"""Errors of plans, in which the parts of ``x[i, j]`` are separate subscripts."""
_NO_DIMENSION: Final = re.compile(r"(?:select|slice)\(\) cannot be applied to a 0-dim tensor\.")
_NO_SUCH_DIMENSION: Final = re.compile(
    r"Dimension out of range \(expected to be in range of \[-\d+, (\d+)\], but got \d+\)"
)
_SCALAR: Final = (
    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim "
    "tensor to a number"
)


def word_as_python_does(error: BaseException, node: Node) -> None:
    """Replace the message of an IndexError that ``node``, a part of a subscript, has raised by that of Python."""
    if type(error) is not IndexError or len(error.args) != 1:
        return
    if node.kind == "aten::__getitem__":
        container, _ = node.inputs
        owner = container.type
        if isinstance(owner, ListType) and owner.is_tuple and error.args[0] == "list index out of range":
            error.args = ("tuple index out of range",)
        return
    if node.kind not in _CHAIN:
        return
    indices = _indices(node.range.original.text)
    if indices is not None:
        first, separator, rest = str(error.args[0]).partition("\n")
        error.args = (_worded(first, node, indices) + separator + rest,)


def _worded(text: str, node: Node, indices: Sequence[ast.expr]) -> str:
    earlier = list(_earlier(node))
    selected = sum(each.kind == "aten::select" for each in earlier)
    found = _BEYOND.match(text)
    if found is not None:
        sizes = [int(each) for each in found[2].split(",") if each.strip()]
        left = len(sizes)
    elif _NO_DIMENSION.match(text):
        sizes, left = [], 0
    elif (missing := _NO_SUCH_DIMENSION.match(text)) is not None:
        sizes, left = [], int(missing[1]) + 1
    elif text == _SCALAR and len(indices) > 1:
        return f"too many indices for tensor of dimension {selected}"
    elif (single := _AFTER_OTHERS.fullmatch(text)) is not None and earlier:
        return (
            f"index {single[1]} is out of bounds for dimension {_position(len(earlier), indices)} with size {single[2]}"
        )
    else:
        return text
    wanted = sum(not isinstance(each, ast.Constant) or each.value not in (None, ...) for each in indices)
    dimensions = left + selected
    if len(indices) == 1 and dimensions == 0 and node.kind == "aten::select":
        index = node.named_input("index").to_python()
        return _SCALAR if index in (0, None) else f"index {index} is out of bounds for dimension 0 with size 0"
    if wanted > dimensions:
        return f"too many indices for tensor of dimension {dimensions}"
    if found is None:
        return text
    position = _position(len(earlier), indices)
    return f"index {found[1]} is out of bounds for dimension {position} with size {sizes[int(found[3])]}"


def _indices(text: str) -> Sequence[ast.expr] | None:
    """Return the expressions between the brackets of a subscript; None if ``text`` is not one. The range of ``(a +
    b)[0]`` begins at the ``a``."""
    opened = "(" * (1 + max(text.count(")") - text.count("("), 0))
    try:
        expression = ast.parse(f"{opened}{text})", mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(expression, ast.Subscript):
        return None
    return expression.slice.elts if isinstance(expression.slice, ast.Tuple) else [expression.slice]


def _earlier(node: Node) -> Sequence[Node]:
    """Return the nodes of the same subscript before ``node``."""
    found: list[Node] = []
    base, *_ = node.inputs
    while base.node.kind in _CHAIN and _place(base.node) == _place(node):
        found.append(base.node)
        base, *_ = base.node.inputs
    return found


def _place(node: Node) -> tuple[Source, int, int]:
    original = node.range.original
    return original.source, original.start, original.end


def _position(number: int, indices: Sequence[ast.expr]) -> int:
    """Return the position in a subscript of the part after ``number`` others, which do not include ellipses. PyTorch's
    messages call this position the dimension."""
    for position, each in enumerate(indices):
        if isinstance(each, ast.Constant) and each.value is ...:
            continue
        if number == 0:
            return position
        number -= 1
    return len(indices) - 1
