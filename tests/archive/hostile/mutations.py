"""Mutants: archives that load, changed in a random way.

The mutant of a number is always the same one: ``mutant(seeds(), 17, run=1)``.

==============  =====================================================================================================
file            bits, bytes and stretches of the file as it is: turned, cut off, cut out, doubled
directory       the numbers in the headers of the zip file
members         members swapped within an archive or taken from another, left out, doubled, renamed, emptied
pickle          instructions of pickles left out, doubled, moved, put in; their numbers, texts and names changed
text            tokens, lines and numbers of programs; brackets and blocks in many others
bytes           the bytes of any member, with the checksum put right
==============  =====================================================================================================
"""

from __future__ import annotations

import pickletools
import random
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tests.archive.hostile.containers import Member, packed, unpacked
from tests.archive.hostile.seeds import Seed

NUMBERS: Final = (
    *(0, 1, 2, 3, 7, 64, 255, 256, 1000, 65_535, 65_536, 10**6, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 10**10),
    *(2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30, -1, -2, -(2**31), -(2**63), -(2**63) - 1),
)

WORDS: Final = (
    *("forward", "self", "__init__", "__setstate__", "__getstate__", "__class__", "__dict__", "__new__", "mro"),
    *("training", "weight", "_parameters", "_modules", "_buffers", "__torch__", "torch", "Tensor", "class", "def"),
    *("None", "True", "lambda", "import", "async", "_", "", "a" * 5000, "..", "../../x", "/etc/passwd", "\x00", "é"),
    *("0", "-1", "name", "value", "cpu", "cuda:0", "meta", "privateuseone", "List[int]", "Dict[str, Tensor]", "]["),
    *(
        "storage",
        "Optional[" * 80 + "int" + "]" * 80,
        "List[" * 3000,
        "__torch__.A",
        "x.y",
        "keys",
        "append",
        "_fields",
    ),
)

GLOBALS: Final = (
    *(("os", "system"), ("builtins", "eval"), ("builtins", "getattr"), ("torch", "load"), ("torch._utils", "_rebuild")),
    *(("torch", "FloatStorage"), ("torch", "LongStorage"), ("torch", "BoolStorage"), ("torch", "QInt8Storage")),
    *(("torch._utils", "_rebuild_tensor_v2"), ("torch._utils", "_rebuild_parameter"), ("torch", "device")),
    *(("torch._utils", "_rebuild_qtensor"), ("torch._utils", "_rebuild_sparse_tensor"), ("torch", "float64")),
    *(
        ("torch.jit._pickle", "restore_type_tag"),
        ("torch.jit._pickle", "build_intlist"),
        ("collections", "OrderedDict"),
    ),
    *(("torch.jit._pickle", "build_tensorlist"), ("__torch__", "A"), ("__torch__", "class"), ("builtins", "complex")),
    *(
        ("__torch__.torch.classes.quantized", "LinearPackedParamsBase"),
        ("__torch__.torch.classes.rnn", "CellParamsBase"),
    ),
)

SNIPPETS: Final = (
    *("while True:\n      pass\n", "for i in range(9223372036854775807):\n      pass\n", "return self.forward(self)\n"),
    *('torch.save(self, "/tmp/x")\n', 'torch.from_file("/etc/passwd")\n', "return torch.ones([1000000000000])\n"),
    *("x = [0] * 10000000000\n", 'x = "a" * 10000000000\n', "x = 9 ** 9 ** 9\n", "x = 1 << 10000000000\n"),
    *(
        'x = "".ljust(10000000000)\n',
        "x = torch.zeros([4])\n",
        "raise 1\n",
        "pass\n",
        "import os\n",
        "return CONSTANTS.c0\n",
    ),
    *(
        "x = CONSTANTS.c99999\n",
        "x = ops.aten.zeros([1], dtype=99)\n",
        "x = torch.device('é')\n",
        "def f(): return 1\n",
    ),
    *("class A(NamedTuple):\n  class : int\n", "class A(Enum):\n  mro = 1\n", "class A(Module):\n  x : __torch__.A\n"),
    *("x = __torch__.A\n", "x : List[List[int]] = []\n", "x = uninitialized(int)\n", "x = unchecked_cast(int, self)\n"),
    *("x = fork(self.forward)\n", "x = (lambda: 1)()\n", "x = annotate(List[Tensor], [])\n", "x = 1e999\n", "x = 1j\n"),
    *('x = "' + "a" * 100_000 + '"\n', "x = torch.factorial(1000000000)\n", 'x = "%1000000000d" % 1\n', "x = self\n"),
    *('x = "{:>10000000000}".format(1)\n', 'x = ops.aten.format("{:>10000000000}", 1)\n', "x = __import__('os')\n"),
)

