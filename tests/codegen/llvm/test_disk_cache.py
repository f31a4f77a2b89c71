"""What is on disk is loaded only if this user wrote it, whole, for this very key."""

import errno
import os
import random
import secrets
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from rekindle.codegen.llvm import disk_cache
from rekindle.codegen.llvm.disk_cache import DiskCache, cache_directory

KEY = b"a kernel for a machine"
PAYLOAD = bytes(range(256)) * 3

posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")


@pytest.fixture
def cache(tmp_path):
    return DiskCache(tmp_path / "cache")


def only_file(cache):
    (path,) = cache.directory.iterdir()
    return path


def test_what_is_stored_is_loaded(cache):
    assert cache.load(KEY) is None
    assert cache.store(KEY, PAYLOAD)
    assert cache.load(KEY) == PAYLOAD
    assert cache.load(b"another kernel") is None


def test_an_object_may_be_empty(cache):
    cache.store(KEY, b"")
    assert cache.load(KEY) == b""


def test_a_second_one_takes_the_place_of_the_first(cache):
    cache.store(KEY, b"old")
    cache.store(KEY, b"new")
    assert cache.load(KEY) == b"new"
    only_file(cache)


def test_an_object_is_discarded(cache):
    cache.store(KEY, PAYLOAD)
    cache.discard(KEY)
    cache.discard(KEY)
    assert cache.load(KEY) is None


# ------------------------------------------------------------------------------------------------------------- damaged


def test_truncated_files_are_left_aside(cache):
    cache.store(KEY, PAYLOAD)
    path = only_file(cache)
    content = path.read_bytes()
    for length in range(0, len(content), 3):
        path.write_bytes(content[:length])
        assert cache.load(KEY) is None, length
    path.write_bytes(content)
    assert cache.load(KEY) == PAYLOAD


def test_files_with_more_at_their_end_are_left_aside(cache):
    cache.store(KEY, PAYLOAD)
    with only_file(cache).open("ab") as file:
        file.write(b"\0")
    assert cache.load(KEY) is None


def test_a_flipped_bit_anywhere_is_noticed(cache):
    cache.store(KEY, PAYLOAD)
    path = only_file(cache)
    content = path.read_bytes()
    chosen = random.Random(7)
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 1 << chosen.randrange(8)
        path.write_bytes(flipped)
        assert cache.load(KEY) is None, place


def test_an_object_of_another_key_under_this_name(cache, tmp_path):
    other = DiskCache(tmp_path / "other")
    other.store(b"another kernel", PAYLOAD)
    cache.store(KEY, PAYLOAD)
    only_file(other).replace(only_file(cache))
    assert cache.load(KEY) is None


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"rekindle object 1\n", b"rekindle object 2\n" + bytes(64)])
def test_foreign_files_are_left_aside(cache, content):
    cache.store(KEY, PAYLOAD)
    only_file(cache).write_bytes(content)
    assert cache.load(KEY) is None


# ------------------------------------------------------------------------------------------------------ not the user's


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_files_that_others_can_write_to_are_refused(cache, mode, caplog):
    cache.store(KEY, PAYLOAD)
    only_file(cache).chmod(mode)
    assert cache.load(KEY) is None
    assert caplog.messages == [f"{only_file(cache)} is not used: others than you can write to it"]


@posix
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_folders_that_others_can_write_to_are_refused(cache, mode, caplog):
    cache.store(KEY, PAYLOAD)
    cache.directory.chmod(mode)
    assert cache.load(KEY) is None
    assert not cache.store(KEY, PAYLOAD)
    assert caplog.messages == [f"{cache.directory} is not used: others than you can write to it"] * 2


@posix
def test_files_of_another_user_are_refused(cache, monkeypatch):
    cache.store(KEY, PAYLOAD)
    user = os.geteuid()
    real = os.fstat

    def of_another(descriptor):
        status = list(real(descriptor))
        status[stat.ST_UID] = user + 1
        return os.stat_result(status)

    monkeypatch.setattr(os, "fstat", of_another)
    assert cache.load(KEY) is None


@posix
def test_folders_of_another_user_are_refused(cache, monkeypatch):
    cache.store(KEY, PAYLOAD)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert cache.load(KEY) is None
    assert not cache.store(KEY, PAYLOAD)


@posix
def test_links_are_not_followed(cache, tmp_path):
    cache.store(KEY, PAYLOAD)
    path = only_file(cache)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert cache.load(KEY) is None
    assert cache.store(KEY, PAYLOAD)
    assert not path.is_symlink()


@posix
def test_a_pipe_in_the_place_of_a_file_does_not_hang(cache):
    cache.store(KEY, PAYLOAD)
    path = only_file(cache)
    path.unlink()
    os.mkfifo(path)
    assert cache.load(KEY) is None


