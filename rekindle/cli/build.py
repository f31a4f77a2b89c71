"""``rekindle build``: the module of an archive as a native library."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import click
import torch

from rekindle.archive.limits import ArchiveLimits
from rekindle.building.comparison import comparable
from rekindle.building.library import Build, build as build_library
from rekindle.building.native_library import NativeLibrary
from rekindle.cli.archive_options import limit_option
from rekindle.cli.archives import find_method, open_archive
from rekindle.cli.exit_codes import NO, OK, ProgramFailed, Trouble, first_line
from rekindle.cli.inputs import FORMS
from rekindle.cli.named_sizes import example_sizes, read_example, read_ranges, size_names
from rekindle.cli.program_calls import Bounds, compared_calls, example_options, outcome
from rekindle.cli.progress import working
from rekindle.errors import RekindleError
from rekindle.program.function import Method

_CALLS: Final = 50
"""Number of timed calls with --check; the fastest counts."""
_VARIED: Final = ((1, 0), (2, 1), (0, 1))
"""Factor and summand of the named sizes of the example, for each compared call."""


@click.command(
    epilog=f"An input is {FORMS}. A size may be a name, which stands for any size: f32[b,3,224,224].",
)
@click.argument("archive")
@click.option("-o", "--output", required=True, metavar="FOLDER", help="The folder to write: net/.")
@example_options
@click.option("--name", default="net", show_default=True, help="The name of the library, and of its C functions.")
@click.option(
    "--cpu", default="native", show_default=True, help="The processor: native, x86-64-v2 to v4, or several: v2,v3,v4."
)
@click.option("--freestanding", is_flag=True, help="Reject a program that needs PyTorch to run.")
@click.option("--embed-weights", is_flag=True, help="Put the weights in the library, not in a file.")
@click.option("--object", "as_object", is_flag=True, help="Write an object for a linker; --cpu may be aarch64.")
@limit_option
def build(
    archive: str,
    output: str,
    inputs: tuple[str, ...],
    ranges: tuple[str, ...],
    method: str,
    name: str,
    cpu: str,
    freestanding: bool,
    embed_weights: bool,
    as_object: bool,
    check: bool,
    tolerance: float,
    limits: ArchiveLimits,
) -> int:
    """Build a shared library and a C header from ARCHIVE.

    The library runs the method without Python.
    """
    if as_object and check:
        raise click.UsageError("--check calls the library, and an object has to be linked first")
    bounds = read_ranges(ranges)
    ranged = set(bounds)
    sizes = example_sizes(inputs, bounds)
    torch.manual_seed(0)
    smallest = {name: bounds[name][0] if name in ranged else sizes[name] for name in sizes}
    examples = [tuple(read_example(text, chosen) for text in inputs) for chosen in (sizes, smallest)]
    module = open_archive(archive, limits, "cpu")
    callee = find_method(module, method)
    parameters = [argument.name for argument in callee.schema.bound.arguments]
    dynamic = {
        parameter: [index for index, size in enumerate(size_names(text)) if size in sizes]
        for parameter, text in zip(parameters, inputs, strict=False)
    }
    started = time.perf_counter()
    try:
        with working(f"Building {method}"):
            result = build_library(
                module,
                output,
                {method: examples},
                dynamic={parameter: dims for parameter, dims in dynamic.items() if dims},
                name=name,
                cpu=cpu,
                freestanding=freestanding,
                embed_weights=embed_weights,
                form="object" if as_object else "shared",
            )
    except RekindleError as error:
        raise ProgramFailed(str(error)) from None
    except OSError as error:
        raise Trouble(f"{output}: {first_line(error)}") from None
    _report(result, time.perf_counter() - started)
    if not check:
        return OK
    with working("Calling both"):
        lines, is_same = _comparison(callee, result, inputs, sizes, bounds, tolerance)
    for line in lines:
        click.echo(line)
    return OK if is_same else NO


def _report(result: Build, seconds: float) -> None:
    """Print a summary of the build."""
    paths = [result.library, *([result.weights] if result.weights is not None else [])]
    files = ", ".join(f"{path.name} ({path.stat().st_size:,} bytes)" for path in paths)
    click.echo(f"{result.folder}: {files}, {result.header.name}; built in {seconds:.1f} s")
    if result.is_freestanding:
        click.echo("The library needs the C library alone.")
    else:
        click.echo(f"The library needs PyTorch for {', '.join(result.torch_operators)}.")


def _comparison(
    callee: Method, result: Build, inputs: tuple[str, ...], sizes: Mapping[str, int], bounds: Bounds, tolerance: float
) -> tuple[list[str], bool]:
    """Call the library and the program; return a line for each call and a line of times, and whether all calls
    agree."""
    native = NativeLibrary(result.folder)

    def library(*arguments: Any) -> Any:
        return native.call(callee.name, *arguments)

    several = [{name: factor * size + term for name, size in sizes.items()} for factor, term in _VARIED]
    lines, is_same = compared_calls(
        callee, library, "the library", inputs, several, bounds, tolerance, same_errors=True, aligned=comparable
    )
    arguments = [read_example(text, sizes) for text in inputs]
    here, there = (_fastest(each, arguments) for each in (callee, library))
    lines.append(f"A call takes {there:.1f} us from Python, and {here:.1f} us in the program.")
    return lines, is_same


def _fastest(function: Callable[..., Any], arguments: list[Any]) -> float:
    """Return the time of the fastest of several calls, in microseconds."""
    found = []
    for _ in range(_CALLS):
        started = time.perf_counter()
        outcome(function, arguments)
        found.append(time.perf_counter() - started)
    return 1e6 * min(found)
