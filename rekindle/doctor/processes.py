"""Subprocesses in which the examined code runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import rekindle
from rekindle.doctor import startup
from rekindle.doctor.trial import Request

PACKAGE: Final = str(Path(rekindle.__file__).parent.parent)
_POLL: Final = 0.1

Event = dict[str, Any]


@dataclass(slots=True)
class Trial:
    """The results of a trial: the events, and by the name of a module or path of an archive the reason why its trial
    did not end."""

    events: list[Event] = field(default_factory=list)
    stopped: dict[str, str] = field(default_factory=dict)


def events_in(folder: Path) -> Iterator[Event]:
    """Yield the events that processes have written to ``folder``, each with the name of its file as ``process``. Lines
    that are not JSON, such as an incomplete last one, are skipped."""
    for path in sorted(folder.glob("events-*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                event = json.loads(line)
            except json.JSONDecodeError:
                continue
            yield {**event, "process": path.stem}


def try_all(request: Request, seconds: float, folder: Path) -> Trial:
    """Import modules and open archives in a separate process, which writes to a subfolder of ``folder``.

    If a module or archive ends the process, or writes no event for ``seconds``, another process continues with those
    after it. If a process ends early at another time, the modules and archives that it has not finished are reported as
    stopped. The folder in ``request`` is ignored.
    """
    found = Trial()
    left = request
    number = 0
    while left.modules or left.archives:
        number += 1
        work = folder / f"trial-{number}"
        work.mkdir()
        how = _run(replace(left, folder=str(work)), seconds)
        events = list(events_in(work))
        found.events += [{**event, "process": f"{number}"} for event in events]
        if how is None:
            return found
        begun = [event["what"] for event in events if event["event"] == "begin"]
        ended = {event["what"] for event in events if event["event"] == "end"}
        at = next((what for what in begun if what not in ended), None)
        if at is None:  # it ended while programs were called, or before anything was begun
            for name in (*left.modules, *left.archives):
                if name not in ended:
                    found.stopped[name] = f"the process {how}"
            return found
        found.stopped[at] = f"the process {how}"
        done = ended | {at}
        left = replace(
            left,
            modules=[name for name in left.modules if name not in done],
            archives=[name for name in left.archives if name not in done],
        )
    return found


def _run(request: Request, seconds: float) -> str | None:
    """Run the process of a request; return how it ended (``took more than 120 s``), or None if it succeeded.

    The process is killed, with its children, if it writes no event for ``seconds``.
    """
    work = Path(request.folder)
    request.write(work / "request.json")
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "1",
        "MPLBACKEND": "Agg",
        "PYTHONPATH": _python_path(PACKAGE),
    }
    with (work / "output.txt").open("wb") as output, tempfile.TemporaryDirectory() as elsewhere:
        process = subprocess.Popen(
            [sys.executable, "-m", "rekindle.doctor.trial", str(work / "request.json")],
            cwd=elsewhere,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        size, since = 0, time.monotonic()
        while process.poll() is None:
            time.sleep(_POLL)
            written = sum(path.stat().st_size for path in work.glob("events-*.jsonl"))
            if written != size:
                size, since = written, time.monotonic()
            if time.monotonic() - since > seconds:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return f"took more than {seconds:g} s"
    code = process.returncode
    if code == 0:
        return None
    return f"ended by signal {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def run_command(command: Sequence[str], folder: Path, seconds: float) -> int | None:
    """Run a command whose Python processes record what they compile, as events in ``folder``.

    Its output goes to stderr. ``python``, ``pytest`` and similar programs are those of this process's environment, even
    if that is not activated. After ``seconds``, the command and its children are killed.

    Returns:
        The exit code; None if the command was killed.

    Raises:
        OSError: the command cannot be started.
    """
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "REKINDLE_DOCTOR_EVENTS": str(folder),
        "REKINDLE_DOCTOR_PACKAGE": PACKAGE,
        "PYTHONPATH": _python_path(str(Path(startup.__file__).parent)),
    }
    process = subprocess.Popen(command, env=environment, stdout=sys.stderr.fileno(), start_new_session=True)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


def _python_path(folder: str) -> str:
    """Return a ``PYTHONPATH`` that begins with ``folder``, followed by the current one."""
    return os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))
