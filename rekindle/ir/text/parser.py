"""Text -> graphs: the inverse of :mod:`rekindle.ir.text.printer`.

The grammar; lines and indentation do not matter, but a comment belongs to the node that ends before it::

    text      = graph ("with" kind "=" graph)*
    graph     = "graph" "(" values? ")" ":" statement* "return" "(" names? ")"
    statement = (values? "=")? call "(" names? ")" ("," "scope" ":" …)? comment? block*
    call      = kind attributes? | "^" word attributes "(" … ")"
    block     = word "(" values? ")" ":" statement* "->" "(" names? ")"
    values    = %name (":" type)? ("," %name (":" type)?)*
    names     = %name ("," %name)*
    kind      = word "::" word
    attributes = "[" word "=" attribute ("," word "=" attribute)* "]"
    comment   = "#" file ":" line ":" column

A value of which no type is given has the one that the operator's schema says, else it is a Tensor. Where a value was
printed by its number, it keeps the number.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NoReturn

from rekindle.errors import UNKNOWN_RANGE, ParseError, Source, SourceRange
from rekindle.ir.graph import AttributeValue, Block, Graph, Node, Value
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.text.constant_parser import ConstantReader, GivenTensors
from rekindle.ir.text.printer import CONSTANT_ARGUMENTS, PYTHON_CALL, SUBGRAPH
from rekindle.ir.text.type_parser import Resolver, TypeReader
from rekindle.ir.types import (
    TENSOR,
    Bindings,
    FunctionType,
    Type,
    match_variables,
    substitute,
)
from rekindle.syntax.lexer import COMMENT, EOF, GRAPH, IDENT, VALUE, Lexer, Token


def parse_graph(
    text: str, *, tensors: GivenTensors | None = None, types: Resolver | None = None, structured: bool = True
) -> Graph:
    r"""Return the graph in ``text``. If ``text`` was printed, printing the graph yields it again.

    Args:
        tensors: the constants whose text is not exact: those that
            :func:`~rekindle.ir.text.printer.tensor_constants` returned for the printed graph, or the constants by
            the names of their values. Without it, a tensor of one element is parsed from its text, and any other
            remains opaque: the graph can be printed but not run.
        types: returns the class, enum or NamedTuple of a qualified name. An unknown name becomes an incomplete class.
        structured: whether ``prim::If`` and ``prim::Loop`` must have the inputs, blocks and results of a finished
            graph. The emitter makes others as an intermediate form.

    Raises:
        ParseError: the text is not a graph, or the tensors are not those of the text.

    Example:
        >>> from rekindle.ir.text.parser import parse_graph
        >>> text = "graph(%x : Tensor):\n  %1 : Tensor = aten::neg(%x)\n  return (%1)\n"
        >>> str(parse_graph(text)) == text
        True
    """
    lexer = Lexer(Source(text), GRAPH)
    type_reader = TypeReader(lexer, types)
    names = (token.text[1:] for token in lexer.tokens if token.kind == VALUE)
    first_unique = 1 + max((int(name) for name in names if _is_number(name)), default=-1)
    given = _Input(lexer, type_reader, ConstantReader(lexer, type_reader, tensors), first_unique, structured)
    graph = _GraphReader(given).read()
    if lexer.cur.kind != EOF:
        lexer.fail(f"Expected the end of the text but found {lexer.cur}.")
    given.constants.finish()
    return graph


# -------------------------------------------------------------------------------------------------------- the structure


@dataclass(slots=True)
class _Input:
    """State shared by the readers of a graph and of its sub-graphs."""

    lexer: Lexer
    types: TypeReader
    constants: ConstantReader
    first_unique: int
    """First number after those of all unnamed values: named values are numbered from here on."""
    structured: bool


@dataclass(slots=True)
class _Frame:
    """A block that is being parsed: the names that it defines, and its last node so far."""

    block: Block
    names: list[str] = field(default_factory=list)
    node: Node | None = None
    token: Token | None = None
    """The token of the last node's kind."""


_BLOCK: Final = re.compile(r"block(\d+)\Z")
_NUMBERED: Final = re.compile(r"(.+)_(\d+)\Z")
_PLACE: Final = re.compile(r"# (.+):(\d+):(\d+)\s*\Z")


