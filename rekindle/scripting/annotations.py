"""Types of Python's annotation objects: ``Optional[List[int]]``, ``dict[str, Tensor]``, ``int | None``, a NamedTuple,
an enum."""

from __future__ import annotations

import ast
import collections
import enum
import inspect
import re
import sys
import textwrap
import threading
import types
import typing
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, ForwardRef, Union, get_args, get_origin

import torch

from rekindle.errors import (
    UNKNOWN_RANGE,
    Cause,
    NotScriptableError,
    ParseError,
    Source,
    SourceRange,
    UnsupportedError,
)
from rekindle.frontend.sugared_values.base import EmptyResolver, Resolver
from rekindle.frontend.type_expressions import parse_type_expression
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
    MEMORY_FORMAT,
    NONE,
    NUMBER,
    QSCHEME_NUMBER,
    STREAM,
    STRING,
    TENSOR,
    AwaitType,
    DictType,
    EnumType,
    FutureType,
    ListType,
    TupleType,
    Type,
    keep_type,
    kept_type,
    optional,
    unify_all,
    union,
)
from rekindle.ops.python.asynchrony import Await
from rekindle.ops.tensor.torchbind_objects import WRAPPER, class_of_wrapper, type_of_python_class
from rekindle.program import torch_jit
from rekindle.program.names import qualified_name
from rekindle.runtime.interpreter.futures import Future
from rekindle.syntax.live_source import source_of
from rekindle.syntax.parser import parse_expression

if sys.version_info >= (3, 14):
    import annotationlib

_SIMPLE: Final[tuple[tuple[Any, Type], ...]] = (
    (None, NONE),
    (type(None), NONE),
    (int, INT),
    (float, FLOAT),
    (complex, COMPLEX),
    (bool, BOOL),
    (str, STRING),
    (Any, ANY),
    (torch.SymInt, INT),
    (torch.SymFloat, FLOAT),
    (torch.SymBool, BOOL),
    (torch.device, DEVICE),
    (torch.dtype, DTYPE),
    (torch.layout, LAYOUT),
    (torch.memory_format, MEMORY_FORMAT),
    (torch.qscheme, QSCHEME_NUMBER),
    (torch.Generator, GENERATOR),
    (torch.Stream, STREAM),
    (torch.Size, ListType(INT, "Size")),
    (torch.types.Number, NUMBER),
)

_OLD_TENSORS: Final = tuple(
    getattr(torch, f"{name}Tensor")
    for name in ("Float", "Double", "Half", "BFloat16", "Char", "Short", "Int", "Long", "Byte", "Bool")
)
"""Python classes of tensors of one dtype, from before dtypes; they are not real subclasses of Tensor."""

TypeHook = Callable[[type, SourceRange], Type | None]
CLASS_HOOKS: list[TypeHook] = []
"""Hooks called in order for the type of a Python class, after the classes that this module handles. Other modules add
to it."""


def type_of_annotation(annotation: Any, range: SourceRange = UNKNOWN_RANGE, resolver: Resolver | None = None) -> Type:
    """Return the type that an annotation object denotes. Strings and forward references are parsed, and ``resolver``
    resolves the names in them.

    Raises:
        NotScriptableError: the annotation, or a part of it, is not a type that a program can use.
        CompileError: a string is not a type expression, or a class in the annotation cannot be compiled.
    """
    found = find_type(annotation, range, resolver)
    if found is None:
        raise NotScriptableError(
            f"the annotation {spell_annotation(annotation)} is not a type that a program can use",
            range,
            hint=_hint(annotation),
            cause=Cause.UNSUPPORTED_CONSTRUCT,
        )
    return found


def find_type(annotation: Any, range: SourceRange = UNKNOWN_RANGE, resolver: Resolver | None = None) -> Type | None:
    """Return the type as :func:`type_of_annotation` does, or None if the annotation object itself is not a type.

    Raises:
        CompileError: a part of the annotation is not a type, a string is not a type expression, or a class in the
            annotation cannot be compiled.
    """
    for known, type in _SIMPLE:
        if annotation is known:
            return type
    if isinstance(annotation, str):
        return parse_type_expression(parse_expression(Source(annotation)), resolver or EmptyResolver())
    if isinstance(annotation, ForwardRef):
        return find_type(annotation.__forward_arg__, range, resolver)
    if isinstance(annotation, Type):
        return annotation
    if isinstance(annotation, WRAPPER):
        return class_of_wrapper(annotation)
    origin = get_origin(annotation)
    if origin is not None:
        with _reading(annotation, range):
            return _generic(annotation, origin, range, resolver)
    if isinstance(annotation, typing.NewType):
        return find_type(annotation.__supertype__, range, resolver)
    if inspect.isclass(annotation):
        return type_of_python_class(annotation) or _class_type(annotation, range, resolver)
    return None


