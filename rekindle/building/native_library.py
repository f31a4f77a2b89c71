"""Call a native library from Python, through the same C functions that C programs call."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Final, NoReturn

import torch
from torch import Tensor

from rekindle.building.lowering.constants import member_number
from rekindle.building.manifest import read_manifest
from rekindle.building.result_classes import with_classes
from rekindle.building.runtime.c_values import CKind
from rekindle.building.runtime.objects import ErrorCode
from rekindle.errors import RekindleError
from rekindle.ir.scalar_types import number_of

_EXCEPTIONS: Final[dict[int, type[Exception]]] = {
    ErrorCode.RUNTIME_ERROR: RuntimeError,
    ErrorCode.INDEX_ERROR: IndexError,
    ErrorCode.KEY_ERROR: KeyError,
    ErrorCode.VALUE_ERROR: ValueError,
    ErrorCode.TYPE_ERROR: TypeError,
    ErrorCode.ZERO_DIVISION_ERROR: ZeroDivisionError,
    ErrorCode.OVERFLOW_ERROR: OverflowError,
    ErrorCode.ASSERTION_ERROR: AssertionError,
    ErrorCode.MEMORY_ERROR: MemoryError,
    ErrorCode.NOT_IMPLEMENTED_ERROR: NotImplementedError,
    ErrorCode.INT_LIMIT: OverflowError,
}


class LibraryError(RekindleError):
    """Error of a native library: it cannot be loaded, rejects a call, or has no code for its arguments.

    Example:
        >>> f = rekindle.script(lambda x: torch.tanh(x) * x)
        >>> built = rekindle.build(f, "gate", [(torch.ones(2, 3),)])
        >>> try:
        ...     rekindle.NativeLibrary("gate")(torch.zeros(4, 3, dtype=torch.float64))
        ... except rekindle.LibraryError:
        ...     print("built for 32-bit floats")
        built for 32-bit floats
    """


class _Payload(ctypes.Union):
    _fields_ = [("i", ctypes.c_int64), ("f", ctypes.c_double), ("address", ctypes.c_void_p)]


class _Count(ctypes.Union):
    _fields_ = [("count", ctypes.c_int64), ("imaginary", ctypes.c_double)]


class Value(ctypes.Structure):
    """A value of the C API: the structure ``<name>_value`` of the header."""

    _anonymous_ = ("counts",)
    _fields_ = [("kind", ctypes.c_int64), ("payload", _Payload), ("counts", _Count)]


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


CODES: Final[dict[torch.dtype, tuple[int, int]]] = {
    torch.float32: (2, 32),
    torch.float64: (2, 64),
    torch.float16: (2, 16),
    torch.bfloat16: (4, 16),
    torch.int64: (0, 64),
    torch.int32: (0, 32),
    torch.int16: (0, 16),
    torch.int8: (0, 8),
    torch.uint8: (1, 8),
    torch.bool: (6, 8),
    torch.complex64: (5, 64),
    torch.complex128: (5, 128),
}
"""DLPack's type code and number of bits for each dtype."""
_DTYPES: Final = {codes: dtype for dtype, codes in CODES.items()}


