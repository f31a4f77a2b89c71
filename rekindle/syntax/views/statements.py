"""Views of statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rekindle.errors import SourceRange
from rekindle.syntax.tree import Tree
from rekindle.syntax.views.base import (
    LIST,
    Expr,
    Field,
    Ident,
    ListField,
    OptionField,
    Stmt,
    TextField,
    View,
    list_tree,
    option_tree,
)


class ExprStmt(Stmt):
    __slots__ = ()
    KIND = "expression_statement"
    expr = Field(0, Expr)

    @classmethod
    def create(cls, range: SourceRange, expr: Expr) -> ExprStmt:
        return cls._build(range, expr.tree)


class Assign(Stmt):
    """``a = b = value`` and ``a: T = value`` as ``(assign (list a b) (option value) (option T))``.

    A tuple target is a :class:`TupleLiteral`; ``a: T`` alone has no value.
    """

    __slots__ = ()
    KIND = "assign"
    targets = ListField(0, Expr)
    value = OptionField(1, Expr)
    annotation = OptionField(2, Expr)

    @classmethod
    def create(
        cls, range: SourceRange, targets: Sequence[Expr], value: Expr | None, annotation: Expr | None = None
    ) -> Assign:
        return cls._build(range, list_tree(range, targets), option_tree(range, value), option_tree(range, annotation))


class AugAssign(Stmt):
    """``target op= value`` as ``(aug_assign target op value)``, ``op`` without its ``=``."""

    __slots__ = ()
    KIND = "aug_assign"
    target = Field(0, Expr)
    operator = TextField(1)
    value = Field(2, Expr)

    @classmethod
    def create(cls, range: SourceRange, target: Expr, operator: str, value: Expr) -> AugAssign:
        return cls._build(range, target.tree, operator, value.tree)


class Return(Stmt):
    """``return value``; a bare ``return`` has a :class:`NoneLiteral`."""

    __slots__ = ()
    KIND = "return"
    value = Field(0, Expr)

    @classmethod
    def create(cls, range: SourceRange, value: Expr) -> Return:
        return cls._build(range, value.tree)


class Raise(Stmt):
    """``raise value``"""

    __slots__ = ()
    KIND = "raise"
    value = Field(0, Expr)

    @classmethod
    def create(cls, range: SourceRange, value: Expr) -> Raise:
        return cls._build(range, value.tree)


class Assert(Stmt):
    __slots__ = ()
    KIND = "assert"
    test = Field(0, Expr)
    message = OptionField(1, Expr)

    @classmethod
    def create(cls, range: SourceRange, test: Expr, message: Expr | None) -> Assert:
        return cls._build(range, test.tree, option_tree(range, message))


class If(Stmt):
    __slots__ = ()
    KIND = "if"
    condition = Field(0, Expr)
    true_branch = ListField(1, Stmt)
    false_branch = ListField(2, Stmt)

    @classmethod
    def create(
        cls, range: SourceRange, condition: Expr, true_branch: Sequence[Stmt], false_branch: Sequence[Stmt]
    ) -> If:
        return cls._build(range, condition.tree, list_tree(range, true_branch), list_tree(range, false_branch))


class While(Stmt):
    __slots__ = ()
    KIND = "while"
    condition = Field(0, Expr)
    body = ListField(1, Stmt)

    @classmethod
    def create(cls, range: SourceRange, condition: Expr, body: Sequence[Stmt]) -> While:
        return cls._build(range, condition.tree, list_tree(range, body))


class For(Stmt):
    """``for target in iterable: body``; a target of several names is a :class:`TupleLiteral`."""

    __slots__ = ()
    KIND = "for"
    target = Field(0, Expr)
    iterable = Field(1, Expr)
    body = ListField(2, Stmt)

    @classmethod
    def create(cls, range: SourceRange, target: Expr, iterable: Expr, body: Sequence[Stmt]) -> For:
        return cls._build(range, target.tree, iterable.tree, list_tree(range, body))


class Break(Stmt):
    __slots__ = ()
    KIND = "break"


class Continue(Stmt):
    __slots__ = ()
    KIND = "continue"


class Pass(Stmt):
    __slots__ = ()
    KIND = "pass"


class Nonlocal(Stmt):
    """``nonlocal a, b`` as ``(nonlocal (ident a) (ident b))``"""

    __slots__ = ()
    KIND = "nonlocal"

    @classmethod
    def create(cls, range: SourceRange, names: Iterable[Ident]) -> Nonlocal:
        return cls._build(range, *(name.tree for name in names))

    @property
    def names(self) -> list[str]:
        return [Ident(tree).name for tree in self.tree.subtrees()]


class LocalClass(Stmt):
    """``class Name: …`` within a function: its text, including decorators, and the number of the line in its file where
    the text begins."""

    KIND = "local_class"
    __slots__ = ()
    name = TextField(0)
    text = TextField(2)

    @classmethod
    def create(cls, range: SourceRange, name: str, line: int, text: str) -> LocalClass:
        return cls._build(range, name, str(line), text)

    @property
    def line(self) -> int:
        return int(self.tree.string(1))


class LocalImport(Stmt):
    """``from module import attribute as name``, and ``import module as name`` without an attribute, as
    ``(local_import name module attribute)``. Leading dots of a module are those of the source."""

    __slots__ = ()
    KIND = "local_import"
    name = TextField(0)
    module = TextField(1)
    attribute = TextField(2)

    @classmethod
    def create(cls, range: SourceRange, name: str, module: str, attribute: str) -> LocalImport:
        return cls._build(range, name, module, attribute)


class Delete(Stmt):
    """``del a, b[0]``"""

    __slots__ = ()
    KIND = "delete"
    targets = ListField(0, Expr)

    @classmethod
    def create(cls, range: SourceRange, targets: Sequence[Expr]) -> Delete:
        return cls._build(range, list_tree(range, targets))


class WithItem(View):
    """``context as target`` as ``(with_item context (option target))``"""

    __slots__ = ()
    KIND = "with_item"
    context = Field(0, Expr)
    target = OptionField(1, Expr)

    @classmethod
    def create(cls, range: SourceRange, context: Expr, target: Expr | None) -> WithItem:
        return cls._build(range, context.tree, option_tree(range, target))


class With(Stmt):
    __slots__ = ()
    KIND = "with"
    items = ListField(0, WithItem)
    body = ListField(1, Stmt)

    @classmethod
    def create(cls, range: SourceRange, items: Sequence[WithItem], body: Sequence[Stmt]) -> With:
        return cls._build(range, list_tree(range, items), list_tree(range, body))


class ErrorStmt(Stmt):
    """Placeholder for unsupported Python whose error was reported: ``(given_up (list (ident name) …) (list (block
    statement …) …))``, with the names that it binds and the blocks within it. As an expression it has no blocks."""

    __slots__ = ()
    KIND = "given_up"

    @classmethod
    def create(cls, range: SourceRange, names: Iterable[str], blocks: Iterable[Sequence[Stmt]] = ()) -> ErrorStmt:
        idents = [Ident.create(range, name) for name in names]
        trees = tuple(Tree("block", range, tuple(item.tree for item in block)) for block in blocks)
        return cls._build(range, list_tree(range, idents), Tree(LIST, range, trees))

    @property
    def names(self) -> list[str]:
        return [Ident(tree).name for tree in self.tree.subtree(0).subtrees()]

    @property
    def blocks(self) -> list[list[Stmt]]:
        return [[Stmt(item) for item in block.subtrees()] for block in self.tree.subtree(1).subtrees()]


class Handler(View):
    """``except type as name: body`` as ``(handler (option type) name (list …))``; the name may be empty."""

    __slots__ = ()
    KIND = "handler"
    type = OptionField(0, Expr)
    name = TextField(1)
    body = ListField(2, Stmt)

    @classmethod
    def create(cls, range: SourceRange, type: Expr | None, name: str, body: Sequence[Stmt]) -> Handler:
        return cls._build(range, option_tree(range, type), name, list_tree(range, body))


class Try(Stmt):
    """``try: … except …: … else: … finally: …`` as ``(try (list …) (list (handler …) …) (list …) (list …))``."""

    __slots__ = ()
    KIND = "try"
    body = ListField(0, Stmt)
    handlers = ListField(1, Handler)
    otherwise = ListField(2, Stmt)
    final = ListField(3, Stmt)

    @classmethod
    def create(
        cls,
        range: SourceRange,
        body: Sequence[Stmt],
        handlers: Sequence[Handler],
        otherwise: Sequence[Stmt],
        final: Sequence[Stmt],
    ) -> Try:
        parts = (list_tree(range, part) for part in (body, handlers, otherwise, final))
        return cls._build(range, *parts)
