"""The body of a function: its nodes as statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from rekindle.errors import UnsupportedError
from rekindle.frontend.python_printer.constants import ConstantTable, format_constant
from rekindle.frontend.python_printer.expression_inlining import inlined_nodes, is_constant, node_before
from rekindle.frontend.python_printer.expressions import write_expression
from rekindle.frontend.python_printer.names import Names, TypeNames, as_identifier, spell
from rekindle.frontend.python_printer.tagged_text import TaggedText
from rekindle.ir.control_flow import LoopView
from rekindle.ir.graph import Block, Node, Value
from rekindle.ir.types import ANY, NUMBER, FunctionType, TupleType, Type, UnionBase, UnionType, is_open_number

_LONG_LINE: Final = 40
"""Number of characters of an expression, including indentation, from which it becomes a variable before it is used in
another."""


class FunctionPrinter:
    """Printer of the graph of one function to ``out``. It calls ``mention`` with every type in the text. ``importable``
    means that the text is to be read back; ``names`` are the names in use, to which those of the variables are
    added."""

    def __init__(
        self,
        out: TaggedText,
        table: ConstantTable,
        name_of: TypeNames,
        mention: Callable[[Type], None],
        importable: bool,
        level: int,
        names: Names,
    ) -> None:
        self.out = out
        self.table = table
        self.name_of = name_of
        self.mention = mention
        self.importable = importable
        self.level = level
        self.names = names
        self.inlined: set[Node] = set()
        self._written: dict[Value, str | TaggedText] = {}
        """Text of each value: a variable, or the expression that computes it."""
        self._split_up_to: dict[Node, int] = {}
        self._annotated: set[Value] = set()

    # ------------------------------------------------------------------------------------------------------- values

    def use(self, value: Value) -> str | TaggedText:
        """Return the text for a use of ``value``: a variable or an inlined expression."""
        return self._written[value]

    def uses(self, values: Sequence[Value]) -> list[str | TaggedText]:
        return [self._written[value] for value in values]

    def assign(self, value: Value, written: str | TaggedText) -> None:
        self._written[value] = written

    def name(self, values: Sequence[Value]) -> None:
        """Give each value a new variable, named as in the author's source if that is known."""
        for value in values:
            self.assign(value, self.names.fresh(as_identifier(value.base_name) if value.has_name else "_"))

    def type(self, type: Type) -> str:
        self.mention(type)
        return spell(type, self.name_of)

    def constant(self, node: Node) -> str:
        """Return a ``prim::Constant`` as an expression."""
        type = node.output.type
        if isinstance(type, FunctionType):
            return self.type(type)
        value = node.output.to_python()
        return format_constant(value, type, self.type, self.table)

    # --------------------------------------------------------------------------------------------------- statements

    def body(self, block: Block) -> None:
        """Print the body of a function. It begins with the constants whose text is long, each as a variable.

        Raises:
            UnsupportedError: the text is to be read back, and source cannot express a node.
        """
        self.inlined |= inlined_nodes(block)
        self.level += 1
        for constant in _constants(block):
            self._constant_statement(constant)
        self._block(block, has_more=bool(block.outputs))
        end = block.return_node
        self.out.range = end.range
        self._mention_types(end)
        self._split_long(end)
        if block.outputs:
            self._line("return ", *self._comma(block.outputs))
        self.level -= 1

    def _block(self, block: Block, has_more: bool) -> None:
        if block.is_empty and not has_more:
            self._line("pass")
        for node in block.nodes:
            if not is_constant(node):
                self._node(node)

    def _node(self, node: Node) -> None:
        outer, self.out.range = self.out.range, node.range
        self._mention_types(node)
        self._split_long(node)
        self._STATEMENTS.get(node.kind, FunctionPrinter._expression)(self, node)
        self.out.range = outer

    def _mention_types(self, node: Node) -> None:
        for value in (*node.inputs, *node.outputs):
            self.mention(value.type)

    def _line(self, *pieces: str | TaggedText) -> None:
        self.out.add("  " * self.level, *pieces, "\n")

    def _comma(self, values: Sequence[Value]) -> list[str | TaggedText]:
        """Return the parts of ``a, b``, a list of variables."""
        return [piece for value in values for piece in (", ", self.use(value))][1:]

    def _expression(self, node: Node) -> None:
        text = TaggedText(node.range)
        write_expression(text, node, self)
        if node in self.inlined:
            self.assign(node.output, text)
        else:
            self._define(node, text)

    def _constant_statement(self, node: Node) -> None:
        text = TaggedText(node.range).add(self.constant(node))
        self.mention(node.output.type)
        if self._is_long(text):
            self._define(node, text)
        else:
            self.assign(node.output, text)

    def _define(self, node: Node, text: str | TaggedText) -> None:
        """Write ``a, b = text``, which defines the outputs of a node."""
        self.name(node.outputs)
        if node.outputs:
            self._line(*self._comma(node.outputs), " = ", text)
        else:
            self._line(text)

    # ---------------------------------------------------------------------------------------------- long expressions

    def _is_long(self, text: str | TaggedText) -> bool:
        return len(text) + 2 * self.level >= _LONG_LINE

    def _is_expression(self, value: Value) -> bool:
        return value.node in self.inlined and not is_constant(value.node)

    def _split_long(self, node: Node) -> None:
        """Print the inputs of ``node`` that are long expressions as variables, and before each the expressions that are
        evaluated earlier, so that the order of evaluation stays."""
        for value in node.inputs:
            if self._is_expression(value) and self._is_long(self.use(value)):
                found: list[Value] = []
                ((user, offset),) = value.uses
                self._expressions_up_to(user, offset, found)
                for split in reversed(found):
                    self._define(split.node, self.use(split))

    def _expressions_up_to(self, user: Node, offset: int, found: list[Value]) -> None:
        """Append to ``found`` the inlined expressions among the inputs of ``user`` up to ``offset``, and those that
        precede ``user`` in its enclosing expressions, the last first. Those of earlier calls are excluded."""
        while True:
            done = self._split_up_to.get(user)
            for index in range(offset, -1 if done is None else done, -1):
                value = user.inputs[index]
                if self._is_expression(value):
                    found.append(value)
            self._split_up_to[user] = offset
            if done is not None or user not in self.inlined:
                return
            ((user, outer),) = user.output.uses
            offset = outer - 1  # the input itself is being written

    # -------------------------------------------------------------------------------------------------- control flow

    def _assign_all(self, targets: Sequence[Value], values: Sequence[Value]) -> None:
        """Write ``a, b = c, d``, one statement that assigns all variables at once."""
        if targets:
            self._line(*self._comma(targets), " = ", *self._comma(values))

    def _assign_each(self, targets: Sequence[Value], values: Sequence[Value]) -> None:
        """Write ``a: Optional[int] = c``, one statement for each variable."""
        for target, value in zip(targets, values, strict=True):
            type = self.type(target.type) if self._needs_annotation(target, value) else None
            if type is not None and value.type != target.type and is_open_number(target.type):
                # torch.jit joins the types of the values that a loop carries, whatever the variable is annotated as.
                self._line(self.use(target), f" = unchecked_cast({type}, ", self.use(value), ")")
            else:
                self._line(self.use(target), "" if type is None else f": {type}", " = ", self.use(value))

    def _needs_annotation(self, target: Value, value: Value) -> bool:
        if isinstance(target.type, UnionBase):
            first = target not in self._annotated
            self._annotated.add(target)
            return first
        return target.type != value.type

    def _if(self, node: Node) -> None:
        self.name(node.outputs)
        self._line("if ", self.use(node.input), ":")
        for index, block in enumerate(node.blocks):
            if index:
                self._line("else:")
            self.level += 1
            self._block(block, has_more=bool(node.outputs))
            self._end_block(block)
            says_types = index == 0 and _say_their_types(node.outputs)
            if says_types or any(map(_is_cast, node.outputs, block.outputs)):
                # Only a single target can say its type.
                for output, value in zip(node.outputs, block.outputs, strict=True):
                    type = self.type(output.type)
                    if says_types and isinstance(output.type, UnionBase):
                        self._line(self.use(output), f" : {type} = ", self.use(value))
                    elif _is_cast(output, value):
                        self._line(self.use(output), f" = unchecked_cast({type}, ", self.use(value), ")")
                    else:
                        self._line(self.use(output), " = ", self.use(value))
            else:
                self._assign_all(node.outputs, block.outputs)
            self.level -= 1

    def _end_block(self, block: Block) -> None:
        self._split_long(block.return_node)

    def _loop(self, node: Node) -> None:
        count, condition, *initial = node.inputs
        body = node.blocks[0]
        trip, *carried = body.inputs
        is_for = _is_for(node)
        self.name(node.outputs)
        for inner, outer in zip(carried, node.outputs, strict=True):
            self.assign(inner, self.use(outer))
        self._assign_each(node.outputs, initial)
        self.name([trip])
        if is_for:
            self._line("for ", self.use(trip), " in range(", self.use(count), "):")
            targets, results = carried, body.outputs[1:]
        else:
            # A while does not use the variable that counts the iterations: it holds the condition instead.
            self._assign_all([trip], [condition])
            self._line("while ", self.use(trip), ":")
            targets, results = list(body.inputs), body.outputs
        self.level += 1
        self._block(body, has_more=bool(targets))
        self._end_block(body)
        self._assign_all(targets, results)
        self.level -= 1

    def _unpack(self, node: Node) -> None:
        """Write ``a, b, = x``. The comma at the end makes it an unpacking even with one name.
        Without outputs, write ``x``."""
        self.name(node.outputs)
        if node.outputs:
            self._line(*self._comma(node.outputs), ", = ", self.use(node.input))
        else:
            self._line(self.use(node.input))

    # -------------------------------------------------------------------------------------------------------- others

    def _set_attribute(self, node: Node) -> None:
        base, value = self.uses(node.inputs)
        self._line(base, f".{node.get_string('name')} = ", value)

    def _fork(self, node: Node) -> None:
        what = node.kind.partition("::")[2]
        self._within("__forked_function" if what == "fork" else f"__{what}_function", what, node)

    def _try(self, node: Node) -> None:
        if self.importable:
            raise UnsupportedError(
                "'try' cannot be saved: TorchScript does not know it",
                node.range,
                hint="test for the condition beforehand; the program runs here as it is",
            )
        self._within("__tried_function", "ops.prim.Try", node)

    def _within(self, basename: str, what: str, node: Node) -> None:
        """Write the subgraph of ``node`` as an inner function, which uses the variables of this one, and
        ``what(function)``, the call that runs it."""
        name = self.names.fresh(basename)
        graph = node.get_graph("Subgraph")
        self._line(f"def {name}():")
        for inner, outer in zip(graph.inputs, node.inputs, strict=True):
            self.assign(inner, self.use(outer))
        self.body(graph.block)
        self.out.range = node.range
        self._define(node, f"{what}({name})")

    def _enter(self, node: Node) -> None:
        manager = self.use(node.input)
        if node.output.has_uses:
            self.name(node.outputs)
            self._line("with ", manager, " as ", self.use(node.output), ":")
        else:
            self._line("with ", manager, ":")
        self.level += 1

    def _exit(self, node: Node) -> None:
        if node_before(node).kind == "prim::Enter":
            self._line("pass")
        self.level -= 1

    def _container_index(self, node: Node) -> None:
        container, key = self.uses(node.inputs)
        self.name(node.outputs)
        self._line(
            *(self.use(node.output), f" : {self.type(node.output.type)} = "),
            *(container, "[", key, "]"),
        )

    _STATEMENTS: Final[dict[str, Callable[[FunctionPrinter, Node], None]]] = {
        "prim::If": _if,
        "prim::Loop": _loop,
        "prim::TupleUnpack": _unpack,
        "prim::ListUnpack": _unpack,
        "prim::SetAttr": _set_attribute,
        "prim::fork": _fork,
        "prim::awaitable": _fork,
        "prim::Try": _try,
        "prim::Enter": _enter,
        "prim::Exit": _exit,
        "prim::ModuleContainerIndex": _container_index,
    }


