"""The attributes of arguments that a captured graph reads, and whether they are still where they were."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from rekindle.ir.graph import Graph, Node, Value
from rekindle.ops.python.objects import module_table
from rekindle.runtime.cuda_graphs.arguments import NotCapturable, layout_of, value_key

State = Sequence[object]
"""What must not change of attributes as long as a capture is replayed."""


class Attributes:
    """The attributes of the arguments of ``graph`` that it reads. They are read by a function in Python that is
    generated for the graph: a model has hundreds.

    Raises:
        NotCapturable: the graph reads attributes of other objects than its arguments and those that these hold.
    """

    def __init__(self, graph: Graph) -> None:
        names = {value: f"a{index}" for index, value in enumerate(graph.inputs)}
        lines = [f"def read({', '.join(names.values())}):"]
        leaves: list[str] = []
        for node in graph.all_nodes_with_subgraphs():
            if node.kind != "prim::GetAttr":
                continue
            owner = _held(node.input)
            if owner not in names:
                raise NotCapturable(f"the graph reads the attribute {node.get_string('name')!r} of an unknown object")
            names[node.output] = f"v{len(names)}"
            lines.append(f"    {names[node.output]} = {_expression(node, names[owner])}")
            if _is_leaf(node.output):
                leaves.append(names[node.output])
        lines.append(f"    return [{', '.join(leaves)}]")
        found: dict[str, Callable[..., list[Any]]] = {}
        exec(compile("\n".join(lines), "<attributes of a captured graph>", "exec"), found)  # noqa: S102 - a function of reads
        self._read = found["read"]

    def of(self, arguments: Sequence[object]) -> list[Any]:
        """Return the values of the attributes, read from ``arguments``.

        Raises:
            NotCapturable: a module has its parameter elsewhere, as with parametrizations.
        """
        try:
            return self._read(*arguments)
        except (KeyError, AttributeError):
            raise NotCapturable("an attribute of a module has moved") from None

    def have_not_changed(self, arguments: Sequence[object], state: State) -> bool:
        """Return whether the attributes of ``arguments`` are the same as in ``state``."""
        try:
            return all(map(_is_as_before, self.of(arguments), state))
        except NotCapturable:
            return False


def _is_leaf(value: Value) -> bool:
    """Return whether a node other than a read of an attribute uses ``value``, or a cast of it."""
    return any(
        _is_leaf(use.user.output) if use.user.kind == "prim::unchecked_cast" else use.user.kind != "prim::GetAttr"
        for use in value.uses
    )


def _held(value: Value) -> Value:
    """Return the value before refinements (casts) to ``value``."""
    while value.node.kind == "prim::unchecked_cast":
        value = value.node.input
    return value


def _expression(node: Node, owner: str) -> str:
    name = node.get_string("name")
    table = module_table(_held(node.input).type, name) or module_table(node.input.type, name)
    return f"{owner}.{name}" if table is None else f"{owner}.{table}[{name!r}]"


def state_of(attributes: Sequence[Any]) -> State:
    """Return the state of attribute values, for a comparison with later ones.

    Raises:
        NotCapturable: an attribute is of a class whose changes cannot be detected.
    """
    return [_state(each) for each in attributes]


def _state(value: Any) -> object:
    if type(value) is Tensor or type(value) is torch.nn.Parameter:
        layout = layout_of(value)
        return value.data_ptr(), layout
    if type(value) in (list, tuple):
        return type(value), [_state(each) for each in value]
    number = value_key(value)
    if number is None:
        raise NotCapturable(f"an attribute is a {type(value).__name__}")
    return number


def _is_as_before(value: Any, state: Any) -> bool:
    return bool(_state(value) == state)


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Yield the tensors of attributes."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from tensors_in(each)
