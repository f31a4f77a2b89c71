"""The examination: search, trials, verdicts and changes."""

from __future__ import annotations

import ast
import os
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rekindle.doctor.changes import SourceEdit, StaleEdit, apply, copied_with, diff_of, of_problem, without_switches
from rekindle.doctor.names import Status, classify
from rekindle.doctor.processes import Event, Trial, events_in, run_command, try_all
from rekindle.doctor.search import SourceFile, files_below, search
from rekindle.doctor.trial import Request
from rekindle.doctor.uses import Found, Use
from rekindle.doctor.verdicts import Evidence, Finding, Verdict, judged, why_not_tried

_ARCHIVES: Final = (".pt", ".pth", ".jit", ".ts", ".ptl", ".torchscript", ".zip")
_NOT_IMPORTED: Final = frozenset({"setup", "conftest", "noxfile", "tasks", "__main__", "conf"})


@dataclass(frozen=True, slots=True)
class Options:
    """Options of an examination.

    Attributes:
        command: The command to run and record; empty for none. Modules are not imported then.
        imports: Whether modules that compile something are imported.
        seconds: Time that a module or an archive may take between two events, before its process is killed.
        command_seconds: Time that the command may take.
        inputs: A file of ``torch.save`` with the arguments of the archives' ``forward``; None to generate them.
        trusted: Whether archives run as compiled code too, outside of the sandbox.
    """

    command: Sequence[str] = ()
    imports: bool = True
    seconds: float = 120.0
    command_seconds: float = 3600.0
    inputs: Path | None = None
    trusted: bool = False


@dataclass(slots=True)
class Examination:
    """The results of an examination of a path."""

    root: Path
    found: Found
    findings: list[Finding] = field(default_factory=list)
    archives: list[Event] = field(default_factory=list)
    edits: list[SourceEdit] = field(default_factory=list)
    """The edits of the uses that work with a change."""
    outside: list[Event] = field(default_factory=list)
    """Events of programs that were compiled at places without a use: generated code, other packages."""
    command: dict[str, Any] | None = None

    @property
    def base(self) -> Path:
        """The folder that paths are relative to."""
        return self.root if self.root.is_dir() else self.root.parent

    def with_verdict(self, verdict: Verdict) -> list[Finding]:
        return [finding for finding in self.findings if finding.verdict is verdict]


def examine(root: Path, options: Options, folder: Path) -> Examination:
    """Examine an archive, a file or a folder of code: search, run trials, judge each use, and try changes on a copy.

    The examined files are not changed. Processes write their events to subfolders of ``folder``, an existing folder.

    Raises:
        OSError: a file cannot be read or written, or the command cannot be started.
    """
    root = root.resolve()
    is_file_of_data = root.is_file() and root.suffix != ".py"
    archives = [root] if is_file_of_data else [path for path in files_below(root) if is_archive(path)]
    found, files = (Found([], [], [], 0), []) if is_file_of_data else search(root)
    examination = Examination(root, found)
    by_path = {file.relative: file for file in files}
    unreached: dict[str, str] = {}
    modules: list[str] = []
    if options.imports and not options.command:
        modules, unreached = _modules(found.uses, by_path)
    tops = list(dict.fromkeys(str(file.top) for file in files if file.module in set(modules)))
    inputs = None if options.inputs is None else str(options.inputs)
    request = Request("", tops, modules, list(map(str, archives)), inputs, options.trusted)
    trial = try_all(request, options.seconds, folder)
    events = trial.events
    if options.command:
        work = folder / "command"
        work.mkdir()
        code = run_command(options.command, work, options.command_seconds)
        recorded = list(events_in(work))
        events = [*events, *recorded]
        processes = len({event["process"] for event in recorded})
        examination.command = {"command": list(options.command), "exit_code": code, "processes": processes}
    examination.archives = [event for event in events if event["event"] == "archive"]
    examination.archives += [
        {"event": "archive", "path": path, "ok": False, "problems": [{"message": why}]}
        for path, why in trial.stopped.items()
        if path in request.archives
    ]
    failures = unreached | _import_failures(trial, modules, options)
    _judge(examination, by_path, events, failures, set(modules), examination.command)
    if not options.command:
        _try_changes(examination, by_path, options, folder)
    _remove_switches(examination, by_path)
    examination.edits = sorted(set(examination.edits))
    return examination


def fix(examination: Examination) -> list[str]:
    """Apply the suggested edits to the files; return the paths of those that changed.

    Raises:
        StaleEdit: a file has changed since the examination; no file is written then.
    """
    return apply(examination.base, examination.edits)


