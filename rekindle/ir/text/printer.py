"""Printer of graphs, in TorchScript's syntax.

One line per node, two blanks of indentation per level, the blocks of a node after it, the source location after ``#``::

    graph(%x.1 : Tensor,
          %n.1 : int):
      %2 : int = prim::Constant[value=1]() # f.py:3:12
      %3 : bool = aten::gt(%n.1, %2) # f.py:2:7
      %y : Tensor = prim::If(%3) # f.py:2:4
        block0():
          %5 : Tensor = aten::neg(%x.1) # f.py:3:12
          -> (%5)
        block1():
          -> (%x.1)
      return (%y)

A graph in the attribute ``Subgraph`` of a node is printed at the end, and the node refers to it by a number:
``prim::fork_0``.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import replace

import torch

from rekindle.ir import node as _node
from rekindle.ir.attributes import ConstantObject, infer_type, type_name
from rekindle.ir.constants import EnumMember, OpaqueConstant
from rekindle.ir.graph import AttributeValue, Graph, Node, Value
from rekindle.ir.scalar_types import NUMBERED_CLASSES, number_of
from rekindle.ir.text.literals import format_complex, format_float, format_string
from rekindle.ir.text.tensor_printer import TENSOR_LIST, format_tensor, is_tensor_text
from rekindle.ir.types import (
    ANY,
    AnyType,
    DictType,
    EnumType,
    FutureType,
    ListType,
    NumberType,
    OptionalType,
    RRefType,
    TensorType,
    TupleType,
    Type,
    UnionType,
)

SUBGRAPH = "Subgraph"
"""The attribute whose graph is printed after the graph that refers to it."""
PYTHON_CALL = "prim::PythonOp"
"""The kind of nodes that call a Python function: printed as ``^name[attributes](constant arguments)(inputs)``."""
CONSTANT_ARGUMENTS = "scalar_args"
"""The attribute of such a node that holds its constant arguments: a tuple, or their text."""


def print_graph(graph: Graph, *, ranges: bool = True, verbosity: int = 3, recorded: bool = False) -> str:
    """Return the text of ``graph``, line ends included. ``ranges`` adds the source locations; ``verbosity`` is the
    detail of types: 0 none, 1 dtypes and shapes, 2 strides too, 3 all. ``recorded`` prints the types that values had
    when they were traced.

    Example:
        >>> from rekindle.ir.text.printer import print_graph
        >>> graph = rekindle.script(lambda x: x.neg()).graph
        >>> print(print_graph(graph, ranges=False), end="")
        graph(%x.1 : Tensor):
          %2 : Tensor = aten::neg(%x.1)
          return (%2)
    """
    return _Printer(ranges, verbosity, recorded).graph(graph)


def print_node(node: Node, *, ranges: bool = True) -> str:
    """Return the text of ``node`` and its blocks, without indentation. Its sub-graph, if any, follows it. With
    ``ranges``, a comment at the end of a line has the source location."""
    printer = _Printer(ranges)
    printer.nodes([node], 0)
    printer.subgraphs()
    return "".join(printer.lines)


def print_head(node: Node, *, verbosity: int = 3) -> str:
    """Return the first line of ``node``, without its blocks. For the nodes at the start and end of a block, these are
    its inputs or outputs."""
    if node.kind == "prim::Return":
        return f"return ({_names(node.inputs)})"
    printer = _Printer(True, verbosity)
    if node.kind == "prim::Param":
        return f"inputs ({', '.join(map(printer.declare, node.outputs))})"
    return printer.head(node).rstrip("\n")


class _Printer:
    __slots__ = ("_groups", "_ranges", "_recorded", "_types", "_verbosity", "lines")

    def __init__(self, ranges: bool, verbosity: int = 3, recorded: bool = False) -> None:
        self._ranges = ranges
        self._verbosity = verbosity
        self._recorded = recorded
        self._groups: list[Node] = []
        self._types: dict[int, str] = {}
        self.lines: list[str] = []

    def graph(self, graph: Graph) -> str:
        inputs = ",\n      ".join(self.declare(value) for value in graph.inputs)
        self.lines.append(f"graph({inputs}):\n")
        self.nodes(graph.nodes, 1)
        self.lines.append(f"  return ({_names(graph.outputs)})\n")
        self.subgraphs()
        return "".join(self.lines)

    def subgraphs(self) -> None:
        for index, node in enumerate(self._groups):
            text = _Printer(self._ranges, self._verbosity, self._recorded).graph(node.get_graph(SUBGRAPH))
            self.lines.append(f"with {node.kind}_{index} = {text}")

    def nodes(self, nodes: Iterable[Node], level: int) -> None:
        """Print the nodes with a work list instead of recursion: blocks may nest deeply."""
        work: list[tuple[int, Node | str]] = [(level, node) for node in nodes]
        work.reverse()
        while work:
            level, item = work.pop()
            if isinstance(item, str):
                self.lines.append("  " * level + item)
                continue
            self.lines.append("  " * level + self.head(item))
            for index in reversed(range(len(item.blocks))):
                block = item.blocks[index]
                work.append((level + 2, f"-> ({_names(block.outputs)})\n"))
                work.extend((level + 2, node) for node in block.nodes_reversed)
                work.append((level + 1, f"block{index}({', '.join(map(self.declare, block.inputs))}):\n"))

    def head(self, node: Node) -> str:
        kind = self._python_call(node) if "name" in node.attributes and node.kind == PYTHON_CALL else self._kind(node)
        text = f"{', '.join(map(self.declare, node.outputs))} = {kind}({_names(node.inputs)})"
        if node.scope:
            text += f", scope: {node.scope}"
        place = node.range.place if self._ranges else ""
        return f"{text} # {place}\n" if place else f"{text}\n"

    def _kind(self, node: Node) -> str:
        """Return the kind of ``node`` with its attributes; the number of its sub-graph in place of that."""
        kind = node.kind
        attributes: Iterable[tuple[str, AttributeValue]] = node.attributes.items()
        if isinstance(node.attributes.get(SUBGRAPH), Graph):
            kind = f"{kind}_{len(self._groups)}"
            self._groups.append(node)
            attributes = [(name, value) for name, value in attributes if name != SUBGRAPH]
        listed = ", ".join([f"{name}={self._attribute(node, value)}" for name, value in attributes])
        return f"{kind}[{listed}]" if listed else kind

    def _python_call(self, node: Node) -> str:
        """Format a call of a Python function as ``^name[attributes](constant arguments)``. The function itself has no
        text."""
        listed = [
            f"{name}={self._attribute(node, value)}"
            for name, value in node.attributes.items()
            if name not in ("name", "function", CONSTANT_ARGUMENTS)
        ]
        constants = node.attributes.get(CONSTANT_ARGUMENTS, "")
        given = constants.value if isinstance(constants, ConstantObject) else constants
        if isinstance(given, tuple):
            given = ", ".join(map(format_constant, given))
        return f"^{node.attributes['name']}[{', '.join(listed)}]({given})"

    def declare(self, value: Value) -> str:
        if not self._verbosity:
            return f"%{value.name}"
        type = value.type
        if self._recorded and value.recorded_type is not None:
            return f"%{value.name} : {format_type(value.recorded_type, self._verbosity)}"
        text = self._types.get(id(type))
        if text is None:
            text = self._types[id(type)] = format_type(type, self._verbosity)
        return f"%{value.name} : {text}"

    def _attribute(self, node: Node, value: AttributeValue) -> str:
        if isinstance(value, ConstantObject) and node.kind == "prim::Constant" and len(node.outputs) == 1:
            return format_constant(value.value, node.output.type)
        inner = value.value if isinstance(value, ConstantObject) else value
        if isinstance(inner, list):
            return f"[{', '.join([self._attribute(node, item) for item in inner])}]"
        if isinstance(value, ConstantObject):
            return format_constant(value.value)
        if isinstance(value, Type):
            return format_type(value)
        if isinstance(value, Graph):
            return "<Graph>"
        # A bool is an int here; its type distinguishes it.
        return format_constant(int(value) if isinstance(value, bool) else value, ANY)


def _names(values: Iterable[Value]) -> str:
    return ", ".join([f"%{value.name}" for value in values])


# ---------------------------------------------------------------------------------------------------------------- types


def format_type(type: Type, verbosity: int = 3) -> str:
    """Return ``type`` as graphs write it. Unlike ``str(type)`` it includes the fields of a NamedTuple, and square
    brackets after Future and RRef. ``verbosity`` as in :func:`print_graph`."""
    if isinstance(type, ListType):
        return f"{format_type(type.element, verbosity)}[]"
    if isinstance(type, OptionalType):
        return f"{format_type(type.element, verbosity)}?"
    if isinstance(type, (FutureType, RRefType)):
        return f"{'Future' if isinstance(type, FutureType) else 'RRef'}[{format_type(type.element, verbosity)}]"
    if isinstance(type, TupleType):
        if type.fields is not None:
            return f"NamedTuple({', '.join(_format_fields(type, verbosity))})"
        return f"({', '.join([format_type(element, verbosity) for element in type.elements])})"
    if isinstance(type, TensorType) and verbosity < 3:
        type = replace(type, device=None, requires_grad=None, strides=None if verbosity < 2 else type.strides)
    return str(type)


def _format_fields(type: TupleType, verbosity: int) -> Iterable[str]:
    names = type.fields or ()
    first_default = len(names) - len(type.defaults)
    for index, (name, element) in enumerate(zip(names, type.elements, strict=True)):
        text = f"{name} : {format_type(element, verbosity)}"
        if index >= first_default:
            text += f" = {format_constant(type.defaults[index - first_default], element)}"
        yield text


# ------------------------------------------------------------------------------------------------------------ constants


def format_constant(value: object, type: Type = ANY) -> str:
    """Return a constant in the text form. ``type`` determines the element type of an empty list or dict."""
    if isinstance(value, enum.Enum):  # of which some are ints or strings as well
        return _format_other(value, type)
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return format_float(value)
    if isinstance(value, str):
        return format_string(value)
    if isinstance(value, torch.Tensor):
        return format_tensor(value)
    if isinstance(value, (list, tuple, dict)):
        return _format_container(value, _container_type(value, type))
    return _format_other(value, type)


def _container_type(value: object, type: Type) -> Type:
    """Return the type of a list, a tuple or a dict: from ``type`` if known, or inferred from its elements."""
    if isinstance(type, OptionalType) and not isinstance(type.element, (UnionType, AnyType)):
        return type.element
    return (infer_type(value) or ANY) if isinstance(type, (OptionalType, UnionType, AnyType)) else type


def _element_types(value: tuple[object, ...], type: Type) -> Sequence[Type]:
    if isinstance(type, TupleType) and len(type.elements) == len(value):
        return type.elements
    return [ANY] * len(value)


def _format_other(value: object, type: Type) -> str:
    if isinstance(value, complex):
        return format_complex(value)
    if isinstance(value, OpaqueConstant):
        return value.text
    if isinstance(value, EnumMember):
        return f"{value.type.name}.{value.name}"
    if isinstance(value, enum.Enum):
        name = type.name if isinstance(type, EnumType) else type_name(value)
        return f"{name}.{value.name}"
    if isinstance(value, NUMBERED_CLASSES):
        return str(number_of(value))
    if isinstance(value, torch.device):
        return f'torch.device("{value}")'
    if isinstance(value, torch.Generator):
        return f'torch.Generator(device="{value.device}", seed={value.initial_seed()})'
    return f"object({type_name(value)})"


def _format_container(value: list[object] | tuple[object, ...] | dict[object, object], type: Type) -> str:
    if isinstance(value, tuple):
        types = (
            type.elements if isinstance(type, TupleType) and len(type.elements) == len(value) else [ANY] * len(value)
        )
        items = [format_constant(item, element) for item, element in zip(value, types, strict=True)]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    if isinstance(value, dict):
        key, item = (type.key, type.value) if isinstance(type, DictType) else (ANY, ANY)
        entries = [f"{format_constant(k, key)}: {format_constant(v, item)}" for k, v in value.items()]
        text = f"{{{', '.join(entries)}}}"
        return text if _tells_type(value, item) else f"annotate({type.annotation},{text})"
    element = type.element if isinstance(type, ListType) else ANY
    if isinstance(element, TensorType):
        return TENSOR_LIST
    text = f"[{', '.join([format_constant(item, element) for item in value])}]"
    return text if _tells_type(value, element) else f"annotate({type.annotation}, {text})"


def _tells_type(value: list[object] | dict[object, object], element: Type) -> bool:
    """Return whether the contents of a list or dict determine its type."""
    return bool(value) and not isinstance(element, (UnionType, OptionalType, NumberType, AnyType))


# -------------------------------------------------------------------------------------------------- what the text omits


def tensor_constants(graph: Graph) -> list[object]:
    """Return the tensors of ``graph``'s constants in the order of the text, for
    :func:`~rekindle.ir.text.parser.parse_graph`. A list of tensors is one item.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> from rekindle.ir.text.printer import tensor_constants
        >>> graph = rekindle.Graph()
        >>> _ = graph.block.add_output(graph.insert_constant(torch.arange(3)))
        >>> (values,) = tensor_constants(parse_graph(str(graph), tensors=tensor_constants(graph)))
        >>> values
        tensor([0, 1, 2])
    """
    found: list[object] = []
    inner: list[Graph] = []
    for node in graph.all_nodes():
        for name, attribute in node.attributes.items():
            value = attribute.value if isinstance(attribute, ConstantObject) else attribute
            if node.kind == "prim::Constant" and len(node.outputs) == 1:
                _collect_tensors(value, node.output.type, found)
            elif isinstance(value, Graph):
                if name == SUBGRAPH and node.kind != PYTHON_CALL:
                    inner.append(value)
            else:
                for item in value if isinstance(value, list) else [value]:
                    _collect_tensors(item, ANY, found)
    for subgraph in inner:
        found.extend(tensor_constants(subgraph))
    return found


def _collect_tensors(value: object, type: Type, found: list[object]) -> None:
    """Append the tensors in a constant to ``found``, in the order of :func:`format_constant`."""
    if isinstance(value, torch.Tensor) or (isinstance(value, OpaqueConstant) and is_tensor_text(value.text)):
        found.append(value)
    elif isinstance(value, (list, tuple, dict)):
        for item, of in _items(value, _container_type(value, type), found):
            _collect_tensors(item, of, found)


def _items(value: object, type: Type, found: list[object]) -> Iterable[tuple[object, Type]]:
    if isinstance(value, tuple):
        return zip(value, _element_types(value, type), strict=True)
    if isinstance(value, dict):
        key, item = (type.key, type.value) if isinstance(type, DictType) else (ANY, ANY)
        return [pair for k, v in value.items() for pair in ((k, key), (v, item))]
    assert isinstance(value, list)
    element = type.element if isinstance(type, ListType) else ANY
    if isinstance(element, TensorType):
        found.append(value)
        return ()
    return [(item, element) for item in value]


def _print_text(item: Node | Graph) -> str:
    return print_graph(item) if isinstance(item, Graph) else print_node(item)


_node.print_text = _print_text