class _State(threading.local):
    def __init__(self) -> None:
        self.reading: list[Any] = []


_state: Final = _State()


@contextmanager
def _reading(annotation: Any, range: SourceRange) -> Iterator[None]:
    """Track that the parts of ``annotation`` are read within the ``with`` block.

    Raises:
        NotScriptableError: ``annotation`` is being read already, so that it contains itself.
    """
    if any(annotation is outer for outer in _state.reading):
        raise NotScriptableError(
            "the annotation refers to itself, and a type of a program has no parts without end",
            range,
            hint="annotate with the types that the program uses, as deep as they are nested",
            cause=Cause.UNSUPPORTED_CONSTRUCT,
        )
    _state.reading.append(annotation)
    try:
        yield
    finally:
        _state.reading.pop()


def _generic(annotation: Any, origin: Any, range: SourceRange, resolver: Resolver | None) -> Type | None:
    args = get_args(annotation)
    if origin is Union or origin is types.UnionType:
        if set(args) == {int, float, complex}:
            return NUMBER
        members = [type_of_annotation(arg, range, resolver) for arg in args]
        if len(members) == 2 and NONE in members:
            return optional(members[0] if members[1] == NONE else members[1])
        return union(members)
    if annotation is typing.Tuple:  # noqa: UP006
        return None
    if origin is tuple:
        if len(args) == 2 and args[1] is Ellipsis:
            return ListType(type_of_annotation(args[0], range, resolver), "tuple")
        wanted = () if args == ((),) else args
        return TupleType(tuple(type_of_annotation(arg, range, resolver) for arg in wanted))
    if origin is typing.Annotated:
        return type_of_annotation(args[0], range, resolver)
    if origin is typing.Literal:
        members = [find_type(type(arg), range, resolver) or ANY for arg in args]
        return unify_all(members) or union(members)
    make = _MAKERS.get(origin)
    if make is None or not args:
        return None
    return make([type_of_annotation(arg, range, resolver) for arg in args])


_MAKERS: Final[dict[Any, Callable[[Sequence[Type]], Type]]] = {
    list: lambda args: ListType(args[0]),
    collections.abc.Sequence: lambda args: ListType(args[0]),
    dict: lambda args: DictType(args[0], args[1]),
    collections.OrderedDict: lambda args: DictType(args[0], args[1], "OrderedDict"),
    collections.defaultdict: lambda args: DictType(args[0], args[1], "defaultdict"),
    collections.Counter: lambda args: DictType(args[0], INT, "Counter"),
    collections.deque: lambda args: ListType(args[0], "deque"),
    set: lambda args: DictType(args[0], BOOL, "set"),
    frozenset: lambda args: DictType(args[0], BOOL, "frozenset"),
    torch.futures.Future: lambda args: FutureType(args[0]),
    Future: lambda args: FutureType(args[0]),
    **{each: lambda args: FutureType(args[0]) for each in torch_jit.FUTURE},
    **{each: lambda args: AwaitType(args[0]) for each in torch_jit.AWAIT},
    Await: lambda args: AwaitType(args[0]),
    Final: lambda args: args[0],
}


_LATER: Final = (torch.futures.Future, Future, *torch_jit.FUTURE, *torch_jit.AWAIT, Await)
"""Classes of asynchronous results, which form a type together with the type of the result."""


def is_final(annotation: object) -> bool:
    """Return whether the annotation is ``Final`` or ``Final[T]``; it may be a string."""
    if isinstance(annotation, str):
        return (
            annotation.rpartition("[")[0].strip().rpartition(".")[2] == "Final"
            or annotation.rpartition(".")[2] == "Final"
        )
    return annotation is typing.Final or get_origin(annotation) is typing.Final


# -------------------------------------------------------------------------------------------------------------- classes


