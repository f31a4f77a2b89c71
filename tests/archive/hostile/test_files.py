"""Files that contradict themselves: what readers of zip files and of pickles could be fooled by."""

import struct

import pytest

import rekindle
from rekindle.errors import ArchiveError, CorruptArchiveError, UnsafeArchiveError, UnsupportedArchiveError
from tests.archive.hostile.containers import Member, packed, unpacked
from tests.archive.hostile.programs import attributes, loaded, program, refusal, text, watch, whole

DISTRUST = "\nHint: PyTorch does not write such names; do not trust this file."


def with_member(name, content=b""):
    return packed([*unpacked(program()), Member(name, content)])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../../etc/cron.d/evil", "leads out of its folder"),
        ("a/../../evil", "leads out of its folder"),
        ("/etc/passwd", "is an absolute path"),
        ("C:/evil", "is an absolute path"),
        ("a\\..\\evil", "holds a backslash"),
        ("a//evil", "has empty parts"),
        ("a/./evil", "has empty parts"),
    ],
)
def test_names_that_lead_elsewhere(name, reason):
    assert refusal(with_member(name), UnsafeArchiveError) == (
        f"The archive has a member whose name {reason}. (in '{name}'){DISTRUST}"
    )


def test_members_of_one_name():
    assert refusal(with_member("a/data.pkl"), CorruptArchiveError) == (
        "The archive has two members of this name. (in 'a/data.pkl')"
    )
    assert refusal(with_member("a/DATA.pkl"), UnsafeArchiveError) == (
        "The archive has two members whose names differ in their case alone: this one and 'a/data.pkl'. "
        "Readers would pick different ones. (in 'a/DATA.pkl')"
    )


def test_wrong_checksums():
    members = unpacked(program())
    for index, member in enumerate(members):
        wrong = [*members]
        wrong[index] = Member(member.name, member.content, crc=1)
        assert refusal(packed(wrong), CorruptArchiveError) == (
            f"The member does not have its checksum: the file is damaged. (in '{member.name.partition('/')[2]}')"
        )


def test_files_that_are_cut_off():
    """Wherever: the end of a zip file is what it is found by."""
    data = program("  n : int\n", n=b"K\1")
    with watch().on():
        for length in range(len(data)):
            with pytest.raises(ArchiveError):
                rekindle.load(data[:length])
    assert watch().events == []


@pytest.mark.parametrize("name", ["os.system", "builtins.eval", "torch.load", "torch.hub.load", "posix.system"])
def test_pickles_mention_nothing_of_python(name):
    module, _, function = name.rpartition(".")
    call = f"c{module}\n{function}\n".encode() + text("true") + b"\x85R"
    assert refusal(program("  x : Any\n", x=call), UnsafeArchiveError) == (
        f"The pickle mentions '{name}', which no program needs. Loading imports and calls nothing that a file names. "
        "(in 'data.pkl')\nHint: Do not trust this file, unless you know why it mentions that."
    )


@pytest.mark.parametrize("opcode", [b"i", b"o", b"P", b"S", b"F", b"\x82", b"\x92", b"2", b"I", b"L", b"\x96"])
def test_instructions_that_archives_do_not_have(opcode):
    archive = program(data=b"\x80\2" + opcode + b"os\nsystem\n.")
    assert refusal(archive, CorruptArchiveError) == (
        f"The pickle is broken at byte 3: the instruction {opcode!r}, which archives do not have. (in 'data.pkl')"
    )


def tensor(offset=0, sizes=(4,), strides=(1,), count=4):
    def numbers(values):
        return b"(" + b"".join(map(whole, values)) + b"t"

    storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + whole(count) + b"tQ"
    view = storage + whole(offset) + numbers(sizes) + numbers(strides)
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + view + b"\x89)tR"


def with_tensor(**facts):
    return program("  t : Tensor\n", t=tensor(**facts), more=[Member("a/data/0", struct.pack("<4f", 1, 2, 3, 4))])


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        (dict(offset=1), "a tensor that reaches beyond its storage"),
        (dict(sizes=(5,)), "a tensor that reaches beyond its storage"),
        (dict(strides=(2,)), "a tensor that reaches beyond its storage"),
        (dict(offset=-1), "a tensor of negative offset"),
        (dict(strides=(-1,)), "a tensor whose strides are negative or none"),
        (dict(sizes=(-4,)), "a tensor whose sizes are negative or none"),
        (dict(strides=(2**64,)), "a tensor whose strides are negative or none"),
        (dict(sizes=(2**62, 2**62), strides=(0, 0)), "a tensor larger than memory can be"),
        (dict(sizes=(3, 2**63 - 1), strides=(2**63 - 1, 1)), "a tensor larger than memory can be"),
        (dict(count=2**62), "a storage larger than memory can be"),
        (dict(count=-1), "a storage of negative size"),
    ],
)
def test_tensors_beyond_their_storages(facts, problem):
    assert loaded(with_tensor()).t.tolist() == [1, 2, 3, 4]
    told = refusal(with_tensor(**facts), CorruptArchiveError)
    assert told.startswith("The pickle is broken at byte ")
    assert told.endswith(f": {problem}. (in 'data.pkl')")


def test_storages_that_are_longer_or_shorter_than_they_say():
    assert refusal(with_tensor(count=5), CorruptArchiveError) == (
        "A tensor's storage of 20 bytes has 16 in the archive. (in 'data/0')"
    )
    assert refusal(with_tensor(count=3, sizes=(3,)), CorruptArchiveError) == (
        "A tensor's storage of 12 bytes has 16 in the archive. (in 'data/0')"
    )


def test_versions_of_the_future():
    members = [Member(m.name, b"11\n" if m.name == "a/version" else m.content) for m in unpacked(program())]
    assert refusal(packed(members), UnsupportedArchiveError) == (
        "The archive is of version 11; the newest that can be read is 10.\n"
        "Hint: A newer PyTorch wrote it: update rekindle."
    )


def test_classes_in_c_are_made_from_what_they_take():
    """PyTorch checks the state of its packed weights."""
    name = "__torch__.torch.classes.quantized.LinearPackedParamsBase"
    value = b"c__torch__.torch.classes.quantized\nLinearPackedParamsBase\n)\x81K\1b"
    assert refusal(program(f"  p : {name}\n", p=value), CorruptArchiveError).startswith(
        f"The class '{name}' refuses the state of an object: "
    )
    assert attributes(a=b"N") == b"}(X\1\0\0\0aNu"
