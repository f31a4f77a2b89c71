"""Read files of ``torch.export``. Defects of a file that PyTorch only logs are raised as errors."""

from __future__ import annotations

import logging
import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Final

import torch
from torch.export import ExportedProgram

from rekindle.errors import CaptureError

_UNKNOWN_CLASS: Final = re.compile(
    r"Deserializing (\S+) in pytree (?:is|failed because the serialized type is) not registered"
)


def load_exported(file: str | os.PathLike[str] | IO[bytes]) -> ExportedProgram:
    """Return the program in a file that ``torch.export.save`` has written.

    Raises:
        CaptureError: the program takes or returns objects of a class that has to be registered with PyTorch first.
        ValueError: the file is not one of ``torch.export``, or is damaged.
        OSError: the file cannot be read.
    """
    logged: list[BaseException] = []
    try:
        with _logged_errors(logged):
            return torch.export.load(file)
    except Exception as error:
        for each in (error, *logged):
            if (found := _UNKNOWN_CLASS.search(str(each))) is not None:
                raise _unknown_class(found[1]) from error
        if isinstance(error, OSError):
            raise
        raise ValueError(_reason(logged[0] if logged else error)) from error


def _unknown_class(name: str) -> CaptureError:
    module = name.rpartition(".")[0] or name
    return CaptureError(
        f"the program takes or gives objects of the class {name}, which is not known here",
        hint=f"import what registers it with PyTorch before: import {module}; on the command line: rekindle import "
        f"--import {module} …",
    )


def _reason(error: BaseException) -> str:
    if isinstance(error, zipfile.BadZipFile) or "not a ZIP archive" in str(error):
        return "this is not a file of torch.export"
    first = str(error).strip().partition("\n")[0]
    return f"this is not a file of torch.export, or a damaged one: {first or type(error).__name__}"


@contextmanager
def _logged_errors(found: list[BaseException]) -> Iterator[None]:
    """Append the errors that PyTorch logs within the ``with`` block to ``found``. They are not printed."""

    def keep(record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[1] is not None:
            found.append(record.exc_info[1])
        return False

    logger = logging.getLogger("torch.export")
    logger.addFilter(keep)
    try:
        yield
    finally:
        logger.removeFilter(keep)
