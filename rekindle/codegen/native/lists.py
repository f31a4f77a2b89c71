"""Lowering of operators on lists of numbers, and the tables of all operators of native code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rekindle.analysis.constants import constant_int
from rekindle.analysis.integer_ranges import IntegerRanges, is_index_of_range
from rekindle.codegen.llvm.vector_ir_builder import hexadecimal
from rekindle.codegen.native.arithmetic import EMITTERS, is_cheap
from rekindle.codegen.native.list_ownership import ListClasses
from rekindle.codegen.native.native_types import NativeType, native_type_of
from rekindle.codegen.native.numbers import NUMBER_EMITTERS, dispatch, has_cases, has_cast
from rekindle.codegen.native.writer import RegionWriter, is_counted, known_kind, literal, raises
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Graph, Node, Value
from rekindle.ir.types import INT

ListEmitter = Callable[["NativeWriter", Node], None]

LIST_EMITTERS: Final[dict[str, ListEmitter]] = {}
"""By the qualified name of an operator."""


_UNDEFINED: Final = {"i64": "0", "double": hexadecimal(0.0), "i1": "false", "ptr": "null"}
"""Registers for values that no path to a read defines: they are never used."""


_MAX_SPECULATED: Final = 3
"""Number of operators in the blocks of an ``if`` up to which both blocks are run: as many as LLVM speculates, which it
does only where no exit is among them."""

_SPECULATED: Final = (NativeType.INT, NativeType.FLOAT)
"""Types that are selected. A bool decides where the program goes next, as after a ``break``, and would be tested twice.
"""


def emits(*names: str) -> Callable[[ListEmitter], ListEmitter]:
    def register(emitter: ListEmitter) -> ListEmitter:
        LIST_EMITTERS.update(dict.fromkeys(names, emitter))
        return emitter

    return register


class NativeWriter(RegionWriter):
    """Writer of whole regions, with lists and strings."""

    def __init__(self) -> None:
        super().__init__()
        self._lists = ListClasses(Graph())
        self._ranges = IntegerRanges(Graph())
        self._has_room: set[Node] = set()
        """The nodes that append to a list with reserved memory."""

    def function(self, graph: Graph, name: str) -> str:
        self._lists = ListClasses(graph)
        self._ranges = IntegerRanges(graph)
        return super().function(graph, name)

    def is_own(self, list: Value) -> bool:
        """Return whether the region itself creates ``list``."""
        return self._lists.is_own(list)

    def has_room(self, node: Node) -> bool:
        """Return whether memory for the element that ``node`` appends has been reserved."""
        return node in self._has_room

    def before_loop(self, loop: LoopView) -> None:
        """Emit the reservation of memory for the elements that the loop appends to lists, if their number is known."""
        if not is_counted(loop):
            return
        appends = [node for node in loop.body.nodes if node.kind == "aten::append"]
        everywhere = [node for node in loop.node.inner_nodes() if node.kind == "aten::append"]
        for list in dict.fromkeys(node.inputs[0] for node in appends):
            of_list = [node for node in everywhere if self._lists.may_be_same(node.inputs[0], list)]
            is_made_inside = any(loop.node.contains(node.inputs[0].node) for node in of_list)
            if not self.is_own(list) or is_made_inside or not set(of_list) <= set(appends):
                continue
            count = self.name(loop.trip_count)
            if len(of_list) > 1:
                count = self.checked("smul", count, str(len(of_list)))
            self.leave_unless(self.emit(f"call i1 @list_reserve(ptr %arena, ptr {self.name(list)}, i64 {count})"))
            self._has_room.update(of_list)

    def operation(self, node: Node) -> None:
        if node.kind == "prim::ListConstruct":
            construct(self, node)
            return
        if node.kind == "prim::Uninitialized":
            self.bind(node.output, [_UNDEFINED[type] for type in known_kind(node.output).registers])
            return
        for value in node.inputs:
            if value.type == INT:
                self.ranges[self.name(value)] = self._ranges.of(value)
        name = qualified_name(node)
        if node.kind == "aten::__derive_index" and is_index_of_range(node):
            self.names[node.output] = self.element_of_range(*map(self.name, node.inputs))
        elif node.kind in NUMBER_EMITTERS:
            NUMBER_EMITTERS[node.kind](self, node)
        elif has_cases(node):
            dispatch(self, node)
        elif name in EMITTERS:
            self.names[node.output] = EMITTERS[name](self, *map(self.name, node.inputs))
        else:
            LIST_EMITTERS[name](self, node)

    def is_speculated(self, node: Node) -> bool:
        inner = [each for block in node.blocks for each in block.nodes if each.kind != "prim::Constant"]
        return (
            0 < len(inner) <= _MAX_SPECULATED
            and not any(map(raises, node.blocks))
            and all(known_kind(output) in _SPECULATED for output in node.outputs)
            and all(is_cheap(qualified_name(each), [_operand(value) for value in each.inputs]) for each in inner)
        )

    def element_of_range(self, index: str, start: str, step: str) -> str:
        """Emit an element of a range that exists: it lies between the ends, so that nothing overflows."""
        return self.emit(f"add nsw i64 {start}, {self.emit(f'mul nsw i64 {index}, {step}')}")

    # ----------------------------------------------------------------------------------------------------------- lists

    def new_list(self, capacity: str, kind: NativeType) -> str:
        made = self.emit(f"call ptr @list_new(ptr %arena, i64 {capacity}, i64 {int(kind.element)})")
        self.leave_if(self.emit(f"icmp eq ptr {made}, null"))
        return made

    def append(self, list: str, word: str) -> None:
        self.leave_unless(self.emit(f"call i1 @list_append(ptr %arena, ptr {list}, i64 {word})"))

    def taken(self, call: str, type: str = "i64") -> str:
        """Emit a call that may fail, and an exit from the region if it does; return its result, of LLVM type
        ``type``."""
        pair = self.emit(f"call {{ {type}, i1 }} {call}")
        self.leave_unless(self.emit(f"extractvalue {{ {type}, i1 }} {pair}, 1"))
        return self.emit(f"extractvalue {{ {type}, i1 }} {pair}, 0")

    def own_place(self, list: str, index: str) -> str:
        """Emit the address of an element of a list that the region itself creates."""
        return self.taken(f"@own_list_place(ptr {list}, i64 {index})", "ptr")


def _operand(value: Value) -> str:
    """Return a constant as LLVM's text, empty for other values."""
    constant = constant_int(value)
    return "" if constant is None else literal(constant)


