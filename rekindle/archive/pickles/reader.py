"""Pickle reader: a virtual machine that can create plain values and inert records, and nothing else.

Python's ``pickle`` would import and call whatever a file names. This machine knows the names of
:mod:`rekindle.archive.pickles.globals` alone, and the instructions that PyTorch has written since 1.4: those of
protocol 2, and their short forms of protocols 3 to 5.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from rekindle.archive.limits import DEFAULT_LIMITS, ArchiveLimits
from rekindle.archive.pickles.globals import Builder, Malformed, check, expect, object_named, storage_of
from rekindle.archive.pickles.records import (
    UNSET,
    ClassName,
    Pickle,
    PickledEnum,
    PickledObject,
    StorageRecord,
    TensorRecord,
)
from rekindle.archive.zip_files.names import printable
from rekindle.errors import ArchiveLimitError, CorruptArchiveError, UnsafeArchiveError


def read_pickle(data: bytes | memoryview, member: str, limits: ArchiveLimits = DEFAULT_LIMITS) -> Pickle:
    """Read a pickle as records (:mod:`rekindle.archive.pickles.records`). ``member`` is its name in errors.

    Raises:
        ArchiveError: the pickle is broken, refers to a name that is not permitted, or exceeds a limit.
    """
    if len(data) > limits.pickle_bytes:
        raise ArchiveLimitError(
            f"The pickle has {len(data)} bytes; the limit is {limits.pickle_bytes}.",
            member=member,
            hint="If you trust this file, raise the limit: limits=rekindle.ArchiveLimits(pickle_bytes=…).",
        )
    machine = _Machine(bytes(data), member, limits)
    try:
        return machine.run()
    except Malformed as problem:
        raise CorruptArchiveError(f"The pickle is broken at byte {machine.at}: {problem}.", member=member) from None
    except (IndexError, struct.error):
        raise CorruptArchiveError(f"The pickle is cut off or broken at byte {machine.at}.", member=member) from None
    except UnicodeDecodeError:
        raise CorruptArchiveError(f"The pickle has a text that is none at byte {machine.at}.", member=member) from None


class _Stop(Exception):
    pass


class _Machine:
    """State of the reader: the stack of values, the marks in it, and the memo."""

    def __init__(self, data: bytes, member: str, limits: ArchiveLimits) -> None:
        self.data = data
        self.at = 0
        self.member = member
        self.limits = limits
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.classes: dict[str, ClassName] = {}
        self.storages: dict[str, StorageRecord] = {}
        self.complex_keys = 0

    def run(self) -> Pickle:
        data, instructions = self.data, _INSTRUCTIONS
        count = 0
        most = self.limits.pickle_opcodes
        try:
            while True:
                code = data[self.at]
                self.at += 1
                count += 1
                if count > most:
                    raise self._limit("instructions", most, "pickle_opcodes")
                instruction = instructions[code]
                if instruction is None:
                    raise Malformed(f"the instruction {bytes([code])!r}, which archives do not have")
                instruction(self)
        except _Stop:
            pass
        check(self.at == len(data), "something follows its end")
        check(len(self.stack) == 1 and not self.marks, "it leaves more than one value")
        return Pickle(self.stack[0], list(self.classes), self.storages)

    # ------------------------------------------------------------------------------------------------------ reading

    def take(self, size: int) -> bytes:
        end = self.at + size
        check(size >= 0 and end <= len(self.data), "it is cut off")
        found = self.data[self.at : end]
        self.at = end
        return found

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def line(self) -> str:
        end = self.data.find(b"\n", self.at)
        check(end >= 0, "it is cut off")
        found = self.data[self.at : end]
        self.at = end + 1
        return found.decode("utf-8")

    def pop(self) -> Any:
        """Remove and return the topmost value, which must be above the last mark.

        Raises:
            Malformed: there is no such value.
        """
        check(len(self.stack) > (self.marks[-1] if self.marks else 0), "a value is missing")
        return self.stack.pop()

    def pop_to_mark(self) -> list[Any]:
        check(bool(self.marks), "a mark is missing")
        mark = self.marks.pop()
        found = self.stack[mark:]
        del self.stack[mark:]
        return found

    def remember(self, index: int) -> None:
        check(len(self.stack) > (self.marks[-1] if self.marks else 0), "a value is missing")
        memo = self.memo
        memo[index] = self.stack[-1]
        if len(memo) > self.limits.pickle_memo:
            raise self._limit("remembered objects", self.limits.pickle_memo, "pickle_memo")

    def recall(self, index: int) -> None:
        check(index in self.memo, f"the object {index} is not there")
        self.stack.append(self.memo[index])

    def _limit(self, what: str, most: int, name: str) -> ArchiveLimitError:
        return ArchiveLimitError(
            f"The pickle has more than {most} {what}.",
            member=self.member,
            hint=f"If you trust this file, raise the limit: limits=rekindle.ArchiveLimits({name}=…).",
        )

    # ------------------------------------------------------------------------------------------------- instructions

    def protocol(self) -> None:
        check(self.number(1) in (2, 3, 4, 5), "a protocol that archives do not have")

    def stop(self) -> None:
        raise _Stop

    def push_tuple(self, size: int) -> None:
        check(len(self.stack) - size >= (self.marks[-1] if self.marks else 0), "a value is missing")
        items = tuple(self.stack[-size:])
        self.stack[-size:] = [items]

    def append(self, items: list[Any]) -> None:
        target = self.stack[-1]
        check(type(target) is list, "items are added to a value other than a list")
        target.extend(items)

    def set_items(self, items: list[Any]) -> None:
        target = self.stack[-1]
        check(type(target) is dict and len(items) % 2 == 0, "items are added to a value other than a dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            check(type(key) in _KEYS, "a key of a dict that cannot be one")
            if type(key) is complex:
                self.complex_keys += 1
                check(self.complex_keys <= _MAX_COMPLEX_KEYS, "more complex numbers as keys than any program has")
            target[key] = value

    def find(self, module: str, name: str) -> None:
        found = object_named(module, name)
        if found is None:
            raise UnsafeArchiveError(
                f"The pickle mentions '{printable(module)}.{printable(name)}', which no program needs. Loading imports "
                "and calls nothing that a file names.",
                member=self.member,
                hint="Do not trust this file, unless you know why it mentions that.",
            )
        if isinstance(found, ClassName):
            found = self.classes.setdefault(found.name, found)
        self.stack.append(found)

    def find_from_stack(self) -> None:
        name, module = self.pop(), self.pop()
        self.find(expect(module, str, "a name that is not a string"), expect(name, str, "a name that is not a string"))

    def call(self) -> None:
        arguments, function = self.pop(), self.pop()
        if isinstance(function, ClassName):
            value = arguments[0] if type(arguments) is tuple and len(arguments) == 1 else arguments
            check(type(value) in (int, float, str), "a member of an enum that has no value")
            self.stack.append(PickledEnum(function.name, value))
            return
        builder = expect(function, Builder, "a call of what cannot be called")
        try:
            made = builder.function(*expect(arguments, tuple, "a call without arguments"))
        except TypeError:
            raise Malformed("a call with too many arguments, or too few") from None
        self.stack.append(made)

    def new_object(self) -> None:
        arguments, kind = self.pop(), self.pop()
        check(arguments == (), "an object with arguments")
        self.stack.append(PickledObject(expect(kind, ClassName, "an object of no class").name))

    def build(self) -> None:
        state = self.pop()
        check(len(self.stack) > (self.marks[-1] if self.marks else 0), "a value is missing")
        target = expect(self.stack[-1], PickledObject, "a state for what takes none")
        check(target.state is UNSET, "two states for one object")
        target.state = state

    def persistent(self) -> None:
        record = storage_of(self.pop())
        known = self.storages.setdefault(record.key, record)
        if known.dtype != record.dtype and (known.nbytes, known.location) == (record.nbytes, record.location):
            known = record  # the same bytes, seen as numbers of another type
        same = (known.location, known.count) == (record.location, record.count)
        check(same, f"two storages of the name '{printable(record.key)}' that differ")
        self.stack.append(known)


_MAX_COMPLEX_KEYS: Final = 1000
"""Maximum number of complex keys. Complex numbers can be chosen with equal hashes, so that a dict of n of them takes
time proportional to n²."""

_KEYS: Final = (str, int, float, bool, complex, TensorRecord)


def _push(make: Callable[[_Machine], Any]) -> Callable[[_Machine], None]:
    def instruction(machine: _Machine) -> None:
        machine.stack.append(make(machine))

    return instruction


def _long(machine: _Machine, size: int) -> int:
    check(size <= 9, "an integer of more than 64 bits")
    return int.from_bytes(machine.take(size), "little", signed=True)


def _text(width: int) -> Callable[[_Machine], None]:
    def instruction(machine: _Machine) -> None:
        machine.stack.append(machine.take(machine.number(width)).decode("utf-8"))

    return instruction


def _append_one(machine: _Machine) -> None:
    item = machine.pop()
    machine.append([item])


def _set_one(machine: _Machine) -> None:
    value, key = machine.pop(), machine.pop()
    machine.set_items([key, value])


def _pop_top(machine: _Machine) -> None:
    if machine.marks and machine.marks[-1] == len(machine.stack):
        machine.marks.pop()
    else:
        machine.pop()


_NAMED: Final[dict[bytes, Callable[[_Machine], Any]]] = {
    b"\x80": _Machine.protocol,
    b"\x95": lambda machine: machine.take(8),  # a frame
    b".": _Machine.stop,
    b"(": lambda machine: machine.marks.append(len(machine.stack)),
    b"0": _pop_top,
    b"1": _Machine.pop_to_mark,
    b"N": _push(lambda machine: None),
    b"\x88": _push(lambda machine: True),
    b"\x89": _push(lambda machine: False),
    b"J": _push(lambda machine: struct.unpack("<i", machine.take(4))[0]),
    b"K": _push(lambda machine: machine.number(1)),
    b"M": _push(lambda machine: machine.number(2)),
    b"\x8a": _push(lambda machine: _long(machine, machine.number(1))),
    b"\x8b": _push(lambda machine: _long(machine, machine.number(4))),
    b"G": _push(lambda machine: struct.unpack(">d", machine.take(8))[0]),
    b"X": _text(4),
    b"\x8c": _text(1),
    b"\x8d": _text(8),
    b")": _push(lambda machine: ()),
    b"t": _push(lambda machine: tuple(machine.pop_to_mark())),
    b"\x85": lambda machine: machine.push_tuple(1),
    b"\x86": lambda machine: machine.push_tuple(2),
    b"\x87": lambda machine: machine.push_tuple(3),
    b"]": _push(lambda machine: []),
    b"l": _push(lambda machine: machine.pop_to_mark()),
    b"a": _append_one,
    b"e": lambda machine: machine.append(machine.pop_to_mark()),
    b"}": _push(lambda machine: {}),
    b"s": _set_one,
    b"u": lambda machine: machine.set_items(machine.pop_to_mark()),
    b"q": lambda machine: machine.remember(machine.number(1)),
    b"r": lambda machine: machine.remember(machine.number(4)),
    b"\x94": lambda machine: machine.remember(len(machine.memo)),
    b"h": lambda machine: machine.recall(machine.number(1)),
    b"j": lambda machine: machine.recall(machine.number(4)),
    b"c": lambda machine: machine.find(machine.line(), machine.line()),
    b"\x93": _Machine.find_from_stack,
    b"R": _Machine.call,
    b"\x81": _Machine.new_object,
    b"b": _Machine.build,
    b"Q": _Machine.persistent,
}

_INSTRUCTIONS: Final = tuple(_NAMED.get(bytes([code])) for code in range(256))
