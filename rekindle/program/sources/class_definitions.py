"""The definitions in a text of an archive, and the bodies of its classes: parsed, not compiled."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch

from rekindle.errors import CompileError, ParseError, Source, SourceRange
from rekindle.frontend.type_expressions import dotted_name
from rekindle.ir.types import TENSOR, Type
from rekindle.ir.types.named import AttributeKind
from rekindle.syntax.parser import parse_module
from rekindle.syntax.views import Assign, ClassDef, Def, Expr, Import, ListLiteral, Stmt, StringLiteral, Subscript, Var


def definitions_in(source: Source) -> dict[str, ClassDef | Def]:
    """Return the classes and functions of a text of an archive, by name. Assignments and imports are ignored.

    Raises:
        ParseError: the text has any other statement, or a name is defined twice.
    """
    found: dict[str, ClassDef | Def] = {}
    for statement in parse_module(source):
        if statement.tree.kind == Assign.KIND:
            continue  # op_version_set = 1: old texts say so which operators they mean; the archive says it, too
        if statement.tree.kind == Import.KIND:
            continue  # import __torch__.a.b: old texts say what they use
        if statement.tree.kind not in (ClassDef.KIND, Def.KIND):
            raise ParseError("the text of an archive holds classes and functions only", statement.range)
        definition = ClassDef(statement.tree) if statement.tree.kind == ClassDef.KIND else Def(statement.tree)
        if definition.name.name in found:
            raise ParseError(f"'{definition.name.name}' is defined twice", definition.name.range)
        found[definition.name.name] = definition
    return found


@dataclass(slots=True)
class ClassText:
    """The contents of a class body in the source of an archive."""

    slots: list[tuple[str, Expr]]
    """Attributes and their types."""
    constants: list[tuple[str, Expr]]
    methods: list[Def]
    parameters: frozenset[str] = frozenset()
    buffers: frozenset[str] | None = None
    """None if the archive does not specify them."""
    pre_hooks: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    """The methods that run before and after ``forward``, in this order."""

    def kind_of(self, name: str, type: Type, is_module: bool) -> AttributeKind:
        if name in self.parameters:
            return "parameter"
        if self.buffers is None:
            # Releases before 1.6: the tensors of a module that are not parameters were its buffers.
            return "buffer" if is_module and type == TENSOR else "attribute"
        return "buffer" if name in self.buffers else "attribute"


def read_class(definition: ClassDef) -> ClassText:
    """Return the contents of the body of a class.

    Raises:
        ParseError: the body has a statement that classes of archives do not have, two members of the same name, or an
            attribute with a name that Python, PyTorch or this package reserves.
    """
    body = ClassText([], [], [])
    for statement in definition.body:
        if statement.tree.kind == Def.KIND:
            body.methods.append(Def(statement.tree))
        elif statement.tree.kind == Assign.KIND:
            _read_assignment(body, Assign(statement.tree))
        elif statement.tree.kind != "pass":
            raise _not_in_class(statement)
    _check_names(body, definition.name.range)
    return body


_MAX_VALUES: Final = 10_000


def check_tuple(name: str, fields: Sequence[tuple[str, Expr]], types: Sequence[Type]) -> None:
    """Check the fields of a NamedTuple in the source of an archive.

    Raises:
        CompileError: Python cannot have a NamedTuple with a field of this name, or the tuple contains more than
            :data:`_MAX_VALUES` values. If each of thirty NamedTuples contains the next one twice, they are ``2**30``.
    """
    for field, annotation in fields:
        if not field.isidentifier() or keyword.iskeyword(field) or field.startswith("_"):
            raise CompileError(f"a NamedTuple cannot have a field '{field}'", annotation.range)
    parts = list(types)
    count = 0
    while parts:
        parts += parts.pop().contained
        count += 1
        if count > _MAX_VALUES:
            raise CompileError(
                f"the NamedTuple '{name}' has more than {_MAX_VALUES} values, with those of the NamedTuples in it",
                fields[0][1].range,
            )


_NAMES_OF_MODULES: Final = frozenset(vars(torch.nn.Module())) - {"training", "_is_full_backward_hook"}
"""The attributes in which modules store their parameters, buffers and submodules."""


_NAMES_OF_PYTHON: Final = frozenset(
    {
        *(name for name in (*dir(type), "__dict__", "__slots__", "__getattr__", "__del__") if name.startswith("__")),
        *("__get__", "__set__", "__delete__", "__set_name__", "__init_subclass__", "__class_getitem__"),
    }
)
"""Names that Python looks up implicitly."""


def _is_kept(name: str) -> bool:
    return name in _NAMES_OF_MODULES or name in _NAMES_OF_PYTHON or name.startswith("_rekindle_")


def _check_names(body: ClassText, place: SourceRange) -> None:
    attributes = [name for name, _ in (*body.slots, *body.constants)]
    known: set[str] = set()
    for name in (*attributes, *(method.name.name for method in body.methods)):
        if name in known:
            raise ParseError(f"this class has two things of the name '{name}'", place)
        known.add(name)
    for name in attributes:
        if _is_kept(name):
            raise ParseError(f"this class has an attribute '{name}', a name that is kept for other purposes", place)


def _read_assignment(body: ClassText, assign: Assign) -> None:
    """Read an assignment in the body of a class into ``body``: ``x : Tensor``, ``n : Final[int] = 3``,
    ``__annotations__["0"] = Tensor`` or ``__parameters__ = ["weight", ]``.

    Raises:
        ParseError: it has another form.
    """
    if len(assign.targets) != 1:
        raise _not_in_class(assign)
    target = assign.targets[0]
    if target.tree.kind == Subscript.KIND:
        subscript = Subscript(target.tree)
        if dotted_name(subscript.value) != "__annotations__" or len(subscript.indices) != 1 or assign.value is None:
            raise _not_in_class(assign)
        body.slots.append((_string(subscript.indices[0]), assign.value))
        return
    if target.tree.kind != Var.KIND:
        raise _not_in_class(assign)
    name = Var(target.tree).name.name
    if name in ("__parameters__", "__buffers__", "__annotations__", "__forward_hooks__", "__forward_pre_hooks__"):
        names = tuple(_string(item) for item in _items(assign))
        if name == "__parameters__":
            body.parameters = frozenset(names)
        elif name == "__buffers__":
            body.buffers = frozenset(names)
        elif name == "__forward_pre_hooks__":
            body.pre_hooks = names
        elif name == "__forward_hooks__":
            body.hooks = names
    elif assign.value is not None:
        body.constants.append((name, assign.value))
    elif assign.annotation is not None:
        body.slots.append((name, assign.annotation))


def _items(assign: Assign) -> list[Expr]:
    if assign.value is None or assign.value.tree.kind != ListLiteral.KIND:
        raise _not_in_class(assign)
    return ListLiteral(assign.value.tree).items


def _string(expr: Expr) -> str:
    if expr.tree.kind != StringLiteral.KIND:
        raise ParseError("a name in quotes must be here", expr.range)
    return StringLiteral(expr.tree).text


def _not_in_class(statement: Stmt) -> ParseError:
    return ParseError("this is not supported in the class of an archive", statement.range)
