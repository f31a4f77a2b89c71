"""The instructions of pickles of protocol 2, those that PyTorch's readers know."""

from __future__ import annotations

import struct

from rekindle.errors import SaveError


class Encoder:
    """Writes a pickle instruction by instruction. Repeated texts and names are memoized."""

    def __init__(self) -> None:
        self._out = bytearray(b"\x80\x02")
        self._memo = 0
        self._texts: dict[str, int] = {}
        self._globals: dict[tuple[str, str], int] = {}

    def finish(self) -> bytes:
        """Return the pickle. Exactly one value must have been written."""
        return bytes(self._out) + b"."

    def raw(self, instruction: bytes) -> None:
        self._out += instruction

    def remember(self) -> int:
        """Store the value that was written last in the memo, and return its number, under which :meth:`recall` writes
        it again."""
        index = self._memo
        self._memo += 1
        self._out += b"q" + bytes([index]) if index < 256 else b"r" + struct.pack("<I", index)
        return index

    def recall(self, index: int) -> None:
        self._out += b"h" + bytes([index]) if index < 256 else b"j" + struct.pack("<I", index)

    def none(self) -> None:
        self._out += b"N"

    def boolean(self, value: bool) -> None:
        self._out += b"\x88" if value else b"\x89"

    def integer(self, value: int) -> None:
        """Write an int, in the shortest encoding that holds it.

        Raises:
            SaveError: ``value`` has more than 64 bits.
        """
        if 0 <= value < 1 << 8:
            self._out += b"K" + bytes([value])
        elif 0 <= value < 1 << 16:
            self._out += b"M" + struct.pack("<H", value)
        elif -(1 << 31) <= value < 1 << 31:
            self._out += b"J" + struct.pack("<i", value)
        elif -(1 << 63) <= value < 1 << 63:
            self._out += b"\x8a\x08" + struct.pack("<q", value)
        else:
            raise SaveError(f"the integer {value} has more than 64 bits")

    def number(self, value: float) -> None:
        self._out += b"G" + struct.pack(">d", value)

    def text(self, value: str) -> None:
        """Write a string. One that was written before is written as a reference.

        Raises:
            SaveError: ``value`` cannot be encoded as UTF-8.
        """
        known = self._texts.get(value)
        if known is not None:
            self.recall(known)
            return
        try:
            encoded = value.encode()
        except UnicodeEncodeError:
            raise SaveError(f"the text {value!r} cannot be written as UTF-8") from None
        self._out += b"X" + struct.pack("<I", len(encoded)) + encoded
        self._texts[value] = self.remember()

    def name(self, module: str, name: str) -> None:
        known = self._globals.get((module, name))
        if known is not None:
            self.recall(known)
            return
        self._out += b"c" + module.encode() + b"\n" + name.encode() + b"\n"
        self._globals[module, name] = self.remember()

    def mark(self) -> None:
        self._out += b"("

    def close_tuple(self) -> None:
        """Replace all values since the last mark with a tuple of them."""
        self._out += b"t"

    def integers(self, values: tuple[int, ...]) -> None:
        """Write a tuple of integers."""
        self.mark()
        for value in values:
            self.integer(value)
        self.close_tuple()

    def empty_list(self) -> None:
        self._out += b"]"

    def close_list(self) -> None:
        """Append all values since the last mark to the list before the mark."""
        self._out += b"e"

    def empty_dict(self) -> None:
        self._out += b"}"

    def close_dict(self) -> None:
        """Add all keys and values since the last mark to the dict before the mark."""
        self._out += b"u"

    def call(self) -> None:
        """Write a call of the function that was named before the last value, with that value as its arguments."""
        self._out += b"R"

    def new_object(self) -> None:
        """Create an object of the class that was named last."""
        self._out += b")\x81"

    def build(self) -> None:
        """Set the state of the object before the last value to that value."""
        self._out += b"b"

    def persistent(self) -> None:
        self._out += b"Q"
