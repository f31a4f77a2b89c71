"""Convert statements and definitions of Python's ``ast`` to trees."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from typing import Any

from rekindle.errors import CompileError, Diagnostics, Source, SourceRange
from rekindle.syntax.desugaring import loop_with_else, together
from rekindle.syntax.keyword_dicts import with_known_keywords
from rekindle.syntax.lexer import Lexer
from rekindle.syntax.python_expressions import BINARY, ExpressionBuilder, OffsetTable
from rekindle.syntax.python_names import (
    FUNCTIONS,
    assigned_names,
    names_bound_by,
    names_read_in,
    names_within,
    parameters_of,
)
from rekindle.syntax.python_patterns import match_statement
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
    ErrorStmt,
    ExprStmt,
    For,
    Handler,
    Ident,
    If,
    LocalClass,
    LocalImport,
    NoneLiteral,
    Nonlocal,
    Pass,
    Raise,
    Return,
    Stmt,
    Try,
    While,
    With,
    WithItem,
    bare,
)

_REFUSED: dict[str, str] = {
    "TryStar": "try_star",
    "AsyncFunctionDef": "async_def",
    "ClassDef": "nested_class",
    "AsyncFor": "async_for",
    "AsyncWith": "async_with",
    "TypeAlias": "type_alias",
    "Global": "global",
}

_TYPE_COMMENT = re.compile(r"#[ \t]*type:(?![ \t]*ignore\b)")

_BLANK = r"(?:\s|\\\n)+"
_DEFINES = re.compile(rf"(?:async{_BLANK})?(?:def|class){_BLANK}")


def _blocks(node: ast.stmt) -> list[list[ast.stmt]]:
    """Return the blocks of statements within ``node``, an unsupported statement; empty for functions and classes."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return []
    parts: list[ast.AST] = [node, *getattr(node, "handlers", ()), *getattr(node, "cases", ())]
    names = ("body", "orelse", "finalbody")
    return [block for part in parts for name in names if (block := getattr(part, name, None))]


