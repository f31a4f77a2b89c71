"""Views of graphs, blocks, nodes and values: ``torch.jit``'s names for the parts of a graph.

A view holds an object of the IR as ``ir`` and nothing else, and edits through a view edit the graph. Where
``torch.jit`` returns iterators, so do views: ``next(graph.inputs())``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import torch

from rekindle.analysis.aliasing.alias_db import AliasDb
from rekindle.api.drop_in.graph_views.alias_view import AliasDbView
from rekindle.api.drop_in.graph_views.attribute_access import AttributeAccess, accessor_of, attribute_of
from rekindle.api.drop_in.graph_views.type_view import TypeView, type_of
from rekindle.errors import GraphError
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.text.printer import print_graph, print_node
from rekindle.ir.types import NONE, FunctionType, TensorType, TupleType
from rekindle.ir.verifier import verify

_Text: TypeAlias = str  # `str` is a method of graphs, as in torch.jit

_T = TypeVar("_T", Graph, Block, Node, Value)
_V = TypeVar("_V", bound="_View[Any]")


class _View(Generic[_T]):
    """A view of a part of a graph. While one is alive, it is the only one of its object."""

    __slots__ = ("__weakref__", "ir")

    ir: _T
    """The object that this is a view of."""

    def __new__(cls: type[_V], ir: _T) -> _V:
        found = _views.get(id(ir))
        if isinstance(found, cls):
            return found
        view = super().__new__(cls)
        view.ir = ir
        _views[id(ir)] = view
        return view


_views: Final[WeakValueDictionary[int, _View[Any]]] = WeakValueDictionary()
"""The views by the ids of their objects, which the views keep alive."""


_shows_ranges: Final[ContextVar[bool]] = ContextVar("shows_ranges", default=True)


@contextmanager
def hide_source_ranges() -> Iterator[None]:
    """Omit source locations from ``str()`` of graphs and nodes."""
    token = _shows_ranges.set(False)
    try:
        yield
    finally:
        _shows_ranges.reset(token)


class ValueView(_View[Value]):
    """``torch._C.Value``. ``type()`` of a value of a trace includes the sizes that it had when it was recorded."""

    __slots__ = ()

    def debugName(self) -> str:
        return self.ir.name

    def setDebugName(self, name: str) -> ValueView:
        self.ir.set_name(name)
        return self

    def unique(self) -> int:
        return self.ir.unique

    def offset(self) -> int:
        return self.ir.offset

    def node(self) -> NodeView:
        return NodeView(self.ir.node)

    def uses(self) -> list[UseView]:
        return [UseView(NodeView(use.user), use.offset) for use in self.ir.uses]

    def type(self) -> TypeView:
        type = self.ir.recorded_type or self.ir.type
        return FunctionTypeView(type) if isinstance(type, FunctionType) else TypeView(type)

    def setType(self, type: Any) -> ValueView:
        self.ir.set_type(type_of(type))
        self.ir.recorded_type = None
        return self

    def setTypeAs(self, other: ValueView) -> ValueView:
        return self.setType(other.type())

    def inferTypeFrom(self, tensor: torch.Tensor) -> ValueView:
        return self.setType(TensorType.of(tensor))

    def copyMetadata(self, other: ValueView) -> ValueView:
        self.ir.copy_metadata(other.ir)
        return self

    def isCompleteTensor(self) -> bool:
        """Return whether the dtype, the device, all sizes and all strides are known."""
        type = self.type().ir
        if not isinstance(type, TensorType) or type.sizes is None or type.strides is None:
            return False
        return None not in (type.dtype, type.device, *type.sizes, *type.strides)

    def requires_grad(self) -> bool:
        type = self.type().ir
        return isinstance(type, TensorType) and bool(type.requires_grad)

    requiresGrad = requires_grad

    def toIValue(self) -> Any:
        """Return the Python value of a constant; None for anything else."""
        return self.ir.to_python()

    def replaceAllUsesWith(self, other: ValueView) -> None:
        self.ir.replace_all_uses_with(other.ir)

    def replaceAllUsesAfterNodeWith(self, node: NodeView, other: ValueView) -> None:
        self.ir.replace_all_uses_after_node_with(node.ir, other.ir)

    def __repr__(self) -> str:
        return f"{self.ir.name} defined in ({print_node(self.ir.node).rstrip()})"


@dataclass(frozen=True, slots=True)
class UseView:
    """``torch._C.Use``: input ``offset`` of the node ``user``."""

    user: NodeView
    offset: int

    def isAfter(self, other: UseView) -> bool:
        if self.user == other.user:
            return self.offset > other.offset
        return self.user.isAfter(other.user)


class NodeView(AttributeAccess, _View[Node]):
    """``torch._C.Node``."""

    __slots__ = ()

    # -------------------------------------------------------------------------------------------------------- reading

    def kind(self) -> str:
        return self.ir.kind

    def scopeName(self) -> str:
        """Return the modules that an inlined node runs in, outermost first: ``__module.encoder/__module.encoder.0``."""
        return self.ir.scope

    def getModuleHierarchy(self) -> str:
        return ".".join(name for name, _ in self.ir.callstack)

    def sourceRange(self) -> str:
        """Return the place in the source, ``file:line:column``, and the lines there; empty if it is not known."""
        return f"{self.ir.range.place}\n{self.ir.range.highlight()}" if self.ir.range.is_known else ""

    def schema(self) -> str:
        schema = self.ir.schema
        return "(no schema)" if schema is None else str(schema)

    def matches(self, schema: str) -> bool:
        return self.schema() == schema

    def inputs(self) -> Iterator[ValueView]:
        return map(ValueView, list(self.ir.inputs))

    def outputs(self) -> Iterator[ValueView]:
        return map(ValueView, list(self.ir.outputs))

    def inputsAt(self, index: int) -> ValueView:
        return ValueView(_at(self.ir.inputs, index, f"{self.ir.kind} has no input {index}"))

    def outputsAt(self, index: int) -> ValueView:
        return ValueView(_at(self.ir.outputs, index, f"{self.ir.kind} has no output {index}"))

    def input(self) -> ValueView:
        return ValueView(self.ir.input)

    def output(self) -> ValueView:
        return ValueView(self.ir.output)

    def namedInput(self, name: str) -> ValueView:
        return ValueView(self.ir.named_input(name))

    def inputsSize(self) -> int:
        return len(self.ir.inputs)

    def outputsSize(self) -> int:
        return len(self.ir.outputs)

    def hasMultipleOutputs(self) -> bool:
        return len(self.ir.outputs) > 1

    def hasUses(self) -> bool:
        return any(output.has_uses for output in self.ir.outputs)

    def blocks(self) -> Iterator[BlockView]:
        return map(BlockView, list(self.ir.blocks))

    def owningBlock(self) -> BlockView | None:
        return None if self.ir.owning_block is None else BlockView(self.ir.owning_block)

    def next(self) -> NodeView:
        return NodeView(self.ir.next)

    def prev(self) -> NodeView:
        return NodeView(self.ir.prev)

    def findNode(self, kind: str, recurse: bool = True) -> NodeView | None:
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[NodeView]:
        return [each for block in self.ir.blocks for each in _find(block, kind, recurse)]

    def isBefore(self, other: NodeView) -> bool:
        return self != other and not self._is_in_another_branch(other) and self.ir.is_before(other.ir)

    def isAfter(self, other: NodeView) -> bool:
        return self != other and not self._is_in_another_branch(other) and self.ir.is_after(other.ir)

    def _is_in_another_branch(self, other: NodeView) -> bool:
        """Return whether the two are in different blocks of one node."""
        levels = {node.owning_block: node for node in self.ir.ancestors()}
        theirs = next((node for node in other.ir.ancestors() if node.owning_block in levels), None)
        mine = None if theirs is None else levels[theirs.owning_block]
        return mine is theirs and mine is not self.ir and theirs is not other.ir

    def isNondeterministic(self) -> bool:
        operator = self.ir.operator
        return operator is not None and operator.is_nondeterministic

    def mustBeNone(self) -> bool:
        return self.ir.kind == "prim::Constant" and self.ir.output.type == NONE

    # ----------------------------------------------------------------------------------------------------- attributes

    def attributeNames(self) -> list[str]:
        return list(self.ir.attributes)

    def hasAttribute(self, name: str) -> bool:
        return name in self.ir.attributes

    def hasAttributes(self) -> bool:
        return bool(self.ir.attributes)

    def kindOf(self, name: str) -> str:
        """Return the name of the accessor that reads an attribute: ``i``, ``s``, ``is`` …"""
        return accessor_of(attribute_of(self.ir, name))

    def removeAttribute(self, name: str) -> None:
        self.ir.remove_attribute(name)

    def copyAttributes(self, other: NodeView) -> NodeView:
        self.ir.attributes.clear()
        for name, value in other.ir.attributes.items():
            self.ir.set_attribute(name, value)
        return self

    def copyMetadata(self, other: NodeView) -> NodeView:
        self.ir.range, self.ir.scope, self.ir.callstack = other.ir.range, other.ir.scope, other.ir.callstack
        return self

    def g(self, name: str) -> GraphView:
        return GraphView(self.ir.get_graph(name))

    def g_(self, name: str, graph: GraphView) -> NodeView:
        self.ir.set_attribute(name, graph.ir)
        return self

    def gs(self, name: str) -> list[GraphView]:
        value = attribute_of(self.ir, name)
        return [GraphView(each) for each in value if isinstance(each, Graph)] if isinstance(value, list) else []

    def ty(self, name: str) -> TypeView:
        return TypeView(type_of(attribute_of(self.ir, name)))

    def ty_(self, name: str, type: Any) -> NodeView:
        self.ir.set_attribute(name, type_of(type))
        return self

    def tys(self, name: str) -> list[TypeView]:
        value = attribute_of(self.ir, name)
        return [TypeView(type_of(each)) for each in value] if isinstance(value, list) else []

    def tys_(self, name: str, types: Iterable[Any]) -> NodeView:
        self.ir.set_attribute(name, [type_of(each) for each in types])
        return self

    # -------------------------------------------------------------------------------------------------------- editing

    def addInput(self, value: ValueView) -> ValueView:
        return ValueView(self.ir.add_input(value.ir))

    def replaceInput(self, index: int, value: ValueView) -> ValueView:
        return ValueView(self.ir.replace_input(index, value.ir))

    def replaceInputWith(self, old: ValueView, new: ValueView) -> None:
        self.ir.replace_input_with(old.ir, new.ir)

    def removeInput(self, index: int) -> None:
        self.ir.remove_input(index)

    def removeAllInputs(self) -> None:
        self.ir.remove_all_inputs()

    def addOutput(self) -> ValueView:
        return ValueView(self.ir.add_output())

    def eraseOutput(self, index: int) -> None:
        self.ir.erase_output(index)

    def addBlock(self) -> BlockView:
        return BlockView(self.ir.add_block())

    def replaceAllUsesWith(self, other: NodeView) -> None:
        self.ir.replace_all_uses_with(other.ir)

    def insertBefore(self, other: NodeView) -> NodeView:
        self.ir.insert_before(other.ir)
        return self

    def insertAfter(self, other: NodeView) -> NodeView:
        self.ir.insert_after(other.ir)
        return self

    def moveBefore(self, other: NodeView) -> None:
        self.ir.move_before(other.ir)

    def moveAfter(self, other: NodeView) -> None:
        self.ir.move_after(other.ir)

    def destroy(self) -> None:
        self.ir.destroy()

    def __repr__(self) -> str:
        return print_node(self.ir, ranges=_shows_ranges.get())


class BlockView(_View[Block]):
    """``torch._C.Block``."""

    __slots__ = ()

    def inputs(self) -> Iterator[ValueView]:
        return map(ValueView, list(self.ir.inputs))

    def outputs(self) -> Iterator[ValueView]:
        return map(ValueView, list(self.ir.outputs))

    def nodes(self) -> Iterator[NodeView]:
        return map(NodeView, self.ir.nodes)

    def paramNode(self) -> NodeView:
        return NodeView(self.ir.param_node)

    def returnNode(self) -> NodeView:
        return NodeView(self.ir.return_node)

    def owningNode(self) -> NodeView | None:
        return None if self.ir.owning_node is None else NodeView(self.ir.owning_node)

    def findNode(self, kind: str, recurse: bool = True) -> NodeView | None:
        return next(_find(self.ir, kind, recurse), None)

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[NodeView]:
        return list(_find(self.ir, kind, recurse))

    def addNode(self, kind: str, inputs: Sequence[ValueView]) -> NodeView:
        return NodeView(self.ir.append(self.ir.graph.create(kind, [value.ir for value in inputs])))

    def addInputToBlock(self) -> ValueView:
        return ValueView(self.ir.add_input())

    def registerOutput(self, value: ValueView) -> int:
        return self.ir.add_output(value.ir)


class GraphView(_View[Graph]):
    """``torch._C.Graph``. ``str()`` prints the graph, with the sizes that a trace recorded."""

    __slots__ = ()

    # -------------------------------------------------------------------------------------------------------- reading

    def inputs(self) -> Iterator[ValueView]:
        return map(ValueView, list(self.ir.inputs))

    def outputs(self) -> Iterator[ValueView]:
        return map(ValueView, list(self.ir.outputs))

    def nodes(self) -> Iterator[NodeView]:
        """Return the nodes of the outermost block. The current node may be moved or destroyed during the iteration."""
        return map(NodeView, self.ir.nodes)

    def block(self) -> BlockView:
        return BlockView(self.ir.block)

    def param_node(self) -> NodeView:
        return NodeView(self.ir.param_node)

    def return_node(self) -> NodeView:
        return NodeView(self.ir.return_node)

    def findNode(self, kind: _Text, recurse: bool = True) -> NodeView | None:
        """Return the first node of a kind; None if there is none. With ``recurse``, nested blocks are searched too."""
        return next(_find(self.ir.block, kind, recurse), None)

    def findAllNodes(self, kind: _Text, recurse: bool = True) -> list[NodeView]:
        return list(_find(self.ir.block, kind, recurse))

    def alias_db(self, isFrozen: bool = False, descend_function_calls: bool = False) -> AliasDbView:
        """Return the alias database. Calls are assumed to have any effect, unless ``descend_function_calls`` is set:
        then it analyses a copy with the calls inlined."""
        if descend_function_calls:
            return AliasDbView.descending(self.ir, isFrozen)
        return AliasDbView(AliasDb(self.ir, is_frozen=isFrozen))

    def dump_alias_db(self) -> None:
        self.alias_db().dump()

    def lint(self) -> None:
        """Check that the graph is valid.

        Raises:
            VerificationError: the graph is not valid.
        """
        verify(self.ir)

    def str(self, print_source_ranges: bool = True) -> _Text:
        return print_graph(self.ir, ranges=print_source_ranges, recorded=True)

    def __str__(self) -> _Text:
        return self.str(_shows_ranges.get())

    __repr__ = __str__

    # -------------------------------------------------------------------------------------------------------- editing

    def copy(self) -> GraphView:
        return GraphView(self.ir.copy())

    def addInput(self, name: _Text = "") -> ValueView:
        return ValueView(self.ir.add_input(name))

    def eraseInput(self, index: int) -> None:
        self.ir.erase_input(index)

    def permuteInputs(self, order: Sequence[int]) -> None:
        self.ir.permute_inputs(order)

    def registerOutput(self, value: ValueView) -> int:
        return self.ir.add_output(value.ir)

    def eraseOutput(self, index: int) -> None:
        self.ir.block.erase_output(index)

    def makeMultiOutputIntoTuple(self) -> None:
        """Replace the outputs of the graph with one tuple of them, unless there is exactly one output."""
        outputs = list(self.ir.outputs)
        if len(outputs) != 1:
            types = tuple(value.type for value in outputs)
            made = self.ir.create("prim::TupleConstruct", outputs, types=[TupleType(types)])
            self.ir.append_node(made)
            self.ir.return_node.remove_all_inputs()
            self.ir.add_output(made.output)

    def create(self, kind: _Text, *given: Any) -> NodeView:
        """Return a new node that is in no block yet.

        ``given`` are, in either order and both optional, the inputs (default: none) and the number of outputs (default:
        1).
        """
        inputs = next((each for each in given if not isinstance(each, int)), ())
        outputs = next((each for each in given if isinstance(each, int)), 1)
        return NodeView(self.ir.create(kind, [value.ir for value in inputs], outputs=outputs))

    def createClone(self, node: NodeView, value_map: Callable[[ValueView], ValueView]) -> NodeView:
        return NodeView(self.ir.create_clone(node.ir, lambda value: value_map(ValueView(value)).ir))

    def appendNode(self, node: NodeView) -> NodeView:
        return NodeView(self.ir.append_node(node.ir))

    def prependNode(self, node: NodeView) -> NodeView:
        return NodeView(self.ir.block.prepend(node.ir))

    def insertNode(self, node: NodeView) -> NodeView:
        return NodeView(self.ir.insert_node(node.ir))

    def insertConstant(self, value: object) -> ValueView:
        return ValueView(self.ir.insert_constant(value))

    def insert(self, kind: _Text, args: Sequence[Any] = (), kwargs: Mapping[_Text, Any] | None = None) -> ValueView:
        """Insert a call of an operator at the insertion point, and return its output. The overload is selected by the
        types of the arguments."""
        given = [each.ir if isinstance(each, ValueView) else each for each in args]
        named = {name: each.ir if isinstance(each, ValueView) else each for name, each in (kwargs or {}).items()}
        return ValueView(self.ir.insert(kind, given, named))

    def insertGraph(self, callee: GraphView, inputs: Sequence[ValueView]) -> list[ValueView]:
        return [ValueView(each) for each in self.ir.insert_graph(callee.ir, [value.ir for value in inputs])]

    def insertPoint(self) -> NodeView:
        return NodeView(self.ir.insert_point)

    def setInsertPoint(self, place: NodeView | BlockView) -> None:
        """Set the insertion point of the graph before a node, or at the end of a block."""
        self.ir.insert_point = place.ir if isinstance(place, NodeView) else place.ir.return_node

    @contextmanager
    def insert_point_guard(self, place: NodeView | BlockView) -> Iterator[None]:
        """Set the insertion point within the ``with`` block, before a node or at the end of a block, and restore it
        afterwards. If its node has been removed by then, it is the end of the graph."""
        saved = self.ir.insert_point
        self.setInsertPoint(place)
        try:
            yield
        finally:
            self.ir.insert_point = saved if saved.owning_block is not None else self.ir.block.return_node


class FunctionTypeView(TypeView):
    """The type of a function value: each function has a type of its own, from which its graph is found."""

    __slots__ = ()

    def optimized_graph(self) -> GraphView:
        """Return the graph of the function.

        Raises:
            GraphError: the type is not that of a function.
        """
        if not isinstance(self.ir, FunctionType):
            raise GraphError(f"{self.ir.kind} is not the type of a function")
        return GraphView(self.ir.function.graph)


def graph_of(given: GraphView | Graph) -> Graph:
    """Return the graph of a view; a graph is returned unchanged."""
    return given.ir if isinstance(given, GraphView) else given


def _find(block: Block, kind: str, recurse: bool) -> Iterator[NodeView]:
    nodes = block.all_nodes() if recurse else block.nodes
    return (NodeView(node) for node in nodes if node.kind == kind)


def _at(values: Sequence[Value], index: int, problem: str) -> Value:
    if not 0 <= index < len(values):
        raise GraphError(problem)
    return values[index]
