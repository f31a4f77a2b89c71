"""Typed views of trees: a name for every child.

A view wraps a :class:`Tree` of one kind and neither copies nor owns it. ``X.create(range, ...)`` builds a tree, the
properties take it apart. Optional children stand in an ``(option …)`` tree with one child or none, several in a
``(list …)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, TypeVar

from rekindle.errors import SourceRange
from rekindle.syntax.tree import Child, Tree

LIST = "list"
OPTION = "option"

V = TypeVar("V", bound="View")


class View:
    """The base of all views."""

    __slots__ = ("tree",)
    KIND: ClassVar[str] = ""

    def __init__(self, tree: Tree) -> None:
        assert not self.KIND or tree.kind == self.KIND, f"a {self.KIND} view of a {tree.kind} tree"
        self.tree = tree

    @property
    def range(self) -> SourceRange:
        return self.tree.range

    @classmethod
    def _build(cls: type[V], range: SourceRange, *children: Child) -> V:
        return cls(Tree(cls.KIND, range, children))

    def __str__(self) -> str:
        return str(self.tree)

    def _views(self, index: int, view: type[V]) -> list[V]:
        return [view(tree) for tree in self.tree.subtree(index).subtrees()]

    def _maybe(self, index: int, view: type[V]) -> V | None:
        option = self.tree.subtree(index)
        return view(option.subtree(0)) if option.children else None


def list_tree(range: SourceRange, items: Iterable[View]) -> Tree:
    return Tree(LIST, range, tuple(item.tree for item in items))


def option_tree(range: SourceRange, item: View | None) -> Tree:
    return Tree(OPTION, range, () if item is None else (item.tree,))


def bare(view: type[V], range: SourceRange) -> V:
    """A view of a tree without children: ``bare(Pass, range)``."""
    return view(Tree(view.KIND, range))


class Expr(View):
    """Any expression."""

    __slots__ = ()


class Stmt(View):
    """Any statement."""

    __slots__ = ()


class Ident(View):
    """``(ident name)``"""

    __slots__ = ()
    KIND = "ident"

    @classmethod
    def create(cls, range: SourceRange, name: str) -> Ident:
        return cls._build(range, name)

    @property
    def name(self) -> str:
        return self.tree.string(0)


# ----------------------------------------------------------------------------------------- expressions


class Var(Expr):
    """``(variable (ident x))``"""

    __slots__ = ()
    KIND = "variable"

    @classmethod
    def create(cls, range: SourceRange, name: Ident) -> Var:
        return cls._build(range, name.tree)

    @property
    def name(self) -> Ident:
        return Ident(self.tree.subtree(0))


class Const(Expr):
    """A number as it is written: ``(const 3)``, ``(const 1e-5)``, ``(const 2j)``."""

    __slots__ = ()
    KIND = "const"

    @classmethod
    def create(cls, range: SourceRange, text: str) -> Const:
        return cls._build(range, text)

    @property
    def text(self) -> str:
        return self.tree.string(0)

    @property
    def value(self) -> int | float | complex:
        text = self.text.replace("_", "")
        if text[-1] in "jJ":
            return complex(text)
        if text[:2].lower() in ("0x", "0b", "0o"):
            return int(text, 0)
        if any(c in text for c in ".eE") or text in ("inf", "nan"):
            return float(text)
        return int(text)


class StringLiteral(Expr):
    """``(string_literal text)``, the text with its escapes resolved."""

    __slots__ = ()
    KIND = "string_literal"

    @classmethod
    def create(cls, range: SourceRange, text: str) -> StringLiteral:
        return cls._build(range, text)

    @property
    def text(self) -> str:
        return self.tree.string(0)


class TrueLiteral(Expr):
    __slots__ = ()
    KIND = "true"


class FalseLiteral(Expr):
    __slots__ = ()
    KIND = "false"


class NoneLiteral(Expr):
    __slots__ = ()
    KIND = "none"


class Dots(Expr):
    """``...``"""

    __slots__ = ()
    KIND = "dots"


class Select(Expr):
    """``value.selector`` as ``(. value (ident selector))``"""

    __slots__ = ()
    KIND = "."

    @classmethod
    def create(cls, range: SourceRange, value: Expr, selector: Ident) -> Select:
        return cls._build(range, value.tree, selector.tree)

    @property
    def value(self) -> Expr:
        return Expr(self.tree.subtree(0))

    @property
    def selector(self) -> Ident:
        return Ident(self.tree.subtree(1))


class Attribute(View):
    """A keyword argument: ``(attribute (ident name) value)``."""

    __slots__ = ()
    KIND = "attribute"

    @classmethod
    def create(cls, range: SourceRange, name: Ident, value: Expr) -> Attribute:
        return cls._build(range, name.tree, value.tree)

    @property
    def name(self) -> Ident:
        return Ident(self.tree.subtree(0))

    @property
    def value(self) -> Expr:
        return Expr(self.tree.subtree(1))


class Apply(Expr):
    """``callee(inputs…, name=value…)`` as ``(apply callee (list …) (list …))``"""

    __slots__ = ()
    KIND = "apply"

    @classmethod
    def create(
        cls, range: SourceRange, callee: Expr, inputs: Sequence[Expr], attributes: Sequence[Attribute] = ()
    ) -> Apply:
        return cls._build(range, callee.tree, list_tree(range, inputs), list_tree(range, attributes))

    @property
    def callee(self) -> Expr:
        return Expr(self.tree.subtree(0))

    @property
    def inputs(self) -> list[Expr]:
        return self._views(1, Expr)

    @property
    def attributes(self) -> list[Attribute]:
        return self._views(2, Attribute)


class Starred(Expr):
    """``*value``, in a call, a literal or a target."""

    __slots__ = ()
    KIND = "starred"

    @classmethod
    def create(cls, range: SourceRange, value: Expr) -> Starred:
        return cls._build(range, value.tree)

    @property
    def value(self) -> Expr:
        return Expr(self.tree.subtree(0))


class Subscript(Expr):
    """``value[index, …]`` as ``(subscript value (list index …))``; a parenthesised tuple is one index, as in Python
    it is not: ``x[(0, 1)]`` and ``x[0, 1]`` both give two.
    """

    __slots__ = ()
    KIND = "subscript"

    @classmethod
    def create(cls, range: SourceRange, value: Expr, indices: Sequence[Expr]) -> Subscript:
        return cls._build(range, value.tree, list_tree(range, indices))

    @property
    def value(self) -> Expr:
        return Expr(self.tree.subtree(0))

    @property
    def indices(self) -> list[Expr]:
        return self._views(1, Expr)


class SliceExpr(Expr):
    """``start:stop:step`` within a subscript, each an option."""

    __slots__ = ()
    KIND = "slice"

    @classmethod
    def create(cls, range: SourceRange, start: Expr | None, stop: Expr | None, step: Expr | None) -> SliceExpr:
        return cls._build(range, option_tree(range, start), option_tree(range, stop), option_tree(range, step))

    @property
    def start(self) -> Expr | None:
        return self._maybe(0, Expr)

    @property
    def stop(self) -> Expr | None:
        return self._maybe(1, Expr)

    @property
    def step(self) -> Expr | None:
        return self._maybe(2, Expr)


class _Sequence(Expr):
    __slots__ = ()

    @classmethod
    def create(cls: type[V], range: SourceRange, items: Sequence[Expr]) -> V:
        return cls._build(range, list_tree(range, items))

    @property
    def items(self) -> list[Expr]:
        return self._views(0, Expr)


class ListLiteral(_Sequence):
    __slots__ = ()
    KIND = "list_literal"


class TupleLiteral(_Sequence):
    __slots__ = ()
    KIND = "tuple_literal"


class SetLiteral(_Sequence):
    __slots__ = ()
    KIND = "set_literal"


class DictLiteral(Expr):
    """``{key: value, …}`` as ``(dict_literal (list key …) (list value …))``"""

    __slots__ = ()
    KIND = "dict_literal"

    @classmethod
    def create(cls, range: SourceRange, keys: Sequence[Expr], values: Sequence[Expr]) -> DictLiteral:
        return cls._build(range, list_tree(range, keys), list_tree(range, values))

    @property
    def keys(self) -> list[Expr]:
        return self._views(0, Expr)

    @property
    def values(self) -> list[Expr]:
        return self._views(1, Expr)


class Comprehension(View):
    """One ``for target in iterable if condition …`` of a comprehension."""

    __slots__ = ()
    KIND = "comprehension"

    @classmethod
    def create(cls, range: SourceRange, target: Expr, iterable: Expr, conditions: Sequence[Expr]) -> Comprehension:
        return cls._build(range, target.tree, iterable.tree, list_tree(range, conditions))

    @property
    def target(self) -> Expr:
        return Expr(self.tree.subtree(0))

    @property
    def iterable(self) -> Expr:
        return Expr(self.tree.subtree(1))

    @property
    def conditions(self) -> list[Expr]:
        return self._views(2, Expr)


class ListComp(Expr):
    """``[element for …]`` as ``(list_comp element (list (comprehension …) …))``"""

    __slots__ = ()
    KIND = "list_comp"

    @classmethod
    def create(cls, range: SourceRange, element: Expr, generators: Sequence[Comprehension]) -> ListComp:
        return cls._build(range, element.tree, list_tree(range, generators))

    @property
    def element(self) -> Expr:
        return Expr(self.tree.subtree(0))

    @property
    def generators(self) -> list[Comprehension]:
        return self._views(1, Comprehension)


class GeneratorExpr(ListComp):
    """``(element for …)``; the same children as a list comprehension."""

    __slots__ = ()
    KIND = "generator"


class DictComp(Expr):
    """``{key: value for …}`` as ``(dict_comp key value (list (comprehension …) …))``"""

    __slots__ = ()
    KIND = "dict_comp"

    @classmethod
    def create(cls, range: SourceRange, key: Expr, value: Expr, generators: Sequence[Comprehension]) -> DictComp:
        return cls._build(range, key.tree, value.tree, list_tree(range, generators))

    @property
    def key(self) -> Expr:
        return Expr(self.tree.subtree(0))

    @property
    def value(self) -> Expr:
        return Expr(self.tree.subtree(1))

    @property
    def generators(self) -> list[Comprehension]:
        return self._views(2, Comprehension)


class TernaryIf(Expr):
    """``true_expr if condition else false_expr`` as ``(if_expr condition true_expr false_expr)``"""

    __slots__ = ()
    KIND = "if_expr"

    @classmethod
    def create(cls, range: SourceRange, condition: Expr, true_expr: Expr, false_expr: Expr) -> TernaryIf:
        return cls._build(range, condition.tree, true_expr.tree, false_expr.tree)

    @property
    def condition(self) -> Expr:
        return Expr(self.tree.subtree(0))

    @property
    def true_expr(self) -> Expr:
        return Expr(self.tree.subtree(1))

    @property
    def false_expr(self) -> Expr:
        return Expr(self.tree.subtree(2))


BINARY_OPERATORS = (
    *("+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "<<", ">>"),
    *("==", "!=", "<", "<=", ">", ">=", "is", "is_not", "in", "not_in", "and", "or"),
)
"""The kinds of binary expressions. ``a < b < c`` becomes ``(and (< a b) (< b c))``."""

UNARY_OPERATORS = ("unary_minus", "unary_plus", "~", "not")
"""The kinds of unary expressions."""


class BinOp(Expr):
    """``lhs op rhs`` as ``(op lhs rhs)``, ``op`` one of :data:`BINARY_OPERATORS`."""

    __slots__ = ()

    @classmethod
    def create(cls, range: SourceRange, operator: str, lhs: Expr, rhs: Expr) -> BinOp:
        assert operator in BINARY_OPERATORS, operator
        return cls(Tree(operator, range, (lhs.tree, rhs.tree)))

    @property
    def operator(self) -> str:
        return self.tree.kind

    @property
    def lhs(self) -> Expr:
        return Expr(self.tree.subtree(0))

    @property
    def rhs(self) -> Expr:
        return Expr(self.tree.subtree(1))


class UnaryOp(Expr):
    """``op operand`` as ``(op operand)``, ``op`` one of :data:`UNARY_OPERATORS`."""

    __slots__ = ()

    @classmethod
    def create(cls, range: SourceRange, operator: str, operand: Expr) -> UnaryOp:
        assert operator in UNARY_OPERATORS, operator
        return cls(Tree(operator, range, (operand.tree,)))

    @property
    def operator(self) -> str:
        return self.tree.kind

    @property
    def operand(self) -> Expr:
        return Expr(self.tree.subtree(0))


# ------------------------------------------------------------------------------------------ statements


class ExprStmt(Stmt):
    __slots__ = ()
    KIND = "expression_statement"

    @classmethod
    def create(cls, range: SourceRange, expr: Expr) -> ExprStmt:
        return cls._build(range, expr.tree)

    @property
    def expr(self) -> Expr:
        return Expr(self.tree.subtree(0))


class Assign(Stmt):
    """``a = b = value`` and ``a: T = value`` as ``(assign (list a b) (option value) (option T))``.

    A tuple target is a :class:`TupleLiteral`; ``a: T`` alone has no value.
    """

    __slots__ = ()
    KIND = "assign"

    @classmethod
    def create(
        cls, range: SourceRange, targets: Sequence[Expr], value: Expr | None, annotation: Expr | None = None
    ) -> Assign:
        return cls._build(range, list_tree(range, targets), option_tree(range, value), option_tree(range, annotation))

    @property
    def targets(self) -> list[Expr]:
        return self._views(0, Expr)

    @property
    def value(self) -> Expr | None:
        return self._maybe(1, Expr)

    @property
    def annotation(self) -> Expr | None:
        return self._maybe(2, Expr)


class AugAssign(Stmt):
    """``target op= value`` as ``(aug_assign target op value)``, ``op`` without its ``=``."""

    __slots__ = ()
    KIND = "aug_assign"

    @classmethod
    def create(cls, range: SourceRange, target: Expr, operator: str, value: Expr) -> AugAssign:
        return cls._build(range, target.tree, operator, value.tree)

    @property
    def target(self) -> Expr:
        return Expr(self.tree.subtree(0))

    @property
    def operator(self) -> str:
        return self.tree.string(1)

    @property
    def value(self) -> Expr:
        return Expr(self.tree.subtree(2))


class Return(Stmt):
    """``return value``; a bare ``return`` has a :class:`NoneLiteral`."""

    __slots__ = ()
    KIND = "return"

    @classmethod
    def create(cls, range: SourceRange, value: Expr) -> Return:
        return cls._build(range, value.tree)

    @property
    def value(self) -> Expr:
        return Expr(self.tree.subtree(0))


class Raise(Stmt):
    """``raise value``"""

    __slots__ = ()
    KIND = "raise"

    @classmethod
    def create(cls, range: SourceRange, value: Expr) -> Raise:
        return cls._build(range, value.tree)

    @property
    def value(self) -> Expr:
        return Expr(self.tree.subtree(0))


class Assert(Stmt):
    __slots__ = ()
    KIND = "assert"

    @classmethod
    def create(cls, range: SourceRange, test: Expr, message: Expr | None) -> Assert:
        return cls._build(range, test.tree, option_tree(range, message))

    @property
    def test(self) -> Expr:
        return Expr(self.tree.subtree(0))

    @property
    def message(self) -> Expr | None:
        return self._maybe(1, Expr)


class If(Stmt):
    __slots__ = ()
    KIND = "if"

    @classmethod
    def create(
        cls, range: SourceRange, condition: Expr, true_branch: Sequence[Stmt], false_branch: Sequence[Stmt]
    ) -> If:
        return cls._build(range, condition.tree, list_tree(range, true_branch), list_tree(range, false_branch))

    @property
    def condition(self) -> Expr:
        return Expr(self.tree.subtree(0))

    @property
    def true_branch(self) -> list[Stmt]:
        return self._views(1, Stmt)

    @property
    def false_branch(self) -> list[Stmt]:
        return self._views(2, Stmt)


class While(Stmt):
    __slots__ = ()
    KIND = "while"

    @classmethod
    def create(cls, range: SourceRange, condition: Expr, body: Sequence[Stmt]) -> While:
        return cls._build(range, condition.tree, list_tree(range, body))

    @property
    def condition(self) -> Expr:
        return Expr(self.tree.subtree(0))

    @property
    def body(self) -> list[Stmt]:
        return self._views(1, Stmt)


class For(Stmt):
    """``for target in iterable: body``; a target of several names is a :class:`TupleLiteral`."""

    __slots__ = ()
    KIND = "for"

    @classmethod
    def create(cls, range: SourceRange, target: Expr, iterable: Expr, body: Sequence[Stmt]) -> For:
        return cls._build(range, target.tree, iterable.tree, list_tree(range, body))

    @property
    def target(self) -> Expr:
        return Expr(self.tree.subtree(0))

    @property
    def iterable(self) -> Expr:
        return Expr(self.tree.subtree(1))

    @property
    def body(self) -> list[Stmt]:
        return self._views(2, Stmt)


class Break(Stmt):
    __slots__ = ()
    KIND = "break"


class Continue(Stmt):
    __slots__ = ()
    KIND = "continue"


class Pass(Stmt):
    __slots__ = ()
    KIND = "pass"


class Delete(Stmt):
    """``del a, b[0]``"""

    __slots__ = ()
    KIND = "delete"

    @classmethod
    def create(cls, range: SourceRange, targets: Sequence[Expr]) -> Delete:
        return cls._build(range, list_tree(range, targets))

    @property
    def targets(self) -> list[Expr]:
        return self._views(0, Expr)


class WithItem(View):
    """``context as target`` as ``(with_item context (option target))``"""

    __slots__ = ()
    KIND = "with_item"

    @classmethod
    def create(cls, range: SourceRange, context: Expr, target: Expr | None) -> WithItem:
        return cls._build(range, context.tree, option_tree(range, target))

    @property
    def context(self) -> Expr:
        return Expr(self.tree.subtree(0))

    @property
    def target(self) -> Expr | None:
        return self._maybe(1, Expr)


class With(Stmt):
    __slots__ = ()
    KIND = "with"

    @classmethod
    def create(cls, range: SourceRange, items: Sequence[WithItem], body: Sequence[Stmt]) -> With:
        return cls._build(range, list_tree(range, items), list_tree(range, body))

    @property
    def items(self) -> list[WithItem]:
        return self._views(0, WithItem)

    @property
    def body(self) -> list[Stmt]:
        return self._views(1, Stmt)


# ----------------------------------------------------------------------------------------- definitions


class Param(View):
    """One parameter: ``(param (ident name) (option annotation) (option default) marker)``.

    ``marker`` is empty, or ``*`` for a parameter that only a keyword can give.
    """

    __slots__ = ()
    KIND = "param"

    @classmethod
    def create(
        cls, range: SourceRange, name: Ident, annotation: Expr | None, default: Expr | None, kwarg_only: bool = False
    ) -> Param:
        marker = "*" if kwarg_only else ""
        return cls._build(range, name.tree, option_tree(range, annotation), option_tree(range, default), marker)

    @property
    def name(self) -> Ident:
        return Ident(self.tree.subtree(0))

    @property
    def annotation(self) -> Expr | None:
        return self._maybe(1, Expr)

    @property
    def default(self) -> Expr | None:
        return self._maybe(2, Expr)

    @property
    def kwarg_only(self) -> bool:
        return self.tree.string(3) == "*"


class Def(Stmt):
    """``def name(params) -> return_type: body``"""

    __slots__ = ()
    KIND = "def"

    @classmethod
    def create(
        cls, range: SourceRange, name: Ident, params: Sequence[Param], return_type: Expr | None, body: Sequence[Stmt]
    ) -> Def:
        return cls._build(
            range, name.tree, list_tree(range, params), option_tree(range, return_type), list_tree(range, body)
        )

    @property
    def name(self) -> Ident:
        return Ident(self.tree.subtree(0))

    @property
    def params(self) -> list[Param]:
        return self._views(1, Param)

    @property
    def return_type(self) -> Expr | None:
        return self._maybe(2, Expr)

    @property
    def body(self) -> list[Stmt]:
        return self._views(3, Stmt)

    def with_name(self, name: str) -> Def:
        """The same definition under another name."""
        ident = Ident.create(self.name.range, name)
        return Def(Tree(self.KIND, self.range, (ident.tree, *self.tree.children[1:])))


class ClassDef(Stmt):
    """``class name(bases…): body`` as ``(class_def (ident name) (list base …) (list statement …))``"""

    __slots__ = ()
    KIND = "class_def"

    @classmethod
    def create(cls, range: SourceRange, name: Ident, bases: Sequence[Expr], body: Sequence[Stmt]) -> ClassDef:
        return cls._build(range, name.tree, list_tree(range, bases), list_tree(range, body))

    @property
    def name(self) -> Ident:
        return Ident(self.tree.subtree(0))

    @property
    def bases(self) -> list[Expr]:
        return self._views(1, Expr)

    @property
    def body(self) -> list[Stmt]:
        return self._views(2, Stmt)

    def with_name(self, name: str) -> ClassDef:
        """The same definition under another name."""
        ident = Ident.create(self.name.range, name)
        return ClassDef(Tree(self.KIND, self.range, (ident.tree, *self.tree.children[1:])))


class Import(Stmt):
    """``import a.b.c`` at the top of a program text, as ``(import a.b.c)``."""

    __slots__ = ()
    KIND = "import"

    @classmethod
    def create(cls, range: SourceRange, name: str) -> Import:
        return cls._build(range, name)

    @property
    def name(self) -> str:
        return self.tree.string(0)
