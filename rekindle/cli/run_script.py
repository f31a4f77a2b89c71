"""``rekindle run-script``: run a Python program with the drop-in installed."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import TracebackType
from typing import Final

import click

from rekindle.api.drop_in.install import installed
from rekindle.api.drop_in.usage import Usage


@click.command(
    "run-script",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("-m", "--module", is_flag=True, help="SCRIPT is the name of a module, as in `python -m`.")
@click.option("--report", is_flag=True, help="Print to stderr, at exit, which programs were compiled here.")
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run_script(script: str, arguments: tuple[str, ...], module: bool, report: bool) -> None:
    """Run a Python program with rekindle in place of torch.jit.

    SCRIPT runs as `python SCRIPT` would run it, with torch.jit's names referring to rekindle. The arguments after
    SCRIPT are passed on to it. The exit code and errors are the script's.
    """
    if not module and not Path(script).exists():
        raise click.UsageError(f"there is no file '{script}'")
    sys.argv = [script, *arguments]
    with installed() as usage:
        try:
            _run(script, module)
        except Exception as error:
            # As Python reports an uncaught error, without the frames of this package above it.
            error = error.with_traceback(_below_runpy(error.__traceback__))
            sys.excepthook(type(error), error, error.__traceback__)
            sys.exit(1)
        finally:
            if report:
                _report(usage)


def _run(script: str, module: bool) -> None:
    if module:
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(script, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(script).resolve().parent))
        runpy.run_path(script, run_name="__main__")


_ABOVE: Final = frozenset({__file__, runpy.run_path.__code__.co_filename})


def _below_runpy(traceback: TracebackType | None) -> TracebackType | None:
    """Return the part of a traceback from the user's program on; all of it, if the program was not reached. None stays
    None."""
    found = traceback
    while found is not None and found.tb_frame.f_code.co_filename in _ABOVE:
        found = found.tb_next
    return found or traceback


def _report(usage: Usage) -> None:
    kinds = {kind for kind, _ in usage.programs}
    counts = ", ".join(f"{kind} {usage.count(kind)}" for kind in sorted(kinds))
    programs = "1 program" if usage.count() == 1 else f"{usage.count()} programs"
    print(f"rekindle: {programs} compiled here{': ' if counts else ''}{counts}", file=sys.stderr)
    for (kind, name), times in sorted(usage.programs.items()):
        print(f"  {kind} {name}{f' ({times} times)' if times > 1 else ''}", file=sys.stderr)
