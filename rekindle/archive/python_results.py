"""The Python classes of results, which the types of TorchScript do not show: a ``torch.Size`` and a tuple of any length
are lists there, a dtype is an int.

The record ``python_results.json`` of an archive has an entry for each method whose result has such a class. It maps the
method, by its path from the root module, to marks: ``{"encoder.forward": [[[1, 0], "Size"]]}``. A mark is the way to a
type within the type of the result, by indices of contained types, and the name of the class. PyTorch ignores the
record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from rekindle.errors import CorruptArchiveError
from rekindle.ir.graph_function import GraphFunction
from rekindle.ir.types import DTYPE, LAYOUT, MEMORY_FORMAT, DictType, IntType, ListType, Type
from rekindle.program.modules.module import ScriptModule

RECORD: Final = "python_results.json"

_INTS: Final = {type.python_name: type for type in (DTYPE, LAYOUT, MEMORY_FORMAT)}
_LISTS: Final = ("tuple", "Size")
_DICTS: Final = ("OrderedDict", "Counter")

Mark = tuple[list[int], str]


def write_results(module: ScriptModule) -> bytes:
    """Return the contents of the record for a module and its submodules; empty if no result needs a mark."""
    found = {}
    for name, method in _methods(module):
        returns = method.schema.returns
        if len(returns) == 1:
            type = returns[0].type if method.result_in_python is None else method.result_in_python(returns[0].type)
            if marks := list(_marks(type)):
                found[name] = marks
    return json.dumps(found, sort_keys=True).encode() if found else b""


def read_results(module: ScriptModule, record: bytes) -> None:
    """Note the classes of a record at the methods of a loaded module. A mark that does not fit the type of its result
    is ignored.

    Raises:
        CorruptArchiveError: the record is not of the form that :func:`write_results` returns.
    """
    try:
        found = json.loads(record)
        marks = {name: [(list(way), str(python)) for way, python in each] for name, each in found.items()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise CorruptArchiveError("The classes of results cannot be read.", member=RECORD) from None
    for name, method in _methods(module):
        if name in marks:
            method.result_in_python = partial(_marked, marks=marks[name])


def _methods(module: ScriptModule) -> Iterator[tuple[str, GraphFunction]]:
    for path, part in module.named_modules():
        if isinstance(part, ScriptModule):
            for name, method in part._rekindle_type.methods.items():
                yield f"{path}.{name}" if path else name, method


def _marks(type: Type) -> Iterator[Mark]:
    if isinstance(type, IntType) and type.python_name in _INTS:
        yield [], type.python_name
    elif (isinstance(type, ListType) and type.python in _LISTS) or (
        isinstance(type, DictType) and type.python in _DICTS
    ):
        yield [], type.python
    for index, part in enumerate(type.contained):
        for way, python in _marks(part):
            yield [index, *way], python


def _marked(type: Type, marks: list[Mark]) -> Type:
    """Return ``type`` with the classes that the marks name."""
    parts: Any = list(type.contained)
    for index, part in enumerate(parts):
        inner = [(way[1:], python) for way, python in marks if way and way[0] == index]
        if inner:
            parts[index] = _marked(part, inner)
    result = type.with_contained(parts)
    python = next((python for way, python in marks if not way), "")
    if isinstance(result, IntType):
        return _INTS.get(python, result)
    if isinstance(result, ListType) and python in _LISTS:
        return ListType(result.element, python)
    if isinstance(result, DictType) and python in _DICTS:
        return DictType(result.key, result.value, python)
    return result
