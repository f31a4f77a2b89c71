"""Debug settings in environment variables: logging of passes, limits on changes, verification of graphs.

=============================  ============================================================================
``PYTORCH_JIT_LOG_LEVEL``      files whose passes log, joined by colons: ``dead_code_elimination:>inlining``.
                               A ``>`` in front adds what is for debugging; ``.py`` and ``.cpp`` may follow.
``PYTORCH_JIT_OPT_LIMIT``      ``pass=n``, joined by colons: how many changes a pass may make in this process.
``PYTORCH_JIT_TYPE_VERBOSITY`` types in logged graphs: 0 none, 1 dtypes and shapes, 2 strides too,
                               3 devices and gradients too.
``REKINDLE_VERIFY``            ``1``: every graph is verified after it is made and after each pass that
                               changes it.
=============================  ============================================================================
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from typing import Final, TypeVar

from rekindle.errors.log import GRAPH_DEBUG, GRAPH_DUMP, GRAPH_UPDATE

LOG_LEVEL: Final = "PYTORCH_JIT_LOG_LEVEL"
OPT_LIMIT: Final = "PYTORCH_JIT_OPT_LIMIT"
TYPE_VERBOSITY: Final = "PYTORCH_JIT_TYPE_VERBOSITY"
VERIFY: Final = "REKINDLE_VERIFY"

_FILE: Final = r"(\w+)(?:\.(?:cpp|py))?"
_LOGGED: Final = re.compile(rf"(>*){_FILE}")
_LIMITED: Final = re.compile(rf"{_FILE}=(\d+)")
_PREFIXES: Final = {GRAPH_DUMP: "DUMP", GRAPH_UPDATE: "UPDATE", GRAPH_DEBUG: "DEBUG"}

_Setting = TypeVar("_Setting")


@dataclass(frozen=True, slots=True)
class Settings:
    """Values of the environment variables; ``problems`` has a sentence for each variable with an invalid value."""

    levels: Mapping[str, int] = field(default_factory=dict)
    """Minimum level of the messages that a pass logs, by the name of the pass."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """Maximum number of changes that a pass makes in this process, by the name of the pass."""
    verbosity: int = 3
    problems: tuple[str, ...] = ()
    verify: bool = False
    """Whether graphs are verified after they are made and after each pass that changes them."""


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Return the settings in ``environment``; invalid ones are ignored and reported in ``problems``."""
    problems: list[str] = []
    levels = _read_list(environment, LOG_LEVEL, "a file or '>' and a file", _read_level, problems)
    limits = _read_list(environment, OPT_LIMIT, "pass=number", _read_limit, problems)
    verbosity = environment.get(TYPE_VERBOSITY, "").strip() or "3"
    if verbosity not in ("0", "1", "2", "3"):
        problems.append(f"{TYPE_VERBOSITY} is a number from 0 to 3, so this is ignored: '{verbosity}'")
        verbosity = "3"
    is_verifying = environment.get(VERIFY, "0").strip() not in ("", "0")
    return Settings(levels, limits, int(verbosity), tuple(problems), is_verifying)


def _read_list(
    environment: Mapping[str, str],
    variable: str,
    form: str,
    read: Callable[[str], tuple[str, _Setting] | None],
    problems: list[str],
) -> dict[str, _Setting]:
    found: dict[str, _Setting] = {}
    wrong: list[str] = []
    for item in filter(None, map(str.strip, environment.get(variable, "").split(":"))):
        setting = read(item)
        if setting is None:
            wrong.append(f"'{item}'")
        else:
            found[setting[0]] = setting[1]
    if wrong:
        problems.append(f"{variable} is a list of {form}, joined by colons, so this is ignored: {', '.join(wrong)}")
    return found


def _read_level(item: str) -> tuple[str, int] | None:
    match = _LOGGED.fullmatch(item)
    return match and (match[2], GRAPH_DEBUG if match[1] else GRAPH_UPDATE)


def _read_limit(item: str) -> tuple[str, int] | None:
    match = _LIMITED.fullmatch(item)
    return match and (match[1], int(match[2]))


@cache
def settings() -> Settings:
    """Return the settings in the environment of this process. The first call reads them.

    Warn of invalid variables. If passes are to log, add a handler for standard error to the logger ``rekindle.passes``.
    At exit, warn of the passes that the variables name and that did not run.
    """
    found = read_settings(os.environ)
    if found.problems:
        warnings.warn("; ".join(found.problems), RuntimeWarning, stacklevel=2)
    if found.levels:
        _log_to_stderr(found.levels)
    if found.levels or found.limits:
        atexit.register(_warn_of_unknown, found)
    return found


passes_that_ran: Final[set[str]] = set()
"""Names of the passes that have run in this process."""


def unknown_names(found: Settings) -> str:
    """Return a sentence for each pass that a variable names and that did not run, joined by semicolons; empty if all
    ran."""
    sentences = []
    for variable, names in ((LOG_LEVEL, found.levels), (OPT_LIMIT, found.limits)):
        for name in names:
            if name not in passes_that_ran:
                alike = get_close_matches(name, sorted(passes_that_ran), n=1)
                hint = f" (did you mean '{alike[0]}'?)" if alike else ""
                sentences.append(f"{variable} names '{name}', and no pass of that name ran{hint}")
    return "; ".join(sentences)


def _warn_of_unknown(found: Settings) -> None:
    problem = unknown_names(found)
    if problem:
        warnings.warn(problem, RuntimeWarning, stacklevel=1)


def _log_to_stderr(levels: Mapping[str, int]) -> None:
    parent = logging.getLogger("rekindle.passes")
    if not any(isinstance(handler.formatter, _Prefixed) for handler in parent.handlers):
        handler = logging.StreamHandler()
        handler.setFormatter(_Prefixed())
        parent.addHandler(handler)
    for name, level in levels.items():
        parent.getChild(name).setLevel(level)


class _Prefixed(logging.Formatter):
    """Formatter that prefixes each line of a message with its kind and pass, for ``grep``."""

    def format(self, record: logging.LogRecord) -> str:
        prefix = f"[{_PREFIXES.get(record.levelno, record.levelname)} {record.name.rpartition('.')[2]}] "
        return "\n".join(prefix + line for line in super().format(record).splitlines())
