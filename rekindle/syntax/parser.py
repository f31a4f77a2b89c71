"""Parser of program text that does not use Python's ``ast``: archives, builtin functions, text from users.

The grammar of statements, one method each, is recursive descent; expressions are a Pratt parser's
(:mod:`rekindle.syntax.expression_parser`). The same text read by :mod:`rekindle.syntax.python_ast` gives the same tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from rekindle.errors import CompileError, Diagnostics, ParseError, Source, SourceRange
from rekindle.syntax.desugaring import loop_with_else, together
from rekindle.syntax.expression_parser import ExpressionParser, check_target
from rekindle.syntax.keyword_dicts import with_known_keywords
from rekindle.syntax.lexer import DEDENT, EOF, IDENT, INDENT, NEWLINE, NUMBER, STRING, Lexer, Token
from rekindle.syntax.nesting_limit import MAX_BLOCKS, too_deep
from rekindle.syntax.type_comments import apply_type_comments, assignment_type
from rekindle.syntax.unsupported_syntax import refuse
from rekindle.syntax.views import (
    Assert,
    Assign,
    AugAssign,
    Break,
    ClassDef,
    Continue,
    CurrentException,
    Decorated,
    Def,
    Delete,
    Expr,
    ExprStmt,
    For,
    Handler,
    Ident,
    If,
    Import,
    ListLiteral,
    LocalImport,
    NoneLiteral,
    Nonlocal,
    Pass,
    Raise,
    Return,
    Select,
    Starred,
    Stmt,
    StringLiteral,
    Subscript,
    Try,
    TupleLiteral,
    Var,
    Walrus,
    While,
    With,
    WithItem,
    bare,
)


def parse_module(source: Source | str) -> list[Stmt]:
    """Return the statements of a program: definitions, classes, imports and other statements.

    Raises:
        ParseError: the text is not a program.
        UnsupportedError: the text has Python that programs cannot have.
    """
    return _run(source, Parser.module)


def parse_module_gathering(source: Source, diagnostics: Diagnostics) -> tuple[list[Stmt], set[str]]:
    """Parse as much of a program as possible; return its statements, and the names of the definitions that could not be
    parsed. Errors are added to ``diagnostics``; after one, parsing continues at the next definition without
    indentation."""
    body: list[Stmt] = []
    lost: set[str] = set()
    start = 0
    while True:
        parsed: list[Stmt] = []
        try:
            _run(source, partial(Parser.module, into=parsed), start=start)
            return [*body, *parsed], lost
        except CompileError as error:
            diagnostics.add(error)
            behind = parsed[-1].range.end if parsed else start
            at = max(behind, error.range.start if error.range is not None else behind)
            lost.update(_HEAD.findall(source.text, behind, _end_of_line(source.text, at)))
            found = _HEAD.search(source.text, _end_of_line(source.text, at))
            body += parsed
            if found is None:
                return body, lost
            start = found.start()


_HEAD = re.compile(r"^(?:def|class)[ \t]+(\w+)", re.MULTILINE)


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def parse_function(source: Source | str) -> Def:
    """Return the one function definition that ``source`` holds.

    Raises:
        ParseError: there is no function definition, or something follows it.
        UnsupportedError: the function has Python that programs cannot have.
    """
    return _run(source, Parser.one_function)


def parse_expression(source: Source | str) -> Expr:
    """Return the one expression that ``source`` holds; a tuple needs no parentheses.

    Raises:
        ParseError: there is no expression, or something follows it.
    """
    return _run(source, Parser.whole, layout=False)


_R = TypeVar("_R")


def _run(source: Source | str, parse: Callable[[Parser], _R], *, layout: bool = True, start: int = 0) -> _R:
    """Return the result of calling ``parse`` with a parser of ``source`` from offset ``start``.

    Raises:
        ParseError: ``parse`` raises it, or the source is nested so deeply that Python's stack does not suffice.
    """
    if isinstance(source, str):
        source = Source(source)
    try:
        return parse(Parser(Lexer(source, layout=layout, start=start)))
    except RecursionError:
        # The limit on depth keeps most callers from coming here; one that is deep in its own recursion may.
        raise too_deep(source.range(0, len(source.text))) from None


_AUGMENTED = frozenset(["+=", "-=", "*=", "/=", "//=", "%=", "**=", "@=", "&=", "|=", "^=", "<<=", ">>="])

_REFUSED_STATEMENTS = {
    "global": "global",
    "class": "nested_class",
}

_ASYNC = {"def": "async_def", "for": "async_for", "with": "async_with"}


class Parser(ExpressionParser):
    """A parser of the statements of one source."""

    def __init__(self, lexer: Lexer) -> None:
        super().__init__(lexer)
        self._blocks = 0
        self._compound: dict[str, Callable[[], Stmt]] = {
            "if": self._if,
            "while": self._while,
            "for": self._for,
            "with": self._with,
            "try": self._try,
            "def": self.function,
        }
        self._simple: dict[str, Callable[[Token], Stmt]] = {
            "return": self._return,
            "raise": self._raise,
            "assert": self._assert,
            "del": self._delete,
            "nonlocal": self._nonlocal,
            "import": self._local_import,
            "from": self._local_import_from,
            "pass": lambda token: bare(Pass, token.range),
            "break": lambda token: bare(Break, token.range),
            "continue": lambda token: bare(Continue, token.range),
        }

    # --------------------------------------------------------------------------------------------------------- programs

    def module(self, into: list[Stmt] | None = None) -> list[Stmt]:
        """Parse ``(def | class | import | statement)* EOF``. Each statement is added to ``into``, which is also the
        result, as soon as it is parsed.

        Raises:
            UnsupportedError: the text has ``from … import``, or other Python that programs cannot have.
            ParseError: the text is not a program.
        """
        body: list[Stmt] = [] if into is None else into
        while self.lexer.cur.kind != EOF:
            kind = self.lexer.cur.kind
            if kind == "@" or kind == "def":
                self._decorators()
                body.append(self.class_definition() if self.lexer.cur.kind == "class" else self.function())
            elif kind == "class":
                body.append(self.class_definition())
            elif kind == "import":
                body.append(self._import())
            elif kind == "from":
                raise refuse("from_import", self.lexer.cur.range)
            elif kind in self._compound:
                body.append(self._compound[kind]())
            else:
                self._simple_statements(body)
        return body

    def one_function(self) -> Def:
        self._decorators()
        definition = self.function()
        if self.lexer.cur.kind != EOF:
            self.lexer.fail(f"Expected one function and nothing after it, but found {self.lexer.cur}.")
        return definition

    def _import(self) -> Stmt:
        """Parse ``import a.b.c``, by which old archives name the files that they need."""
        start = self.lexer.next().start
        name = self._dotted()
        range = self.since(start)
        self._end_of_statement()
        return Import.create(range, name)

    # ------------------------------------------------------------------------------------------------------- statements

    def statement(self, into: list[Stmt]) -> None:
        """Parse one statement, or several on one line, and append them to ``into``.

        Raises:
            UnsupportedError: the statement is Python that functions cannot have, such as ``global`` or a class.
            ParseError: the statement is not valid.
        """
        token = self.lexer.cur
        compound = self._compound.get(token.kind)
        if compound is not None:
            into.append(compound())
            return
        if token.kind == "@":
            decorators = self._decorators()
            token = self.lexer.cur
            if token.kind not in ("def", "class", "async"):
                self.lexer.fail(f"Expected a definition after the decorator but found {token}.")
            if token.kind == "def":
                raise refuse("nested_decorator", decorators[0].range)
        if token.kind in _REFUSED_STATEMENTS:
            raise refuse(_REFUSED_STATEMENTS[token.kind], token.range)
        if token.kind == "async":
            raise refuse(_ASYNC.get(self.lexer.lookahead().kind, "async_def"), token.range)
        self._simple_statements(into)

    def _simple_statements(self, into: list[Stmt]) -> None:
        """Parse ``simple (';' simple)* [';'] NEWLINE``."""
        while True:
            into.append(self._simple_statement())
            if not self.lexer.next_if(";"):
                break
            if self.lexer.cur.kind in (NEWLINE, EOF):
                break
        self._end_of_statement()

    def _end_of_statement(self) -> None:
        if self.lexer.cur.kind == EOF:
            return
        if self.lexer.cur.kind != NEWLINE:
            self.lexer.fail(f"Expected the end of the statement but found {self.lexer.cur}.")
        self.lexer.next()
        if self.lexer.cur.kind == INDENT:
            token = self.lexer.lookahead()
            raise ParseError("This line is indented, but nothing before it opens a block.", token.range)

    def _simple_statement(self) -> Stmt:
        token = self.lexer.cur
        simple = self._simple.get(token.kind)
        if simple is not None:
            return simple(self.lexer.next())
        if token.text in _SOFT_KEYWORDS and self.lexer.lookahead().kind in (IDENT, NUMBER, STRING):
            raise refuse(_SOFT_KEYWORDS[token.text], token.range)
        first = self.expressions()
        if first.tree.kind == Walrus.KIND and first.range.start == token.start:
            raise ParseError("An assignment expression needs parentheses here.", first.range)
        kind = self.lexer.cur.kind
        if kind == "=":
            return self._assign(first)
        if kind == ":":
            return self._annotated_assign(first)
        if kind in _AUGMENTED:
            return self._augmented_assign(first)
        self._unstarred(first)
        return ExprStmt.create(self.since(first.range.start), first)

    def _assign(self, first: Expr) -> Stmt:
        """Parse ``target = target = value``, with the type in a comment after it."""
        expressions = [first]
        while self.lexer.next_if("="):
            expressions.append(self.expressions())
        *targets, value = expressions
        for target in targets:
            check_target(self._unstarred(target))
        range = self.since(first.range.start)
        return Assign.create(range, targets, self._unstarred(value), assignment_type(self.lexer, targets, range.end))

    def _annotated_assign(self, target: Expr) -> Stmt:
        if target.tree.kind not in (Var.KIND, Select.KIND, Subscript.KIND):
            raise ParseError(
                "This cannot have a type annotation.", target.range, hint="Annotate a name, an attribute or an item."
            )
        self.lexer.next()
        annotation = self.expression()
        value = self._unstarred(self.expressions()) if self.lexer.next_if("=") else None
        return Assign.create(self.since(target.range.start), [target], value, annotation)

    def _augmented_assign(self, target: Expr) -> Stmt:
        if target.tree.kind in (TupleLiteral.KIND, ListLiteral.KIND, Starred.KIND):
            raise ParseError(
                f"'{self.lexer.cur.text}' has one target, not several.",
                target.range,
                hint="Write one statement for each.",
            )
        check_target(target)
        operator = self.lexer.next().text[:-1]
        value = self._unstarred(self.expressions())
        return AugAssign.create(self.since(target.range.start), target, operator, value)

    def _ends(self) -> bool:
        return self.lexer.cur.kind in (NEWLINE, ";", EOF)

    def _return(self, token: Token) -> Stmt:
        if self._ends():
            return Return.create(token.range, bare(NoneLiteral, token.range))
        value = self._unstarred(self.expressions())
        return Return.create(self.since(token.start), value)

    def _raise(self, token: Token) -> Stmt:
        if self._ends():
            return Raise.create(token.range, bare(CurrentException, token.range))
        value = self.expression()
        if self.lexer.next_if("from"):
            self.expression()  # only shows in Python's traceback
        return Raise.create(self.since(token.start), value)

    def _assert(self, token: Token) -> Stmt:
        test = self.expression()
        message = self.expression() if self.lexer.next_if(",") else None
        return Assert.create(self.since(token.start), test, message)

    def _local_import(self, token: Token) -> Stmt:
        """Parse ``import a.b.c [as d], …`` within a function."""
        found: list[tuple[str, str]] = []
        while True:
            module = self._dotted()
            name = self.lexer.expect(IDENT).text if self.lexer.next_if("as") else None
            if name is None and "." in module:
                found.append(("$imported", module))
                module = module.partition(".")[0]
            found.append((name or module, module))
            if not self.lexer.next_if(","):
                break
        range = self.since(token.start)
        made: list[Stmt] = [LocalImport.create(range, name, module, "") for name, module in found]
        return made[0] if len(made) == 1 else together(range, made)

    def _local_import_from(self, token: Token) -> Stmt:
        """Parse ``from a.b import c [as d], …`` within a function.

        Raises:
            UnsupportedError: the statement is ``from … import *``.
        """
        module = ""
        while self.lexer.cur.kind in (".", "..."):
            module += self.lexer.next().kind
        if self.lexer.cur.kind == IDENT:
            module += self._dotted()
        self.lexer.expect("import")
        if self.lexer.cur.kind == "*":
            raise refuse("import_star", SourceRange(self.source, token.start, self.lexer.cur.end))
        in_brackets = self.lexer.next_if("(") is not None
        found: list[tuple[str, str]] = []
        while True:
            attribute = self.lexer.expect(IDENT).text
            name = self.lexer.expect(IDENT).text if self.lexer.next_if("as") else attribute
            found.append((name, attribute))
            if not self.lexer.next_if(",") or self.lexer.cur.kind == ")":
                break
        if in_brackets:
            self.lexer.expect(")")
        range = self.since(token.start)
        made: list[Stmt] = [LocalImport.create(range, name, module, attribute) for name, attribute in found]
        return made[0] if len(made) == 1 else together(range, made)

    def _dotted(self) -> str:
        name = self.lexer.expect(IDENT).text
        while self.lexer.next_if("."):
            name += "." + self.lexer.expect(IDENT).text
        return name

    def _nonlocal(self, token: Token) -> Stmt:
        names = [self.lexer.expect(IDENT).text]
        while self.lexer.next_if(","):
            names.append(self.lexer.expect(IDENT).text)
        range = self.since(token.start)
        return Nonlocal.create(range, [Ident.create(range, name) for name in names])

    def _delete(self, token: Token) -> Stmt:
        targets = [self.expression()]
        while self.lexer.next_if(",") and not self._ends():
            targets.append(self.expression())
        for target in targets:
            check_target(target)
        return Delete.create(self.since(token.start), targets)

    # ---------------------------------------------------------------------------------------------- compound statements

    def block(self) -> list[Stmt]:
        """Parse ``':' (simple statements | NEWLINE INDENT statement+ DEDENT)``.

        Raises:
            ParseError: there is no block.
        """
        colon = self.lexer.expect(":")
        body: list[Stmt] = []
        if self.lexer.next_if(NEWLINE) is None:
            if self.lexer.cur.kind in self._compound:
                self.lexer.fail(f"'{self.lexer.cur.text}' must begin a line of its own.")
            self._simple_statements(body)
            return body
        if self.lexer.next_if(INDENT) is None:
            raise ParseError("Expected an indented block after this colon.", colon.range)
        self._blocks += 1
        if self._blocks > MAX_BLOCKS:
            raise too_deep(colon.range)
        while self.lexer.next_if(DEDENT) is None:
            self.statement(body)
        self._blocks -= 1
        return body

    def _until(self, start: int, body: list[Stmt]) -> SourceRange:
        """Return the range from ``start`` to the end of the last statement of ``body``."""
        return SourceRange(self.source, start, body[-1].range.end)

    def _if(self) -> Stmt:
        """Parse ``if`` with its ``elif`` and ``else`` parts, without recursion, so that long chains are possible."""
        links: list[tuple[int, Expr, list[Stmt]]] = []
        otherwise: list[Stmt] = []
        while True:
            start = self.lexer.next().start
            condition = self.expression()
            links.append((start, condition, self.block()))
            if self.lexer.cur.kind != "elif":
                break
        if self.lexer.next_if("else"):
            otherwise = self.block()
        end = (otherwise or links[-1][2])[-1].range.end
        result: Stmt | None = None
        for start, condition, body in reversed(links):
            result = If.create(SourceRange(self.source, start, end), condition, body, otherwise)
            otherwise = [result]
        assert result is not None
        return result

    def _while(self) -> Stmt:
        start = self.lexer.next().start
        condition = self.expression()
        body = self.block()
        return self._with_else(While.create(self._until(start, body), condition, body))

    def _with_else(self, loop: For | While) -> Stmt:
        return loop_with_else(loop, self.block()) if self.lexer.next_if("else") else loop

    def _for(self) -> Stmt:
        start = self.lexer.next().start
        target = self.targets()
        check_target(target)
        self.lexer.expect("in")
        iterable = self.expressions()
        body = self.block()
        return self._with_else(For.create(self._until(start, body), target, iterable, body))

    def _with(self) -> Stmt:
        start = self.lexer.next().start
        if self._parenthesized_items():
            self.lexer.next()
            items = self._with_items(")")
            self.lexer.expect(")")
        else:
            items = self._with_items(":")
        body = self.block()
        return With.create(self._until(start, body), items, body)

    def _with_items(self, closing: str) -> list[WithItem]:
        items: list[WithItem] = []
        while True:
            context = self.expression()
            target: Expr | None = None
            if self.lexer.next_if("as"):
                target = self.expression()
                check_target(target)
            range = context.range if target is None else context.range.merge(target.range)
            items.append(WithItem.create(range, context, target))
            if not self.lexer.next_if(",") or self.lexer.cur.kind == closing:
                return items

    def _try(self) -> Stmt:
        """Parse ``'try' block ('except' [expression ['as' name]] block)* ['else' block] ['finally' block]``.

        Raises:
            ParseError: there is neither an ``except`` nor a ``finally``.
        """
        token = self.lexer.next()
        body = self.block()
        handlers: list[Handler] = []
        while self.lexer.cur.kind == "except":
            handlers.append(self._handler())
        otherwise = self.block() if handlers and self.lexer.next_if("else") else []
        final = self.block() if self.lexer.next_if("finally") else []
        if not handlers and not final:
            raise ParseError("Expected 'except' or 'finally' after this block.", token.range)
        end = (final or otherwise or (handlers[-1].body if handlers else body))[-1].range.end
        return Try.create(SourceRange(self.source, token.start, end), body, handlers, otherwise, final)

    def _handler(self) -> Handler:
        start = self.lexer.next().start
        if self.lexer.cur.kind == "*":
            raise refuse("try_star", self.lexer.cur.range)
        type = None if self.lexer.cur.kind == ":" else self.expression()
        name = self.lexer.expect(IDENT).text if type is not None and self.lexer.next_if("as") else ""
        body = self.block()
        return Handler.create(self._until(start, body), type, name, body)

    def _parenthesized_items(self) -> bool:
        """Return whether the ``(`` after ``with`` encloses the items: a colon follows the matching bracket."""
        if self.lexer.cur.kind != "(" or self.lexer.lookahead().kind == ")":
            return False
        depth = ahead = 0
        while True:
            kind = self.lexer.lookahead(ahead).kind
            depth += (kind in _OPENING) - (kind in _CLOSING)
            if depth == 0 or kind == EOF:
                return self.lexer.lookahead(ahead + 1).kind == ":"
            ahead += 1

    # ------------------------------------------------------------------------------------------------------ definitions

    def _decorators(self) -> list[Expr]:
        """Parse the decorators of a definition, and return their expressions. They are part of the tree for methods
        only: Python has applied the decorators of a function before it is compiled."""
        found: list[Expr] = []
        while self.lexer.next_if("@"):
            found.append(self.expression())
            self._end_of_statement()
        return found

    def function(self) -> Def:
        """Parse ``'def' name '(' params ')' ['->' type] block``.

        Raises:
            UnsupportedError: the function is asynchronous or has type parameters.
            ParseError: the definition is not valid, or its type comments do not fit its parameters.
        """
        if self.lexer.cur.kind == "async":
            raise refuse("async_def", self.lexer.cur.range)
        start = self.lexer.expect("def").start
        name = self.lexer.expect(IDENT)
        if self.lexer.cur.kind == "[":
            raise refuse("type_parameters", self.lexer.cur.range)
        self.lexer.expect("(")
        params = self.params(")")
        self.lexer.expect(")")
        return_type = self.expression() if self.lexer.next_if("->") else None
        head = SourceRange(self.source, start, self.lexer.cur.end)
        body = self.block()
        if self.lexer.type_comments:
            params, return_type = apply_type_comments(self.lexer, head, _first_statement(body), params, return_type)
        ident = Ident.create(name.range, name.text)
        made = Def.create(self._until(start, body), ident, params, return_type, body)
        return with_known_keywords(made, self.expanded) if self.expanded else made

    def class_definition(self) -> ClassDef:
        """Parse ``'class' name ['(' bases ')'] block``.

        Raises:
            UnsupportedError: the class has type parameters or keyword arguments, or its block has a class or an import.
            ParseError: the definition is not valid.
        """
        start = self.lexer.next().start
        name = self.lexer.expect(IDENT)
        if self.lexer.cur.kind == "[":
            raise refuse("type_parameters", self.lexer.cur.range)
        bases: list[Expr] = []
        if self.lexer.next_if("("):
            while self.lexer.cur.kind != ")":
                if self.lexer.lookahead().kind == "=":
                    raise refuse("class_keywords", self.lexer.cur.range)
                bases.append(self.expression())
                if not self.lexer.next_if(","):
                    break
            self.lexer.expect(")")
        body = self._class_body()
        return ClassDef.create(self._until(start, body), Ident.create(name.range, name.text), bases, body)

    def _class_body(self) -> list[Stmt]:
        colon = self.lexer.expect(":")
        body: list[Stmt] = []
        if self.lexer.next_if(NEWLINE) is None:
            self._simple_statements(body)
            return body
        if self.lexer.next_if(INDENT) is None:
            raise ParseError("Expected an indented block after this colon.", colon.range)
        self.deeper(colon)
        while self.lexer.next_if(DEDENT) is None:
            decorators = self._decorators()
            if self.lexer.cur.kind == "def":
                method = self.function()
                body.append(Decorated.create(decorators, method) if decorators else method)
            elif self.lexer.cur.kind == "class":
                raise refuse("class_in_class", self.lexer.cur.range)
            elif self.lexer.cur.kind in ("import", "from"):
                raise refuse("import", self.lexer.cur.range)
            else:
                self.statement(body)
        self.shallower()
        return body


_SOFT_KEYWORDS = {"match": "match", "type": "type_alias"}
_OPENING = ("(", "[", "{")
_CLOSING = (")", "]", "}")


def _first_statement(body: list[Stmt]) -> int:
    """Return the offset in the source at which the first statement of a body begins, after a docstring unless that is
    the only one."""
    first = body[0].tree
    documented = first.kind == ExprStmt.KIND and first.subtree(0).kind == StringLiteral.KIND
    return body[1 if documented and len(body) > 1 else 0].range.start
