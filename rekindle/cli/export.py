"""``rekindle export``: the module of an archive as a file of ``torch.export``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click
import torch
from torch.export import Dim
from torch.utils._pytree import tree_map

from rekindle.archive.limits import ArchiveLimits
from rekindle.cli.archive_options import limit_option
from rekindle.cli.archives import find_method, open_archive
from rekindle.cli.exit_codes import NO, OK, ProgramFailed, Trouble, first_line
from rekindle.cli.inputs import FORMS
from rekindle.cli.named_sizes import example_sizes, read_example, read_ranges, size_names
from rekindle.cli.program_calls import compared_calls, example_options
from rekindle.cli.progress import working
from rekindle.errors import ArgumentError, DraftWarning, ExportError
from rekindle.exporting.program import to_exported


@click.command(
    epilog=f"An input is {FORMS}. A size may be a name: f32[b,3,224,224].",
)
@click.argument("archive")
@click.option("-o", "--output", required=True, metavar="FILE", help="The file to write: model.pt2.")
@example_options
@click.option("--draft", is_flag=True, help="Export what can be exported, and report the rest.")
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
    """Write the module in ARCHIVE as a torch.export program.

    Sizes with a name may differ between calls; sizes with the same name are the same. Everything
    else about the inputs is fixed as in the example.
    """
    bounds = read_ranges(ranges)
    sizes = example_sizes(inputs, bounds)
    torch.manual_seed(0)
    args = tuple(read_example(text, sizes) for text in inputs)
    dimensions = {name: Dim(name, min=bounds[name][0], max=bounds[name][1]) for name in sizes}
    shapes = [_shape(text, each, dimensions) for text, each in zip(inputs, args, strict=True)] if sizes else None
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
        exported = torch.export.load(output).module()
        several = [{name: size + term for name, size in sizes.items()} for term in (0, 2, -1)]
        lines, is_same = compared_calls(callee, exported, "the exported program", inputs, several, bounds, tolerance)
    for line in lines:
        click.echo(line)
    return OK if is_same else NO


@contextmanager
def _telling_of_drafts() -> Iterator[None]:
    """Write the warnings about a draft in the ``with`` block to stderr at its end, and issue the others again. If the
    block raises an exception, all are dropped."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DraftWarning)
        yield
    for each in caught:
        if isinstance(each.message, DraftWarning):
            click.echo(f"rekindle: {each.message}", err=True)
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)


def _shape(text: str, value: Any, dimensions: Mapping[str, Any]) -> Any:
    """Return the entry of ``dynamic_shapes`` for an input: the named sizes of a tensor by dimension; None for an input
    without names. For a list, tuple or dict, it is a container of None."""
    found = {index: dimensions[name] for index, name in enumerate(size_names(text)) if name in dimensions}
    return found or tree_map(lambda _: None, value)
