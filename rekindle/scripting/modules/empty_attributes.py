"""Attributes of modules that ``__init__`` leaves empty: ``self.history = []``, ``self.best = {}``.

The value does not determine the element types; the elements that methods add do. Until a method adds one, the slot is a
list of Tensors, as a literal ``[]`` is. The first added element determines the type, and methods that were compiled
with the other type are recompiled (:mod:`rekindle.ir.redefinition`). If no method adds an element, uses of the
attribute are rejected.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import lru_cache
from types import FunctionType
from typing import Final

import torch

from rekindle.errors import CompileError
from rekindle.ir.types import STRING, TENSOR, ClassAttribute, DictType, ListType, Type
from rekindle.scripting.modules.class_members import members_of, owners_of
from rekindle.scripting.modules.module_types import ConcreteModuleType

_ASSUMED: Final[dict[type, Type]] = {list: ListType(TENSOR), dict: DictType(STRING, TENSOR)}


def empty_slot(concrete: ConcreteModuleType, name: str, refusal: CompileError) -> ClassAttribute | None:
    """Add and return the slot of an attribute whose value is an empty container of unknown element type; None for other
    attributes, and for dicts that no method fills.

    ``refusal`` is raised after compilation unless a method adds an element, which determines the type.
    """
    kind = concrete.facts.empty.get(name)
    if kind is None or (kind is dict and name not in _filled_dicts(concrete.python_class)):
        return None
    concrete.type.add_attribute(name, _ASSUMED[kind])
    slot = concrete.type.attributes[name]
    slot.is_assumed = True
    slot.initial = kind
    concrete.assumed[name] = refusal
    return slot


def refusals_of(concrete: ConcreteModuleType) -> list[CompileError]:
    """Return the errors for attributes with an empty container whose element type no method has determined."""
    return [error for name, error in concrete.assumed.items() if concrete.type.attributes[name].is_assumed]


@lru_cache(maxsize=512)
def _filled_dicts(cls: type) -> frozenset[str]:
    """Return the names of attributes to whose items methods of the class other than ``__init__`` assign. All other
    empty dicts are compile-time constants."""
    found: set[str] = set()
    for base in owners_of(cls):
        if base is not torch.nn.Module and issubclass(base, torch.nn.Module):
            for name, member in members_of(base):
                if isinstance(member, FunctionType) and name != "__init__":
                    found |= _filled_in(inspect.unwrap(member))
    return frozenset(found)


def _filled_in(function: FunctionType) -> set[str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return set()
    return {
        node.value.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Attribute)
    }
