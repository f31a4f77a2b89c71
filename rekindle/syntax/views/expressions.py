"""Views of expressions."""

from __future__ import annotations

from collections.abc import Sequence

from rekindle.errors import SourceRange
from rekindle.syntax.tree import Tree
from rekindle.syntax.views.base import (
    Expr,
    Field,
    Ident,
    ListField,
    OptionField,
    TextField,
    V,
    View,
    list_tree,
    option_tree,
)
from rekindle.syntax.views.definitions import Param


class Var(Expr):
    """``(variable (ident x))``"""

    __slots__ = ()
    KIND = "variable"
    name = Field(0, Ident)

    @classmethod
    def create(cls, range: SourceRange, name: Ident) -> Var:
        return cls._build(range, name.tree)


class Const(Expr):
    """A number literal, as written: ``(const 3)``, ``(const 1e-5)``, ``(const 2j)``."""

    __slots__ = ()
    KIND = "const"
    text = TextField(0)

    @classmethod
    def create(cls, range: SourceRange, text: str) -> Const:
        return cls._build(range, text)

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
    text = TextField(0)

    @classmethod
    def create(cls, range: SourceRange, text: str) -> StringLiteral:
        return cls._build(range, text)


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


class CurrentException(Expr):
    """The operand of a bare ``raise``: the exception that is being handled."""

    __slots__ = ()
    KIND = "caught"


class Select(Expr):
    """``value.selector`` as ``(. value (ident selector))``"""

    __slots__ = ()
    KIND = "."
    value = Field(0, Expr)
    selector = Field(1, Ident)

    @classmethod
    def create(cls, range: SourceRange, value: Expr, selector: Ident) -> Select:
        return cls._build(range, value.tree, selector.tree)


class Attribute(View):
    """A keyword argument: ``(attribute (ident name) value)``; ``**value`` has the name ``**``."""

    __slots__ = ()
    KIND = "attribute"
    name = Field(0, Ident)
    value = Field(1, Expr)

    @classmethod
    def create(cls, range: SourceRange, name: Ident, value: Expr) -> Attribute:
        return cls._build(range, name.tree, value.tree)

    @property
    def is_expansion(self) -> bool:
        return self.name.name == "**"


class Apply(Expr):
    """``callee(inputs…, name=value…)`` as ``(apply callee (list …) (list …))``"""

    __slots__ = ()
    KIND = "apply"
    callee = Field(0, Expr)
    inputs = ListField(1, Expr)
    attributes = ListField(2, Attribute)

    @classmethod
    def create(
        cls, range: SourceRange, callee: Expr, inputs: Sequence[Expr], attributes: Sequence[Attribute] = ()
    ) -> Apply:
        return cls._build(range, callee.tree, list_tree(range, inputs), list_tree(range, attributes))

    @property
    def has_keywords(self) -> bool:
        """Whether there are keyword arguments."""
        return bool(self.tree.subtree(2).children)

    @property
    def callee_name(self) -> str | None:
        """The name of the called variable; None if another expression is called."""
        callee = self.tree.subtree(0)
        return callee.subtree(0).string(0) if callee.kind == Var.KIND else None

    @property
    def only_argument(self) -> Expr | None:
        """The argument of a call with exactly one positional argument and no keyword argument; None for other calls."""
        inputs = self.inputs
        return inputs[0] if len(inputs) == 1 and not self.has_keywords else None


class Starred(Expr):
    """``*value``, in a call, a literal or a target."""

    __slots__ = ()
    KIND = "starred"
    value = Field(0, Expr)

    @classmethod
    def create(cls, range: SourceRange, value: Expr) -> Starred:
        return cls._build(range, value.tree)


class Walrus(Expr):
    """``name := value`` as ``(walrus (variable …) value)``"""

    __slots__ = ()
    KIND = "walrus"
    target = Field(0, Var)
    value = Field(1, Expr)

    @classmethod
    def create(cls, range: SourceRange, target: Expr, value: Expr) -> Walrus:
        return cls._build(range, target.tree, value.tree)


class Lambda(Expr):
    """``lambda a, b=1: body`` as ``(lambda (list (param …) …) body)``"""

    __slots__ = ()
    KIND = "lambda"
    params = ListField(0, Param)
    body = Field(1, Expr)

    @classmethod
    def create(cls, range: SourceRange, params: Sequence[Param], body: Expr) -> Lambda:
        return cls._build(range, list_tree(range, params), body.tree)


class Subscript(Expr):
    """``value[index, …]`` as ``(subscript value (list index …))``. ``x[(0, 1)]`` and ``x[0, 1]`` both have two indices;
    a tuple of no or one item, as in ``Tuple[()]`` and ``x[0,]``, is one index."""

    __slots__ = ()
    KIND = "subscript"
    value = Field(0, Expr)
    indices = ListField(1, Expr)

    @classmethod
    def create(cls, range: SourceRange, value: Expr, indices: Sequence[Expr]) -> Subscript:
        return cls._build(range, value.tree, list_tree(range, indices))