class _GraphReader:
    """Reads one graph, and the sub-graphs after it."""

    __slots__ = (
        *(
            "_constants",
            "_defined",
            "_frames",
            "_given",
            "_graph",
            "_lexer",
            "_next_unique",
            "_numbered",
            "_structured",
        ),
        *("_types", "_values"),
    )

    def __init__(self, given: _Input) -> None:
        self._given = given
        self._lexer = given.lexer
        self._types = given.types
        self._constants = given.constants
        self._structured = given.structured
        self._graph = Graph()
        self._frames = [_Frame(self._graph.block)]
        self._values: dict[str, Value] = {}
        """The values that are in scope at the reader's position."""
        self._defined: set[str] = set()
        self._numbered: dict[str, list[Node]] = {}
        """Nodes whose kind ends in a number, by kind: they may refer to a sub-graph."""
        self._next_unique = given.first_unique

    def read(self) -> Graph:
        lexer = self._lexer
        self._skip_comments()
        word = lexer.expect(IDENT)
        if word.text != "graph":
            raise ParseError(f"Expected 'graph' but found {word}.", word.range)
        self._parameters(self._frames[0])
        while not self._statement():
            pass
        self._graph._next_unique = self._next_unique
        self._skip_comments()
        while lexer.cur.text == "with" and self._is_mine(self._kind_ahead()):
            self._subgraph()
            self._skip_comments()
        return self._graph

    def _skip_comments(self) -> None:
        while self._lexer.next_if(COMMENT) is not None:
            pass

    # ----------------------------------------------------------------------------------------------------------- blocks

    def _statement(self) -> bool:
        """Parse a statement, or the head or end of a block; return True at the end of the graph."""
        lexer = self._lexer
        self._skip_comments()
        token = lexer.cur
        frame = self._frames[-1]
        if token.kind == "->":
            self._close_block(frame)
        elif token.kind == IDENT and token.text == "return":
            self._check_node(frame)
            if len(self._frames) > 1:
                lexer.fail("A block ends with '->', not with 'return'.")
            lexer.next()
            for value in self._names():
                frame.block.add_output(value)
            return True
        elif token.kind == IDENT and lexer.lookahead().kind == "(" and _BLOCK.match(token.text):
            self._open_block(frame)
        elif token.kind in (VALUE, IDENT, "=", "^"):
            self._check_node(frame)
            self._node(frame)
        else:
            lexer.fail(f"Expected a node, '->' or 'return' but found {token}.")
        return False

    def _open_block(self, frame: _Frame) -> None:
        lexer = self._lexer
        token = lexer.cur
        if frame.node is None:
            lexer.fail("No node precedes this block.")
        if token.text != f"block{len(frame.node.blocks)}":
            lexer.fail(f"Expected 'block{len(frame.node.blocks)}' but found {token}.")
        lexer.next()
        inner = _Frame(frame.node.add_block())
        self._frames.append(inner)
        self._parameters(inner)

    def _close_block(self, frame: _Frame) -> None:
        lexer = self._lexer
        self._check_node(frame)
        if len(self._frames) == 1:
            lexer.fail("A graph ends with 'return', not with '->'.")
        arrow = lexer.next()
        for value in self._names():
            frame.block.add_output(value)
        node = self._frames[-2].node
        assert node is not None
        extra = 1 if node.kind == "prim::Loop" else 0
        if self._structured and node.kind in _BLOCKS and len(frame.block.outputs) != len(node.outputs) + extra:
            wanted = f"{_count(len(node.outputs), 'output')}{' and the condition' if extra else ''}"
            raise ParseError(
                f"The {node.kind} has {wanted}, but its block returns {_count(len(frame.block.outputs), 'value')}.",
                lexer.source.range(arrow.start, lexer.end),
            )
        for name in frame.names:
            del self._values[name]
        self._frames.pop()

    def _check_node(self, frame: _Frame) -> None:
        """Check that the last node of ``frame``, which ends here, has all its blocks.

        Raises:
            ParseError: the number of blocks, or of the inputs of a loop's block, is wrong.
        """
        node = frame.node
        if node is None or not self._structured or node.kind not in _BLOCKS:
            return
        assert frame.token is not None
        wanted = _BLOCKS[node.kind]
        if len(node.blocks) != wanted:
            message = f"A {node.kind} has {_count(wanted, 'block')}, not {len(node.blocks)}."
            raise ParseError(message, frame.token.range)
        parameters = len(node.blocks[0].inputs)
        if node.kind == "prim::Loop" and parameters != len(node.outputs) + 1:
            raise ParseError(
                f"The prim::Loop has {_count(len(node.outputs), 'output')}, so its block takes "
                f"{_count(len(node.outputs) + 1, 'input')}, not {parameters}.",
                frame.token.range,
            )

    def _parameters(self, frame: _Frame) -> None:
        lexer = self._lexer
        lexer.expect("(")
        if lexer.cur.kind != ")":
            for token, type in self._declarations():
                self._define(frame, frame.block.param_node, token, type or TENSOR)
        lexer.expect(")")
        lexer.expect(":")

    # ------------------------------------------------------------------------------------------------------------ nodes

    def _node(self, frame: _Frame) -> None:
        lexer = self._lexer
        declared = list(self._declarations()) if lexer.cur.kind == VALUE else []
        if declared:
            lexer.expect("=")
        else:
            lexer.next_if("=")
        token = lexer.cur
        call = self._python_call() if token.kind == "^" else None
        kind = self._kind() if call is None else PYTHON_CALL
        node = Node(self._graph, kind)
        # The outputs come first in the text, but none of them is visible in the inputs.
        attributes = call or {}
        if lexer.cur.kind == "[" and call is None:
            attributes = self._attributes(kind, declared)
        for value in self._names():
            node.add_input(value)
        node.attributes.update(attributes)
        if self._structured and kind == "prim::Loop" and len(node.inputs) != len(declared) + 2:
            raise ParseError(
                f"A prim::Loop with {_count(len(declared), 'output')} takes {_count(len(declared) + 2, 'input')}, "
                f"not {len(node.inputs)}.",
                token.range,
            )
        if self._structured and kind == "prim::If" and len(node.inputs) != 1:
            raise ParseError(f"A prim::If takes 1 input, not {len(node.inputs)}.", token.range)
        node.scope = self._scope()
        comment = lexer.next_if(COMMENT)
        if comment is not None:
            node.range = _range_of(comment.text)
        frame.block.append(node)
        frame.node, frame.token = node, token
        for (name, type), found in zip(declared, self._output_types(node, declared), strict=True):
            self._define(frame, node, name, type or found)
        self._note_function(node)
        if _NUMBERED.match(kind):
            self._numbered.setdefault(kind, []).append(node)

    def _python_call(self) -> dict[str, AttributeValue]:
        """Parse ``^name[attributes](constant arguments)``, and return the attributes of the node. The function itself
        is not in the text."""
        lexer = self._lexer
        lexer.expect("^")
        attributes: dict[str, AttributeValue] = {"name": lexer.expect(IDENT).text}
        attributes.update(self._attributes(PYTHON_CALL, []))
        constants = self._constants.arguments()
        if constants:
            attributes[CONSTANT_ARGUMENTS] = constants
        return attributes

    def _declarations(self) -> Iterator[tuple[Token, Type | None]]:
        lexer = self._lexer
        while True:
            token = lexer.expect(VALUE)
            yield token, self._types.read() if lexer.next_if(":") is not None else None
            if lexer.next_if(",") is None:
                return

    def _names(self) -> Iterator[Value]:
        lexer = self._lexer
        lexer.expect("(")
        if lexer.next_if(")") is not None:
            return
        while True:
            token = lexer.expect(VALUE)
            value = self._values.get(token.text[1:])
            if value is None:
                self._fail_undefined(token)
            yield value
            if lexer.next_if(",") is None:
                break
        lexer.expect(")")

    def _kind(self) -> str:
        lexer = self._lexer
        namespace = lexer.expect(IDENT).text
        lexer.expect("::")
        return f"{namespace}::{lexer.expect(IDENT).text}"

    def _attributes(self, kind: str, declared: list[tuple[Token, Type | None]]) -> dict[str, AttributeValue]:
        lexer = self._lexer
        lexer.expect("[")
        attributes: dict[str, AttributeValue] = {}
        while lexer.cur.kind != "]":
            name = lexer.expect(IDENT)
            if name.text in attributes:
                raise ParseError(f"The attribute '{name.text}' is here twice.", name.range)
            lexer.expect("=")
            if kind == "prim::Constant" and name.text == "value" and len(declared) == 1:
                output, type = declared[0]
                attributes["value"] = self._constants.constant(output.text[1:], type or TENSOR)
            else:
                attributes[name.text] = self._constants.attribute()
            if lexer.next_if(",") is None:
                break
        lexer.expect("]")
        return attributes

    def _scope(self) -> str:
        """Parse ``, scope: __module.encoder``, up to the end of the line or to a comment. Return the name, empty if
        there is none."""
        lexer = self._lexer
        if lexer.cur.kind != "," or lexer.lookahead().text != "scope":
            return ""
        lexer.next()
        lexer.next()
        start = lexer.expect(":").end
        text = lexer.source.text
        line_end = text.find("\n", start)
        while lexer.cur.kind not in (EOF, COMMENT) and lexer.cur.start < (len(text) if line_end < 0 else line_end):
            lexer.next()
        return text[start : lexer.end].strip()

    def _output_types(self, node: Node, declared: list[tuple[Token, Type | None]]) -> list[Type]:
        """Return a type for each output, which is used if the text omits one: that of the operator's schema, or Tensor
        if there is no schema or a type variable is unbound."""
        unknown: list[Type] = [TENSOR] * len(declared)
        if all(type is not None for _, type in declared):
            return unknown
        schema = node.schema
        if schema is None or len(schema.returns) != len(declared):
            return unknown
        bindings: Bindings = {}
        for argument, value in zip(schema.arguments, node.inputs, strict=False):
            match_variables(argument.type, value.type, bindings)
        return [substitute(result.type, bindings) or TENSOR for result in schema.returns]

    def _note_function(self, node: Node) -> None:
        """Set the type of a constant that is a function to a function of that name without a graph."""
        if node.kind == "prim::Constant" and len(node.outputs) == 1 and isinstance(node.output.type, FunctionType):
            name = node.attributes.get("name")
            if isinstance(name, str):
                node.output.type = FunctionType(GraphFunction(name))

    # ----------------------------------------------------------------------------------------------------------- values

    def _define(self, frame: _Frame, node: Node, token: Token, type: Type) -> None:
        name = token.text[1:]
        if name in self._defined:
            raise ParseError(f"%{name} is defined twice.", token.range)
        is_number = _is_number(name)
        if not is_number and name.replace(" ", "").isdigit():
            raise ParseError(f"%{name} cannot name a value: digits are the names of values without one.", token.range)
        graph = self._graph
        graph._next_unique = int(name) if is_number else self._next_unique
        value = node.add_output(type)
        if not is_number:
            self._next_unique += 1
            value.set_name(name)
        self._defined.add(name)
        self._values[name] = value
        frame.names.append(name)

    def _fail_undefined(self, token: Token) -> NoReturn:
        name = token.text[1:]
        if name in self._defined:
            raise ParseError(f"%{name} is defined in a block that has ended.", token.range)
        close = difflib.get_close_matches(name, self._values, 1)
        hint = f"Did you mean %{close[0]}?" if close else None
        raise ParseError(f"%{name} is not defined.", token.range, hint=hint)

    # ------------------------------------------------------------------------------------------------------- sub-graphs

    def _kind_ahead(self) -> str:
        """Return the kind after ``with``."""
        return "".join(self._lexer.lookahead(i).text for i in (1, 2, 3))

    def _is_mine(self, kind: str) -> bool:
        return bool(self._numbered.get(kind))

    def _subgraph(self) -> None:
        lexer = self._lexer
        lexer.next()
        token = lexer.cur
        kind = self._kind()
        lexer.expect("=")
        graph = _GraphReader(self._given).read()
        nodes = self._numbered.pop(kind)
        if len(nodes) > 1:
            raise ParseError(f"{len(nodes)} nodes refer to {kind}.", token.range)
        found = _NUMBERED.match(kind)
        assert found is not None
        nodes[0].kind = sys.intern(found.group(1))
        nodes[0].attributes[SUBGRAPH] = graph


_BLOCKS: Final = {"prim::If": 2, "prim::Loop": 1}


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit()


def _range_of(comment: str) -> SourceRange:
    """Return a range at the location in ``comment``; ``UNKNOWN_RANGE`` if it has none."""
    found = _PLACE.match(comment)
    if found is None:
        return UNKNOWN_RANGE
    filename, line, column = found.groups()
    return SourceRange(Source("", filename, int(line), int(column)), 0, 0)
