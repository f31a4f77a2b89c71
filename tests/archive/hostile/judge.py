"""What becomes of an archive, and whether that is as it should be: it is loaded, or refused with an error that says
why, in five seconds of the processor's time, with a gibibyte of memory, without a look at any file.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

import torch
import torch._dynamo
import torch._subclasses.schema_check_mode
import torch.fx.experimental.symbolic_shapes  # PyTorch imports these three when it first needs them

import rekindle
from rekindle.archive.summary import ArchiveSummary
from rekindle.errors import ArchiveError, CascadingError, CompileError
from rekindle.frontend.python.library import PRELUDE

SECONDS: Final = 5.0
MEMORY: Final = 1 << 30

_HARMLESS: Final = frozenset(
    {
        *("object.__getattr__", "object.__setattr__", "object.__delattr__", "sys._getframe", "sys._getframemodulename"),
        *("code.__new__", "array.__new__", "gc.get_objects", "builtins.id", "setopencodehook"),
    }
)
"""Audit events of Python that have no effect outside of the interpreter."""


class Watch:
    """Records Python's audit events while it is on. Audit hooks cannot be removed: there is one per process."""

    def __init__(self) -> None:
        self.is_on = False
        self.events: list[str] = []
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.is_on and event not in _HARMLESS and not _is_known(event, arguments):
            self.events.append(f"{event}{arguments!r}"[:300])

    @contextmanager
    def on(self) -> Iterator[None]:
        self.events.clear()
        self.is_on = True
        try:
            yield
        finally:
            self.is_on = False


def _is_known(event: str, arguments: tuple[Any, ...]) -> bool:
    """Whether the event is one of the few that are not about the archive: ``namedtuple`` compiles a constructor from
    names that it has checked, and the compiler reads its own prelude when a program first needs it."""
    if event == "open":
        return str(arguments[0]).startswith(f"{PRELUDE}{os.sep}") and arguments[1] == "r"
    if event == "compile":
        return str(arguments[1]).startswith(("<string>", "<rekindle ")) or arguments[0] is None
    made_of = str(getattr(arguments[0], "co_filename", ""))
    return event == "exec" and made_of.startswith(("<string>", "namedtuple_", "<rekindle "))


@dataclass(frozen=True)
class Verdict:
    """``outcome`` is ``loaded``, the name of the error's class, or, where ``is_wrong``, what went wrong."""

    outcome: str
    is_wrong: bool = False
    detail: str = ""


class Hang(BaseException):
    """The time is up."""


def _ring(number: int, frame: FrameType | None) -> None:
    raise Hang


class Judge:
    """Loads archives. An instance changes its process: it installs a signal handler and limits the memory."""

    def __init__(self, watch: Watch | None = None) -> None:
        self._watch = watch or Watch()
        signal.signal(signal.SIGPROF, _ring)
        size = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + 6 * MEMORY, resource.RLIM_INFINITY))

    def verdict(self, data: bytes) -> Verdict:
        """What comes of loading ``data``, and of looking at all there is to see in what was loaded."""
        before = _begin_to_measure()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            with self._watch.on():
                found = _outcome(data)
            signal.setitimer(signal.ITIMER_PROF, 0)
        except Hang as hang:
            found = Verdict("hang", True, _where(hang))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        used = _peak() - before
        if found.is_wrong:
            return found
        if used > MEMORY:
            return Verdict("memory", True, f"{used >> 20} MiB on the way to: {found.outcome}")
        if self._watch.events:
            return Verdict("reached out", True, "; ".join(self._watch.events[:3]))
        return found


def _outcome(data: bytes) -> Verdict:
    inspected = _outcome_of(lambda: _describe(rekindle.inspect(data)))
    return inspected if inspected.is_wrong else _outcome_of(lambda: _look_at_all(rekindle.load(data)))


def _describe(summary: ArchiveSummary) -> None:
    str(summary)
    json.dumps(summary.as_dict())


def _outcome_of(action: Callable[[], object]) -> Verdict:
    try:
        action()
    except CascadingError as error:
        return Verdict("GivenUpError", True, _where(error))
    except (ArchiveError, CompileError) as error:
        return _with_text(error)
    except Hang:
        raise
    except BaseException as error:
        return Verdict(f"untyped {type(error).__name__}", True, f"{error}\n{_where(error)}")
    return Verdict("loaded")


def _with_text(error: Exception) -> Verdict:
    """The error is typed; its text must be there too."""
    try:
        return Verdict(type(error).__name__, not str(error))
    except Hang:
        raise
    except BaseException as problem:
        return Verdict("error without text", True, f"{type(error).__name__}: {problem!r}\n{_where(problem)}")


def _look_at_all(module: rekindle.ScriptModule) -> None:
    """Compile every method and print it."""
    types = {id(part.script_type): part.script_type for part in torch.nn.Module.modules(module)}
    errors: list[CompileError] = []
    for type in types.values():
        for record in type.methods.values():
            try:
                str(record.graph)
            except CompileError as error:
                errors.append(error)
    if errors:
        raise errors[0]


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in reversed(frames[-8:]))


# ------------------------------------------------------------------------------------------------------------ memory


def _begin_to_measure() -> int:
    """Bytes in use now, from which the next peak is counted."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _peak()


def _peak() -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) << 10
    raise RuntimeError("the system does not report how much memory a process uses")


def calm_down() -> None:
    """Give back what cycles hold."""
    gc.collect()
