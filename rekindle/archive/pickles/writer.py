"""Values of programs as pickles, in the form in which PyTorch reads and writes them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import torch

from rekindle.archive.pickles.encoder import Encoder
from rekindle.archive.pickles.storages import StorageTable
from rekindle.archive.pickles.torchbind_state import state_of, type_of_state
from rekindle.errors import SaveError
from rekindle.ir.scalar_types import LAYOUT_NUMBERS
from rekindle.ir.types import (
    ANY,
    BOOL,
    DTYPE,
    DTYPE_NAMES,
    FLOAT,
    INT,
    LAYOUT,
    MEMORY_FORMAT,
    QSCHEME_NUMBER,
    STRING,
    TENSOR,
    ClassType,
    DictType,
    EnumType,
    ListType,
    TensorType,
    TupleType,
    Type,
    union_members,
)
from rekindle.ops.python.values import describe, script_class, type_of_value, value_matches
from rekindle.ops.tensor.torchbind_objects import type_of_python_class

StateOf: TypeAlias = Callable[[Any, ClassType], tuple[Any, Type] | None]
"""Function that returns the result of ``__getstate__`` of an object, and its type; None for an object whose attributes
are its state."""

AttributesOf: TypeAlias = Callable[[Any, ClassType], Iterable[tuple[str, Any, Type]]]
"""Function that returns the attributes of an object: name, value and type of each."""

_TAGGED: Final[dict[Type, str]] = {
    INT: "build_intlist",
    **dict.fromkeys((DTYPE, LAYOUT, MEMORY_FORMAT, QSCHEME_NUMBER), "build_intlist"),
    FLOAT: "build_doublelist",
    BOOL: "build_boollist",
    TENSOR: "build_tensorlist",
}


class ValuePickler:
    """Pickler of one value. Storages are added to ``storages``. ``name_of`` returns the name of a class or an enum in
    the archive, ``annotation_of`` the text of a type."""

    def __init__(
        self,
        storages: StorageTable,
        name_of: Callable[[ClassType | EnumType], str],
        annotation_of: Callable[[Type], str],
        state_of: StateOf,
        attributes_of: AttributesOf,
    ) -> None:
        self._encoder = Encoder()
        self._storages = storages
        self._name_of = name_of
        self._annotation_of = annotation_of
        self._state_of = state_of
        self._attributes_of = attributes_of
        self._memo: dict[int, tuple[int, object]] = {}
        self._persistent: dict[tuple[str, torch.dtype], int] = {}
        self._open: set[int] = set()
        self._path: list[object] = []
        """Path of the value that is being written, for errors: names of attributes as strings, indices and keys as
        tuples of one."""

    def pickle(self, value: object, type: Type) -> bytes:
        """Return the pickle of a value of this type.

        Raises:
            SaveError: archives cannot hold a value in it; the error has the path of that value.
        """
        try:
            self._value(value, type)
        except SaveError as error:
            error.path = error.path or self._where()
            raise
        return self._encoder.finish()

    # ------------------------------------------------------------------------------------------------------ dispatching

    def _value(self, value: Any, type: Type) -> None:
        out = self._encoder
        if value is None:
            out.none()
        elif isinstance(value, torch.Tensor):
            self._tensor(value)
        elif isinstance(value, enum.Enum):
            self._enum(value, type)
        elif isinstance(value, bool):
            out.boolean(value)
        elif isinstance(value, int):
            out.integer(int(value))
        elif isinstance(value, float):
            out.number(float(value))
        elif isinstance(value, complex):
            self._complex(value)
        elif isinstance(value, str):
            out.text(str(value))
        elif isinstance(value, torch.device):
            self._device(value)
        elif isinstance(value, tuple):
            self._tuple(value, type)
        else:
            self._shared(value, type)

    def _shared(self, value: Any, type: Type) -> None:
        """Write a list, dict or object, or a reference to it if it was written before.

        Raises:
            SaveError: the value contains itself.
        """
        known = self._memo.get(id(value))
        if known is not None:
            self._encoder.recall(known[0])
            return
        if id(value) in self._open:
            raise self._refusal("the value contains itself, which archives do not support")
        self._open.add(id(value))
        if isinstance(value, list):
            self._list(value, _as_list(type, value))
        elif isinstance(value, dict):
            self._dict(value, _as_dict(type, value))
        else:
            self._object(value, type)
        self._open.discard(id(value))
        self._memo[id(value)] = (self._encoder.remember(), value)

    # ----------------------------------------------------------------------------------------------------- plain values

    def _complex(self, value: complex) -> None:
        out = self._encoder
        out.name("builtins", "complex")
        out.mark()
        out.number(value.real)
        out.number(value.imag)
        out.close_tuple()
        out.call()

    def _device(self, value: torch.device) -> None:
        out = self._encoder
        out.name("torch", "device")
        out.mark()
        out.text(str(value))
        out.close_tuple()
        out.call()

    def _enum(self, value: enum.Enum, type: Type) -> None:
        found = _member(type, lambda part: isinstance(part, EnumType) and value_matches(value, part))
        if not isinstance(found, EnumType):
            raise self._refusal(f"the member '{value}' of an enum is where the type '{type}' does not specify which")
        self._encoder.name(*_split(self._name_of(found)))
        self._value(value.value, found.value_type)
        self._encoder.call()

    # ------------------------------------------------------------------------------------------------------- containers

    def _tuple(self, value: tuple[Any, ...], type: Type) -> None:
        # A class derived from tuple may refuse to be measured or walked over.
        value = tuple(tuple.__iter__(value))
        found = _member(type, lambda part: isinstance(part, TupleType) and len(part.elements) == len(value))
        types = found.elements if isinstance(found, TupleType) else [type_of_value(item) for item in value]
        self._encoder.mark()
        for index, (item, item_type) in enumerate(zip(value, types, strict=True)):
            self._path.append((index,))
            self._value(item, item_type)
            self._path.pop()
        self._encoder.close_tuple()

    def _list(self, value: list[Any], type: ListType) -> None:
        out = self._encoder
        element = TENSOR if isinstance(type.element, TensorType) else type.element
        builder = _TAGGED.get(element)
        out.name("torch.jit._pickle", "restore_type_tag" if builder is None else builder)
        out.mark()
        out.empty_list()
        out.mark()
        for index, item in enumerate(value):
            self._path.append((index,))
            self._value(item, type.element)
            self._path.pop()
        out.close_list()
        if builder is None:
            out.text(self._annotation_of(type))
        out.close_tuple()
        out.call()

    def _dict(self, value: dict[Any, Any], type: DictType) -> None:
        out = self._encoder
        out.name("torch.jit._pickle", "restore_type_tag")
        out.mark()
        out.empty_dict()
        out.mark()
        for key, item in value.items():
            self._path.append((key,))
            self._value(key, type.key)
            self._value(item, type.value)
            self._path.pop()
        out.close_dict()
        out.text(self._annotation_of(type))
        out.close_tuple()
        out.call()

    # ---------------------------------------------------------------------------------------------------------- objects

    def _object(self, value: Any, type: Type) -> None:
        if self._foreign_object(value):
            return
        found = script_class(value) or _class_in(type, value)
        if found is None or type_of_python_class(value.__class__) is not None:
            raise self._refusal(
                f"archives cannot hold {_with_article(describe(value))}",
                "leave it out of the module, or recreate it from something that can be saved",
            )
        out = self._encoder
        out.name(*_split(self._name_of(found)))
        out.new_object()
        state = self._state_of(value, found)
        if state is not None:
            self._path.append("__getstate__()")
            self._value(*state)
            self._path.pop()
        else:
            out.empty_dict()
            out.mark()
            for name, item, item_type in self._attributes_of(value, found):
                self._path.append(name)
                out.text(name)
                self._value(item, item_type)
                self._path.pop()
            out.close_dict()
        out.build()

    def _foreign_object(self, value: Any) -> bool:
        """Write an object of a C++ class. Return False, and write nothing, for another value.

        Raises:
            SaveError: the class of the object has no serialized form.
        """
        try:
            found = state_of(value)
        except RuntimeError as error:
            raise self._refusal(f"the class of an object cannot be saved: {str(error).partition(chr(10))[0]}") from None
        if found is None:
            return False
        state, name = found
        out = self._encoder
        out.name(*_split(name))
        out.new_object()
        self._value(state, type_of_state(value, state))
        out.build()
        return True

    # ---------------------------------------------------------------------------------------------------------- tensors

    def _tensor(self, value: torch.Tensor) -> None:
        known = self._memo.get(id(value))
        if known is not None:
            self._encoder.recall(known[0])
            return
        self._new_tensor(value)
        self._memo[id(value)] = (self._encoder.remember(), value)

    def _new_tensor(self, value: torch.Tensor) -> None:
        if value.layout in (torch.sparse_coo, torch.sparse_csr):
            self._sparse(value)
            return
        if value.is_nested:
            raise self._refusal(
                "archives cannot hold a nested tensor", "make it a dense one: tensor.to_padded_tensor(0.0)"
            )
        if value.layout != torch.strided:
            raise self._refusal(
                f"archives cannot hold a tensor of layout {value.layout}", "make it a dense one: tensor.to_dense()"
            )
        try:
            storage = value.untyped_storage()
        except (RuntimeError, NotImplementedError):
            raise self._refusal(f"archives cannot hold a {type(value).__name__}, which has no storage") from None
        out = self._encoder
        out.name("torch._utils", "_rebuild_qtensor" if value.is_quantized else "_rebuild_tensor_v2")
        out.mark()
        self._storage(storage, value.dtype)
        out.integer(int(value.storage_offset()))
        out.integers(tuple(value.shape))
        out.integers(tuple(value.stride()))
        if value.is_quantized:
            self._quantizer(value)
        out.boolean(value.requires_grad)
        self._no_hooks()
        bits = [name for name, is_set in (("conj", value.is_conj()), ("neg", value.is_neg())) if is_set]
        if bits:
            self._dict(dict.fromkeys(bits, True), DictType(STRING, BOOL))
        out.close_tuple()
        out.call()

    def _storage(self, storage: torch.UntypedStorage, dtype: torch.dtype) -> None:
        out = self._encoder
        key = self._storages.key(storage)
        known = self._persistent.get((key, dtype))
        if known is not None:
            # PyTorch makes a storage for each record: a shared storage must be recalled.
            out.recall(known)
            return
        out.mark()
        out.text("storage")
        out.name("torch", f"{DTYPE_NAMES[dtype]}Storage")
        out.text(key)
        out.text(str(storage.device))
        out.integer(storage.nbytes() // dtype.itemsize)
        out.close_tuple()
        out.persistent()
        self._persistent[key, dtype] = out.remember()

    def _quantizer(self, value: torch.Tensor) -> None:
        out = self._encoder
        scheme = value.qscheme()
        out.mark()
        out.name("torch", str(scheme).removeprefix("torch."))
        if scheme == torch.per_tensor_affine:
            out.number(value.q_scale())
            out.integer(value.q_zero_point())
        else:
            self._tensor(value.q_per_channel_scales())
            self._tensor(value.q_per_channel_zero_points())
            out.integer(int(value.q_per_channel_axis()))
        out.close_tuple()

    def _sparse(self, value: torch.Tensor) -> None:
        out = self._encoder
        parts = (
            (value._indices(), value._values())
            if value.layout == torch.sparse_coo
            else (value.crow_indices(), value.col_indices(), value.values())
        )
        out.name("torch._utils", "_rebuild_sparse_tensor")
        out.mark()
        out.integer(LAYOUT_NUMBERS[value.layout])
        out.integers(tuple(value.shape))
        out.boolean(value.requires_grad)
        for part in parts:
            self._tensor(part.detach())
        self._no_hooks()
        out.close_tuple()
        out.call()

    def _no_hooks(self) -> None:
        self._encoder.name("collections", "OrderedDict")
        self._encoder.raw(b")")
        self._encoder.call()

    # ----------------------------------------------------------------------------------------------------------- places

    def _where(self) -> str:
        """Return the path to the value that is being written. After an error it remains where writing stopped."""
        return "".join(f".{step}" if isinstance(step, str) else f"[{_key(step)}]" for step in self._path).lstrip(".")

    def _refusal(self, message: str, hint: str | None = None) -> SaveError:
        return SaveError(message, path=self._where(), hint=hint)


def _key(step: object) -> str:
    """Return an index or a key as an element of a path."""
    key = step[0] if isinstance(step, tuple) else step
    return repr(key) if isinstance(key, (str, int)) else "…"


# ---------------------------------------------------------------------------------------------------------------- types


def _member(type: Type, test: Callable[[Type], bool]) -> Type | None:
    """Return the first of the types that ``type`` admits for which ``test`` holds; None if there is none."""
    return next((part for part in union_members(type) if test(part)), None)


def _as_list(type: Type, value: list[Any]) -> ListType:
    lists = [part for part in union_members(type) if isinstance(part, ListType)]
    if len(lists) > 1:
        lists = [part for part in lists if value_matches(value, part)]
    found = lists[0] if lists else type_of_value(value)
    return found if isinstance(found, ListType) else ListType(ANY)


def _as_dict(type: Type, value: dict[Any, Any]) -> DictType:
    dicts = [part for part in union_members(type) if isinstance(part, DictType)]
    if len(dicts) > 1:
        dicts = [part for part in dicts if value_matches(value, part)]
    found = dicts[0] if dicts else type_of_value(value)
    return found if isinstance(found, DictType) else DictType(ANY, ANY)


def _class_in(type: Type, value: object) -> ClassType | None:
    """Return the class of an object, among the classes that ``type`` admits; None if there is none."""
    found = _member(type, lambda part: isinstance(part, ClassType) and value_matches(value, part))
    return found if isinstance(found, ClassType) else None


def _split(name: str) -> tuple[str, str]:
    """Return a qualified name as the module and the name in it."""
    module, _, last = name.rpartition(".")
    return module, last


def _with_article(word: str) -> str:
    return f"an {word}" if word[:1].lower() in "aeiou" else f"a {word}"
