"""Flatten arguments and unflatten results: the pytrees of ``torch.utils._pytree`` as types and nodes of programs."""

from __future__ import annotations

import re
from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from torch.export.graph_signature import ConstantArgument, SymBoolArgument, SymFloatArgument, SymIntArgument
from torch.utils import _pytree as pytree

from rekindle.errors import CaptureError
from rekindle.importing.fx.fx_importer import FxImporter, ImportedValue
from rekindle.importing.fx.operators import check
from rekindle.ir.graph import Value
from rekindle.ir.types import (
    BOOL,
    FLOAT,
    INT,
    STRING,
    TENSOR,
    DictType,
    ListType,
    TupleType,
    Type,
    optional,
    unify_all,
)
from rekindle.program.names import unique_name

_DICTS: Final = (dict, OrderedDict, defaultdict)
_OF_CONSTANTS: Final[tuple[tuple[type, Type], ...]] = ((bool, BOOL), (int, INT), (float, FLOAT), (str, STRING))


@dataclass(slots=True, frozen=True)
class PytreeLeaf:
    """A leaf of the arguments: its access path (``x['a'][0]``), and its argument in the signature of the exported
    graph."""

    path: str
    argument: Any

    @property
    def type(self) -> Type:
        """The type of the argument that a program takes for this leaf."""
        match self.argument:
            case SymIntArgument():
                return INT
            case SymFloatArgument():
                return FLOAT
            case SymBoolArgument():
                return BOOL
            case ConstantArgument(value=None):
                return optional(TENSOR)
            case ConstantArgument(value=value):
                return next(type for kind, type in _OF_CONSTANTS if isinstance(value, kind))
            case _:
                return TENSOR


@dataclass(slots=True, frozen=True)
class PytreeNode:
    """A container of arguments: its access path, its type, and its children in the order in which they are
    flattened."""

    path: str
    type: Type
    keys: tuple[Any, ...]
    """The keys of a dict; for other containers, the indices of the items."""
    parts: tuple[PytreeLeaf | PytreeNode, ...]


def tree_of(spec: pytree.TreeSpec, path: str, arguments: Iterator[Any]) -> PytreeLeaf | PytreeNode:
    """Return the tree of arguments that ``spec`` describes, at the access path ``path``. ``arguments`` yields those of
    its leaves in order, and is advanced.

    Raises:
        CaptureError: ``spec`` has a list or dict whose items have no common type, or a dict whose keys are neither all
            strings nor all ints.
    """
    if spec.is_leaf():
        return PytreeLeaf(path, next(arguments))
    keys, texts = _keys_of(spec)
    parts = tuple(tree_of(child, path + text, arguments) for child, text in zip(spec.children(), texts, strict=True))
    return PytreeNode(path, _container_type(spec, path, keys, [part.type for part in parts]), keys, parts)


def _keys_of(spec: pytree.TreeSpec) -> tuple[tuple[Any, ...], list[str]]:
    count = len(spec.children())
    if spec.type in _DICTS:
        keys = tuple(spec.context[1] if spec.type is defaultdict else spec.context)
        return keys, [f"[{key!r}]" for key in keys]
    fields = _fields_of(spec)
    return tuple(range(count)), [f".{name}" for name in fields] or [f"[{index}]" for index in range(count)]


def _fields_of(spec: pytree.TreeSpec) -> tuple[str, ...]:
    """Return the field names of a NamedTuple, or of a class that is registered with PyTorch's pytrees with field names;
    empty for other containers."""
    found = getattr(spec.type, "_fields", None)
    if found is not None:
        return tuple(found)
    if spec.type in (tuple, list):
        return ()
    context = spec.context
    names = context[0] if isinstance(context, (list, tuple)) and context and isinstance(context[0], list) else context
    is_named = isinstance(names, (list, tuple)) and len(names) == len(spec.children())
    return tuple(names) if is_named and all(isinstance(name, str) and name.isidentifier() for name in names) else ()


