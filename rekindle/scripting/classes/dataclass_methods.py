"""Methods that ``@dataclass`` generates: their source, which Python does not store, is regenerated and compiled."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from typing import Any, Final

from rekindle.errors import Cause, NotScriptableError, Source, SourceRange
from rekindle.frontend.emitter import SelfBinding
from rekindle.frontend.sugared_values.base import ChainResolver, Resolver
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.types import ClassType, OptionalType, TensorType, Type, optional, without_none
from rekindle.program.sources.definition import define_function
from rekindle.scripting.constants import plain
from rekindle.scripting.resolver import PythonResolver
from rekindle.syntax.parser import parse_module
from rekindle.syntax.views import Def


def check_dataclass(cls: Any, declared: dict[str, Type], range: SourceRange) -> None:
    """Reject dataclasses that programs do not support. ``declared`` has the types of the fields.

    Raises:
        NotScriptableError: an Optional field has a default_factory. None cannot be distinguished from the default, for
            which the compiled ``__init__`` calls the factory.
    """
    for item in _parameters(cls):
        if _is_made(item) and declared[item.name].is_optional:
            raise NotScriptableError(
                f"the field '{item.name}' of the dataclass '{cls.__name__}' may be None and has a default_factory",
                range,
                hint="None stands for the default in a program: leave Optional or the default_factory away",
                cause=Cause.INVALID_CLASS,
            )


def inner_of_init_var(annotation: object) -> object:
    """Return the type within ``InitVar[…]``, also as a string; None for any other annotation."""
    if isinstance(annotation, dataclasses.InitVar):
        return annotation.type
    if isinstance(annotation, str):
        name, _, rest = annotation.partition("[")
        return rest.rpartition("]")[0] if name.rpartition(".")[2] == "InitVar" else None
    return None


def is_frozen(cls: Any) -> bool:
    """Return whether ``cls`` is a frozen dataclass, whose attributes cannot be assigned."""
    return dataclasses.is_dataclass(cls) and bool(vars(cls)["__dataclass_params__"].frozen)


_ORDER = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}


_OF_EQUALS: Final = ("__eq__", "__le__", "__ge__")
"""The comparisons that are true of equal objects."""


def generated_methods(cls: Any) -> list[str]:
    """Return the names of the methods that ``@dataclass`` generated and that programs support. Methods written in the
    class itself are not included."""
    settings = cls.__dataclass_params__
    found = ["__init__"] if settings.init and _is_generated(cls, "__init__") else []
    found += ["__eq__"] if settings.eq and _is_generated(cls, "__eq__") else []
    found += ["__repr__"] if settings.repr and _is_generated(cls, "__repr__") else []
    return found + (list(_ORDER) if settings.order else [])


def _is_generated(cls: type, name: str) -> bool:
    """Return whether ``@dataclass`` generated the method ``name``: it compiles source in which each method is a local
    function of ``__create_fn__``, a name that Python stores since 3.11."""
    code = getattr(inspect.unwrap(vars(cls).get(name, _is_generated)), "__code__", None)
    if code is None or code.co_filename != "<string>":
        return False
    return "__create_fn__" in getattr(code, "co_qualname", "__create_fn__")


def define_generated(
    record: GraphFunction,
    cls: Any,
    type: ClassType,
    declared: dict[str, Type],
    resolver: Resolver,
    binding: SelfBinding,
) -> None:
    """Compile the method of the dataclass ``cls`` that ``record`` is named after, ``__init__``, ``__repr__`` or a
    comparison, into ``record``. ``declared`` has the types of the fields.

    Raises:
        CompileError: the method cannot be compiled.
    """
    if record.basename == "__repr__":
        define_function(record, _parsed(_repr_text(cls), cls), resolver, self_binding=binding)
        return
    if record.basename != "__init__":
        definition = _parsed(_comparison_text(cls, record.basename, declared), cls)
        define_function(record, definition, resolver, self_binding=binding, parameter_types={"other": type})
        return
    fields = cls.__dataclass_fields__.values()
    names = {f"_default_of_{item.name}": _default(item) for item in fields}
    names |= {f"_factory_of_{item.name}": item.default_factory for item in fields}
    given = _parameters(cls)
    define_function(
        record,
        _parsed(_init_text(cls), cls),
        ChainResolver(PythonResolver(names), resolver),
        self_binding=binding,
        defaults={item.name: plain(_default(item)) for item in given if _has_default(item)},
        parameter_types={
            item.name: optional(declared[item.name]) if _is_made(item) else declared[item.name] for item in given
        },
    )


def _parsed(text: str, cls: type) -> Def:
    (statement,) = parse_module(Source(text, f"<dataclass {cls.__qualname__}>"))
    return Def(statement.tree)


def _is_made(item: Any) -> bool:
    """Return whether a field's default is created for each object, by a factory."""
    return item.default_factory is not dataclasses.MISSING


