"""The entry point: the commands, exit codes and errors.

Built on click, not on typer: typer is click with commands read off annotations, and three more packages. Commands are
few here, and click says the same in decorators.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Final

import click

import rekindle
from rekindle.cli.exit_codes import INTERRUPTED, NO, OK, TROUBLE, first_line
from rekindle.errors import RekindleError
from rekindle.errors.deferred_imports import imported

_COMMANDS: Final = {
    "build": "Build a shared library and a C header from ARCHIVE.",
    "convert": "Save ARCHIVE as RESULT, in the current format.",
    "diff": "Compare two archives.",
    "doctor": "Find uses of torch.jit in PATH, and try each with rekindle.",
    "export": "Write the module in ARCHIVE as a torch.export program.",
    "import": "Write the torch.export program in PROGRAM as an archive.",
    "inspect": "Describe ARCHIVE without loading it.",
    "report": "Call the module in ARCHIVE, and list the kernels that ran.",
    "run": "Call the module in ARCHIVE with INPUTS.",
    "run-script": "Run a Python program with rekindle in place of torch.jit.",
    "show": "Show the programs in ARCHIVE.",
}
"""The commands, each a function of its name in a file of its name, and what they do. The command that is called imports
PyTorch; a list of them does not, nor does the help of those that only read archives."""


class _Commands(click.Group):
    """The commands, loaded when they are called."""

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self.commands:
            return None
        function = "import_" if name == "import" else name.replace("-", "_")
        found: click.Command = getattr(imported(f"rekindle.cli.{function}"), function)
        return found

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        limit = formatter.width - 6 - max(map(len, self.commands))
        rows = [(name, command.get_short_help_str(limit)) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(rekindle.__version__, prog_name="rekindle")
def cli() -> None:
    """A compiler for PyTorch programs.

    Exit codes: 0 all is well; 1 the archives differ, --check found a difference, the program raised an error, or
    something that doctor tried does not work; 2 the command could not do its work: it was called wrongly, or a file
    cannot be read or written.
    """


for name, summary in _COMMANDS.items():
    cli.add_command(click.Command(name, help=summary))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Errors of commands, of this package and of the operating system are written to stderr, and not raised; other
    exceptions are. ``arguments`` are those of the process by default.
    """
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
        # The reader of the pipe has ended, as `head` does. Without this, Python reports the error again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NO
    except (RekindleError, OSError) as error:
        return _fail(first_line(error), TROUBLE)
    return result if isinstance(result, int) else OK


def _fail(message: str, code: int) -> int:
    print(f"rekindle: error: {message}", file=sys.stderr)
    return code
