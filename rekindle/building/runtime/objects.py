"""Objects, reference counts, and errors."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, cast

from rekindle.building.lowlevel import NULL, Address, Array, Byte, Struct, bits_of, c, cold, native, view
from rekindle.building.runtime.c_library import abort, calloc, malloc, snprintf


class Kind(IntEnum):
    """The kinds of objects."""

    INT = 1
    """A boxed int, for a declared type that may hold other values; ``FLOAT`` and ``BOOL`` likewise."""
    FLOAT = 2
    BOOL = 3
    TEXT = 4
    LIST = 5
    DICT = 6
    RECORD = 7
    """A tuple, or an instance of a class."""
    TENSOR = 8
    STORAGE = 9
    COMPLEX = 10


class ErrorCode(IntEnum):
    """Return codes of a library's functions: 0 for success, otherwise the class of the error."""

    NONE = 0
    RUNTIME_ERROR = 1
    INDEX_ERROR = 2
    KEY_ERROR = 3
    VALUE_ERROR = 4
    TYPE_ERROR = 5
    ZERO_DIVISION_ERROR = 6
    OVERFLOW_ERROR = 7
    ASSERTION_ERROR = 8
    MEMORY_ERROR = 9
    ARGUMENT_ERROR = 10
    """Wrong call of the library: a null pointer, or a tensor of another dtype or rank than the library was built
    for."""
    NOT_BUILT = 11
    """The library has no code for these sizes, types or numbers."""
    BUSY = 12
    """Another call of the instance is running."""
    NOT_IMPLEMENTED_ERROR = 13
    INT_LIMIT = 14
    """An int of more than 64 bits, which Python supports and the library does not; no ``except`` catches it."""
    UNSUPPORTED_CPU = 15
    """The processor lacks instructions that the library requires."""


IMMORTAL: Final = 1 << 62
"""The reference count of objects that are constants of the library; they are never freed."""
MESSAGE_BYTES: Final = 2048
"""The size of the buffer of error messages, including the zero byte."""


class Object(Struct):
    refs: int
    kind: int


class Box(Object):
    word: int


class Complex(Object):
    real: float
    imaginary: float


class Text(Object):
    """A string: the fields are followed by its bytes in UTF-8 and a zero byte."""

    bytes: int
    characters: int


class List(Object):
    """A list. Each word of ``items`` is an element."""

    length: int
    capacity: int
    items: Array[int]
    element: Array[Byte]
    """The descriptor of the elements."""


class Dict(Object):
    """A dict in insertion order. An entry is three words: whether it is present, the key, the value."""

    length: int
    used: int
    """Number of entries, including deleted ones."""
    capacity: int
    """The number of entries for which memory is allocated."""
    entries: Array[int]
    table: Array[int]
    """The hash table, with twice as many slots as entries: 1 + the index of an entry, or 0."""
    key: Array[Byte]
    value: Array[Byte]


class Record(Object):
    """A tuple, or an instance of a class. One word for each of its fields follows these fields."""

    fields: Array[Byte]
    """The descriptor of the record."""
    count: int


class Storage(Object):
    """Memory of tensors. ``owner`` (:class:`Owner`) determines how it is freed."""

    address: Address
    bytes: int
    owner: int
    handle: Address


class Tensor(Object):
    """A strided view of a storage. The sizes, then the strides in elements, follow these fields."""

    data: Address
    storage: Storage
    dtype: int
    rank: int
    handle: Address
    """The PyTorch tensor, created on demand."""


class Context(Struct):
    """The error state of an instance of a library.

    ``place`` is the source location in the program where the error was raised. ``name`` is the class name of an error
    that the program itself raised, or of a RecursionError; null if the library raised another. ``is_exact`` is 1 if the
    message equals ``str`` of the exception.
    """

    code: int
    message: Array[Byte]
    place: Array[Byte]
    name: Array[Byte] | None
    is_exact: int
    depth: int
    """Number of recursive calls in progress."""


@native
def abort_if_null(memory: Address) -> Address:
    """Return ``memory``; abort the process if it is null, because allocation failed."""
    if memory is None:
        abort()
    return memory


@native
def allocate(bytes: int) -> Address:
    """Return uninitialized memory for an object."""
    return abort_if_null(malloc(bytes))


@native
def allocate_zeroed(bytes: int) -> Address:
    """Return memory that is all zero."""
    return abort_if_null(calloc(1, bytes))


@native
def retain(each: Object | None) -> None:
    """Increment the reference count of an object."""
    if each is not None:
        each.refs += 1


@native
def new_box(kind: int, word: int) -> Box:
    box = cast("Box", allocate(24))
    box.refs = 1
    box.kind = kind
    box.word = word
    return box


@native
@cold
def fail(context: Context, code: int, message: Array[Byte]) -> None:
    """Store an error that the library raises in the context: its code and its message."""
    context.code = code
    context.name = NULL
    snprintf(context.message, MESSAGE_BYTES, c("%s"), message)


@native
@cold
def fail_number(context: Context, code: int, form: Array[Byte], number: int) -> None:
    """Store an error that the library raises in the context. Its message is ``form`` with ``number`` in place of
    ``%lld``."""
    context.code = code
    context.name = NULL
    snprintf(context.message, MESSAGE_BYTES, form, number)


MAX_DEPTH: Final = 1000
"""Maximum depth of recursive calls, as in Python."""


@native
def enter_call(context: Context) -> bool:
    """Increment the depth of recursive calls; return False, with an error, if it exceeds the limit."""
    if context.depth >= MAX_DEPTH:
        fail(context, ErrorCode.RUNTIME_ERROR, c("maximum recursion depth exceeded"))
        context.name = c("builtins.RecursionError")
        return False
    context.depth += 1
    return True


@native
def leave_call(context: Context) -> None:
    context.depth -= 1


@native
def word_of(each: Object) -> int:
    return bits_of(each)


@native
def object_of(word: int) -> Object:
    return view(Object, word)