def _has_default(item: Any) -> bool:
    return _is_made(item) or item.default is not dataclasses.MISSING


def _default(item: Any) -> object:
    """Return the default of a field as the default of a parameter: None in place of the result of a factory."""
    return None if _is_made(item) else item.default


def _parameters(cls: Any) -> list[Any]:
    """Return the parameters of ``__init__`` in order: fields, and variables that only ``__post_init__`` receives
    (``InitVar``)."""
    return [item for item in cls.__dataclass_fields__.values() if item.init and not _is_of_class(cls, item)]


def _is_of_class(cls: Any, item: Any) -> bool:
    """Return whether the field ``item`` is a ClassVar."""
    return item not in dataclasses.fields(cls) and not _is_init_var(cls, item)


def _is_init_var(cls: Any, item: Any) -> bool:
    return item not in dataclasses.fields(cls) and inner_of_init_var(item.type) is not None


def _init_text(cls: Any) -> str:
    given = _parameters(cls)
    by_name = [item for item in given if getattr(item, "kw_only", False)]
    parameters = ["self", *(item.name for item in given if item not in by_name)]
    parameters += ["*", *(item.name for item in by_name)] if by_name else []
    body: list[str] = []
    for item in dataclasses.fields(cls):
        body += _assignment(item)
    if hasattr(cls, "__post_init__"):
        variables = [item.name for item in given if _is_init_var(cls, item)]
        body.append(f"self.__post_init__({', '.join(variables)})")
    return f"def __init__({', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in body or ["pass"])


def _repr_text(cls: type) -> str:
    """Return the source of ``__repr__``, which shows the class and the fields by name."""
    shown = ", ".join(f"{item.name}={{self.{item.name}!r}}" for item in dataclasses.fields(cls) if item.repr)
    return f"def __repr__(self) -> str:\n    return f'{cls.__qualname__.rpartition('<locals>.')[2]}({shown})'\n"


_LITERALS: Final[dict[Any, str]] = {list: "[]", dict: "{}"}


def _assignment(item: Any) -> list[str]:
    """Return the statements with which ``__init__`` assigns a field."""
    name, made = item.name, _LITERALS.get(item.default_factory, f"_factory_of_{item.name}()")
    if not item.init:
        if not _has_default(item):
            return []
        return [f"self.{name} = {made if _is_made(item) else f'_default_of_{name}'}"]
    if not _is_made(item):
        return [f"self.{name} = {name}"]
    return [f"if {name} is None: self.{name} = {made}", f"else: self.{name} = {name}"]


def _comparison_text(cls: Any, name: str, declared: dict[str, Type]) -> str:
    """Return the source of a comparison method that compares field by field, as Python compares tuples. None equals
    only None, and is not ordered: the other methods raise TypeError. An object equals itself whatever its fields
    are."""
    lines = [f"if self is other: return {name in _OF_EQUALS}"]
    for item in dataclasses.fields(cls):
        if not item.compare:
            continue
        field = item.name
        mine, others = f"self.{field}", f"other.{field}"
        if isinstance(declared.get(field), OptionalType):
            lines += [f"self_{field} = {mine}", f"other_{field} = {others}"]
            mine, others = f"self_{field}", f"other_{field}"
            unequal = "return False" if name == "__eq__" else f"raise TypeError('{field} is None')"
            lines += [f"if {mine} is None or {others} is None:"]
            lines += [f"    if not ({mine} is None and {others} is None): {unequal}"]
            lines += [f"elif not ({_equal(declared[field], mine, others)}): {_unequal(name, mine, others)}"]
        else:
            lines += [f"if not ({_equal(declared.get(field), mine, others)}): {_unequal(name, mine, others)}"]
    lines.append(f"return {name in _OF_EQUALS}")
    return f"def {name}(self, other) -> bool:\n" + "".join(f"    {line}\n" for line in lines)


def _equal(type: Type | None, mine: str, others: str) -> str:
    """Return the source of the comparison of two fields. Before Python 3.13 a tensor field equals itself whatever its
    elements are, since Python compares tuples of the fields there."""
    is_tensor = type is not None and isinstance(without_none(type), TensorType)
    if is_tensor and sys.version_info < (3, 13):
        return f"{mine} is {others} or {mine} == {others}"
    return f"{mine} == {others}"


def _unequal(name: str, mine: str, others: str) -> str:
    return "return False" if name == "__eq__" else f"return bool({mine} {_ORDER[name]} {others})"