def is_archive(path: Path) -> bool:
    """Return whether a file is an archive of a program, by its suffix and the names of its members."""
    if path.suffix not in _ARCHIVES or not path.is_file() or not zipfile.is_zipfile(path):
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return False
    return any(name.endswith(("/constants.pkl", "/model.json")) or "/code/" in name for name in names)


# -------------------------------------------------------------------------------------------------------------- modules


def _modules(uses: Sequence[Use], files: dict[str, SourceFile]) -> tuple[list[str], dict[str, str]]:
    """Return the modules to import, since they compile something, and the reasons why others must not be imported.

    What functions compile may be reached too: as decorators, they are called when their module is imported.
    """
    wanted: list[str] = []
    not_imported: dict[str, str] = {}
    for use in uses:
        known = classify(use.name)
        if known is None or not _compiles(use, known[0], known[1].status):
            continue
        file = files[use.path]
        why = _why_not_imported(file)
        if why is None:
            wanted.append(file.module)
        else:
            not_imported[file.module] = why
    return list(dict.fromkeys(wanted)), not_imported


def _compiles(use: Use, name: str, status: Status) -> bool:
    if use.form == "base class":
        return name in ("torch.jit.ScriptModule", "torch.jit.RecursiveScriptModule")
    return use.form in ("call", "decorator") and status is Status.COMPILES


def _why_not_imported(file: SourceFile) -> str | None:
    parts = file.module.split(".")
    if not all(part.isidentifier() for part in parts):
        return f"its file cannot be imported by the name '{file.module}'"
    if parts[-1] in _NOT_IMPORTED:
        return f"'{file.path.name}' is not for imports"
    if parts[-1].startswith("test_") or parts[-1].endswith("_test") or "tests" in file.path.parts[-3:-1]:
        return "it is a test: --run COMMAND tries it"
    if len(parts) == 1 and not file.is_package:  # no package has it: it may be a program
        line = _first_action(file.tree)
        if line is not None:
            return f"importing it would run its program (line {line}): --run COMMAND tries it"
    return None


def _first_action(tree: ast.Module) -> int | None:
    """Return the line of the first statement of a module other than definitions, imports, assignments, ``if``, ``try``,
    ``assert`` and calls of functions of ``torch``; None if there is none."""
    quiet = (
        *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom),
        *(ast.Assign, ast.AnnAssign, ast.If, ast.Try, ast.Pass, ast.Assert),
    )
    for node in tree.body:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_switch = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _is_of_torch(node.value.func)
        if not isinstance(node, quiet) and not is_text and not is_switch:
            return node.lineno
    return None


def _is_of_torch(function: ast.expr) -> bool:
    while isinstance(function, ast.Attribute):
        function = function.value
    return isinstance(function, ast.Name) and function.id == "torch"


def _import_failures(trial: Trial, modules: Sequence[str], options: Options) -> dict[str, str]:
    failures = {module: f"importing '{module}' failed: {why}" for module, why in trial.stopped.items()}
    for event in trial.events:
        if event["event"] == "import" and not event["ok"]:
            problem = event["problems"][0]
            place = f" ({os.path.basename(problem['file'])}:{problem['line']})" if problem.get("file") else ""
            message = problem["message"].partition("\n")[0]
            failures[event["module"]] = f"importing '{event['module']}' raised {message}{place}"
    return failures


# ------------------------------------------------------------------------------------------------------------- verdicts


def _judge(
    examination: Examination,
    files: dict[str, SourceFile],
    events: Sequence[Event],
    failures: dict[str, str],
    imported: set[str],
    command: Mapping[str, Any] | None,
) -> None:
    evidence, examination.outside = _matched(examination, events)
    for use in examination.found.uses:
        module = files[use.path].module
        why = why_not_tried(use, failures.get(module), module in imported, command)
        examination.findings.append(judged(use, evidence.get(use, ()), why))


def _matched(examination: Examination, events: Sequence[Event]) -> tuple[dict[Use, list[Evidence]], list[Event]]:
    """Match events of programs to uses by file, line and name. Return the programs that were compiled at each use, and
    the events without a use."""
    by_file: dict[str, list[Use]] = {}
    for use in examination.found.uses:
        by_file.setdefault(os.path.realpath(examination.base / use.path), []).append(use)
    calls = {(event["process"], event["program"]): event for event in events if event["event"] == "calls"}
    found: dict[Use, list[Evidence]] = {}
    outside: list[Event] = []
    seen: set[tuple[Any, ...]] = set()
    for event in events:
        if event["event"] != "program":
            continue
        # Modules that are imported in several processes compile the same again.
        key = (event["file"], event["line"], event["name"], event["module"], event["subject"], event["ok"])
        of_calls = calls.get((event["process"], event.get("program")))
        if key in seen and (of_calls is None or not of_calls["calls"]):
            continue
        seen.add(key)
        uses = [use for use in by_file.get(event["file"], ()) if _is_at(use, event)]
        if not uses:
            outside.append(event)
        for use in uses:
            each = Evidence(event["subject"], event["kind"], event["ok"], event.get("problems", []), of_calls)
            found.setdefault(use, []).append(each)
    return found, outside