def _container_type(spec: pytree.TreeSpec, path: str, keys: Sequence[Any], types: Sequence[Type]) -> Type:
    if spec.type is list:
        element = unify_all(types) if types else TENSOR
        if element is None:
            raise CaptureError(
                f"{path} is a list of ({', '.join(each.annotation for each in types)}), which no type describes",
                hint="export the program with a tuple there",
            )
        return ListType(element)
    if spec.type in _DICTS:
        return _dict_type(path, keys, types)
    fields = _fields_of(spec)
    if not fields:
        return TupleType(tuple(types))
    name = re.sub(r"\W", "_", spec.type.__name__)
    own = spec.type if hasattr(spec.type, "_fields") else None
    return TupleType(tuple(types), unique_name(f"__torch__.{name}"), fields, python_class=own)


def _dict_type(path: str, keys: Sequence[Any], types: Sequence[Type]) -> Type:
    element = unify_all(types) if types else TENSOR
    key = STRING if all(isinstance(each, str) for each in keys) else INT
    if element is None or not all(isinstance(each, str if key == STRING else int) for each in keys):
        described = ", ".join(f"{each!r}: {type.annotation}" for each, type in zip(keys, types, strict=True))
        raise CaptureError(
            f"{path} is a dict of {{{described}}}, which no type describes",
            hint="export the program with a NamedTuple there",
        )
    return DictType(key, element)


def flatten(reader: FxImporter, value: Value, tree: PytreeLeaf | PytreeNode) -> list[Value]:
    """Emit code that flattens an argument to its leaves; return the leaves. The program raises RuntimeError if a list
    or dict has another length than when it was exported, and KeyError if a dict lacks a key of the export."""
    if isinstance(tree, PytreeLeaf):
        return [value]
    graph = reader.graph
    parts: Sequence[Value]
    if isinstance(tree.type, DictType):
        count = reader.insert("aten::len", value)
        check(
            reader,
            reader.insert("aten::eq", count, len(tree.keys)),
            f"{tree.path} must have {len(tree.keys)} keys, as when the program was exported",
        )
        parts = [reader.insert("aten::__getitem__", value, key) for key in tree.keys]
    else:
        kind = "prim::ListUnpack" if isinstance(tree.type, ListType) else "prim::TupleUnpack"
        if isinstance(tree.type, ListType):
            count = reader.insert("aten::len", value)
            check(
                reader,
                reader.insert("aten::eq", count, len(tree.parts)),
                f"{tree.path} must have {len(tree.parts)} items, as when the program was exported",
            )
        types = [_element(tree.type, index) for index in range(len(tree.parts))]
        node = graph.create(kind, [value], types=types, range=reader.range)
        parts = graph.insert_node(node).outputs
    return [leaf for part, sub in zip(parts, tree.parts, strict=True) for leaf in flatten(reader, part, sub)]


def _element(type: Type, index: int) -> Type:
    if isinstance(type, TupleType):
        return type.elements[index]
    assert isinstance(type, ListType)
    return type.element


def leaves_of(tree: PytreeLeaf | PytreeNode) -> list[PytreeLeaf]:
    """Return the leaves of a tree, in order."""
    return [tree] if isinstance(tree, PytreeLeaf) else [leaf for part in tree.parts for leaf in leaves_of(part)]


def unflatten(
    reader: FxImporter, spec: pytree.TreeSpec, results: Iterator[ImportedValue], path: str = "the result"
) -> Value:
    """Emit code that builds the value that ``spec`` describes from its leaves; return the value. ``results`` is
    advanced.

    Raises:
        CaptureError: ``spec`` has a list or dict whose items have no common type, or a dict whose keys are neither all
            strings nor all ints.
    """
    if spec.is_leaf():
        return reader.value(next(results))
    keys, texts = _keys_of(spec)
    parts = [unflatten(reader, child, results, path + text) for child, text in zip(spec.children(), texts, strict=True)]
    type = _container_type(spec, path, keys, [part.type for part in parts])
    inputs = parts
    kind = "prim::TupleConstruct"
    if isinstance(type, ListType):
        kind = "prim::ListConstruct"
    elif isinstance(type, DictType):
        kind = "prim::DictConstruct"
        inputs = [item for key, part in zip(keys, parts, strict=True) for item in (reader.value(key), part)]
    node = reader.graph.create(kind, inputs, types=[type], range=reader.range)
    return reader.graph.insert_node(node).output
