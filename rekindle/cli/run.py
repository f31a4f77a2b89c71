"""``rekindle run``: call a method of the module in an archive."""

from __future__ import annotations

from pathlib import Path
from pickle import PicklingError
from typing import Any, Final

import click
import torch
from torch.utils import _pytree as pytree

from rekindle.archive.limits import ArchiveLimits
from rekindle.building.manifest import MANIFEST
from rekindle.building.native_library import LibraryError, NativeLibrary
from rekindle.cli.archive_options import limit_option
from rekindle.cli.archives import device_called, find_method, open_archive
from rekindle.cli.console import json_option, write_json, write_table
from rekindle.cli.exit_codes import Trouble, first_line
from rekindle.cli.inputs import FORMS, read_inputs
from rekindle.cli.program_calls import program_errors
from rekindle.cli.progress import working

_MAX_LENGTH: Final = 60
"""Largest number of characters of a value in the table."""


@click.command(
    epilog=f"An input is {FORMS}. Write NAME=INPUT for one that is given by name.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("archive")
@click.argument("inputs", nargs=-1, type=click.UNPROCESSED)
@click.option("--method", default="forward", show_default=True, metavar="NAME", help="The method to call.")
@click.option("--seed", default=0, show_default=True, help="The seed of random inputs and operators.")
@click.option("--device", default="cpu", show_default=True, help="The device of the module and the inputs.")
@click.option(
    "--train/--eval", default=None, help="The mode of the module; by default, the mode in which it was saved."
)
@click.option("--out", "file", default=None, metavar="FILE", help="Save the result, for torch.load.")
@limit_option
@json_option
def run(
    archive: str,
    inputs: tuple[str, ...],
    method: str,
    seed: int,
    device: str,
    train: bool | None,
    file: str | None,
    limits: ArchiveLimits,
    as_json: bool,
) -> None:
    """Call the module in ARCHIVE with INPUTS.

    ARCHIVE may be the folder of a native library. The result is summarized: types, shapes, and the smallest, mean and
    largest number of each tensor.
    """
    where = device_called(device)
    torch.manual_seed(seed)
    in_order, by_name = pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.to(where), read_inputs(inputs))
    if Path(archive, MANIFEST).exists():
        result = _call_library(archive, method, in_order, by_name)
    else:
        module = open_archive(archive, limits, where)
        if train is not None:
            module.train(train)
        callee = find_method(module, method)
        torch.manual_seed(seed)
        calling = program_errors(callee.schema.bound, print_to_stderr=as_json)
        with working(f"Running {method}"), calling, torch.no_grad():
            result = callee(*in_order, **by_name)
    if file is not None:
        _save(result, file)
    rows = summary(result, "result")
    if as_json:
        write_json(rows)
        return
    numbers = ("shape", "min", "mean", "max", "value")
    cells = [[row["name"], row["type"], *(_cell(row[key]) if key in row else "" for key in numbers)] for row in rows]
    write_table(("", "type", "shape", ">min", ">mean", ">max", "value"), cells)


def _call_library(folder: str, method: str, in_order: list[Any], by_name: dict[str, Any]) -> Any:
    """Call a method of the native library in ``folder`` and return the result. Arguments cannot be given by name.

    Raises:
        Trouble: the library cannot be opened.
        UsageError: there are arguments with names, or there is no such method.
        ProgramFailed: the call failed.
    """
    try:
        library = NativeLibrary(folder)
    except LibraryError as error:
        raise Trouble(str(error)) from None
    if by_name:
        raise click.UsageError("a native library takes inputs in order, without names")
    if method not in library.methods:
        raise click.UsageError(f"the library has no method '{method}'; it has {', '.join(library.methods)}")
    with working(f"Running {method}"), program_errors(method):
        return library.call(method, *in_order)


def summary(value: Any, name: str) -> list[dict[str, Any]]:
    """Return a row of the table for each tensor and each other value in the result of a call.

    A row has ``name`` (the path of the value, which begins with ``name``) and ``type``. A tensor has its ``shape``. If
    it is dense, real, not quantized and has data, it also has ``min``, ``mean`` and ``max``, or ``value`` if it has one
    element. Other values have ``value``.
    """
    if isinstance(value, torch.Tensor):
        return [_of_tensor(value, name)]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [row for field in value._fields for row in summary(getattr(value, field), f"{name}.{field}")]
    if isinstance(value, (tuple, list)) and value:
        return [row for index, item in enumerate(value) for row in summary(item, f"{name}[{index}]")]
    if isinstance(value, dict) and value:
        return [row for key, item in value.items() for row in summary(item, f"{name}[{key!r}]")]
    shown = value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)
    return [{"name": name, "type": "None" if value is None else type(value).__name__, "value": shown}]


def _of_tensor(tensor: torch.Tensor, name: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": name,
        "type": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
    }
    is_plain = tensor.layout == torch.strided and not (tensor.is_quantized or tensor.is_complex() or tensor.is_meta)
    if is_plain and tensor.numel() == 1:
        row["value"] = tensor.item()
    elif is_plain and tensor.numel():
        numbers = tensor.detach().double()
        row |= {"min": numbers.min().item(), "mean": numbers.mean().item(), "max": numbers.max().item()}
    return row


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = repr(value)
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"


def _save(result: Any, path: str) -> None:
    """Save a result for ``torch.load``. Its safe reader does not support NamedTuples: they are saved as tuples.

    Raises:
        Trouble: the file cannot be written, or the result cannot be pickled.
    """
    try:
        torch.save(_plain(result), path)
    except OSError as error:
        raise Trouble(f"{path}: {first_line(error)}") from None
    except (RuntimeError, PicklingError, AttributeError, TypeError) as error:
        raise Trouble(f"{path}: the result cannot be saved: {first_line(error)}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, list):
        return list(map(_plain, value))
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
