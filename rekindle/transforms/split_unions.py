"""Split values that are a Tensor on some paths and a number on others.

``total = 0; for v in x: total = total + v`` carries a ``Union[Tensor, int]``, which has no derivative and no batch.
Each such value becomes three: a Tensor, a number, and whether the Tensor is the one that counts::

    %total : Union[Tensor, int] = …                     %tensor : Tensor, %number : int, %is_tensor : bool = …
    %a : bool = prim::isinstance[types=[Tensor]](%total)     becomes     %a is %is_tensor
    %b : Tensor = prim::unchecked_cast(%total)                           %b is %tensor

Other users keep the whole value; dead code elimination removes what has no user.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import BOOL, COMPLEX, FLOAT, TENSOR, TensorType, TupleType, Type, number_beside_tensor
from rekindle.passes import DeadCodeElimination, LowerSimpleTuples, run_passes


class _Parts(NamedTuple):
    tensor: Value
    number: Value
    is_tensor: Value


def split_unions(graph: Graph, name: str) -> Node | None:
    """Split values that are a Tensor or a number. Results of ``graph`` become Tensors: the program raises a TypeError
    that names the function ``name`` if one is a number.

    Return a node that still takes such a value whole, from a container or an argument; None if there is none.
    """
    if not any(number_beside_tensor(output.type) is not None for node in graph.all_nodes() for output in node.outputs):
        return None
    run_passes(graph, (LowerSimpleTuples(),))
    splitting = _Splitting(graph)
    splitting.visit(graph.block)
    splitting.require_tensors(f"{name} returns a number here, not a Tensor")
    run_passes(graph, (DeadCodeElimination(),))
    return splitting.takes_whole


@dataclass(slots=True)
class _Splitting:
    graph: Graph
    parts: dict[Value, _Parts] = field(default_factory=dict)
    takes_whole: Node | None = None
    """A node that takes a value out of a container which may be a Tensor or a number."""

    def visit(self, block: Block) -> None:
        for node in list(block.nodes):
            if node.kind == "prim::Loop":
                self._visit_loop(node)
                continue
            for inner in node.blocks:
                self.visit(inner)
            if node.kind == "prim::If":
                self._visit_if(node)
            elif node.kind == "prim::isinstance":
                self._visit_isinstance(node)
            elif node.kind == "prim::unchecked_cast":
                self._visit_cast(node)

    def _visit_if(self, node: Node) -> None:
        for at, output in enumerate(list(node.outputs)):
            number = number_beside_tensor(output.type)
            if number is None:
                continue
            for block in node.blocks:
                with self.graph.inserting_at_end(block):
                    for part in self._parts_of(block.outputs[at], number):
                        block.add_output(part)
            self.parts[output] = _Parts(*map(node.add_output, (TENSOR, number, BOOL)))

    def _visit_loop(self, node: Node) -> None:
        """Add loop variables for the parts of a value, in addition to the value itself."""
        [body] = node.blocks
        carried: list[tuple[int, Type]] = []
        for at, output in enumerate(list(node.outputs)):
            number = number_beside_tensor(output.type)
            if number is None:
                continue
            carried.append((at, number))
            with self.graph.inserting_before(node):
                for part in self._parts_of(node.inputs[at + 2], number):
                    node.add_input(part)
            types = (TENSOR, number, BOOL)
            self.parts[body.inputs[at + 1]] = _Parts(*(body.add_input(type=type) for type in types))
            self.parts[output] = _Parts(*map(node.add_output, types))
        self.visit(body)
        with self.graph.inserting_at_end(body):
            for at, number in carried:
                for part in self._parts_of(body.outputs[at + 1], number):
                    body.add_output(part)

    def _visit_isinstance(self, node: Node) -> None:
        parts = self.parts.get(node.input)
        types = node["types"]
        if parts is None or not isinstance(types, list):
            return
        with self.graph.inserting_before(node):
            if types == [TENSOR]:
                answer = parts.is_tensor
            else:
                is_number = self.graph.insert("aten::__not__", [parts.is_tensor], range=node.range)
                test = self.graph.create(
                    node.kind, [parts.number], types=[BOOL], attributes={"types": types}, range=node.range
                )
                among = self.graph.insert_node(test).output
                answer = self.graph.insert("aten::__and__", [is_number, among], range=node.range)
                if TENSOR in types:
                    answer = self.graph.insert("aten::__or__", [answer, parts.is_tensor], range=node.range)
        node.output.replace_all_uses_with(answer)

    def _visit_cast(self, node: Node) -> None:
        given, made = node.input, node.output
        number = number_beside_tensor(made.type)
        with self.graph.inserting_before(node):
            if number is not None:
                self.parts[made] = self._parts_of(given, number)
            elif given in self.parts:
                parts = self.parts[given]
                is_tensor = isinstance(made.type, TensorType)
                made.replace_all_uses_with(parts.tensor if is_tensor else self._cast(parts.number, made.type))
            elif number_beside_tensor(given.type) is not None and isinstance(made.type, TensorType):
                self.takes_whole = node

    def _parts_of(self, value: Value, number: Type) -> _Parts:
        """Return the tensor part and the number part of a value, and which of them counts; the number has the type
        ``number``. Nodes that they need are inserted."""
        if value in self.parts:
            parts = self.parts[value]
            return parts._replace(number=self._cast(parts.number, number))
        if isinstance(value.type, TensorType):
            return _Parts(value, self._any_number(number), self.graph.insert_constant(True))
        if number_beside_tensor(value.type) is None:
            return _Parts(self._any_tensor(), self._cast(value, number), self.graph.insert_constant(False))
        return self._split_at_run_time(value, number)

    def _split_at_run_time(self, value: Value, number: Type) -> _Parts:
        """Insert a check of the type of a value from a container or an argument at run time; return the parts of the
        value. Its node is noted in ``takes_whole``."""
        graph = self.graph
        self.takes_whole = value.node
        types: list[Type] = [TENSOR]
        test = graph.create(
            "prim::isinstance", [value], types=[BOOL], attributes={"types": types}, range=value.node.range
        )
        is_tensor = graph.insert_node(test).output
        node = graph.insert_node(graph.create("prim::If", [is_tensor], outputs=0, range=value.node.range))
        with graph.inserting_at_end(node.add_block()):
            for part in (self._cast(value, TENSOR), self._any_number(number)):
                node.blocks[0].add_output(part)
        with graph.inserting_at_end(node.add_block()):
            for part in (self._any_tensor(), self._cast(value, number)):
                node.blocks[1].add_output(part)
        return _Parts(node.add_output(TENSOR), node.add_output(number), is_tensor)

    def _cast(self, value: Value, type: Type) -> Value:
        if value.type == type:
            return value
        cast = self.graph.create("prim::unchecked_cast", [value], types=[type], range=value.node.range)
        return self.graph.insert_node(cast).output

    def _any_tensor(self) -> Value:
        return self.graph.insert("aten::zeros", [[]])

    def _any_number(self, type: Type) -> Value:
        zero = {FLOAT: 0.0, COMPLEX: 0j, BOOL: False}.get(type, 0)  # type: ignore[call-overload]
        return self._cast(self.graph.insert_constant(zero), type)

    def require_tensors(self, text: str) -> None:
        """Insert checks that each result that may be a Tensor or a number is a Tensor, also in a tuple."""
        block = self.graph.block
        with self.graph.inserting_at_end(block):
            for at, output in enumerate(list(block.outputs)):
                made = output.node
                if output in self.parts:
                    block.replace_output(at, self._checked(output, text))
                elif made.kind == "prim::TupleConstruct" and any(item in self.parts for item in made.inputs):
                    items = [self._checked(item, text) if item in self.parts else item for item in made.inputs]
                    type = TupleType(tuple(item.type for item in items))
                    tuple_ = self.graph.create(made.kind, items, types=[type], range=made.range)
                    block.replace_output(at, self.graph.insert_node(tuple_).output)

    def _checked(self, value: Value, text: str) -> Value:
        graph, parts = self.graph, self.parts[value]
        node = graph.insert_node(graph.create("prim::If", [parts.is_tensor], outputs=0, range=value.node.range))
        node.add_block()
        with graph.inserting_at_end(node.add_block()):
            said = [graph.insert_constant(each) for each in (text, "builtins.TypeError")]
            graph.insert_node(graph.create("prim::RaiseException", said, outputs=0, range=value.node.range))
        return parts.tensor
