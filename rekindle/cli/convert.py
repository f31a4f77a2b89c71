"""``rekindle convert``: write an archive anew."""

from __future__ import annotations

import click
import torch

from rekindle.archive.limits import ArchiveLimits
from rekindle.archive.save import save
from rekindle.archive.tensors import MapLocation
from rekindle.cli.archives import device_called, extra_files, limit_option, open_archive
from rekindle.cli.exits import Trouble, first_line
from rekindle.cli.progress import working
from rekindle.errors import RekindleError


@click.command()
@click.argument("archive")
@click.argument("result")
@click.option(
    "--map",
    "maps",
    multiple=True,
    metavar="FROM=TO",
    help="Put the tensors of a device on another: cuda:0=cpu, or just cpu for all. May be given several times.",
)
@limit_option
def convert(archive: str, result: str, maps: tuple[str, ...], limits: ArchiveLimits) -> None:
    """Load ARCHIVE and save it as RESULT, in today's format, with the files that are kept beside the program."""
    module = open_archive(archive, limits, _map_location(maps))
    kept = extra_files(archive, limits)
    try:
        with working(f"Saving {result}"):
            save(module, result, _extra_files=kept)
    except (OSError, RekindleError) as error:
        raise Trouble(f"{result}: {first_line(error)}") from None


def _map_location(maps: tuple[str, ...]) -> MapLocation:
    """As :func:`rekindle.load` takes it: a device, a dict from devices to devices, or None."""
    if not maps:
        return None
    if len(maps) == 1 and "=" not in maps[0]:
        return device_called(maps[0])
    found: dict[str, str | torch.device] = {}
    for text in maps:
        of, equals, to = text.partition("=")
        if not (of and equals and to):
            raise click.UsageError(f"'{text}' maps no device to another: write cuda:0=cpu")
        found[of] = device_called(to)
    return found
