"""The entry point: the commands, exit codes and errors.

Built on click, not on typer: typer is click with commands read off annotations, and three more packages. Commands are
few here, and click says the same in decorators.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

import rekindle
from rekindle.cli.run_script import run_script
from rekindle.errors import RekindleError

OK = 0
FAILED = 1
"""Something is wrong with what the command worked on; of ``diff``: they differ."""
USAGE = 2
"""The command was called wrongly."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(rekindle.__version__, prog_name="rekindle")
def cli() -> None:
    """A compiler for PyTorch programs.

    Exit codes: 0 all is well, 1 something is wrong with what the command worked on (or differs), 2 the command was
    called wrongly.
    """


cli.add_command(run_script)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. Errors are one line on stderr."""
    try:
        result = cli.main(None if arguments is None else list(arguments), prog_name="rekindle", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return USAGE
    except click.UsageError as error:
        path = "rekindle" if error.ctx is None else error.ctx.command_path
        return _fail(f"{error.format_message()} (see '{path} --help')", USAGE)
    except click.ClickException as error:
        return _fail(error.format_message(), FAILED)
    except click.Abort:
        return _fail("interrupted", FAILED)
    except (RekindleError, OSError) as error:
        return _fail(str(error).partition("\n")[0], FAILED)
    return result if isinstance(result, int) else OK


def _fail(message: str, code: int) -> int:
    print(f"rekindle: error: {message}", file=sys.stderr)
    return code
