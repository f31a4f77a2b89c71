"""Zip files that hold programs: what is read from them, and which are refused."""

import io
import os
import struct
import warnings
import zipfile
from dataclasses import replace

import pytest
import torch

from rekindle.archive.limits import DEFAULT_LIMITS
from rekindle.archive.writer import ArchiveWriter
from rekindle.archive.zip_files.container import ArchiveReader
from rekindle.errors import (
    ArchiveError,
    ArchiveLimitError,
    CorruptArchiveError,
    UnsafeArchiveError,
    UnsupportedArchiveError,
)

CONTENT = bytes(range(256)) * 8


def zipped(*members, method=zipfile.ZIP_STORED):
    """A zip file of members given as ``(name, content)``."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of duplicate names
        with zipfile.ZipFile(buffer, "w", method) as file:
            for name, content in members:
                file.writestr(name, content)
    return buffer.getvalue()


def written(*members):
    writer = ArchiveWriter()
    for name, content in members:
        writer.add(name, content)
    buffer = io.BytesIO()
    writer.write(buffer)
    return buffer.getvalue()


def refusal(data, error=CorruptArchiveError, **limits):
    def read_all():
        reader = ArchiveReader(data, replace(DEFAULT_LIMITS, **limits))
        return [reader.read(name) for name in reader.names]

    with pytest.raises(error) as caught:
        read_all()
    assert type(caught.value) is error
    return str(caught.value)


def test_from_path_file_and_bytes(tmp_path):
    data = zipped(("model/data.pkl", CONTENT), ("model/data/0", b""))
    path = tmp_path / "model.pt"
    path.write_bytes(data)
    with open(path, "rb") as file:
        readers = [ArchiveReader(f) for f in (path, str(path), file, data, bytearray(data), memoryview(data))]
    for reader in readers:
        assert reader.names == ["data.pkl", "data/0"]
        assert reader.read("data.pkl") == CONTENT
        assert reader.read("data/0") == b""
        assert reader.size == len(data)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_stored_and_compressed(method):
    reader = ArchiveReader(zipped(("any name/version", "3\n"), ("any name/code/__torch__.py", CONTENT), method=method))
    assert reader.top == "any name/"
    assert reader.read("code/__torch__.py") == CONTENT
    assert reader.version() == 3


def test_what_pytorch_writes(tmp_path):
    class Net(torch.nn.Module):
        def forward(self, x):
            return x + 1

    torch.jit.save(torch.jit.script(Net()), str(tmp_path / "net.pt"), _extra_files={"a.txt": "hello"})
    reader = ArchiveReader(tmp_path / "net.pt")
    assert reader.top == "net/"
    assert reader.version() == 3
    assert reader.byte_order() == "little"
    assert reader.read("extra/a.txt") == b"hello"
    assert {"data.pkl", "constants.pkl"} <= {*reader.names}
    for name in reader.names:
        reader.view(name)
    reader.check_program()


def test_a_mapping_is_written_to_without_changing_the_file(tmp_path):
    path = tmp_path / "x.pt"
    data = written(("data/0", CONTENT))
    path.write_bytes(data)
    reader = ArchiveReader(path)
    reader.writable("data/0", 64)[:4] = b"new!"
    assert path.read_bytes() == data
    assert reader.read("data/0") == CONTENT


def test_members_are_written_at_multiples_of_64():
    data = written(("data/0", b"x"), ("data/1", CONTENT), ("data/22", b""))
    reader = ArchiveReader(data)
    assert [reader.entry(name).start % 64 for name in reader.names] == [0, 0, 0]
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        assert file.testzip() is None
        assert file.read("archive/data/1") == CONTENT


def test_writing_into_an_unbuffered_file():
    class Slow(io.RawIOBase):
        def __init__(self):
            self.got = b""

        def writable(self):
            return True

        def write(self, chunk):
            self.got += bytes(chunk[:100])
            return min(len(chunk), 100)

    target = Slow()
    writer = ArchiveWriter()
    writer.add("data", CONTENT)
    writer.write(target)
    assert ArchiveReader(target.got).read("data") == CONTENT


def test_many_members_take_the_long_end_record():
    writer = ArchiveWriter()
    for i in range(70_000):
        writer.add(str(i), b"")
    buffer = io.BytesIO()
    writer.write(buffer)
    assert len(ArchiveReader(buffer.getvalue()).names) == 70_000
    assert len(zipfile.ZipFile(buffer).namelist()) == 70_000


def test_a_failed_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "model.pt"
    path.write_bytes(b"before")
    writer = ArchiveWriter()
    writer.add("a", b"1")
    writer.add("A", b"2")
    with pytest.raises(UnsafeArchiveError):
        writer.write(path)
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["model.pt"]


def test_writing_over_a_file_keeps_its_permissions_and_links(tmp_path):
    path, link = tmp_path / "model.pt", tmp_path / "link.pt"
    path.write_bytes(b"before")
    path.chmod(0o640)
    link.symlink_to(path)
    writer = ArchiveWriter()
    writer.add("a", b"1")
    writer.write(link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert ArchiveReader(path).read("a") == b"1"
    assert sorted(os.listdir(tmp_path)) == ["link.pt", "model.pt"]


def test_not_a_file():
    with pytest.raises(
        TypeError, match="an archive is read from a path, a file or bytes, not from a value of class 'int'"
    ):
        ArchiveReader(3)
    with pytest.raises(TypeError, match="the file was opened as text; open it with mode 'rb'"):
        ArchiveReader(io.StringIO("x"))
    with pytest.raises(TypeError, match="an archive is written to a path or a file, not to a int"):
        ArchiveWriter().write(3)
    with pytest.raises(FileNotFoundError):
        ArchiveReader("/nowhere/model.pt")


# ---------------------------------------------------------------------------------------------- what is refused


def test_no_archive(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    assert refusal(tmp_path / "empty") == "The file is empty."
    assert refusal(b"hello world, this is text") == "The file is not an archive: it has no zip directory."
    assert refusal(b"\x80\x02}q\x00.") == (
        "The file is a pickle, not an archive.\n"
        "Hint: torch.save wrote such files before PyTorch 1.6; they hold no program. Read it with torch.load."
    )
    assert refusal(zipped()) == "The archive is empty."


def test_cut_off_anywhere():
    data = zipped(("m/version", "3\n"), ("m/data.pkl", CONTENT))
    for length in range(1, len(data)):
        refusal(data[:length])
    assert refusal(data[:-30]) == "The archive is truncated: its directory, which is at the end, is missing."
    assert refusal(data + b"x") == "Something follows the end of the archive, or its end is cut off."


def test_bits_turned_anywhere():
    """Whatever bit is turned, the archive is refused or reads the same; times, versions and attributes mean nothing."""
    data = written(("version", b"3\n"), ("data/0", CONTENT[:40]))
    for at in range(len(data) * 8):
        turned = bytearray(data)
        turned[at // 8] ^= 1 << at % 8
        try:
            reader = ArchiveReader(turned)
            assert {name: reader.read(name) for name in reader.names} == {"version": b"3\n", "data/0": CONTENT[:40]}
        except ArchiveError:
            pass


NAMES = {
    "../x": "leads out of its folder",
    "m/../../x": "leads out of its folder",
    "/etc/passwd": "is an absolute path",
    "C:/x": "is an absolute path",
    "m\\..\\x": "holds a backslash",
    "m//x": "has empty parts",
    "m/./x": "has empty parts",
    "m/\n": "holds control characters",
}


@pytest.mark.parametrize("name", NAMES)
def test_names_that_lead_elsewhere(name):
    shown = name.replace("\n", "\\x0a")
    assert refusal(zipped((name, b"")), UnsafeArchiveError) == (
        f"The archive has a member whose name {NAMES[name]}. (in '{shown}')\n"
        "Hint: PyTorch does not write such names; do not trust this file."
    )


def test_names_that_are_taken():
    assert refusal(zipped(("m/a", b"1"), ("m/a", b"2"))) == "The archive has two members of this name. (in 'm/a')"
    assert refusal(zipped(("m/a", b"1"), ("m/A", b"2")), UnsafeArchiveError) == (
        "The archive has two members whose names differ in their case alone: this one and 'm/a'. "
        "Readers would pick different ones. (in 'm/A')"
    )
    composed, apart = "m/\u00e9", "m/e\u0301"
    refusal(zipped((composed, b"1"), (apart, b"2")), UnsafeArchiveError)


@pytest.mark.parametrize("names", [("a/x", "b/y"), ("x",), ("a/x", "y")])
def test_more_than_one_top_folder(names):
    assert refusal(zipped(*[(name, b"") for name in names])) == (
        "The members of the archive are not in one folder, as PyTorch writes them.\n"
        "Hint: If the file was repacked, pack its top folder too: zip -r model.pt model/"
    )


def test_folders_may_be_members():
    assert ArchiveReader(zipped(("m/", b""), ("m/code/", b""), ("m/version", b"3"))).names == ["version"]


def test_a_wrong_checksum():
    data = zipped(("m/data.pkl", CONTENT))
    at = data.index(CONTENT)
    assert refusal(data[:at] + b"\xff" + data[at + 1 :]) == (
        "The member does not have its checksum: the file is damaged. (in 'data.pkl')"
    )


def patched(data, old, new, which=0):
    at = -1
    for _ in range(which + 1):
        at = data.index(old, at + 1)
    return data[:at] + new + data[at + len(old) :]


def test_headers_that_contradict_the_directory():
    data = zipped(("m/one", CONTENT), ("m/two", b"second"))
    assert refusal(patched(data, b"m/one", b"m/two")) == (
        "The member is not at the offset that the directory records. (in 'm/one')"
    )
    crc = struct.pack("<L", zipfile.ZipFile(io.BytesIO(data)).getinfo("m/one").CRC)
    assert refusal(patched(data, crc, b"abcd")) == "The header of the member contradicts the directory. (in 'm/one')"
    offset = zipfile.ZipFile(io.BytesIO(data)).getinfo("m/two").header_offset
    both = patched(data, b"m/two", b"m/one", 1)
    moved = both.replace(struct.pack("<L", offset) + b"m/one", struct.pack("<L", 0) + b"m/six")
    refusal(moved)


def test_members_that_overlap():
    """Two entries of the directory over one member, as a bomb does it."""
    data = zipped(("m/one", CONTENT))
    start = data.index(b"PK\x01\x02")
    directory = data[start : data.index(b"PK\x05\x06")]
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 2, 2, 2 * len(directory), start, 0)
    assert refusal(data[:start] + directory + directory.replace(b"m/one", b"m/two") + end) == (
        "The member overlaps with another one. (in 'm/two')"
    )


def test_bombs():
    data = zipped(("m/zeros", bytes(8 << 20)), method=zipfile.ZIP_DEFLATED)
    assert refusal(data, ArchiveLimitError) == (
        f"The member grows from {ArchiveReader(data).entry('zeros').stored_size} to 8388608 bytes when it is "
        "decompressed; the limit is 200 times. (in 'zeros')\n"
        "Hint: If you trust this file, raise the limit: limits=rekindle.ArchiveLimits(ratio=…)."
    )
    assert "take more than 1000000 bytes" in refusal(data, ArchiveLimitError, ratio=2000, decompressed=1_000_000)
    lying = data.replace(struct.pack("<L", 8 << 20), struct.pack("<L", 1000))
    assert refusal(lying) == "The member does not have its size when it is decompressed. (in 'zeros')"


def test_too_many_members():
    assert refusal(zipped(*[(f"m/{i}", b"") for i in range(5)]), ArchiveLimitError, members=4).startswith(
        "The archive has 5 members; the limit is 4."
    )


def test_kinds_that_cannot_be_read():
    assert refusal(zipped(("m/x", CONTENT), method=zipfile.ZIP_BZIP2), UnsupportedArchiveError) == (
        "The member is compressed by method 12; only deflate (8) can be read. (in 'm/x')"
    )
    data = bytearray(zipped(("m/x", b"")))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    assert refusal(data, UnsupportedArchiveError) == "The member is encrypted. (in 'm/x')"


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({}, "The archive lacks its version: it is not a TorchScript archive."),
        ({"version": "x"}, "'x' is not a version. (in 'version')"),
        ({"version": "9" * 200}, "The member is too long for its content. (in 'version')"),
        ({"version": "\u0663"}, "'\u0663' is not a version. (in 'version')"),
        (
            {"version": "11"},
            (
                "The archive is of version 11; the newest that can be read is 10.\n"
                "Hint: A newer PyTorch wrote it: update rekindle."
            ),
        ),
        (
            {"version": "0"},
            (
                "The archive is of version 0; the oldest that can be read is 1.\n"
                "Hint: Load it with the PyTorch that wrote it and save it with PyTorch 1.4 or newer."
            ),
        ),
    ],
)
def test_versions(members, message):
    reader = ArchiveReader(zipped(("m/x", b""), *[(f"m/{name}", text) for name, text in members.items()]))
    with pytest.raises(ArchiveError) as caught:
        reader.version()
    assert str(caught.value) == message


def test_archives_that_hold_no_program(tmp_path):
    torch.save({"a": torch.ones(2)}, tmp_path / "weights.pt")
    with pytest.raises(UnsupportedArchiveError) as caught:
        ArchiveReader(tmp_path / "weights.pt").check_program()
    assert str(caught.value) == (
        "The archive holds no program.\n"
        "Hint: torch.save wrote it, or torch.export: read it with torch.load or torch.export.load."
    )


@pytest.mark.parametrize("order", ["little", "big"])
def test_byte_order(order):
    assert ArchiveReader(zipped(("m/byteorder", order))).byte_order() == order
    with pytest.raises(CorruptArchiveError, match="'middle' is not a byte order"):
        ArchiveReader(zipped(("m/byteorder", "middle"))).byte_order()
