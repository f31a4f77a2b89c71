"""Pratt parser of expressions, from tokens.

Each operator has a binding power (:data:`BINDING`); :meth:`ExpressionParser.expression` parses an operand and then
every following operator that binds more tightly than the one to its left. Grammar::

    expression   ternary, or anything that binds more tightly
    expressions  expression, or a tuple without parentheses: (expression | '*' operand) (',' …)* [',']
"""

from __future__ import annotations

from collections.abc import Callable

from rekindle.errors import CompileError, ParseError, Source, SourceRange
from rekindle.syntax.lexer import EOF, IDENT, KEYWORDS, NEWLINE, NUMBER, PYTHON, STRING, Lexer, Token
from rekindle.syntax.nesting_limit import MAX_DEPTH, too_deep
from rekindle.syntax.strings import Field, read_literal
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

TERNARY = 1
OR = 2
AND = 3
NOT = 4
COMPARISON = 5
BIT_OR = 6
UNARY = 12
POWER = 13
POSTFIX = 14

BINDING: dict[str, int] = {
    "if": TERNARY,
    "or": OR,
    "and": AND,
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!=", "in", "not", "is"), COMPARISON),
    "|": BIT_OR,
    "^": 7,
    "&": 8,
    **dict.fromkeys(("<<", ">>"), 9),
    **dict.fromkeys(("+", "-"), 10),
    **dict.fromkeys(("*", "/", "//", "%", "@"), 11),
    "**": POWER,
    **dict.fromkeys((".", "(", "["), POSTFIX),
}
"""Binding power of an operator after an operand. ``not`` and ``is`` begin ``not in`` and ``is not``."""

PREFIX: dict[str, tuple[str, int]] = {
    "-": ("unary_minus", UNARY),
    "+": ("unary_plus", UNARY),
    "~": ("~", UNARY),
    "not": ("not", NOT),
}
"""The unary operators: the kind of their tree, and how tightly they bind."""

_REFUSED_PREFIXES = {"await": "await", "yield": "yield"}


