"""Archives that ask for much: nesting, numbers of things, and small files that would become large."""

import struct
import time

import pytest

import rekindle
from rekindle.archive.limits import DEFAULT_LIMITS
from rekindle.errors import ArchiveLimitError, CompileError, CorruptArchiveError, ParseError, UnsupportedArchiveError
from tests.archive.hostile.containers import Member, packed
from tests.archive.hostile.programs import HEAD, NO_CONSTANTS, loaded, object_of, program, refusal, text, whole


def raise_the(limit):
    return f"\nHint: If you trust this file, raise the limit: limits=rekindle.ArchiveLimits({limit}=…)."


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 100_000 + "1" + ")" * 100_000,
        "[" * 1000 + "]" * 1000,
        "-" * 100_000 + "1",
        "not " * 100_000 + "True",
        "f(" * 1000 + ")" * 1000,
        "1 ** " * 1000 + "1",
        "1 if True else " * 1000 + "1",
        "(lambda: " * 1000 + "1" + ")" * 1000,
    ],
)
def test_deep_code(expression):
    before = time.process_time()
    with pytest.raises(CompileError):
        str(rekindle.load(program(f"  def g(self) -> int:\n    return {expression}\n")).g.graph)
    assert time.process_time() - before < 2


def test_deep_blocks():
    blocks = "".join("    " + " " * depth + "if c:\n" for depth in range(3000))
    archive = program(f"  def g(self, c: bool) -> int:\n{blocks}    {' ' * 3000}pass\n")
    assert refusal(archive, ParseError).partition("\n")[0] == "This program is nested too deeply."


def test_long_code_is_not_deep():
    expression = " + ".join(["x"] * 3000)
    module = loaded(program(f"  def g(self, x: int) -> int:\n    return {expression}\n"))
    assert str(module.g.graph).count("aten::add") == 2999


def test_deep_types():
    deep = "List[" * 3000 + "int" + "]" * 3000
    assert refusal(program(f"  x : {deep}\n", x=b"]"), ParseError).partition("\n")[0] == (
        "This program is nested too deeply."
    )
    tagged = b"ctorch.jit._pickle\nrestore_type_tag\n]" + text(deep) + b"\x86R"
    assert refusal(program("  x : Any\n", x=tagged), ArchiveLimitError) == (
        "A type nests deeper than 50. (in 'data.pkl')" + raise_the("type_nesting")
    )


def test_types_that_double():
    """Sixty NamedTuples that hold each other twice have more values than there are atoms in a person."""
    before = "".join(
        f"class A{i}(NamedTuple):\n  a : __torch__.A{i + 1}\n  b : __torch__.A{i + 1}\n" for i in range(60)
    )
    archive = program(
        "  x : __torch__.A0\n",
        before=f"{before}class A60(NamedTuple):\n  a : int\n",
        x=b"K\1\x85" + b"q\1h\1\x86" * 60,
    )
    assert refusal(archive, CompileError).partition("\n")[0] == (
        "the NamedTuple '__torch__.A48' has more than 10000 values, with those of the NamedTuples in it"
    )
    shared = loaded(program("  x : Any\n", x=b"K\1\x85" + b"q\1h\1\x86" * 60)).x
    assert shared[0] is shared[1]


def test_deep_values():
    message = "The values of the pickle nest deeper than 200. (in 'data.pkl')" + raise_the("nesting")
    assert refusal(program("  x : Any\n", x=b"]" * 10_000 + b"a" * 9_999), ArchiveLimitError) == message
    assert refusal(program("  x : Any\n", x=b")" + b"\x85" * 100_000), ArchiveLimitError) == message
    assert refusal(program("  x : Any\n", x=(b"}" + text("a")) * 10_000 + b"Ns" + b"s" * 9_999), ArchiveLimitError) == (
        message
    )


