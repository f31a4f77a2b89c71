"""Calls of programs: their errors, and two programs compared on examples of the command line.

A program of an archive may raise any exception, by a ``raise`` of its own or from any operator. What it raises is its
result, as a returned value is. Therefore these functions catch ``Exception``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from typing import Any, Final

import click
import torch
from torch.utils import _pytree as pytree

from rekindle.building.native_library import LibraryError
from rekindle.cli.comparison import difference_of
from rekindle.cli.exit_codes import ProgramFailed, first_line
from rekindle.cli.named_sizes import read_example, within
from rekindle.errors import ArgumentError
from rekindle.program.function import Method

Bounds = Mapping[str, tuple[int, int | None]]

_OPTIONS: Final = (
    click.option(
        "--input", "inputs", multiple=True, metavar="INPUT", help="An input, in order. May be given several times."
    ),
    click.option("--range", "ranges", multiple=True, metavar="NAME=LOW..HIGH", help="The range of a named size."),
    click.option("--method", default="forward", show_default=True, metavar="NAME", help="The method to compile."),
    click.option("--check", is_flag=True, help="Run both programs on several inputs and compare."),
)
tolerance_option: Final = click.option(
    "--tolerance",
    default=1e-4,
    show_default=True,
    help="The largest difference of numbers that counts as equal, with --check.",
)


def example_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate ``command`` with the options of commands that compile a method for examples of its inputs; return it."""
    for option in reversed((*_OPTIONS, tolerance_option)):
        command = option(command)
    return command


# --------------------------------------------------------------------------------------------------------------- errors


@contextmanager
def program_errors(schema: object, *, print_to_stderr: bool = False) -> Iterator[None]:
    """Convert the errors of a program of an archive or a native library, which is called within the ``with`` block.

    ``schema`` is the signature of the called method, for messages. With ``print_to_stderr``, what the program prints
    goes to stderr, so that stdout has the JSON of the command alone.

    Raises:
        UsageError: the block raised an ArgumentError: the arguments do not fit the signature.
        ProgramFailed: the block raised another exception.
    """
    try:
        with redirect_stdout(sys.stderr) if print_to_stderr else nullcontext():
            yield
    except ArgumentError as error:
        raise click.UsageError(f"{first_line(error)}; it is {schema}") from None
    except LibraryError as error:
        raise ProgramFailed(first_line(error)) from None
    except Exception as error:
        raise ProgramFailed(f"the program raised {type(error).__name__}: {first_line(error)}") from None


def outcome(program: Callable[..., Any], arguments: Sequence[Any], by_name: Mapping[str, Any] | None = None) -> Any:
    """Call a program on copies of the tensors, without recording gradients; return the result or the exception."""
    given, named = pytree.tree_map_only(torch.Tensor, torch.clone, (list(arguments), dict(by_name or {})))
    try:
        with torch.no_grad():
            return program(*given, **named)
    except Exception as error:
        return error


# ----------------------------------------------------------------------------------------------------------- comparison


def difference_of_outcomes(
    program: Any, other: Any, name: str, tolerance: float, *, same_errors: bool = False
) -> str | None:
    """Describe how the outcomes of two programs differ; return None if they do not.

    ``program`` and ``other`` are results or exceptions, as :func:`outcome` returns them; ``name`` is what messages call
    the other program. Two exceptions agree, since programs of ``torch.export`` raise other classes. With
    ``same_errors`` they agree only if their classes are the same.
    """
    if isinstance(other, Exception) and isinstance(program, Exception):
        if not same_errors or type(other) is type(program):
            return None
    if isinstance(other, Exception):
        return f"{name} raises {type(other).__name__}: {first_line(other)}"
    if isinstance(program, Exception):
        return f"the program raises {type(program).__name__}: {first_line(program)}"
    return difference_of(program, other, tolerance)


def compared_calls(
    callee: Method,
    other: Callable[..., Any],
    name: str,
    inputs: Sequence[str],
    sizes: Sequence[Mapping[str, int]],
    bounds: Bounds,
    tolerance: float,
    *,
    same_errors: bool = False,
    aligned: Callable[[Any, Any], tuple[Any, Any]] | None = None,
) -> tuple[list[str], bool]:
    """Call both programs with ``inputs`` of each of the ``sizes``; return a line for each call, and whether all agree.

    Sizes outside of ``bounds`` are replaced by the nearest bound. ``name`` is what messages call the ``other`` program.
    Two calls that raise agree; with ``same_errors``, only if the classes of their exceptions are the same. ``aligned``
    brings two results to one form before they are compared.
    """
    lines: list[str] = []
    is_same = True
    for number, wanted in enumerate(sizes, 1):
        chosen = {size: within(length, bounds[size]) for size, length in wanted.items()}
        arguments = [read_example(text, chosen) for text in inputs]
        ours, theirs = (outcome(each, arguments) for each in (callee, other))
        if aligned is not None and not isinstance(ours, Exception):
            ours, theirs = aligned(ours, theirs)
        difference = difference_of_outcomes(ours, theirs, name, tolerance, same_errors=same_errors)
        is_same &= difference is None
        lines.append(f"{_label(number, chosen)}: {'agree' if difference is None else difference}")
    return lines, is_same


def _label(number: int, sizes: Mapping[str, int]) -> str:
    listed = ", ".join(f"{name}={size}" for name, size in sizes.items())
    return f"call {number}" + (f" ({listed})" if listed else "")
