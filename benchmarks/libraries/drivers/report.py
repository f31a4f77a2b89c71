"""What the drivers in Python share: files of values and the report of ``driver.h``, without PyTorch."""

from __future__ import annotations

import json
import statistics
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

_DTYPES = (np.float32, np.int64)


def read_arguments(path: str) -> Iterator[Any]:
    content, at = Path(path).read_bytes(), 8
    while at < len(content):
        kind, dtype, rank = struct.unpack_from("<3q", content, at)
        *sizes, count = struct.unpack_from(f"<{rank + 1}q", content, at + 24)
        at += 24 + 8 * (rank + 1)
        data = content[at : at + count]
        at += count
        yield data.decode() if kind == 1 else np.frombuffer(data, _DTYPES[dtype]).reshape(sizes).copy()


def write_results(path: str, results: list[Any]) -> None:
    with Path(path).open("wb") as file:
        for each in results:
            if isinstance(each, int):
                file.write(struct.pack("<5q", 2, 1, 0, 8, each))
                continue
            data = each.tobytes()
            head = (0, _DTYPES.index(each.dtype.type), each.ndim, *each.shape, len(data))
            file.write(struct.pack(f"<{len(head)}q", *head) + data)


def run(call: Callable[[], Any], leaves: Callable[[Any], list[Any]], arguments: list[str]) -> None:
    """Call once, write the ``leaves`` of the result, call for some seconds, and print the report."""
    _, _, results, seconds, started = arguments
    found = call()
    wall, processor = time.monotonic() - float(started), time.process_time()
    lines = Path("/proc/self/status").read_text().splitlines()
    status = {key: int(rest.split()[0]) for key, _, rest in (line.partition(":") for line in lines) if "kB" in rest}
    write_results(results, leaves(found))
    begun, batch = time.process_time(), 1
    for _ in range(3):
        call()
    while batch < 1_000_000 and _batch(call, batch) < 1e-3:
        batch *= 2
    times: list[float] = []
    while not times or time.process_time() - begun < float(seconds):
        times.append(_batch(call, batch) / batch)
    paths = (line.split(maxsplit=5)[5:] for line in Path("/proc/self/maps").read_text().splitlines())
    report = {
        "start_wall": wall,
        "start_cpu": processor,
        "resident": status["VmRSS"],
        "anonymous": status["RssAnon"],
        "peak": status["VmHWM"],
        "call": statistics.median(times),
        "mapped": sorted({path[0] for path in paths if path and path[0].startswith("/")}),
    }
    print(json.dumps(report))


def _batch(call: Callable[[], Any], count: int) -> float:
    began = time.process_time()
    for _ in range(count):
        call()
    return time.process_time() - began
