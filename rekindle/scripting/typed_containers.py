"""Lists and dicts with a type: what :func:`rekindle.script` makes of lists and dicts.

Programs work on the lists and dicts that they are passed, not on copies, so that the caller sees what they write. The
containers here raise when Python stores an item that programs could not read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, SupportsIndex

from rekindle.errors import NotScriptableError
from rekindle.ir.types import STRING, TENSOR, DictType, ListType, Type
from rekindle.program.calling import fit_value
from rekindle.scripting.value_types import NotInferable, infer


class ScriptList(list[Any]):
    """A list whose items have one type. Its methods are those of ``list``. They raise TypeError for an item of another
    type, also if it is only searched for."""

    script_type: ListType

    def __init__(self, items: Iterable[Any], type: ListType) -> None:
        """Copy ``items``, each converted to the element type of ``type``.

        Raises:
            TypeError: an item does not fit the type.
        """
        self.script_type = type
        super().__init__(map(self._fitting, items))

    def _fitting(self, item: Any) -> Any:
        return fit_value(item, self.script_type.element, "an item of the list")

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, map(self._fitting, value) if isinstance(index, slice) else self._fitting(value))

    def __contains__(self, item: object) -> bool:
        return super().__contains__(self._fitting(item))

    def __iadd__(self, items: Iterable[Any]) -> ScriptList:  # type: ignore[misc]
        self.extend(items)
        return self

    def append(self, item: Any) -> None:
        super().append(self._fitting(item))

    def extend(self, items: Iterable[Any]) -> None:
        super().extend([self._fitting(item) for item in items])

    def insert(self, index: SupportsIndex, item: Any) -> None:
        super().insert(index, self._fitting(item))

    def remove(self, item: Any) -> None:
        super().remove(self._fitting(item))

    def count(self, item: Any) -> int:
        return super().count(self._fitting(item))

    def index(self, item: Any, *bounds: SupportsIndex) -> int:
        return super().index(self._fitting(item), *bounds)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return ScriptList, (list(self), self.script_type)


class ScriptDict(dict[Any, Any]):
    """A dict whose keys have one type and whose values have one type. Its methods are those of ``dict``; those that
    write raise TypeError for a key or a value of another type."""

    script_type: DictType

    def __init__(self, items: dict[Any, Any], type: DictType) -> None:
        """Copy ``items``, with keys and values converted to the types in ``type``.

        Raises:
            TypeError: a key or a value does not fit its type.
        """
        self.script_type = type
        super().__init__()
        self.update(items)

    def _key(self, key: Any) -> Any:
        return fit_value(key, self.script_type.key, "a key of the dict")

    def _value(self, value: Any) -> Any:
        return fit_value(value, self.script_type.value, "a value of the dict")

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(self._key(key), self._value(value))

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(self._key(key))

    def __ior__(self, items: Any) -> ScriptDict:  # type: ignore[misc]
        self.update(items)
        return self

    def setdefault(self, key: Any, default: Any = None) -> Any:
        return self[key] if key in self else super().setdefault(self._key(key), self._value(default))

    def update(self, *items: Any, **named: Any) -> None:
        given = dict(*items, **named)
        super().update({self._key(key): self._value(value) for key, value in given.items()})

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return ScriptDict, (dict(self), self.script_type)


_OF_NOTHING: Final[dict[type, Type]] = {list: ListType(TENSOR), dict: DictType(STRING, TENSOR)}
"""The types of empty containers, as annotations without parameters have them."""


def typed_container(value: list[Any] | dict[Any, Any]) -> ScriptList | ScriptDict:
    """Return a copy of a list or a dict as a ScriptList or ScriptDict of the inferred type. An empty list is one of
    tensors, an empty dict one from strings to tensors.

    Raises:
        NotScriptableError: the items have no common type.
    """
    found = infer(value) if value else _OF_NOTHING[type(value)]
    if isinstance(found, NotInferable):
        raise NotScriptableError(f"a {type(value).__name__} cannot be compiled: {found.reason}")
    if isinstance(found, ListType):
        return ScriptList(value, found)
    assert isinstance(found, DictType)
    assert isinstance(value, dict)
    return ScriptDict(value, found)
