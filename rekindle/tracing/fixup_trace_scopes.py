"""Outline the marked calls of submodules in a recording: each call becomes a call of a new method.

Before, with ``x`` the input::

    %w = prim::TracedAttr[path=["fc", "weight"]]()
    %s = prim::TracedModuleForward[path=["fc"]]()
      block0():
        %y = aten::linear(%x, %w, %none)
        -> ()
    return (%y)

After, in the root's ``forward``::

    %fc = prim::GetAttr[name="fc"](%self)
    %y = prim::CallMethod[name="forward"](%fc, %x)
    return (%y)

and in that of ``fc``::

    %w = prim::GetAttr[name="weight"](%self)
    %y = aten::linear(%x, %w, %none)
    return (%y)

The parameters of a method are the values from outside that its call used, and its results are the values that are used
after the call. They may differ from the parameters and results of the Python method.

The assignment of an attribute (``prim::TracedSetAttr``) stays where it was recorded, in the method of the module that
has the attribute. If the previous value is used later, the assignment moves to the end of the root's method (a *late*
write).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rekindle.errors import SourceRange
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.operators.schema import Argument, FunctionSchema
from rekindle.ir.types import NONE, ClassType, OptionalType, TupleType, Type
from rekindle.program.modules.module import ScriptModule
from rekindle.program.sources.definition import clean_up
from rekindle.tracing.recording.recorder import ATTRIBUTE, SCOPE, WRITE, Path, Recorder


@dataclass(slots=True)
class _Interface:
    """The inputs that one marked call takes from outside, and the values of it that are used outside, in order of first
    use."""

    inputs: dict[Value, None] = field(default_factory=dict)
    outputs: dict[Value, None] = field(default_factory=dict)


@dataclass(slots=True)
class _Callee:
    """The method that was created for one marked call."""

    record: GraphFunction
    inputs: list[Value]
    """The values of the recording that it takes."""
    outputs: list[Value]
    """The values of the recording that it returns."""


def lower_to_methods(
    recorder: Recorder, outputs: Sequence[Value], module: ScriptModule, name: str, names: Sequence[str]
) -> GraphFunction:
    """Add the recording to ``module`` as the method ``name``, or ``name`` with a number if that is taken, and its
    marked calls as methods of submodules. Return the method. ``names`` are the names of its parameters."""
    lowering = _Lowering(recorder.graph, outputs, module)
    return lowering.method(recorder.graph.block, (), module, recorder.graph.inputs, outputs, name, names).record


def lower_to_function(recorder: Recorder, outputs: Sequence[Value], name: str, names: Sequence[str]) -> GraphFunction:
    """Return the recording as a function called ``name``, with parameters called ``names``."""
    lowering = _Lowering(recorder.graph, outputs, None)
    record = GraphFunction(name)
    lowering.fill(record, recorder.graph.block, (), None, recorder.graph.inputs, outputs, names)
    return record


class _Lowering:
    def __init__(self, recording: Graph, outputs: Sequence[Value], root: ScriptModule | None) -> None:
        self.root = root
        self.recording = recording
        self.late = _late_writes(recording, outputs)
        self.interfaces = _interfaces(recording, outputs, self.late)

    def method(
        self,
        block: Block,
        path: Path,
        module: ScriptModule,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        name: str,
        names: Sequence[str] = (),
    ) -> _Callee:
        type = module.script_type
        name = _free_name(type, name)
        record = type.methods[name] = GraphFunction(f"{type.name}.{name}")
        self.fill(record, block, path, type, inputs, outputs, names)
        return _Callee(record, list(inputs), list(outputs))

    def fill(
        self,
        record: GraphFunction,
        block: Block,
        path: Path,
        owner: ClassType | None,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        names: Sequence[str],
    ) -> None:
        """Define ``record`` as the nodes of ``block``: its graph and its schema. ``owner`` is the class of its
        ``self``, at ``path``."""
        body = _Body(self, path, owner)
        for index, value in enumerate(inputs):
            given = names[index] if index < len(names) else _name(value)
            body.values[value] = body.graph.add_input(given, value.type)
            body.values[value].recorded_type = value.recorded_type
        for node in block.nodes:
            body.add(node)
        result = body.result(outputs)
        if block is self.recording.block:
            for node in self.late:
                body.write(node)
        body.graph.add_output(result)
        clean_up(body.graph)
        arguments = [Argument(_plain_name(value, i), value.type) for i, value in enumerate(body.graph.inputs)]
        returned = body.graph.outputs[0].type
        record.define(body.graph, FunctionSchema(record.basename, "", tuple(arguments), (Argument("", returned),)))

    def part(self, path: Path) -> ScriptModule:
        """Return the compiled module at ``path``."""
        module = self.root
        for name in path:
            module = module._modules[name]  # type: ignore[union-attr, assignment]
        assert isinstance(module, ScriptModule)
        return module


class _Body:
    """The graph of a method under construction."""

    def __init__(self, lowering: _Lowering, path: Path, owner: ClassType | None) -> None:
        self.lowering = lowering
        self.path = path
        self.graph = Graph()
        self.values: dict[Value, Value] = {}
        """Values of this graph, by the corresponding value of the recording."""
        self.parts: dict[Path, Value] = {}
        """Submodules reached from ``self``, by the path from the root."""
        if owner is not None:
            self.parts[path] = self.graph.add_input("self", owner)

    def add(self, node: Node) -> None:
        if node.kind == SCOPE:
            self.add_call(node)
        elif node.kind == WRITE:
            if node not in self.lowering.late:
                self.write(node)
        elif node.kind not in (ATTRIBUTE, "prim::Constant"):
            self.copy(node)

    def write(self, node: Node) -> None:
        """Append the assignment of an attribute."""
        *owner, name = _path(node)
        inputs = [self.attribute(tuple(owner), node.range), self.value(node.input, node.range)]
        made = self.graph.create("prim::SetAttr", inputs, outputs=0, attributes={"name": name}, range=node.range)
        self.graph.append_node(made)

    def copy(self, node: Node) -> Node:
        inputs = {value: self.value(value, node.range) for value in _taken(node)}
        return self.graph.insert_clone(node, self.values, inputs.__getitem__)

    def add_call(self, node: Node) -> None:
        """Create a method from the block of a marked call, and append a call of that method."""
        interface = self.lowering.interfaces[node]
        path = _path(node)
        outputs = list(interface.outputs)
        part = self.lowering.part(path)
        callee = self.lowering.method(node.blocks[0], path, part, list(interface.inputs), outputs, "forward")
        owner = self.attribute(path, node.range)
        inputs = [owner, *(self.value(value, node.range) for value in callee.inputs)]
        returned = callee.record.schema.returns[0].type
        attributes = {"name": callee.record.basename}
        call = self.graph.create("prim::CallMethod", inputs, types=[returned], attributes=attributes, range=node.range)
        self.graph.append_node(call)
        if len(outputs) == 1:
            self.values[outputs[0]] = call.output
            call.output.recorded_type = outputs[0].recorded_type
        elif outputs:
            types = [value.type for value in outputs]
            unpack = self.graph.create("prim::TupleUnpack", [call.output], types=types, range=node.range)
            for value, made in zip(outputs, self.graph.append_node(unpack).outputs, strict=True):
                self.values[value] = made
                made.recorded_type = value.recorded_type

    def value(self, value: Value, range: SourceRange) -> Value:
        """Return the value in this graph that corresponds to a value of the recording. A constant or the read of an
        attribute is inserted if it is missing."""
        found = self.values.get(value)
        if found is not None:
            return found
        node = value.node
        if node.kind == ATTRIBUTE:
            attribute = self.attribute(_path(node), node.range)
            attribute.recorded_type = value.recorded_type
            return attribute
        assert node.kind == "prim::Constant", f"{node.kind} is used before it is computed"
        return self.copy(node).output

    def attribute(self, path: Path, range: SourceRange) -> Value:
        """Return ``self.a.b`` for a path from the root module, which must be at or below the module of this method. A
        missing read is inserted; one of an Optional is cast to the type without None."""
        found = self.parts.get(path)
        if found is None:
            owner = self.attribute(path[:-1], range)
            assert isinstance(owner.type, ClassType)
            type = owner.type.attribute_type(path[-1])
            assert type is not None
            node = self.graph.create("prim::GetAttr", [owner], types=[type], attributes={"name": path[-1]}, range=range)
            found = self.graph.append_node(node).output
            if isinstance(type, OptionalType):
                # The run had it.
                cast = self.graph.create("prim::unchecked_cast", [found], types=[type.element], range=range)
                found = self.graph.append_node(cast).output
            self.parts[path] = found
        return found

    def result(self, outputs: Sequence[Value]) -> Value:
        """Return the one output of the method: the value of one output, a tuple of several, or None if there are
        none."""
        values = [self.value(value, value.node.range) for value in outputs]
        if len(values) == 1:
            return values[0]
        if not values:
            return self.graph.append_node(self.graph.create("prim::Constant", types=[NONE])).output
        type: Type = TupleType(tuple(value.type for value in values))
        return self.graph.append_node(self.graph.create("prim::TupleConstruct", values, types=[type])).output


# ------------------------------------------------------------------------------------------------------------- analysis


def _late_writes(recording: Graph, outputs: Sequence[Value]) -> dict[Node, None]:
    """Return the attribute assignments that move to the end of the root's method, grouped by attribute: all assignments
    of an attribute whose previous value is used after one of them, or that is assigned in a module without a path to
    it."""
    written: dict[Path, list[Node]] = {}
    late: dict[Node, None] = {}

    def use(value: Value) -> None:
        if value.node.kind == ATTRIBUTE:
            late.update(dict.fromkeys(written.get(_path(value.node), ())))

    def visit(block: Block, within: Path) -> None:
        for node in block.nodes:
            for value in node.inputs:
                use(value)
            if node.kind == SCOPE:
                visit(node.blocks[0], _path(node))
            elif node.kind == WRITE:
                path = _path(node)
                written.setdefault(path, []).append(node)
                if not _is_below(path, within):
                    late[node] = None

    visit(recording.block, ())
    for value in outputs:
        use(value)
    return {node: None for nodes in written.values() for node in nodes if _path(node) in {_path(n) for n in late}}


def _interfaces(recording: Graph, outputs: Sequence[Value], late: Mapping[Node, None]) -> dict[Node, _Interface]:
    """Return the inputs and outputs of every marked call. Uses by ``late`` writes are uses in the root's method."""
    found: dict[Node, _Interface] = {}
    homes: dict[Value, tuple[Node, ...]] = {}

    def use(value: Value, within: tuple[Node, ...]) -> None:
        kind = value.node.kind
        if kind == "prim::Constant":
            return  # every method has its own
        home = homes.get(value, ())
        shared = 0
        while shared < len(home) and shared < len(within) and home[shared] is within[shared]:
            shared += 1
        for scope in home[shared:]:
            found[scope].outputs.setdefault(value)
        for scope in reversed(within[shared:]):
            if kind == ATTRIBUTE and _is_below(_path(value.node), _path(scope)):
                break  # it has it from its own module, and so have those around it
            found[scope].inputs.setdefault(value)

    def visit(block: Block, within: tuple[Node, ...]) -> None:
        for node in block.nodes:
            if node.kind == SCOPE:
                found[node] = _Interface()
                visit(node.blocks[0], (*within, node))
                continue
            for value in _taken(node):
                use(value, () if node in late else within)
            for value in node.outputs:
                homes[value] = within

    visit(recording.block, ())
    for value in outputs:
        use(value, ())
    return found


def _taken(node: Node) -> list[Value]:
    """Return the values that a node and those in its blocks capture, in order of first use."""
    made = {value for block in node.blocks for value in block.inputs}
    used: dict[Value, None] = dict.fromkeys(node.inputs)
    for block in node.blocks:
        for inner in block.nodes:
            used.update(dict.fromkeys(_taken(inner)))
            made.update(inner.outputs)
        used.update(dict.fromkeys(block.outputs))
    return [value for value in used if value not in made]


def _path(node: Node) -> Path:
    names = node.attributes["path"]
    assert isinstance(names, list)
    return tuple(str(name) for name in names)


def _is_below(path: Path, owner: Path) -> bool:
    return path[: len(owner)] == owner


def _free_name(type: ClassType, name: str) -> str:
    if name not in type.methods:
        return name
    number = 1
    while f"{name}{number}" in type.methods:
        number += 1
    return f"{name}{number}"


def _plain_name(value: Value, index: int) -> str:
    name = _name(value).partition(".")[0]
    return name if name.isidentifier() else f"argument_{index}"


def _name(value: Value) -> str:
    return value.name if value.has_name else ""