@posix
def test_what_is_written_is_the_users_alone(cache):
    cache.store(KEY, PAYLOAD)
    assert stat.S_IMODE(cache.directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(only_file(cache).stat().st_mode) == 0o600


# -------------------------------------------------------------------------------------------------------- bad disks


def test_a_file_in_the_place_of_the_folder(tmp_path):
    (tmp_path / "cache").write_text("no folder")
    for cache in (DiskCache(tmp_path / "cache"), DiskCache(tmp_path / "cache" / "below")):
        assert not cache.store(KEY, PAYLOAD)
        assert cache.load(KEY) is None


@posix
def test_a_folder_that_cannot_be_written_to(cache, monkeypatch):
    cache.store(KEY, PAYLOAD)

    def refuse(*arguments, **keywords):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(disk_cache, "_write", refuse)
    monkeypatch.setattr(os, "utime", refuse)
    assert cache.load(KEY) == PAYLOAD
    assert not cache.store(b"another kernel", PAYLOAD)


@posix
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_to(cache):
    cache.store(KEY, PAYLOAD)
    cache.directory.chmod(0o500)
    assert cache.load(KEY) == PAYLOAD
    assert not cache.store(b"another kernel", PAYLOAD)


def test_a_full_disk_leaves_nothing_behind(cache, monkeypatch):
    def fill(path, content):
        path.write_bytes(content[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk_cache, "_write", fill)
    assert not cache.store(KEY, PAYLOAD)
    assert list(cache.directory.iterdir()) == []


# ---------------------------------------------------------------------------------------------------------- its size


def used_at(cache, key, when):
    os.utime(cache._path(key), (when, when))


def test_what_was_not_used_for_longest_goes_first(tmp_path):
    cache = DiskCache(tmp_path, limit=10_000)
    keys = [f"kernel {n}".encode() for n in range(9)]
    for age, key in enumerate(keys):
        cache.store(key, bytes(1_000))
        used_at(cache, key, 1_000_000_000 + age)
    assert cache.load(keys[0]) is not None  # used just now
    cache.store(b"one more", bytes(1_000))
    kept = [key for key in keys if cache.load(key) is not None]
    assert kept == [keys[0], *keys[4:]]
    assert cache.load(b"one more") is not None


def test_the_limit_holds(tmp_path):
    cache = DiskCache(tmp_path, limit=20_000)
    for number in range(300):
        cache.store(f"kernel {number}".encode(), bytes(random.Random(number).randrange(3_000)))
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 20_000


def test_other_processes_fill_the_folder_too(tmp_path):
    caches = [DiskCache(tmp_path, limit=20_000) for _ in "123"]
    for number in range(600):
        caches[number % 3].store(f"kernel {number}".encode(), bytes(1_000))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 3 * 20_000


def test_an_object_larger_than_all_that_is_kept(tmp_path):
    cache = DiskCache(tmp_path, limit=1_000)
    assert not cache.store(KEY, bytes(1_000))
    assert cache.load(KEY) is None


def test_what_a_process_did_not_finish_is_removed(cache, monkeypatch):
    monkeypatch.setattr(secrets, "randbelow", lambda bound: 0)  # it is looked for at one of so many writes
    cache.store(KEY, PAYLOAD)
    old, fresh = cache.directory / "x.1.ab.part", cache.directory / "y.1.ab.part"
    for path in (old, fresh):
        path.write_bytes(b"half")
    os.utime(old, (1_000_000_000, 1_000_000_000))
    DiskCache(cache.directory).store(b"another kernel", PAYLOAD)
    assert not old.exists()
    assert fresh.exists()


def test_few_processes_look_at_the_whole_folder(cache, monkeypatch):
    """A folder of thousands of files takes longer to look at than an object to write."""
    looked = []
    monkeypatch.setattr(DiskCache, "_shrink", lambda self: looked.append(1) or 0)
    monkeypatch.setattr(secrets, "randbelow", lambda bound: 1)
    for number in range(63):
        cache.store(b"kernel %d" % number, PAYLOAD)
    assert looked == []
    cache.store(b"the last", PAYLOAD)
    assert looked == [1]


def test_two_processes_at_once(tmp_path):
    """Both write and read the same objects, while a small limit has them remove each other's: what is read is right or
    not there."""
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from rekindle.codegen.llvm.disk_cache import DiskCache\n"
        "cache = DiskCache(Path(sys.argv[1]), limit=60_000)\n"
        "found = 0\n"
        "for number in range(1500):\n"
        "    key = b'kernel %d' % (number * 7 % 40)\n"
        "    loaded = cache.load(key)\n"
        "    assert loaded is None or loaded == key * 200, (key, loaded[:50])\n"
        "    found += loaded is not None\n"
        "    cache.store(key, key * 200)\n"
        "print(found)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "cache")]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in "12"]
    for process in both:
        answer, errors = process.communicate()
        assert process.returncode == 0, errors
        assert int(answer) > 0
    assert not list((tmp_path / "cache").glob("*.part"))


# ---------------------------------------------------------------------------------------------------------------- where


@pytest.mark.parametrize(
    ("platform", "environment", "folder"),
    [
        ("linux", {}, "HOME/.cache/rekindle"),
        ("linux", {"XDG_CACHE_HOME": "/elsewhere"}, "/elsewhere/rekindle"),
        ("darwin", {}, "HOME/Library/Caches/rekindle"),
        ("win32", {}, "HOME/AppData/Local/rekindle/Cache"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/rekindle/Cache"),
        ("linux", {"REKINDLE_CACHE_DIR": "/chosen"}, "/chosen"),
        ("linux", {"REKINDLE_CACHE": "0"}, None),
        ("linux", {"REKINDLE_CACHE": "OFF", "REKINDLE_CACHE_DIR": "/chosen"}, None),
        ("linux", {"REKINDLE_CACHE": "1"}, "HOME/.cache/rekindle"),
    ],
)
def test_where_objects_are_kept(monkeypatch, platform, environment, folder):
    monkeypatch.setattr(sys, "platform", platform)
    expected = None if folder is None else Path(folder.replace("HOME", str(Path.home())))
    assert cache_directory(environment) == expected


def test_a_user_without_a_home(monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)
    assert cache_directory({}) is None