@pytest.mark.parametrize(
    ("pickle", "limit", "message"),
    [
        (
            b"\x80\2N" + b"".join(b"r" + struct.pack("<L", i) for i in range(1100)) + b".",
            "pickle_memo",
            "The pickle has more than 1000 remembered objects.",
        ),
        (b"\x80\2N" + b"N0" * 1000 + b".", "pickle_opcodes", "The pickle has more than 1000 instructions."),
        (b"\x80\2" + b"(" * 1100 + b".", "pickle_opcodes", "The pickle has more than 1000 instructions."),
        (b"\x80\2" + text("a" * 2000) + b".", "pickle_bytes", "The pickle has 2008 bytes; the limit is 1000."),
    ],
)
def test_large_pickles(pickle, limit, message):
    assert refusal(
        program(data=pickle), ArchiveLimitError, **{limit: 1000}
    ) == f"{message} (in 'data.pkl')" + raise_the(limit)


def test_large_texts():
    archive = program("  # " + "x" * 2000 + "\n")
    assert refusal(archive, ArchiveLimitError, code_bytes=2000) == (
        "The texts of the archive are longer than 2000 bytes. (in 'code/__torch__.py')" + raise_the("code_bytes")
    )


def test_bombs():
    members = [
        Member("a/version", b"3\n"),
        Member("a/data.pkl", b"\x80\2" + object_of("M", b"}") + b"."),
        Member("a/constants.pkl", NO_CONSTANTS),
    ]
    zeros = Member("a/constants.pkl", b"#" * (50 << 20), deflated=True)
    assert refusal(packed([*members[:2], zeros]), ArchiveLimitError) == (
        "The member grows from 50971 to 52428800 bytes when it is decompressed; the limit is 200 times. "
        "(in 'constants.pkl')" + raise_the("ratio")
    )
    hashes = [Member(f"a/code/__torch__/x{i}.py", b"#" * (1 << 20), deflated=True) for i in range(4)]
    needed = Member("a/code/__torch__.py", b"".join(b"# %d\n" % i for i in range(1000)) + HEAD.encode(), deflated=True)
    total = packed([*members, needed, *hashes])
    assert refusal(total, ArchiveLimitError, decompressed=5000) == (
        "The members take more than 5000 bytes when they are decompressed. (in 'code/__torch__.py')"
        + raise_the("decompressed")
    )
    lying = Member("a/code/__torch__.py", bytes(5 << 20), deflated=True, size=1000)
    assert refusal(packed([*members, lying]), CorruptArchiveError) == (
        "The member does not have its size when it is decompressed. (in 'code/__torch__.py')"
    )


