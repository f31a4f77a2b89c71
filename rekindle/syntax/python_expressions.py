"""Convert expressions of Python's ``ast`` to trees.

Ranges are those that ``torch.jit`` reports: a compound expression starts where its first operand starts, without the
parentheses around that, so ``(a + b) * c`` starts at ``a``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from rekindle.errors import CompileError, Diagnostics, Source, SourceRange
from rekindle.syntax.expression_parser import ExpressionParser
from rekindle.syntax.lexer import Lexer
from rekindle.syntax.python_names import names_bound_by
from rekindle.syntax.unsupported_syntax import refuse
from rekindle.syntax.views import (
    Apply,
    Attribute,
    BinOp,
    Comprehension,
    Const,
    DictComp,
    DictLiteral,
    Dots,
    ErrorStmt,
    Expansion,
    Expr,
    FalseLiteral,
    GeneratorExpr,
    Ident,
    Lambda,
    ListComp,
    ListLiteral,
    NoneLiteral,
    Param,
    Select,
    SetComp,
    SetLiteral,
    SliceExpr,
    Starred,
    StringLiteral,
    Subscript,
    TernaryIf,
    TrueLiteral,
    TupleLiteral,
    UnaryOp,
    Var,
    Walrus,
    bare,
)


class OffsetTable:
    """A converter from the line and column of an ``ast`` node to an offset in a source. ``ast`` counts lines of the
    parsed text from 1, and columns in bytes of UTF-8."""

    __slots__ = ("_ascii", "_first_line", "_source", "_starts")

    def __init__(self, source: Source, first_line: int = 1) -> None:
        """Prepare the conversion for ``source``, whose first line is line ``first_line`` of the text that Python
        parsed."""
        self._source = source
        self._first_line = first_line
        self._starts = source.line_starts
        self._ascii = source.text.isascii()

    def offset(self, line: int, column: int) -> int:
        index = line - self._first_line
        if not self._ascii:
            column = len(self._source.line(index).encode()[:column].decode())
        return self._starts[index] + column


BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}

_UNARY: dict[type[ast.unaryop], str] = {
    ast.USub: "unary_minus",
    ast.UAdd: "unary_plus",
    ast.Invert: "~",
    ast.Not: "not",
}

_COMPARISON: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is_not",
    ast.In: "in",
    ast.NotIn: "not_in",
}

_REFUSED: dict[str, str] = {
    "Await": "await",
    "Yield": "yield",
    "YieldFrom": "yield",
    "TemplateStr": "template",
}

_FIRST_OPERAND = {ast.BinOp: "left", ast.Attribute: "value", ast.Call: "func", ast.Subscript: "value"}
"""Nodes with a first operand, by its field: long sums and chains of calls are converted without recursion over it."""


class ExpressionBuilder:
    """A converter of the ``ast`` expressions of one source to trees."""

    def __init__(self, source: Source, places: OffsetTable, diagnostics: Diagnostics | None = None) -> None:
        self.source = source
        self.diagnostics = diagnostics
        """Collects the errors of unsupported constructs, so that parsing continues after them; None to raise the
        first."""
        self.is_dict_builtin = True
        """Whether the global name ``dict`` is Python's class."""
        self.expanded: set[str] = set()
        """The variables that calls expand to keyword arguments, among the expressions read so far."""
        self._offset = places.offset
        self._leaves: dict[type[ast.expr], Callable[[Any], Expr]] = {
            ast.Name: self._name,
            ast.Constant: self._constant,
            ast.UnaryOp: self._unary,
            ast.BoolOp: self._boolean,
            ast.Compare: self._compare,
            ast.IfExp: self._ternary,
            ast.List: self._list,
            ast.Tuple: self._tuple,
            ast.Set: self._set,
            ast.Dict: self._dict,
            ast.ListComp: self._list_comp,
            ast.SetComp: self._set_comp,
            ast.NamedExpr: self._walrus,
            ast.Lambda: self._lambda,
            ast.GeneratorExp: self._generator,
            ast.DictComp: self._dict_comp,
            ast.Starred: self._starred,
            ast.JoinedStr: self._f_string,
            ast.Slice: self._slice,
        }
        self._growths: dict[type[ast.expr], Callable[[Any, Expr], Expr]] = {
            ast.BinOp: self._binary,
            ast.Attribute: self._select,
            ast.Call: self._call,
            ast.Subscript: self._subscript,
        }

    # ----------------------------------------------------------------------------------------------------------- places

    def start_of(self, node: Any) -> int:
        return self._offset(node.lineno, node.col_offset)

    def end_of(self, node: Any) -> int:
        return self._offset(node.end_lineno, node.end_col_offset)

    def range_of(self, node: Any) -> SourceRange:
        """Return the source range of ``node``: a statement, an expression, an argument or a keyword."""
        return SourceRange(self.source, self.start_of(node), self.end_of(node))

    def _from(self, first: Expr, node: ast.expr | ast.stmt) -> SourceRange:
        """Return the range from the start of ``first``, the first part of ``node``, to the end of ``node``."""
        return SourceRange(self.source, first.range.start, self.end_of(node))

    # ------------------------------------------------------------------------------------------------------ expressions

    def expr(self, node: ast.expr) -> Expr:
        spine: list[ast.expr] = []
        while (first := _FIRST_OPERAND.get(type(node))) is not None:
            spine.append(node)
            node = getattr(node, first)
        try:
            leaf = self._leaves.get(type(node))
            if leaf is None:
                raise refuse(_REFUSED[type(node).__name__], self.range_of(node))
            result = leaf(node)
        except CompileError as error:
            result = self._give_up(error, node)
        while spine:
            node = spine.pop()
            try:
                result = self._growths[type(node)](node, result)
            except CompileError as error:
                result = self._give_up(error, node)
        return result

    def report(self, error: CompileError) -> None:
        """Add ``error`` to the diagnostics so that conversion can continue.

        Raises:
            CompileError: ``error``, if there are no diagnostics.
        """
        if self.diagnostics is None:
            raise error
        self.diagnostics.add(error)

    def _give_up(self, error: CompileError, node: ast.expr) -> Expr:
        """Report ``error``, and return a placeholder for the unsupported expression.

        Raises:
            CompileError: ``error``, if there are no diagnostics.
        """
        self.report(error)
        return Expr(ErrorStmt.create(self.range_of(node), names_bound_by(node)).tree)

    def exprs(self, nodes: Sequence[ast.expr]) -> list[Expr]:
        return [self.expr(node) for node in nodes]

    def maybe(self, node: ast.expr | None) -> Expr | None:
        return None if node is None else self.expr(node)

    def _name(self, node: ast.Name) -> Expr:
        range = self.range_of(node)
        if node.id == "Ellipsis":
            return bare(Dots, range)
        return Var.create(range, Ident.create(range, node.id))

    def _constant(self, node: ast.Constant) -> Expr:
        value = node.value
        range = self.range_of(node)
        if isinstance(value, str):
            return StringLiteral.create(range, value)
        if value is None:
            return bare(NoneLiteral, range)
        if isinstance(value, bool):
            return bare(TrueLiteral, range) if value else bare(FalseLiteral, range)
        if value is Ellipsis:
            return bare(Dots, range)
        if isinstance(value, bytes):
            raise refuse("bytes", range)
        return Const.create(range, range.text)

    def _unary(self, node: ast.UnaryOp) -> Expr:
        return UnaryOp.create(self.range_of(node), _UNARY[type(node.op)], self.expr(node.operand))

    def _boolean(self, node: ast.BoolOp) -> Expr:
        operator = "and" if isinstance(node.op, ast.And) else "or"
        result = self.expr(node.values[0])
        for operand_node in node.values[1:]:
            operand = self.expr(operand_node)
            range = SourceRange(self.source, result.range.start, operand.range.end)
            result = BinOp.create(range, operator, result, operand)
        return result

    def _compare(self, node: ast.Compare) -> Expr:
        operands = [self.expr(node.left), *self.exprs(node.comparators)]
        result: Expr | None = None
        for lhs, op, rhs in zip(operands, node.ops, operands[1:], strict=False):
            comparison = BinOp.create(lhs.range.merge(rhs.range), _COMPARISON[type(op)], lhs, rhs)
            if result is None:
                result = comparison
            else:
                result = BinOp.create(result.range.merge(rhs.range), "and", result, comparison)
        assert result is not None
        return result

    def _ternary(self, node: ast.IfExp) -> Expr:
        true_expr = self.expr(node.body)
        condition = self.expr(node.test)
        return TernaryIf.create(self._from(true_expr, node), condition, true_expr, self.expr(node.orelse))

    def _list(self, node: ast.List) -> Expr:
        return ListLiteral.create(self.range_of(node), self.exprs(node.elts))

    def _tuple(self, node: ast.Tuple) -> Expr:
        return TupleLiteral.create(self.range_of(node), self.exprs(node.elts))

    def _set(self, node: ast.Set) -> Expr:
        return SetLiteral.create(self.range_of(node), self.exprs(node.elts))

    def _dict(self, node: ast.Dict) -> Expr:
        keys: list[Expr] = []
        values: list[Expr] = []
        for key, value in zip(node.keys, node.values, strict=True):
            made = None if key is None else self.expr(key)
            values.append(self.expr(value))
            keys.append(bare(Expansion, values[-1].range) if made is None else made)
        return DictLiteral.create(self.range_of(node), keys, values)

    def _walrus(self, node: ast.NamedExpr) -> Expr:
        return Walrus.create(self.range_of(node), self.expr(node.target), self.expr(node.value))

    def _lambda(self, node: ast.Lambda) -> Expr:
        return Lambda.create(self.range_of(node), self.params(node.args), self.expr(node.body))

    # ------------------------------------------------------------------------------------------------------- parameters

    def params(self, arguments: ast.arguments, *, drop_variadic: bool = False) -> list[Param]:
        positional = [*arguments.posonlyargs, *arguments.args]
        missing = len(positional) - len(arguments.defaults)
        defaults: list[ast.expr | None] = [*[None] * missing, *arguments.defaults]
        params = [self._param(arg, default, False) for arg, default in zip(positional, defaults, strict=True)]
        if arguments.vararg is not None and not drop_variadic:
            params.append(self._variadic(arguments.vararg, "*"))
        params += [
            self._param(arg, default, True)
            for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        ]
        if arguments.kwarg is not None and not drop_variadic:
            params.append(self._variadic(arguments.kwarg, "**"))
        return params

    def _param(self, arg: ast.arg, default: ast.expr | None, kwarg_only: bool) -> Param:
        name, annotation = self._named(arg)
        return Param.create(self.range_of(arg), name, annotation, self.maybe(default), kwarg_only)

    def _variadic(self, arg: ast.arg, stars: str) -> Param:
        name, annotation = self._named(arg)
        return Param.variadic(self.range_of(arg), name, annotation, stars)

    def _named(self, arg: ast.arg) -> tuple[Ident, Expr | None]:
        start = self.start_of(arg)
        name = Ident.create(SourceRange(self.source, start, start + len(arg.arg)), arg.arg)
        return name, self.maybe(arg.annotation)

    def _starred(self, node: ast.Starred) -> Expr:
        return Starred.create(self.range_of(node), self.expr(node.value))

    def _slice(self, node: ast.Slice) -> Expr:
        return SliceExpr.create(
            self.range_of(node), self.maybe(node.lower), self.maybe(node.upper), self.maybe(node.step)
        )

    # ---------------------------------------------------------------------------------- what grows from a first operand

    def _binary(self, node: ast.BinOp, lhs: Expr) -> Expr:
        return BinOp.create(self._from(lhs, node), BINARY[type(node.op)], lhs, self.expr(node.right))

    def _select(self, node: ast.Attribute, value: Expr) -> Expr:
        range = self._from(value, node)
        ident = Ident.create(SourceRange(self.source, range.end - len(node.attr), range.end), node.attr)
        return Select.create(range, value, ident)

    def _call(self, node: ast.Call, callee: Expr) -> Expr:
        attributes: list[Attribute] = []
        inputs = self.exprs(node.args)
        for keyword in node.keywords:
            range = self.range_of(keyword)
            if keyword.arg is None:
                ident = Ident.create(SourceRange(self.source, range.start, range.start + 2), "**")
                attributes.append(Attribute.create(range, ident, self.expr(keyword.value)))
                if isinstance(keyword.value, ast.Name):
                    self.expanded.add(keyword.value.id)
                continue
            ident = Ident.create(SourceRange(self.source, range.start, range.start + len(keyword.arg)), keyword.arg)
            attributes.append(Attribute.create(range, ident, self.expr(keyword.value)))
        return Apply.create(self._from(callee, node), callee, inputs, attributes)

    def _subscript(self, node: ast.Subscript, value: Expr) -> Expr:
        index = node.slice
        is_starred = isinstance(index, ast.Tuple) and any(isinstance(item, ast.Starred) for item in index.elts)
        if isinstance(index, ast.Tuple) and (len(index.elts) > 1 or is_starred):
            indices = self.exprs(index.elts)
        else:
            indices = [self.expr(index)]
        return Subscript.create(self._from(value, node), value, indices)

    # --------------------------------------------------------------------------------------------------- comprehensions

    def _generators(self, nodes: list[ast.comprehension]) -> list[Comprehension]:
        generators: list[Comprehension] = []
        for node in nodes:
            target = self.expr(node.target)
            iterable = self.expr(node.iter)
            conditions = self.exprs(node.ifs)
            range = target.range.merge((conditions[-1] if conditions else iterable).range)
            if node.is_async:
                raise refuse("async_comprehension", range)
            generators.append(Comprehension.create(range, target, iterable, conditions))
        return generators

    def _list_comp(self, node: ast.ListComp) -> Expr:
        return ListComp.create(self.range_of(node), self.expr(node.elt), self._generators(node.generators))

    def _set_comp(self, node: ast.SetComp) -> Expr:
        return SetComp.create(self.range_of(node), self.expr(node.elt), self._generators(node.generators))

    def _generator(self, node: ast.GeneratorExp) -> Expr:
        return GeneratorExpr.create(self.range_of(node), self.expr(node.elt), self._generators(node.generators))

    def _dict_comp(self, node: ast.DictComp) -> Expr:
        generators = self._generators(node.generators)
        return DictComp.create(self.range_of(node), self.expr(node.key), self.expr(node.value), generators)

    def _f_string(self, node: ast.JoinedStr) -> Expr:
        """Parse an f-string with this package's parser: up to Python 3.11 ``ast`` does not locate their fields."""
        lexer = Lexer(self.source, start=self.start_of(node), end=self.end_of(node), layout=False)
        return ExpressionParser(lexer).whole()