def _class_type(cls: type, range: SourceRange, resolver: Resolver | None) -> Type | None:
    if cls in _OLD_TENSORS:
        warnings.warn(f"the annotation torch.{cls.__name__} is read as Tensor: no dtype is checked", stacklevel=2)
        return TENSOR
    if issubclass(cls, torch.Tensor):
        return TENSOR
    if cls in _LATER:
        raise UnsupportedError(
            f"'{cls.__name__}' needs the type of its value here",
            range,
            hint=f"write, for example, {cls.__name__}[Tensor]",
        )
    found = kept_type(cls)
    if found is not None:
        return found
    if issubclass(cls, enum.Enum):
        return enum_type(cls, range)
    if is_named_tuple(cls):
        return named_tuple_type(cls, range, resolver)
    if hasattr(cls, "n_sequence_fields"):  # of torch.return_types
        fields: tuple[str, ...] = vars(cls)["__match_args__"]
        return TupleType((TENSOR,) * len(fields), None, fields, (), cls)
    for hook in CLASS_HOOKS:
        found = hook(cls, range)
        if found is not None:
            return found
    return None


def enum_type(cls: type[enum.Enum], range: SourceRange = UNKNOWN_RANGE) -> EnumType:
    """Return the type of the members of an enum; it is stored with the class.

    Raises:
        NotScriptableError: the enum has no members, or their values are not all of one type that a program can use.
    """
    found = kept_type(cls)
    if isinstance(found, EnumType):
        return found
    members = {name: member.value for name, member in cls.__members__.items()}
    types_of_values = [find_type(type(value), range) for value in members.values()]
    value_type = unify_all(type for type in types_of_values if type is not None)
    if value_type is None or None in types_of_values:
        kinds = ", ".join(dict.fromkeys(type(value).__name__ for value in members.values()))
        raise NotScriptableError(
            f"the enum '{cls.__name__}' cannot be used: "
            + (f"its values are of different types ({kinds})" if len(members) else "it has no members"),
            range,
            hint="give all members values of one type: int, float or str",
            cause=Cause.INVALID_CLASS,
        )
    result = EnumType(qualified_name(cls), value_type, dict(members), cls)
    keep_type(cls, result)
    return result


def is_named_tuple(cls: object) -> bool:
    return inspect.isclass(cls) and issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def named_tuple_type(cls: type, range: SourceRange = UNKNOWN_RANGE, resolver: Resolver | None = None) -> TupleType:
    """Return the type of a NamedTuple; it is stored with the class. Fields without an annotation are tensors.

    Raises:
        NotScriptableError: the class defines operators of its own, or the annotation of a field is not a type.
    """
    found = kept_type(cls)
    if isinstance(found, TupleType):
        return found
    _check_methods_of_tuple(cls, range)
    fields: tuple[str, ...] = cls._fields  # type: ignore[attr-defined]
    annotations = _annotations_in_mro(cls)
    elements = tuple(
        type_of_annotation(annotations[field], range, resolver) if field in annotations else TENSOR for field in fields
    )
    given: dict[str, object] = getattr(cls, "_field_defaults", {})
    defaults = tuple(given[field] for field in fields if field in given)
    result = TupleType(elements, qualified_name(cls), fields, defaults, cls)
    keep_type(cls, result)
    return result


_OF_TUPLES: Final = (
    *("__len__", "__bool__", "__iter__", "__getitem__", "__contains__", "__add__", "__radd__", "__mul__", "__rmul__"),
    *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"),
)
"""The methods of tuples that operators on tuples compute, whatever the class of the tuple defines."""


def _check_methods_of_tuple(cls: type, range: SourceRange) -> None:
    """Reject a NamedTuple with operators of its own, which compiled code would not call.

    Raises:
        NotScriptableError: the class, or a base of it before ``tuple``, defines one of :data:`_OF_TUPLES`.
    """
    own = next((name for name in _OF_TUPLES if any(name in vars(base) for base in _bases_before_tuple(cls))), None)
    if own is not None:
        raise NotScriptableError(
            f"the NamedTuple '{cls.__name__}' defines '{own}', and compiled code has the operators of tuples only",
            range,
            hint="give the method a name without underscores and call it, or make the class a dataclass",
            cause=Cause.INVALID_CLASS,
        )


