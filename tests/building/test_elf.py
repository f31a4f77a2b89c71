"""The linker: relocations of every kind that LLVM writes, and what it refuses."""

import ctypes
import subprocess

import pytest

from rekindle.building.elf import LinkError, ObjectFile, link as link_objects
from rekindle.building.object_cache import object_of
from rekindle.codegen.llvm.target import host_target
from tests.building.c_process import compiler

FIRST = """
@count = internal global i64 5
@zeros = internal global [100 x i64] zeroinitializer
@table = internal constant [3 x ptr] [ptr @counted, ptr @sqrt, ptr @shared]
@shared = external global i64
declare double @sqrt(double)
declare i64 @other(i64)
define i64 @counted(i64 %x) {
  %c = load i64, ptr @count
  %d = add i64 %c, 1
  store i64 %d, ptr @count
  %y = call i64 @other(i64 %x)
  %r = add i64 %d, %y
  ret i64 %r
}
define double @root(double %x) {
  %y = call double @sqrt(double %x)
  ret double %y
}
define double @root_by_table(double %x) {
  %p = getelementptr ptr, ptr @table, i64 1
  %q = load volatile ptr, ptr %p
  %y = call double %q(double %x)
  ret double %y
}
define i64 @shared_by_table() {
  %p = getelementptr ptr, ptr @table, i64 2
  %q = load volatile ptr, ptr %p
  %y = load i64, ptr %q
  ret i64 %y
}
define i64 @stored(i64 %x) {
  %p = getelementptr i64, ptr @zeros, i64 %x
  %v = load i64, ptr %p
  %w = add i64 %v, 100
  store i64 %w, ptr %p
  ret i64 %w
}
"""
SECOND = """
@shared = global i64 77
define i64 @other(i64 %x) {
  %y = mul i64 %x, 2
  ret i64 %y
}
"""
EXPORTS = ["counted", "root", "root_by_table", "shared_by_table", "stored"]


def link(images, exports, **options):
    return link_objects(list(map(ObjectFile.read, images)), exports, **options)


@pytest.fixture(scope="module")
def images():
    return [object_of(text, host_target()) for text in (FIRST, SECOND)]


@pytest.fixture(scope="module")
def path(images, tmp_path_factory):
    path = tmp_path_factory.mktemp("elf") / "libsample.so"
    path.write_bytes(link(images, EXPORTS, needed=["libm.so.6", "libc.so.6"], soname="libsample.so"))
    return path


def test_the_loader_takes_the_library(path):
    library = ctypes.CDLL(str(path))
    library.root.restype = library.root_by_table.restype = ctypes.c_double
    library.root.argtypes = library.root_by_table.argtypes = [ctypes.c_double]
    assert [library.counted(3), library.counted(3)] == [12, 13]
    assert library.root(2.25) == library.root_by_table(2.25) == 1.5
    assert library.shared_by_table() == 77
    assert [library.stored(99), library.stored(99), library.stored(0)] == [100, 200, 100]


def test_only_what_is_exported_can_be_found(path):
    with pytest.raises(AttributeError):
        _ = ctypes.CDLL(str(path)).other


@pytest.mark.skipif(compiler() is None, reason="this machine has no C compiler")
def test_a_linker_takes_the_library(path, tmp_path):
    source = tmp_path / "main.c"
    source.write_text("long counted(long); int main(void) { return counted(3) != 12; }")
    program = tmp_path / "main"
    command = [compiler(), "-o", program, source, f"-L{path.parent}", "-lsample", f"-Wl,-rpath,{path.parent}"]
    subprocess.run(command, check=True)
    subprocess.run([program], check=True)


def test_memory_is_either_written_or_run(path):
    """No segment is both."""
    image = path.read_bytes()
    count = int.from_bytes(image[56:58], "little")
    flags = [int.from_bytes(image[64 + 56 * index + 4 :][:4], "little") for index in range(count)]
    assert flags
    assert not any(each & 1 and each & 2 for each in flags)


def test_what_cannot_be_linked(images):
    with pytest.raises(LinkError, match=r"^no object defines missing, too$"):
        link(images, ["counted", "missing", "too"])
    with pytest.raises(LinkError, match=r"^'counted' is defined twice$"):
        link([images[0], images[0]], ["counted"])
    with pytest.raises(LinkError, match=r"^this is not a little-endian 64-bit ELF object$"):
        link([b"MZ" + bytes(100)], [])
    shared = link(images, EXPORTS, needed=["libm.so.6"])
    with pytest.raises(LinkError, match=r"^this ELF file is not a relocatable object$"):
        link([shared], [])
    other = bytearray(images[1])
    other[18:20] = (183).to_bytes(2, "little")
    with pytest.raises(LinkError, match=r"^objects for machine 183 cannot be linked: this linker knows x86-64$"):
        link([bytes(other)], [])