def qualified_name(node: Node) -> str:
    """Return the operator of a node with its overload, such as ``aten::add.int``; empty if it is unknown. For an
    overload on a Scalar, the operand's type determines the name."""
    operator = node.operator
    name = "" if operator is None else operator.schema.qualified_name
    if name.endswith(".Scalar") and len(node.inputs) == 1:
        kind = native_type_of(node.input.type)
        if kind is not None and not kind.is_list:
            return name.removesuffix("Scalar") + kind.name.lower()
    return name


def is_native(node: Node) -> bool:
    """Return whether native code supports a node without blocks, with values of these types."""
    kinds = [native_type_of(value.type) for value in (*node.inputs, *node.outputs)]
    if None in kinds:
        return False
    if node.kind == "prim::Uninitialized" or has_cases(node):
        return True
    if node.kind in NUMBER_EMITTERS:
        return has_cast(node)
    if NativeType.NUMBER in kinds:
        return False
    if node.kind == "prim::ListConstruct":
        return True
    name = qualified_name(node)
    return name in EMITTERS or name in LIST_EMITTERS


def construct(w: NativeWriter, node: Node) -> None:
    kind = known_kind(node.output)
    made = w.new_list(str(len(node.inputs)), kind)
    for value in node.inputs:
        w.append(made, w.as_word(w.name(value), kind.element))
    w.names[node.output] = made


@emits("aten::len.t")
def length(w: NativeWriter, node: Node) -> None:
    w.names[node.output] = w.emit(f"load i64, ptr {w.name(node.input)}, !tbaa !5")


@emits("aten::__getitem__.t", "aten::select.t")
def get(w: NativeWriter, node: Node) -> None:
    list, index = map(w.name, node.inputs)
    kind = known_kind(node.output)
    if not w.is_own(node.inputs[0]):
        word = w.taken(f"@list_get(ptr %arena, ptr {list}, i64 {index})")
        w.names[node.output] = w.from_word(word, kind)
    elif kind.is_list:
        place = w.own_place(list, index)
        w.names[node.output] = w.emit(f"load ptr, ptr {place}, !tbaa !6, !nonnull !7, !dereferenceable !8, !align !9")
    else:
        word = w.emit(f"load i64, ptr {w.own_place(list, index)}, !tbaa !6")
        w.names[node.output] = w.from_word(word, kind)


@emits("aten::_set_item.t")
def put(w: NativeWriter, node: Node) -> None:
    list, index, value = map(w.name, node.inputs)
    *_, item = node.inputs
    word = w.as_word(value, known_kind(item))
    if w.is_own(node.inputs[0]):
        w.line(f"store i64 {word}, ptr {w.own_place(list, index)}, !tbaa !6")
    else:
        w.leave_unless(w.emit(f"call i1 @list_set(ptr %arena, ptr {list}, i64 {index}, i64 {word})"))
    _same(w, node, list)


@emits("aten::append.t")
def append(w: NativeWriter, node: Node) -> None:
    list, value = map(w.name, node.inputs)
    _, item = node.inputs
    word = w.as_word(value, known_kind(item))
    if w.has_room(node):
        w.line(f"call void @list_push(ptr {list}, i64 {word})")
    else:
        w.append(list, word)
    _same(w, node, list)


def _same(w: NativeWriter, node: Node, list: str) -> None:
    """Bind the output to the list to which the node writes."""
    if node.outputs:
        w.names[node.output] = list


@emits("aten::pop.t")
def pop(w: NativeWriter, node: Node) -> None:
    list, index = map(w.name, node.inputs)
    word = w.taken(f"@list_pop(ptr %arena, ptr {list}, i64 {index})")
    w.names[node.output] = w.from_word(word, known_kind(node.output))


@emits("aten::mul.left_t")
def repeat(w: NativeWriter, node: Node) -> None:
    list, times = map(w.name, node.inputs)
    _repeated(w, node, list, times)


@emits("aten::mul.right_")
def repeat_reversed(w: NativeWriter, node: Node) -> None:
    times, list = map(w.name, node.inputs)
    _repeated(w, node, list, times)


def _repeated(w: NativeWriter, node: Node, list: str, times: str) -> None:
    made = w.emit(f"call ptr @list_repeat(ptr %arena, ptr {list}, i64 {times})")
    w.leave_if(w.emit(f"icmp eq ptr {made}, null"))
    w.names[node.output] = made


@emits("aten::list.t", "aten::copy.t")
def copy(w: NativeWriter, node: Node) -> None:
    _repeated(w, node, w.name(node.input), "1")