class NativeLibrary:
    """An instance of the library in a folder that :func:`rekindle.build` wrote. One thread at a time may use it.

    Args:
        folder: the folder.

    Raises:
        LibraryError: the folder has no library, its files are damaged, or the library cannot be opened.

    Example:
        >>> f = rekindle.script(lambda x: torch.tanh(x) * x)
        >>> built = rekindle.build(f, "gate", [(torch.ones(2, 3),)])
        >>> rekindle.NativeLibrary("gate")(torch.zeros(4, 3)).shape
        torch.Size([4, 3])
    """

    def __init__(self, folder: str | Path) -> None:
        folder = Path(folder).resolve()  # a process has one library of each path that it was opened by
        try:
            manifest = read_manifest(folder)
            name = manifest["name"]
            self._library = ctypes.CDLL(str(folder / f"lib{name}.so"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LibraryError(f"'{folder}' holds no library that can be loaded: {error}") from None
        self.name: str = name
        self._methods: dict[str, Any] = manifest["methods"]
        self.methods: tuple[str, ...] = tuple(self._methods)
        self._instance = ctypes.c_void_p()
        opened = self._function("open", ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p)
        path = f"{name}.weights"
        given = str(folder / path).encode() if path in manifest["files"] else None
        code = opened(given, ctypes.byref(self._instance))
        if code:
            raise LibraryError(self._message())

    def _function(self, name: str, result: Any, *parameters: Any) -> Any:
        function = getattr(self._library, f"{self.name}_{name}")
        function.restype, function.argtypes = result, parameters
        return function

    def _message(self) -> str:
        text: bytes = self._function("error", ctypes.c_char_p, ctypes.c_void_p)(self._instance)
        return text.decode(errors="replace")

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method with Python values, and return its result; arguments with default values may be omitted.

        Raises:
            LibraryError: the library has no such method, or no code for these arguments.
            Exception: what the program raises.
        """
        kept: list[Any] = []
        if method not in self._methods:
            raise LibraryError(f"the library has no method '{method}'; it has {', '.join(self.methods)}")
        known = self._methods[method]
        missing = known["parameters"] - len(arguments)
        if 0 < missing <= len(known["defaults"]):
            arguments = (*arguments, *known["defaults"][-missing:])
        given = (Value * max(len(arguments), 1))(*(_to_c(each, kept) for each in arguments))
        result = Value()
        function = self._function(
            method, ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
        )
        code = function(self._instance, given, len(arguments), ctypes.byref(result))
        return with_classes(self._result(code, result), known.get("result"))

    def _result(self, code: int, result: Value) -> Any:
        """Return the result of a function of the library as a Python value, and free it.

        Raises:
            Exception: the exception of the error ``code``, if it is not 0.
        """
        if code:
            busy = "another thread calls the instance"
            raise _EXCEPTIONS.get(code, LibraryError)(self._message() if code != ErrorCode.BUSY else busy)
        try:
            return _to_python(result, self)
        finally:
            self._free(result)

    def _free(self, value: Value) -> None:
        self._function("free", None, ctypes.c_void_p)(ctypes.byref(value))

    def _unpack(self, value: Value) -> Any:
        """Return the attributes of an object of the library, as a tuple.

        Raises:
            LibraryError: the library rejects the object.
        """
        result = Value()
        function = self._function("unpack", ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        return self._result(function(self._instance, ctypes.byref(value), ctypes.byref(result)), result)

    def __call__(self, *arguments: Any) -> Any:
        """Call ``forward``; in a library without it, the first method. See :meth:`call`."""
        return self.call("forward" if "forward" in self.methods else self.methods[0], *arguments)

    def close(self) -> None:
        """Free the instance; later calls of methods fail. Closing it again has no effect."""
        if self._instance.value:
            self._function("close", None, ctypes.c_void_p)(self._instance)
            self._instance = ctypes.c_void_p()

    def __del__(self) -> None:
        if hasattr(self, "_instance"):
            self.close()


class LibraryObject:
    """An instance of a class in a native library, which methods of the same :class:`NativeLibrary` take as an argument.
    The library frees it when this object and all others that refer to it are gone.

    Example:
        >>> class Counter:
        ...     def __init__(self, start: int) -> None:
        ...         self.count = start
        >>> class Counting(torch.nn.Module):
        ...     @rekindle.export
        ...     def start(self, first: int) -> Counter:
        ...         return Counter(first)
        ...     def forward(self, counter: Counter) -> int:
        ...         counter.count += 1
        ...         return counter.count
        >>> module = rekindle.script(Counting())
        >>> built = rekindle.build(module, "counting", {"start": [(1,)], "forward": [(Counter(1),)]})
        >>> library = rekindle.NativeLibrary("counting")
        >>> counter = library.call("start", 5)
        >>> library(counter), library(counter), counter.unpack()
        (6, 7, (7,))
    """

    __slots__ = ("_library", "_value")

    def __init__(self, library: NativeLibrary, value: Value) -> None:
        self._library = library
        self._value = value

    def unpack(self) -> tuple[Any, ...]:
        """Return the values of the attributes, in the order in which the class assigns them.

        Raises:
            LibraryError: the library was closed.
        """
        found: tuple[Any, ...] = self._library._unpack(self._value)
        return found

    def __reduce__(self) -> NoReturn:
        raise TypeError("an object of a native library cannot be copied or pickled: pass the attributes of unpack()")

    def __del__(self) -> None:
        self._library._free(self._value)


def _to_c(value: Any, kept: list[Any]) -> Value:
    """Convert a Python value to one of the C API. Objects that must live as long as the result are appended to
    ``kept``.

    Raises:
        LibraryError: the C API cannot represent the value.
    """
    found = Value()
    match value:
        case None:
            found.kind = CKind.NONE
        case Enum() if isinstance(value, int):
            raise LibraryError("an IntEnum is an int and a member: pass the one that the parameter takes, as an int")
        case Enum():
            found.kind, found.payload.i, found.count = CKind.INT, member_number(value), 1
        case bool():
            found.kind, found.payload.i, found.count = CKind.BOOL, int(value), 1
        case int():
            if not -(2**63) <= value < 2**63:
                raise LibraryError(f"{value} has more than 64 bits")
            found.kind, found.payload.i, found.count = CKind.INT, value, 1
        case float():
            found.kind, found.payload.f, found.count = CKind.FLOAT, value, 1
        case complex():
            found.kind, found.payload.f, found.imaginary = CKind.COMPLEX, value.real, value.imag
        case str():
            data = ctypes.create_string_buffer(value.encode("utf-8", "surrogatepass"))
            kept.append(data)
            found.kind, found.payload.address, found.count = CKind.STRING, ctypes.addressof(data), len(data) - 1
        case Tensor():
            tensor = _dl_tensor(value, kept)
            found.kind, found.payload.address, found.count = CKind.TENSOR, ctypes.addressof(tensor), 1
        case dict():
            _items(found, CKind.DICT, list(itertools.chain(*value.items())), len(value), kept)
        case list():
            _items(found, CKind.LIST, value, len(value), kept)
        case tuple():
            _items(found, CKind.TUPLE, value, len(value), kept)
        case LibraryObject():
            kept.append(value)
            found.kind, found.payload.i, found.count = CKind.OBJECT, value._value.payload.i, value._value.count
        case torch.dtype() | torch.layout() | torch.memory_format():
            found.kind, found.payload.i, found.count = CKind.INT, number_of(value), 1
        case _:
            raise LibraryError(f"a {type(value).__name__} cannot be passed to a library")
    return found


def _items(found: Value, kind: CKind, items: Sequence[Any], count: int, kept: list[Any]) -> None:
    array = (Value * max(len(items), 1))(*(_to_c(each, kept) for each in items))
    kept.append(array)
    found.kind, found.payload.address, found.count = kind, ctypes.addressof(array), count


def _dl_tensor(tensor: Tensor, kept: list[Any]) -> _DLTensor:
    if tensor.dtype not in CODES:
        raise LibraryError(f"a tensor of {tensor.dtype} cannot be passed to a library")
    if tensor.device.type != "cpu" or tensor.layout != torch.strided:
        found = f"on the device {tensor.device}, and of the layout {tensor.layout}"
        raise LibraryError(f"tensors passed to a library are strided, and on the CPU; this one is {found}")
    if tensor.is_conj() or tensor.is_neg():
        raise LibraryError(
            "the elements of a tensor are conjugated or negated when they are read; pass what 'resolve_conj' or "
            "'resolve_neg' returns"
        )
    if tensor._is_zerotensor():
        raise LibraryError("a tensor of zeros has no memory; pass what 'clone' returns")
    code, bits = CODES[tensor.dtype]
    shape = (ctypes.c_int64 * max(tensor.dim(), 1))(*tensor.shape)
    strides = (ctypes.c_int64 * max(tensor.dim(), 1))(*tensor.stride())
    made = _DLTensor(tensor.data_ptr(), 1, 0, tensor.dim(), code, bits, 1, shape, strides, 0)
    kept += [tensor, shape, strides, made]
    return made


def _to_python(value: Value, library: NativeLibrary) -> Any:
    """Convert a result to a Python value that shares no memory with it. Objects of the library are moved out of
    ``value``."""
    match value.kind:
        case CKind.NONE:
            return None
        case CKind.INT:
            return value.payload.i
        case CKind.FLOAT:
            return value.payload.f
        case CKind.COMPLEX:
            return complex(value.payload.f, value.imaginary)
        case CKind.BOOL:
            return bool(value.payload.i)
        case CKind.STRING:
            return ctypes.string_at(value.payload.address, value.count).decode("utf-8", "surrogatepass")
        case CKind.TENSOR:
            return _to_tensor(ctypes.cast(value.payload.address, ctypes.POINTER(_DLTensor)).contents)
        case CKind.OBJECT:
            found = Value(value.kind, value.payload)
            found.count, value.kind = value.count, CKind.NONE
            return LibraryObject(library, found)
    count = value.count * (2 if value.kind == CKind.DICT else 1)
    items = [_to_python(each, library) for each in (Value * count).from_address(value.payload.address)] if count else []
    if value.kind == CKind.DICT:
        return dict(zip(items[::2], items[1::2], strict=True))
    return tuple(items) if value.kind == CKind.TUPLE else items


def _to_tensor(given: _DLTensor) -> Tensor:
    """Return a copy of a DLPack tensor."""
    dtype = _DTYPES[given.code, given.bits]
    shape, strides = given.shape[: given.ndim], given.strides[: given.ndim]
    result = torch.empty(shape, dtype=dtype)
    if result.numel():
        last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True)) + 1
        data = (ctypes.c_uint8 * (last * result.element_size())).from_address(given.data)
        flat = torch.frombuffer(bytearray(data), dtype=dtype)
        result = torch.as_strided(flat, shape, strides).clone()
    return result
