"""Table and summary of the modules benchmark."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.execution import geometric_mean
from benchmarks.modules.catalog import CASES, PACKAGES
from benchmarks.modules.measure import COMPILERS, TOO_LONG, Peer, Row, as_json

PATH: Final = Path(__file__).parent.parent / "results" / "modules.json"
TOLERANCE: Final = 1.03
"""How many times eager's time, or that of torch.jit, a call may take."""
AIM: Final = 0.6
"""The geometric mean of our time over that of torch.jit that is to be reached, where most of the time is not PyTorch's
own matrix products and convolutions."""


def table(rows: Sequence[Row]) -> list[list[str]]:
    """Return a line for each row: times of calls, ratios, and ``script`` with the first call, cold and warm."""
    head = ["module", "eager, µs", "rekindle / eager", "rekindle / torch.jit", "products"]
    head += ["cold, ms", "warm, ms", "torch.jit, ms", "remarks"]
    return [head, *map(_line, rows)]


def _line(row: Row) -> list[str]:
    eager, ours, theirs = (row.peers.get(name) for name in ("eager", *COMPILERS))
    return [
        row.title,
        _number(eager.call if eager else None),
        _ratio(row.over("eager")),
        _ratio(row.over("torch.jit")),
        "–" if row.share is None else f"{row.share:.0%}",
        _first(ours.cold if ours else []),
        _first(ours.warm if ours else []),
        _first(theirs.warm if theirs else []),
        "; ".join(_remarks(row)),
    ]


def _remarks(row: Row) -> list[str]:
    found = [row.failure] if row.failure else []
    for name, peer in row.peers.items():
        found += [f"{name}: {text[:80]}" for text in (peer.error, peer.differs and f"differs: {peer.differs}") if text]
    return found


def _first(times: list[float]) -> str:
    """Return the milliseconds of ``script`` and the first call."""
    return f"{sum(times[:2]):.0f}" if len(times) > 1 else "–"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def _ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


# -------------------------------------------------------------------------------------------------------------- summary


def summary(rows: Sequence[Row]) -> list[str]:
    """Return the summary of the table, a line for each fact."""
    load = f"load {min(row.load for row in rows):.1f} to {max(row.load for row in rows):.1f} on {os.cpu_count()} cores"
    lines = [f"{len(rows)} rows of {sum(len(case.modes) for case in CASES)}; {load}"]
    lines += [_means("all rows", rows)]
    lines += [
        _means("products take less than half", [row for row in rows if row.share is not None and row.share < 0.5])
    ]
    lines[-1] += f"; to be at most {AIM} of torch.jit"
    lines += [_compiling(rows, state) for state in ("cold", "warm")]
    lines += [_loading(rows)]
    for peer in ("eager", "torch.jit"):
        slow = [(over, row.title) for row in rows if (over := row.over(peer)) is not None and over > TOLERANCE]
        lines.append(f"slower than {peer} by more than 3 %: {len(slow)} rows")
        lines += [f"  {over:.2f}  {title}" for over, title in sorted(slow, reverse=True)]
    return lines + [line for title, listed in _findings(rows).items() for line in _listed(title, listed)]


def _means(what: str, rows: Sequence[Row]) -> str:
    parts = [
        f"{geometric_mean(ratios):.2f} of {peer} ({len(ratios)} rows)"
        for peer in ("eager", "torch.jit")
        if (ratios := [over for row in rows if (over := row.over(peer)) is not None])
    ]
    return f"geometric mean, {what}: {', '.join(parts) or 'nothing'}"


def _compiling(rows: Iterable[Row], state: str) -> str:
    ratios = []
    for row in rows:
        ours, theirs = (row.peers.get(name) for name in COMPILERS)
        if ours and theirs and len(theirs.warm) == 4 and len(getattr(ours, state)) == 4:
            ratios.append(tuple(sum(getattr(ours, state)[:n]) / sum(theirs.warm[:n]) for n in (1, 2, 4)))
    if not ratios:
        return f"{state}: nothing that both compile"
    medians = [f"{statistics.median(each):.2f}" for each in zip(*ratios, strict=True)]
    what = ("script", "script and first call", "script and three calls")
    parts = (f"{name} {value}" for name, value in zip(what, medians, strict=True))
    return f"{state}, times those of torch.jit, medians of {len(ratios)} rows: {', '.join(parts)}"


def _loading(rows: Iterable[Row]) -> str:
    peers = [peer for row in rows for name, peer in row.peers.items() if name == "rekindle"]
    loads = [peer.load for peer in peers if peer.load is not None]
    return (
        f"loading the compiler, once in a process: {statistics.median(loads):.0f} ms" if loads else "loading: nothing"
    )


def _findings(rows: Sequence[Row]) -> dict[str, list[str]]:
    def refusal(peer: Peer) -> str:
        return "" if peer.error.startswith(TOO_LONG) else peer.error

    def of(peer: str, text: Callable[[Any], str], if_other_works: bool = False) -> list[str]:
        found = []
        for row in rows:
            other = row.peers.get("torch.jit")
            if (one := row.peers.get(peer)) and text(one) and (not if_other_works or (other and not other.error)):
                found.append(f"{row.title}: {text(one)}")
        return found

    return {
        "no numbers": [f"{row.title}: {row.failure}" for row in rows if row.failure],
        "rekindle refuses what torch.jit takes": of("rekindle", refusal, if_other_works=True),
        "rekindle refuses": of("rekindle", refusal),
        "torch.jit refuses": of("torch.jit", refusal),
        "rekindle differs from eager": of("rekindle", lambda peer: peer.differs),
        "torch.jit differs from eager": of("torch.jit", lambda peer: peer.differs),
        "eager differs in its second call": of("eager", lambda peer: peer.differs),
    }


def _listed(title: str, found: list[str]) -> list[str]:
    return [f"{title}: {len(found) or 'nothing'}", *(f"  {line}" for line in found)]


def save(rows: Sequence[Row], machine: dict[str, Any]) -> None:
    """Write the rows with what they depend on: the machine, its load, and the versions of the packages."""
    found = {
        "machine": {**machine, "cores": os.cpu_count()},
        "packages": PACKAGES,
        "summary": summary(rows),
        "rows": [as_json(row) for row in rows],
    }
    PATH.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