def test_claims():
    """Sizes that a file only claims."""
    storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("meta") + whole(2**60) + b"tQ"
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\0(K\1t(K\1t\x89)tR"
    assert refusal(program("  t : Tensor\n", t=tensor), ArchiveLimitError) == (
        "A tensor without content claims to have 4611686018427387904 bytes; the limit is 1099511627776. (in 'data/0')"
        + raise_the("empty_tensor_bytes")
    )
    missing = tensor.replace(text("meta"), text("cpu"))
    assert refusal(program("  t : Tensor\n", t=missing), CorruptArchiveError) == (
        "The archive lacks a member. (in 'data/0')"
    )
    short = program("  t : Tensor\n", t=missing, more=[Member("a/data/0", bytes(16))])
    assert refusal(short, CorruptArchiveError) == (
        "A tensor's storage of 4611686018427387904 bytes has 16 in the archive. (in 'data/0')"
    )


@pytest.mark.parametrize("number", ["9" * 1001, "0x" + "f" * 1_000_000, "1e" + "9" * 1001])
def test_endless_numbers(number):
    archive = program(f"  def g(self) -> int:\n    return {number}\n")
    assert refusal(archive, ParseError).partition("\n")[0] == "A number has more than 1000 characters."


def test_json_of_old_archives():
    deep = packed([Member("a/model.json", b"[" * 100_000), Member("a/version", b"1")])
    assert refusal(deep, ArchiveLimitError) == "Modules are nested too deeply. (in 'model.json')"
    huge = packed([Member("a/model.json", b'{"tensors": ' + b"9" * 10_000 + b"}"), Member("a/version", b"1")])
    assert refusal(huge, CorruptArchiveError).startswith("The description of the model is broken: Exceeds the limit")


def test_places_that_are_told_at_length():
    """The debug information of a program can ask for much; it is left out then."""
    lines = b"ctorch.jit._pickle\nbuild_intlist\n](" + b"K\0" * 1000 + b"e\x85R"
    mark = b"(K\0((" + lines + b"K\0K\1tK\0K\1tK\0t"
    table = text("FORMAT_WITH_STRING_TABLE") + text("a" * 1_000_000) + b"\x85("
    debug = Member("a/code/__torch__.py.debug_pkl", b"\x80\2(" + table + mark * 100 + b"tt.")
    module = loaded(program("  def g(self, x: int) -> int:\n    return torch.add(x, x)\n", more=[debug]))
    before = time.process_time()
    assert "# code/__torch__.py" in str(module.g.graph)
    assert time.process_time() - before < 2


def test_what_is_no_program():
    nothing = packed([Member("a/data.pkl", b"\x80\2N."), Member("a/version", b"3")])
    assert refusal(nothing, UnsupportedArchiveError).partition("\n")[0] == "The archive holds no program."
    assert DEFAULT_LIMITS.members == 200_000


def numbers(*values):
    return b"(" + b"".join(map(whole, values)) + b"t"


def view(kind, sizes, *, function="_rebuild_tensor_v2", rest=b"\x89)"):
    """A tensor of any size over a storage of 16 bytes: its strides are 0."""
    count = 16 // {"Long": 8, "Double": 8, "Float": 4, "QInt8": 1}[kind]
    name = f"ctorch\n{kind}Storage\n".encode()
    storage = b"(" + text("storage") + name + text("0") + text("cpu") + whole(count) + b"tQ"
    strides = numbers(*[0] * len(sizes))
    return f"ctorch._utils\n{function}\n(".encode() + storage + b"K\0" + numbers(*sizes) + strides + rest + b"tR"


def test_tensors_without_end():
    """A stride of 0 costs nothing, until the elements are read."""
    more = [Member("a/data/0", bytes(16))]
    large = 2**29
    assert loaded(program("  t : Tensor\n", more=more, t=view("Float", (large, 7)))).t.shape == (large, 7)
    problem = ": a part of a tensor that has more elements than its storage. (in 'data.pkl')"
    channels = b"(ctorch\nper_channel_affine\n" + view("Double", (large,)) + view("Long", (large,)) + b"K\0t\x89)"
    each = view("QInt8", (large,), function="_rebuild_qtensor", rest=channels)
    quantised = program("  t : Tensor\n", more=more, t=each)
    assert refusal(quantised, CorruptArchiveError).endswith(problem)
    parts = view("Long", (1, large)) + view("Float", (large,)) + numbers(10) + b"t"
    call = b"ctorch._utils\n_rebuild_sparse_tensor\n(ctorch\nsparse_coo\n("
    sparse = program("  t : Tensor\n", more=more, t=call + parts + b"tR")
    assert refusal(sparse, CorruptArchiveError).endswith(problem)
    scheme = b"(ctorch\nper_tensor_affine\nG" + struct.pack(">d", 1) + b"K\0t\x89)"
    weight = view("QInt8", (2**16, 2**16), function="_rebuild_qtensor", rest=scheme)
    name = "__torch__.torch.classes.quantized.LinearPackedParamsBase"
    value = b"c__torch__.torch.classes.quantized\nLinearPackedParamsBase\n)\x81(" + weight + b"Ntb"
    assert refusal(program(f"  p : {name}\n", more=more, p=value), CorruptArchiveError) == (
        "The pickle does not fit the program: a tensor of an object has more elements than its storage. (in 'data.pkl')"
    )


def test_keys_that_collide():
    """All these complex numbers have the same hash."""
    keys = (
        b"cbuiltins\ncomplex\nG" + struct.pack(">d", -1000003.0 * i) + b"G" + struct.pack(">d", i) + b"\x86RN"
        for i in range(2000)
    )
    assert refusal(program("  x : Any\n", x=b"}(" + b"".join(keys) + b"u"), CorruptArchiveError).endswith(
        ": more complex numbers as keys than any program has. (in 'data.pkl')"
    )


def test_texts_that_would_move_the_cursor():
    archive = program("  def g(self) -> int:\n    return 1 + \x1b]0;evil\x07 \u202e\n")
    told = refusal(archive, ParseError)
    assert told.startswith("The character '\\x1b' has no meaning here.\n")
    assert "    return 1 + \N{REPLACEMENT CHARACTER}]0;evil\N{REPLACEMENT CHARACTER}" in told
    assert all(c.isprintable() or c == "\n" for c in told)
