"""Parse types in source code: ``List[int]``, ``Optional[Tensor]``, ``int | None``, ``"Tensor"``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Final

from rekindle.errors import Source, SourceRange, UndefinedNameError, UnsupportedError
from rekindle.frontend.sugared_values.base import Resolver
from rekindle.ir.text.type_parser import custom_class
from rekindle.ir.types import (
    ANY,
    BOOL,
    COMPLEX,
    DEVICE,
    DTYPE,
    FLOAT,
    GENERATOR,
    INT,
    LAYOUT,
    LIBRARY_CLASSES,
    MEMORY_FORMAT,
    NONE,
    NUMBER,
    QSCHEME_NUMBER,
    STREAM,
    STRING,
    TENSOR,
    AwaitType,
    DictType,
    FutureType,
    ListType,
    RRefType,
    TupleType,
    Type,
    optional,
    union,
)
from rekindle.syntax.expression_parser import ExpressionParser
from rekindle.syntax.lexer import Lexer
from rekindle.syntax.parser import parse_expression
from rekindle.syntax.views import BinOp, Expr, Select, StringLiteral, Subscript, TupleLiteral, Var

_CUDA_CLASSES: Final = (
    "torch.classes.cuda.Stream",
    "torch.classes.cuda.Event",
    "torch.cuda.Stream",
    "torch.cuda.Event",
)

SIMPLE_TYPES: Final[dict[str, Type]] = {
    "Tensor": TENSOR,
    "torch.Tensor": TENSOR,
    "int": INT,
    "float": FLOAT,
    "complex": COMPLEX,
    "bool": BOOL,
    "str": STRING,
    "None": NONE,
    "NoneType": NONE,
    "number": NUMBER,
    "Any": ANY,
    "typing.Any": ANY,
    "Device": DEVICE,
    "torch.device": DEVICE,
    "torch.dtype": DTYPE,
    "torch.layout": LAYOUT,
    "torch.memory_format": MEMORY_FORMAT,
    "torch.qscheme": QSCHEME_NUMBER,
    "torch.Generator": GENERATOR,
    "Generator": GENERATOR,
    "Stream": STREAM,
    **{name: custom_class(f"{LIBRARY_CLASSES}cuda.{name.rpartition('.')[2]}") for name in _CUDA_CLASSES},
}
"""Types by name. The names that a program itself defines take precedence."""

# Several of these are spelled as bare names by convention; a program may import them under another name, which the
# resolver knows.
_PREFIXES: Final = ("typing.", "rekindle.", "jit.", "torch.jit.", "torch.futures.", "torch._jit_internal.", "t.", "_t.")

_Maker = Callable[[Sequence[Type]], Type]

_GENERICS: Final[dict[str, tuple[int | None, _Maker]]] = {
    "List": (1, lambda args: ListType(args[0])),
    "list": (1, lambda args: ListType(args[0])),
    "Optional": (1, lambda args: optional(args[0])),
    "Dict": (2, lambda args: DictType(args[0], args[1])),
    "dict": (2, lambda args: DictType(args[0], args[1])),
    "OrderedDict": (2, lambda args: DictType(args[0], args[1], "OrderedDict")),
    "DefaultDict": (2, lambda args: DictType(args[0], args[1], "defaultdict")),
    "defaultdict": (2, lambda args: DictType(args[0], args[1], "defaultdict")),
    "Counter": (1, lambda args: DictType(args[0], INT, "Counter")),
    "Deque": (1, lambda args: ListType(args[0], "deque")),
    "deque": (1, lambda args: ListType(args[0], "deque")),
    "Set": (1, lambda args: DictType(args[0], BOOL, "set")),
    "set": (1, lambda args: DictType(args[0], BOOL, "set")),
    "FrozenSet": (1, lambda args: DictType(args[0], BOOL, "frozenset")),
    "frozenset": (1, lambda args: DictType(args[0], BOOL, "frozenset")),
    "Tuple": (None, lambda args: TupleType(tuple(args))),
    "tuple": (None, lambda args: TupleType(tuple(args))),
    "Union": (None, union),
    "Future": (1, lambda args: FutureType(args[0])),
    "Await": (1, lambda args: AwaitType(args[0])),
    "_Await": (1, lambda args: AwaitType(args[0])),
    "RRef": (1, lambda args: RRefType(args[0])),
    "Final": (1, lambda args: args[0]),
    **{f"BroadcastingList{n}": (1, lambda args: ListType(args[0])) for n in range(1, 7)},
}
"""Generic types: the number of their arguments, and the function that constructs the type."""


def parse_type_expression(expr: Expr, resolver: Resolver) -> Type:
    """Return the type that the annotation ``expr`` denotes. A string is parsed as the expression in it.

    Raises:
        UndefinedNameError: a name in it is not known.
        UnsupportedError: it is not a type, or a type has a wrong number of type arguments.
        CompileError: a string in it is not an expression.
    """
    kind = expr.tree.kind
    if kind == "none":
        return NONE
    if kind == "subscript":
        return _parse_generic(Subscript(expr.tree), resolver)
    if kind == "|":
        either = BinOp(expr.tree)
        return union((parse_type_expression(either.lhs, resolver), parse_type_expression(either.rhs, resolver)))
    if kind == "string_literal":
        text = StringLiteral(expr.tree).text
        return parse_type_expression(_quoted(text, expr.range), resolver)
    name = dotted_name(expr)
    if name is None:
        raise UnsupportedError(f"'{expr.range.text}' is not a type that a program can use", expr.range)
    return parse_type_name(name, expr.range, resolver)


def _quoted(text: str, range: SourceRange) -> Expr:
    """Parse the type in a string at ``range``. Its locations are those in the source if the string has no escapes and
    no line breaks, and else in a source of its own."""
    start = range.start + 1
    if range.text[1:-1] != text or "\n" in text:
        return parse_expression(Source(text))
    lexer = Lexer(range.source, start=start, end=start + len(text), layout=False)
    return ExpressionParser(lexer).whole()


_NEED_ELEMENTS: Final = frozenset(
    {"List", "list", "Dict", "dict", "Tuple", "tuple", "Set", "set", "FrozenSet", "frozenset", "Optional", "Union"}
)


def parse_type_name(name: str, range: SourceRange, resolver: Resolver) -> Type:
    """Return the type called ``name``, which may be dotted: the resolver's, or else one of :data:`SIMPLE_TYPES`.

    Raises:
        UnsupportedError: it is a generic type, which needs the types of its elements.
        UndefinedNameError: there is no such type.
    """
    found = resolver.resolve_type(name, range)
    if found is None:
        found = SIMPLE_TYPES.get(name)
    if found is not None:
        return found
    if _strip(name) in _NEED_ELEMENTS:
        raise UnsupportedError(
            f"'{name}' needs the types of its elements here",
            range,
            hint=f"write, for example, {_example(_strip(name))}",
        )
    raise UndefinedNameError(f"the type '{name}' is not known", range)


def _example(name: str) -> str:
    return {"Dict": "Dict[str, int]", "dict": "dict[str, int]"}.get(name, f"{name}[int]")


def _strip(name: str) -> str:
    if "." not in name:
        return name
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name[len(prefix) :]
    return name


def dotted_name(expr: Expr, most: int = sys.maxsize) -> str | None:
    """Return the name ``a.b.c`` if ``expr`` is one, with at most ``most`` + 1 components; None for other
    expressions."""
    parts: list[str] = []
    while expr.tree.kind == Select.KIND and len(parts) < most:
        select = Select(expr.tree)
        parts.append(select.selector.name)
        expr = select.value
    if expr.tree.kind != Var.KIND:
        return None
    parts.append(Var(expr.tree).name.name)
    return ".".join(reversed(parts))


def _parse_generic(expr: Subscript, resolver: Resolver) -> Type:
    name = dotted_name(expr.value)
    if name is not None and _strip(name).rpartition(".")[2] == "Literal":
        return _type_of_literals(expr, resolver)
    found = None if name is None else _GENERICS.get(_strip(name))
    if found is None:
        raise UndefinedNameError(f"the type '{expr.value.range.text}[…]' is not known", expr.value.range)
    count, make = found
    indices = expr.indices
    if len(indices) == 1 and indices[0].tree.kind == TupleLiteral.KIND:
        indices = TupleLiteral(indices[0].tree).items
    if _strip(name or "") in ("Tuple", "tuple") and len(indices) == 2 and indices[1].tree.kind == "dots":
        return ListType(parse_type_expression(indices[0], resolver), "tuple")
    if count is not None and len(indices) != count:
        raise UnsupportedError(
            f"'{name}' takes {count} type argument{'s' if count > 1 else ''}, got {len(indices)}", expr.range
        )
    return make([parse_type_expression(index, resolver) for index in indices])


def _type_of_literals(expr: Subscript, resolver: Resolver) -> Type:
    """Return the type of the members of ``Literal["a", Color.RED]``: their common type, or a Union; an Optional if
    one is None.

    Raises:
        UndefinedNameError: the class of a member is not known.
        UnsupportedError: a member is not an int, a bool, a string, None or a member of an enum.
    """
    indices = expr.indices
    if len(indices) == 1 and indices[0].tree.kind == TupleLiteral.KIND:
        indices = TupleLiteral(indices[0].tree).items
    types: set[Type] = set()
    for index in indices:
        type = _LITERALS.get(index.tree.kind)
        if index.tree.kind == Select.KIND:
            type = parse_type_expression(Select(index.tree).value, resolver)
        if type is None:
            raise UnsupportedError(
                "a member of a Literal must be an int, a bool, a string, None or a member of an enum here", index.range
            )
        types.add(type)
    if len(types) == 1:
        return types.pop()
    if len(types) == 2 and NONE in types:
        return optional((types - {NONE}).pop())
    return union(types)


_LITERALS: Final[dict[str, Type]] = {
    **dict.fromkeys(("const", "unary_minus"), INT),
    "string_literal": STRING,
    "true": BOOL,
    "false": BOOL,
    "none": NONE,
}
"""Types of the members of a ``Literal``, by the kind of their trees."""


def broadcast_size(expr: Expr) -> int | None:
    """Return the length in the type ``BroadcastingList2[int]``, or in an Optional of it: 2. For such a parameter one
    value is accepted for a list of that length. Return None for other types."""
    if expr.tree.kind == "|":
        either = BinOp(expr.tree)
        return broadcast_size(either.lhs) or broadcast_size(either.rhs)
    if expr.tree.kind != Subscript.KIND:
        return None
    subscript = Subscript(expr.tree)
    name = dotted_name(subscript.value)
    if name is None:
        return None
    if _strip(name) == "Optional" and len(subscript.indices) == 1:
        return broadcast_size(subscript.indices[0])
    stem = "BroadcastingList"
    if not _strip(name).startswith(stem):
        return None
    digits = _strip(name)[len(stem) :]
    return int(digits) if digits.isdigit() else None