class StatementBuilder(ExpressionBuilder):
    """A converter of the ``ast`` statements of one source to trees."""

    def __init__(self, source: Source, places: OffsetTable, diagnostics: Diagnostics | None = None) -> None:
        super().__init__(source, places, diagnostics)
        # Comments are not in ``ast``: if there may be type comments, this package's lexer finds them.
        self._lexer = Lexer(source) if _TYPE_COMMENT.search(source.text) else None
        self._function: ast.FunctionDef | ast.AsyncFunctionDef | None = None
        """The function whose statements are read."""
        self._statements: dict[type[ast.stmt], Callable[[Any], Stmt]] = {
            ast.Expr: self._expression_statement,
            ast.Assign: self._assign,
            ast.AnnAssign: self._annotated_assign,
            ast.AugAssign: self._augmented_assign,
            ast.Return: self._return,
            ast.Raise: self._raise,
            ast.Assert: self._assert,
            ast.If: self._if,
            ast.While: self._while,
            ast.For: self._for,
            ast.With: self._with,
            ast.Try: self._try,
            ast.Delete: self._delete,
            ast.FunctionDef: self._nested_function,
            ast.ClassDef: self._local_class,
            ast.Global: self._global,
            ast.Nonlocal: self._nonlocal,
            ast.Match: lambda node: match_statement(node, self, self.stmts, self._read_outside),
            ast.Import: self._import,
            ast.ImportFrom: self._import_from,
            ast.Break: lambda node: bare(Break, self.range_of(node)),
            ast.Continue: lambda node: bare(Continue, self.range_of(node)),
            ast.Pass: lambda node: bare(Pass, self.range_of(node)),
        }

    def stmt(self, node: ast.stmt) -> Stmt:
        build = self._statements.get(type(node))
        try:
            if build is None:
                raise refuse(_REFUSED[type(node).__name__], self.range_of(node))
            return build(node)
        except CompileError as error:
            self.report(error)
        return ErrorStmt.create(self.range_of(node), names_bound_by(node), map(self.stmts, _blocks(node)))

    def stmts(self, nodes: Sequence[ast.stmt]) -> list[Stmt]:
        return [self.stmt(node) for node in nodes]

    # ------------------------------------------------------------------------------------------------ simple statements

    def _expression_statement(self, node: ast.Expr) -> Stmt:
        value = self.expr(node.value)
        return ExprStmt.create(self._from(value, node), value)

    def _assign(self, node: ast.Assign) -> Stmt:
        targets = self.exprs(node.targets)
        range = self._from(targets[0], node)
        annotation = None if self._lexer is None else assignment_type(self._lexer, targets, range.end)
        return Assign.create(range, targets, self.expr(node.value), annotation)

    def _annotated_assign(self, node: ast.AnnAssign) -> Stmt:
        target = self.expr(node.target)
        annotation = self.expr(node.annotation)
        return Assign.create(self._from(target, node), [target], self.maybe(node.value), annotation)

    def _augmented_assign(self, node: ast.AugAssign) -> Stmt:
        target = self.expr(node.target)
        return AugAssign.create(self._from(target, node), target, BINARY[type(node.op)], self.expr(node.value))

    def _return(self, node: ast.Return) -> Stmt:
        range = self.range_of(node)
        return Return.create(range, bare(NoneLiteral, range) if node.value is None else self.expr(node.value))

    def _raise(self, node: ast.Raise) -> Stmt:
        # The exception after ``from`` only shows in Python's traceback.
        if node.exc is None:
            range = self.range_of(node)
            return Raise.create(range, bare(CurrentException, range))
        return Raise.create(self.range_of(node), self.expr(node.exc))

    def _assert(self, node: ast.Assert) -> Stmt:
        return Assert.create(self.range_of(node), self.expr(node.test), self.maybe(node.msg))

    def _delete(self, node: ast.Delete) -> Stmt:
        return Delete.create(self.range_of(node), self.exprs(node.targets))

    def _nonlocal(self, node: ast.Nonlocal) -> Stmt:
        range = self.range_of(node)
        return Nonlocal.create(range, [Ident.create(range, name) for name in node.names])

    def _global(self, node: ast.Global) -> Stmt:
        """Convert ``global`` to ``pass``: a function that only reads the variables needs no declaration.

        Raises:
            UnsupportedError: the function assigns one of the variables, or the statement is in a class.
        """
        if self._function is None or assigned_names(self._function).intersection(node.names):
            raise refuse("global", self.range_of(node))
        return bare(Pass, self.range_of(node))

    def _read_outside(self, part: ast.AST) -> set[str]:
        """Return the names that the function reads or declares ``nonlocal`` outside of ``part``, including those that
        nested functions read."""
        if self._function is None:
            return set()
        return names_read_in(self._function, without=part)

    def _import(self, node: ast.Import) -> Stmt:
        range = self.range_of(node)
        made: list[Stmt] = []
        for alias in node.names:
            # ``import a.b`` binds the name ``a``.
            module = alias.name if alias.asname else alias.name.partition(".")[0]
            made.append(LocalImport.create(range, alias.asname or module, module, ""))
            if module != alias.name:
                made.insert(-1, LocalImport.create(range, "$imported", alias.name, ""))
        return made[0] if len(made) == 1 else together(range, made)

    def _import_from(self, node: ast.ImportFrom) -> Stmt:
        range = self.range_of(node)
        if node.names[0].name == "*":
            raise refuse("import_star", range)
        module = "." * node.level + (node.module or "")
        made = [LocalImport.create(range, alias.asname or alias.name, module, alias.name) for alias in node.names]
        return made[0] if len(made) == 1 else together(range, made)

    # ---------------------------------------------------------------------------------------------- compound statements

    def _until(self, node: ast.stmt, body: Sequence[Stmt]) -> SourceRange:
        """Return the range from the start of ``node`` to the end of ``body``; a ``;`` after its last statement is
        excluded."""
        return SourceRange(self.source, self.start_of(node), body[-1].range.end)

    def _if(self, node: ast.If) -> Stmt:
        """Build an ``if`` statement. Each ``elif`` is an ``if`` in the ``else`` branch; a long chain is built from its
        end, without recursion."""
        chain = [node]
        while len(chain[-1].orelse) == 1 and isinstance(inner := chain[-1].orelse[0], ast.If):
            chain.append(inner)
        parts = [(self.expr(link.test), self.stmts(link.body)) for link in chain]
        otherwise = self.stmts(chain[-1].orelse)
        result: Stmt | None = None
        for link, (condition, body) in zip(reversed(chain), reversed(parts), strict=True):
            result = If.create(self._until(link, otherwise or body), condition, body, otherwise)
            otherwise = [result]
        assert result is not None
        return result

    def _while(self, node: ast.While) -> Stmt:
        condition, body = self.expr(node.test), self.stmts(node.body)
        loop = While.create(self._until(node, body), condition, body)
        return loop_with_else(loop, self.stmts(node.orelse)) if node.orelse else loop

    def _for(self, node: ast.For) -> Stmt:
        target, iterable, body = self.expr(node.target), self.expr(node.iter), self.stmts(node.body)
        loop = For.create(self._until(node, body), target, iterable, body)
        return loop_with_else(loop, self.stmts(node.orelse)) if node.orelse else loop

    def _with(self, node: ast.With) -> Stmt:
        items: list[WithItem] = []
        for item in node.items:
            context = self.expr(item.context_expr)
            target = self.maybe(item.optional_vars)
            range = context.range if target is None else context.range.merge(target.range)
            items.append(WithItem.create(range, context, target))
        body = self.stmts(node.body)
        return With.create(self._until(node, body), items, body)

    def _try(self, node: ast.Try) -> Stmt:
        body = self.stmts(node.body)
        handlers: list[Handler] = []
        for each in node.handlers:
            within = self.stmts(each.body)
            range = SourceRange(self.source, self.start_of(each), within[-1].range.end)
            handlers.append(Handler.create(range, self.maybe(each.type), each.name or "", within))
        otherwise, final = self.stmts(node.orelse), self.stmts(node.finalbody)
        end = (final or otherwise or (handlers[-1].body if handlers else body))[-1].range.end
        range = SourceRange(self.source, self.start_of(node), end)
        return Try.create(range, body, handlers, otherwise, final)

    # ------------------------------------------------------------------------------------------------------ definitions

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, *, signature_only: bool = False) -> Def:
        """Convert the definition of a function or method. Decorators are omitted: Python has applied them. With
        ``signature_only``, the body is empty, and ``*args`` and ``**kwargs`` are omitted.

        Raises:
            UnsupportedError: the function has type parameters, or, without diagnostics, other Python that programs
                cannot have.
            ParseError: its type comments do not fit its parameters.
        """
        if getattr(node, "type_params", None):
            raise refuse("type_parameters", self.range_of(node))
        range = self.range_of(node)
        params = self.params(node.args, drop_variadic=signature_only)
        returns = self.maybe(node.returns)
        if self._lexer is not None and self._lexer.type_comments:
            head = SourceRange(self.source, range.start, self._head_end(range.start))
            params, returns = apply_type_comments(self._lexer, head, self._first_statement(node), params, returns)
        outer, self._function = self._function, node
        body = [] if signature_only else self.stmts(node.body)
        self._function = outer
        range = self._until(node, body) if body else range
        made = Def.create(range, self._defined_name(node), params, returns, body)
        return with_known_keywords(made, self.expanded, self.is_dict_builtin) if self.expanded else made

    def _nested_function(self, node: ast.FunctionDef) -> Stmt:
        if node.decorator_list:
            raise refuse("nested_decorator", self.range_of(node.decorator_list[0]))
        return self.function(node)

    def _local_class(self, node: ast.ClassDef) -> Stmt:
        """Convert a local class. Python creates the class when the program is compiled, without access to run-time
        values of the function.

        Raises:
            UnsupportedError: the class reads variables of the function, or is not within a function.
        """
        range = self.range_of(node)
        if self._function is None:
            raise refuse("nested_class", range)
        classes = {item.name for item in ast.walk(self._function) if isinstance(item, ast.ClassDef)}
        own = (assigned_names(self._function) | set(parameters_of(self._function))) - classes
        # A name that a method assigns itself, or takes, is its own.
        inner = {name for item in ast.walk(node) if isinstance(item, FUNCTIONS) for name in names_within(item)}
        if any(isinstance(part, ast.Name) and part.id in own - inner for part in ast.walk(node)):
            raise refuse("class_of_variables", range)
        starts = [self.start_of(node), *(self.start_of(item) for item in node.decorator_list)]
        line = self.source.line_index(min(starts))
        text = self.source.text[self.source.line_starts[line] : range.end]
        return LocalClass.create(range, node.name, self.source.first_line + line, text)

    def _head_end(self, start: int) -> int:
        """Return the position after the colon of the function that begins at ``start``."""
        assert self._lexer is not None
        tokens = self._lexer.tokens
        index = bisect_left(tokens, start, key=lambda token: token.start)
        depth = 0
        while depth or tokens[index].kind != ":":
            depth += (tokens[index].kind in ("(", "[", "{")) - (tokens[index].kind in (")", "]", "}"))
            index += 1
        return tokens[index].end

    def _first_statement(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
        """Return the position of the first statement, after a docstring unless that is the only one."""
        first = node.body[0]
        if len(node.body) > 1 and isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            documented = isinstance(first.value.value, str)
            first = node.body[1] if documented else first
        return self.start_of(first)

    def class_definition(self, node: ast.ClassDef, skip: Collection[str] = ()) -> ClassDef:
        if getattr(node, "type_params", None):
            raise refuse("type_parameters", self.range_of(node))
        if node.keywords:
            raise refuse("class_keywords", self.range_of(node.keywords[0]))
        body: list[Stmt] = []
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef):
                if statement.name not in skip:
                    method = self.function(statement)
                    decorators = self.exprs(statement.decorator_list)
                    body.append(Decorated.create(decorators, method) if decorators else method)
            elif isinstance(statement, ast.AsyncFunctionDef) and statement.name in skip:
                continue
            elif isinstance(statement, ast.ClassDef):
                raise refuse("class_in_class", self.range_of(statement))
            elif isinstance(statement, (ast.Import, ast.ImportFrom)):
                raise refuse("import", self.range_of(statement))
            else:
                body.append(self.stmt(statement))
        range = self._until(node, body) if body else self.range_of(node)
        return ClassDef.create(range, self._defined_name(node), self.exprs(node.bases), body)

    def _defined_name(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Ident:
        """Return the name after ``def`` or ``class``, which ``ast`` does not locate."""
        keyword = _DEFINES.match(self.source.text, self.start_of(node))
        assert keyword is not None
        return Ident.create(SourceRange(self.source, keyword.end(), keyword.end() + len(node.name)), node.name)