_TOKEN: Final = re.compile(r"\w+|\s+|\"[^\"\n]*\"|[^\w\s]")


@dataclass(frozen=True)
class Mutant:
    """What became of a seed, and how."""

    number: int
    data: bytes
    history: str


def mutant(seeds: Sequence[Seed], number: int, run: int) -> Mutant:
    """The mutant of this number in a run."""
    rng = random.Random(f"{run}/{number}")
    seed = rng.choice(seeds) if rng.random() < 0.8 else rng.choice(seeds[:6])
    history = [seed.name]
    if rng.random() < 0.15:
        data = seed.data
        for _ in range(rng.choice((1, 1, 2, 4))):
            data, what = rng.choice((_file, _file, _directory))(rng, data)
            history.append(what)
        return Mutant(number, data, " · ".join(history))
    members = unpacked(seed.data)
    for _ in range(rng.choice((1, 1, 1, 1, 2, 4))):
        change = rng.choice((_members, _pickle, _pickle, _pickle, _pickle, _text, _text, _text, _text, _text, _bytes))
        history.append(change(rng, members, seeds))
    return Mutant(number, packed(members), " · ".join(history))


# ------------------------------------------------------------------------------------------------- the file as it is


def _file(rng: random.Random, data: bytes) -> tuple[bytes, str]:
    if not data:
        return data, "nothing left"
    at = rng.randrange(len(data))
    end = min(len(data), at + rng.choice((1, 2, 8, 64, 1000)))
    match rng.randrange(6):
        case 0 | 1:
            return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :], f"a bit at {at}"
        case 2:
            return data[:at] + bytes([rng.choice((0, 1, 127, 128, 255))]) + data[at + 1 :], f"a byte at {at}"
        case 3:
            return data[:at], f"cut off at {at}"
        case 4:
            return data[:at] + data[end:], f"cut out {at}:{end}"
        case _:
            return data[:end] + data[at:end] + data[end:], f"doubled {at}:{end}"


def _directory(rng: random.Random, data: bytes) -> tuple[bytes, str]:
    """A number of a header, which is at an even offset after the signature more often than not."""
    signature = rng.choice((b"PK\1\2", b"PK\3\4", b"PK\5\6", b"PK\6\6", b"PK\6\7"))
    places = [match.start() for match in re.finditer(re.escape(signature), data)]
    if not places:
        return _file(rng, data)
    at = rng.choice(places) + 4 + rng.randrange(44)
    width = rng.choice((2, 4, 8))
    number = rng.choice(NUMBERS) % 256**width
    return data[:at] + number.to_bytes(width, "little") + data[at + width :], f"{number} in the directory, at {at}"


# ----------------------------------------------------------------------------------------------------------- members


def _members(rng: random.Random, members: list[Member], seeds: Sequence[Seed]) -> str:
    if not members:
        return "no members left"
    at, other = rng.randrange(len(members)), rng.randrange(len(members))
    member = members[at]
    match rng.randrange(9):
        case 0:
            members[at] = replace(member, content=members[other].content)
            members[other] = replace(members[other], content=member.content)
            return f"contents of {member.name} and {members[other].name} swapped"
        case 1:
            donor = rng.choice(seeds)
            found = [item for item in unpacked(donor.data) if _tail(item.name) == _tail(member.name)]
            content = found[0].content if found else b""
            members[at] = replace(member, content=content)
            return f"{member.name} of {donor.name}"
        case 2:
            del members[at]
            return f"without {member.name}"
        case 3:
            members.insert(other, replace(member, content=members[other].content))
            return f"{member.name} doubled"
        case 4:
            members[at] = replace(
                member, name=rng.choice((member.name.upper(), member.name + "/", "../" + member.name))
            )
            return f"{member.name} renamed"
        case 5:
            top = member.name.partition("/")[0]
            members[at] = replace(member, name=f"{top}/{_tail(members[other].name)}x")
            return f"{member.name} renamed"
        case 6:
            members[at] = replace(member, content=b"")
            return f"{member.name} emptied"
        case 7:
            members[at] = replace(member, deflated=True, content=member.content + bytes(rng.choice((0, 10, 10**7))))
            return f"{member.name} compressed"
        case _:
            members[at] = replace(member, size=rng.choice(NUMBERS))
            return f"{member.name} of another size"


def _tail(name: str) -> str:
    return name.partition("/")[2]


def _bytes(rng: random.Random, members: list[Member], seeds: Sequence[Seed]) -> str:
    at = _pick(rng, members, lambda name: True)
    if at is None:
        return "no members left"
    content, what = _file(rng, members[at].content)
    members[at] = replace(members[at], content=content)
    return f"{members[at].name}: {what}"


