"""``rekindle export``: the module of an archive as a file of ``torch.export``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click
import torch
from torch.export import Dim
from torch.utils import _pytree as pytree

from rekindle.archive.limits import ArchiveLimits
from rekindle.cli.archives import find_method, limit_option, open_archive
from rekindle.cli.comparison import difference_of
from rekindle.cli.exit_codes import NO, OK, ProgramFailed, Trouble, first_line
from rekindle.cli.inputs import FORMS
from rekindle.cli.named_sizes import example_sizes, read_example, read_ranges, size_names, within
from rekindle.cli.progress import working
from rekindle.errors import ArgumentError, DraftWarning, ExportError
from rekindle.exporting.program import to_exported
from rekindle.program.function import Method


@click.command(
    epilog=f"An input is {FORMS}. A size may be a name: f32[b,3,224,224].",
)
@click.argument("archive")
@click.option("-o", "--output", required=True, metavar="FILE", help="The file to write: model.pt2.")
@click.option(
    "--input", "inputs", multiple=True, metavar="INPUT", help="An input, in order. May be given several times."
)
@click.option("--range", "ranges", multiple=True, metavar="NAME=LOW..HIGH", help="The range of a named size.")
@click.option("--method", default="forward", show_default=True, metavar="NAME", help="The method to export.")
@click.option("--draft", is_flag=True, help="Export what can be exported, and report the rest.")
@click.option("--check", is_flag=True, help="Run both programs on several inputs and compare.")
@click.option(
    "--tolerance",
    default=1e-4,
    show_default=True,
    help="The largest difference of numbers that counts as equal, with --check.",
)
@limit_option
def export(
    archive: str,
    output: str,
    inputs: tuple[str, ...],
    ranges: tuple[str, ...],
    method: str,
    draft: bool,
    check: bool,
    tolerance: float,
    limits: ArchiveLimits,
) -> int:
    """Write the module in ARCHIVE as a program of torch.export.

    Sizes with a name may differ between calls; sizes with the same name are the same. All else about the inputs stays
    as in the example.
    """
    bounds = read_ranges(ranges)
    sizes = example_sizes(inputs, bounds)
    torch.manual_seed(0)
    args = tuple(read_example(text, sizes) for text in inputs)
    dimensions = {name: Dim(name, min=bounds[name][0], max=bounds[name][1]) for name in sizes}
    shapes = [_shape(text, dimensions) for text in inputs] if sizes else None
    module = open_archive(archive, limits, "cpu")
    callee = find_method(module, method)
    try:
        with working(f"Exporting {method}"), _telling_of_drafts():
            program = to_exported(callee, args, dynamic_shapes=shapes, draft=draft)
            torch.export.save(program, output)
    except ArgumentError as error:
        raise click.UsageError(f"{first_line(error)}; it is {callee.schema.bound}") from None
    except ExportError as error:
        raise ProgramFailed(str(error)) from None
    except (OSError, RuntimeError) as error:
        raise Trouble(f"{output}: {first_line(error)}") from None
    if not check:
        return OK
    with working("Running both"):
        lines = _differences(callee, output, inputs, sizes, bounds, tolerance)
    for line in lines:
        click.echo(line)
    return NO if any(not line.endswith("agree") for line in lines) else OK


@contextmanager
def _telling_of_drafts() -> Iterator[None]:
    """Write the draft's report to stderr at the end of the ``with`` block."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DraftWarning)
        yield
    for each in caught:
        if isinstance(each.message, DraftWarning):
            click.echo(f"rekindle: {each.message}", err=True)
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)


def _shape(text: str, dimensions: Mapping[str, Any]) -> dict[int, Any] | None:
    found = {index: dimensions[name] for index, name in enumerate(size_names(text)) if name in dimensions}
    return found or None


def _differences(
    callee: Method,
    output: str,
    inputs: tuple[str, ...],
    sizes: Mapping[str, int],
    bounds: Mapping[str, tuple[int, int | None]],
    tolerance: float,
) -> list[str]:
    """Return a line for each call of both: that they agree, or how they differ."""
    exported = torch.export.load(output).module()
    lines: list[str] = []
    for number, by in enumerate((0, 2, -1)):
        chosen = {name: within(size + by, bounds[name]) for name, size in sizes.items()}
        args = [read_example(text, chosen) for text in inputs]
        ours, theirs = (
            _result(each, pytree.tree_map_only(torch.Tensor, torch.clone, args)) for each in (callee, exported)
        )
        difference = difference_of(ours, theirs, tolerance)
        sizes_text = ", ".join(f"{name}={size}" for name, size in chosen.items())
        called = f"call {number + 1}" + (f" ({sizes_text})" if sizes_text else "")
        lines.append(f"{called}: {'agree' if difference is None else difference}")
    return lines


def _result(program: Any, args: list[Any]) -> Any:
    """Return the result of a call; where it raises, that it does."""
    try:
        with torch.no_grad():
            return program(*args)
    except Exception:  # a program may raise anything
        return "an error"