def _is_at(use: Use, event: Event) -> bool:
    if use.form == "import":
        return False
    if event["name"] == "ScriptModule":
        is_base = use.form == "base class" and use.line == event["line"]
        return is_base or (use.name.endswith(".script_method") and use.scope == event["subject"])
    return use.line <= event["line"] <= use.end_line and use.name.endswith(f".{event['name']}")


# -------------------------------------------------------------------------------------------------------------- changes


def _remove_switches(examination: Examination, files: dict[str, SourceFile]) -> None:
    """Set the verdict of each call of a switch that can be removed to CHANGE, and add its edits to the examination."""
    by_path: dict[str, list[Finding]] = {}
    for finding in examination.findings:
        known = classify(finding.use.name)
        if known is not None and known[1].status is Status.SWITCH and finding.use.form == "call":
            by_path.setdefault(finding.use.path, []).append(finding)
    for path, findings in by_path.items():
        changes = without_switches(files[path], [finding.use for finding in findings])
        for finding in findings:
            edits = changes.get(finding.use)
            if edits is not None:
                finding.verdict = Verdict.CHANGE
                finding.reason = "a switch of PyTorch's executor, without effect on what rekindle compiles"
                finding.diff = diff_of(examination.base, edits)
                examination.edits += edits


def _try_changes(examination: Examination, files: dict[str, SourceFile], options: Options, folder: Path) -> None:
    """Try the edits that compile errors suggest on a copy of the code. If a use works with them, set its verdict to
    CHANGE, with the diff, and add the edits to those of the examination."""
    paths = {os.path.realpath(file.path): file.relative for file in files.values()}
    suggested = {id(finding): _suggested(finding, paths) for finding in examination.with_verdict(Verdict.FAILS)}
    candidates = [finding for finding in examination.with_verdict(Verdict.FAILS) if suggested[id(finding)]]
    edits = sorted({edit for finding in candidates for edit in suggested[id(finding)]})
    if not edits:
        return
    work = folder / "changes"
    work.mkdir()
    with tempfile.TemporaryDirectory() as copies:
        try:
            copy = copied_with(examination.root, edits, Path(copies).resolve())
        except (StaleEdit, OSError):
            return
        modules = list(dict.fromkeys(files[finding.use.path].module for finding in candidates))
        copied_found, copied_files = search(copy)
        tops = list(dict.fromkeys(str(file.top) for file in copied_files if file.module in modules))
        trial = try_all(Request("", tops, modules), options.seconds, work)
        after = Examination(copy, copied_found)
        _judge(after, {file.relative: file for file in copied_files}, trial.events, {}, set(modules), None)
    # Edits replace text within lines, so that the uses keep their lines.
    works = {(each.use.path, each.use.line, each.use.name): each for each in after.findings}
    for finding in candidates:
        new = works.get((finding.use.path, finding.use.line, finding.use.name))
        if new is not None and new.verdict is Verdict.WORKS and new.evidence:
            finding.verdict, finding.reason, finding.evidence = Verdict.CHANGE, new.reason, new.evidence
            finding.diff = diff_of(examination.base, suggested[id(finding)])
            examination.edits += suggested[id(finding)]


def _suggested(finding: Finding, paths: dict[str, str]) -> list[SourceEdit]:
    """Return the edits for all problems of a use; empty if one of the problems has no edit."""
    problems = [problem for each in finding.evidence if not each.ok for problem in each.problems]
    edits = [of_problem(problem, paths) for problem in problems]
    return [] if None in edits else [edit for edit in edits if edit is not None]


def package_folder(name: str) -> Path | None:
    """Return the folder or file of a package or module on ``sys.path``, without importing it; None if there is none."""
    for entry in sys.path:
        for candidate in (Path(entry or ".") / name, Path(entry or ".") / f"{name}.py"):
            if (candidate / "__init__.py").exists() or (candidate.suffix == ".py" and candidate.exists()):
                return candidate
    return None