class SliceExpr(Expr):
    """``start:stop:step`` within a subscript, each an option."""

    __slots__ = ()
    KIND = "slice"
    start = OptionField(0, Expr)
    stop = OptionField(1, Expr)
    step = OptionField(2, Expr)

    @classmethod
    def create(cls, range: SourceRange, start: Expr | None, stop: Expr | None, step: Expr | None) -> SliceExpr:
        return cls._build(range, option_tree(range, start), option_tree(range, stop), option_tree(range, step))


class _Sequence(Expr):
    __slots__ = ()
    items = ListField(0, Expr)

    @classmethod
    def create(cls: type[V], range: SourceRange, items: Sequence[Expr]) -> V:
        return cls._build(range, list_tree(range, items))


class ListLiteral(_Sequence):
    __slots__ = ()
    KIND = "list_literal"


class TupleLiteral(_Sequence):
    __slots__ = ()
    KIND = "tuple_literal"


class SetLiteral(_Sequence):
    __slots__ = ()
    KIND = "set_literal"


class Expansion(Expr):
    """Placeholder for the key of ``**value`` in a dict literal."""

    __slots__ = ()
    KIND = "expansion"


class DictLiteral(Expr):
    """``{key: value, …}`` as ``(dict_literal (list key …) (list value …))``"""

    __slots__ = ()
    KIND = "dict_literal"
    keys = ListField(0, Expr)
    values = ListField(1, Expr)

    @classmethod
    def create(cls, range: SourceRange, keys: Sequence[Expr], values: Sequence[Expr]) -> DictLiteral:
        return cls._build(range, list_tree(range, keys), list_tree(range, values))


class Comprehension(View):
    """One ``for target in iterable if condition …`` of a comprehension."""

    __slots__ = ()
    KIND = "comprehension"
    target = Field(0, Expr)
    iterable = Field(1, Expr)
    conditions = ListField(2, Expr)

    @classmethod
    def create(cls, range: SourceRange, target: Expr, iterable: Expr, conditions: Sequence[Expr]) -> Comprehension:
        return cls._build(range, target.tree, iterable.tree, list_tree(range, conditions))


class ListComp(Expr):
    """``[element for …]`` as ``(list_comp element (list (comprehension …) …))``"""

    __slots__ = ()
    KIND = "list_comp"
    element = Field(0, Expr)
    generators = ListField(1, Comprehension)

    @classmethod
    def create(cls, range: SourceRange, element: Expr, generators: Sequence[Comprehension]) -> ListComp:
        return cls._build(range, element.tree, list_tree(range, generators))


class GeneratorExpr(ListComp):
    """``(element for …)``; the same children as a list comprehension."""

    __slots__ = ()
    KIND = "generator"


class SetComp(ListComp):
    """``{element for …}``; the same children as a list comprehension."""

    __slots__ = ()
    KIND = "set_comp"


class DictComp(Expr):
    """``{key: value for …}`` as ``(dict_comp key value (list (comprehension …) …))``"""

    __slots__ = ()
    KIND = "dict_comp"
    key = Field(0, Expr)
    value = Field(1, Expr)
    generators = ListField(2, Comprehension)

    @classmethod
    def create(cls, range: SourceRange, key: Expr, value: Expr, generators: Sequence[Comprehension]) -> DictComp:
        return cls._build(range, key.tree, value.tree, list_tree(range, generators))


class TernaryIf(Expr):
    """``true_expr if condition else false_expr`` as ``(if_expr condition true_expr false_expr)``"""

    __slots__ = ()
    KIND = "if_expr"
    condition = Field(0, Expr)
    true_expr = Field(1, Expr)
    false_expr = Field(2, Expr)

    @classmethod
    def create(cls, range: SourceRange, condition: Expr, true_expr: Expr, false_expr: Expr) -> TernaryIf:
        return cls._build(range, condition.tree, true_expr.tree, false_expr.tree)


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
    lhs = Field(0, Expr)
    rhs = Field(1, Expr)

    @classmethod
    def create(cls, range: SourceRange, operator: str, lhs: Expr, rhs: Expr) -> BinOp:
        assert operator in BINARY_OPERATORS, operator
        return cls(Tree(operator, range, (lhs.tree, rhs.tree)))

    @property
    def operator(self) -> str:
        return self.tree.kind


class UnaryOp(Expr):
    """``op operand`` as ``(op operand)``, ``op`` one of :data:`UNARY_OPERATORS`."""

    __slots__ = ()
    operand = Field(0, Expr)

    @classmethod
    def create(cls, range: SourceRange, operator: str, operand: Expr) -> UnaryOp:
        assert operator in UNARY_OPERATORS, operator
        return cls(Tree(operator, range, (operand.tree,)))

    @property
    def operator(self) -> str:
        return self.tree.kind
