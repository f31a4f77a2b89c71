"""Compiled objects on disk, so that a new process compiles nothing.

One file an object, named after its key. What a file holds is loaded into the process and run: so it has to belong to
the user, be in a folder of the user that no one else can write to, and be complete and written for this key::

    rekindle object 1\\n | SHA-256 of the key and the payload | payload

Any other file is ignored, and so are errors of the disk: programs run without the cache. Two processes that write the
same file write the same content, and each moves its file into place atomically.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import secrets
import stat
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

DIRECTORY: Final = "REKINDLE_CACHE_DIR"
"""The environment variable with the folder; by default the platform's cache folder."""
SWITCH: Final = "REKINDLE_CACHE"
"""The environment variable that turns the cache off if it is ``0``, ``off``, ``no`` or ``false``."""
LIMIT: Final = 256 * 1024 * 1024
"""Maximum total size of the files in bytes."""

_MAGIC: Final = b"rekindle object 1\n"
_HEAD: Final = len(_MAGIC) + hashlib.sha256().digest_size
_SUFFIX: Final = ".object"
_UNFINISHED: Final = ".part"
_FORGOTTEN: Final = 3600.0
"""Seconds after which an unfinished file belongs to a process that died."""
_RESCAN: Final = 64
"""Number of writes after which the folder is scanned again: other processes write too."""
_PER_SCAN: Final = 128
"""Until a process has scanned the folder, it does so with probability 1/128 at each write: scanning ten thousand files
takes 40 ms, and most processes write little."""
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH

_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class DiskCache:
    """A cache of files in ``directory``. If they exceed ``limit`` bytes, the least recently used ones are removed."""

    directory: Path
    limit: int = LIMIT
    _written: int = 0
    _size: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def load(self, key: bytes) -> bytes | None:
        """Return the object stored under ``key``, and mark it as used; None if there is none, or it is not trusted."""
        path = self._path(key)
        if not self._is_trusted():
            return None
        content = _read(path)
        if content is None:
            return None
        payload = content[_HEAD:]
        if content[:_HEAD] != _head(key, payload):
            _logger.info("%s is damaged or not what it is named, and is left aside", path)
            return None
        return payload

    def store(self, key: bytes, payload: bytes) -> bool:
        """Store ``payload`` under ``key``; return whether that succeeded."""
        if not self._is_trusted(create=True):
            return False
        path = self._path(key)
        unfinished = path.with_name(f"{path.stem}.{os.getpid()}.{secrets.token_hex(4)}{_UNFINISHED}")
        content = _head(key, payload) + payload
        if len(content) > self.limit:
            return False
        try:
            _write(unfinished, content)
            os.replace(unfinished, path)
        except OSError as error:
            _logger.info("%s cannot be written: %s", path, error)
            _remove(unfinished)
            return False
        self._account(len(content))
        return True

    def discard(self, key: bytes) -> None:
        """Remove the entry of ``key``."""
        _remove(self._path(key))

    # ------------------------------------------------------------------------------------------------------- the folder

    def _path(self, key: bytes) -> Path:
        return self.directory / f"{hashlib.sha256(key).hexdigest()}{_SUFFIX}"

    def _is_trusted(self, *, create: bool = False) -> bool:
        """Return whether the folder exists, belongs to the user, and only the user can write to it. With ``create``, it
        is created."""
        try:
            if create:
                self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = self.directory.stat()
        except OSError as error:
            if create:
                _logger.info("%s cannot be used: %s", self.directory, error)
            return False
        trusted = stat.S_ISDIR(status.st_mode) and _belongs_to_user(status)
        if not trusted:
            _logger.warning("%s is not used: others than you can write to it", self.directory)
        return trusted

    # --------------------------------------------------------------------------------------------------------- its size

    def _account(self, size: int) -> None:
        with self._lock:
            self._written += 1
            if self._size is not None:
                self._size += size
            if self._size is None:
                is_due = secrets.randbelow(_PER_SCAN) == 0
            else:
                is_due = self._size > self.limit
            if is_due or size > self.limit // _RESCAN or self._written % _RESCAN == 0:
                self._size = self._shrink()

    def _shrink(self) -> int:
        """Remove the least recently used entries until a quarter of the limit is free, if the limit is exceeded. Return
        the remaining size."""
        files = sorted(self._files())
        total = sum(size for _, size, _ in files)
        if total <= self.limit:
            return total
        for _, size, path in files:
            if total <= self.limit * 3 // 4:
                break
            _remove(Path(path))
            total -= size
        return total

    def _files(self) -> Iterator[tuple[float, int, str]]:
        """Yield for each object the time of its last use, its size, and its path. Unfinished files older than an hour
        are removed."""
        try:
            entries = list(os.scandir(self.directory))
        except OSError:
            return
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:  # another process was faster
                continue
            if entry.name.endswith(_SUFFIX):
                yield status.st_mtime, status.st_size, entry.path
            elif entry.name.endswith(_UNFINISHED) and status.st_mtime < time.time() - _FORGOTTEN:
                _remove(Path(entry.path))


def cache_directory(environment: Mapping[str, str]) -> Path | None:
    """Return the folder of the cache, from the environment variables :data:`DIRECTORY` and :data:`SWITCH`; None if the
    cache is turned off, or the user has no home folder."""
    if environment.get(SWITCH, "").lower() in ("0", "off", "no", "false"):
        return None
    chosen = environment.get(DIRECTORY)
    if chosen:
        return Path(chosen)
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "rekindle"
    if sys.platform == "win32":
        return Path(environment.get("LOCALAPPDATA") or home / "AppData" / "Local") / "rekindle" / "Cache"
    return Path(environment.get("XDG_CACHE_HOME") or home / ".cache") / "rekindle"


# --------------------------------------------------------------------------------------------------------------- files


def _head(key: bytes, payload: bytes) -> bytes:
    digest = hashlib.sha256(len(key).to_bytes(8, "little"))
    digest.update(key)
    digest.update(payload)
    return _MAGIC + digest.digest()


def _read(path: Path) -> bytes | None:
    """Return a file's content and update its time of use. Return None if the file cannot be read, is a link, does not
    belong to the user, or is writable by others."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not _belongs_to_user(status):
            _logger.warning("%s is not used: others than you can write to it", path)
            return None
        try:
            content = file.read()
        except OSError as error:
            _logger.info("%s cannot be read: %s", path, error)
            return None
    with contextlib.suppress(OSError):  # a disk that cannot be written to can be read
        os.utime(path)  # it was used just now
    return content


def _write(path: Path, content: bytes) -> None:
    """Write a new file.

    Raises:
        OSError: it cannot be written.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError as error:
        _logger.debug("%s: %s", path, error)


def _belongs_to_user(status: os.stat_result) -> bool:
    """Return whether a file or folder belongs to the user and is writable by the user only. On Windows this is not
    checked: caches are within the user's own folder."""
    if not hasattr(os, "geteuid"):
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & _WRITABLE_BY_OTHERS
