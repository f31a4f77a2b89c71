"""The entry point: the commands, exit codes and errors.

Built on click, not on typer: typer is click with commands read off annotations, and three more packages. Commands are
few here, and click says the same in decorators.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

import rekindle
from rekindle.cli.convert import convert
from rekindle.cli.diff import diff
from rekindle.cli.exit_codes import INTERRUPTED, NO, OK, TROUBLE, first_line
from rekindle.cli.export import export
from rekindle.cli.import_ import import_
from rekindle.cli.inspect import inspect
from rekindle.cli.report import report
from rekindle.cli.run import run
from rekindle.cli.run_script import run_script
from rekindle.cli.show import show
from rekindle.errors import RekindleError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(rekindle.__version__, prog_name="rekindle")
def cli() -> None:
    """A compiler for PyTorch programs.

    Exit codes: 0 all is well; 1 the archives differ, or the program raised an error; 2 the command could not do its
    work: it was called wrongly, or a file cannot be read or written.
    """


for command in (convert, diff, export, import_, inspect, report, run, run_script, show):
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. Errors are one line on stderr."""
    try:
        result = cli.main(None if arguments is None else list(arguments), prog_name="rekindle", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return TROUBLE
    except click.UsageError as error:
        path = "rekindle" if error.ctx is None else error.ctx.command_path
        return _fail(f"{error.format_message()} (see '{path} --help')", TROUBLE)
    except click.ClickException as error:
        return _fail(error.format_message(), error.exit_code)
    except click.Abort:
        return _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        # Who read what is written here went away, as `head` does. Python would complain once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NO
    except (RekindleError, OSError) as error:
        return _fail(first_line(error), TROUBLE)
    return result if isinstance(result, int) else OK


def _fail(message: str, code: int) -> int:
    print(f"rekindle: error: {message}", file=sys.stderr)
    return code
