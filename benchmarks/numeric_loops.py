"""Loops over numbers, lists and strings beside Numba and CPython: ``python -m benchmarks --only numeric_loops``.

Numba is in the extra ``[numba]``. Its integers have 64 bits and wrap around, and it tests no index; ours are Python's
integers, and errors are Python's errors. Every round calls each peer for some time, one after the other; the time of a
call is that of the thread, and the median over the rounds counts.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import rekindle
from benchmarks.peers import Unavailable

ROUNDS: Final = 15
SLICE: Final = 0.01
"""Seconds that a round calls a peer for."""

# ------------------------------------------------------------------------------------------------------------ programs


def mandelbrot(n: int, limit: int) -> int:
    total = 0
    for i in range(n):
        for j in range(n):
            cr = 3.0 * i / n - 2.0
            ci = 2.0 * j / n - 1.0
            zr = 0.0
            zi = 0.0
            k = 0
            while k < limit and zr * zr + zi * zi < 4.0:
                t = zr * zr - zi * zi + cr
                zi = 2.0 * zr * zi + ci
                zr = t
                k += 1
            total += k
    return total


def collatz(n: int) -> int:
    best = 0
    for i in range(1, n):
        x = i
        steps = 0
        while x != 1:
            if x % 2 == 0:
                x = x // 2
            else:
                x = 3 * x + 1
            steps += 1
        if steps > best:
            best = steps
    return best


def sum_of_squares(n: int, times: int) -> float:
    xs = [0.5 * i for i in range(n)]
    total = 0.0
    for _ in range(times):
        for i in range(n):
            total += xs[i] * xs[i]
    return total


def sieve(n: int) -> int:
    flags = [True for _ in range(n + 1)]
    count = 0
    for i in range(2, n + 1):
        if flags[i]:
            count += 1
            j = i * i
            while j <= n:
                flags[j] = False
                j += i
    return count


def fibonacci(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, (a + b) % 1000000007
    return a


def edit_distance(a: str, b: str) -> int:
    previous = [i for i in range(len(b) + 1)]
    for i in range(len(a)):
        current = [i + 1]
        for j in range(len(b)):
            cost = 0 if a[i] == b[j] else 1
            current.append(min(min(previous[j + 1] + 1, current[j] + 1), previous[j] + cost))
        previous = current
    return previous[len(b)]


def product_of_matrices(n: int) -> float:
    a = [[0.5 * (i + j) for j in range(n)] for i in range(n)]
    b = [[1.0 * (i - j) for j in range(n)] for i in range(n)]
    total = 0.0
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(n):
                s += a[i][k] * b[k][j]
            total += s
    return total


def divisors(n: int) -> int:
    total = 0
    for i in range(1, n):
        for j in range(1, n):
            a = i
            b = j
            while b != 0:
                a, b = b, a % b
            total += a
    return total


def primes(n: int) -> int:
    count = 0
    for i in range(2, n):
        is_prime = True
        d = 2
        while d * d <= i:
            if i % d == 0:
                is_prime = False
                break
            d += 1
        if is_prime:
            count += 1
    return count


PROGRAMS: Final[dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "Mandelbrot, 60×60": (mandelbrot, (60, 50)),
    "Collatz below 1,000": (collatz, (1000,)),
    "sums of 1,000 squares in a list, 100 times": (sum_of_squares, (1000, 100)),
    "sieve of 50,000": (sieve, (50_000,)),
    "Fibonacci modulo a prime, 100,000 steps": (fibonacci, (100_000,)),
    "edit distance, 156 letters": (
        edit_distance,
        ("kitten sitting on the fence" * 6, "sitting kittens in the yard" * 6),
    ),
    "product of 60×60 lists of lists": (product_of_matrices, (60,)),
    "greatest common divisors, 150×150": (divisors, (150,)),
    "primes below 5,000 by division": (primes, (5000,)),
}

# ----------------------------------------------------------------------------------------------------------- measuring


@dataclass(slots=True)
class Row:
    """Microseconds of a call, and seconds of the first call, by peer."""

    name: str
    times: dict[str, float]
    first_calls: dict[str, float]

    @property
    def ratio(self) -> float:
        """Rekindle's time divided by Numba's."""
        return self.times["rekindle"] / self.times["Numba"]


def run(rounds: int = ROUNDS, workload: str = "", slice: float = SLICE) -> list[Row]:
    """Measure the programs with ``workload`` in their names.

    Raises:
        Unavailable: Numba is not installed.
    """
    try:
        from numba import njit  # type: ignore[import-not-found]
    except ImportError:
        raise Unavailable("Numba is not installed: pip install 'rekindle[numba]'") from None
    peers: dict[str, Callable[..., Any]] = {"CPython": lambda f: f, "Numba": njit, "rekindle": rekindle.script}
    return [
        _row(name, program, arguments, peers, rounds, slice)
        for name, (program, arguments) in PROGRAMS.items()
        if workload in name
    ]


def _row(
    name: str,
    program: Callable[..., Any],
    arguments: tuple[Any, ...],
    peers: dict[str, Callable[..., Any]],
    rounds: int,
    slice: float,
) -> Row:
    functions: dict[str, Callable[..., Any]] = {}
    first: dict[str, float] = {}
    expected = program(*arguments)
    for peer, make in peers.items():
        began = time.perf_counter()
        functions[peer] = make(program)
        found = functions[peer](*arguments)
        first[peer] = time.perf_counter() - began
        assert found == expected, f"{peer} returns {found!r} for {name}"
        for _ in range(5):
            functions[peer](*arguments)
    times: dict[str, list[float]] = {peer: [] for peer in peers}
    for _ in range(rounds):
        for peer, function in functions.items():
            times[peer].append(_time_of_a_call(function, arguments, slice))
    return Row(name, {peer: statistics.median(found) * 1e6 for peer, found in times.items()}, first)


def _time_of_a_call(function: Callable[..., Any], arguments: tuple[Any, ...], slice: float) -> float:
    calls, began, now = 0, time.thread_time(), 0.0
    while calls == 0 or now - began < slice:
        function(*arguments)
        calls += 1
        now = time.thread_time()
    return (now - began) / calls


def table(rows: list[Row]) -> list[list[str]]:
    head = ["program", "CPython, µs", "Numba, µs", "rekindle, µs", "over Numba", "first call: Numba, s", "rekindle, s"]
    found = [head]
    for row in rows:
        times = [f"{row.times[peer]:,.0f}" for peer in ("CPython", "Numba", "rekindle")]
        firsts = [f"{row.first_calls[peer]:.2f}" for peer in ("Numba", "rekindle")]
        found.append([row.name, *times, f"{row.ratio:.2f}", *firsts])
    mean = statistics.geometric_mean([row.ratio for row in rows])
    return [*found, ["geometric mean", "", "", "", f"{mean:.2f}", "", ""]]
