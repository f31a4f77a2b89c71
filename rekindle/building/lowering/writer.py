"""Lowering of a graph to a function: control flow, reference counting, errors.

A function has the signature ``i32 @f(ptr %context, ptr %arguments, ptr %results)``: arguments and results are arrays of
64-bit words, and it returns an error code. Every object has a slot in the stack frame, which holds a reference from the
definition to the last use. On an error, the objects in all slots are released.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any, Final

from rekindle.building.lowering.constants import int_word
from rekindle.building.lowering.parts import LibraryParts, ModuleValue
from rekindle.building.lowering.representation import EMPTY, NotBuildable, descriptor_of, is_object, register_of
from rekindle.building.lowlevel.compiler import field_index, parameter_types
from rekindle.building.runtime import exceptions
from rekindle.building.runtime.complexes import new_complex
from rekindle.building.runtime.memory import release, release_all
from rekindle.building.runtime.objects import Context, ErrorCode, Kind, fail, new_box, retain
from rekindle.codegen.llvm.vector_ir_builder import hexadecimal
from rekindle.codegen.native.writer import RegionWriter
from rekindle.errors import SourceRange
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Block, Graph, Node, Value
from rekindle.ir.types import Type

PLACE_FIELD: Final = field_index(Context, "place")

OVERFLOW: Final = (ErrorCode.INT_LIMIT, "the result is an int of more than 64 bits")
Emitter = Callable[["ProgramWriter", Node], None]


class ProgramWriter(RegionWriter):
    """Writer of one function's LLVM IR. ``emitters`` returns the function that lowers a node."""

    def __init__(self, parts: LibraryParts, emitters: Callable[[Node], Emitter]) -> None:
        super().__init__()
        self.parts = parts
        self.modules: dict[Value, ModuleValue] = {}
        """The modules among the values."""
        self.emitters = emitters
        self.node: Node | None = None
        """The node that is being translated."""
        self.reason: tuple[ErrorCode, str] = OVERFLOW
        """The error that :meth:`leave_if` reports."""
        self.is_open = True
        """Whether control reaches the place that is being written."""
        self.is_tried = False
        """Whether a ``try`` statement catches the errors of the function."""
        self._slots: dict[Value, str] = {}
        self._expiring: dict[Node, list[Value]] = defaultdict(list)
        self._objects = 0
        """Number of object slots in the frame."""
        self._cold: list[str] = []
        self._unwinding = ["unwind"]
        """The blocks to which errors branch, the innermost last."""
        self._allocas: list[str] = []

    # ----------------------------------------------------------------------------------------------------------- values

    def name(self, value: Value) -> str:
        """Return the register that holds a value, or the operand of a constant.

        Raises:
            NotBuildable: the value is not a constant and has not been defined.
        """
        known = self.names.get(value)
        if known is not None:
            return known
        if value.node.kind != "prim::Constant":
            raise NotBuildable(f"'{value.name}' has no register", value.node.range)
        constant = value.to_python()
        match descriptor_of(value.type)[0]:
            case "i":
                return str(int_word(constant))
            case "b":
                return "true" if constant else "false"
            case "f":
                assert isinstance(constant, float | int)
                return hexadecimal(float(constant))
            case _:
                return self.parts.constants.object(constant, value.type)

    def define(self, value: Value, register: str) -> None:
        """Bind a value of the graph to a register. If it is an object, the value takes ownership of the register's
        reference."""
        self.names[value] = register
        if is_object(value.type):
            slot = self._slots.get(value)
            if slot is None:
                slot = self._slots[value] = self.owned_slot()
            self.line(f"store ptr {register}, ptr {slot}")

    def define_borrowed(self, value: Value, register: str) -> None:
        """Bind a value of the graph to a register of an object that has another owner. The value gets a reference of
        its own, unless it has no uses."""
        if not value.has_uses:
            self.names[value] = register
            return
        if is_object(value.type):
            self.call(retain, register)
        self.define(value, register)

    def alloca(self, type: str, initial: str = "") -> str:
        """Return a new slot of the stack frame, of this LLVM type, with the ``initial`` value if one is given."""
        name = f"%{self.fresh('slot')}"
        self._allocas.append(f"  {name} = alloca {type}, align 8")
        if initial:
            self._allocas.append(f"  store {type} {initial}, ptr {name}")
        return name

    def owned_slot(self) -> str:
        """Return a new slot of the stack frame for an object. Error paths release the object in the slot."""
        name = f"%{self.fresh('object')}"
        self._allocas.append(f"  {name} = getelementptr ptr, ptr %objects, i64 {self._objects}")
        self._objects += 1
        return name

    def take(self, slot: str) -> str:
        """Emit a move of the object out of a slot: return the object, and empty the slot."""
        register = self.emit(f"load ptr, ptr {slot}")
        self.line(f"store ptr null, ptr {slot}")
        return register

    def converted(self, register: str, given: Type, wanted: Type) -> str:
        """Emit the conversion of a value to a wider type: a number is boxed if the wanted type may hold other
        values. An object keeps its reference; the caller owns the reference to a new box."""
        have, want = descriptor_of(given), descriptor_of(wanted)
        if have[0] in "ifb" and want == "c":
            number = register if have == "f" else self.emit(f"sitofp i64 {self.word_of(register, given)} to double")
            return self.call(new_complex, number, "0.0")
        if have[0] in "ifb" and want[0] not in "ifb":
            kind = {"i": Kind.INT, "f": Kind.FLOAT, "b": Kind.BOOL}[have[0]]
            return self.call(new_box, str(int(kind)), self.word_of(register, given))
        if have[0] == "i" and want[0] == "f":
            return self.emit(f"sitofp i64 {register} to double")
        return register

    def owned_as(self, value: Value, wanted: Type) -> str:
        """Emit the conversion of a value to a wider type; return it with a new reference that the caller owns."""
        register = self.converted(self.name(value), value.type, wanted)
        if is_object(value.type):
            self.call(retain, register)
        return register

    def word_of(self, register: str, type: Type) -> str:
        """Emit the conversion of a register to an i64, the form in which containers and calls hold a value: bits of a
        float, or an address."""
        match register_of(type):
            case "i64":
                return register
            case "double":
                return self.emit(f"bitcast double {register} to i64")
            case "i1":
                return self.emit(f"zext i1 {register} to i64")
            case _:
                return self.emit(f"ptrtoint ptr {register} to i64")

    def of_word(self, word: str, type: Type) -> str:
        """Emit the conversion of an i64 to a register of ``type``; the inverse of :meth:`word_of`."""
        match register_of(type):
            case "i64":
                return word
            case "double":
                return self.emit(f"bitcast i64 {word} to double")
            case "i1":
                return self.emit(f"icmp ne i64 {word}, 0")
            case _:
                return self.emit(f"inttoptr i64 {word} to ptr")

    def owned_word(self, value: Value, wanted: Type) -> str:
        """Emit the i64 that a container of ``wanted`` holds for a value, with a new reference that the container
        owns."""
        return self.word_of(self.owned_as(value, wanted), wanted)

    def argument_word(self, value: Value, wanted: Type, boxes: list[str]) -> str:
        """Emit the i64 of an argument; the caller keeps its reference. If the value has to be boxed, a slot with the
        box is appended to ``boxes``, which the caller releases."""
        register = self.converted(self.name(value), value.type, wanted)
        if is_object(wanted) and not is_object(value.type):
            boxes.append(self.owned_slot())
            self.line(f"store ptr {register}, ptr {boxes[-1]}")
        return self.word_of(register, wanted)

    def words(self, words: Sequence[str]) -> str:
        """Emit the stores of i64 words to an array in the stack frame; return its address."""
        slot = self.alloca(f"[{max(len(words), 1)} x i64]")
        for index, word in enumerate(words):
            self.line(f"store i64 {word}, ptr {self.emit(f'getelementptr i64, ptr {slot}, i64 {index}')}")
        return slot

    # ------------------------------------------------------------------------------------------------------------ calls

    def call(self, function: Callable[..., Any], *arguments: str) -> str:
        """Emit a call of a run-time function, which is added to the module; return its result, empty for a function
        without one."""
        self.parts.runtime.add(function)
        parameters, result = parameter_types(function)
        text = ", ".join(f"{type} {each}" for type, each in zip(parameters, arguments, strict=True))
        if result == "void":
            self.line(f"call void @{function.__name__}({text})")
            return ""
        return self.emit(f"call {result} @{function.__name__}({text})")

    def call_or_fail(self, function: Callable[..., Any], *arguments: str) -> str:
        """Emit a call of a run-time function that returns null or False on an error, which is in the context, and an
        exit for that. Return the result."""
        found = self.call(function, *arguments)
        _, result = parameter_types(function)
        self.unwind_if(found if result == "i1" else self.emit(f"icmp eq ptr {found}, null"), negated=result == "i1")
        return found

    def call_or_fail_below_zero(self, function: Callable[..., Any], *arguments: str) -> str:
        """Emit a call of a run-time function that returns an index, or -1 on an error, which is in the context, and
        an exit for that. Return the index."""
        found = self.call(function, *arguments)
        self.unwind_if(self.emit(f"icmp slt i64 {found}, 0"))
        return found

    # ----------------------------------------------------------------------------------------------------------- errors

    def leave_if(self, condition: str) -> None:
        self._fail_if(condition, self.reason)

    def leave_unless(self, condition: str) -> None:
        self._fail_if(self.emit(f"xor i1 {condition}, true"), self.reason)

    def leave_unless_exact(self, condition: str) -> None:
        reason = (ErrorCode.INT_LIMIT, "an int of more than 53 bits is divided, or compared with a float")
        self._fail_if(self.emit(f"xor i1 {condition}, true"), reason)

    def fail_if(self, condition: str, code: ErrorCode, message: str) -> None:
        """Emit an error that is raised if ``condition`` holds."""
        self._fail_if(condition, (code, message))

    def unwind_if(self, condition: str, *, negated: bool = False, has_place: bool = False) -> None:
        """Emit an exit from the function that is taken if ``condition`` holds, or with ``negated`` if it does not.
        The error is in the context, and with ``has_place`` its source location too."""
        cold, label = self._cold_block(None, has_place=has_place), self.fresh("l")
        yes, no = (label, cold) if negated else (cold, label)
        weights = "!0" if negated else "!1"
        self.line(f"br i1 {condition}, label %{yes}, label %{no}, !prof {weights}")
        self.start_block(label)

    def unwind(self) -> None:
        """Emit an exit from the function with the error in the context."""
        self.line(f"br label %{self._cold_block(None)}")
        self.is_open = False

    def _fail_if(self, condition: str, reason: tuple[ErrorCode, str]) -> None:
        cold, label = self._cold_block(reason), self.fresh("l")
        self.line(f"br i1 {condition}, label %{cold}, label %{label}, !prof !1")
        self.start_block(label)

    def _cold_block(self, reason: tuple[ErrorCode, str] | None, *, has_place: bool = False) -> str:
        """Emit a basic block that leaves the function with an error, and return its label. The block stores the
        error ``reason``, if one is given, and the source location of the current node, unless ``has_place``."""
        label = self.fresh("cold")
        self._cold.append(f"{label}:")
        if reason is not None:
            from_texts = self.parts.constants.bytes(reason[1].encode())
            self.parts.runtime.add(fail)
            self._cold.append(f"  call void @fail(ptr %context, i64 {int(reason[0])}, ptr {from_texts})")
        place = None if self.node is None or has_place else place_text(self.node.range)
        if place is not None:
            field = f"%{self.fresh('place')}"
            self._cold.append(f"  {field} = getelementptr i64, ptr %context, i64 {PLACE_FIELD}")
            self._cold.append(f"  store ptr {self.parts.constants.bytes(place.encode())}, ptr {field}")
        self._cold.append(f"  br label %{self._unwinding[-1]}")
        return label

    def call_on_errors(self, function: str, words: Sequence[str]) -> None:
        """Begin a region, up to :meth:`end_of_call_on_errors` in the same block. An error in it calls ``function`` with
        ``words``, LLVM values of 64 bits, before it propagates. If ``function`` fails, its error propagates instead."""
        for each in (exceptions.caught_exception, exceptions.raise_exception, release):
            self.parts.runtime.add(each)
        arguments, label = self.words(words), self.fresh("on_error")
        names = {each: f"%{self.fresh(each)}" for each in ("at", "place", "error", "code", "failed")}
        self._cold += [
            f"{label}:",
            f"  {names['at']} = getelementptr i64, ptr %context, i64 {PLACE_FIELD}",
            f"  {names['place']} = load ptr, ptr {names['at']}",
            f"  {names['error']} = call ptr @caught_exception(ptr %context)",
            f"  {names['code']} = call i32 @{function}(ptr %context, ptr {arguments}, ptr {self.alloca('i64')})",
            f"  {names['failed']} = icmp ne i32 {names['code']}, 0",
            f"  br i1 {names['failed']}, label %{label}.done, label %{label}.again",
            f"{label}.again:",
            f"  call void @raise_exception(ptr %context, ptr {names['error']})",
            f"  store ptr {names['place']}, ptr {names['at']}",
            f"  br label %{label}.done",
            f"{label}.done:",
            f"  call void @release(ptr {names['error']})",
            f"  br label %{self._unwinding[-1]}",
        ]
        self._unwinding.append(label)

    def end_of_call_on_errors(self) -> None:
        self._unwinding.pop()

    # ----------------------------------------------------------------------------------------------------- control flow

    def nodes(self, block: Block) -> None:
        """Lower the nodes of a block, and release objects after their last use."""
        self._find_last_uses(block)
        for value in block.inputs:
            self._release_unused(value)
        unwinding = len(self._unwinding)
        for node in block.nodes:
            if not self.is_open:
                del self._unwinding[unwinding:]
                return
            if node.kind == "prim::Constant":
                continue
            self.node = node
            self.reason = OVERFLOW
            match node.kind:
                case "prim::If":
                    self.branch(node)
                case "prim::Loop":
                    self.loop(node)
                case _:
                    self.emitters(node)(self, node)
            if self.is_open:
                for value in self._expiring.pop(node, ()):
                    self.release(value)
                for value in node.outputs:
                    self._release_unused(value)

    def release(self, value: Value) -> None:
        """Emit the release of the object in the slot of a value, if it has a slot."""
        slot = self._slots.get(value)
        if slot is not None:
            self.call(release, self.names[value])
            self.line(f"store ptr null, ptr {slot}")

    def _release_unused(self, value: Value) -> None:
        if not value.has_uses and value in self.names:
            self.release(value)

    def _find_last_uses(self, block: Block) -> None:
        values = [*block.inputs, *(value for node in block.nodes for value in node.outputs)]
        for value in values:
            last: Node | None = None
            for use in value.uses:
                user = block.ancestor_of(use.user)
                if user is not None and (last is None or last.is_before(user)):
                    last = user
            if last is not None:
                self._expiring[last].append(value)

    def block_outputs(self, block: Block, types: Sequence[Type], values: Sequence[Value]) -> list[str]:
        """Emit the conversion of the outputs of a block to ``types``, with new references, and the release of the
        block's other objects. Return the registers of the outputs."""
        registers = [self.owned_as(value, type) for value, type in zip(values, types, strict=True)]
        for value in self._expiring.pop(block.return_node, ()):
            self.release(value)
        return registers

    def branch(self, node: Node) -> None:
        """Lower ``prim::If`` to basic blocks."""
        first, second, joined = self.fresh("then"), self.fresh("else"), self.fresh("join")
        self.line(f"br i1 {self.name(node.input)}, label %{first}, label %{second}")
        types = [value.type for value in node.outputs]
        ends: list[tuple[str, list[str]]] = []
        for label, block in zip((first, second), node.blocks, strict=True):
            self.start_block(label)
            self.is_open = True
            self.nodes(block)
            if self.is_open:
                ends.append(("", self.block_outputs(block, types, block.outputs)))
                ends[-1] = (self.block, ends[-1][1])
                self.line(f"br label %{joined}")
        self.is_open = bool(ends)
        if not ends:
            return
        self.start_block(joined)
        for index, value in enumerate(node.outputs):
            incoming = ", ".join(f"[{registers[index]}, %{label}]" for label, registers in ends)
            self.define_phi(value, incoming)

    def define_phi(self, value: Value, incoming: str) -> None:
        # A phi is at the start of its block: the stores of slots go after the last one.
        name = f"%{self.fresh()}"
        at = len(self.lines)
        while self.lines[at - 1].lstrip().startswith("store "):
            at -= 1
        self.lines.insert(at, f"  {name} = phi {register_of(value.type)} {incoming}")
        self.define(value, name)

    def loop(self, node: Node) -> None:
        """Lower ``prim::Loop`` to basic blocks."""
        loop = LoopView(node)
        head, inside, end = self.fresh("loop"), self.fresh("body"), self.fresh("end")
        limit = self.name(loop.trip_count)
        types = [value.type for value in loop.parameters]
        starts = [self.owned_as(value, type) for value, type in zip(loop.initial, types, strict=True)]
        condition = self.name(loop.condition)
        before = self.block
        self.line(f"br label %{head}")
        self.start_block(head)
        place = len(self.lines)
        counter, again = f"%{self.fresh()}", f"%{self.fresh()}"
        carried = [f"%{self.fresh()}" for _ in types]
        goes_on = again
        if not loop.is_endless:
            goes_on = self.emit(f"and i1 {self.emit(f'icmp slt i64 {counter}, {limit}')}, {again}")
        self.line(f"br i1 {goes_on}, label %{inside}, label %{end}")
        self.start_block(inside)
        self.names[loop.iteration] = counter
        for value, register in zip(loop.parameters, carried, strict=True):
            self.define(value, register)
        self.nodes(loop.body)
        edges = [(before, "0", condition, starts)]
        if self.is_open:
            following = self.block_outputs(loop.body, types, loop.following)
            next_condition = self.name(loop.next_condition)
            successor = self.emit(f"add i64 {counter}, 1")
            edges.append((self.block, successor, next_condition, following))
            self.line(f"br label %{head}")
        phis = []
        columns = [("i64", counter, [edge[1] for edge in edges]), ("i1", again, [edge[2] for edge in edges])]
        columns += [
            (register_of(type), register, [edge[3][index] for edge in edges])
            for index, (type, register) in enumerate(zip(types, carried, strict=True))
        ]
        for type, register, incoming in columns:
            pairs = ", ".join(f"[{each}, %{edge[0]}]" for each, edge in zip(incoming, edges, strict=True))
            phis.append(f"  {register} = phi {type} {pairs}")
        self.lines[place:place] = phis
        self.is_open = True
        self.start_block(end)
        for value, register in zip(node.outputs, carried, strict=True):
            self.define(value, register)

    # -------------------------------------------------------------------------------------------------------- function

    def write(self, graph: Graph, name: str) -> None:
        """Emit the function ``@name`` of a graph, and add it to ``parts``. Inputs other than modules are passed as
        i64 words."""
        self.start_block("body")
        for index, value in enumerate(each for each in graph.inputs if each not in self.modules):
            place = self.emit(f"getelementptr i64, ptr %arguments, i64 {index}")
            self.names[value] = self.of_word(self.emit(f"load i64, ptr {place}"), value.type)
        self.nodes(graph.block)
        if self.is_open:
            types = [value.type for value in graph.outputs]
            for index, register in enumerate(self.block_outputs(graph.block, types, graph.outputs)):
                place = self.emit(f"getelementptr i64, ptr %results, i64 {index}")
                self.line(f"store i64 {self.word_of(register, types[index])}, ptr {place}")
            self.line("ret i32 0")
        self.parts.runtime.add(release_all)
        self.parts.runtime.declarations["llvm.memset"] = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
        lines = [
            f"define internal i32 @{name}(ptr %context, ptr %arguments, ptr %results) {{",
            "start:",
            f"  %objects = alloca [{max(self._objects, 1)} x ptr], align 8",
            f"  call void @llvm.memset.p0.i64(ptr %objects, i8 0, i64 {8 * self._objects}, i1 false)",
            *self._allocas,
            "  br label %body",
            *self.lines,
            *self._cold,
            "unwind:",
            f"  call void @release_all(ptr %objects, i64 {self._objects})",
            "  %code = load i64, ptr %context",
            "  %short = trunc i64 %code to i32",
            "  ret i32 %short",
            "}",
            "",
        ]
        self.parts.definitions.append("\n".join(lines))


def place_text(range: SourceRange) -> str | None:
    """Return a source location as error messages show it: the name of the file, the line and its text. Return None
    if it is unknown, or in the package's own library code."""
    found = range.original
    if not found.is_known or found.source.filename is None or found.source.is_library:
        return None
    line = found.source.text.split("\n")[found.line - found.source.first_line].strip()
    return f"  at {PurePath(found.source.filename).name}, line {found.line}: {line}"


def empty_register(type: Type) -> str:
    """Return an operand for a value that no path defines."""
    return EMPTY[register_of(type)]