def _bases_before_tuple(cls: type) -> list[type]:
    return list(cls.__mro__[: cls.__mro__.index(tuple)])


def annotations_of(obj: Any) -> dict[str, Any]:
    """Return the annotations of a class (without its bases) or a function. If a name in an annotation is not defined
    yet, the annotation is returned unevaluated."""
    try:
        return inspect.get_annotations(obj)
    except NameError:
        # Since Python 3.14 annotations are evaluated when they are asked for.
        if sys.version_info >= (3, 14):
            return annotationlib.get_annotations(obj, format=annotationlib.Format.FORWARDREF)
        raise


def _annotations_in_mro(cls: type) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        found.update(annotations_of(base))
    return found


def class_annotations(cls: type) -> dict[str, tuple[Any, type]]:
    """Return the annotations in the bodies of a class and its bases by name, each with the class that contains it. A
    class overrides its bases. ``nn.Module`` and the base classes of this package are left out."""
    found: dict[str, tuple[Any, type]] = {}
    for base in reversed(cls.__mro__):
        if base is object or _is_library_base(base):
            continue
        found.update((name, (annotation, base)) for name, annotation in annotations_of(base).items())
    return found


def _is_library_base(cls: type) -> bool:
    """Return whether ``cls`` is ``nn.Module`` or a class of this package; programs do not use its annotations."""
    return cls.__module__.startswith("torch.nn.modules.module") or cls.__module__.partition(".")[0] == "rekindle"


_init_annotations: weakref.WeakKeyDictionary[types.FunctionType, dict[str, str]] = weakref.WeakKeyDictionary()


def declared_in_init(cls: type) -> dict[str, tuple[str, types.FunctionType]]:
    """Return by attribute the annotations in ``__init__`` of a class and its bases, such as ``self.items: List[int] =
    []``, which Python does not store: the source of the annotation, and the function that contains it. A class
    overrides its bases. ``nn.Module``, base classes of this package, and functions without source are left out."""
    found: dict[str, tuple[str, types.FunctionType]] = {}
    for owner in reversed(cls.__mro__):
        init = vars(owner).get("__init__")
        if isinstance(init, types.FunctionType) and not _is_library_base(owner):
            init = inspect.unwrap(init)
            found.update((name, (text, init)) for name, text in _annotations_in(init).items())
    return found


def _annotations_in(init: types.FunctionType) -> dict[str, str]:
    known = _init_annotations.get(init)
    if known is None:
        known = _init_annotations[init] = dict(_read_annotations(init))
    return known


def _read_annotations(init: types.FunctionType) -> Iterator[tuple[str, str]]:
    itself = init.__code__.co_varnames[0] if init.__code__.co_argcount else ""
    try:
        text = source_of(init).text
        if re.search(rf"\b{itself}[\s\\]*\.[\s\\]*\w+[\s\\)]*:", text) is None:
            return
        tree = ast.parse(textwrap.dedent(text))
    except (NotScriptableError, ParseError, SyntaxError):
        return  # without source nothing is declared there
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
            target = node.target.value
            if isinstance(target, ast.Name) and target.id == itself:
                yield node.target.attr, ast.unparse(node.annotation)


# ------------------------------------------------------------------------------------------------------------- messages


def spell_annotation(annotation: object) -> str:
    """Return the annotation as source code for an error message, without ``typing.``. A string is shown in quotes."""
    if isinstance(annotation, str):
        return repr(annotation)
    if inspect.isclass(annotation) and get_origin(annotation) is None:
        module = annotation.__module__
        return annotation.__qualname__ if module == "builtins" else f"{module}.{annotation.__qualname__}"
    return repr(annotation).replace("typing.", "")


def _hint(annotation: Any) -> str | None:
    examples = ((list, "List[int]"), (dict, "Dict[str, int]"), (tuple, "Tuple[int, str]"), (set, "Set[int]"))
    example = next((text for cls, text in examples if annotation is cls), None)  # it may have no hash
    if example is not None:
        return f"say of what: {example}"
    if annotation is typing.Optional:
        return "say of what: Optional[int]"
    if inspect.isclass(annotation) and issubclass(annotation, torch.nn.Module):
        return "a module is a part of another module, not an argument; use an attribute of self"
    if get_origin(annotation) is collections.abc.Callable or annotation is typing.Callable:
        return "call the function by its name, or make it an attribute of the module"
    return None