def _pick(rng: random.Random, members: list[Member], wanted: Callable[[str], bool]) -> int | None:
    found = [index for index, member in enumerate(members) if wanted(member.name)]
    return rng.choice(found) if found else None


# ----------------------------------------------------------------------------------------------------------- pickles


def _pickle(rng: random.Random, members: list[Member], seeds: Sequence[Seed]) -> str:
    names = ("data.pkl", "constants.pkl", "attributes.pkl") if rng.random() < 0.9 else (".debug_pkl",)
    at = _pick(rng, members, lambda name: name.endswith(names))
    if at is None:
        return _bytes(rng, members, seeds)
    pieces = instructions(members[at].content)
    if not pieces:
        return _bytes(rng, members, seeds)
    what = "; ".join(_change_pickle(rng, pieces) for _ in range(rng.choice((1, 1, 1, 2, 4))))
    members[at] = replace(members[at], content=b"".join(pieces))
    return f"{members[at].name}: {what}"


def instructions(pickle: bytes) -> list[bytes]:
    """A pickle split into its operations; what cannot be read stays one piece."""
    starts = []
    try:
        for _, _, position in pickletools.genops(pickle):
            starts.append(position)
    except (ValueError, struct.error, IndexError, UnicodeDecodeError, OverflowError):
        pass
    ends = [*starts[1:], len(pickle)]
    return [pickle[start:end] for start, end in zip(starts, ends)]


def _change_pickle(rng: random.Random, pieces: list[bytes]) -> str:
    if not pieces:
        return "nothing left"
    at = rng.randrange(len(pieces))
    choice = rng.randrange(18)
    if choice > 7:  # one that has an argument
        at = rng.choice([index for index, piece in enumerate(pieces) if piece[:1] in _WITH_ARGUMENT] or [at])
    piece = pieces[at]
    match choice:
        case 0:
            del pieces[at]
            return f"{piece[:20]!r} left out"
        case 1:
            pieces.insert(rng.randrange(len(pieces)), piece)
            return f"{piece[:20]!r} twice"
        case 2:
            other = rng.randrange(len(pieces))
            pieces[at], pieces[other] = pieces[other], pieces[at]
            return f"{piece[:20]!r} and {pieces[at][:20]!r} swapped"
        case 3:
            pieces.insert(at, new := rng.choice(_SIMPLE))
            return f"{new[:20]!r} put in"
        case 4:
            pieces.insert(at, new := rng.choice(_NESTS)(rng.choice((10, 500, 500, 20_000))))
            return f"{new[:10]!r}… put in"
        case 5:
            pieces[at] = _number(rng.choice(NUMBERS))
        case 6:
            pieces[at] = _text_of(rng.choice(WORDS))
        case 7:
            pieces[at] = _global(*rng.choice(GLOBALS))
        case _:
            pieces[at] = _like(rng, piece)
    return f"{piece[:20]!r} is {pieces[at][:20]!r}"


_WITH_ARGUMENT: Final = b"KMJ\x8aX\x8ccGqh\x88\x89N]})"


def _like(rng: random.Random, piece: bytes) -> bytes:
    """An instruction of the same kind as ``piece`` with another argument."""
    match piece[:1]:
        case b"K" | b"M" | b"J" | b"\x8a":
            return _number(rng.choice(NUMBERS))
        case b"X" | b"\x8c":
            word = piece[5:] if piece[:1] == b"X" else piece[2:]
            return _text_of(
                rng.choice((*WORDS, word.decode("utf-8", "ignore") * 2, word.decode("utf-8", "ignore")[:-1]))
            )
        case b"c":
            return _global(*rng.choice(GLOBALS))
        case b"G":
            return b"G" + rng.choice((b"\x7f\xf0" + bytes(6), b"\x7f\xf8" + bytes(6), bytes(8), b"\xff" * 8))
        case b"q" | b"h":
            return piece[:1] + bytes([rng.randrange(256)])
        case b"\x88" | b"\x89" | b"N":
            return rng.choice((b"\x88", b"\x89", b"N", b"]", b"}", b")"))
        case b"]" | b"}" | b")":
            return rng.choice((b"]", b"}", b")", b"N"))
        case _:
            return piece


def _number(value: int) -> bytes:
    size = value.bit_length() // 8 + 1
    return b"\x8a" + bytes([size]) + value.to_bytes(size, "little", signed=True)


def _text_of(word: str) -> bytes:
    data = word.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<L", len(data)) + data


