"""Convert archives of PyTorch 1.0 to 1.2, which have another layout, to the layout of later ones.

There, ``model.json`` holds the tree of modules and the table of tensors, and every module has a file of methods:

    model.json            {"mainModule": {"name": …, "submodules": […], "parameters": […], "attributes": […],
                           "torchscriptArena": {"key": "code/net.py"}}, "tensors": [{"dims": ["2"], …}]}
    code/net.py           def forward(self, x: Tensor) -> Tensor: …
    libs/__torch__.py     the classes that the methods use
    attributes.pkl        the values of all attributes, which modules name by their number
    tensors/0             the bytes of tensors

Here every module becomes a class with these methods, in a text as later archives have them, and an object of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from rekindle.archive.pickles.globals import LARGEST, Malformed, check_view
from rekindle.archive.pickles.reader import read_pickle
from rekindle.archive.pickles.records import PickledObject, PickledTyped, StorageRecord, TensorNumber, TensorRecord
from rekindle.archive.zip_files.container import ArchiveReader
from rekindle.archive.zip_files.names import printable
from rekindle.errors import ArchiveLimitError, CorruptArchiveError

MODEL: Final = "model.json"
"""The member by which the layout is known."""

FOLDER: Final = "tensors"
"""Folder of the bytes of tensors."""

_DTYPES: Final = {
    "FLOAT": torch.float32,
    "DOUBLE": torch.float64,
    "FLOAT16": torch.float16,
    "BFLOAT16": torch.bfloat16,
    "INT64": torch.int64,
    "INT32": torch.int32,
    "INT16": torch.int16,
    "INT8": torch.int8,
    "UINT8": torch.uint8,
    "BYTE": torch.uint8,
    "BOOL": torch.bool,
}

_HEAD: Final = ("op_version_set", "import ")
"""Prefixes of the lines before the definitions of a file."""


@dataclass(slots=True)
class LegacyProgram:
    """The contents of ``data.pkl``, ``constants.pkl`` and ``code/`` of later archives."""

    root: PickledObject
    texts: dict[str, str] = field(default_factory=dict)
    """By qualifier: of ``__torch__.a``, the classes of the modules ``__torch__.a.b``, ``__torch__.a.c``."""
    constants: list[TensorRecord] = field(default_factory=list)
    """The table of tensors, which texts refer to as ``CONSTANTS.c0``."""


def read_legacy(reader: ArchiveReader) -> LegacyProgram:
    """Return the program of an archive that has a ``model.json``.

    Raises:
        ArchiveError: the archive is broken, or exceeds the limits of ``reader``.
    """
    limit = reader.limits.pickle_bytes
    if reader.entry(MODEL).size > limit:
        raise ArchiveLimitError(
            f"The description of the model has {reader.entry(MODEL).size} bytes; the limit is {limit}.",
            member=MODEL,
            hint="If you trust this file, raise the limit: limits=rekindle.ArchiveLimits(pickle_bytes=…).",
        )
    try:
        return _Reader(reader, json.loads(reader.read(MODEL).decode("utf-8"))).read()
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, Malformed) as problem:
        raise CorruptArchiveError(f"The description of the model is broken: {problem}.", member=MODEL) from None
    except RecursionError:
        raise ArchiveLimitError("Modules are nested too deeply.", member=MODEL) from None


class _Reader:
    def __init__(self, reader: ArchiveReader, model: dict[str, Any]) -> None:
        self._reader = reader
        self._model = model
        self._storages: dict[str, StorageRecord] = {}
        self._tensors = [self._tensor(record) for record in model.get("tensors", [])]
        self._attributes = self._read_attributes()
        self._texts: dict[str, list[str]] = {}

    def read(self) -> LegacyProgram:
        for name in self._reader.names:
            if name.startswith("libs/") and name.endswith(".py"):
                qualifier = name[len("libs/") : -len(".py")].replace("/", ".")
                self._texts.setdefault(qualifier, []).extend(self._lines(name))
        root = self._module(self._model["mainModule"], "__torch__", 0)
        texts = {qualifier: "\n".join(lines) + "\n" for qualifier, lines in self._texts.items()}
        return LegacyProgram(root, texts, self._tensors)

    # ----------------------------------------------------------------------------------------------------- modules

    def _module(self, module: dict[str, Any], qualifier: str, depth: int) -> PickledObject:
        """Return the object of a module, and append the source of its class to ``_texts`` under the qualifier.

        Raises:
            RecursionError: modules are nested deeper than the limit.
            ValueError, TypeError, KeyError: the description is broken.
        """
        if depth > self._reader.limits.nesting:
            raise RecursionError
        name = _class_name(module["name"])
        qualified = f"{qualifier}.{name}"
        state: dict[str, object] = {}
        parameters: list[str] = []
        slots: list[str] = []
        for record in module.get("parameters", []):
            state[record["name"]] = self._tensors[int(record["tensorId"])]
            slots.append(_slot(record["name"], "Tensor"))
            if not record.get("isBuffer", False):
                parameters.append(record["name"])
        for record in module.get("attributes", []):
            if record["name"] not in _INTERNAL:
                state[record["name"]] = self._attributes[int(record["id"])]
                slots.append(_slot(record["name"], record["type"]))
        for child in module.get("submodules", []):
            made = state[child["name"]] = self._module(child, qualified, depth + 1)
            slots.append(_slot(child["name"], made.name))
        methods = self._lines(module["torchscriptArena"]["key"]) if "torchscriptArena" in module else []
        quoted = "".join(f"{json.dumps(parameter)}, " for parameter in parameters)
        body = [f"__parameters__ = [{quoted}]", *slots, *methods]
        self._texts.setdefault(qualifier, []).extend([f"class {name}(Module):", *(f"  {line}" for line in body)])
        return PickledObject(qualified, state)

    def _lines(self, member: str) -> Iterator[str]:
        """Yield the lines of a source file, without imports, the version line and empty lines."""
        for line in self._reader.read(member).decode("utf-8").splitlines():
            if line and not line.startswith(_HEAD):
                yield line

    # ------------------------------------------------------------------------------------------------------ values

    def _read_attributes(self) -> tuple[object, ...]:
        if "attributes.pkl" not in self._reader:
            return ()
        value = read_pickle(self._reader.read("attributes.pkl"), "attributes.pkl", self._reader.limits).value
        found = self._with_tensors(value, {})
        if not isinstance(found, tuple):
            raise TypeError("the attributes are not a tuple")
        return found

    def _with_tensors(self, value: object, done: dict[int, object]) -> object:
        """Return ``value`` with tensors in place of their numbers, and None in place of negative ones. Lists, dicts and
        typed containers are changed in place. ``done`` holds visited objects by id, so that shared ones are converted
        once."""
        if isinstance(value, TensorNumber):
            return self._tensors[value.number] if value.number >= 0 else None
        if not isinstance(value, (tuple, list, dict, PickledTyped)):
            return value
        if id(value) in done:
            return done[id(value)]
        if isinstance(value, tuple):
            made = done[id(value)] = tuple(self._with_tensors(item, done) for item in value)
            return made
        done[id(value)] = value
        if isinstance(value, list):
            value[:] = [self._with_tensors(item, done) for item in value]
        elif isinstance(value, dict):
            value.update({key: self._with_tensors(item, done) for key, item in value.items()})
        else:
            value.value = self._with_tensors(value.value, done)
        return value

    def _tensor(self, record: dict[str, Any]) -> TensorRecord:
        sizes = tuple(_number(text) for text in record.get("dims", []))
        strides = tuple(_number(text) for text in record.get("strides", []))
        offset = _number(record.get("offset", "0"))
        dtype = _DTYPES.get(record["dataType"])
        if dtype is None or record.get("isQuantized", False):
            raise ValueError(f"tensors of {printable(str(record['dataType']))} are not known")
        device = record.get("device", "cpu")
        if not isinstance(device, str):
            raise TypeError("a device that has no name")
        storage = self._storage(record["data"]["key"], dtype, device)
        tensor = TensorRecord(storage, offset, sizes, strides, bool(record.get("requiresGrad", False)))
        check_view(tensor)
        return tensor

    def _storage(self, member: str, dtype: torch.dtype, device: str) -> StorageRecord:
        folder, _, key = member.partition("/")
        if folder != FOLDER or "/" in key:
            raise ValueError(f"a tensor is in '{printable(member)}'")
        found = self._storages.get(key)
        if found is None:
            size = self._reader.entry(member).size
            found = self._storages[key] = StorageRecord(key, dtype, device, size // dtype.itemsize)
        if found.dtype != dtype or found.location != device:
            raise ValueError("tensors of one storage differ in their dtype or device")
        return found


_INTERNAL: Final = frozenset({"__constants__"})
"""Attributes that only the compiler of the release used."""


def _number(text: object) -> int:
    """Return a number of up to 64 bits, which the JSON of those releases contains as a string.

    Raises:
        ValueError: the text is not a decimal number, or the number is negative or has more than 64 bits.
        TypeError: ``text`` is neither an int nor a string.
    """
    if not isinstance(text, (int, str)) or isinstance(text, bool):
        raise TypeError("a number that is none")
    number = int(text)
    if not 0 <= number <= LARGEST:
        raise ValueError("a number that is negative or has more than 64 bits")
    return number


def _class_name(name: str) -> str:
    """Return a name for the class of a module: modules in lists are called ``0``, ``1`` …

    Raises:
        ValueError: the name is not an identifier.
    """
    found = name if name.isidentifier() else f"_{name}"
    if not found.isidentifier():
        raise ValueError(f"a module is called '{printable(name)}'")
    return found


def _slot(name: str, type: object) -> str:
    """Return the declaration of an attribute in the source of a class.

    Raises:
        ValueError: ``type`` is not a string of one line.
    """
    if not isinstance(type, str) or "\n" in type:
        raise ValueError(f"the type of '{printable(name)}' is none")
    return f"{name} : {type}" if name.isidentifier() else f"__annotations__[{json.dumps(name)}] = {type}"
