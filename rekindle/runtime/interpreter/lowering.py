"""From the blocks of a graph to a list of instructions.

Control flow becomes jumps::

    %y : int = prim::If(%c)            |     JumpIfFalse move(0) -> L3
      block0():                        |     3 = add 1, 2
        %4 : int = aten::add(%a, %b)   |     Jump -> L4
        -> (%4)                        | L3: 3 = Move move(1)
      block1():                        | L4: = Store move(3)
        -> (%a)                        |

A `for` loop does not look at its condition, which is true; a `while` loop keeps no counter. A loop with both does
both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rekindle.analysis.liveness import Liveness, liveness
from rekindle.errors import InternalError, SchemaError
from rekindle.ir.attributes import is_writable
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.graph_function import GraphFunction, called_function
from rekindle.ir.operators.registry import REGISTRY, Operation, is_foreign
from rekindle.ir.types import ClassType, InterfaceType, UnionBase
from rekindle.ops.registration.libraries import library_constructor, missing_operation, object_method
from rekindle.ops.tensor.profiling import guard, profile
from rekindle.runtime.interpreter.instructions import CALLS, Instruction, Opcode
from rekindle.runtime.strategies.bailouts import Bailout

WITHOUT_MEMORY = frozenset(
    {"IntType", "FloatType", "ComplexType", "BoolType", "NumberType", "NoneType", "DeviceObjType"}
)
"""Types of values that need no clearing: keeping them keeps nothing alive."""

FORKED = "<forked function>"
"""The name of a forked function in tracebacks."""
AWAITED = "<awaited function>"
"""The name of an awaited function in tracebacks."""


@dataclass(slots=True)
class LoweredCode:
    """The result of :func:`lower`: instructions, the initial contents of registers, and the registers of constants.

    ``non_owning`` are the registers that keep nothing alive: those of numbers, and of constants, which live as long as
    the code. ``values`` are the values that each register holds at some time.
    """

    instructions: list[Instruction] = field(default_factory=list)
    template: list[object] = field(default_factory=list)
    constants: list[int] = field(default_factory=list)
    non_owning: set[int] = field(default_factory=set)
    values: list[list[Value]] = field(default_factory=list)


def lower(graph: Graph) -> LoweredCode:
    """Lower ``graph`` to instructions for the interpreter. The arguments are in the first registers.

    Raises:
        SchemaError: nothing is registered that runs one of the nodes.
    """
    lowering = _Lowering(liveness(graph))
    lowering.whole(graph)
    return lowering.result


def is_true(value: Value) -> bool:
    """Return whether ``value`` is the constant true."""
    return value.to_python() is True


class _Lowering:
    def __init__(self, live: Liveness) -> None:
        self.live = live
        self.result = LoweredCode()
        self.registers: dict[Value, int] = {}
        self.planned: dict[Value, int] = {}
        """The registers of values that are yet to be defined."""
        self.occupants: dict[int, Value] = {}
        """Values that a loop carries in a register from the previous iteration."""
        self.preloaded: set[Value] = set()
        """Constants: their registers hold them from the start, and are never cleared."""

    # ------------------------------------------------------------------------------------------------------ registers

    def new_register(self, content: object = None) -> int:
        self.result.template.append(content)
        self.result.values.append([])
        register = len(self.result.template) - 1
        self.result.non_owning.add(register)
        return register

    def define(self, value: Value) -> int:
        """Return the register to which ``value`` is written: the planned one, or a new one."""
        register = self.planned.pop(value, None)
        if register is None:
            register = self.new_register()
        self.assign(value, register)
        return register

    def assign(self, value: Value, register: int) -> None:
        """Record that ``register`` holds ``value``."""
        self.registers[value] = register
        self.result.values[register].append(value)
        if value.type.kind not in WITHOUT_MEMORY:
            self.result.non_owning.discard(register)

    def define_outputs(self, node: Node) -> tuple[int | None, ...]:
        """Return the registers to which the outputs of ``node`` are written; None for unused outputs."""
        assert node.owning_block is not None
        used = self.live.last_use[node.owning_block]
        return tuple(self.define(output) if output in used else None for output in node.outputs)

    # ------------------------------------------------------------------------------------------------------- emitting

    def emit(
        self,
        opcode: Opcode,
        node: Node,
        inputs: Sequence[Value] = (),
        outputs: Iterable[int | None] = (),
        *,
        dying: frozenset[Value] | set[Value] = frozenset(),
        name: str = "",
    ) -> Instruction:
        """Append an instruction that reads ``inputs`` and moves those of them that are ``dying``."""
        registers = tuple(self.registers[value] for value in inputs)
        last = {value: index for index, value in enumerate(inputs)}
        moves = tuple(
            value in dying and last[value] == index and value not in self.preloaded
            for index, value in enumerate(inputs)
        )
        written = tuple(outputs)
        cleared = tuple(
            register
            for value, register, moved in zip(inputs, registers, moves, strict=True)
            if moved and (opcode in CALLS or register not in written) and value.type.kind not in WITHOUT_MEMORY
        )
        instruction = Instruction(opcode, name or opcode.value, node, registers, moves, written, cleared)
        self.result.instructions.append(instruction)
        return instruction

    @property
    def here(self) -> int:
        """The index of the next instruction."""
        return len(self.result.instructions)

    def drop(self, values: Sequence[Value], node: Node) -> None:
        """Emit an instruction that clears the registers of ``values``, which die here without being an instruction's
        last use."""
        held = [
            value
            for value in values
            if value.type.kind not in WITHOUT_MEMORY and value in self.registers and value not in self.preloaded
        ]
        if held:
            self.emit(Opcode.DROP, node, held, dying=set(held))

    def move(self, pairs: Sequence[tuple[Value, int]], node: Node, dying: set[Value]) -> None:
        """Emit one instruction that writes values to registers, except those that are there already."""
        needed = [(value, register) for value, register in pairs if self.registers[value] != register]
        staying = {value for value, register in pairs if self.registers[value] == register}
        if needed:
            values, registers = zip(*needed, strict=True)
            self.emit(Opcode.MOVE, node, values, registers, dying=dying - staying)

    # --------------------------------------------------------------------------------------------------------- blocks

    def whole(self, graph: Graph) -> None:
        for value in graph.inputs:
            self.define(value)
        self.contents(graph.block)
        end = graph.return_node
        self.emit(Opcode.STORE, end, end.inputs, dying=self.live.dies_at.get(end, set()))

    def contents(self, block: Block) -> None:
        """Lower the nodes of a block, without its outputs."""
        self.drop(self.live.dies_at_entry.get(block, ()), block.owning_node or block.param_node)
        for node in block.nodes:
            self.node(node)

    def node(self, node: Node) -> None:
        match node.kind:
            case "prim::Constant":
                self.constant(node)
            case "prim::If":
                self.branch(node)
            case "prim::Loop":
                self.loop(node)
            case "prim::CallFunction":
                self.call_function(node)
            case "prim::CallMethod":
                self.call_method(node)
            case "prim::CreateObject" if constructor_call(node) is not None:
                pass  # the call of __init__ makes the object
            case "prim::fork":
                self.deferred(Opcode.FORK, node, FORKED)
            case "prim::awaitable":
                self.deferred(Opcode.DEFER, node, AWAITED)
            case "prim::awaitable_wait":
                self._call(Opcode.AWAIT, node, node.inputs, None, "")
            case "aten::wait":
                self._call(Opcode.WAIT, node, node.inputs, None, "")
            case "prim::profile":
                self.operation(node, profile(node))
            case "prim::Guard":
                self.operation(node, guard(node))
            case "prim::BailOut":
                self.bailout(node)
            case "prim::BailoutTemplate":
                pass  # bailouts know it
            case _:
                self.operation(node)

    # ---------------------------------------------------------------------------------------------------------- nodes

    def constant(self, node: Node) -> None:
        """Assign a register to a constant, unless it is only called as a function or unused. The register holds it from
        the start; for a mutable constant, an instruction copies it at each execution."""
        value = node.output.to_python()
        if is_writable(value):
            self.emit(Opcode.CONSTANT, node, (), self.define_outputs(node)).constant = value
            return
        if any(use.user.kind != "prim::CallFunction" or use.offset > 0 for use in node.output.uses):
            self.registers[node.output] = self.new_register(value)
            self.result.values[-1].append(node.output)
            self.result.constants.append(self.registers[node.output])
            self.preloaded.add(node.output)

    def operation(self, node: Node, operation: Operation | None = None) -> None:
        """Lower a call of the operator of ``node``, or of ``operation`` in its place."""
        if operation is None:
            operation = self._operation_of(node)
        dying = self.live.dies_at.get(node, set())
        outputs = self.define_outputs(node)
        name = node.kind.rpartition("::")[2]
        instruction = self.emit(Opcode.OPERATION, node, node.inputs, outputs, dying=dying, name=name)
        instruction.operation = operation

    def _operation_of(self, node: Node) -> Operation:
        operator = node.operator
        if operator is not None:
            return operator.operation_of(node)
        if not is_foreign(node.kind):
            raise no_operator(node)
        return missing_operation(node)

    def call_function(self, node: Node) -> None:
        callee, *arguments = node.inputs
        function = called_function(node)
        if function is None:
            raise InternalError(f"prim::CallFunction calls a value of type {callee.type}, which is not a function")
        self._call(Opcode.CALL, node, arguments, function, function.basename)

    def call_method(self, node: Node) -> None:
        name = node.get_string("name")
        receiver, *_ = node.inputs
        owner = receiver.type
        if isinstance(owner, ClassType):
            if owner.is_torchbind_class:
                if constructor_call(receiver.node) is node:
                    self.construct(node, owner)
                    return
                self.operation(node, object_method(owner.name, name))
                return
            method = owner.methods.get(name)
            if method is None:
                raise InternalError(f"prim::CallMethod: class '{owner}' has no method '{name}'")
        elif isinstance(owner, (InterfaceType, UnionBase)):
            method = None  # the class of the object determines the method
        else:
            raise InternalError(f"prim::CallMethod: a value of type {owner} has no methods")
        self._call(Opcode.CALL_METHOD, node, node.inputs, method, name)

    def construct(self, node: Node, owner: ClassType) -> None:
        """Lower the call of ``__init__`` of a C++ class: it makes the object, which is unused before."""
        receiver, *arguments = node.inputs
        dying = self.live.dies_at.get(node, set())
        result = None if receiver in dying else self.define(receiver)
        made = self.emit(Opcode.OPERATION, node, arguments, [result], dying=dying - {receiver}, name="__init__")
        made.operation = library_constructor(owner.name)
        if node.output.has_uses:
            self.assign(node.output, self.new_register(None))

    def deferred(self, opcode: Opcode, node: Node, name: str) -> None:
        """Lower a fork or an await: its graph is compiled as a function of its own, and stays part of the node."""
        function = GraphFunction.of(node.get_graph("Subgraph"), name)
        self._call(opcode, node, node.inputs, function, "")

    def _call(
        self, opcode: Opcode, node: Node, inputs: Sequence[Value], function: GraphFunction | None, name: str
    ) -> None:
        dying = self.live.dies_at.get(node, set())
        outputs = self.define_outputs(node)
        name = f"{opcode.value}[{name}]" if name else opcode.value
        self.emit(opcode, node, inputs, outputs, dying=dying, name=name).function = function

    def bailout(self, node: Node) -> None:
        """Lower a guard and its continuation. The instruction reads all inputs of the node but the second, the
        template: the guarded value, and the captured values."""
        guarded, template, *captured = node.inputs
        inputs = [guarded, *captured]
        dying = self.live.dies_at.get(node, set()) - {template}
        index = node["index"]
        outputs = self.define_outputs(node)
        name = f"{Opcode.BAILOUT.value}[{index}]"
        self.emit(Opcode.BAILOUT, node, inputs, outputs, dying=dying, name=name).constant = Bailout(node)

    # ------------------------------------------------------------------------------------------------------- branches

    def branch(self, node: Node) -> None:
        """Lower an ``if``: the condition, the first block, a jump over the second, the second block."""
        assert node.owning_block is not None
        used = self.live.last_use[node.owning_block]
        joined: dict[int, int] = {}
        for index, output in enumerate(node.outputs):
            if output in used:
                planned = self.planned.pop(output, None)
                joined[index] = self.new_register() if planned is None else planned
        inside = set[Value]().union(*(self.live.last_use[block] for block in node.blocks))
        test = self.emit(Opcode.JUMP_IF_FALSE, node, node.inputs, dying=self.live.dies_at.get(node, set()) - inside)
        start = self.here
        self._arm(node.blocks[0], joined)
        if self.here == start:  # nothing to jump over
            test.opcode, test.name = Opcode.JUMP_IF_TRUE, Opcode.JUMP_IF_TRUE.value
            self._arm(node.blocks[1], joined)
        else:
            over = self.emit(Opcode.JUMP, node)
            test.target = self.here
            self._arm(node.blocks[1], joined)
            if self.here == test.target:  # nothing to jump over
                self.result.instructions.pop()
                test.target -= 1
            over.target = self.here
        if test.opcode is Opcode.JUMP_IF_TRUE:
            test.target = self.here
        for index, register in joined.items():
            self.assign(node.outputs[index], register)

    def _arm(self, block: Block, joined: dict[int, int]) -> None:
        """Lower one block of a prim::If, whose outputs are written to the registers ``joined``."""
        for index, register in joined.items():
            self.plan(block, index, register)
        self.contents(block)
        end = block.return_node
        self.move([(block.outputs[i], r) for i, r in joined.items()], end, self.live.dies_at.get(end, set()))

    # ---------------------------------------------------------------------------------------------------------- loops

    def loop(self, node: Node) -> None:
        """Lower a loop: the initial values, the test for no iteration, the body, the test for another, the drops."""
        view = LoopView(node)
        limit, condition = view.trip_count, view.condition
        assert node.owning_block is not None
        used = self.live.last_use[node.owning_block]
        carried = self._carried(node, used)
        inside = self.live.last_use[view.body]
        dying = {value for value in self.live.dies_at.get(node, set()) if value not in inside}
        first = [(view.initial[index], register) for index, register in carried.items()]
        kept = {limit, condition, *(value for value, _ in first)}
        self.drop([value for value in node.inputs if value in dying - kept], node)
        self.move(first, node, dying - {limit, condition})
        exits: list[Instruction] = []
        if not is_true(condition):
            exits.append(self.emit(Opcode.JUMP_IF_FALSE, node, [condition], dying=dying))
        if view.counts:
            counter = self.define(view.iteration)
            exits.append(self.emit(Opcode.LOOP_START, node, [limit], [counter]))
        start = self.here
        exits += self._body(view, carried, start)
        for instruction in exits:
            instruction.target = self.here
        for index, register in carried.items():
            self.assign(node.outputs[index], register)
        unused = [node.outputs[index] for index in carried if node.outputs[index] not in used]
        self.drop([*self.live.dies_after.get(node, ()), *unused], node)

    def _carried(self, node: Node, used: dict[Value, Node]) -> dict[int, int]:
        """Return the registers of the used loop-carried values, by the index of the output."""
        carried: dict[int, int] = {}
        for index, variable in enumerate(LoopView(node).carried):
            if variable.result in used or variable.parameter.has_uses:
                planned = self.planned.pop(variable.result, None)
                carried[index] = self.new_register() if planned is None else planned
        return carried

    def _body(self, loop: LoopView, carried: dict[int, int], start: int) -> list[Instruction]:
        """Lower the body of a loop and the test for another iteration. Return the instructions that leave the loop,
        whose targets the caller sets."""
        node, body = loop.node, loop.body
        around = self.occupants
        self.occupants = around | {register: loop.parameters[index] for index, register in carried.items()}
        for index, register in carried.items():
            self.assign(loop.parameters[index], register)
            self.plan(body, index + 1, register)
        self.contents(body)
        self.occupants = around
        end = body.return_node
        again = loop.next_condition
        dying = self.live.dies_at.get(end, set())
        following = [(loop.following[index], register) for index, register in carried.items()]
        if again in body.inputs and any(
            register == self.registers[again] for value, register in following if value is not again
        ):  # the move below would overwrite it
            spare = self.new_register()
            self.emit(Opcode.MOVE, end, [again], [spare])
            self.assign(again, spare)
        self.move(following, end, dying - {again})
        exits: list[Instruction] = []
        if loop.counts:
            if not is_true(again):
                exits.append(self.emit(Opcode.JUMP_IF_FALSE, node, [again], dying=dying))
            next_one = self.emit(Opcode.LOOP_NEXT, node, [loop.trip_count], [self.registers[loop.iteration]])
        elif is_true(again):
            next_one = self.emit(Opcode.JUMP, node)
        else:
            next_one = self.emit(Opcode.JUMP_IF_TRUE, node, [again], dying=dying)
        next_one.target = start
        return exits

    # ------------------------------------------------------------------------------------------- sharing of registers

    def plan(self, block: Block, index: int, register: int) -> None:
        """Assign ``register`` to output ``index`` of ``block``, if the output is computed in this block and the
        register is free at that point."""
        value = block.outputs[index]
        node = value.node
        if node.owning_block is not block or node.kind in ("prim::Param", "prim::Constant") or value in self.planned:
            return
        occupant = self.occupants.get(register)
        if occupant is not None:
            if self.live.is_live_after(occupant, node):
                return
            # A loop writes to the register before its body, or its own test, is done with what was there.
            if node.kind == "prim::Loop":
                loop = LoopView(node)
                if occupant in (loop.trip_count, loop.condition) or occupant in self.live.last_use[loop.body]:
                    return
        self.planned[value] = register


def constructor_call(node: Node) -> Node | None:
    """Return the call of ``__init__`` on an object of a class written in C++ that ``prim::CreateObject`` makes.

    None for other nodes, and where something else uses the object before.
    """
    if node.kind != "prim::CreateObject":
        return None
    type = node.output.type
    if not isinstance(type, ClassType) or not type.is_torchbind_class:
        return None
    users = [use.user for use in node.output.uses]
    for call in users:
        if call.kind == "prim::CallMethod" and call.get_string("name") == "__init__":
            if call.owning_block is node.owning_block and not any(user.is_before(call) for user in users):
                return call
    return None


def no_operator(node: Node) -> SchemaError:
    """Return the error for a node that has no implementation."""
    types = ", ".join(str(value.type) for value in node.inputs)
    known = REGISTRY.overloads(node.kind)
    if not known:
        return SchemaError(f"there is no operator '{node.kind}' (called with ({types}))", node.range, frames=())
    candidates = "\n".join(f"  {operator.schema}" for operator in known)
    return SchemaError(f"no operator '{node.kind}' takes ({types}). There are:\n{candidates}", node.range, frames=())
