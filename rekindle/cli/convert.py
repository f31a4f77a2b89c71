"""``rekindle convert``: rewrite an archive in the current format."""

from __future__ import annotations

import click
import torch

from rekindle.archive.code.devices import map_devices
from rekindle.archive.limits import ArchiveLimits
from rekindle.archive.save import save
from rekindle.cli.archive_options import limit_option
from rekindle.cli.archives import device_called, extra_files, open_archive
from rekindle.cli.exit_codes import Trouble, first_line
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
    help="Move tensors from a device to another: cuda:0=cpu, or cpu for all. May be given several times.",
)
@limit_option
def convert(archive: str, result: str, maps: tuple[str, ...], limits: ArchiveLimits) -> None:
    """Save ARCHIVE as RESULT, in the current format.

    Extra files in the archive are copied. --map moves tensors, and changes the devices that the programs name.
    """
    everything = device_called(maps[0]) if len(maps) == 1 and "=" not in maps[0] else None
    to = {} if everything else _targets(maps)
    module = open_archive(archive, limits, everything or {str(device): target for device, target in to.items()})
    if everything or to:
        map_devices(module, lambda device: everything or _target(to, device))
    kept = extra_files(archive, limits)
    try:
        with working(f"Saving {result}"):
            save(module, result, _extra_files=kept)
    except (OSError, RekindleError) as error:
        raise Trouble(f"{result}: {first_line(error)}") from None


def _targets(maps: tuple[str, ...]) -> dict[torch.device, torch.device]:
    """Parse the values of ``--map`` (``cuda:0=cpu``): return the new device of each old one.

    Raises:
        UsageError: a value has another form, or the new device is not available.
    """
    found = {}
    for text in maps:
        of, _, to = text.partition("=")
        if not (of and to):
            raise click.UsageError(f"'{text}' maps no device to another: write cuda:0=cpu")
        found[_known(of)] = device_called(to)
    return found


def _known(text: str) -> torch.device:
    """Return the device with this name, which need not be available.

    Raises:
        UsageError: the text does not name a device.
    """
    try:
        return torch.device(text)
    except RuntimeError:
        raise click.UsageError(f"'{text}' is not a device") from None


def _target(to: dict[torch.device, torch.device], device: torch.device) -> torch.device:
    """Return the new device for ``device`` of a program; ``device`` itself if ``to`` has none. A device without an
    index counts as the first of its type, unless ``to`` has it."""
    if device.index is None and device not in to:
        return to.get(torch.device(device.type, 0), device)
    return to.get(device, device)
