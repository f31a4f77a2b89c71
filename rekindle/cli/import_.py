"""``rekindle import``: a file of ``torch.export`` as an archive."""

from __future__ import annotations

import copy
import importlib
import os
import sys
from collections.abc import Iterator
from typing import Any, Final

import click
import torch
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree

from rekindle.archive.load import load
from rekindle.archive.save import save
from rekindle.cli.exit_codes import NO, OK, ProgramFailed, Trouble, first_line
from rekindle.cli.program_calls import difference_of_outcomes, outcome, tolerance_option
from rekindle.cli.progress import working
from rekindle.errors import CaptureError, CompileError
from rekindle.importing.files import load_exported
from rekindle.importing.program import from_exported

_ROUNDS: Final = 3
"""Number of compared calls: one with the example, the others with other numbers in tensors of its sizes."""


@click.command(name="import")
@click.argument("program")
@click.option("-o", "--output", required=True, metavar="FILE", help="The archive to write: model.pt.")
@click.option(
    "--import",
    "libraries",
    multiple=True,
    metavar="MODULE",
    help="A Python module to import first, with classes that the program takes or returns. May be given several times.",
)
@click.option("--check", is_flag=True, help="Run both programs, on the example and on others like it, and compare.")
@tolerance_option
def import_(program: str, output: str, libraries: tuple[str, ...], check: bool, tolerance: float) -> int:
    """Write the torch.export program in PROGRAM as an archive.

    PROGRAM is a .pt2 file of torch.export.save. The archive can be loaded by rekindle, torch.jit.load and LibTorch.
    """
    _import_libraries(libraries)
    try:
        with working("Loading"):
            exported = load_exported(program)
    except CaptureError as error:
        raise Trouble(f"{program}: {error}") from None
    except (OSError, ValueError) as error:
        raise Trouble(f"{program}: {first_line(error)}") from None
    try:
        with working("Importing"):
            module = from_exported(exported)
    except CompileError as error:
        raise ProgramFailed(str(error)) from None
    try:
        save(module, output)
    except OSError as error:
        raise Trouble(f"{output}: {first_line(error)}") from None
    if not check:
        return OK
    if exported.example_inputs is None:
        raise click.UsageError(f"{program} holds no example of its arguments to run it with")
    lines = list(_differences(exported, output, tolerance))
    for line in lines:
        click.echo(line)
    return NO if any(not line.endswith("agree") for line in lines) else OK


def _import_libraries(names: tuple[str, ...]) -> None:
    """Import modules by name. The current folder is added to ``sys.path`` if there are any.

    Raises:
        Trouble: an import raised an error.
    """
    if names:
        sys.path.insert(0, os.getcwd())
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:
            raise Trouble(f"--import {name}: {type(error).__name__}: {first_line(error)}") from None


def _differences(exported: ExportedProgram, output: str, tolerance: float) -> Iterator[str]:
    """Call the exported program and the saved archive; yield a line for each call, which ends in "agree" or says how
    the results differ. Results are compared within ``tolerance``."""
    theirs, ours = exported.module(), load(output)
    args, kwargs = exported.example_inputs or ((), {})
    torch.manual_seed(0)
    for number in range(1, _ROUNDS + 1):
        given = (args, kwargs) if number == 1 else pytree.tree_map_only(torch.Tensor, _another, (args, kwargs))
        found, wanted = (_outcome(each, copy.deepcopy(given), number) for each in (ours, theirs))
        difference = difference_of_outcomes(found, wanted, "the program of torch.export", tolerance)
        yield f"call {number}: {'agree' if difference is None else difference}"


def _another(example: torch.Tensor) -> torch.Tensor:
    """Return a tensor like ``example`` with other numbers; an integer tensor has the same numbers in another order."""
    if example.is_floating_point() or example.is_complex():
        return torch.randn_like(example)
    return example.flatten()[torch.randperm(example.numel())].view(example.shape)


def _outcome(program: Any, given: tuple[Any, Any], seed: int) -> Any:
    """Seed the generator with ``seed``, and call ``program``. Return the leaves of the result, or the error that it
    raises."""
    torch.manual_seed(seed)
    found = outcome(program, *given)
    return found if isinstance(found, Exception) else pytree.tree_leaves(found)
