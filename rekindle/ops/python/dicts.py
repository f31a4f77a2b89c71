"""Dicts: Python's, with Python's errors. Keys are str, int, bool, float, complex or Tensor; Tensors are compared by
identity.

Python's views (``keys``, ``values``, ``items``) are lists here.
"""

from __future__ import annotations

import operator
from typing import Any

from rekindle.ops.registration.declare import declare

KEY_TYPES = ("str", "int", "bool", "float", "complex", "Tensor")


def list_keys(self: dict[Any, Any]) -> list[Any]:
    return list(self)


def list_values(self: dict[Any, Any]) -> list[Any]:
    return list(self.values())


def list_items(self: dict[Any, Any]) -> list[tuple[Any, Any]]:
    return list(self.items())


# The methods are looked up in the object: those of ``dict`` would leave an OrderedDict with keys that its order lacks.


def set_default(self: dict[Any, Any], key: Any, default: Any) -> Any:
    return self.setdefault(key, default)


def pop(self: dict[Any, Any], *key_and_default: Any) -> Any:
    return self.pop(*key_and_default)


def pop_item(self: dict[Any, Any]) -> tuple[Any, Any]:
    return self.popitem()


def clear(self: dict[Any, Any]) -> None:
    self.clear()


def update(self: dict[Any, Any], to_add: dict[Any, Any]) -> None:
    self.update(to_add)


# The empty one: its type is chosen by the caller.
declare(dict, "aten::dict() -> Dict(str, Tensor)")

for _key in KEY_TYPES:
    _dict = f"Dict({_key}, t)"
    declare(
        dict,
        f"aten::dict.{_key}(({_key}, tVal)[] inputs) -> Dict({_key}, tVal)",
        f"aten::dict.Dict_{_key}({_dict}(a) self) -> {_dict}",
        f"aten::copy.Dict_{_key}({_dict}(a) self) -> {_dict}",
    )
    declare(len, f"aten::len.Dict_{_key}({_dict} self) -> int")
    declare(operator.contains, f"aten::__contains__.{_key}({_dict} dict, {_key} key) -> bool")
    declare(operator.getitem, f"aten::__getitem__.Dict_{_key}({_dict} self, {_key} key) -> t(*)")
    declare(
        operator.setitem,
        f"aten::_set_item.{_key}({_dict}(a!) l, {_key}(b -> *) idx, t(c -> *) v) -> ()",
    )
    declare(operator.delitem, f"aten::Delete.Dict_{_key}({_dict}(a!) self, {_key} key) -> ()")
    declare(
        dict.get,
        f"aten::get.{_key}({_dict} self, {_key} key) -> t(*)?",
        f"aten::get.default_{_key}({_dict} self, {_key} key, t default_value) -> t(*)",
    )
    declare(
        set_default,
        f"aten::setdefault.{_key}({_dict}(a!) self, {_key}(b -> *) key, t(c -> *) default_value) -> t(*)",
    )
    declare(
        pop,
        f"aten::pop.Dict_{_key}({_dict}(a!) self, {_key} key) -> t(*)",
        f"aten::pop.Dict_default_{_key}({_dict}(a!) self, {_key} key, t default_value) -> t(*)",
    )
    declare(pop_item, f"aten::popitem.{_key}({_dict}(a!) self) -> (({_key}, t))")
    declare(clear, f"aten::clear.{_key}({_dict}(a!) self) -> ()")
    declare(update, f"aten::update.{_key}({_dict}(a!) self, {_dict}(a!) to_add) -> ()")
    declare(list_keys, f"aten::keys.{_key}({_dict} self) -> {_key}[](*)")
    declare(list_values, f"aten::values.{_key}({_dict} self) -> t[](*)")
    declare(list_items, f"aten::items.{_key}({_dict} self) -> (({_key}, t)[])")