def _is_cast(target: Value, value: Value) -> bool:
    """Return whether ``value`` must be cast when a branch assigns it to ``target``, because no annotation can express
    the target's type: an Any, a Scalar that gets a number of one type, or a tuple of numbers that gets one of narrower
    types."""
    if isinstance(target.type, TupleType):
        return value.type != target.type and any(map(is_open_number, target.type.elements))
    return target.type in (NUMBER, ANY) and value.type != target.type


def _say_their_types(outputs: Sequence[Value]) -> bool:
    """Return whether the types of the variables that an ``if`` assigns must be printed. A reader infers an Optional
    from the branches, unless it is the only variable."""
    union = UnionBase if len(outputs) == 1 else UnionType
    return any(isinstance(output.type, union) for output in outputs)


def _constants(block: Block) -> dict[Node, None]:
    """Return the constants that the function uses, in the order of their first uses."""
    found: dict[Node, None] = {}

    def collect(block: Block) -> None:
        for node in (*block.nodes, block.return_node):
            found.update((value.node, None) for value in node.inputs if is_constant(value.node))
            for inner in node.blocks:
                collect(inner)

    collect(block)
    return found


def _is_for(node: Node) -> bool:
    """Return whether a loop is printed as ``for``, since it counts; else it is printed as ``while``.

    Raises:
        UnsupportedError: the loop both counts and tests a condition, which no statement of source does.
    """
    view = LoopView(node)
    if _is_true(view.condition) and _is_true(view.next_condition):
        return view.counts
    if view.counts:
        raise UnsupportedError(
            "a loop that an optimization has merged with another cannot be written as source", node.range
        )
    return False


def _is_true(value: Value) -> bool:
    return _is_constant_of(value, True)


def _is_constant_of(value: Value, number: int) -> bool:
    found = value.node.attributes.get("value") if is_constant(value.node) else None
    return isinstance(found, int) and found == number
