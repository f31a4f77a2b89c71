"""The methods that ``@dataclass`` makes, of which Python keeps no source: written anew, for the compiler."""

from __future__ import annotations

import dataclasses
from typing import Any

from rekindle.errors import Cause, NotScriptableError, Source, SourceRange
from rekindle.frontend.emission import SelfBinding
from rekindle.frontend.sugared import Resolver
from rekindle.ir.records import FunctionRecord
from rekindle.ir.types import ClassType, Type
from rekindle.program.definition import define_function
from rekindle.scripting.constants import plain
from rekindle.syntax.parser import parse_module
from rekindle.syntax.views import Def


def check_dataclass(cls: Any, range: SourceRange) -> None:
    """Refuse what a program cannot do for a dataclass.

    Raises:
        NotScriptableError: a field has a factory for its default, or is for ``__post_init__`` only.
    """
    known = {item.name for item in dataclasses.fields(cls)}
    for name, item in cls.__dataclass_fields__.items():
        if item.default_factory is not dataclasses.MISSING:
            raise NotScriptableError(
                f"the field '{name}' of the dataclass '{cls.__name__}' has a default_factory, which no program calls",
                range,
                hint="give the field when the object is made, or write __init__",
                cause=Cause.INVALID_CLASS,
            )
        if name not in known and "InitVar" in str(item.type):
            raise NotScriptableError(
                f"the field '{name}' of the dataclass '{cls.__name__}' is an InitVar",
                range,
                hint="write __init__",
                cause=Cause.INVALID_CLASS,
            )


_ORDER = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}


def generated_methods(cls: Any) -> list[str]:
    """The names of the methods that ``@dataclass`` made and that programs can have."""
    settings = cls.__dataclass_params__
    found = ["__init__"] if settings.init and "__init__" in vars(cls) else []
    found += ["__eq__"] if settings.eq and "__eq__" in vars(cls) else []
    return found + (list(_ORDER) if settings.order else [])


def define_generated(
    record: FunctionRecord,
    cls: Any,
    type: ClassType,
    declared: dict[str, Type],
    resolver: Resolver,
    binding: SelfBinding,
) -> None:
    """Compile the method of ``cls`` that ``record`` is named after."""
    text = _init_text(cls) if record.basename == "__init__" else _comparison_text(cls, record.basename)
    (statement,) = parse_module(Source(text, f"<dataclass {cls.__qualname__}>"))
    defaults = {item.name: plain(item.default) for item in _given(cls) if item.default is not dataclasses.MISSING}
    define_function(
        record,
        Def(statement.tree),
        resolver,
        self_binding=binding,
        defaults=defaults if record.basename == "__init__" else None,
        parameter_types=declared if record.basename == "__init__" else {"other": type},
    )


def _given(cls: Any) -> list[Any]:
    return [item for item in dataclasses.fields(cls) if item.init]


def _init_text(cls: Any) -> str:
    by_name = [item for item in _given(cls) if getattr(item, "kw_only", False)]
    parameters = ["self", *(item.name for item in _given(cls) if item not in by_name)]
    parameters += ["*", *(item.name for item in by_name)] if by_name else []
    body = [f"self.{item.name} = {item.name}" for item in _given(cls)]
    body += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    return f"def __init__({', '.join(parameters)}):\n" + "".join(f"    {line}\n" for line in body or ["pass"])


def _comparison_text(cls: Any, name: str) -> str:
    """Python compares the fields as tuples."""
    fields = [item.name for item in dataclasses.fields(cls) if item.compare]
    if name == "__eq__":
        body = [f"return {' and '.join(f'self.{field} == other.{field}' for field in fields) or 'True'}"]
    else:
        body = [
            f"if not self.{field} == other.{field}: return self.{field} {_ORDER[name]} other.{field}"
            for field in fields
        ]
        body.append(f"return {name in ('__le__', '__ge__')}")
    return f"def {name}(self, other) -> bool:\n" + "".join(f"    {line}\n" for line in body)