class ExpressionParser:
    """A parser of the expressions of one source."""

    def __init__(self, lexer: Lexer) -> None:
        self.lexer = lexer
        self.source: Source = lexer.source
        self.expanded: set[str] = set()
        """The variables that calls expand to keyword arguments, among the expressions read so far."""
        self._depth = 0
        self._prefixes: dict[str, Callable[[Token], Expr]] = {
            IDENT: self._name,
            NUMBER: lambda token: Const.create(token.range, token.text),
            STRING: self._strings,
            "True": lambda token: bare(TrueLiteral, token.range),
            "False": lambda token: bare(FalseLiteral, token.range),
            "None": lambda token: bare(NoneLiteral, token.range),
            "...": lambda token: bare(Dots, token.range),
            "(": self._parenthesized,
            "[": self._list,
            "{": self._braces,
            "lambda": self._lambda,
            **dict.fromkeys(PREFIX, self._unary),
        }
        self._infixes: dict[str, Callable[[Expr], Expr]] = {
            ".": self._select,
            "(": self._call,
            "[": self._subscript,
            "**": self._power,
            "if": self._ternary,
            **dict.fromkeys(("<", "<=", ">", ">=", "==", "!=", "in", "not", "is"), self._comparison),
        }

    # ---------------------------------------------------------------------------------------------------- places, depth

    def since(self, start: int) -> SourceRange:
        """Return the range from ``start`` to the end of the previous token."""
        return SourceRange(self.source, start, self.lexer.end)

    def deeper(self, token: Token) -> None:
        """Enter a nesting level opened by ``token``. The caller leaves it with :meth:`shallower`.

        Raises:
            ParseError: there are more than :data:`MAX_DEPTH` levels.
        """
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise too_deep(token.range)

    def shallower(self, levels: int = 1) -> None:
        self._depth -= levels

    # ------------------------------------------------------------------------------------------------------ expressions

    def expression(self, power: int = 0) -> Expr:
        """Parse one expression, up to the first operator whose binding power is at most ``power``.

        Raises:
            ParseError: the next token does not begin an expression, or the expression is not valid.
            UnsupportedError: the expression is Python that programs cannot have.
        """
        token = self.lexer.next()
        prefix = self._prefixes.get(token.kind)
        if prefix is None:
            raise self._no_expression(token)
        if power > NOT and token.kind == "not":
            raise ParseError("'not' needs parentheses here.", token.range)
        left = prefix(token)
        while (binding := BINDING.get(self.lexer.cur.kind, 0)) > power:
            infix = self._infixes.get(self.lexer.cur.kind)
            if infix is not None:
                left = infix(left)
                continue
            operator = self.lexer.next().kind
            right = self.expression(binding)
            # ``and`` and ``or`` end with their operand, as Python's ``ast`` has it, the others with what closes it.
            range = self.since(left.range.start) if binding > NOT else left.range.merge(right.range)
            left = BinOp.create(range, operator, left, right)
        if self.lexer.cur.kind == ":=" and power == 0:
            return self._walrus(left)
        return left

    def expressions(self) -> Expr:
        """Parse one expression, or several separated by commas, which form a tuple. Each may be starred."""
        start = self.lexer.cur.start
        first = self._starred_or(0)
        if self.lexer.cur.kind != ",":
            return first
        items = [first]
        while self.lexer.next_if(",") and self._begins_expression():
            items.append(self._starred_or(0))
        return TupleLiteral.create(self.since(start), items)

    def targets(self) -> Expr:
        """Parse the targets between ``for`` and ``in``: one target, or several separated by commas."""
        start = self.lexer.cur.start
        first = self._starred_or(COMPARISON)
        if self.lexer.cur.kind != ",":
            return first
        items = [first]
        while self.lexer.next_if(",") and self._begins_expression():
            items.append(self._starred_or(COMPARISON))
        return TupleLiteral.create(self.since(start), items)

    def _starred_or(self, power: int) -> Expr:
        star = self.lexer.next_if("*")
        if star is None:
            return self.expression(power)
        value = self.expression(COMPARISON)
        return Starred.create(self.since(star.start), value)

    def _begins_expression(self) -> bool:
        kind = self.lexer.cur.kind
        return kind in self._prefixes or kind == "*" or kind in _REFUSED_PREFIXES

    def _no_expression(self, token: Token) -> CompileError:
        if token.kind in _REFUSED_PREFIXES:
            return refuse(_REFUSED_PREFIXES[token.kind], token.range)
        hint = f"'{token.text}' is a keyword of Python." if token.kind in KEYWORDS else None
        return ParseError(f"Expected an expression but found {token}.", token.range, hint=hint)

    # ------------------------------------------------------------------------------------------------------------ atoms

    def _name(self, token: Token) -> Expr:
        if token.text == "Ellipsis":
            return bare(Dots, token.range)
        return Var.create(token.range, Ident.create(token.range, token.text))

    def _walrus(self, target: Expr) -> Expr:
        if target.tree.kind != Var.KIND:
            raise ParseError("':=' assigns to a name.", target.range)
        self.deeper(self.lexer.next())
        value = self.expression()
        self.shallower()
        return Walrus.create(self.since(target.range.start), target, value)

    def _lambda(self, token: Token) -> Expr:
        self.deeper(token)
        params = self.params(":", annotated=False)
        self.lexer.expect(":")
        body = self.expression()
        self.shallower()
        return Lambda.create(self.since(token.start), params, body)

    # ------------------------------------------------------------------------------------------------------- parameters

    def params(self, closing: str, *, annotated: bool = True) -> list[Param]:
        """Parse ``name [':' type] ['=' default]``, separated by commas, up to ``closing``, which is not consumed.
        Parameters after a lone ``*`` or after ``*name`` are keyword-only, ``**name`` is last. Without ``annotated``, as
        in a ``lambda``, there are no types.

        Raises:
            ParseError: a ``*`` or ``/`` is misplaced, a name occurs twice, or a parameter without a default follows one
                with a default.
        """
        lexer = self.lexer
        params: list[Param] = []
        kwarg_only = slash = False
        while lexer.cur.kind != closing:
            token = lexer.cur
            if token.kind == "**":
                lexer.next()
                params.append(self._variadic(params, "**", annotated))
                lexer.next_if(",")
                break
            if token.kind == "*":
                lexer.next()
                if lexer.cur.kind == IDENT and not kwarg_only:
                    params.append(self._variadic(params, "*", annotated))
                elif kwarg_only or lexer.cur.kind != "," or lexer.lookahead().kind == closing:
                    raise ParseError("A lone '*' is allowed once, before a parameter.", token.range)
                kwarg_only = True
            elif token.kind == "/":
                # Parameters before it are not positional-only here.
                if not params or kwarg_only or slash:
                    raise ParseError("'/' is allowed once, after a parameter.", token.range)
                slash = True
                lexer.next()
            else:
                params.append(self._param(params, kwarg_only, annotated))
            if not lexer.next_if(","):
                break
        return params

    def _variadic(self, before: list[Param], stars: str, annotated: bool) -> Param:
        name = self._free_name(before)
        annotation = self.expression() if annotated and self.lexer.next_if(":") else None
        return Param.variadic(self.since(name.start), Ident.create(name.range, name.text), annotation, stars)

    def _param(self, before: list[Param], kwarg_only: bool, annotated: bool) -> Param:
        name = self._free_name(before)
        annotation = self.expression() if annotated and self.lexer.next_if(":") else None
        range = self.since(name.start)
        default = self.expression() if self.lexer.next_if("=") else None
        if default is None and not kwarg_only and before and before[-1].default is not None:
            raise ParseError(f"The parameter '{name.text}' needs a default, as the one before it has one.", name.range)
        return Param.create(range, Ident.create(name.range, name.text), annotation, default, kwarg_only)

    def _free_name(self, before: list[Param]) -> Token:
        name = self.lexer.expect(IDENT)
        if any(param.name.name == name.text for param in before):
            raise ParseError(f"Two parameters have the name '{name.text}'.", name.range)
        return name

    # ------------------------------------------------------------------------------------------------- brackets, braces

    def _unary(self, operator: Token) -> Expr:
        self.deeper(operator)
        kind, power = PREFIX[operator.kind]
        operand = self.expression(power)
        self.shallower()
        return UnaryOp.create(self.since(operator.start), kind, operand)

    def _parenthesized(self, opening: Token) -> Expr:
        """Parse what follows the parenthesis ``opening``: an expression (``(a)`` is ``a``), a tuple, or a generator
        (``(a for a in b)``)."""
        self.deeper(opening)
        lexer = self.lexer
        items: list[Expr] = []
        comma = True
        if lexer.cur.kind != ")":
            items.append(self._starred_or(0))
            comma = lexer.cur.kind == ","
            if lexer.cur.kind in _COMPREHENSION:
                return self._comprehension(opening, items[0], GeneratorExpr, ")")
            while lexer.next_if(",") and lexer.cur.kind != ")":
                items.append(self._starred_or(0))
        self._close(")")
        if comma:
            return TupleLiteral.create(self.since(opening.start), items)
        return self._unstarred(items[0])

    def _list(self, opening: Token) -> Expr:
        self.deeper(opening)
        items: list[Expr] = []
        while self.lexer.cur.kind != "]":
            items.append(self._starred_or(0))
            if len(items) == 1 and self.lexer.cur.kind in _COMPREHENSION:
                return self._comprehension(opening, items[0], ListComp, "]")
            if not self.lexer.next_if(","):
                break
        self._close("]")
        return ListLiteral.create(self.since(opening.start), items)

    def _braces(self, opening: Token) -> Expr:
        """Parse a dict, a set, or a comprehension in braces."""
        self.deeper(opening)
        lexer = self.lexer
        keys: list[Expr] = []
        values: list[Expr] = []
        is_set = False
        while lexer.cur.kind != "}":
            if not is_set and lexer.next_if("**"):
                values.append(self.expression(COMPARISON))
                keys.append(bare(Expansion, values[-1].range))
                if not lexer.next_if(","):
                    break
                continue
            keys.append(self._starred_or(0))
            if len(keys) == 1 and lexer.cur.kind != ":":
                is_set = True
                if lexer.cur.kind in _COMPREHENSION:
                    return self._comprehension(opening, keys[0], SetComp, "}")
            if not is_set:
                self._unstarred(keys[-1])
                lexer.expect(":")
                values.append(self.expression())
                if len(keys) == 1 and lexer.cur.kind in _COMPREHENSION:
                    generators = self._generators()
                    self._close("}")
                    return DictComp.create(self.since(opening.start), keys[0], values[0], generators)
            if not lexer.next_if(","):
                break
        self._close("}")
        if is_set:
            return SetLiteral.create(self.since(opening.start), keys)
        return DictLiteral.create(self.since(opening.start), keys, values)

    def _close(self, bracket: str) -> None:
        """Consume the bracket that ends this nesting level.

        Raises:
            ParseError: the current token is another one.
        """
        if self.lexer.cur.kind != bracket:
            self.lexer.fail(f"Expected ',' or '{bracket}' but found {self.lexer.cur}.")
        self.lexer.next()
        self.shallower()

    def _unstarred(self, expr: Expr) -> Expr:
        """Return ``expr``.

        Raises:
            ParseError: it is starred, which is not valid here.
        """
        if expr.tree.kind == Starred.KIND:
            raise ParseError("A starred expression is allowed in a list, a tuple, a set or a call only.", expr.range)
        return expr

    # --------------------------------------------------------------------------------------------------- comprehensions

    def _comprehension(self, opening: Token, element: Expr, view: type[ListComp], closing: str) -> Expr:
        generators = self._generators()
        self._close(closing)
        return view.create(self.since(opening.start), self._unstarred(element), generators)

    def _generators(self) -> list[Comprehension]:
        lexer = self.lexer
        generators: list[Comprehension] = []
        while lexer.cur.kind in _COMPREHENSION:
            if lexer.cur.kind == "async":
                raise refuse("async_comprehension", lexer.cur.range)
            lexer.next()
            target = self.targets()
            check_target(target)
            lexer.expect("in")
            iterable = self.expression(TERNARY)
            conditions: list[Expr] = []
            while lexer.next_if("if"):
                conditions.append(self.expression(TERNARY))
            range = target.range.merge((conditions[-1] if conditions else iterable).range)
            generators.append(Comprehension.create(range, target, iterable, conditions))
        return generators

    # ------------------------------------------------------------------------------------ operators after an operand

    def _select(self, value: Expr) -> Expr:
        self.lexer.next()
        name = self.lexer.expect(IDENT)
        return Select.create(self.since(value.range.start), value, Ident.create(name.range, name.text))

    def _call(self, callee: Expr) -> Expr:
        lexer = self.lexer
        opening = lexer.next()
        self.deeper(opening)
        inputs: list[Expr] = []
        attributes: list[Attribute] = []
        while lexer.cur.kind != ")":
            if lexer.cur.kind == IDENT and lexer.lookahead().kind == "=":
                attributes.append(self._keyword_argument())
            elif (star := lexer.next_if("*")) is not None:
                value = self.expression()
                inputs.append(Starred.create(self.since(star.start), value))
            elif (stars := lexer.next_if("**")) is not None:
                value = self.expression()
                name = Ident.create(stars.range, "**")
                attributes.append(Attribute.create(self.since(stars.start), name, value))
                if value.tree.kind == Var.KIND:
                    self.expanded.add(Var(value.tree).name.name)
            else:
                if attributes:
                    lexer.fail("A positional argument follows a keyword argument.")
                inputs.append(self.expression())
                if lexer.cur.kind in _COMPREHENSION:
                    return self._call_of_generator(opening, callee, inputs, attributes)
            if not lexer.next_if(","):
                break
        self._close(")")
        return Apply.create(self.since(callee.range.start), callee, inputs, attributes)

    def _call_of_generator(self, opening: Token, callee: Expr, inputs: list[Expr], attributes: list[Attribute]) -> Expr:
        """Parse ``f(a for a in b)``, from ``for`` on. The parentheses of the call are those of the generator.

        Raises:
            ParseError: the call has other arguments.
        """
        generators = self._generators()
        if len(inputs) > 1 or attributes or self.lexer.cur.kind == ",":
            raise ParseError("A generator beside other arguments needs parentheses of its own.", inputs[-1].range)
        self._close(")")
        generator = GeneratorExpr.create(self.since(opening.start), inputs[0], generators)
        return Apply.create(self.since(callee.range.start), callee, [generator])

    def _keyword_argument(self) -> Attribute:
        name = self.lexer.next()
        self.lexer.next()
        value = self.expression()
        return Attribute.create(self.since(name.start), Ident.create(name.range, name.text), value)

    def _subscript(self, value: Expr) -> Expr:
        lexer = self.lexer
        self.deeper(lexer.next())
        indices = [self._index()]
        if lexer.cur.kind == ",":
            while lexer.next_if(",") and lexer.cur.kind != "]":
                indices.append(self._index())
            if len(indices) == 1 and indices[0].tree.kind != Starred.KIND:
                indices = [TupleLiteral.create(self.since(indices[0].range.start), indices)]
        elif indices[0].tree.kind == TupleLiteral.KIND:
            # ``x[(0, 1)]`` is ``x[0, 1]``; a tuple of no or one item is an index of its own, as in ``Tuple[()]``.
            items = TupleLiteral(indices[0].tree).items
            if len(items) > 1 or any(item.tree.kind == Starred.KIND for item in items):
                indices = items
        self._close("]")
        return Subscript.create(self.since(value.range.start), value, indices)

    def _index(self) -> Expr:
        """Parse an index: ``a``, ``*a`` or ``a:b:c``, in which each part may be missing."""
        lexer = self.lexer
        start = lexer.cur.start
        lower = None if lexer.cur.kind == ":" else self._starred_or(0)
        if lower is not None and lexer.cur.kind != ":":
            return lower
        lexer.expect(":")
        upper = None if lexer.cur.kind in _SLICE_ENDS else self.expression()
        step = None
        if lexer.next_if(":"):
            step = None if lexer.cur.kind in _SLICE_ENDS else self.expression()
        return SliceExpr.create(self.since(start), lower, upper, step)

    def _power(self, base: Expr) -> Expr:
        """Parse ``** exponent``. ``a ** b ** c`` is ``a ** (b ** c)``, and ``a ** -b`` needs no parentheses."""
        self.deeper(self.lexer.next())
        exponent = self.expression(UNARY)
        self.shallower()
        return BinOp.create(self.since(base.range.start), "**", base, exponent)

    def _ternary(self, true_expr: Expr) -> Expr:
        self.deeper(self.lexer.next())
        condition = self.expression(TERNARY)
        self.lexer.expect("else")
        false_expr = self.expression()
        self.shallower()
        return TernaryIf.create(self.since(true_expr.range.start), condition, true_expr, false_expr)

    def _comparison(self, left: Expr) -> Expr:
        """Parse comparisons. ``a < b < c`` becomes ``a < b and b < c``, with one tree for both ``b``."""
        result: Expr | None = None
        while BINDING.get(self.lexer.cur.kind) == COMPARISON:
            operator = self._comparison_operator()
            right = self.expression(COMPARISON)
            comparison = BinOp.create(left.range.merge(right.range), operator, left, right)
            if result is None:
                result = comparison
            else:
                result = BinOp.create(result.range.merge(right.range), "and", result, comparison)
            left = right
        assert result is not None
        return result

    def _comparison_operator(self) -> str:
        kind = self.lexer.next().kind
        if kind == "not":
            self.lexer.expect("in")
            return "not_in"
        if kind == "is" and self.lexer.next_if("not"):
            return "is_not"
        return kind

    # ---------------------------------------------------------------------------------------------------------- strings

    def _strings(self, first: Token) -> Expr:
        """Parse a string literal, or several adjacent ones, which are joined. ``first`` is the first, which is consumed
        already. f-strings become a call of ``str.format``.

        Raises:
            UnsupportedError: a literal is of bytes, or a template string.
            ParseError: a literal is not valid.
        """
        tokens = [first]
        while self.lexer.cur.kind == STRING:
            tokens.append(self.lexer.next())
        range = self.since(first.start)
        literals = [read_literal(self.source, token.start, token.end, PYTHON.pattern) for token in tokens]
        kinds = {literal.kind for literal in literals}
        if "b" in kinds:
            raise refuse("bytes", range)
        if "t" in kinds:
            raise refuse("template", range)
        parts = [part for literal in literals for part in literal.parts]
        if "f" not in kinds:
            return StringLiteral.create(range, "".join(part for part in parts if isinstance(part, str)))
        args: list[Expr] = []
        template = StringLiteral.create(range, self._template(parts, args))
        return Apply.create(range, Select.create(range, template, Ident.create(range, "format")), args)

    def _template(self, parts: list[str | Field], args: list[Expr], depth: int = 0) -> str:
        """Return the template of ``str.format`` for the parts of an f-string, and append the expressions of its fields
        to ``args``. ``depth`` is the number of format specifications around the parts.

        Raises:
            UnsupportedError: a field is within the specification of a field within a specification.
        """
        out: list[str] = []
        for part in parts:
            if isinstance(part, str):
                out.append(part.replace("{", "{{").replace("}", "}}"))
                continue
            if depth > 1:
                raise refuse("nested_format", self.source.range(part.start, part.end))
            args.append(self._field(part))
            conversion = f"!{part.conversion}" if part.conversion else ""
            # A field within the specification takes the arguments after this one, as str.format counts them.
            spec = "" if part.spec is None else ":" + self._template(part.spec, args, depth + 1)
            out.append("{" + conversion + spec + "}")
        return "".join(out)

    def _field(self, part: Field) -> Expr:
        if not self.source.text[part.start : part.end].strip():
            raise ParseError("A field of this f-string is empty.", self.source.range(part.start - 1, part.end + 1))
        inner = ExpressionParser(Lexer(self.source, start=part.start, end=part.end, layout=False))
        inner._depth = self._depth
        inner.deeper(inner.lexer.cur)
        return inner.whole()

    def whole(self) -> Expr:
        """Parse the whole source as one expression or tuple.

        Raises:
            ParseError: it is not an expression, or something follows it.
        """
        expr = self._unstarred(self.expressions())
        self.lexer.next_if(NEWLINE)
        if self.lexer.cur.kind != EOF:
            self.lexer.fail(f"Expected the end of the expression but found {self.lexer.cur}.")
        return expr


_COMPREHENSION = ("for", "async")
_SLICE_ENDS = (":", ",", "]")


def check_target(target: Expr) -> None:
    """Check that ``target`` can be assigned to.

    Raises:
        ParseError: it is, or contains, something other than a name, an attribute, an item, one of these with a star, or
            a tuple or list of these.
    """
    pending = [target.tree]
    while pending:
        tree = pending.pop()
        if tree.kind in (TupleLiteral.KIND, ListLiteral.KIND):
            pending.extend(tree.subtree(0).subtrees())
        elif tree.kind == Starred.KIND:
            pending.append(tree.subtree(0))
        elif tree.kind not in (Var.KIND, Select.KIND, Subscript.KIND):
            raise ParseError(
                "This cannot be assigned to.",
                tree.range,
                hint="Assign to a name, an attribute, an item, or a tuple of them.",
            )
