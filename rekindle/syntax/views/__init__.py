"""Typed views of trees: a name for every child.

A view wraps a :class:`Tree` of one kind and neither copies nor owns it. ``X.create(range, ...)`` builds a tree, the
properties take it apart. Optional children stand in an ``(option …)`` tree with one child or none, several in a
``(list …)``.
"""

from rekindle.syntax.views.base import (
    LIST as LIST,
    OPTION as OPTION,
    Expr as Expr,
    Ident as Ident,
    Stmt as Stmt,
    V as V,
    View as View,
    bare as bare,
    list_tree as list_tree,
    option_tree as option_tree,
)
from rekindle.syntax.views.definitions import (
    ClassDef as ClassDef,
    Decorated as Decorated,
    Def as Def,
    Import as Import,
    Param as Param,
)
from rekindle.syntax.views.expressions import (
    BINARY_OPERATORS as BINARY_OPERATORS,
    UNARY_OPERATORS as UNARY_OPERATORS,
    Apply as Apply,
    Attribute as Attribute,
    BinOp as BinOp,
    Comprehension as Comprehension,
    Const as Const,
    DictComp as DictComp,
    DictLiteral as DictLiteral,
    Dots as Dots,
    Expansion as Expansion,
    FalseLiteral as FalseLiteral,
    GeneratorExpr as GeneratorExpr,
    Lambda as Lambda,
    ListComp as ListComp,
    ListLiteral as ListLiteral,
    NoneLiteral as NoneLiteral,
    Select as Select,
    SetComp as SetComp,
    SetLiteral as SetLiteral,
    SliceExpr as SliceExpr,
    Starred as Starred,
    StringLiteral as StringLiteral,
    Subscript as Subscript,
    TernaryIf as TernaryIf,
    TrueLiteral as TrueLiteral,
    TupleLiteral as TupleLiteral,
    UnaryOp as UnaryOp,
    Var as Var,
    Walrus as Walrus,
)
from rekindle.syntax.views.statements import (
    Assert as Assert,
    Assign as Assign,
    AugAssign as AugAssign,
    Break as Break,
    Continue as Continue,
    Delete as Delete,
    ExprStmt as ExprStmt,
    For as For,
    GivenUp as GivenUp,
    If as If,
    LocalImport as LocalImport,
    Nonlocal as Nonlocal,
    Pass as Pass,
    Raise as Raise,
    Return as Return,
    While as While,
    With as With,
    WithItem as WithItem,
)
