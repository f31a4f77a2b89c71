"""Views of functions, their parameters, classes and imports."""

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
    Stmt,
    TextField,
    View,
    list_tree,
    option_tree,
)


class Param(View):
    """One parameter: ``(param (ident name) (option annotation) (option default) marker)``.

    ``marker`` is empty, ``*`` for a keyword-only parameter, ``*args`` for one that takes all further positional
    arguments, and ``**kwargs`` for one that takes all further keyword arguments.
    """

    __slots__ = ()
    KIND = "param"
    name = Field(0, Ident)
    annotation = OptionField(1, Expr)
    default = OptionField(2, Expr)

    @classmethod
    def create(
        cls, range: SourceRange, name: Ident, annotation: Expr | None, default: Expr | None, kwarg_only: bool = False
    ) -> Param:
        return cls._marked(range, name, annotation, default, "*" if kwarg_only else "")

    @classmethod
    def variadic(cls, range: SourceRange, name: Ident, annotation: Expr | None, stars: str) -> Param:
        """Create the parameter ``*name`` or ``**name``, according to ``stars``."""
        return cls._marked(range, name, annotation, None, "*args" if stars == "*" else "**kwargs")

    @classmethod
    def _marked(
        cls, range: SourceRange, name: Ident, annotation: Expr | None, default: Expr | None, marker: str
    ) -> Param:
        return cls._build(range, name.tree, option_tree(range, annotation), option_tree(range, default), marker)

    def with_annotation(self, annotation: Expr) -> Param:
        """Return the parameter with another annotation."""
        return self._marked(self.range, self.name, annotation, self.default, self.tree.string(3))

    @property
    def kwarg_only(self) -> bool:
        return self.tree.string(3) == "*"

    @property
    def takes_positional(self) -> bool:
        """Whether the parameter is ``*name``."""
        return self.tree.string(3) == "*args"

    @property
    def takes_keywords(self) -> bool:
        """Whether the parameter is ``**name``."""
        return self.tree.string(3) == "**kwargs"

    @property
    def is_variadic(self) -> bool:
        return self.takes_positional or self.takes_keywords


class Def(Stmt):
    """``def name(params) -> return_type: body``"""

    __slots__ = ()
    KIND = "def"
    name = Field(0, Ident)
    params = ListField(1, Param)
    return_type = OptionField(2, Expr)
    body = ListField(3, Stmt)

    @classmethod
    def create(
        cls, range: SourceRange, name: Ident, params: Sequence[Param], return_type: Expr | None, body: Sequence[Stmt]
    ) -> Def:
        return cls._build(
            range, name.tree, list_tree(range, params), option_tree(range, return_type), list_tree(range, body)
        )

    def with_name(self, name: str) -> Def:
        """Return the definition under another name."""
        ident = Ident.create(self.name.range, name)
        return Def(Tree(self.KIND, self.range, (ident.tree, *self.tree.children[1:])))


class Decorated(Stmt):
    """A method with decorators, in the body of a class: ``(decorated (list decorator …) def)``."""

    __slots__ = ()
    KIND = "decorated"
    decorators = ListField(0, Expr)
    definition = Field(1, Def)

    @classmethod
    def create(cls, decorators: Sequence[Expr], definition: Def) -> Decorated:
        range = definition.range
        return cls._build(range, list_tree(range, decorators), definition.tree)


class ClassDef(Stmt):
    """``class name(bases…): body`` as ``(class_def (ident name) (list base …) (list statement …))``"""

    __slots__ = ()
    KIND = "class_def"
    name = Field(0, Ident)
    bases = ListField(1, Expr)
    body = ListField(2, Stmt)

    @classmethod
    def create(cls, range: SourceRange, name: Ident, bases: Sequence[Expr], body: Sequence[Stmt]) -> ClassDef:
        return cls._build(range, name.tree, list_tree(range, bases), list_tree(range, body))

    def with_name(self, name: str) -> ClassDef:
        """Return the definition under another name."""
        ident = Ident.create(self.name.range, name)
        return ClassDef(Tree(self.KIND, self.range, (ident.tree, *self.tree.children[1:])))


class Import(Stmt):
    """``import a.b.c`` at the top of a program text, as ``(import a.b.c)``."""

    __slots__ = ()
    KIND = "import"
    name = TextField(0)

    @classmethod
    def create(cls, range: SourceRange, name: str) -> Import:
        return cls._build(range, name)