def _global(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


_SIMPLE: Final = (
    *(b"0", b"1", b"(", b")", b"]", b"}", b"N", b"\x88", b"\x89", b"t", b"l", b"d", b"a", b"e", b"s", b"u", b"b", b"R"),
    *(b"Q", b".", b"\x81", b"\x85", b"\x86", b"\x87", b"\x93", b"\x94", b"q\0", b"h\0", b"h\1", b"h\x05", b"2", b"o"),
    *(
        b"j\xff\xff\xff\xff",
        b"r\xff\xff\xff\xff",
        b"i",
        b"P0\n",
        b"\x82\1",
        b"\x8e" + b"\xff" * 8,
        b"\x8d" + b"\xff" * 8,
    ),
    *(
        b"X\xff\xff\xff\xff",
        b"I" + b"9" * 5000 + b"\n",
        b"\x8b\xff\xff\xff\x7f",
        b"L1L\n",
        b"\x80\5",
        b"\x95" + bytes(8),
    ),
    *(b"F1\n", b"Sx\n", b"\x97", b"\x98", b"\x96" + b"\xff" * 8, b"]q\0h\0a", b"}q\1X\1\0\0\0ah\1s", b"2222a"),
)

_NESTS: Final[tuple[Callable[[int], bytes], ...]] = (
    lambda depth: b"]" * depth + b"a" * (depth - 1),
    lambda depth: b")" + b"\x85" * depth,
    lambda depth: b"(" * depth,
    lambda depth: b"(" * depth + b"t" * depth,
    lambda depth: b"]" + b"".join(b"q" + bytes([i % 200]) for i in range(depth)),
    lambda depth: b"N\x85" + b"q\0h\0h\0\x860" * depth,
    lambda depth: b"N\x85" + b"q\0h\0\x86" * min(depth, 500),
)
"""Values within one another, marks, and values that contain each other twice."""


# ------------------------------------------------------------------------------------------------------------- texts


def _text(rng: random.Random, members: list[Member], seeds: Sequence[Seed]) -> str:
    names = (".py", "model.json") if rng.random() < 0.97 else ("version", "byteorder")
    at = _pick(rng, members, lambda name: name.endswith(names))
    if at is None:
        return _bytes(rng, members, seeds)
    text = members[at].content.decode("utf-8", "replace")
    notes = []
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        text, what = rng.choice((_tokens, _tokens, _tokens, _lines, _snippet, _deep))(rng, text)
        notes.append(what)
    members[at] = replace(members[at], content=text.encode("utf-8", "replace"))
    return f"{members[at].name}: {'; '.join(notes)}"


def _tokens(rng: random.Random, text: str) -> tuple[str, str]:
    tokens = _TOKEN.findall(text)
    if not tokens:
        return text, "nothing left"
    places = [index for index, token in enumerate(tokens) if not token.isspace()] or [0]
    at, other = rng.choice(places), rng.choice(places)
    old = tokens[at]
    match rng.randrange(6):
        case 0:
            tokens[at] = ""
        case 1:
            tokens[at] = old + " " + old
        case 2:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        case 3:
            tokens[at] = tokens[other]
        case 4:
            tokens[at] = rng.choice(WORDS)
        case _:
            numbers = [index for index in places if tokens[index].isdigit()]
            at = rng.choice(numbers or places)
            old = tokens[at]
            tokens[at] = str(rng.choice(NUMBERS))
    return "".join(tokens), f"{old[:20]!r} is {tokens[at][:20]!r}"


def _lines(rng: random.Random, text: str) -> tuple[str, str]:
    lines = text.splitlines(keepends=True)
    if not lines:
        return text, "nothing left"
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(other, lines[at])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case _:
            lines[at] = rng.choice(("  ", "\t", " ", "")) + lines[at].lstrip()
    return "".join(lines), f"lines {at} and {other}"


def _snippet(rng: random.Random, text: str) -> tuple[str, str]:
    """A line put in, as far to the right as the one before it."""
    lines = text.splitlines(keepends=True)
    at = rng.randrange(len(lines) + 1)
    before = lines[at - 1] if at else ""
    indent = " " * (len(before) - len(before.lstrip()) + 2 * before.rstrip().endswith(":"))
    snippet = rng.choice(SNIPPETS)
    lines.insert(at, indent + snippet)
    return "".join(lines), f"line {at}: {snippet[:30]!r}"


def _deep(rng: random.Random, text: str) -> tuple[str, str]:
    depth = rng.choice((50, 190, 1000, 5_000))
    before, after = rng.choice(
        (("(", ")"), ("[", "]"), ("-", ""), ("not ", ""), ("{1: ", "}"), ("f(", ")"), ("", ".x"))
    )
    places = [match for match in _TOKEN.finditer(text) if not match[0].isspace()]
    if not places:
        return text, "nothing left"
    place = rng.choice(places)
    return text[: place.start()] + before * depth + place[0] + after * depth + text[
        place.end() :
    ], f"{depth} times {before}"
