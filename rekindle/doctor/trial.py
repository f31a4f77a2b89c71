"""The process that imports modules and opens archives: ``python -m rekindle.doctor.trial REQUEST``.

The request is a file of JSON. Events are written during the work, so that what was found before a crash or the end
of the time is known.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from rekindle.doctor.archive_trial import try_archive
from rekindle.doctor.comparison import is_plain
from rekindle.doctor.problems import problems_of
from rekindle.doctor.recording import Recorder, recording


@dataclass(slots=True)
class Request:
    """The work of one process.

    ``folder`` is where events are written. ``modules`` are imported, with ``search_path`` before ``sys.path``, and
    ``archives`` are loaded and called. ``inputs`` is a file with the arguments of their ``forward``; by default,
    arguments are generated. ``trusted`` archives run as compiled code too.
    """

    folder: str
    search_path: list[str] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    archives: list[str] = field(default_factory=list)
    inputs: str | None = None
    trusted: bool = False

    def write(self, path: Path) -> None:
        """Write the request to a file, as JSON."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")


def main(path: str) -> None:
    """Import the modules of the request in the file ``path``, call what they compile, and try the archives; write
    events and results into its folder."""
    request = Request(**json.loads(Path(path).read_text(encoding="utf-8")))
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    folder = Path(request.folder)
    with recording(folder, keeps_going=True) as recorder:
        sys.path[:0] = request.search_path
        for module in request.modules:
            _import(module, recorder)
        recorder.call_with_generated_inputs()
    given = None if request.inputs is None else torch.load(request.inputs, weights_only=True)
    answers: dict[str, Any] = {}
    for archive in request.archives:
        recorder.write({"event": "begin", "what": archive})
        found, call = try_archive(Path(archive), given, request.trusted)
        if call is not None and is_plain((call["inputs"], call["answer"])):
            answers[archive] = call
        recorder.write(found)
        recorder.write({"event": "end", "what": archive})
    if answers:
        torch.save(answers, folder / "archives.pt")


def _import(module: str, recorder: Recorder) -> None:
    recorder.write({"event": "begin", "what": module})
    event: dict[str, Any] = {"event": "import", "module": module, "ok": True}
    try:
        recorder.make_objects(importlib.import_module(module))
    except (Exception, SystemExit) as error:  # modules of users do anything
        event |= {"ok": False, "problems": problems_of(error)}
    recorder.compile_deferred()
    recorder.write(event)
    recorder.write({"event": "end", "what": module})


if __name__ == "__main__":
    main(sys.argv[1])
